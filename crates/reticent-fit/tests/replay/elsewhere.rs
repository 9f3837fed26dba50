//! Labels that another organisation holds: weights with hostile integers, ids that are unknown or come twice, one unit's
//! labels changed.

use std::cell::RefCell;
use std::io::Write;

use proptest::prelude::*;
use reticent_core::encoding::Encoding;
use reticent_core::label_query::{EventIds, WeightList};
use reticent_core::ledger::Request;
use reticent_core::public_matrix::{MATRIX_NORM_MAX, PublicMatrix};
use reticent_core::schema::Schema;
use reticent_core::session::Session;
use reticent_core::units::{Delta, Epsilon};
use reticent_curator::label_engine::LabelEngine;
use reticent_curator::label_measure::{LabelTerms, ask, plan};
use reticent_curator::source::{Need, TableSource};
use reticent_testkit::replay::{Neighbours, Tally, World};
use tempfile::NamedTempFile;

use super::support::{EPSILONS, cases, circumstances, for_all, tell};

/// A row of the label holder's table: event, user, label.
type Event = (String, String, String);

fn text(rows: &[Event]) -> String {
    let lines = rows.iter().map(|(event, user, label)| format!("{event},{user},{label}\n"));
    std::iter::once("event,user,clicked\n".to_owned()).chain(lines).collect()
}

fn engine(schema: &Schema, list: &WeightList, rows: &[Event]) -> LabelEngine {
    let mut file = NamedTempFile::with_suffix(".csv").expect("a temporary file");
    file.write_all(text(rows).as_bytes()).expect("the disk takes a small table");
    let source = TableSource::open_with_ids(file.path(), schema, Need::FeaturesAndTarget, "event").expect("opens");
    LabelEngine::join(source, schema, list, 0, &mut |_| ()).expect("a whole file")
}

#[test]
fn labels_of_another_organisation() {
    let targets = [
        ("classes = [\"no\", \"yes\"]", vec!["no", "yes", "maybe", ""]),
        ("classes = [\"a\", \"b\", \"c\"]", vec!["a", "b", "c", "", "d"]),
        ("bounds = [-5, 20]", vec!["-5", "20", "1e300", "NaN", "", "x"]),
    ];
    let tally = RefCell::new(Tally::default());
    for (target, labels) in &targets {
        for unit in ["\"row\"", "{ column = \"user\", rows_max = 2 }"] {
            let schema = Schema::from_text(&format!(
                "[privacy]\nunit = {unit}\nadjacency = \"label\"\n[target]\ncolumn = \"clicked\"\n{target}\n[features]\n"
            ))
            .expect("legal");
            let by_row = unit == "\"row\"";
            let label = || prop::sample::select(labels.clone()).prop_map(str::to_owned);
            let user = prop::sample::select(vec!["u", "v", "w", ""]).prop_map(str::to_owned);
            // Events e0..e5, each known at most once or more often.
            let event = (0..8usize).prop_map(|event| format!("e{event}"));
            let rows = prop::collection::vec((event, user, label()), 0..10);
            let weight = prop_oneof![Just(0), Just(MATRIX_NORM_MAX / 2), Just(-MATRIX_NORM_MAX / 2), -9..9i32];
            let weights = prop::collection::vec(weight, 12);
            let relabelled = prop::collection::vec(label(), 10);
            let values = (rows, relabelled, any::<prop::sample::Index>(), weights, circumstances(EPSILONS));
            let name = format!("label measure, {target}, unit {unit}");
            for_all(&name, cases(500), values, |(rows, labels, changed, weights, circumstances)| {
                let ids = EventIds::of((0..6).map(|event| format!("e{event}"))).expect("ids come once");
                let matrix = PublicMatrix::new(2, weights).expect("short rows");
                let list = WeightList::new(ids, matrix).expect("as many ids as rows");
                let terms = LabelTerms {
                    schema: &schema,
                    id_column: "event",
                    unmatched: None,
                    epsilon: Epsilon::new(circumstances.epsilon).expect("legal"),
                    delta: Delta::new(1e-6).expect("legal"),
                    data: "labels.csv",
                };
                let planned = plan(&list, &terms).expect("small");
                // One row's label changes, or all labels of one user; a row without a user belongs to nobody.
                let mut other = rows.clone();
                if !rows.is_empty() {
                    let place = changed.index(rows.len());
                    let of_unit = |row: usize| row == place || !by_row && rows[row].1 == rows[place].1;
                    let relabel = |(row, (event, user, own)): (usize, &Event)| {
                        let label = if of_unit(row) { &labels[row] } else { own };
                        (event.clone(), user.clone(), label.clone())
                    };
                    other = rows.iter().enumerate().map(relabel).collect();
                }
                let engines = [engine(&schema, &list, &rows), engine(&schema, &list, &other)];
                let none = |_: &Encoding| Vec::new();
                let relation = schema.relation();
                let neighbours = Neighbours {
                    relation: &relation,
                    left: World { engine: &engines[0], rows: &none },
                    right: World { engine: &engines[1], rows: &none },
                    seed: circumstances.seed,
                };
                let request = Request {
                    purpose: "walr measure".to_owned(),
                    data: "labels".to_owned(),
                    schema: schema.fingerprint(),
                    labels: None,
                    table: None,
                    releases: planned.releases(),
                };
                let answer = |session: &mut Session<'_>| format!("{:?}", ask(&list, &planned, session, &request));
                neighbours.replay(&answer, &mut tally.borrow_mut());
            });
        }
    }
    tell("label measure", &tally.borrow());
}
