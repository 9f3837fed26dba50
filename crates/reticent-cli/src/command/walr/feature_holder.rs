//! The side that has features and asks: weights out, models and figures from the answer. No ledger is opened here.

use std::path::Path;

use reticent_core::coding::Coding;
use reticent_core::label_query::{EventIds, LabelRelease, NOT_PROTECTED, WeightList, WeightListError};
use reticent_core::public_features::PublicFeatures;
use reticent_core::public_matrix::PublicMatrix;
use reticent_core::record::Cell;
use reticent_core::schema::Schema;
use reticent_curator::identified_rows::{IdentifiedRows, IdentifiedRowsError, fingerprint, fingerprint_of};
use reticent_curator::source::{Need, TableSource};
use reticent_curator::weights_file;
use reticent_fit::evaluate::labels::{LabelQuestions, LabelQuestionsError};
use reticent_fit::labels_elsewhere::{self, ElsewhereError};
use reticent_fit::model::Model;
use reticent_fit::plan::PrivacyClaim;
use reticent_fit::raw_columns::RawColumns;
use serde_json::json;

use super::super::{read_model, read_schema};
use super::{privacy_json, privacy_text, read_weights, unmatched_json, unmatched_text};
use crate::args::{
    AnsweredArguments, WalrEvaluateArguments, WalrFitArguments, WalrPrepareArguments, WalrPrepareEvaluationArguments,
};
use crate::failure::Failure;
use crate::files::OutputFile;
use crate::{files, progress, report};

pub(super) fn prepare(arguments: &WalrPrepareArguments) -> Result<(), Failure> {
    files::refuse_other_format(&arguments.out, "weights", &[".csv"])?;
    let out = OutputFile::create_beside(&arguments.out, &[&arguments.data, &arguments.schema])?;
    let schema = read_schema(&arguments.schema)?;
    let rows = read_features(&arguments.data, &schema, &arguments.id)?;
    let features = PublicFeatures::of_expanded(&Coding::of(&schema), rows.numbers);
    let claim = PrivacyClaim::new(schema.relation(), arguments.epsilon, arguments.delta);
    let origin = fingerprint(&schema, &features);
    let matrix = labels_elsewhere::weights(&schema, features, &claim, &arguments.solver.0)?;
    let list = list_of(rows.ids, matrix, &arguments.data, &arguments.id)?;
    write_weights(out, &arguments.out, &list, ["weights of a regression", &origin], arguments.json)
}

pub(super) fn prepare_evaluation(arguments: &WalrPrepareEvaluationArguments) -> Result<(), Failure> {
    files::refuse_other_format(&arguments.out, "weights", &[".csv"])?;
    let out = OutputFile::create_beside(&arguments.out, &[&arguments.data, &arguments.model])?;
    let model = read_model(&arguments.model)?;
    let rows = read_scores(&arguments.data, &model, &arguments.id)?;
    let questions = questions_of(&model, &rows.numbers, &arguments.data)?;
    let scores = rows.numbers.chunks_exact(model.outputs.len());
    let origin = fingerprint_of(&model.schema, scores.map(|row| row.iter().copied()));
    let list = list_of(rows.ids, questions.into_matrix(), &arguments.data, &arguments.id)?;
    write_weights(out, &arguments.out, &list, ["weights of an evaluation", &origin], arguments.json)
}

pub(super) fn fit(arguments: &WalrFitArguments) -> Result<(), Failure> {
    files::refuse_other_format(&arguments.out, "models", &[".json"])?;
    let mut inputs =
        vec![arguments.data.as_path(), &arguments.schema, &arguments.answered.weights, &arguments.answered.release];
    inputs.extend(arguments.init.as_deref());
    let out = OutputFile::create_beside(&arguments.out, &inputs)?;
    let schema = read_schema(&arguments.schema)?;
    let init = arguments.init.as_deref().map(read_model).transpose()?;
    let Answered { release, list, numbers } =
        Answered::read(&arguments.answered, |id| read_features(&arguments.data, &schema, id))?;
    let features = PublicFeatures::of_expanded(&Coding::of(&schema), numbers);
    check_origin(&arguments.answered.weights, &fingerprint(&schema, &features))?;
    let model = labels_elsewhere::fit(&schema, features, &list, &release, init.as_ref(), &arguments.solver.0)
        .map_err(|error| unfit_release(&arguments.answered, error))?;
    out.write_and_finish(&model.to_json())?;
    let certificate = model.certificate.as_ref().expect("a release has a certificate");
    if arguments.json {
        let document = json!({ "model": report::path_json(&arguments.out), "certificate": certificate, "not_protected": NOT_PROTECTED });
        return files::print_json(&document);
    }
    files::print(&format!(
        "{}\nModel: {}\n",
        report::Claim::of_certificate(certificate, model.schema.privacy().rows).text(),
        report::path_text(&arguments.out)
    ))
}

