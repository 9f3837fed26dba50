//! What a change gains on the rows that it was fitted to, and not on others: every row pulls its own score toward its own class.
//!
//! ```text
//!   degrees of freedom  nu = sum_k sum_j response(h_k v_j / A)         v_j: variance of the scaled column j;  h_k: curvature of class k
//!   E sum_i f(z_i)·(e_i - p_i) = nu E[f(z)·z] / E[z·z]                 of rows that say nothing; z: the change of a row's scores, centred
//! ```
//! The first is the trace of the matrix that takes classes to the scores of a descent without noise, as if columns were uncorrelated: `response`
//! is how far it gets along a direction of that curvature, about `1 - e^(-curvature t)` with the time `t`. The second is Stein's identity for
//! scores that are normal: `f = z` is what Akaike's criterion takes off, and releases that ask another `f` of the same rows have that share of it.
//!
//! Sources: Stein 1981 (the identity); Akaike 1974; Ali, Kolter, Tibshirani 2019 (the flow); derived in `docs/methods/noisy-gd.md`, "Optimism".

use reticent_core::largest_place::largest_place;

use super::heavy_ball::Flow;
use super::public_rows::PublicScores;
use crate::released_marginals::ScaledColumns;
use crate::softmax::softmax;

/// Degrees of freedom of a descent on so many rows: one curvature a score.
///
/// Columns that rows list count for nothing: how much each of them varies is not released, and where few of them decide, as if all varied alike,
/// chance would explain everything. With more columns than rows, so many of them at a time are one direction of as many times the variance.
pub(super) fn degrees_of_freedom(curvatures: &[f64], scaled: &ScaledColumns, flow: Flow, rows: f64) -> f64 {
    let deviations = scaled.released_deviations();
    let together = (deviations.len() as f64 / rows).max(1.0);
    let of_score = |curvature: &f64| -> f64 {
        let along = |deviation: &f64| curvature * deviation.powi(2) * together / scaled.row_norm;
        flow.response(&deviations.iter().map(along).collect::<Vec<_>>()).iter().sum::<f64>() / together
    };
    curvatures.iter().map(of_score).sum()
}

/// `E[w(z_h) z_h] / E[z·z]` over public rows, with `z` what the columns change, centred over the classes, and `h` the class that rises most with
/// the change of the intercepts, one a class: what a count of hits, each weighted by `weigh` of its rise, has of the degrees of
/// freedom. 0 for no change.
pub(super) fn share_of_hits(scores: &PublicScores, intercepts: &[f64], weigh: impl Fn(f64) -> f64) -> f64 {
    let (mut of_hits, mut square) = (0.0, 0.0);
    for (_, rises) in scores {
        let mean = rises.iter().sum::<f64>() / rises.len() as f64;
        let rise = rises[raised(rises, intercepts)] - mean;
        of_hits += weigh(rise) * rise;
        square += rises.iter().map(|rise| (rise - mean).powi(2)).sum::<f64>();
    }
    if square > 0.0 { of_hits / square } else { 0.0 }
}

/// Mean probability by the first model, over public rows, of the class that rises most: as [`share_of_hits`] has it.
pub(super) fn expected_hits(scores: &PublicScores, intercepts: &[f64]) -> f64 {
    let of_row = |(before, rises): &(Vec<f64>, Vec<f64>)| softmax(before)[raised(rises, intercepts)];
    scores.iter().map(of_row).sum::<f64>() / scores.len() as f64
}

/// The class that rises most with columns and intercepts together.
fn raised(rises: &[f64], intercepts: &[f64]) -> usize {
    let all: Vec<f64> = rises.iter().zip(intercepts).map(|(rise, intercept)| rise + intercept).collect();
    largest_place(&all)
}

#[cfg(test)]
mod tests {
    use reticent_core::coding::Coding;
    use reticent_core::schema::Schema;
    use reticent_math::fixed_sequence::FixedSequence;

    use super::super::heavy_ball::Stride;
    use super::*;
    use crate::released_marginals::{AS_RELEASED, ReleasedMarginals};

    /// Steps of .01 with momentum .9: time is a tenth of the passes.
    fn flow(passes: u32, ridge: f64) -> Flow {
        Flow { stride: Stride { step: 0.01, momentum: 0.9 }, passes, ridge }
    }

