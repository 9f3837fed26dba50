//! Golden values and properties of the posterior.

use super::*;
use crate::fixed_sequence::FixedSequence;

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
        mean_deviations: &[],
        target_variance: None,
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
    close(&quiet.weights, &[0.5497374474306074, -0.4709329825815451, 0.3581772539930739, 0.7407548809382902]);
    close(&[quiet.residual_variance], &[0.04736501613512013]);
    let noisy = posterior(&release(NOISY)).expect("a release");
    close(&noisy.weights, &[0.5421615870142693, -0.36971787655619914, 0.1727219951263526, 0.19468318423741623]);
    close(
        &noisy.covariance[..8],
        &[
            0.01095830128777776,
            -0.0014308233335552313,
            -0.0008609915327915815,
            0.010838391043378989,
            -0.0014308233335552315,
            0.020283094669077188,
            -0.007874445244144764,
            -0.04076339780945193,
        ],
    );
    close(&[noisy.prior_variance, noisy.residual_variance], &[0.23878669235629954, 0.011286970554979354]);
}

#[test]
fn the_prior_mean_agrees_with_the_script() {
    let mean = [0.4, -0.3, 0.0, 0.1];
    let centred = NoisyGram { rows: Some(280.0), prior_mean: Some(&mean), ..release(NOISY) };
    let centred = posterior(&centred).expect("a release");
    close(&centred.weights, &[0.4602197649929447, -0.32947837279660747, 0.020192016090375596, 0.11973013246647754]);
    close(&[centred.prior_variance, centred.residual_variance], &[0.012292875265233205, 0.009023105101785969]);
}

#[test]
fn an_intercept_of_its_own_and_a_unit_agree_with_the_script() {
    let own =
        posterior(&NoisyGram { unit: 2.0, slopes: LONG, free_intercept: true, ..release(NOISY) }).expect("a release");
    close(&own.weights, &[0.5756936909888782, -0.31979791988377504, 0.10504870818267181, 0.0987039705115787]);
    close(
        &own.covariance[..4],
        &[0.009818607509358333, -0.0006737047304115479, -0.0021749373582917323, 0.009047830090966427],
    );
    close(&[own.prior_variance, own.residual_variance], &[0.12601380212379437, 0.011212960132687631]);
}

#[test]
fn a_released_mean_of_the_target_agrees_with_the_script() {
    let target_mean = Some(TargetMean { value: 0.2, deviation: 0.4 });
    let mean_deviations = &[0.0, 0.1, 0.1, 0.1];
    let known =
        NoisyGram { unit: 2.0, slopes: LONG, free_intercept: true, target_mean, mean_deviations, ..release(NOISY) };
    let known = posterior(&known).expect("a release");
    close(&known.weights, &[0.5550532881568728, -0.3392683218756588, 0.12870814027677102, 0.14100127155849412]);
    close(
        &known.covariance[..4],
        &[0.006871958264751433, -0.00031145464466033143, -0.0016294882849500212, 0.007108085138969754],
    );
    close(&[known.prior_variance, known.residual_variance], &[0.1512768257053467, 0.010145055267249056]);
}

/// One column with an error of its centre, one that is not centred, and one whose mean is 0.
#[test]
fn columns_that_are_not_centred_agree_with_the_script() {
    let target_mean = Some(TargetMean { value: 0.2, deviation: 0.05 });
    let mean_deviations = &[0.0, 0.1, 0.7, 0.0];
    let asked =
        NoisyGram { unit: 2.0, slopes: LONG, free_intercept: true, target_mean, mean_deviations, ..release(NOISY) };
    let found = posterior(&asked).expect("a release");
    close(&found.weights, &[0.5149973710152465, -0.33659891345347737, 0.1268156157790684, 0.13120197411537812]);
    close(
        &found.covariance[..4],
        &[0.005330978595671507, -0.00020998225229803888, -0.0015410378636838298, 0.006414638802010717],
    );
    let short = posterior(&NoisyGram { mean_deviations: &[0.0, 0.1, 0.7], ..asked });
    assert_eq!(short, Err(GramError::Value("the mean of the target")));
}

#[test]
fn the_variance_of_the_target_limits_what_slopes_explain() {
    let target_variance = Some(TargetVariance { value: 0.02, deviation: 0.01 });
    let limited = NoisyGram { unit: 2.0, slopes: LONG, free_intercept: true, target_variance, ..release(NOISY) };
    let limited = posterior(&limited).expect("a release");
    close(&limited.weights, &[0.5974568057335603, -0.07777845649063535, 0.002611146795403894, -0.03071968034077972]);
    close(
        &limited.covariance[..4],
        &[0.008528938066711515, 0.003197120901247425, -3.219422570185036e-05, 0.001001874887456569],
    );
    close(&[limited.prior_variance, limited.residual_variance], &[7.308968991762092e-05, 0.005020554123898508]);
    let nothing = Some(TargetVariance { value: 0.0, deviation: 0.01 });
    let refused = posterior(&NoisyGram { target_variance: nothing, ..release(NOISY) });
    assert_eq!(refused, Err(GramError::Value("the variance of the target")));
}

