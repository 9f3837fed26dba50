//! One schema from the rows to the model: others are refused before anything is paid.

use reticent_core::record::{Cell, Label};
use reticent_core::schema::Schema;
use reticent_core::session::SessionError;
use reticent_curator::memory_engine::MemoryEngine;
use reticent_curator::table::CodedTable;
use reticent_fit::method;
use reticent_fit::prepared_fit::FitError;
use reticent_testkit::memory_ledger::MemoryLedger;
use reticent_testkit::seeded_session;

use crate::table::{Asked, claim};

fn schema(rows: &str, classes: &str) -> Schema {
    Schema::from_text(&format!(
        "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n{rows}\n[target]\ncolumn = \"y\"\nclasses = {classes}\n\
         [features]\nx = {{ bounds = [0, 1] }}\n"
    ))
    .expect("legal")
}

fn engine(schema: &Schema) -> MemoryEngine {
    let mut table = CodedTable::empty(schema);
    (0..100u16).for_each(|row| table.push(&[Cell::Number(f64::from(row) / 100.0)], Label::Class(row / 50)));
    MemoryEngine::new(table)
}

/// Fits rows read by one schema, by a plan made with a second, and writes the model with a third; says how often that was paid.
fn fit(read: &Schema, planned: &Schema, written: &Schema) -> (Result<(), FitError>, usize) {
    let prepared = Asked::of("noisy-gd").prepare(planned, &claim(planned.relation(), 1.0)).expect("affordable");
    let engine = engine(read);
    let mut ledger = MemoryLedger::promising(planned.relation(), None);
    let mut session = seeded_session(&engine, &mut ledger, planned.relation(), 1).expect("opens");
    let fitted = prepared.fit(&mut session, "table", written, &mut |_| {}).map(drop);
    drop(session);
    (fitted, ledger.charged.len())
}

/// With its classes exchanged a model would fit the opposite, and nothing would look wrong.
#[test]
fn classes_cannot_be_exchanged_between_rows_plan_and_model() {
    let (one, other) = (schema("", "[\"no\", \"yes\"]"), schema("", "[\"yes\", \"no\"]"));
    for (read, planned, written) in [(&one, &one, &other), (&one, &other, &one), (&other, &one, &one)] {
        let (fitted, paid) = fit(read, planned, written);
        assert!(matches!(fitted, Err(FitError::Session(SessionError::WrongSchema))), "{fitted:?}");
        assert_eq!(paid, 0);
    }
    assert!(matches!(fit(&one, &one, &one), (Ok(()), 1)));
}

/// Where it is public it is counted, and the plan made anew with it.
#[test]
fn a_plan_may_be_for_a_counted_number_of_rows() {
    let (undeclared, counted) = (schema("", "[0, 1]"), schema("rows = 100", "[0, 1]"));
    assert!(matches!(fit(&undeclared, &counted, &undeclared), (Ok(()), 1)));
}

#[test]
fn a_method_that_there_is_not_is_not_automatic() {
    let error = method::by_name("nosy-gd").err().expect("there is none").to_string();
    assert!(error.contains("\"nosy-gd\"") && error.contains("noisy-gd, gram"), "{error}");
}
