//! Golden values and properties of the fit.

use super::*;
use crate::fixed_sequence::FixedSequence;
use crate::public_design::{self, Curvature};

#[test]
fn logistic_mode_and_evidence_agree_with_an_independent_solver() {
    let data = golden::data();
    let released = data.logistic_release();
    let prior = Prior::new(data.features.as_ref(), ResponseModel::Logistic, None);
    let mode = mode(&data.statistic(&released), ResponseModel::Logistic, &prior, golden::TAU).expect("small");
    golden::assert_close(mode.weights.as_ref(), &golden::LOGISTIC_MODE, 1e-7);
    assert!((mode.log_evidence - golden::LOGISTIC_LOG_EVIDENCE).abs() < 1e-6, "{}", mode.log_evidence);
}

#[test]
fn multinomial_mode_agrees_with_an_independent_solver() {
    let data = golden::data();
    let released = data.multinomial_release();
    let model = ResponseModel::Multinomial { classes: 3 };
    let prior = Prior::new(data.features.as_ref(), model, None);
    let mode = mode(&data.statistic(&released), model, &prior, golden::TAU).expect("small");
    golden::assert_close(mode.weights.as_ref(), &golden::MULTINOMIAL_MODE, 1e-7);
}

#[test]
fn a_release_that_is_all_noise_gives_a_bounded_fit_near_the_centre() {
    let data = golden::data();
    let centre = Mat::from_fn(3, 1, |row, _| row as f64 * 0.2);
    for model in [ResponseModel::Linear, ResponseModel::Logistic] {
        let prior = Prior::new(data.features.as_ref(), model, Some(centre.as_ref()));
        // Far outside of what any labels could give: an unpenalised loss has no minimum.
        let released = Mat::from_fn(3, 1, |row, _| if row == 1 { 500.0 } else { -300.0 });
        let statistic = Statistic { noise: 400.0, ..data.statistic(&released) };
        let fitted = fit(&statistic, model, &prior).expect("bounded");
        for row in 1..3 {
            assert!((fitted.weights[(row, 0)] - centre[(row, 0)]).abs() < 0.5, "{model:?} {fitted:?}");
        }
        assert!(fitted.covariance[(1, 1)].sqrt() > 0.05, "and says that it knows little: {fitted:?}");
    }
}

#[test]
fn weights_of_many_classes_add_up_to_zero_and_so_do_their_errors() {
    let data = golden::data();
    let released = data.multinomial_release();
    let model = ResponseModel::Multinomial { classes: 3 };
    let prior = Prior::new(data.features.as_ref(), model, None);
    let fitted = fit(&data.statistic(&released), model, &prior).expect("small");
    for column in 0..3 {
        let total: f64 = (0..3).map(|class| fitted.weights[(column, class)]).sum();
        assert!(total.abs() < 1e-9);
        let pairs = (0..9).map(|pair| fitted.covariance[(pair / 3 * 3 + column, pair % 3 * 3 + column)]);
        assert!(pairs.sum::<f64>().abs() < 1e-9);
    }
}

#[test]
fn the_sum_of_squares_makes_the_variance_known() {
    let data = golden::data();
    let features = Mat::from_fn(4000, 3, |row, column| data.features[(row % 40, column)]);
    let labels =
        Mat::from_fn(4000, 1, |row, _| 0.3 * features[(row, 1)] + 0.2 * 2f64.sqrt() * (row as f64 * 1.3).sin());
    let rows = &features * faer::Scale(1.0 / data.longest);
    let released = rows.transpose() * &labels;
    let square = Noisy { value: labels.squared_norm_l2(), noise: 2.0 };
    let statistic = Statistic {
        features: features.as_ref().into(),
        rows: rows.as_ref().into(),
        released: released.as_ref(),
        noise: 1.0,
        labels_per_row: 1.0,
        square: Some(square),
    };
    let prior = Prior::new(features.as_ref(), ResponseModel::Linear, None);
    let fitted = fit(&statistic, ResponseModel::Linear, &prior).expect("small");
    let variance = fitted.variance.expect("linear");
    assert!((variance / 0.04 - 1.0).abs() < 0.001, "{variance}");
    let expected = (variance / (4000.0 * 0.11)).sqrt();
    let deviation = fitted.covariance[(1, 1)].sqrt();
    assert!((0.7..1.5).contains(&(deviation / expected)), "{deviation} {expected}");
}

