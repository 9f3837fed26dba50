//! `reticent predict`: probabilities and classes for the rows of a table.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, StringArray};
use arrow::record_batch::RecordBatch;
use parquet::arrow::ArrowWriter;
use reticent_core::encoding::Coding;
use reticent_curator::source::{Need, TableSource};
use reticent_fit::model::Model;

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

    let coding = Coding::of(&model.schema);
    let mut columns = vec![0.0; coding.columns().len()];
    let mut batch = Vec::with_capacity(BATCH_ROWS);
    let mut failed = None;
    let bar = progress::reading(source.bytes_total());
    source.for_each_row(&mut |bytes| bar.set_position(bytes), &mut |row| {
        coding.raw_columns(row.cells, &mut columns);
        batch.push(model.probability(&columns));
        if batch.len() == BATCH_ROWS {
            failed = failed.take().or_else(|| writer.write(&batch).err());
            batch.clear();
        }
    })?;
    bar.finish_and_clear();
    let written = failed.map_or_else(|| writer.write(&batch), Err).and_then(|()| writer.close());
    written
        .map_err(|error| Failure::InputOutput(format!("{}: writing predictions: {error}", arguments.out.display())))?;
    out.finish()
}

type WriteResult = Result<(), Box<dyn std::error::Error>>;

/// Columns: the predicted class, then the probability of each class.
struct PredictionWriter<'a> {
    classes: [String; 2],
    sink: Sink<'a>,
}

enum Sink<'a> {
    Csv(Box<csv::Writer<&'a mut std::fs::File>>),
    Parquet(Box<ArrowWriter<&'a mut std::fs::File>>),
}

impl<'a> PredictionWriter<'a> {
    fn new(place: &Path, out: &'a mut OutputFile, model: &Model) -> Result<Self, Failure> {
        let [first, last] = &model.classes[..] else {
            return Err(Failure::Usage("the model does not have two classes".to_owned()));
        };
        let classes = [first.clone(), last.clone()];
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

    fn write(&mut self, probabilities: &[f64]) -> WriteResult {
        match &mut self.sink {
            Sink::Csv(writer) => {
                for probability in probabilities {
                    let class = &self.classes[usize::from(*probability > 0.5)];
                    writer.write_record([class, &(1.0 - probability).to_string(), &probability.to_string()])?;
                }
            }
            Sink::Parquet(writer) => writer.write(&record_batch(&self.classes, probabilities)?)?,
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

fn column_names(classes: &[String; 2]) -> [String; 3] {
    let [first, last] = classes;
    ["predicted_class".to_owned(), format!("probability_{first}"), format!("probability_{last}")]
}

fn record_batch(classes: &[String; 2], probabilities: &[f64]) -> Result<RecordBatch, arrow::error::ArrowError> {
    let predicted = probabilities.iter().map(|probability| classes[usize::from(*probability > 0.5)].as_str());
    let first = probabilities.iter().map(|probability| 1.0 - probability);
    let columns: [ArrayRef; 3] = [
        Arc::new(StringArray::from_iter_values(predicted)),
        Arc::new(Float64Array::from_iter_values(first)),
        Arc::new(Float64Array::from(probabilities.to_vec())),
    ];
    RecordBatch::try_from_iter(column_names(classes).into_iter().zip(columns))
}
