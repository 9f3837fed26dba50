//! Combiners of party votes: everything that one party holds is replaced, by votes as hostile as a file can make them.

use std::cell::RefCell;

use proptest::prelude::*;
use reticent_core::adjacency::Adjacency;
use reticent_core::encoding::Encoding;
use reticent_core::query::VOTE_STEPS;
use reticent_core::session::Session;
use reticent_curator::party_votes::PartyVotes;
use reticent_fit::method::FitRequest;
use reticent_fit::options::Options;
use reticent_fit::party::{Auxiliary, Combiner, PartyRequest, prepare};
use reticent_fit::unit_rows::UnitRows;
use reticent_testkit::raw_table::{self, Target, Unit};
use reticent_testkit::replay::{Neighbours, Tally, World};

use super::support::{EPSILONS, cases, circumstances, claim, for_all, tell};

const ROWS: usize = 12;
/// Raw columns of the schema: intercept, two numbers, three categories and "other".
const COLUMNS: usize = 7;

/// Public rows with a spread in every column.
fn auxiliary(target: Target) -> Auxiliary {
    let rows: Vec<Vec<f64>> = (0..ROWS)
        .map(|row| {
            let mut columns = vec![0.0; COLUMNS];
            (columns[0], columns[1], columns[2]) = (1.0, (row * 7 % 11) as f64, (row % 5) as f64 / 2.0 - 1.0);
            columns[3 + row % 4] = 1.0;
            columns
        })
        .collect();
    let schema = raw_table::schema(target, Unit::Row, Adjacency::Party);
    Auxiliary::new(&schema, UnitRows::of(&schema, &rows), "public".to_owned()).expect("enough rows")
}

#[test]
fn every_combiner() {
    for target in [Target::TwoClasses, Target::ThreeClasses] {
        let schema = raw_table::schema(target, Unit::Row, Adjacency::Party);
        let auxiliary = auxiliary(target);
        let outputs = if target == Target::ThreeClasses { 3 } else { 1 };
        let vote = prop_oneof![Just(0u16), Just(VOTE_STEPS as u16), 0..=VOTE_STEPS as u16, Just(u16::MAX)];
        let of_party = prop::collection::vec(vote, ROWS * outputs);
        let all_for = prop::sample::select(vec![0u16, VOTE_STEPS as u16]);
        // Extremes: a party that votes one way on every row.
        let of_party = prop_oneof![of_party, all_for.prop_map(move |vote| vec![vote; ROWS * outputs])].boxed();
        for combiner in Combiner::ALL {
            let tally = RefCell::new(Tally::default());
            let penalty = prop_oneof![Just(0.1), Just(0.001), Just(10.0)];
            let others = prop::collection::vec(of_party.clone(), 0..4);
            let values = (others, of_party.clone(), of_party.clone(), circumstances(EPSILONS), penalty);
            let name = format!("{} on {target:?}", combiner.name());
            for_all(&name, cases(200), values, |(others, one, other, circumstances, penalty)| {
                let relation = schema.relation();
                let claim = claim(&relation, circumstances.epsilon);
                let options = match combiner {
                    Combiner::NoisyStatistic => Options::default(),
                    Combiner::SoftLabels | Combiner::Majority | Combiner::Averaging => {
                        Options::default().with("penalty", penalty)
                    }
                };
                let fit = FitRequest { schema: &schema, claim: &claim, init: None, options: &options };
                let request = PartyRequest { fit, auxiliary: &auxiliary, parties: others.len() as u64 + 1 };
                let prepared = prepare(combiner, &request).expect("affordable");
                let paid = prepared.plan().request("parties", &schema);
                assert!(paid.price_up(&relation).expect("finite") <= claim.mu_squared, "a plan within its claim");
                let with = |own: &Vec<u16>| {
                    let votes = std::iter::once(own).chain(&others).cloned().collect();
                    PartyVotes::new(&schema, outputs, ROWS, votes)
                };
                let engines = [with(&one), with(&other)];
                let none = |_: &Encoding| Vec::new();
                let neighbours = Neighbours {
                    relation: &relation,
                    left: World { engine: &engines[0], rows: &none },
                    right: World { engine: &engines[1], rows: &none },
                    seed: circumstances.seed,
                };
                let ask =
                    |session: &mut Session<'_>| format!("{:?}", prepared.fit(session, "parties", &schema, &mut |_| {}));
                neighbours.replay(&ask, &mut tally.borrow_mut());
            });
            tell(&name, &tally.borrow());
        }
    }
}
