//! Every registered method, with every word of every option, under every adjacency that it supports.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use proptest::prelude::*;
use reticent_core::adjacency::Adjacency;
use reticent_core::coding::Coding;
use reticent_core::encoding::{Encoding, NormRule};
use reticent_core::ledger::PlannedRelease;
use reticent_core::schema::Schema;
use reticent_core::session::Session;
use reticent_fit::method::{self, FitRequest, Method};
use reticent_fit::model::Model;
use reticent_fit::options::Options;
use reticent_fit::plan::{PlanError, PrivacyClaim};
use reticent_fit::prepared_fit::{Fitted, PreparedFit};
use reticent_testkit::raw_table::{self, Target, Unit};
use reticent_testkit::replay::Tally;

use super::support::{EPSILONS, cases, circumstances, claim, for_all, replay_on_tables, tell};

/// How much of it: pairs for each combination of target, unit and adjacency, and epsilons.
#[derive(Clone, Copy)]
struct Effort {
    cases: u32,
    epsilons: &'static [f64],
}

const USUAL: Effort = Effort { cases: 200, epsilons: EPSILONS };
/// Where a plan takes a second, and each of its prices a tenth.
const SLOW: Effort = Effort { cases: 50, epsilons: &[1.0] };

/// The options to try: each word alone, and few rounds where a method counts rounds.
fn variants(method: &dyn Method) -> Vec<Options> {
    let rounds = |options: Options| {
        let counted = |name: &str| method.options().iter().any(|option| option.name == name);
        let with = |options: Options, name: &str, value: u32| {
            if counted(name) { options.with(name, value) } else { options }
        };
        with(with(options, "passes", 5), "steps", 20)
    };
    let words = method
        .options()
        .iter()
        .flat_map(|option| option.choices.iter().map(|word| Options::default().with(option.name, word)));
    std::iter::once(Options::default()).chain(words).map(rounds).collect()
}

fn prepare(
    method: &'static dyn Method,
    schema: &Schema,
    claim: &PrivacyClaim,
    init: Option<&Model>,
    options: &Options,
) -> Result<PreparedFit, PlanError> {
    method::prepare(Some(method), &FitRequest { schema, claim, init, options })
}

/// A public model to start from, with a weight for each column.
fn public_model(schema: &Schema) -> Model {
    let encoding = Arc::new(Encoding::plain(Coding::of(schema), NormRule::OwnNorm));
    let weights = encoding.coding().columns().len() * method::outputs(schema);
    let weights = (0..weights).map(|place| [0.5, -1.0, 0.0, 2.0][place % 4]).collect();
    Model::from_weights(schema, &Fitted { encoding, weights, covariance: None }, None)
}

/// Schemas of rows with a place for every value and of rows that list them, by adjacency: each gets half of the pairs.
pub(super) fn schemas(target: Target, unit: Unit) -> impl Iterator<Item = (Adjacency, Schema)> {
    let both = move |adjacency| {
        [raw_table::schema(target, unit, adjacency), raw_table::listed_schema(target, unit, adjacency)]
            .map(|schema| (adjacency, schema))
    };
    Adjacency::ALL.into_iter().flat_map(both)
}

/// Replays one method wherever it can be planned; returns the adjacencies.
fn replay(method: &'static dyn Method, effort: Effort) -> Vec<Adjacency> {
    let mut supported = BTreeMap::new();
    for target in Target::ALL {
        for unit in Unit::ALL {
            for (adjacency, schema) in schemas(target, unit) {
                let public = public_model(&schema);
                let plannable = |options: &Options| {
                    [None, Some(&public)].into_iter().all(|init| {
                        match prepare(method, &schema, &claim(&schema.relation(), 1.0), init, options) {
                            Ok(_) => true,
                            Err(PlanError::Adjacency { .. } | PlanError::Target { .. } | PlanError::Parameter(_)) => {
                                false
                            }
                            Err(error) => panic!("{}: {error}", method.name()),
                        }
                    })
                };
                let options: Vec<Options> = variants(method).into_iter().filter(plannable).collect();
                if options.is_empty() {
                    continue;
                }
                let tally: &RefCell<Tally> = supported.entry(adjacency).or_default();
                let values = (
                    raw_table::pairs(target, &schema.relation()),
                    circumstances(effort.epsilons),
                    prop::sample::select(options),
                    prop::bool::weighted(0.3),
                );
                let name = format!("{} on {target:?} under {}", method.name(), schema.relation());
                // Plans take longer than fits, and there are few of them.
                let plans = RefCell::new(HashMap::new());
                for_all(&name, cases(effort.cases).div_ceil(2), values, |(pair, circumstances, options, starts)| {
                    let claim = claim(&schema.relation(), circumstances.epsilon);
                    let mut plans = plans.borrow_mut();
                    let plan = || prepare(method, &schema, &claim, starts.then_some(&public), &options).ok();
                    let prepared = plans.entry(format!("{options:?} {} {starts}", claim.epsilon)).or_insert_with(plan);
                    // A budget can be too small for some options: that is decided before a row is read.
                    let Some(prepared) = prepared else { return };
                    let request = prepared.plan().request("table", &schema);
                    let price = request.price_up(&schema.relation()).expect("planned, so it has a price");
                    // Laplace noise keeps epsilon with delta 0, which costs more mu.
                    let pure = || {
                        let of = |release: &PlannedRelease| release.pure_epsilon_up(&schema.relation());
                        request.releases.iter().map(of).sum::<Option<f64>>()
                    };
                    let within = price <= claim.mu_squared || pure().is_some_and(|pure| pure <= circumstances.epsilon);
                    assert!(within, "a plan within its claim");
                    let ask = |session: &mut Session<'_>| {
                        let mut ticks = 0;
                        let fitted = prepared.fit(session, "table", &schema, &mut |_| ticks += 1);
                        format!("{ticks} {fitted:?}")
                    };
                    replay_on_tables(&schema, &pair, circumstances, &request, &ask, &mut tally.borrow_mut());
                });
            }
        }
    }
    for (adjacency, tally) in &supported {
        tell(&format!("{} {adjacency}", method.name()), &tally.borrow());
    }
    supported.into_keys().collect()
}

const ROWS: [Adjacency; 3] = [Adjacency::AddRemove, Adjacency::Replace, Adjacency::Label];

/// One test a method, so that they run side by side; the last test knows whether one is missing.
macro_rules! methods {
    ($($test:ident: $method:path, $effort:expr, $adjacencies:expr;)*) => {
        $(
            #[test]
            fn $test() {
                assert_eq!(replay(&$method, $effort), $adjacencies);
            }
        )*

        #[test]
        fn every_registered_method_is_replayed() {
            let replayed = [$($method.name()),*];
            let registered: Vec<&str> = method::ALL.iter().map(|method| method.name()).collect();
            assert_eq!(replayed[..], registered[..], "a new method gets a line here");
        }
    };
}

methods! {
    noisy_gd: method::noisy_gd::NoisyGd, USUAL, ROWS;
    gram: method::gram::Gram, USUAL, ROWS;
    walr: method::walr::Walr, USUAL, [Adjacency::Label];
    objective_perturbation: method::objective_perturbation::ObjectivePerturbation, SLOW, ROWS;
    output_perturbation: method::output_perturbation::OutputPerturbation, USUAL, ROWS;
    functional: method::functional::Functional, USUAL, ROWS;
    noisy_gd_lecture: method::noisy_gd_lecture::NoisyGdLecture, USUAL, ROWS;
    noisy_gd_slides: method::noisy_gd_slides::NoisyGdSlides, USUAL, ROWS;
}
