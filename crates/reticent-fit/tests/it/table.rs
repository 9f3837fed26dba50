//! A generated table with a known signal, and the ways to fit it.

use reticent_core::adjacency::Relation;
use reticent_core::record::{Cell, Label};
use reticent_core::schema::Schema;
use reticent_core::units::{Delta, Epsilon};
use reticent_curator::memory_engine::MemoryEngine;
use reticent_curator::table::CodedTable;
use reticent_fit::method::{self, FitRequest};
use reticent_fit::model::Model;
use reticent_fit::options::Options;
use reticent_fit::plan::{Plan, PlanError, PrivacyClaim};
use reticent_fit::prepared_fit::{FitError, PreparedFit};
use reticent_math::fixed_sequence::FixedSequence;
use reticent_testkit::memory_ledger::MemoryLedger;
use reticent_testkit::{generate, seeded_session};

/// True log-odds of a row: strong in the first number, weak in the second, nothing in the rest.
pub(crate) fn log_odds(x0: f64, x1: f64, category: u32) -> f64 {
    0.8 * (x0 - 5.0) - 0.2 * (x1 - 5.0) + if category == 1 { 1.0 } else { 0.0 }
}

pub(crate) fn schema(privacy: &str) -> Schema {
    generate::schema(2, 1, privacy)
}

/// Rows as (cells, label), the same in every run.
pub(crate) fn rows(count: usize) -> Vec<([f64; 2], u32, bool)> {
    let mut sequence = FixedSequence::new(12345);
    let mut share = move || sequence.next_share();
    (0..count)
        .map(|_| {
            let (x0, x1, category) = (10.0 * share(), 10.0 * share(), 1 + (3.0 * share()) as u32);
            let probability = 1.0 / (1.0 + (-log_odds(x0, x1, category)).exp());
            ([x0, x1], category, share() < probability)
        })
        .collect()
}

pub(crate) fn engine(schema: &Schema, count: usize) -> MemoryEngine {
    let mut table = CodedTable::empty(schema);
    for ([x0, x1], category, class) in rows(count) {
        let cells = [Cell::Number(x0), Cell::Number(x1), Cell::Category(category)];
        table.push(&cells, Label::Class(u16::from(class)));
    }
    MemoryEngine::new(table)
}

pub(crate) fn claim(relation: Relation, epsilon: f64) -> PrivacyClaim {
    PrivacyClaim::new(relation, Epsilon::new(epsilon).expect("legal"), Delta::new(1e-6).expect("legal"))
}

/// A fit to be: the method by name, its options, a public start.
#[derive(Clone, Default)]
pub(crate) struct Asked<'a> {
    pub(crate) method: &'a str,
    pub(crate) options: Options,
    pub(crate) init: Option<&'a Model>,
}

impl<'a> Asked<'a> {
    pub(crate) fn of(method: &'a str) -> Self {
        Self { method, ..Self::default() }
    }

    pub(crate) fn with(self, option: &str, value: impl ToString) -> Self {
        Self { options: self.options.with(option, value), ..self }
    }

    pub(crate) fn prepare(&self, schema: &Schema, claim: &PrivacyClaim) -> Result<PreparedFit, PlanError> {
        let request = FitRequest { schema, claim, init: self.init, options: &self.options };
        method::prepare(Some(method::by_name(self.method).expect("a method")), &request)
    }

    pub(crate) fn plan(&self, schema: &Schema, epsilon: f64) -> Plan {
        self.prepare(schema, &claim(schema.relation(), epsilon)).expect("affordable").plan().clone()
    }
}

/// Plans, pays and fits with seeded noise.
pub(crate) fn fit(schema: &Schema, engine: &MemoryEngine, asked: &Asked<'_>, epsilon: f64, seed: u64) -> (Plan, Model) {
    let prepared = asked.prepare(schema, &claim(schema.relation(), epsilon)).expect("affordable");
    let model = pay_and_fit(schema, engine, &prepared, seed).expect("in memory");
    (prepared.plan().clone(), model)
}

/// The same of what is planned, for a table that may be refused once its public features are read: then nothing has been charged.
pub(crate) fn pay_and_fit(
    schema: &Schema,
    engine: &MemoryEngine,
    prepared: &PreparedFit,
    seed: u64,
) -> Result<Model, FitError> {
    let plan = prepared.plan();
    let mut ledger = MemoryLedger::promising(schema.relation(), None);
    let request = plan.request("table", schema);
    let mut session = seeded_session(engine, &mut ledger, schema.relation(), seed).expect("opens");
    let model = prepared.fit(&mut session, "table", schema, &mut |_| {});
    drop(session);
    if let Err(FitError::NoLabels) = model {
        assert!(ledger.charged.iter().all(|request| request.releases.is_empty()), "refused before it is paid");
    }
    let model = model?;
    assert_eq!(ledger.charged, std::slice::from_ref(&request), "one charge for the whole fit");
    let certificate = model.certificate.as_ref().expect("of a private fit");
    assert_eq!(certificate.check(), Ok(()), "an honest certificate is read");
    Ok(model)
}

/// Score of a generated row.
pub(crate) fn score(model: &Model, ([x0, x1], category, _): &([f64; 2], u32, bool)) -> f64 {
    let mut columns = [1.0, *x0, *x1, 0.0, 0.0, 0.0, 0.0];
    columns[3 + *category as usize] = 1.0;
    model.score(0, &columns)
}

/// Share of rows whose class the model gets right.
pub(crate) fn accuracy(model: &Model, count: usize) -> f64 {
    let right = |row: &([f64; 2], u32, bool)| (score(model, row) > 0.0) == row.2;
    rows(count).iter().filter(|row| right(row)).count() as f64 / count as f64
}

/// What a plan says of something.
pub(crate) fn expected(plan: &Plan, name: &str) -> f64 {
    plan.expectations.iter().find(|one| one.name == name).expect("planned").value
}
