//! `reticent predict`: probabilities and classes, or numbers, for the rows of a table.

mod prediction_writer;

use reticent_core::record::Label;
use reticent_curator::source::{Need, TableSource};
use reticent_fit::model::Task;
use reticent_fit::raw_columns::RawColumns;

use self::prediction_writer::PredictionWriter;
use super::{for_each_made, read_model};
use crate::args::PredictArguments;
use crate::failure::Failure;
use crate::files::{self, RowOutput};

pub(super) fn run(arguments: &PredictArguments) -> Result<(), Failure> {
    files::refuse_other_format(&arguments.out, "predictions", &[".csv", ".parquet"])?;
    let mut out = RowOutput::create_beside(&arguments.out, &[&arguments.data, &arguments.model])?;
    let model = read_model(&arguments.model)?;
    let source =
        TableSource::open(&arguments.data, &model.schema, Need::Features).map_err(Failure::of_a_models_table)?;
    let mut writer = PredictionWriter::new(&arguments.out, out.writer(), &model)?;

    // One number a row, or one probability a class.
    let numbers_of_row = model.classes.len().max(1);
    let make = |columns: &RawColumns, _: Label, made: &mut Vec<f64>| match model.task {
        Task::Regression => made.push(model.number(columns)),
        Task::BinaryClassification | Task::MulticlassClassification => made.extend(model.probabilities(columns)),
    };
    let failed = |error: Box<dyn std::error::Error>| {
        Failure::InputOutput(format!("{}: writing predictions: {error}", arguments.out.display()))
    };
    for_each_made(source, &model.schema, numbers_of_row, make, |made| writer.write(&made).map_err(failed))?;
    writer.close().map_err(failed)?;
    out.finish()
}
