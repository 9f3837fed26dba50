//! `reticent predict`: probabilities and classes, or numbers, for the rows of a table.

mod prediction_writer;

use reticent_curator::source::{Need, TableSource};
use reticent_fit::model::Task;

use self::prediction_writer::PredictionWriter;
use super::{for_each_plain, read_model};
use crate::args::PredictArguments;
use crate::failure::Failure;
use crate::files::{self, RowOutput};

/// Rows that are held before they are written.
const BATCH_ROWS: usize = 8192;

pub(super) fn run(arguments: &PredictArguments) -> Result<(), Failure> {
    files::refuse_other_format(&arguments.out, "predictions", &[".csv", ".parquet"])?;
    let mut out = RowOutput::create_beside(&arguments.out, &[&arguments.data, &arguments.model])?;
    let model = read_model(&arguments.model)?;
    let source =
        TableSource::open(&arguments.data, &model.schema, Need::Features).map_err(Failure::of_a_models_table)?;
    let mut writer = PredictionWriter::new(&arguments.out, out.writer(), &model)?;

    // One number a row, or one probability a class.
    let width = model.classes.len().max(1);
    let mut batch = Vec::with_capacity(BATCH_ROWS * width);
    let mut failed = None;
    for_each_plain(source, &model.schema, |columns, _| {
        match model.task {
            Task::Regression => batch.push(model.number(columns)),
            Task::BinaryClassification | Task::MulticlassClassification => {
                batch.extend(model.probabilities(columns));
            }
        }
        if batch.len() >= BATCH_ROWS * width {
            failed = failed.take().or_else(|| writer.write(&batch).err());
            batch.clear();
        }
    })?;
    let written = failed.map_or_else(|| writer.write(&batch), Err).and_then(|()| writer.close());
    written
        .map_err(|error| Failure::InputOutput(format!("{}: writing predictions: {error}", arguments.out.display())))?;
    out.finish()
}