pub(super) fn evaluate(arguments: &WalrEvaluateArguments) -> Result<(), Failure> {
    let model = read_model(&arguments.model)?;
    let Answered { release, list, numbers: scores } =
        Answered::read(&arguments.answered, |id| read_scores(&arguments.data, &model, id))?;
    let questions = questions_of(&model, &scores, &arguments.data)?;
    if questions.matrix() != list.matrix().as_ref() {
        return Err(Failure::Data(format!(
            "{}: these weights were not made of this model and this table by `walr prepare-evaluation`",
            arguments.answered.weights.display()
        )));
    }
    labels_elsewhere::check_target(&model.schema, &release)
        .map_err(|error| unfit_release(&arguments.answered, error))?;
    let released = release.values_for(&list).map_err(|error| unfit_release(&arguments.answered, error.into()))?;
    let evaluation = questions.evaluate(&released, release.noise_standard_deviation());
    if arguments.json {
        let mut document = report::evaluation_json(&evaluation);
        document["privacy"] = privacy_json(&release);
        document["unmatched"] = unmatched_json(&release);
        return files::print_json(&document);
    }
    files::print(&format!(
        "{}\nRows without a usable label count as {}\n\n{}",
        report::evaluation(&evaluation),
        unmatched_text(&release)?,
        privacy_text(&release)
    ))
}

/// An answer, the question that it is to, and what was made of its rows in their order.
struct Answered<N> {
    release: LabelRelease,
    list: WeightList,
    numbers: Vec<N>,
}

impl<N: Copy + Default + Send + 'static> Answered<N> {
    fn read(
        files: &AnsweredArguments,
        read_rows: impl FnOnce(&str) -> Result<IdentifiedRows<N>, Failure>,
    ) -> Result<Self, Failure> {
        let release = read_release(&files.release)?;
        let list = read_weights(&files.weights)?;
        let unknown = |error| Failure::Data(format!("{}: {error}", files.weights.display()));
        let numbers = read_rows(&files.id)?.in_order_of(&list).map_err(unknown)?;
        Ok(Self { release, list, numbers })
    }
}

fn read_features(data: &Path, schema: &Schema, id: &str) -> Result<IdentifiedRows<u16>, Failure> {
    read_rows(data, schema, id, |source, progress| IdentifiedRows::features(source, schema, progress))
}

/// The scores that a model gives each row: no more of a row is needed to ask how good it is.
fn read_scores(data: &Path, model: &Model, id: &str) -> Result<IdentifiedRows<f64>, Failure> {
    let coding = Coding::of(&model.schema);
    let scorer = || {
        let mut columns = RawColumns::new(&coding);
        move |cells: &[Cell], scores: &mut [f64]| {
            columns.set(cells, None);
            scores.iter_mut().enumerate().for_each(|(output, score)| *score = model.score(output, &columns));
        }
    };
    read_rows(data, &model.schema, id, |source, progress| {
        IdentifiedRows::read(source, [model.outputs.len(), LabelQuestions::columns_most(model)], progress, scorer)
    })
}

fn read_rows<N>(
    data: &Path,
    schema: &Schema,
    id: &str,
    read: impl FnOnce(TableSource, &mut dyn FnMut(u64)) -> Result<IdentifiedRows<N>, IdentifiedRowsError>,
) -> Result<IdentifiedRows<N>, Failure> {
    let source = TableSource::open_with_ids(data, schema, Need::Features, id)?;
    let rows = progress::while_reading(source.bytes_total(), |progress| read(source, progress));
    rows.map_err(|error| match error {
        IdentifiedRowsError::Source(error) => error.into(),
        IdentifiedRowsError::Size(error) => Failure::Data(format!("{}: {error}", data.display())),
    })
}

