//! `reticent demo`: the main job on a real census table, with the non-private figure beside it.

use std::path::{Path, PathBuf};

use reticent_core::ledger::LedgerStore;
use reticent_core::units::Delta;
use reticent_curator::ledger_file::LedgerFile;
use reticent_curator::memory_engine::MemoryEngine;
use reticent_curator::source::Need;
use reticent_fit::evaluate::{Evaluation, public};
use reticent_fit::public_fit;
use serde_json::json;
use tempfile::TempDir;

use super::evaluate::evaluate_public;
use super::ledger_place::ledger_beside;
use super::storage::StoredRows;
use super::{data_name, fit, open_private, plan, read_labelled, read_private};
use crate::args::{DemoArguments, FitRequest};
use crate::failure::Failure;
use crate::files::{self, OutputFile};
use crate::interrupt;
use crate::method_choice::MethodChoice;
use crate::report;

const TABLE: &[u8] = include_bytes!("../../../../examples/adult/adult.csv.xz");
const SCHEMA: &str = include_str!("../../../../examples/adult/adult.toml");

/// Rows of the official training file, which come first; the rest is the official test file.
const TRAINING_ROWS: usize = 32_561;

pub(super) fn run(arguments: &DemoArguments) -> Result<(), Failure> {
    // Removed at the end.
    let temporary = arguments.keep.is_none().then(temporary_folder).transpose()?;
    let folder = match (&arguments.keep, &temporary) {
        (Some(folder), _) => {
            std::fs::create_dir_all(folder)
                .map_err(|error| Failure::input_output("making the folder", folder, &error))?;
            folder
        }
        (None, temporary) => temporary.as_ref().expect("it was made where nothing is kept").path(),
    };
    let files = DemoFiles::write(folder)?;
    let schema = super::read_schema(&files.schema)?;
    let request = FitRequest {
        schema: files.schema.clone(),
        epsilon: arguments.epsilon,
        delta: Delta::new((TRAINING_ROWS as f64).powi(-2)).expect("between 0 and 1"),
        init: None,
        public_data: None,
        choice: MethodChoice::auto(),
    };

    let ledger_path = ledger_beside(&files.training).expect("a file was written");
    let mut ledger = LedgerFile::open_or_create(&ledger_path, &[schema.relation()].into())?;
    let rows = read_private(open_private(&files.training, &schema)?, &schema)?;
    let rows = StoredRows::Memory(MemoryEngine::new(rows));
    let prepared = plan::plan(&request, &schema)?;
    let private = fit::fit(&rows, &data_name(&files.training), &prepared, &schema, &mut ledger)?;
    OutputFile::create(&files.model)?.write_and_finish(&private.to_json())?;
    // The demo's table is public.
    let training = read_labelled(&files.training, &schema, Need::FeaturesAndTarget)?;
    let test = read_labelled(&files.test, &schema, Need::FeaturesAndTarget)?;
    let base = base_rate(training.labels(), test.labels());
    let open =
        public_fit::fit(&schema, training).map_err(|error| Failure::Data(format!("the non-private fit: {error}")))?;

    let (private_figures, open_figures) =
        (evaluate_public(&files.test, &private)?, evaluate_public(&files.test, &open)?);
    let account = ledger.account()?;
    if arguments.json {
        let mut document = json!({
            "private": report::evaluation_json(&private_figures),
            "non_private": report::evaluation_json(&open_figures),
            "base_rate": report::evaluation_json(&base),
            "certificate": private.certificate,
        });
        // Without --keep it is gone by now.
        if arguments.keep.is_some() {
            document["ledger"] = report::account_json(&ledger_path, &account, request.delta);
        }
        return files::print_json(&document);
    }
    let certificate = private.certificate.as_ref().expect("a private fit has a certificate");
    let mut text = String::from(
        "UCI Adult: does a person earn more than 50,000 dollars? Fitted to 32,561 rows, measured on 16,281 others.\n\n",
    );
    text.push_str(&report::comparison(&[
        ("private", &private_figures),
        ("non-private", &open_figures),
        ("base rate", &base),
    ]));
    text.push('\n');
    text.push_str(&report::Claim::of_certificate(certificate, private.schema.privacy().rows).text());
    text.push('\n');
    if arguments.keep.is_some() {
        text.push_str(&report::account(&ledger_path, &account, request.delta));
        text.push_str(&format!("\nNext: reticent show {}\n", report::path_text(&files.model)));
    } else {
        text.push_str("Next: reticent demo --keep demo, then reticent show demo/model.json\n");
    }
    files::print(&text)
}

fn temporary_folder() -> Result<TempDir, Failure> {
    interrupt::begin(tempfile::tempdir).map_err(|error| {
        // The error itself names the folder that was to be made, which nobody has asked for.
        let failure = Failure::input_output("making a temporary folder", &std::env::temp_dir(), &error.kind().into());
        failure.with_remedy("set TMPDIR to a folder that can be written, or name one with --keep")
    })
}

struct DemoFiles {
    training: PathBuf,
    test: PathBuf,
    schema: PathBuf,
    model: PathBuf,
}

impl DemoFiles {
    /// Unpacks the table into its official training and test part.
    fn write(folder: &Path) -> Result<Self, Failure> {
        let files = Self {
            training: folder.join("adult-train.csv"),
            test: folder.join("adult-test.csv"),
            schema: folder.join("adult.toml"),
            model: folder.join("model.json"),
        };
        let mut table = String::new();
        std::io::Read::read_to_string(&mut liblzma::read::XzDecoder::new(TABLE), &mut table)
            .expect("the table is part of the program");
        let header_end = table.find('\n').expect("the table has a header") + 1;
        let (header, rows) = table.split_at(header_end);
        let split = rows.match_indices('\n').nth(TRAINING_ROWS - 1).expect("the table is complete").0 + 1;
        let (training, test) = rows.split_at(split);
        OutputFile::create(&files.training)?.write_and_finish(&format!("{header}{training}"))?;
        OutputFile::create(&files.test)?.write_and_finish(&format!("{header}{test}"))?;
        OutputFile::create(&files.schema)?.write_and_finish(SCHEMA)?;
        Ok(files)
    }
}

/// What predicting the training rows' share for everybody scores.
fn base_rate(training: &[f64], test: &[f64]) -> Evaluation {
    let rate = training.iter().sum::<f64>() / training.len() as f64;
    let score = (rate / (1.0 - rate)).ln();
    let scored: Vec<(f64, bool)> = test.iter().map(|class| (score, *class > 0.5)).collect();
    public::evaluate_binary(&scored)
}
