//! Model files: coefficients in the user's units, and nothing accepted that is not a model.

use std::sync::Arc;

use proptest::prelude::*;
use reticent_core::coding::{CODE_MAX, Coding};
use reticent_core::encoding::{CodeRange, Encoding, NormRule};
use reticent_core::ledger::PlannedRelease;
use reticent_core::public_features::PublicFeatures;
use reticent_core::record::Cell;
use reticent_core::schema::Schema;
use reticent_core::units::{Epsilon, MuSquared};
use reticent_fit::certificate::{Certificate, CertifiedRelease};
use reticent_fit::model::{Model, ModelError};
use reticent_fit::prepared_fit::{Covariance, Fitted};
use reticent_fit::raw_columns::{Columns, RawColumns};
use reticent_testkit::generate;
use serde_json::{Value, json};

use super::table::{Asked, engine, fit, schema};

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
        let fitted = Fitted { encoding: Arc::new(encoding.clone()), weights: weights.clone(), covariance: None };
        let model = Model::from_weights(&schema, &fitted, None);

        let mut values = [1.0, x0 / 10.0, x1 / 10.0, x2 / 10.0, 0.0, 0.0, 0.0, 0.0];
        values[4 + category as usize] = 1.0;
        let encoded: f64 = (0..8).map(|column| weights[column] * scale[column] * (values[column] - centre[column])).sum();
        let mut raw = [0.0; 8];
        let cells = [Cell::Number(x0), Cell::Number(x1), Cell::Number(x2), Cell::Category(category)];
        encoding.coding().raw_columns(&cells, &mut raw);
        prop_assert!((model.score(0, &raw) - encoded).abs() < 1e-9);

        let back = model.weights(&encoding);
        for (weight, back) in weights.iter().zip(&back) {
            prop_assert!((weight - back).abs() < 1e-9, "weights survive the round trip");
        }
    }

    /// As above for values within their ranges; those beyond count as the border, in the file's units and on the lattice.
    #[test]
    fn a_value_beyond_its_range_counts_as_the_border(
        weights in prop::collection::vec(-3.0f64..3.0, 8),
        ends in prop::collection::vec((0..=CODE_MAX, 0..=CODE_MAX), 4),
        values in prop::collection::vec(0.0f64..1.0, 3),
        category in 0u32..4,
    ) {
        let schema = generate::schema(3, 1, PRIVACY);
        let ranges: Vec<CodeRange> =
            ends.into_iter().map(|(one, other)| CodeRange::new(one.min(other), one.max(other))).collect();
        let encoding = Encoding::plain(Coding::of(&schema), NormRule::OwnNorm).within(ranges.clone());
        let fitted = Fitted { encoding: Arc::new(encoding), weights: weights.clone(), covariance: None };
        let model = Model::from_weights(&schema, &fitted, None);
        let expected = weights[0]
            + weights[4 + category as usize]
            + (0..3)
                .map(|place| {
                    let [low, high] = [ranges[place].low(), ranges[place].high()].map(|code| f64::from(code) / f64::from(CODE_MAX));
                    weights[1 + place] * values[place].max(low).min(high)
                })
                .sum::<f64>();
        let mut raw = [0.0; 8];
        let numbers = values.iter().map(|value| Cell::Number(10.0 * value));
        let cells: Vec<Cell> = numbers.chain([Cell::Category(category)]).collect();
        Coding::of(&schema).raw_columns(&cells, &mut raw);
        prop_assert!((model.score(0, &raw) - expected).abs() < 1e-9);

        let own = model.encoding();
        let read: Vec<CodeRange> = own.ranges().expect("as fitted").to_vec();
        for (read, range) in read[..3].iter().zip(&ranges) {
            prop_assert_eq!((read.low(), read.high()), (range.low(), range.high()));
        }
        let mut codes = [0; 4];
        own.coding().encode_cells(&cells, &mut codes);
        let mut features = [0i16; 8];
        let step = f64::from(own.encode_codes(&codes, &mut [0.0; 8], &mut features));
        let of_lattice: f64 = model.weights(&own).iter().zip(features).map(|(weight, on)| weight * step * f64::from(on)).sum();
        // A step of the code and one of the lattice for each column.
        prop_assert!((of_lattice - expected).abs() < 0.005, "{} {}", of_lattice, expected);
        prop_assert_eq!(&Model::from_json(&model.to_json()).expect("its own text"), &model);
    }

    /// One row after another, told what it lists or not: the score of all its columns.
    #[test]
    fn a_row_is_scored_by_what_it_lists(
        rows in prop::collection::vec((prop::collection::vec(prop_oneof![2 => Just(0.0), 1 => 0.0f64..1.0], 6), any::<bool>()), 1..6),
        weights in prop::collection::vec(-3.0f64..3.0, 7),
    ) {
        let text = format!(
            "[privacy]\n{PRIVACY}\n[table]\nformat = \"libsvm\"\nnonzeros_max = 2\n[target]\ncolumn = \"y\"\nclasses = [0, 1]\n\
             [features]\n1 = {{ bounds = [0, 1] }}\n2 = {{ bounds = [-1, 1] }}\n\"3..6\" = {{ bounds = [0, 1] }}\n"
        );
        let schema = Schema::from_text(&text).expect("legal");
        let encoding = Arc::new(Encoding::plain(Coding::of(&schema), NormRule::OwnNorm));
        let model = Model::from_weights(&schema, &Fitted { encoding, weights, covariance: None }, None);
        let coding = Coding::of(&schema);
        let mut columns = RawColumns::new(&coding);
        for (numbers, is_told) in rows {
            let cells: Vec<Cell> = numbers.iter().map(|number| Cell::Number(*number)).collect();
            // In any order, as a line may be, and with what has a place in every row.
            let given: Vec<usize> = (0..6).rev().filter(|feature| numbers[*feature] > 0.0).collect();
            columns.set(&cells, is_told.then_some(&given[..]));
            let mut all = [0.0; 7];
            Coding::of(&schema).raw_columns(&cells, &mut all);
            prop_assert_eq!(model.score(0, &columns).to_bits(), model.score(0, &all).to_bits());
            prop_assert_eq!(model.probabilities(&columns), model.probabilities(&all));
        }
    }

    /// A row's categories stand for all columns of their features, zeros and "other" among them; a number that is 0 may lie outside its range.
    #[test]
    fn a_row_is_scored_by_its_categories(
        rows in prop::collection::vec((0u32..6, 0.0f64..10.0, 0u32..4, prop_oneof![Just(0.0), -5.0f64..5.0]), 1..6),
        weights in prop::collection::vec(-3.0f64..3.0, 13),
    ) {
        let text = format!(
            "[privacy]\n{PRIVACY}\n[target]\ncolumn = \"y\"\nclasses = [0, 1]\n[features]\n\
             a = {{ categories = [1, 2, 3, 4] }}\nb = {{ bounds = [0, 10], log = true }}\nc = {{ hash_buckets = 3 }}\n\
             d = {{ bounds = [-5, 5] }}\n"
        );
        let schema = Schema::from_text(&text).expect("legal");
        let encoding = Arc::new(Encoding::plain(Coding::of(&schema), NormRule::OwnNorm));
        let mut model = Model::from_weights(&schema, &Fitted { encoding, weights, covariance: None }, None);
        let last = model.outputs[0].coefficients.last_mut().expect("d");
        last.range = Some([1.0, 2.0]);
        let coding = Coding::of(&schema);
        let mut columns = RawColumns::new(&coding);
        for (a, b, c, d) in rows {
            let cells = [Cell::Category(a), Cell::Number(b), Cell::Category(c), Cell::Number(d)];
            columns.set(&cells, None);
            prop_assert_eq!(columns.nonzero().count(), 6);
            let mut all = [7.0; 13];
            Coding::of(&schema).raw_columns(&cells, &mut all);
            prop_assert_eq!(model.score(0, &columns).to_bits(), model.score(0, &all).to_bits());
        }
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in ".{0,200}") {
        prop_assert!(Model::from_json(&text).is_err());
    }
}

