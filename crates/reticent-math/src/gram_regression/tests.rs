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
        target_mean: None,
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
    close(&quiet.weights, &[0.5497448984890245, -0.47094780480272264, 0.35819716664250556, 0.7408209069122479]);
    close(&[quiet.residual_variance], &[0.0473286452728227]);
    let noisy = posterior(&release(NOISY)).expect("a release");
    close(&noisy.weights, &[0.5429958673087866, -0.3706149074323548, 0.17403394863376248, 0.19648402294137032]);
    close(
        &noisy.covariance[..8],
        &[
            0.009208044357152551,
            -0.0005830035589450524,
            0.00041474493177737014,
            0.00458998136818757,
            -0.0005830035589450518,
            0.014514847739730162,
            -0.003518412762116122,
            -0.014452948435557063,
        ],
    );
    close(&[noisy.prior_variance, noisy.residual_variance], &[0.23539360877736076, 0.01151451491372991]);
}

#[test]
fn the_prior_mean_agrees_with_the_script() {
    let mean = [0.4, -0.3, 0.0, 0.1];
    let centred = NoisyGram { rows: Some(280.0), prior_mean: Some(&mean), ..release(NOISY) };
    let centred = posterior(&centred).expect("a release");
    close(&centred.weights, &[0.4810133467158172, -0.34038716110721556, 0.028463708740741937, 0.12810771957101877]);
    close(&[centred.prior_variance, centred.residual_variance], &[0.01675578979877692, 0.008584650590615871]);
}

#[test]
fn an_intercept_of_its_own_and_a_unit_agree_with_the_script() {
    let own = posterior(&NoisyGram { unit: 2.0, free_intercept: true, ..release(NOISY) }).expect("a release");
    close(&own.weights, &[0.5741972504111831, -0.3532326413101593, 0.14390213056179382, 0.15349730914015522]);
    close(
        &own.covariance[..4],
        &[0.00927082860430885, -5.299180772646047e-05, -0.0006070693173168297, 0.002499786510799587],
    );
    close(&[own.prior_variance, own.residual_variance], &[0.21566444130663182, 0.010731983984973896]);
}

#[test]
fn a_released_mean_of_the_target_agrees_with_the_script() {
    let target_mean = Some(TargetMean { value: 0.2, deviation: 0.4 });
    let known = NoisyGram { unit: 2.0, free_intercept: true, target_mean, ..release(NOISY) };
    let known = posterior(&known).expect("a release");
    close(&known.weights, &[0.5542491516158674, -0.36142475967381466, 0.1609383997120524, 0.1858007384174999]);
    close(
        &known.covariance[..4],
        &[0.0069191786846733916, 9.209101606505611e-05, -0.0005816016624349348, 0.002690623892863643],
    );
    close(&[known.prior_variance, known.residual_variance], &[0.23363633240869072, 0.00972345507442247]);
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
