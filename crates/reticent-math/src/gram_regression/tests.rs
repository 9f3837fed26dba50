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
    NoisyGram { upper: &UPPER, cross: &CROSS, square: SQUARE, rows: None, noise, prior_mean: None }
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
    close(&quiet.weights, &[0.5496057688521677, -0.470664472967255, 0.3578149279231086, 0.7395362231345496]);
    close(&[quiet.residual_variance], &[0.04685974567932125]);
    let noisy = posterior(&release(NOISY)).expect("a release");
    close(&noisy.weights, &[0.5401291242162279, -0.3580984703579834, 0.1391761235720876, 0.1485446145755441]);
    close(
        &noisy.covariance[..8],
        &[
            0.007757554154711473,
            4.039934007665673e-05,
            -0.000491425341598093,
            0.003402507945589859,
            4.039934007668605e-05,
            0.01436894206109147,
            -0.002411083897171407,
            -0.01283807341312807,
        ],
    );
    close(&[noisy.prior_variance, noisy.residual_variance], &[0.172_554_676_243_272_53, 0.011_340_646_487_786_595]);
}

#[test]
fn the_prior_mean_agrees_with_the_script() {
    let mean = [0.4, -0.3, 0.0, 0.1];
    let centred = NoisyGram { rows: Some(280.0), prior_mean: Some(&mean), ..release(NOISY) };
    let centred = posterior(&centred).expect("a release");
    close(&centred.weights, &[0.4925108255457596, -0.3472254509221082, 0.03463075367987566, 0.1346682087625545]);
    close(
        &[centred.prior_variance, centred.residual_variance],
        &[0.023_969_627_216_486_548, 0.008_320_861_100_036_932],
    );
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