/// A number with bounds 100 to 300 and a feature with bounds 0 to 10: `y = 100 + 100 (1 + z)`, `z = 0.5 + 0.2 u`, `u = x/10`.
#[test]
fn a_regression_is_told_in_the_units_of_its_target() {
    let text = format!(
        "[privacy]\n{PRIVACY}\n[target]\ncolumn = \"y\"\nbounds = [100, 300]\n[features]\nx = {{ bounds = [0, 10] }}\n"
    );
    let schema = Schema::from_text(&text).expect("legal");
    let encoding = Arc::new(Encoding::plain(Coding::of(&schema), NormRule::OwnNorm));
    let covariance = Some(Covariance { values: vec![0.04, -0.01, -0.01, 0.09], column_means: vec![1.0, 0.5] });
    let fitted = Fitted { encoding: encoding.clone(), weights: vec![0.5, 0.2], covariance };
    let model = Model::from_weights(&schema, &fitted, None);
    assert!((model.number(&[1.0, 5.0]) - 260.0).abs() < 1e-9);
    let output = &model.outputs[0];
    assert!((output.intercept - 250.0).abs() < 1e-9 && (output.coefficients[0].coefficient - 2.0).abs() < 1e-9);
    assert!((output.standard_error.expect("known") - 20.0).abs() < 1e-9);
    assert!((output.coefficients[0].standard_error.expect("known") - 3.0).abs() < 1e-9);
    let back = model.weights(&encoding);
    assert!((back[0] - 0.5).abs() < 1e-12 && (back[1] - 0.2).abs() < 1e-12);
    assert_eq!(Model::from_json(&model.to_json()).expect("its own text"), model);
}

