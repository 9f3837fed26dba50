//! Model files: coefficients in the user's units, and nothing accepted that is not a model.

use proptest::prelude::*;
use reticent_core::encoding::{Coding, Encoding, NormRule};
use reticent_core::record::Cell;
use reticent_fit::method::noisy_gd::Params;
use reticent_fit::model::{Model, ModelError};
use reticent_testkit::generate;

use super::table::{engine, fit, schema};

const PRIVACY: &str = "unit = \"row\"\nadjacency = \"add-remove\"";

proptest! {
    /// `z` from encoded columns equals `z` from the coefficients, whatever centre and scale.
    #[test]
    fn coefficients_give_the_score_of_the_weights(
        weights in prop::collection::vec(-3.0f64..3.0, 8),
        centre in prop::collection::vec(-1.0f64..1.0, 8),
        scale in prop::collection::vec(0.1f64..4.0, 8),
        (x0, x1, x2) in (0.0f64..10.0, 0.0f64..10.0, 0.0f64..10.0),
        category in 0u32..4,
    ) {
        let schema = generate::schema(3, 1, PRIVACY);
        let mut centre = centre;
        centre[0] = 0.0;
        let encoding = Encoding::new(Coding::of(&schema), centre.clone(), scale.clone(), NormRule::OwnNorm);
        let model = Model::from_weights(&schema, &encoding, &weights, None);

        let mut values = [1.0, x0 / 10.0, x1 / 10.0, x2 / 10.0, 0.0, 0.0, 0.0, 0.0];
        values[4 + category as usize] = 1.0;
        let encoded: f64 = (0..8).map(|column| weights[column] * scale[column] * (values[column] - centre[column])).sum();
        let mut raw = [0.0; 8];
        let cells = [Cell::Number(x0), Cell::Number(x1), Cell::Number(x2), Cell::Category(category)];
        encoding.coding().raw_columns(&cells, &mut raw);
        prop_assert!((model.score(&raw) - encoded).abs() < 1e-9);

        let back = model.weights(&encoding);
        for (weight, back) in weights.iter().zip(&back) {
            prop_assert!((weight - back).abs() < 1e-9, "weights survive the round trip");
        }
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in ".{0,200}") {
        prop_assert!(Model::from_json(&text).is_err());
    }
}

#[test]
fn a_model_reads_back_as_written() {
    let schema = schema(PRIVACY);
    let (_, model) = fit(&schema, &engine(&schema, 300), Params::default(), 1.0, 1);
    assert_eq!(Model::from_json(&model.to_json()).expect("its own text"), model);
}

#[test]
fn foreign_and_inconsistent_files_are_refused() {
    let schema = schema(PRIVACY);
    let (_, model) = fit(&schema, &engine(&schema, 300), Params::default(), 1.0, 1);
    let text = model.to_json();
    let refused = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        Model::from_json(&text.replacen(from, to, 1)).expect_err("refused")
    };
    assert!(matches!(refused("\"version\": 1", "\"version\": 2"), ModelError::Version(2)));
    assert!(matches!(refused("reticent-model", "other-model"), ModelError::Format(_)));
    assert!(matches!(refused("\"column\": \"x0\"", "\"column\": \"x9\""), ModelError::Inconsistent(_)));
    assert!(matches!(Model::from_json("{\"a\": 1}"), Err(ModelError::Format(_))));
    assert!(matches!(Model::from_json("PK\u{3}\u{4}"), Err(ModelError::Syntax(_))));
}

#[test]
fn a_model_holds_no_private_figure() {
    let schema = schema(PRIVACY);
    let (_, model) = fit(&schema, &engine(&schema, 317), Params::default(), 1.0, 1);
    let mut values = vec![serde_json::from_str::<serde_json::Value>(&model.to_json()).expect("JSON")];
    let mut seen = 0;
    while let Some(value) = values.pop() {
        if let Some(number) = value.as_f64() {
            assert!((number - 317.0).abs() > 0.5, "the number of rows is private");
            seen += 1;
        }
        for (key, inner) in value.as_object().into_iter().flatten() {
            assert!(!["seed", "rows", "n", "count"].contains(&key.as_str()) || inner.is_null(), "{key}");
            values.push(inner.clone());
        }
        values.extend(value.as_array().into_iter().flatten().cloned());
    }
    assert!(seen > 10, "the file was walked");
}
