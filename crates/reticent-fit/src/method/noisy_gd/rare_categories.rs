//! Coefficients of categories that hardly any row has: drawn to the mean of their feature as far as they are noise.
//!
//! A column that is nearly always 0 has next to no curvature: nothing pulls its weight back, and noise moves it for as long as the descent lasts. No
//! fitted row notices, but a new row with that category would. So of what a descent has changed of the score of category `j`, `b_j`, is kept
//!
//! ```text
//!   b_j <- m + kept_j (b_j - m),     m = sum_k p_k b_k,     kept_j = mean over shares q of  min(1, (1 + max(r(1/K), 10)) / (1 + r(q)))
//!   r(q) = N(q) / G(q),     N(q) = (a_j t / (n mu))² (1 - e^{-2x}) / (2x),     G(q) = (s (1 - e^{-x}))²,     x = h q a_j² t / A
//! ```
//! with the time `t`, the curvature `h` of the loss, the scale `a_j` of the column, the row norm `A`, the `K` categories of the feature and the size
//! `s` of a usual effect: `N` is the variance of the noise of `b_j` and `G` that of its signal, both of a descent along one direction, for a category
//! that a share `q` of the rows has. That share is known by the released `p_j` and its noise `e`: the mean is over what it may be, by how well each
//! share explains `b_j - m`, whose variance is `G + N`, and by the rows that it is about, `q + e/10`: of a category that nobody has no row is predicted
//! worse, but somebody may read it. What a category of usual share has of doubt, and noise up to three times a usual effect, the rest of
//! the method sees to. The intercept makes up for the centre of the column: no other row's score moves.
//!
//! It reads released values alone, and costs nothing. Source: the shrinkage of a normal mean (ridge regression along one direction; Ali, Kolter,
//! Tibshirani 2019 for the flow); measured in `docs/methods/noisy-gd.md`, "Rare categories".

use crate::released_marginals::ScaledColumns;
use crate::softmax::softmax;

/// Standard deviations of its noise that a released share may be off, and the density of each.
const ERRORS: [(f64, f64); 5] = [(-2.0, 0.054), (-1.0, 0.242), (0.0, 0.399), (1.0, 0.242), (2.0, 0.054)];

/// Share of the rows, in standard deviations of its noise, that a category counts for even if nobody has it.
const READ_ALONE: f64 = 0.1;

/// Variance of noise over that of signal up to which a coefficient stays. With less than all of it, common categories of tables with little signal
/// lost much of what they say.
const DOUBT_ALLOWED: f64 = 10.0;

/// The descent that changed the weights of one score.
#[derive(Clone, Copy)]
pub(super) struct Descent {
    /// `t`.
    pub(super) time: f64,
    /// `n mu` of all gradients.
    pub(super) signal: f64,
    /// `h`.
    pub(super) curvature: f64,
    /// `s`: standard deviation of a usual effect on the score.
    pub(super) effect: f64,
}

/// Draws what a descent from `start` has changed of one score's weights, the intercept's first.
pub(super) fn draw_to_their_feature(weights: &mut [f64], start: &[f64], scaled: &ScaledColumns, descent: Descent) {
    for block in &scaled.categories {
        let columns = block.first..block.first + block.shares.len();
        let changed = |column: usize| (weights[column] - start[column]) * scaled.scale[column];
        let scores: Vec<f64> = columns.clone().map(changed).collect();
        let mean: f64 = block.shares.iter().zip(&scores).map(|(share, score)| share * score).sum();
        let usual = 1.0 / block.shares.len() as f64;
        for ((column, score), share) in columns.zip(scores).zip(&block.shares) {
            let along = |share: f64| descent.along(scaled.scale[column], share, scaled.row_norm);
            let allowed = along(usual).spread().max(1.0 + DOUBT_ALLOWED);
            // By logarithms: where classes can be separated an effect is so much larger than a usual one that the densities themselves would all be 0.
            let possible = ERRORS.map(|(errors, density)| {
                let of_rows = (share + errors * block.noise).max(0.0);
                let possible = along(of_rows);
                let rows = (of_rows + READ_ALONE * block.noise).max(f64::MIN_POSITIVE);
                (possible.log_density(score - mean) + (density * rows).ln(), (allowed / possible.spread()).min(1.0))
            });
            let likely = softmax(&possible.map(|(log, _)| log));
            let kept: f64 = likely.iter().zip(possible).map(|(likely, (_, kept))| likely * kept).sum();
            let drawn = (1.0 - kept) * (mean - score);
            weights[column] += drawn / scaled.scale[column];
            weights[0] += drawn * scaled.centre[column];
        }
    }
}

/// What a descent along one direction has found: variances of signal and of noise.
#[derive(Clone, Copy)]
struct Along {
    signal: f64,
    noise: f64,
}

impl Descent {
    /// Along a column of this scale that this share of the rows has.
    fn along(self, scale: f64, share: f64, row_norm: f64) -> Along {
        let Self { time, signal, curvature, effect } = self;
        let turns = curvature * share * scale * scale * time / row_norm;
        // The ratio is 1 where the flow has hardly turned.
        let slowed = if turns > 1e-9 { -(-2.0 * turns).exp_m1() / (2.0 * turns) } else { 1.0 };
        Along { signal: (effect * (-turns).exp_m1()).powi(2), noise: (scale * time / signal).powi(2) * slowed }
    }
}

impl Along {
    /// `1 + r`; infinite where there is no signal.
    fn spread(self) -> f64 {
        1.0 + self.noise / self.signal.max(f64::MIN_POSITIVE)
    }

    /// Logarithm of the density of a value, up to a constant.
    fn log_density(self, value: f64) -> f64 {
        let variance = (self.signal + self.noise).max(f64::MIN_POSITIVE);
        -0.5 * (value * value / variance + variance.ln())
    }
}