/// Slopes of separable classes are as long as the prior lets them be, and there most probabilities are 0 or 1.
#[test]
fn separable_classes_are_told_apart() {
    const ROWS: usize = 5_000;
    let mut uniform = FixedSequence::new(7);
    let mut normal = move || (0..12).map(|_| uniform.next_uniform()).sum::<f64>() / 2.0;
    let features = Mat::from_fn(ROWS, 7, |_, column| if column == 0 { 1.0 } else { 0.5 + 0.1 * normal() });
    let class_of = |row: usize| usize::from(features[(row, 1)] > 0.5) + usize::from(features[(row, 1)] > 0.55);
    for classes in [2, 3] {
        let (model, curvature) = if classes == 2 {
            (ResponseModel::Logistic, Curvature::logistic(0.5))
        } else {
            (ResponseModel::Multinomial { classes }, Curvature::multinomial(classes))
        };
        let class_of = |row: usize| class_of(row).min(classes - 1);
        let prior = Prior::new(features.as_ref(), model, None);
        let map = public_design::fit(features.as_ref(), curvature, 1.0, prior.precision(0.5).as_ref());
        let map = map.expect("scaled well");
        let integers = map.integer_rows(features.as_ref(), map.outputs());
        let rows = Mat::from_fn(ROWS, map.outputs(), |row, output| {
            f64::from(integers[row * map.outputs() + output]) / f64::from(public_design::INTEGER_NORM)
        });
        let class_of_output = |output: usize| if classes == 2 { 1 } else { output };
        let labels = Mat::from_fn(ROWS, model.outputs(), |row, output| {
            f64::from(u8::from(class_of(row) == class_of_output(output)))
        });
        let exact = rows.transpose() * labels;
        for noise in [0.5, 0.5, 0.5, 1.25, 1.25, 1.25] {
            let noisy = |row, output| exact[(row, output)] + noise * normal();
            let released = Mat::from_fn(map.outputs(), model.outputs(), noisy);
            let statistic = golden::statistic(&features, &rows, &released, noise);
            let scores = &features * &fit(&statistic, model, &prior).expect("bounded").weights;
            let likeliest = |row: usize| {
                let score = |class: usize| {
                    if classes == 2 { class as f64 * scores[(row, 0)] } else { scores[(row, class)] }
                };
                (1..classes).fold(0, |best, class| if score(class) > score(best) { class } else { best })
            };
            let hits = (0..ROWS).filter(|row| likeliest(*row) == class_of(*row)).count();
            assert!(hits > ROWS * 97 / 100, "{classes} classes, noise {noise}: {hits} of {ROWS}");
        }
    }
}

