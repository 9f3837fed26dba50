//! The slides' descent, with each record's gradient clipped: its price, its bias, its refusals.

use reticent_core::query::Map;
use reticent_core::units::SensitivitySquared;
use reticent_curator::memory_engine::MemoryEngine;
use reticent_curator::table::CodedTable;
use reticent_testkit::generate;

use super::table::{Asked, accuracy, claim, engine, expected, fit, schema};

const NAME: &str = "noisy-gd-slides";
const DECLARED: &str = "unit = \"row\"\nadjacency = \"replace\"\nrows = 4000";

#[test]
fn it_finds_the_signal_and_a_start_helps() {
    let schema = schema(DECLARED);
    let engine = engine(&schema, 4000);
    let asked = Asked::of(NAME).with("passes", 300).with("learning-rate", 2);
    let (_, model) = fit(&schema, &engine, &asked, 5.0, 1);
    assert!(accuracy(&model, 4000) > 0.8, "{}", accuracy(&model, 4000));
    let cold = Asked::of(NAME).with("passes", 5).with("learning-rate", 0.1);
    let warm = Asked { init: Some(&model), ..cold.clone() };
    let of = |asked: &Asked<'_>| accuracy(&fit(&schema, &engine, asked, 0.1, 2).1, 4000);
    assert!(of(&warm) > of(&cold), "{} {}", of(&warm), of(&cold));
}

/// A row is worth `C`, not `2 C / n` of an average: the sensitivity follows the clip until nothing is clipped.
#[test]
fn the_price_follows_the_clip() {
    let schema = schema(DECLARED);
    let norm = |clip: f64| {
        let plan = Asked::of(NAME).with("clip", clip).plan(&schema, 1.0);
        let norm_bound = plan.expectations[0].value;
        let shape = &plan.releases[0].shape;
        let Map::ClippedGradient { .. } = shape.map() else { panic!("each row is clipped: {shape:?}") };
        let square = shape.sensitivity(&schema.relation()).map(SensitivitySquared::get).expect("finite");
        (square as f64).sqrt() * norm_bound / (2048.0 * 32767.0)
    };
    assert!((norm(0.25) - 0.5).abs() < 1e-6, "replace: twice the clip");
    assert!((norm(0.5) - 1.0).abs() < 1e-6);
    assert!((norm(1e6) - norm(1e3)).abs() < 1e-9, "beyond the longest gradient there is nothing to clip");
}

/// Of a table without rows nothing pulls weights back. The standard deviation of 100 fits has an error of 7 %.
#[test]
fn the_plan_says_how_far_noise_moves_a_score() {
    let schema = generate::schema(5, 0, DECLARED);
    let nobody = MemoryEngine::new(CodedTable::empty(&schema));
    let asked = Asked::of(NAME).with("passes", 50).with("learning-rate", 0.3);
    let scores: Vec<(f64, f64)> = (0..100)
        .map(|seed| {
            let (plan, model) = fit(&schema, &nobody, &asked, 0.5, seed);
            // Numbers in [0, 10], at the end of their bounds: no row is longer.
            (model.score(0, &[1.0, 10.0, 10.0, 10.0, 10.0, 10.0]), expected(&plan, "noise of a score at most"))
        })
        .collect();
    let mean_square = scores.iter().map(|(score, noise)| (score / noise).powi(2)).sum::<f64>() / scores.len() as f64;
    assert!((mean_square.sqrt() - 1.0).abs() < 0.25, "{mean_square}");
}

#[test]
fn what_it_cannot_do_is_refused() {
    let schema = schema(DECLARED);
    let refused =
        |asked: Asked<'_>| asked.prepare(&schema, &claim(schema.relation(), 1.0)).err().expect("refused").to_string();
    assert!(refused(Asked::of(NAME).with("clip", 0.001)).starts_with("--clip must be a finite number of at least"));
    assert!(refused(Asked::of(NAME).with("learning-rate", 0)).starts_with("--learning-rate must be"));
}
