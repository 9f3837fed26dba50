//! A libsvm table, packed as the input says.

use std::sync::OnceLock;

use reticent_core::schema::Schema;

use crate::csv::packed;
use crate::table::{file, read_in_every_way, schema};

/// First byte: the schema, by its remainder by 3, and how the rest is packed, by its quotient by 3.
pub(crate) fn run(input: &[u8]) {
    let Some((choice, rest)) = input.split_first() else { return };
    let schemas = schemas();
    let choice = usize::from(*choice);
    let file = file(&packed(choice / schemas.len(), rest));
    read_in_every_way(file.path(), &schemas[choice % schemas.len()], "qid");
}

/// Every kind of feature, target and unit; values in their places, and listed.
fn schemas() -> &'static [Schema] {
    static SCHEMAS: OnceLock<Vec<Schema>> = OnceLock::new();
    SCHEMAS.get_or_init(|| {
        let of = |unit: &str, table: &str, target: &str| {
            schema(&format!(
                "[privacy]\nunit = {unit}\nadjacency = \"add-remove\"\n[table]\nformat = \"libsvm\"\n{table}\n[target]\n\
                 column = \"label\"\n{target}\n[features]\n\"1..9\" = {{ bounds = [-1, 1] }}\n\
                 12 = {{ categories = [\"a\", 1], missing = 1 }}\n30 = {{ hash_buckets = 100 }}\n0 = {{ bounds = [0, 1e6] }}\n\
                 \"40..45\" = {{ bounds = [0, 1], missing = 1 }}\n"
            ))
        };
        let unit = "{ column = \"qid\", rows_max = 2 }";
        vec![
            of("\"row\"", "", "classes = [-1, 1]"),
            of(unit, "missing = [\"0\", \"\"]", "classes = [\"a\", \"b\", [\"c\", \"0\"]]"),
            of(unit, "nonzeros_max = 3", "bounds = [-10, 10]"),
        ]
    })
}