/// Effects as large as the prior just allows, under noise that hides most of them: estimates are drawn to zero, but no more than noise calls
/// for, and their intervals say so.
#[test]
fn large_effects_under_noise_are_not_drawn_to_zero_by_small_scales() {
    const ROWS: usize = 1_000;
    const TABLES: usize = 60;
    let mut uniform = FixedSequence::new(11);
    let mut normal = move || (0..12).map(|_| uniform.next_uniform()).sum::<f64>() / 2.0;
    let mut coin = FixedSequence::new(12);
    let (mut product, mut square, mut covered) = (0.0, 0.0, 0);
    for _ in 0..TABLES {
        let features = Mat::from_fn(ROWS, 5, |_, column| if column == 0 { 1.0 } else { normal() });
        let effects = Mat::from_fn(5, 1, |row, _| if row == 0 { 0.0 } else { normal() });
        let scores = &features * &effects;
        let labels = Mat::from_fn(ROWS, 1, |row, _| {
            f64::from(u8::from(0.5 * (1.0 + coin.next_uniform()) < 1.0 / (1.0 + (-scores[(row, 0)]).exp())))
        });
        let rows = &features * faer::Scale(1.0 / 4.0);
        let noisy = Mat::from_fn(5, 1, |_, _| 20.0 * normal());
        let released = rows.transpose() * &labels + noisy;
        let statistic = golden::statistic(&features, &rows, &released, 20.0);
        let prior = Prior::new(features.as_ref(), ResponseModel::Logistic, None);
        let fitted = fit(&statistic, ResponseModel::Logistic, &prior).expect("bounded");
        for row in 1..5 {
            let (found, truth) = (fitted.weights[(row, 0)], effects[(row, 0)]);
            product += found * truth;
            square += truth * truth;
            covered += usize::from((found - truth).abs() < 1.96 * fitted.covariance[(row, row)].sqrt());
        }
    }
    let (slope, coverage) = (product / square, covered as f64 / (4 * TABLES) as f64);
    assert!(slope > 0.35 && coverage > 0.93, "{slope} {coverage}");
}

/// Labels that follow nothing: little of the noise stays in the weights. With the prior of scales alone their mean square is .0038.
#[test]
fn weights_of_noise_are_drawn_to_zero() {
    const ROWS: usize = 500;
    const TABLES: usize = 40;
    let mut uniform = FixedSequence::new(21);
    let mut normal = move || (0..12).map(|_| uniform.next_uniform()).sum::<f64>() / 2.0;
    let mut square = 0.0;
    for _ in 0..TABLES {
        let features = Mat::from_fn(ROWS, 11, |_, column| if column == 0 { 1.0 } else { normal() });
        let rows = &features * faer::Scale(1.0 / 4.0);
        // The sampling error of even labels, and noise.
        let labels = Mat::from_fn(ROWS, 1, |_, _| if normal() > 0.0 { 1.0 } else { 0.0 });
        let noisy = Mat::from_fn(11, 1, |_, _| 5.0 * normal());
        let released = rows.transpose() * &labels + noisy;
        let statistic = golden::statistic(&features, &rows, &released, 5.0);
        let prior = Prior::new(features.as_ref(), ResponseModel::Logistic, None);
        let fitted = fit(&statistic, ResponseModel::Logistic, &prior).expect("bounded");
        square += (1..11).map(|row| fitted.weights[(row, 0)].powi(2)).sum::<f64>() / (10 * TABLES) as f64;
    }
    assert!(square < 0.0025, "{square}");
}

/// Even shares and nothing else: weights of zero, which have no scale, and errors all the same.
#[test]
fn weights_of_zero_have_errors() {
    let data = golden::data();
    let released = data.rows.transpose() * Mat::from_fn(40, 1, |_, _| 0.5);
    let prior = Prior::new(data.features.as_ref(), ResponseModel::Logistic, None);
    let fitted = fit(&data.statistic(&released), ResponseModel::Logistic, &prior).expect("small");
    for row in 0..3 {
        assert!(fitted.weights[(row, 0)].abs() < 1e-12, "{fitted:?}");
        assert!((0.01..10.0).contains(&fitted.covariance[(row, row)]), "{fitted:?}");
    }
}