/// Half of the rows in each of two categories, none in "other": differences from an average of 0, in units of a target from 100 to 300.
#[test]
fn a_category_is_told_beside_the_average_of_its_feature() {
    let text = format!(
        "[privacy]\n{PRIVACY}\n[target]\ncolumn = \"y\"\nbounds = [100, 300]\n[features]\nx = {{ bounds = [0, 10] }}\n\
         g = {{ categories = [\"a\", \"b\"] }}\n"
    );
    let schema = Schema::from_text(&text).expect("legal");
    let encoding = Arc::new(Encoding::plain(Coding::of(&schema), NormRule::OwnNorm));
    let values = (0..25).map(|place| if place % 6 == 0 { 0.01 } else { 0.0 }).collect();
    let codes = [[CODE_MAX, 0, 0, CODE_MAX, 0], [CODE_MAX, 9, 0, 0, CODE_MAX]].concat();
    let covariance = Some(Covariance::beside_rows(values, &PublicFeatures { columns: 5, codes }));
    let fitted = Fitted { encoding, weights: vec![0.5, 0.1, 0.7, 0.2, -0.2], covariance };
    let model = Model::from_weights(&schema, &fitted, None);
    let beside = |place: usize| model.outputs[0].coefficients[place].from_average;
    assert_eq!(beside(0), None, "a number");
    for (place, (difference, variance)) in [(1, (70.0, 0.015f64)), (2, (20.0, 0.005)), (3, (-20.0, 0.005))] {
        let found = beside(place).expect("a category");
        assert!((found.difference - difference).abs() < 1e-9, "{found:?}");
        assert!((found.standard_error - 100.0 * variance.sqrt()).abs() < 1e-9, "{found:?}");
    }
    assert_eq!(Model::from_json(&model.to_json()).expect("its own text"), model);
    let edited = model.to_json().replacen("\"column\": \"g=a\"", "\"column\": \"x\"", 1);
    assert!(Model::from_json(&edited).is_err());
}

#[test]
fn a_model_of_three_classes_has_three_scores() {
    let text = format!(
        "[privacy]\n{PRIVACY}\n[target]\ncolumn = \"y\"\nclasses = [\"a\", \"b\", \"c\"]\n[features]\nx = {{ bounds = [0, 1] }}\n"
    );
    let schema = Schema::from_text(&text).expect("legal");
    let encoding = Arc::new(Encoding::plain(Coding::of(&schema), NormRule::OwnNorm));
    let weights = vec![0.0, 1.0, 0.5, 0.0, -1.0, 2.0];
    let model = Model::from_weights(
        &schema,
        &Fitted { encoding: encoding.clone(), weights: weights.clone(), covariance: None },
        None,
    );
    // All classes read a column alike.
    let mut value: serde_json::Value = serde_json::from_str(&model.to_json()).expect("JSON");
    value["outputs"][1]["coefficients"][0]["range"] = serde_json::json!([0.0, 1.0]);
    assert!(matches!(Model::from_json(&value.to_string()), Err(ModelError::Inconsistent(_))));
    let probabilities = model.probabilities(&[1.0, 1.0]);
    let total = 1f64.exp() + 0.5f64.exp() + 1f64.exp();
    assert!((probabilities[1] - 0.5f64.exp() / total).abs() < 1e-12);
    assert_eq!(model.weights(&encoding), weights);
    assert_eq!(Model::from_json(&model.to_json()).expect("its own text"), model);
}

