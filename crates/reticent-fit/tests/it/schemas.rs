//! One schema from the rows to the model: others are refused before anything is paid.

use reticent_core::record::{Cell, Label};
use reticent_core::schema::Schema;
use reticent_core::session::SessionError;
use reticent_curator::memory_engine::MemoryEngine;
use reticent_curator::table::CodedTable;
use reticent_fit::method::{self, FitRequest};
use reticent_fit::options::Options;
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

/// `n mu` by hand: mu is .2367 at epsilon 1 and delta 1e-6, so that 600 rows have 142 and 650 have 154; 1,000 a column are 12,674 rows of three columns.
#[test]
fn the_method_is_chosen_from_public_figures() {
    let number = "bounds = [0, 1]";
    let classes = "classes = [0, 1]";
    for (adjacency, target, more, columns, expected) in [
        ("add-remove", classes, "", 2, "noisy-gd"),
        ("replace", classes, "rows = 1000000", 2, "noisy-gd"),
        ("label", classes, "rows = 100", 2, "walr"),
        ("label", classes, "rows = 100", 600, "noisy-gd"),
        ("label", number, "rows = 600", 2, "noisy-gd"),
        ("label", number, "rows = 650", 2, "walr"),
        ("label", number, "", 2, "walr"),
        ("label", number, "rows = 1000000", 600, "gram"),
        ("add-remove", number, "rows = 12500", 2, "noisy-gd"),
        ("add-remove", number, "rows = 13000", 2, "gram"),
        ("add-remove", number, "", 2, "noisy-gd"),
        ("add-remove", number, "rows = 100\nrow_norm = 1.0", 2, "gram"),
        ("replace", number, "rows = 10000000", 1500, "noisy-gd"),
    ] {
        let features: String = (0..columns).map(|column| format!("x{column} = {{ bounds = [0, 1] }}\n")).collect();
        let schema = Schema::from_text(&format!(
            "[privacy]\nunit = \"row\"\nadjacency = \"{adjacency}\"\n{more}\n[target]\ncolumn = \"y\"\n{target}\n[features]\n{features}"
        ));
        let schema = schema.unwrap_or_else(|problems| panic!("{problems}"));
        let claim = claim(schema.relation(), 1.0);
        let request = FitRequest { schema: &schema, claim: &claim, init: None, options: &Options::default() };
        let prepared = method::prepare(None, &request).expect("affordable");
        assert_eq!(prepared.plan().method, expected, "{adjacency}, {target}, {more}, {columns} columns");
    }
}

#[test]
fn a_method_that_there_is_not_is_not_automatic() {
    let error = method::by_name("nosy-gd").err().expect("there is none").to_string();
    assert!(error.contains("\"nosy-gd\"") && error.contains("noisy-gd, gram"), "{error}");
}
