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

const SLOPES: SlopePrior = SlopePrior { features_square: 1.0, explained: 0.03, deviation: 3.0 };
const LONG: SlopePrior = SlopePrior { features_square: 3.0, ..SLOPES };

fn release(noise: GramNoise) -> NoisyGram<'static> {
    NoisyGram {
        upper: &UPPER,
        cross: &CROSS,
        square: SQUARE,
        rows: None,
        noise,
        prior_mean: None,
        unit: 1.0,
        slopes: SLOPES,
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
    close(&quiet.weights, &[0.5497384228804904, -0.4709349879420599, 0.3581799145154653, 0.7407640637386542]);
    close(&[quiet.residual_variance], &[0.04733921370447874]);
    let noisy = posterior(&release(NOISY)).expect("a release");
    close(&noisy.weights, &[0.5419730870260964, -0.3694755148603926, 0.1722474056871822, 0.19400704301854513]);
    close(
        &noisy.covariance[..8],
        &[
            0.009235932446352688,
            -0.0006336260154017419,
            0.0005037734662793348,
            0.004689894131029828,
            -0.0006336260154017415,
            0.014537984010740431,
            -0.003606127254572657,
            -0.01451462973353168,
        ],
    );
    close(&[noisy.prior_variance, noisy.residual_variance], &[0.23735121711262142, 0.011606456762888774]);
}

#[test]
fn the_prior_mean_agrees_with_the_script() {
    let mean = [0.4, -0.3, 0.0, 0.1];
    let centred = NoisyGram { rows: Some(280.0), prior_mean: Some(&mean), ..release(NOISY) };
    let centred = posterior(&centred).expect("a release");
    close(&centred.weights, &[0.4601972233586408, -0.3294609107200805, 0.02016136249842773, 0.1196942029146779]);
    close(&[centred.prior_variance, centred.residual_variance], &[0.012258141982992701, 0.009026634677523189]);
}

#[test]
fn an_intercept_of_its_own_and_a_unit_agree_with_the_script() {
    let own =
        posterior(&NoisyGram { unit: 2.0, slopes: LONG, free_intercept: true, ..release(NOISY) }).expect("a release");
    close(&own.weights, &[0.5757156781433967, -0.31924731400535644, 0.10437946647744473, 0.09775802101183888]);
    close(
        &own.covariance[..4],
        &[0.008604550330542875, 0.0001069104648338863, -0.0005351549219679922, 0.0014062047249265546],
    );
    close(&[own.prior_variance, own.residual_variance], &[0.12454906758241589, 0.011404668472902441]);
}

#[test]
fn a_released_mean_of_the_target_agrees_with_the_script() {
    let target_mean = Some(TargetMean { value: 0.2, deviation: 0.4 });
    let known = NoisyGram { unit: 2.0, slopes: LONG, free_intercept: true, target_mean, ..release(NOISY) };
    let known = posterior(&known).expect("a release");
    close(&known.weights, &[0.5550535669623436, -0.33889349404204383, 0.12813825732828504, 0.14013015316717556]);
    close(
        &known.covariance[..4],
        &[0.00632596091278047, 0.00016594209174713303, -0.0004946079037461162, 0.001853518588135828],
    );
    close(&[known.prior_variance, known.residual_variance], &[0.14984069716450968, 0.010290407641206676]);
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
