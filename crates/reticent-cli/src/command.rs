//! One module a command.

mod audit;
mod demo;
mod evaluate;
mod fit;
mod fit_public;
mod ledger;
mod ledger_place;
mod party;
mod plan;
mod predict;
mod schema;
mod show;
mod storage;
mod walr;

use std::path::Path;

use reticent_core::coding::Coding;
use reticent_core::ledger::Request;
use reticent_core::record::Label;
use reticent_core::schema::Schema;
use reticent_curator::ledger_file::LedgerFile;
use reticent_curator::source::{Need, Row, SourceError, TableSource};
use reticent_curator::table::CodedTable;
use reticent_fit::labelled_rows::LabelledRows;
use reticent_fit::model::{MODEL_BYTES_MAX, Model};
use reticent_fit::raw_columns::RawColumns;

use self::ledger_place::LedgerPlace;
use self::storage::{Storage, StoredRows};
use crate::args::Command;
use crate::failure::Failure;
use crate::{files, progress};

/// Runs a command to its end.
pub(crate) fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Fit(arguments) => fit::run(arguments),
        Command::FitPublic(arguments) => fit_public::run(arguments),
        Command::Plan(arguments) => plan::run(arguments),
        Command::Predict(arguments) => predict::run(arguments),
        Command::Evaluate(arguments) => evaluate::run(arguments),
        Command::Show(arguments) => show::run(arguments),
        Command::Walr(command) => walr::run(command),
        Command::Ledger(command) => ledger::run(command),
        Command::Schema(command) => schema::run(command),
        Command::Party(command) => party::run(command),
        Command::Audit(arguments) => audit::tables(arguments),
        Command::Demo(arguments) => demo::run(arguments),
    }
}

fn read_schema(path: &Path) -> Result<Schema, Failure> {
    let text = files::read_text(path, "schema", files::DOCUMENT_BYTES_MAX)?;
    Schema::from_text(&text).map_err(|problems| Failure::Usage(format!("{}:\n{problems}", path.display())))
}

fn read_model(path: &Path) -> Result<Model, Failure> {
    let text = files::read_text(path, "model", MODEL_BYTES_MAX)?;
    Model::from_json(&text).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
}

/// Opens a table of private rows: its header or metadata is checked, no row is read.
fn open_private(data: &Path, schema: &Schema) -> Result<TableSource, Failure> {
    Ok(TableSource::open(data, schema, Need::FeaturesAndTarget)?)
}

/// Reads the rows into codes.
fn read_private(source: TableSource, schema: &Schema) -> Result<CodedTable, SourceError> {
    progress::while_reading(source.bytes_total(), |progress| CodedTable::read(source, schema, progress))
}

/// Reads rows as plain numbers, one after the other: they are public, or a party's own.
fn read_plain(
    data: &Path,
    schema: &Schema,
    need: Need,
    mut take: impl FnMut(&RawColumns, Label),
) -> Result<(), Failure> {
    let source = TableSource::open(data, schema, need)?;
    let coding = Coding::of(schema);
    let mut columns = RawColumns::new(&coding);
    let mut take = |row: Row<'_>| {
        columns.set(row.cells, row.given);
        take(&columns, row.label);
    };
    Ok(progress::while_reading(source.bytes_total(), |progress| source.for_each_row(progress, &mut take))?)
}

/// The same of the rows whose label can be used.
fn read_labelled(data: &Path, schema: &Schema, need: Need) -> Result<LabelledRows, Failure> {
    let mut rows = LabelledRows::new(schema).map_err(Failure::usage)?;
    read_plain(data, schema, need, |columns, label| {
        if let Some(label) = label.number() {
            rows.add(columns, label);
        }
    })?;
    Ok(rows)
}

/// Makes something of each row of an open table, as plain numbers, on all threads, and hands on in order what was made of some: about
/// `numbers_of_row` numbers of each.
fn for_each_made<T: Default + Send>(
    source: TableSource,
    schema: &Schema,
    numbers_of_row: usize,
    make: impl Fn(&RawColumns, Label, &mut T) + Sync,
    mut take: impl FnMut(T) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let coding = Coding::of(schema);
    let worker = || {
        let mut columns = RawColumns::new(&coding);
        let make = &make;
        move |row: Row<'_>, made: &mut T| {
            columns.set(row.cells, row.given);
            make(&columns, row.label, made);
        }
    };
    let bytes = source.bytes_total();
    progress::while_reading(bytes, |progress| source.for_each_made(numbers_of_row, progress, &worker, &mut take))
}

/// Reads the private rows, and opens the ledger that is to pay for a request about them.
///
/// What the ledger refuses is refused before a row is read, which may take long; only a table that can be read gets a ledger beside it.
fn read_with_ledger(
    data: &Path,
    schema: &Schema,
    place: &LedgerPlace,
    storage: &Storage,
    request: &Request,
) -> Result<(StoredRows, LedgerFile), Failure> {
    let source = open_private(data, schema)?;
    let existing = place.open_existing(request, &schema.relation())?;
    let rows = StoredRows::read(source, schema, storage)?;
    Ok((rows, place.or_beside(existing, schema.relation())?))
}

/// How the owner's ledger names a table: the file's name without its folder.
fn data_name(data: &Path) -> String {
    data.file_name().map_or_else(|| "-".to_owned(), |name| name.to_string_lossy().into_owned())
}