/// Two columns that are nearly the same, with opposite effects, beside six others whose scores vary as much: 40 tables each. With one size for effects in every
/// direction no interval held one of the two. Of the six at least 212 of 240 are held with a chance above .997 where intervals hold 93 of 100.
#[test]
fn intervals_hold_opposite_effects_of_nearly_equal_columns() {
    const ROWS: usize = 2_000;
    const TABLES: usize = 40;
    for model in [ResponseModel::Logistic, ResponseModel::Linear] {
        let mut coin = FixedSequence::new(31);
        let mut uniform = FixedSequence::new(32);
        let mut normal = move || (0..12).map(|_| uniform.next_uniform()).sum::<f64>() / 2.0;
        let effect = if model == ResponseModel::Linear { 1.0 } else { 5.0 };
        let (mut held, mut others) = (0, 0);
        for _ in 0..TABLES {
            let mut features = Mat::from_fn(ROWS, 9, |_, column| if column == 0 { 1.0 } else { normal() });
            for row in 0..ROWS {
                features[(row, 2)] = 0.995 * features[(row, 1)] + 0.1 * features[(row, 2)];
            }
            let labels = Mat::from_fn(ROWS, 1, |row, _| {
                let others: f64 = (3..9).map(|column| 0.1 * effect * features[(row, column)]).sum();
                let score = effect * (features[(row, 1)] - features[(row, 2)]) + others;
                let place = f64::midpoint(1.0, coin.next_uniform());
                if model == ResponseModel::Linear {
                    (score + 0.5 * (2.0 * place - 1.0)).clamp(-1.0, 1.0)
                } else {
                    f64::from(u8::from(place < 1.0 / (1.0 + (-score).exp())))
                }
            });
            let rows = &features * faer::Scale(1.0 / 5.0);
            let noise = 5.0;
            let released = rows.transpose() * &labels + Mat::from_fn(9, 1, |_, _| noise * normal());
            let square = labels.col(0).iter().map(|label| label * label).sum::<f64>() + 10.0 * normal();
            let square = (model == ResponseModel::Linear).then_some(Noisy { value: square, noise: 10.0 });
            let statistic = Statistic { square, ..golden::statistic(&features, &rows, &released, noise) };
            let prior = Prior::new(features.as_ref(), model, None);
            let fitted = fit(&statistic, model, &prior).expect("bounded");
            let is_held = |column: usize, truth: f64| {
                let error = fitted.covariance[(column, column)].sqrt();
                usize::from((fitted.weights[(column, 0)] - truth).abs() < 1.96 * error)
            };
            held += is_held(1, effect) + is_held(2, -effect);
            others += (3..9).map(|column| is_held(column, 0.1 * effect)).sum::<usize>();
        }
        assert!(held >= 72 && others >= 212, "{model:?}: {held} of 80, {others} of 240");
    }
}

/// One effect ten times the size of all others, under noise: 40 tables each. With effects of one size alone fewer intervals than asked hold the large one,
/// and the squared error of the weights, in squares of the small size, is larger than asked.
#[test]
fn an_effect_far_larger_than_the_others_is_not_drawn_to_them() {
    const ROWS: usize = 2_000;
    const TABLES: usize = 40;
    for model in [ResponseModel::Logistic, ResponseModel::Linear] {
        let mut coin = FixedSequence::new(41);
        let mut uniform = FixedSequence::new(42);
        let mut normal = move || (0..12).map(|_| uniform.next_uniform()).sum::<f64>() / 2.0;
        let unit = if model == ResponseModel::Linear { 0.03 } else { 0.2 };
        let truth = |column: usize| if column == 1 { 10.0 * unit } else { unit * (column % 3) as f64 - unit };
        let (mut held, mut others, mut square) = (0, 0, 0.0);
        for _ in 0..TABLES {
            let features = Mat::from_fn(ROWS, 21, |_, column| if column == 0 { 1.0 } else { normal() });
            let labels = Mat::from_fn(ROWS, 1, |row, _| {
                let score: f64 = (1..21).map(|column| truth(column) * features[(row, column)]).sum();
                let place = f64::midpoint(1.0, coin.next_uniform());
                if model == ResponseModel::Linear {
                    (score + 0.5 * (2.0 * place - 1.0)).clamp(-1.0, 1.0)
                } else {
                    f64::from(u8::from(place < 1.0 / (1.0 + (-score).exp())))
                }
            });
            let rows = &features * faer::Scale(1.0 / 7.0);
            let noise = if model == ResponseModel::Linear { 10.0 } else { 20.0 };
            let released = rows.transpose() * &labels + Mat::from_fn(21, 1, |_, _| noise * normal());
            let square_sum = labels.col(0).iter().map(|label| label * label).sum::<f64>() + 10.0 * normal();
            let square_sum = (model == ResponseModel::Linear).then_some(Noisy { value: square_sum, noise: 10.0 });
            let statistic = Statistic { square: square_sum, ..golden::statistic(&features, &rows, &released, noise) };
            let prior = Prior::new(features.as_ref(), model, None);
            let fitted = fit(&statistic, model, &prior).expect("bounded");
            let error = |column: usize| fitted.weights[(column, 0)] - truth(column);
            let is_held =
                |column: usize| usize::from(error(column).abs() < 1.96 * fitted.covariance[(column, column)].sqrt());
            held += is_held(1);
            others += (2..21).map(is_held).sum::<usize>();
            square += (1..21).map(|column| error(column).powi(2)).sum::<f64>() / (unit * unit * TABLES as f64);
        }
        let most = if model == ResponseModel::Linear { 23.0 } else { 60.0 };
        assert!(square < most, "{model:?}: {square}");
        assert!(held >= 28 && others >= 715, "{model:?}: {held} of 40, {others} of 760");
    }
}

