//! Golden values and properties of the posterior.

use super::*;

// From testdata/golden/gram_regression.py.
const UPPER: [f64; 10] = [
    123.438989516982,
    -3.510658238574101,
    0.6884604104654812,
    -4.157425329375688,
    88.01073510811493,
    1.558918656537031,
    10.70389554016078,
    19.76924719984499,
    0.8961304035551281,
    15.47632825752644,
];
const CROSS: [f64; 4] = [66.8096179975917, -35.00154205544618, 7.473471286636048, 4.635099311261444];
const SQUARE: f64 = 49.98564699370893;
const QUIET: GramNoise = GramNoise { matrix: 0.05, cross: 0.05, square: 0.05 };
const NOISY: GramNoise = GramNoise { matrix: 9.0, cross: 6.0, square: 20.0 };

fn release(noise: GramNoise) -> NoisyGram<'static> {
    NoisyGram {
        upper: &UPPER,
        cross: &CROSS,
        square: SQUARE,
        rows: None,
        noise,
        prior_mean: None,
        unit: 1.0,
        free_intercept: false,
    }
}

#[track_caller]
fn close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-9 * (1.0 + expected.abs()), "{found} {expected}");
    }
}

#[test]
fn the_posterior_agrees_with_the_script() {
    let quiet = posterior(&release(QUIET)).expect("a release");
    close(&quiet.weights, &[0.5499012371188506, -0.47127457552722746, 0.35862306596509974, 0.7423398723546502]);
    close(&[quiet.residual_variance], &[0.04268979922278474]);
    let noisy = posterior(&release(NOISY)).expect("a release");
    close(&noisy.weights, &[0.5500309975012555, -0.3711764173848717, 0.16956746155435184, 0.19265060884007548]);
    close(
        &noisy.covariance[..8],
        &[
            0.008628092104427018,
            0.00011120472703626024,
            -0.00048158064702198206,
            0.0036415631686004635,
            0.00011120472703625683,
            0.016163738033454816,
            -0.002614513988829868,
            -0.013568527457122512,
        ],
    );
    close(&[noisy.prior_variance, noisy.residual_variance], &[0.21422844060663876, 0.011159498032376347]);
}

#[test]
fn the_prior_mean_agrees_with_the_script() {
    let mean = [0.4, -0.3, 0.0, 0.1];
    let centred = NoisyGram { rows: Some(280.0), prior_mean: Some(&mean), ..release(NOISY) };
    let centred = posterior(&centred).expect("a release");
    close(&centred.weights, &[0.5056622989797208, -0.3571964801083787, 0.051146524825704136, 0.1539204530178902]);
    close(&[centred.prior_variance, centred.residual_variance], &[0.03906198430406417, 0.00805475658092208]);
}

#[test]
fn an_intercept_of_its_own_and_a_unit_agree_with_the_script() {
    let own = posterior(&NoisyGram { unit: 2.0, free_intercept: true, ..release(NOISY) }).expect("a release");
    close(&own.weights, &[0.5741831330322531, -0.3626312262511403, 0.14946052435746715, 0.16210217515610453]);
    close(
        &own.covariance[..4],
        &[0.007981051693093719, 0.00021305101677322044, -0.0006844582378114142, 0.0027356157768141176],
    );
    close(&[own.prior_variance, own.residual_variance], &[0.18426711126378098, 0.01042241969718044]);
}

#[test]
fn without_signal_the_prior_mean_stays() {
    let noise = GramNoise { matrix: 1e6, cross: 1e6, square: 1e6 };
    let mean = [0.4, -0.3, 0.0, 0.1];
    let lost = posterior(&NoisyGram { noise, prior_mean: Some(&mean), ..release(noise) }).expect("a release");
    for (weight, mean) in lost.weights.iter().zip(mean) {
        assert!((weight - mean).abs() < 1e-3, "{:?}", lost.weights);
    }
}

