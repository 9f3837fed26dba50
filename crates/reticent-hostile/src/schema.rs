//! A schema, as TOML and as the JSON that a model carries.

use std::sync::Arc;

use reticent_core::coding::Coding;
use reticent_core::encoding::{Encoding, NormRule};
use reticent_core::record::{Cell, RawValue};
use reticent_core::schema::{ENCODED_COLUMNS_MAX, FeatureKind, Schema};
use reticent_core::units::{Delta, Epsilon};
use reticent_fit::method::{ALL, FitRequest, prepare};
use reticent_fit::options::Options;
use reticent_fit::plan::PrivacyClaim;

/// The text.
pub(crate) fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let schema = match Schema::from_text(text) {
        Ok(schema) => schema,
        Err(problems) => {
            assert!(!problems.0.is_empty() && !problems.to_string().is_empty(), "a refusal says why");
            match serde_json::from_str::<Schema>(text) {
                Ok(schema) => schema,
                Err(_) => return,
            }
        }
    };
    reads_back(&schema);
    is_used(&schema);
}

/// A schema is the same after it was written, as TOML and as JSON.
pub(crate) fn reads_back(schema: &Schema) {
    let text = schema.to_text();
    let again = Schema::from_text(&text).unwrap_or_else(|problems| panic!("{problems}\n{text}"));
    assert!(again == *schema && again.fingerprint() == schema.fingerprint(), "another schema: {text}");
    let json = serde_json::to_string(schema).expect("a schema is text and finite numbers");
    let again: Schema = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}\n{json}"));
    assert!(again == *schema, "another schema: {json}");
}

/// What a command does with a schema before it has a table.
pub(crate) fn is_used(schema: &Schema) {
    let coding = Coding::of(schema);
    let columns = coding.columns().len();
    assert!(columns == schema.encoded_columns() + 1 && columns <= ENCODED_COLUMNS_MAX + 1, "{columns} columns");
    let readers = schema.feature_readers();
    let values = [
        RawValue::Missing,
        RawValue::Number(f64::NAN),
        RawValue::Number(f64::MAX),
        RawValue::Number(-f64::MAX),
        RawValue::Number(0.5),
        RawValue::Boolean(true),
        RawValue::Text(b"1"),
        RawValue::Text(b"\xFFno number"),
    ];
    for value in values {
        let cells: Vec<Cell> = readers.iter().map(|reader| reader.cell(value)).collect();
        for (cell, feature) in cells.iter().zip(schema.features()) {
            let fits = match (cell, &feature.kind) {
                (Cell::Number(number), FeatureKind::Numeric { low, high, .. }) => (*low..=*high).contains(number),
                (Cell::Category(place), FeatureKind::Categorical { categories, .. }) => {
                    *place as usize <= categories.len()
                }
                (Cell::Category(place), FeatureKind::Hashed { buckets }) => *place as usize <= *buckets,
                (Cell::Number(_), FeatureKind::Categorical { .. } | FeatureKind::Hashed { .. })
                | (Cell::Category(_), FeatureKind::Numeric { .. }) => false,
            };
            assert!(fits, "a cell of {} is outside of its declaration", feature.name);
        }
        let mut raw = vec![f64::NAN; columns];
        coding.raw_columns(&cells, &mut raw);
        assert!(raw.iter().all(|value| value.is_finite()), "columns are finite");
        let mut codes = vec![0; coding.codes()];
        coding.encode_cells(&cells, &mut codes);
        coding.expand(&codes, &mut raw);
        assert!(raw.iter().all(|value| (-1.0..=1.0).contains(value)), "columns are within their unit");
        let (_, _) = (schema.target_reader().label(value), schema.relation().to_string());
    }
    let norm = Encoding::largest_norm(&coding, &vec![0.0; columns], &vec![1.0; columns]);
    assert!(norm.is_finite() && norm >= 1.0, "the norm of a row is {norm}");
    let _ = Arc::new(Encoding::plain(coding, NormRule::OwnNorm));
    // A plan takes memory and time by the columns.
    if columns <= COLUMNS_PLANNED {
        plan(schema);
    }
}

/// Plans every method, as `reticent plan` does.
fn plan(schema: &Schema) {
    let epsilon = Epsilon::new(1.0).expect("above 0");
    let claim = PrivacyClaim::new(schema.relation(), epsilon, Delta::new(1e-6).expect("between 0 and 1"));
    let options = Options::default();
    let request = FitRequest { schema, claim: &claim, init: None, options: &options };
    for method in std::iter::once(None).chain(ALL.map(Some)) {
        // Its search for a price takes seconds.
        if method.is_some_and(|method| method.name() == "objective-perturbation") {
            continue;
        }
        let Ok(prepared) = prepare(method, &request) else { continue };
        let plan = prepared.plan();
        for release in &plan.releases {
            assert!(release.price_up(&claim.relation).is_some(), "{} has a price", release.purpose);
        }
        serde_json::to_string(plan).expect("a plan is text and numbers");
    }
}

const COLUMNS_PLANNED: usize = 64;