/// A start that is sure of the opposite is overruled by a release that knows better, however steep it is.
#[test]
fn a_wrong_start_does_not_lead_astray() {
    const ROWS: usize = 2_000;
    let mut uniform = FixedSequence::new(3);
    let features = Mat::from_fn(ROWS, 3, |_, column| if column == 0 { 1.0 } else { uniform.next_uniform() });
    let labels = Mat::from_fn(ROWS, 1, |row, _| {
        let score: f64 = 2.0 * features[(row, 1)] - features[(row, 2)];
        f64::from(u8::from(0.5 * (1.0 + uniform.next_uniform()) < 1.0 / (1.0 + (-score).exp())))
    });
    let rows = &features * faer::Scale(1.0 / 3f64.sqrt());
    let released = rows.transpose() * &labels;
    let statistic = golden::statistic(&features, &rows, &released, 0.5);
    let fitted = |centre: Option<&Mat<f64>>| {
        let prior = Prior::new(features.as_ref(), ResponseModel::Logistic, centre.map(Mat::as_ref));
        fit(&statistic, ResponseModel::Logistic, &prior).expect("bounded").weights
    };
    let without = fitted(None);
    for steepness in [0.5, 2.0, 4.0, 8.0, 16.0] {
        let with = fitted(Some(&(&without * faer::Scale(-steepness))));
        let apart = (&with - &without).norm_max();
        assert!(apart < 0.3, "{steepness}: {with:?} and without {without:?}");
    }
}

#[test]
fn contradictory_or_unusable_input_is_an_error() {
    let data = golden::data();
    let released = data.logistic_release();
    let statistic = data.statistic(&released);
    let prior = Prior::new(data.features.as_ref(), ResponseModel::Logistic, None);
    let run = |statistic: Statistic<'_>, model| fit(&statistic, model, &prior).map(|fitted| fitted.tau);
    assert!(matches!(run(statistic, ResponseModel::Multinomial { classes: 3 }), Err(MapError::Shape(_))));
    for noise in [0.0, -1.0, f64::NAN] {
        assert_eq!(run(Statistic { noise, ..statistic }, ResponseModel::Logistic), Err(MapError::NotFinite));
    }
    let infinite = Mat::from_fn(3, 1, |_, _| f64::INFINITY);
    let broken = Statistic { released: infinite.as_ref(), ..statistic };
    assert_eq!(run(broken, ResponseModel::Logistic), Err(MapError::NotFinite));
}