#[test]
fn without_noise_it_is_least_squares() {
    let noise = GramNoise { matrix: 1e-9, cross: 1e-9, square: 1e-9 };
    let exact = posterior(&release(noise)).expect("a release");
    let matrix = symmetric(&UPPER, 4);
    let weights = Mat::from_fn(4, 1, |k, _| exact.weights[k]);
    let residual = &matrix * &weights - Mat::from_fn(4, 1, |k, _| CROSS[k]);
    // What is left is the pull of the prior, some sigma²/tau² of a weight.
    assert!(residual.norm_max() < 0.2, "{residual:?}");
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

/// Mean over noisy matrices of what [`unknown_rows`] says and of what is so, both off the diagonal and in units of `(d - 1) s²`, and
/// averaged over all directions but the last; then that of the last.
fn off_diagonal(spectrum: &[f64], noise: f64) -> [(f64, f64); 2] {
    const MATRICES: u64 = 50;
    let d = spectrum.len();
    let unit = noise * noise * (d - 1) as f64 * MATRICES as f64;
    let mut uniform = fixed_uniform(d);
    let mut sums = [(0.0, 0.0); 2];
    for _ in 0..MATRICES {
        let half = Mat::from_fn(d, d, |_, _| noise * (0..12).map(|_| uniform()).sum::<f64>() / 2.0);
        let noisy = Mat::from_fn(d, d, |row, column| {
            let own = if row == column { spectrum[row] } else { 0.0 };
            own + (half[(row, column)] + half[(column, row)]) / 2f64.sqrt()
        });
        let eigen = noisy.self_adjoint_eigen(Side::Lower).expect("finite");
        let exact = Mat::from_fn(d, d, |row, column| if row == column { spectrum[row] } else { 0.0 });
        let rotated = eigen.U().transpose() * &exact * eigen.U();
        // A spectrum of zeros leaves the part of the diagonal out.
        let said = unknown_rows(&values(&eigen), &vec![0.0; d], noise);
        for k in 0..d {
            let so: f64 = (0..d).filter(|l| *l != k).map(|l| rotated[(k, l)].powi(2)).sum();
            let (place, share) = if k + 1 == d { (1, 1.0) } else { (0, 1.0 / (d - 1) as f64) };
            sums[place].0 += share * said[k] / unit;
            sums[place].1 += share * so / unit;
        }
    }
    sums
}

/// Numbers in [-1, 1), always the same.
fn fixed_uniform(seed: usize) -> impl FnMut() -> f64 {
    let mut sequence = crate::fixed_sequence::FixedSequence::new(seed as u64);
    move || sequence.next_uniform()
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
    assert!((known_trace(300.0, 30.0) - 296.94).abs() < 0.1, "{}", known_trace(300.0, 30.0));
    assert!((known_trace(0.0, 1000.0) - 179.74).abs() < 1.0, "{}", known_trace(0.0, 1000.0));
    assert!(known_trace(-9e9, 1000.0) >= 1.0);
}

#[test]
fn of_one_column_only_the_diagonal_is_not_known() {
    close(&unknown_rows(&[7.0], &[1e9], 3.0), &[18.0]);
    close(&unknown_rows(&[7.0], &[1e-9], 3.0), &[0.0]);
}

#[test]
fn pooling_gives_the_nearest_rising_sequence() {
    close(&isotonic([1.0, 3.0, 2.0, 2.0, 5.0].into_iter()), &[1.0, 7.0 / 3.0, 7.0 / 3.0, 7.0 / 3.0, 5.0]);
    close(&isotonic([3.0, 2.0, 1.0].into_iter()), &[2.0, 2.0, 2.0]);
}

#[test]
fn a_covariance_is_symmetric_and_has_positive_diagonal() {
    for noise in [QUIET, NOISY] {
        let found = posterior(&release(noise)).expect("a release");
        for j in 0..4 {
            assert!(found.covariance[j * 5] > 0.0);
            for l in 0..4 {
                assert!((found.covariance[j * 4 + l] - found.covariance[l * 4 + j]).abs() < 1e-12);
            }
        }
    }
}

#[test]
fn what_is_not_a_release_is_refused() {
    let short = NoisyGram { upper: &UPPER[..9], ..release(QUIET) };
    assert_eq!(posterior(&short), Err(GramError::Length { columns: 4, expected: 10, found: 9 }));
    let silent = GramNoise { matrix: 0.0, ..QUIET };
    assert!(matches!(posterior(&release(silent)), Err(GramError::Value(_))));
    let endless = NoisyGram { square: f64::INFINITY, ..release(QUIET) };
    assert!(matches!(posterior(&endless), Err(GramError::Value(_))));
}
