//! Spectrum of a noisy symmetric matrix `G + E`: what its eigenvalues tell of `G`, and what is not known of it.
//!
//! `E` is Gaussian, of standard deviation `s` off the diagonal and `sqrt(2) s` on it. Source: Bun, Allez, Bouchaud, Potters 2016, "Rotational
//! invariant estimator for general noisy matrices"; rows G3, G8 and G9 of `docs/formulas.md`.

/// Estimates `v_k' G v_k` for the eigenvectors `v_k` of a noisy symmetric matrix `G + E`, from its eigenvalues in rising order.
///
/// ```text
///   xi_k = l_k - 2 d s² h_k,   h_k = 1/d sum_j (l_k - l_j) / ((l_k - l_j)² + s²)
/// ```
/// then made rising (isotonic regression), at least zero, and scaled to the given trace. `s` is the noise off the diagonal. Where all
/// is noise, every `xi_k` is `trace / d`; where nothing is, `xi = l`.
///
/// Source: Bun, Allez, Bouchaud, Potters 2016, additive noise: `xi = l - 2 sigma² h(l)`, here `sigma² = d s²`, with the
/// Hilbert transform smoothed over the width `s`.
#[must_use]
pub fn shrunken_spectrum(eigenvalues: &[f64], noise: f64, trace: f64) -> Vec<f64> {
    let width = noise * noise;
    let shrink = |own: f64| {
        let repelled = |other: &f64| {
            let distance = own - other;
            if distance.abs() > 0.0 { distance / (distance * distance + width) } else { 0.0 }
        };
        (own - 2.0 * width * eigenvalues.iter().map(repelled).sum::<f64>()).max(0.0)
    };
    let rising = isotonic(eigenvalues.iter().map(|own| shrink(*own)));
    let total: f64 = rising.iter().sum();
    if total > 0.0 {
        rising.into_iter().map(|value| value * trace / total).collect()
    } else {
        vec![trace / eigenvalues.len() as f64; eigenvalues.len()]
    }
}

/// What is not known of `V'GV`, for the eigenvectors `v_k` of a noisy symmetric matrix `G + E`.
///
/// ```text
///   variance of an entry:  s² max(f_k, f_l) off the diagonal,  2 s² g_k² / (2 s² + g_k²) on it
///   f_k = (1 - d s² |h_k + i p_k|² - 1/4) / (1 - 1/d - 1/4) in [0, 1],    p_k = 1/d sum_j s / ((l_k - l_j)² + s²)
/// ```
/// with `l`, `g` and `h` as in [`shrunken_spectrum`]. `V'(G + E)V` is diagonal: what `V'GV` has off the diagonal is minus what `V'EV` has.
/// In a well-known direction that is noise of the usual size (`f = 1`); where eigenvectors are those of the noise, `V'EV` is diagonal
/// itself (`f = 0`). What is not known of `g_k` is at most all of it.
///
/// Source: `E[||G v_k||² - (v_k'G v_k)²] = d s² (1 - d s² |h + i p|²)` from the overlaps of Bun, Allez, Bouchaud, Potters 2016; derived,
/// with the two corrections, in `docs/methods/gram.md`.
#[derive(Clone, Debug)]
pub struct UnknownEntries {
    /// `s²`.
    variance: f64,
    /// `f_k`.
    known: Vec<f64>,
    /// Directions in rising order of `f_k`.
    rising: Vec<usize>,
    /// Variance of an entry on the diagonal.
    own: Vec<f64>,
}

impl UnknownEntries {
    /// Of a matrix with these eigenvalues, the estimate of [`shrunken_spectrum`], and the noise off the diagonal.
    #[must_use]
    pub fn of(eigenvalues: &[f64], spectrum: &[f64], noise: f64) -> Self {
        /// What smoothing leaves of `1 - d s² |h + i p|²` under noise alone.
        const OF_NOISE: f64 = 0.25;
        let columns = eigenvalues.len() as f64;
        // A direction meets itself in p, which takes off 1/d.
        let whole = 1.0 - 1.0 / columns - OF_NOISE;
        let variance = noise * noise;
        let known = |own: &f64| {
            let (mut real, mut imaginary) = (0.0, 0.0);
            for other in eigenvalues {
                let distance = own - other;
                let weight = noise / (distance * distance + variance);
                real += weight * distance;
                imaginary += weight * noise;
            }
            let share = 1.0 - (real * real + imaginary * imaginary) / columns;
            if whole > 0.0 { ((share - OF_NOISE) / whole).clamp(0.0, 1.0) } else { 1.0 }
        };
        let known: Vec<f64> = eigenvalues.iter().map(known).collect();
        let mut rising: Vec<usize> = (0..known.len()).collect();
        rising.sort_by(|left, right| known[*left].total_cmp(&known[*right]));
        let own =
            spectrum.iter().map(|value| 2.0 * variance * value * value / (2.0 * variance + value * value)).collect();
        Self { variance, known, rising, own }
    }