/// Of a number from 0 to 10 that is read from 2 to 4, and whose missing values, 5 by the schema, count as 3; of its logarithm likewise.
#[test]
fn a_missing_value_counts_as_the_model_says() {
    let text = format!(
        "[privacy]\n{PRIVACY}\n[target]\ncolumn = \"y\"\nclasses = [0, 1]\n[features]\nx = {{ bounds = [0, 10], log = true }}\n"
    );
    let schema = Schema::from_text(&text).expect("legal");
    let coding = Coding::of(&schema);
    let code = |share: f64| (share * f64::from(CODE_MAX)).round() as u16;
    let logarithm = |value: f64| (1.0 + value).ln() / 11f64.ln();
    let mut missing = [0; 2];
    coding.encode_cells(&[Cell::Number(5.0)], &mut missing);
    let ranges = vec![
        CodeRange::new(code(0.2), code(0.4)).with_missing(missing[0], code(0.3)),
        CodeRange::new(code(logarithm(2.0)), code(logarithm(4.0))).with_missing(missing[1], code(logarithm(3.0))),
    ];
    let encoding = Arc::new(Encoding::plain(coding.clone(), NormRule::OwnNorm).within(ranges.clone()));
    let model =
        Model::from_weights(&schema, &Fitted { encoding, weights: vec![0.0, 1.0, 2.0], covariance: None }, None);
    assert_eq!(model.encoding().ranges(), Some(&ranges[..]), "the lattice reads as the file does");
    let model = Model::from_json(&model.to_json()).expect("its own text");
    for (value, read) in [(5.0, 3.0), (5.01, 4.0), (1.0, 2.0), (3.5, 3.5)] {
        let mut raw = [0.0; 3];
        coding.raw_columns(&[Cell::Number(value)], &mut raw);
        let found = model.score(0, &raw[..]);
        assert!((found - read / 10.0 - 2.0 * logarithm(read)).abs() < 1e-3, "{value}: {found}");
    }
    for (key, value) in [("counts_as", 7.0), ("value", 4.0)] {
        let mut changed: serde_json::Value = serde_json::from_str(&model.to_json()).expect("JSON");
        changed["outputs"][0]["coefficients"][0]["missing"][key] = serde_json::json!(value);
        let error = Model::from_json(&changed.to_string()).expect_err("beyond the range, or not the schema's");
        assert!(matches!(error, ModelError::Inconsistent(_)), "{error}");
    }
}

#[test]
fn a_model_reads_back_as_written() {
    let schema = schema(PRIVACY);
    let (_, model) = fit(&schema, &engine(&schema, 300), &Asked::of("noisy-gd"), 1.0, 1);
    assert_eq!(Model::from_json(&model.to_json()).expect("its own text"), model);
}

#[test]
fn foreign_and_inconsistent_files_are_refused() {
    let schema = schema(PRIVACY);
    let (_, model) = fit(&schema, &engine(&schema, 300), &Asked::of("noisy-gd"), 1.0, 1);
    let text = model.to_json();
    let refused = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        Model::from_json(&text.replacen(from, to, 1)).expect_err("refused")
    };
    assert!(matches!(refused("\"version\": 3", "\"version\": 4"), ModelError::Version(4)));
    assert!(matches!(refused("reticent-model", "other-model"), ModelError::Format(_)));
    assert!(matches!(refused("\"column\": \"x0\"", "\"column\": \"x9\""), ModelError::Inconsistent(_)));
    for (column, range) in [(0, [4.0, 2.0]), (2, [0.0, 1.0])] {
        let mut value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        value["outputs"][0]["coefficients"][column]["range"] = serde_json::json!(range);
        let error = Model::from_json(&value.to_string()).expect_err("no range, or one of a category");
        assert!(matches!(error, ModelError::Inconsistent(_)), "{error}");
    }
    assert!(matches!(Model::from_json("{\"a\": 1}"), Err(ModelError::Format(_))));
    assert!(matches!(Model::from_json("PK\u{3}\u{4}"), Err(ModelError::Syntax(_))));
}

