//! `reticent fit-public`, and the public model that a private fit starts from: rows declared public, no ledger.

use std::path::Path;

use reticent_core::schema::Schema;
use reticent_curator::file_fingerprint::file_fingerprint;
use reticent_curator::source::Need;
use reticent_fit::model::{Model, PublicData};
use reticent_fit::public_fit;
use serde_json::json;

use super::{data_name, read_labelled, read_schema};
use crate::args::FitPublicArguments;
use crate::failure::Failure;
use crate::files::{self, OutputFile};
use crate::report;

pub(super) fn run(arguments: &FitPublicArguments) -> Result<(), Failure> {
    files::refuse_other_format(&arguments.out, "models", &[".json"])?;
    let out = OutputFile::create_beside(&arguments.out, &[&arguments.data, &arguments.schema])?;
    let schema = read_schema(&arguments.schema)?;
    let rows = read_labelled(&arguments.data, &schema, Need::FeaturesAndTargetOfPublicRows)?;
    let model = public_fit::fit(&schema, rows).map_err(|error| failed(&arguments.data, &error))?;
    let model = model.fitted_to(public_data(&arguments.data)?);
    out.write_and_finish(&model.to_json())?;
    if arguments.json {
        let document = json!({ "model": report::path_json(&arguments.out), "public_data": model.public_data });
        return files::print_json(&document);
    }
    files::print(&format!("{}Model: {}\n", report::not_private(&model), report::path_text(&arguments.out)))
}

/// The model that `--public-data` stands for: fitted to rows that are declared public, with columns scaled by their figures.
pub(super) fn start(data: &Path, schema: &Schema) -> Result<Model, Failure> {
    let rows = read_labelled(data, schema, Need::FeaturesAndTargetOfPublicRows)?;
    let model = public_fit::fit_start(schema, rows).map_err(|error| failed(data, &error))?;
    Ok(model.fitted_to(public_data(data)?))
}

fn failed(data: &Path, error: &public_fit::PublicFitError) -> Failure {
    Failure::Data(format!("{}: no model can be fitted to these rows: {error}", data.display()))
}

/// Name and SHA-256 of a file that somebody declares public.
fn public_data(data: &Path) -> Result<PublicData, Failure> {
    let sha256 =
        file_fingerprint(data).map_err(|error| Failure::input_output("reading the public table", data, &error))?;
    Ok(PublicData { file: data_name(data), sha256 })
}
