//! The file of predictions, as CSV or Parquet.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::{ArrayRef, Float64Array, StringArray};
use parquet::arrow::ArrowWriter;
use reticent_core::largest_place::largest_place;
use reticent_fit::model::Model;

use crate::failure::Failure;

/// A file, or stdout.
type Out<'a> = &'a mut (dyn Write + Send);

type WriteResult = Result<(), Box<dyn std::error::Error>>;

/// Columns: the predicted class, then the probability of each class; or the predicted number.
pub(super) struct PredictionWriter<'a> {
    classes: Vec<String>,
    sink: Sink<'a>,
}

enum Sink<'a> {
    Csv(Box<csv::Writer<Out<'a>>>),
    Parquet(Box<ArrowWriter<Out<'a>>>),
}

impl<'a> PredictionWriter<'a> {
    /// Begins the file: Parquet if its name says so, else CSV with a header.
    pub(super) fn new(place: &Path, out: Out<'a>, model: &Model) -> Result<Self, Failure> {
        let classes = model.classes.clone();
        let failed = |error: &dyn std::fmt::Display| Failure::InputOutput(format!("{}: {error}", place.display()));
        let is_parquet = place.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("parquet"));
        let sink = if is_parquet {
            let empty = record_batch(&classes, &[]).map_err(|error| failed(&error))?;
            let writer = ArrowWriter::try_new(out, empty.schema(), None).map_err(|error| failed(&error))?;
            Sink::Parquet(Box::new(writer))
        } else {
            let mut writer = csv::Writer::from_writer(out);
            writer.write_record(column_names(&classes)).map_err(|error| failed(&error))?;
            Sink::Csv(Box::new(writer))
        };
        Ok(Self { classes, sink })
    }

    /// Writes rows one after another: one number each, or one probability a class.
    pub(super) fn write(&mut self, batch: &[f64]) -> WriteResult {
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

    /// Writes what is left.
    pub(super) fn close(self) -> WriteResult {
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

fn record_batch(classes: &[String], batch: &[f64]) -> Result<RecordBatch, arrow_schema::ArrowError> {
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
