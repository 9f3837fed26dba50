//! `reticent schema`: drafting and checking.

use std::path::Path;

use reticent_core::schema::Schema;
use reticent_curator::draft::{DraftOptions, draft_schema};
use serde_json::json;

use crate::args::SchemaCommand;
use crate::failure::Failure;
use crate::{files, report};

pub(super) fn run(command: &SchemaCommand) -> Result<(), Failure> {
    match command {
        SchemaCommand::Draft { data, target, public_data, header, no_header, delimiter } => {
            let options = DraftOptions {
                target: target.clone(),
                public: public_data.is_some(),
                header: if *header { Some(true) } else { no_header.then_some(false) },
                delimiter: delimiter.map(|delimiter| delimiter as u8),
            };
            files::print(&draft_schema(public_data.as_ref().unwrap_or(data), &options)?)
        }
        SchemaCommand::Check { schema, json } => check(schema, *json),
    }
}

fn check(path: &Path, as_json: bool) -> Result<(), Failure> {
    let text = files::read_text(path, "schema", files::DOCUMENT_BYTES_MAX)?;
    match Schema::from_text(&text) {
        Ok(schema) if as_json => {
            let document = json!({ "ok": true, "fingerprint": schema.fingerprint(), "schema": schema });
            files::print_json(&document)
        }
        Ok(schema) => files::print(&report::schema(&schema)),
        Err(problems) => {
            if as_json {
                let listed: Vec<_> = problems
                    .0
                    .iter()
                    .map(|problem| json!({ "line": problem.line, "place": problem.place, "message": problem.message }))
                    .collect();
                files::print_json(&json!({ "ok": false, "problems": listed }))?;
            }
            Err(Failure::Usage(format!("{}:\n{problems}", path.display())))
        }
    }
}
