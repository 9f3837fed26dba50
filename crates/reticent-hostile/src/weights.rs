//! A weights file that another organisation sent: read, written, and answered from labels.

use reticent_core::label_query::WeightList;
use reticent_core::ledger::{Account, LedgerError, LedgerReference, LedgerStore, Request};
use reticent_core::schema::Schema;
use reticent_core::session::Session;
use reticent_core::units::{Delta, Epsilon};
use reticent_curator::label_engine::LabelEngine;
use reticent_curator::label_measure::{LabelTerms, ask, plan};
use reticent_curator::source::{Need, TableSource};
use reticent_curator::weights_file::{read_weights, write_weights};

use crate::table::{file, schema};

/// The file.
pub(crate) fn run(input: &[u8]) {
    let weights = file(input);
    let Ok(list) = read_weights(weights.path(), &mut |_| {}) else { return };
    reads_back(&list);
    for target in ["classes = [\"no\", \"yes\"]", "classes = [\"a\", \"b\", \"c\"]", "bounds = [-5, 5]"] {
        answer(&list, &label_schema(target));
    }
}

fn reads_back(list: &WeightList) {
    let mut text = Vec::new();
    write_weights(list, "a comment", "an origin", &mut text).expect("memory is written");
    let file = file(&text);
    let again = read_weights(file.path(), &mut |_| {});
    let again = again.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&text)));
    assert!(again.ids() == list.ids() && again.matrix() == list.matrix(), "another list");
}

/// A schema of labels alone, with some features for who has them.
pub(crate) fn label_schema(target: &str) -> Schema {
    schema(&format!(
        "[privacy]\nunit = {{ column = \"person\", rows_max = 2 }}\nadjacency = \"label\"\nrows_max = 1000\n[target]\n\
         column = \"y\"\n{target}\n[features]\na = {{ bounds = [-10, 10] }}\njob = {{ categories = [\"clerk\", \"cook\"] }}\n"
    ))
}

/// Rows that some lists are about.
pub(crate) const LABELS: &[u8] =
    b"id,person,y,a,job\n1,p,yes,3,clerk\n2,p,no,-3,cook\n3,q,1,0.5,x\n4,,b,9,clerk\n5,r,c,,cook\nx,s,yes,1,clerk\n";

/// What the label holder does.
fn answer(list: &WeightList, schema: &Schema) {
    let terms = LabelTerms {
        schema,
        id_column: "id",
        unmatched: None,
        epsilon: Epsilon::new(1.0).expect("above 0"),
        delta: Delta::new(1e-6).expect("between 0 and 1"),
        data: "labels.csv",
    };
    let Ok(planned) = plan(list, &terms) else { return };
    let labels = file(LABELS);
    let source = TableSource::open_with_ids(labels.path(), schema, Need::FeaturesAndTarget, "id").expect("a table");
    let engine = LabelEngine::join(source, schema, list, 0, &mut |_| {}).expect("a whole table");
    let mut ledger = AccountInMemory(Account::promising([schema.relation()], None));
    let request = Request {
        purpose: "walr measure".to_owned(),
        data: terms.data.to_owned(),
        schema: schema.fingerprint(),
        labels: None,
        table: None,
        releases: planned.releases(),
    };
    let mut session = Session::open(&engine, &mut ledger, schema.relation()).expect("a promised relation");
    let (_, released) = ask(list, &planned, &mut session, &request).expect("the engine of this list, and no limit");
    assert_eq!(released.integers.len(), planned.product.shape.coordinates() as usize, "one number a question");
}

/// The rules of a ledger, for one run.
pub(crate) struct AccountInMemory(pub(crate) Account);

impl LedgerStore for AccountInMemory {
    fn account(&self) -> Result<Account, LedgerError> {
        Ok(self.0.clone())
    }

    fn charge(&mut self, request: &Request) -> Result<(), LedgerError> {
        Ok(self.0.book(request)?)
    }

    fn last_entry(&self) -> Option<LedgerReference> {
        Some(LedgerReference { id: "memory".to_owned(), entry: 1, seal: None })
    }
}
