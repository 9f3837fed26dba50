//! The Functional Mechanism on numbers and on two classes.

use reticent_core::units::NoiseDistribution;
use reticent_fit::plan::PlanError;

use super::gram::{engine as number_engine, excess_error, schema as number_schema};
use super::table::{Asked, accuracy, claim, engine, fit, schema};

const ROWS: usize = 4000;
const ADD_REMOVE: &str = "adjacency = \"add-remove\"";

fn default() -> Asked<'static> {
    Asked::of("functional")
}

#[test]
fn with_a_large_budget_numbers_are_fitted_by_least_squares() {
    let schema = number_schema(ADD_REMOVE);
    let engine = number_engine(&schema, ROWS, 1);
    for noise in ["laplace", "gaussian"] {
        for repair in ["regularise", "trim"] {
            let (_, model) = fit(&schema, &engine, &default().with("noise", noise).with("repair", repair), 500.0, 1);
            assert!(excess_error(&model) < 0.05, "{noise} {repair}: {}", excess_error(&model));
        }
    }
    // Without an intercept there is no line through these rows, but there is a model.
    let (_, model) = fit(&schema, &engine, &default().with("columns", "published"), 500.0, 1);
    assert!(excess_error(&model) < 6.0, "{}", excess_error(&model));
}

#[test]
fn two_classes_are_told_apart() {
    for adjacency in ["add-remove", "replace"] {
        let schema = schema(&format!("unit = \"row\"\nadjacency = \"{adjacency}\""));
        let engine = engine(&schema, ROWS);
        for noise in ["laplace", "gaussian"] {
            let (_, model) = fit(&schema, &engine, &default().with("noise", noise), 10.0, 1);
            assert!(accuracy(&model, ROWS) > 0.80, "{adjacency} {noise}: {}", accuracy(&model, ROWS));
        }
    }
}

#[test]
fn the_taylor_form_shrinks_the_coefficients_of_strong_signals() {
    let schema = schema("unit = \"row\"\nadjacency = \"add-remove\"");
    let (_, model) = fit(&schema, &engine(&schema, ROWS), &default(), 1000.0, 1);
    let slope = model.outputs[0].coefficients[0].coefficient;
    // The true slope is 0.8, with scores of standard deviation 2.4.
    assert!(slope > 0.25 && slope < 0.65, "{slope}");
}

#[test]
fn laplace_noise_is_pure_and_charged_as_such() {
    let schema = number_schema(ADD_REMOVE);
    let (plan, model) = fit(&schema, &number_engine(&schema, 100, 1), &default(), 1.0, 1);
    assert_eq!(plan.releases[0].noise, NoiseDistribution::DiscreteLaplace);
    let pure = model.certificate.expect("private").pure_epsilon.expect("all noise is Laplace noise");
    assert!(pure <= 1.0 && pure > 0.999, "{pure}");
    // d = 7 columns with the intercept: d + 2 sqrt(d).
    let sensitivity = plan.releases[0].shape.l1_sensitivity(&schema.relation()).expect("finite").get() as f64;
    assert!((sensitivity / 32767f64.powi(2) - (7.0 + 2.0 * 7f64.sqrt())).abs() < 1e-3);
}

#[test]
fn an_empty_table_gives_a_model_whatever_the_repair() {
    let schema = number_schema(ADD_REMOVE);
    for repair in ["regularise", "trim"] {
        for seed in 0..10 {
            let (_, model) = fit(&schema, &number_engine(&schema, 0, 1), &default().with("repair", repair), 0.1, seed);
            assert!(model.outputs[0].coefficients.iter().all(|one| one.coefficient.is_finite()));
        }
    }
}

#[test]
fn a_public_start_is_the_centre_of_the_penalty() {
    let schema = number_schema(ADD_REMOVE);
    let engine = number_engine(&schema, ROWS, 1);
    let (_, good) = fit(&schema, &engine, &default(), 500.0, 1);
    let warm = Asked { init: Some(&good), ..default() };
    let error = |asked: &Asked<'_>| {
        (0..10).map(|seed| excess_error(&fit(&schema, &engine, asked, 0.2, seed).1)).sum::<f64>() / 10.0
    };
    assert!(error(&warm) < 0.5 * error(&default()), "{} {}", error(&warm), error(&default()));
}

#[test]
fn drawing_the_noise_again_is_refused_with_the_reason() {
    let schema = number_schema(ADD_REMOVE);
    let prepared = default().with("repair", "rerun").prepare(&schema, &claim(schema.relation(), 1.0));
    let error = prepared.err().expect("refused").to_string();
    assert!(error.starts_with("--repair rerun is refused") && error.contains("twice epsilon"), "{error}");
}

#[test]
fn published_columns_have_no_centre_of_a_penalty() {
    let schema = number_schema(ADD_REMOVE);
    let (_, model) = fit(&schema, &number_engine(&schema, 100, 1), &default(), 1.0, 1);
    let start = Asked { init: Some(&model), ..default().with("columns", "published") };
    assert!(matches!(start.prepare(&schema, &claim(schema.relation(), 1.0)).err(), Some(PlanError::Parameter(_))));
}

/// A ledger writes mu² in steps of a fixed size, and there is a largest.
#[test]
fn an_epsilon_that_no_ledger_can_count_is_refused() {
    let schema = number_schema(ADD_REMOVE);
    let prepared = default().prepare(&schema, &claim(schema.relation(), 1e9));
    assert!(matches!(prepared.err(), Some(PlanError::TooLarge { .. })));
}
