//! A model file: read, and used as commands use a model.

use reticent_fit::model::Model;

use crate::{schema, used_model};

/// The text.
pub(crate) fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match Model::from_json(text) {
        Ok(model) => {
            schema::reads_back(&model.schema);
            used_model::is_used(&model);
        }
        Err(error) => assert!(error.to_string().len() < 100_000, "a refusal is short"),
    }
}
