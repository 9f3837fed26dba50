//! `reticent predict`: probabilities and classes, or numbers, for the rows of a table.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, StringArray};
use arrow::record_batch::RecordBatch;
use parquet::arrow::ArrowWriter;
use reticent_core::coding::Coding;
use reticent_core::largest_place::largest_place;
use reticent_curator::source::{Need, Row, TableSource};
use reticent_fit::model::{Model, Task};
use reticent_fit::raw_columns::RawColumns;

use super::read_model;
use crate::args::PredictArguments;
use crate::failure::Failure;
use crate::files::OutputFile;
use crate::progress;

/// Rows that are held before they are written.
const BATCH_ROWS: usize = 8192;

pub(super) fn run(arguments: &PredictArguments) -> Result<(), Failure> {
    let mut out = OutputFile::create_beside(&arguments.out, &[&arguments.data, &arguments.model])?;
    let model = read_model(&arguments.model)?;
    let source = TableSource::open(&arguments.data, &model.schema, Need::Features)?;
    let mut writer = PredictionWriter::new(&arguments.out, &mut out, &model)?;

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

type WriteResult = Result<(), Box<dyn std::error::Error>>;

/// Columns: the predicted class, then the probability of each class; or the predicted number.
struct PredictionWriter<'a> {
    classes: Vec<String>,
    sink: Sink<'a>,
}

enum Sink<'a> {
    Csv(Box<csv::Writer<&'a mut std::fs::File>>),
    Parquet(Box<ArrowWriter<&'a mut std::fs::File>>),
}

impl<'a> PredictionWriter<'a> {
    fn new(place: &Path, out: &'a mut OutputFile, model: &Model) -> Result<Self, Failure> {
        let classes = model.classes.clone();
        let failed = |error: &dyn std::fmt::Display| Failure::InputOutput(format!("{}: {error}", place.display()));
        let is_parquet = place.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("parquet"));
        let sink = if is_parquet {
            let empty = record_batch(&classes, &[]).map_err(|error| failed(&error))?;
            let writer = ArrowWriter::try_new(out.writer(), empty.schema(), None).map_err(|error| failed(&error))?;
            Sink::Parquet(Box::new(writer))
        } else {
            let mut writer = csv::Writer::from_writer(out.writer());
            writer.write_record(column_names(&classes)).map_err(|error| failed(&error))?;
            Sink::Csv(Box::new(writer))
        };
        Ok(Self { classes, sink })
    }

    fn write(&mut self, batch: &[f64]) -> WriteResult {
        match &mut self.sink {
            Sink::Csv(writer) => {
                for row in batch.chunks_exact(self.classes.len().max(1)) {
                    let numbers = row.iter().map(f64::to_string);
                    let class = (!self.classes.is_empty()).then(|| self.classes[largest_place(row)].clone());
                    writer.write_record(class.into_iter().chain(numbers))?;
                }
            }
            Sink::Parquet(writer) => writer.write(&record_batch(&self.classes, batch)?)?,
        }
        Ok(())
    }

    fn close(self) -> WriteResult {
        match self.sink {
            Sink::Csv(mut writer) => writer.flush()?,
            Sink::Parquet(writer) => drop(writer.close()?),
        }
        Ok(())
    }
}

fn column_names(classes: &[String]) -> Vec<String> {
    if classes.is_empty() {
        return vec!["predicted".to_owned()];
    }
    let probabilities = classes.iter().map(|class| format!("probability_{class}"));
    std::iter::once("predicted_class".to_owned()).chain(probabilities).collect()
}

fn record_batch(classes: &[String], batch: &[f64]) -> Result<RecordBatch, arrow::error::ArrowError> {
    let width = classes.len().max(1);
    let rows = || batch.chunks_exact(width);
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(width + 1);
    if !classes.is_empty() {
        let predicted = rows().map(|row| classes[largest_place(row)].as_str());
        columns.push(Arc::new(StringArray::from_iter_values(predicted)));
    }
    for place in 0..width {
        columns.push(Arc::new(Float64Array::from_iter_values(rows().map(|row| row[place]))));
    }
    RecordBatch::try_from_iter(column_names(classes).into_iter().zip(columns))
}