    /// Variance of each entry on the diagonal.
    pub(crate) fn own(&self) -> &[f64] {
        &self.own
    }

    /// Adds up each row's variances times these squared sizes, one a direction: the variance of what is not known of `V'GV` times
    /// coefficients of such sizes.
    pub fn times(&self, squares: &[f64], products: &mut [f64]) {
        let Self { variance, known, rising, own } = self;
        // Of the directions that are known no better than this one, and what the better known ones add.
        let (mut worse, mut better) = (0.0, rising.iter().map(|at| known[*at] * squares[*at]).sum::<f64>());
        for at in rising {
            better -= known[*at] * squares[*at];
            products[*at] = variance * (known[*at] * worse + better) + own[*at] * squares[*at];
            worse += squares[*at];
        }
    }
}

/// Posterior mean of a trace `T >= 1` of which `noisy = T + N(0, deviation²)` is known, with a prior that knows no scale (`1/T`).
///
/// Twenty deviations above zero it is what was released. Below, most of what it may be is much smaller than the noise: a release in which even the
/// number of rows drowns says nothing about coefficients.
pub(crate) fn known_trace(noisy: f64, deviation: f64) -> f64 {
    /// Points a factor of e: the integrand is smooth in `ln T`, except where noise is small, and then the answer is the release.
    const POINTS: f64 = 50.0;
    if noisy > 20.0 * deviation {
        return noisy.max(1.0);
    }
    let last = (noisy.max(0.0) + 10.0 * deviation).max(1.0).ln();
    let steps = (last * POINTS).ceil();
    let weigh = |step: f64| {
        let trace = (last * step / steps.max(1.0)).exp();
        (trace, (-0.5 * ((trace - noisy) / deviation).powi(2)).exp())
    };
    let (mut weight, mut sum) = (0.0, 0.0);
    for step in 0..=steps as u64 {
        let (trace, likelihood) = weigh(step as f64);
        // Half of the first point, by the trapezium rule; at the last one nothing is left.
        let likelihood = if step == 0 { likelihood / 2.0 } else { likelihood };
        weight += likelihood;
        sum += likelihood * trace;
    }
    if weight > 0.0 { sum / weight } else { 1.0 }
}

/// The nearest rising sequence in least squares: pools adjacent violators.
fn isotonic(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for value in values {
        let mut pool = (value, 1);
        while let Some(last) = pools.last().copied().filter(|last| last.0 > pool.0) {
            pools.pop();
            let members = last.1 + pool.1;
            pool = ((last.0 * last.1 as f64 + pool.0 * pool.1 as f64) / members as f64, members);
        }
        pools.push(pool);
    }
    pools.into_iter().flat_map(|(value, members)| std::iter::repeat_n(value, members)).collect()
}

#[cfg(test)]
mod tests {
    use faer::{Mat, Side};

    use super::*;
    use crate::fixed_sequence::FixedSequence;