fn read_release(path: &Path) -> Result<LabelRelease, Failure> {
    let text = files::read_text(path, "release", files::DOCUMENT_BYTES_MAX)?;
    serde_json::from_str(&text).map_err(|error| {
        let message = "this is not a release of labels, which `reticent walr measure` writes";
        Failure::Data(format!("{}: {message}: {error}", path.display()))
    })
}

/// Names the release where it is what does not fit.
fn unfit_release(files: &AnsweredArguments, error: ElsewhereError) -> Failure {
    let named = format!("{}: {error}", files.release.display());
    match error {
        ElsewhereError::Release(_) | ElsewhereError::Estimate(_) => Failure::Data(named),
        ElsewhereError::Target { .. } => Failure::Usage(named),
        ElsewhereError::Adjacency(_)
        | ElsewhereError::Plan(_)
        | ElsewhereError::Solver
        | ElsewhereError::Features(_) => error.into(),
    }
}

/// Refuses features that the weights were not made of: labels would be taken for those of other rows. Weights whose comment is gone are taken
/// as they are.
fn check_origin(weights: &Path, found: &str) -> Result<(), Failure> {
    let origin = weights_file::origin_of(weights)
        .map_err(|error| Failure::input_output("reading the weights", weights, &error))?;
    match origin {
        Some(origin) if origin != found => Err(Failure::Data(format!(
            "{}: these weights were not made of this table with this schema; name those that `walr prepare` had, or prepare and \
             measure anew",
            weights.display()
        ))),
        Some(_) | None => Ok(()),
    }
}

/// A list of weights that were just made: what is wrong with it is wrong with the table's column of ids.
fn list_of(ids: Vec<Box<[u8]>>, matrix: PublicMatrix, data: &Path, id: &str) -> Result<WeightList, Failure> {
    EventIds::of(ids).and_then(|ids| WeightList::new(ids, matrix)).map_err(|error| {
        let finding = match error {
            WeightListError::Repeated { row } => format!("row {row} has the id of an earlier row"),
            WeightListError::NoId { row } => format!("row {row} has no id, or what the schema reads as a missing value"),
            WeightListError::Empty | WeightListError::Length { .. } | WeightListError::OutOfMemory => {
                return Failure::Data(format!("{}: {error}", data.display()));
            }
        };
        Failure::Data(format!(
            "{}: the column {id:?} does not name events: {finding}; give every row an id of its own, or name another column with \
             --id",
            data.display()
        ))
    })
}

fn questions_of(model: &Model, scores: &[f64], data: &Path) -> Result<LabelQuestions, Failure> {
    LabelQuestions::of(model, scores).map_err(|error| match error {
        LabelQuestionsError::Regression => Failure::usage(error),
        LabelQuestionsError::Scores | LabelQuestionsError::Size => {
            Failure::Data(format!("{}: {error}", data.display()))
        }
    })
}

fn write_weights(
    mut out: OutputFile,
    place: &Path,
    list: &WeightList,
    [what, origin]: [&str; 2],
    as_json: bool,
) -> Result<(), Failure> {
    let (rows, columns) = (list.matrix().rows(), list.matrix().columns());
    let comment = format!("{what} by reticent {}: {rows} rows, {columns} columns", env!("CARGO_PKG_VERSION"));
    weights_file::write_weights(list, &comment, origin, out.writer())
        .map_err(|error| Failure::input_output("writing the weights", place, &error))?;
    out.finish()?;
    if as_json {
        let document = json!({
            "weights": report::path_json(place), "rows": rows, "columns": columns, "not_protected": NOT_PROTECTED,
        });
        return files::print_json(&document);
    }
    files::print(&format!(
        "Weights: {} ({rows} rows, {columns} columns)\n\
         Whoever gets this file learns the event ids and the weights, which are made of the features.\n\
         {NOT_PROTECTED}\n",
        report::path_text(place)
    ))
}
