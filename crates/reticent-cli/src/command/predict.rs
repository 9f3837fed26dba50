//! `reticent predict`: probabilities and classes, or numbers, for the rows of a table.

mod prediction_writer;

use reticent_core::coding::Coding;
use reticent_curator::source::{Need, Row, TableSource};
use reticent_fit::model::Task;
use reticent_fit::raw_columns::RawColumns;

use self::prediction_writer::PredictionWriter;
use super::read_model;
use crate::args::PredictArguments;
use crate::failure::Failure;
use crate::files::RowOutput;
use crate::{files, progress};

/// Rows that are held before they are written.
const BATCH_ROWS: usize = 8192;

pub(super) fn run(arguments: &PredictArguments) -> Result<(), Failure> {
    files::refuse_other_format(&arguments.out, "predictions", &[".csv", ".parquet"])?;
    let mut out = RowOutput::create_beside(&arguments.out, &[&arguments.data, &arguments.model])?;
    let model = read_model(&arguments.model)?;
    let source =
        TableSource::open(&arguments.data, &model.schema, Need::Features).map_err(Failure::of_a_models_table)?;
    let mut writer = PredictionWriter::new(&arguments.out, out.writer(), &model)?;

    let mut columns = RawColumns::new(Coding::of(&model.schema));
    // One number a row, or one probability a class.
    let width = model.classes.len().max(1);
    let mut batch = Vec::with_capacity(BATCH_ROWS * width);
    let mut failed = None;
    let mut predict = |row: Row<'_>| {
        columns.set(row.cells, row.given);
        match model.task {
            Task::Regression => batch.push(model.number(&columns)),
            Task::BinaryClassification | Task::MulticlassClassification => {
                batch.extend(model.probabilities(&columns));
            }
        }
        if batch.len() >= BATCH_ROWS * width {
            failed = failed.take().or_else(|| writer.write(&batch).err());
            batch.clear();
        }
    };
    progress::while_reading(source.bytes_total(), |progress| source.for_each_row(progress, &mut predict))?;
    let written = failed.map_or_else(|| writer.write(&batch), Err).and_then(|()| writer.close());
    written
        .map_err(|error| Failure::InputOutput(format!("{}: writing predictions: {error}", arguments.out.display())))?;
    out.finish()
}
