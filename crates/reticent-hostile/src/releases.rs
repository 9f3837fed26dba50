//! A release of labels that another organisation sent: a model is made of it, and figures.

use std::path::Path;

use reticent_core::coding::Coding;
use reticent_core::label_query::{LabelRelease, WeightList, canonical_name};
use reticent_core::public_features::PublicFeatures;
use reticent_core::query::Map;
use reticent_core::schema::Schema;
use reticent_curator::identified_rows::IdentifiedRows;
use reticent_curator::source::{Need, TableSource};
use reticent_curator::weights_file::read_weights;
use reticent_fit::labels_elsewhere;
use reticent_fit::options::Options;

use crate::table::file;
use crate::used_model;
use crate::weights::{LABELS, label_schema};

/// The text.
///
/// It is used as it is, and once more as the answer to these weights: a sender can name any question that he likes.
pub(crate) fn run(input: &[u8]) {
    let Ok(mut release) = serde_json::from_slice::<LabelRelease>(input) else { return };
    let labels = file(LABELS);
    let lists = [
        (WEIGHTS, "classes = [\"no\", \"yes\"]"),
        (WEIGHTS, "bounds = [-5, 5]"),
        (WEIGHTS, "classes = [\"a\", \"b\", \"c\"]"),
    ];
    for (weights, target) in lists {
        let weights = file(weights);
        let list = read_weights(weights.path(), &mut |_| {}).expect("a sound list");
        let schema = label_schema(target);
        fit(&release, &list, &schema, labels.path());
        if let Map::MatrixProduct { .. } = release.planned.product.shape.map() {
            let LabelRelease { label_set, schema: fingerprint, unmatched, relation, planned, .. } = &release;
            release.query = canonical_name(&list, label_set, fingerprint, *unmatched, relation, planned);
            fit(&release, &list, &schema, labels.path());
        }
    }
}

/// Weights of the rows of [`LABELS`]: as many columns as the schema's features make.
const WEIGHTS: &[u8] = b"id,q1,q2,q3,q4,q5\n1,100,3,4,5,0\n2,-7,1,0,0,0\n3,0,0,250,1,1\n4,1,1,1,1,1\nx,0,2,0,2,0\n";

fn fit(release: &LabelRelease, list: &WeightList, schema: &Schema, table: &Path) {
    let source = TableSource::open_with_ids(table, schema, Need::Features, "id").expect("a table");
    let rows = IdentifiedRows::features(source, schema, &mut |_| {}).expect("a whole table");
    let codes = rows.in_order_of(list).expect("the list's ids are in the table");
    let features = PublicFeatures::of_expanded(&Coding::of(schema), codes);
    let Ok(model) = labels_elsewhere::fit(schema, features, list, release, None, &Options::default()) else { return };
    used_model::is_used(&model);
}