    /// Two numbers that vary by as much as they may, and a list, at a signal of 1,000.
    fn scaled(listed: bool) -> ScaledColumns {
        let list = if listed { "[list.w]\nfeatures = 50\n" } else { "" };
        let schema = "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nclasses = [1, 2]\n\
                      [features]\na = { bounds = [0, 1] }\nb = { bounds = [0, 1] }\n";
        let coding = Coding::of(&Schema::from_text(&format!("{schema}{list}")).expect("legal"));
        ReleasedMarginals::of(&coding, &[0.0, 0.5, 0.0, 0.5], 1.0, 0.0, None).scaled(&coding, 1000.0, AS_RELEASED)
    }

    #[test]
    fn a_long_descent_has_a_degree_a_column_and_a_short_one_in_proportion_to_the_trace() {
        let scaled = scaled(false);
        let found = |curvatures: &[f64], flow: Flow, rows: f64| degrees_of_freedom(curvatures, &scaled, flow, rows);
        let long = found(&[0.5], flow(100_000, 0.0), 100.0);
        assert!((long - 2.0).abs() < 1e-6, "the intercept has none: {long}");
        let short = found(&[1e-6], flow(100, 0.0), 100.0);
        assert!((found(&[1e-6, 2e-6], flow(100, 0.0), 100.0) / short - 3.0).abs() < 1e-3, "{short}");
        let one_row = found(&[0.5], flow(100_000, 0.0), 1.0);
        assert!((one_row - 1.0).abs() < 1e-6, "no more than rows: {one_row}");
        assert!((found(&[1e-6], flow(100, 0.0), 1.0) / short - 1.0).abs() < 1e-3, "the trace is the same");
        let ridge = found(&[0.5], flow(100_000, 0.5), 100.0);
        assert!(ridge < 0.5, "a penalty takes them away: {ridge}");
    }

    #[test]
    fn hits_have_the_share_of_the_class_that_rises() {
        // Two classes, changes 2 and -1: halves of (1, 1/2), squares 2 · (1, 1/4).
        let scores: PublicScores = vec![(vec![0.0; 2], vec![0.0, 2.0]), (vec![0.0; 2], vec![0.0, -1.0])];
        assert!((share_of_hits(&scores, &[0.0; 2], |_| 1.0) - 1.5 / 2.5).abs() < 1e-12);
        assert!((share_of_hits(&scores, &[0.0; 2], |rise| rise.min(0.5)) - 0.75 / 2.5).abs() < 1e-12);
        // An intercept that rises by 2 makes the second class rise in both rows, in one of them against its columns.
        assert!((share_of_hits(&scores, &[0.0, 2.0], |_| 1.0) - 0.5 / 2.5).abs() < 1e-12);
        assert!(share_of_hits(&vec![(vec![0.0; 2], vec![0.0; 2])], &[0.0; 2], |_| 1.0).abs() < 1e-12);
    }

    /// A descent of two columns to its end, on rows that say nothing: what its own rows have of `sum z (y - p)` is two degrees of freedom
    /// on average, by least squares in the metric of the rows.
    #[test]
    fn rows_that_say_nothing_have_as_much_as_there_are_degrees_of_freedom() {
        let mut uniform = FixedSequence::new(5);
        let (worlds, rows) = (400, 60);
        let mut gained = 0.0;
        for _ in 0..worlds {
            // Uncorrelated columns of +-1, and labels of +-1/2 by chance: change = (Xᵀ X / 4)^-1 Xᵀ e with Xᵀ X = rows.
            let columns = |place: usize| [[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]][place % 4];
            let errors: Vec<f64> = (0..rows).map(|_| 0.5f64.copysign(uniform.next_uniform())).collect();
            let score: [f64; 2] =
                [0, 1].map(|at| errors.iter().enumerate().map(|(row, error)| columns(row)[at] * error).sum());
            gained += score.iter().map(|score| score * score / (f64::from(rows) / 4.0)).sum::<f64>();
        }
        let freedom = degrees_of_freedom(&[0.5], &scaled(false), flow(100_000, 0.0), f64::from(rows));
        // A chi-squared of two degrees has variance 4: five errors of the mean.
        let mean = gained / f64::from(worlds);
        assert!((mean - freedom).abs() < 5.0 * (4.0 / f64::from(worlds)).sqrt(), "{mean} {freedom}");
    }
}