#[cfg(test)]
mod tests {
    use reticent_core::coding::Coding;
    use reticent_core::schema::Schema;

    use super::*;
    use crate::released_marginals::{AS_RELEASED, ReleasedMarginals};

    const DESCENT: Descent = Descent { time: 1000.0, signal: 2000.0, curvature: 0.2, effect: 1.0 };

    /// A feature of three categories and `other` beside a number: 600, 390, 10 and 0 of 1000 rows, and what their counts have of noise.
    fn scaled(noise: f64) -> ScaledColumns {
        let schema = "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nclasses = [1, 2]\n\
                      [features]\na = { bounds = [0, 1] }\nk = { categories = [\"p\", \"q\", \"r\"] }\n";
        let coding = Coding::of(&Schema::from_text(schema).expect("legal"));
        let sums = [0.0, 0.0, 0.0, 600.0, 390.0, 10.0];
        assert_eq!(coding.columns().len(), 6, "the intercept, a number, four categories");
        ReleasedMarginals::of(&coding, &sums, 1000.0, noise, None).scaled(&coding, 2000.0, AS_RELEASED)
    }

    /// The score of a row with the number at its centre and this category.
    fn score(weights: &[f64], scaled: &ScaledColumns, category: usize) -> f64 {
        let value = |column: usize| f64::from(column == 2 + category) - scaled.centre[column];
        weights[0] + (2..6).map(|column| weights[column] * scaled.scale[column] * value(column)).sum::<f64>()
    }

    #[test]
    fn a_category_that_nobody_has_gets_the_mean_of_its_feature_and_no_other_score_moves() {
        let scaled = scaled(1e-3);
        let before = [0.3, 5.0, -9.0, 0.2, -0.1, 0.7];
        let mut after = before;
        draw_to_their_feature(&mut after, &[0.0; 6], &scaled, DESCENT);
        assert!((after[1] - before[1]).abs() < 1e-12, "a number is no category");
        // `other` comes first.
        let mean: f64 =
            (0..4).map(|category| scaled.categories[0].shares[category] * score(&after, &scaled, category)).sum();
        assert!(
            score(&before, &scaled, 0) - mean < -10.0 && (score(&after, &scaled, 0) - mean).abs() < 0.02,
            "{after:?}"
        );
        for category in [1, 2] {
            let moved = score(&after, &scaled, category) - score(&before, &scaled, category);
            assert!(moved.abs() < 0.01, "{category}: {moved}");
        }
        let kept = (score(&after, &scaled, 3) - mean) / (score(&before, &scaled, 3) - mean);
        assert!(kept > 0.9, "one row in a hundred is believed: {kept}");
    }

    /// Whether nobody has it or one row in 250 is not known: what such rows would have is kept for their sake, what they would not is noise.
    #[test]
    fn a_category_in_doubt_counts_by_the_rows_that_it_may_have() {
        let scaled = scaled(2e-3);
        let kept = |change: f64| {
            let before = [0.0, 0.0, change, 0.0, 0.0, 0.0];
            let mut after = before;
            draw_to_their_feature(&mut after, &[0.0; 6], &scaled, DESCENT);
            let of_mean = |weights: &[f64]| score(weights, &scaled, 0) - score(weights, &scaled, 1);
            of_mean(&after) / of_mean(&before)
        };
        assert!(kept(0.5) > 0.6 && kept(20.0) < 0.001, "{} {}", kept(0.5), kept(20.0));
    }

    #[test]
    fn without_noise_all_is_kept_that_rows_bear_out() {
        let before = [0.3, 5.0, -9.0, 0.2, -0.1, 0.7];
        let mut after = before;
        draw_to_their_feature(&mut after, &[0.0; 6], &scaled(1e-9), Descent { signal: 1e9, ..DESCENT });
        let moved: Vec<f64> = (1..4)
            .map(|category| score(&after, &scaled(1e-9), category) - score(&before, &scaled(1e-9), category))
            .collect();
        assert!(moved.iter().all(|moved| moved.abs() < 1e-3), "{moved:?}");
    }

    /// Effects of hundreds, as of a category that decides the class, have densities of 0 by any share.
    #[test]
    fn an_effect_of_any_size_is_kept_that_rows_bear_out() {
        let scaled = scaled(1e-4);
        let before = [0.3, 5.0, 0.0, 2e3, -3e3, 0.0];
        let mut after = before;
        draw_to_their_feature(&mut after, &[0.0; 6], &scaled, DESCENT);
        for category in [1, 2] {
            let [was, is] = [&before, &after].map(|weights| score(weights, &scaled, category));
            assert!(was.abs() > 1e3 && (is / was - 1.0).abs() < 1e-3, "{category}: {was} {is}");
        }
    }

    /// By hand: at x = 1 `(1 - e^{-2})/2 = .432332` of the noise and `(1 - 1/e)² = .399576` of the signal; far out noise falls as 1/(2x).
    #[test]
    fn noise_and_signal_are_those_of_a_flow_along_one_direction() {
        let found = |share: f64| DESCENT.along(2.0, share, 1.0);
        let at_one = found(1.0 / (0.2 * 4.0 * 1000.0));
        assert!((at_one.noise - 0.432_332).abs() < 1e-6 && (at_one.signal - 0.399_576).abs() < 1e-6);
        let far = found(0.5);
        assert!((far.noise - 1.0 / 800.0).abs() < 1e-9 && (far.signal - 1.0).abs() < 1e-9);
        let none = found(0.0);
        assert!((none.noise - 1.0).abs() < 1e-12 && none.spread() > 1e100);
    }
}