/// Predictions of the start are at -3/2 where the released mean is .2, and vary by more than the target does.
#[test]
fn a_start_of_another_mean_agrees_with_the_script() {
    let start = [-3.0, 0.4, -0.6, 0.2];
    let wrong = NoisyGram {
        unit: 2.0,
        slopes: LONG,
        prior_mean: Some(&start),
        target_mean: Some(TargetMean { value: 0.2, deviation: 0.1 }),
        mean_deviations: &[0.0, 0.1, 0.1, 0.1],
        target_variance: Some(TargetVariance { value: 0.02, deviation: 0.01 }),
        ..release(NOISY)
    };
    let found = posterior(&wrong).expect("a release");
    close(&found.weights, &[0.5387093897568552, -0.1770419349600921, -0.4599885098750618, 0.18507455275363788]);
    close(
        &found.covariance[..4],
        &[0.010823492323185383, 0.0023793922241319735, -0.0016398014956057433, 0.0053305577640728324],
    );
    close(&[found.prior_variance, found.residual_variance], &[0.06773616290687412, 0.046998451806048246]);
}

/// Eight releases of sixty columns whose noise hides the matrix and is a third larger than its standard deviation says: slopes that explain many
/// times what the target varies by would be as likely. A release whose `y'y` is hidden, too, does not refuse them; the target's variance does.
#[test]
fn chance_is_not_taken_for_slopes_that_explain_more_than_there_is() {
    const COLUMNS: usize = 60;
    const RELEASES: u64 = 8;
    let noise = GramNoise { matrix: 12.0, cross: 6.0, square: 30.0 };
    let variance = 0.06;
    let (mut without, mut with) = (0.0, 0.0);
    for seed in 0..RELEASES {
        let mut sequence = FixedSequence::new(seed);
        let mut normal = || (0..12).map(|_| sequence.next_uniform()).sum::<f64>() / 2.0;
        let mut upper = Vec::new();
        for row in 0..COLUMNS {
            for column in row..COLUMNS {
                let (weight, spread) = if row == column { (10.0, 2f64.sqrt()) } else { (0.0, 1.0) };
                upper.push(weight + spread * noise.matrix * normal());
            }
        }
        let cross: Vec<f64> = (0..COLUMNS).map(|_| 1.3 * noise.cross * normal()).collect();
        let slopes = SlopePrior { features_square: 29.0, ..SLOPES };
        let hidden =
            NoisyGram { upper: &upper, cross: &cross, square: 10.0, rows: Some(600.0), slopes, ..release(noise) };
        // Rows have a norm of about the root of 30.
        let explained = |target_variance| {
            let found = posterior(&NoisyGram { target_variance, ..hidden }).expect("a release");
            found.weights.iter().map(|weight| weight * weight).sum::<f64>() * 29.0 / COLUMNS as f64 / variance
        };
        without += explained(None) / RELEASES as f64;
        with += explained(Some(TargetVariance { value: variance, deviation: 0.03 })) / RELEASES as f64;
    }
    assert!(without > 0.3 && with < 0.05, "{without} {with} of the target's variance");
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

/// A direction of weight 100, found to be 12 by noise of 60, carries all of the target: the product with the target tells that it is larger.
#[test]
fn a_direction_is_no_smaller_than_its_product_with_the_target_says() {
    let upper = [1000.0, 0.0, 12.0];
    // Slopes 0 and 3, no residual: products 0 and 300, squares 900.
    let release = NoisyGram {
        upper: &upper,
        cross: &[0.0, 300.0],
        square: 900.0,
        rows: Some(1000.0),
        noise: GramNoise { matrix: 60.0, cross: 5.0, square: 5.0 },
        prior_mean: None,
        unit: 1.0,
        slopes: SlopePrior { features_square: 1.0, explained: 1.0, deviation: 3.0 },
        free_intercept: false,
        target_mean: None,
        mean_deviations: &[],
        target_variance: None,
    };
    let found = posterior(&release).expect("a release").weights;
    // Of the target's squares a slope w leaves 100 (w - 3)²: all of them at 0 and at 6.
    assert!(found[1] > 1.0 && found[1] < 4.0, "{found:?}");
}