/// The text of a document with every key of every object doubled in turn, another value first; and with a key that means nothing.
fn with_a_key_too_many(value: &Value) -> Vec<String> {
    let object = |entries: &[(String, String)]| {
        let entries: Vec<String> = entries.iter().map(|(key, text)| format!("{}:{text}", json!(key))).collect();
        format!("{{{}}}", entries.join(","))
    };
    match value {
        Value::Object(map) => {
            let entries: Vec<_> = map.iter().map(|(key, value)| (key.clone(), value.to_string())).collect();
            let with = |key: &str, text: &str| object(&[&[(key.to_owned(), text.to_owned())], &entries[..]].concat());
            let mut texts = vec![with("claim", "{}")];
            for (place, (key, value)) in map.iter().enumerate() {
                texts.push(with(key, &value.to_string()));
                texts.push(with(key, "null"));
                for inner in with_a_key_too_many(value) {
                    let mut entries = entries.clone();
                    entries[place].1 = inner;
                    texts.push(object(&entries));
                }
            }
            texts
        }
        Value::Array(items) => {
            let mut texts = Vec::new();
            for (place, item) in items.iter().enumerate() {
                for inner in with_a_key_too_many(item) {
                    let mut items: Vec<String> = items.iter().map(Value::to_string).collect();
                    items[place] = inner;
                    texts.push(format!("[{}]", items.join(",")));
                }
            }
            texts
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

/// A figure that only people read would be checked by nothing.
#[test]
fn a_key_that_is_there_twice_or_means_nothing_is_refused() {
    let schema = schema(PRIVACY);
    let (_, model) = fit(&schema, &engine(&schema, 100), &Asked::of("noisy-gd"), 1.0, 1);
    let value: Value = serde_json::from_str(&model.to_json()).expect("JSON");
    assert_eq!(Model::from_json(&value.to_string()).expect("its own text"), model);
    let texts = with_a_key_too_many(&value);
    assert!(texts.len() > 200, "{}", texts.len());
    for text in texts {
        assert!(Model::from_json(&text).is_err(), "{text}");
    }
}

/// Whoever edits a figure of the claim has to edit the releases that it follows from, too.
#[test]
fn a_certificate_that_claims_less_than_its_releases_cost_is_refused() {
    let schema = schema(PRIVACY);
    let engine = engine(&schema, 100);
    for method in ["noisy-gd", "functional"] {
        let (_, model) = fit(&schema, &engine, &Asked::of(method), 1.0, 1);
        let sound = model.certificate.clone().expect("private");
        let is_read = |certificate: Certificate| {
            let mut edited = model.clone();
            edited.certificate = Some(certificate);
            match Model::from_json(&edited.to_json()) {
                Ok(_) => true,
                Err(ModelError::Inconsistent(what)) => {
                    assert!(what.starts_with("its certificate"), "{what}");
                    false
                }
                Err(error) => panic!("{error}"),
            }
        };
        let epsilon = |epsilon| Epsilon::new(epsilon).expect("legal");
        let less = MuSquared::from_steps(sound.mu_squared.steps() / 1000 * 999);
        let more = CertifiedRelease {
            planned: PlannedRelease { times: 200, ..sound.releases[0].planned.clone() },
            ..sound.releases[0].clone()
        };
        assert!(is_read(sound.clone()) && is_read(Certificate { epsilon: epsilon(1.01), ..sound.clone() }));
        assert!(!is_read(Certificate { epsilon: epsilon(0.99), ..sound.clone() }));
        assert!(!is_read(Certificate { mu: sound.mu * 0.99, ..sound.clone() }));
        assert!(!is_read(Certificate { mu: less.mu_up(), mu_squared: less, ..sound.clone() }));
        assert!(!is_read(Certificate { releases: [vec![more], sound.releases.clone()].concat(), ..sound.clone() }));
        assert_eq!(sound.pure_epsilon.is_some(), method == "functional");
        assert!(!is_read(Certificate { pure_epsilon: Some(0.99), ..sound.clone() }));
    }
}

#[test]
fn a_model_holds_no_private_figure() {
    let schema = schema(PRIVACY);
    let (_, model) = fit(&schema, &engine(&schema, 317), &Asked::of("noisy-gd"), 1.0, 1);
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