    #[track_caller]
    fn close(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-9 * (1.0 + expected.abs()), "{found} {expected}");
        }
    }

    fn rows_of(unknown: &UnknownEntries, squares: &[f64]) -> Vec<f64> {
        let mut rows = vec![0.0; squares.len()];
        unknown.times(squares, &mut rows);
        rows
    }

    #[test]
    fn the_spectrum_keeps_what_is_clear_and_levels_what_is_not() {
        let clear = shrunken_spectrum(&[1.0, 10.0, 100.0], 1e-6, 111.0);
        close(&clear, &[1.0, 10.0, 100.0]);
        let noise = shrunken_spectrum(&[-30.0, -1.0, 4.0, 35.0], 20.0, 8.0);
        assert!(noise.iter().all(|value| *value >= 0.0) && noise.is_sorted());
        assert!((noise.iter().sum::<f64>() - 8.0).abs() < 1e-9);
        assert_eq!(shrunken_spectrum(&[-3.0, -2.0], 1.0, 4.0), [2.0, 2.0]);
    }

    /// Mean over noisy matrices of what [`UnknownEntries`] says and of what is so, both off the diagonal and in units of `(d - 1) s²`, and
    /// averaged over all directions but the last; then that of the last.
    fn off_diagonal(spectrum: &[f64], noise: f64) -> [(f64, f64); 2] {
        const MATRICES: u64 = 50;
        let d = spectrum.len();
        let unit = noise * noise * (d - 1) as f64 * MATRICES as f64;
        let mut sequence = FixedSequence::new(d as u64);
        let mut sums = [(0.0, 0.0); 2];
        for _ in 0..MATRICES {
            let half = Mat::from_fn(d, d, |_, _| noise * (0..12).map(|_| sequence.next_uniform()).sum::<f64>() / 2.0);
            let noisy = Mat::from_fn(d, d, |row, column| {
                let own = if row == column { spectrum[row] } else { 0.0 };
                own + (half[(row, column)] + half[(column, row)]) / 2f64.sqrt()
            });
            let eigen = noisy.self_adjoint_eigen(Side::Lower).expect("finite");
            let exact = Mat::from_fn(d, d, |row, column| if row == column { spectrum[row] } else { 0.0 });
            let values: Vec<f64> = eigen.S().column_vector().iter().copied().collect();
            let rotated = eigen.U().transpose() * &exact * eigen.U();
            // A spectrum of zeros leaves the part of the diagonal out.
            let said = rows_of(&UnknownEntries::of(&values, &vec![0.0; d], noise), &vec![1.0; d]);
            for k in 0..d {
                let so: f64 = (0..d).filter(|l| *l != k).map(|l| rotated[(k, l)].powi(2)).sum();
                let (place, share) = if k + 1 == d { (1, 1.0) } else { (0, 1.0 / (d - 1) as f64) };
                sums[place].0 += share * said[k] / unit;
                sums[place].1 += share * so / unit;
            }
        }
        sums
    }

    #[test]
    fn what_is_not_known_of_a_matrix_is_about_what_a_simulation_finds() {
        let rising = |to: f64, d: usize| (0..d).map(|k| to * k as f64 / (d - 1) as f64).collect::<Vec<_>>();
        let one_clear = |d: usize| (0..d).map(|k| if k + 1 == d { 1000.0 } else { 1.0 }).collect::<Vec<_>>();
        for (spectrum, noise) in [
            (vec![1.0; 60], 1.0),
            (vec![0.0; 30], 3.0),
            (one_clear(60), 1.0),
            (rising(600.0, 60), 0.5),
            (rising(40.0, 60), 0.5),
            (rising(40.0, 60), 2.0),
            (rising(100.0, 10), 1.0),
            (rising(1000.0, 2), 1.0),
        ] {
            for (said, so) in off_diagonal(&spectrum, noise) {
                assert!(
                    (said - so).abs() < 0.25,
                    "{} columns, last {:?}, noise {noise}: {said} {so}",
                    spectrum.len(),
                    spectrum.last()
                );
            }
        }
    }

    #[test]
    fn a_trace_is_believed_as_far_as_it_stands_out_of_its_noise() {
        close(&[known_trace(5000.0, 10.0), known_trace(-3.0, 0.01)], &[5000.0, 1.0]);
        // By quadrature: the integral of e^(-(T - t)²/2s²) over that of the same divided by T, from 1 on.
        assert!((known_trace(300.0, 30.0) - 296.94).abs() < 0.01, "{}", known_trace(300.0, 30.0));
        assert!((known_trace(0.0, 1000.0) - 179.78).abs() < 0.02, "{}", known_trace(0.0, 1000.0));
        assert!(known_trace(-9e9, 1000.0) >= 1.0);
    }

    #[test]
    fn products_with_squares_are_those_of_the_matrix_of_variances() {
        let unknown = UnknownEntries {
            variance: 2.0,
            known: vec![0.5, 0.1, 0.9, 0.5],
            rising: vec![1, 0, 3, 2],
            own: vec![1.0, 2.0, 3.0, 4.0],
        };
        let squares = [1.0, 10.0, 100.0, 1000.0];
        let entry =
            |k: usize, l: usize| if k == l { unknown.own[k] } else { 2.0 * unknown.known[k].max(unknown.known[l]) };
        let expected: Vec<f64> = (0..4).map(|k| (0..4).map(|l| entry(k, l) * squares[l]).sum()).collect();
        close(&rows_of(&unknown, &squares), &expected);
    }

    #[test]
    fn of_one_column_only_the_diagonal_is_not_known() {
        close(&rows_of(&UnknownEntries::of(&[7.0], &[1e9], 3.0), &[1.0]), &[18.0]);
        close(&rows_of(&UnknownEntries::of(&[7.0], &[1e-9], 3.0), &[1.0]), &[0.0]);
    }

    #[test]
    fn pooling_gives_the_nearest_rising_sequence() {
        close(&isotonic([1.0, 3.0, 2.0, 2.0, 5.0].into_iter()), &[1.0, 7.0 / 3.0, 7.0 / 3.0, 7.0 / 3.0, 5.0]);
        close(&isotonic([3.0, 2.0, 1.0].into_iter()), &[2.0, 2.0, 2.0]);
    }
}
