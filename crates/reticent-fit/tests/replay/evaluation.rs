//! Figures of a model on private rows.

use std::cell::RefCell;
use std::sync::Arc;

use proptest::prelude::*;
use reticent_core::adjacency::Adjacency;
use reticent_core::coding::Coding;
use reticent_core::encoding::{Encoding, NormRule};
use reticent_core::session::Session;
use reticent_fit::evaluate::private;
use reticent_testkit::raw_table::{self, Target, Unit};
use reticent_testkit::replay::Tally;

use super::methods::schemas;
use super::support::{EPSILONS, cases, circumstances, claim, for_all, replay_on_tables, tell};

#[test]
fn private_evaluation() {
    let tally = RefCell::new(Tally::default());
    for target in Target::ALL {
        let scores = if target == Target::ThreeClasses { 3 } else { 1 };
        for unit in Unit::ALL {
            let of_rows = [Adjacency::AddRemove, Adjacency::Replace, Adjacency::Label];
            for (_, schema) in schemas(target, unit).filter(|(adjacency, _)| of_rows.contains(adjacency)) {
                let coding = Coding::of(&schema);
                let columns = coding.columns().len();
                let encoding = Arc::new(Encoding::plain(coding, NormRule::OwnNorm));
                let weights = prop::collection::vec(
                    prop_oneof![Just(0.0), -3.0..3.0f64, Just(-1e6), Just(1e6)],
                    scores * columns,
                );
                let values = (raw_table::pairs(target, &schema.relation()), circumstances(EPSILONS), weights);
                let name = format!("evaluation on {target:?} under {}", schema.relation());
                for_all(&name, cases(200).div_ceil(2), values, |(pair, circumstances, weights)| {
                    let claim = claim(&schema.relation(), circumstances.epsilon);
                    let plan = private::plan(&schema, claim).expect("large enough a budget");
                    let request = plan.request("table", &schema);
                    let ask = |session: &mut Session<'_>| {
                        let grants = session.pay(&request).expect("there is no limit");
                        let figures = private::evaluate(session, grants, &plan, &schema, &encoding, &weights);
                        format!("{figures:?}")
                    };
                    replay_on_tables(&schema, &pair, circumstances, &request, &ask, &mut tally.borrow_mut());
                });
            }
        }
    }
    tell("evaluation", &tally.borrow());
}
