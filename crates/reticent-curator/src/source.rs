//! Tables: opened, checked against the schema, then read row by row, or straight to codes on several threads.
//!
//! ```text
//! file ─compression─▶ bytes ─csv─▶ fields ──┐
//!      ├──libsvm────────────▶ values ───────┤
//!      └───────parquet──────▶ columns ──────┴─▶ raw values ─core::record─▶ cells, label, unit
//!
//! file ─compression─▶ bytes ─record_blocks─▶ blocks ─separators, text_coder─▶ codes, labels, units   (coding_threads)
//!      └───────parquet──────▶ columns ───────────────column_coder──────────▶ codes, labels, units   (column_threads)
//! ```
//!
//! All that can fail is public: the file, its compression, its header or footer. Everything that depends on a row's
//! values has a declared meaning instead, so that no error, message or exit code tells of a row: a field that is not
//! there is missing, a surplus field is ignored, an unreadable value is what the schema says, a row without a usable
//! target or key contributes zero. `docs/reference/bad-input.md` lists the cases.

mod coded_batch;
mod coding_threads;
mod column_coder;
mod column_threads;
mod compression;
mod csv;
mod decimal;
mod error;
mod libsvm;
mod parquet;
mod parquet_footer;
mod record_blocks;
mod row_coder;
mod separators;
mod text_coder;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use reticent_core::adjacency::{Adjacency, PrivacyUnit};
use reticent_core::contribution::{CodedLabel, UNUSABLE_LABEL};
use reticent_core::record::{Cell, FeatureReader, Label, RawValue, TargetReader};
use reticent_core::schema::{Feature, FeatureKind, Privacy, Schema, TargetKind, TextFormat, nearest_name};

use self::coded_batch::CodedBatch;
use self::coding_threads::TextCoding;
use self::column_threads::code_columns;
pub(crate) use self::compression::ByteStream;
use self::compression::Opened;
pub(crate) use self::csv::CsvTable;
pub use self::error::{NamedIn, SourceError};
use self::libsvm::LibsvmTable;
pub(crate) use self::parquet::{ParquetTable, ValueClass};
use self::row_coder::RowCoder;
use self::text_coder::TextCoder;

/// What a reader needs of each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Features, target and privacy unit: to learn or to evaluate.
    FeaturesAndTarget,
    /// Features and target of rows that are declared public: nobody is charged, so the privacy unit need not be there.
    FeaturesAndTargetOfPublicRows,
    /// Features only: to predict. Target and unit are not looked at and need not be there.
    Features,
    /// Target and privacy unit only: to answer about labels. Features are not looked at and need not be there.
    Target,
}

/// One row as read: private, and valid until the next.
pub struct Row<'a> {
    /// One cell a feature, in the schema's order.
    pub cells: &'a [Cell],
    /// The features that the row lists, where its format lists those that are not 0: all others are.
    pub given: Option<&'a [usize]>,
    /// The target; [`Label::Unusable`] when it is not needed, or when the row has no unit to be charged to.
    pub label: Label,
    /// Key of the privacy unit, trimmed, when the unit is a column; none when the row has no key.
    ///
    /// A row without a key must contribute nothing: whose it is cannot be told, so it could exceed somebody's cap. Its
    /// label is therefore unusable. A whole number has the same key in a text and in a Parquet table.
    pub unit: Option<&'a [u8]>,
    /// Event id, trimmed, when the table was opened for one ([`TableSource::open_with_ids`]); none when the row has none.
    pub id: Option<&'a [u8]>,
}

/// A table whose header or footer fits the schema, with no row read yet.
pub struct TableSource {
    bytes_total: u64,
    table: Table,
    assembler: RowAssembler,
}

impl TableSource {
    /// Opens a table of text, which may be compressed with gzip, xz or zstd, or of Parquet: told apart by their first
    /// bytes, not by the name. Whether text is delimited or libsvm's, the schema says.
    ///
    /// # Errors
    /// [`SourceError`] when the file cannot be read or does not fit the schema.
    pub fn open(path: &Path, schema: &Schema, need: Need) -> Result<Self, SourceError> {
        Self::open_wanted(path, schema, need, wanted_columns(schema, need), false)
    }

    /// The same, with a column of event ids that the schema need not name.
    ///
    /// # Errors
    /// [`SourceError`] when the file cannot be read or does not fit the schema, or has no such column.
    pub fn open_with_ids(path: &Path, schema: &Schema, need: Need, id_column: &str) -> Result<Self, SourceError> {
        let mut wanted = wanted_columns(schema, need);
        let needed_by = "--id names as the event id";
        wanted.push(WantedColumn { name: id_column, role: Role::Key, needed_by, named_in: NamedIn::IdFlag });
        Self::open_wanted(path, schema, need, wanted, true)
    }

    fn open_wanted(
        path: &Path,
        schema: &Schema,
        need: Need,
        wanted: Vec<WantedColumn<'_>>,
        with_ids: bool,
    ) -> Result<Self, SourceError> {
        let id_slot = with_ids.then(|| wanted.len() - 1);
        let (table, bytes_total) = match compression::open(path)? {
            (Opened::Text(stream), bytes_total) if schema.table().format == TextFormat::Libsvm => (
                Table::Libsvm(Box::new(LibsvmTable::new(path, stream, &wanted, needed_features(schema, need).len())?)),
                bytes_total,
            ),
            (Opened::Text(stream), bytes_total) => {
                let mut table = CsvTable::new(path, stream, schema.table().delimiter);
                let columns = resolve_text_columns(path, &mut table, schema, &wanted)?;
                table.project(columns);
                (Table::Csv(Box::new(table)), bytes_total)
            }
            (Opened::Parquet(_), _) if schema.nonzeros_max().is_some() => {
                return Err(SourceError::RowsWithoutLists { path: path.to_owned() });
            }
            (Opened::Parquet(file), bytes_total) => {
                let mut table = ParquetTable::new(path, file, bytes_total)?;
                let columns = ColumnNames { path, names: table.names(), may_be_quoted: true }.resolve(&wanted)?;
                table.project(&wanted, &columns)?;
                (Table::Parquet(Box::new(table)), bytes_total)
            }
        };
        Ok(Self { bytes_total, table, assembler: RowAssembler::new(schema, need, id_slot) })
    }

    /// Size of the file in bytes, for a progress display; 0 when it is a pipe.
    #[must_use]
    pub fn bytes_total(&self) -> u64 {
        self.bytes_total
    }

    /// Hands every row to `row`, in the file's order, and now and then the bytes read so far to `progress`.
    ///
    /// # Errors
    /// [`SourceError`] when the file turns out to be cut short or damaged, or the disk fails. Rows may have been handed
    /// over by then; nothing may be made of them.
    pub fn for_each_row(self, progress: &mut dyn FnMut(u64), row: &mut dyn FnMut(Row<'_>)) -> Result<(), SourceError> {
        let Self { table, mut assembler, .. } = self;
        match table {
            Table::Csv(table) => table.for_each(progress, |raw| assembler.assemble(raw, row)),
            Table::Libsvm(table) => {
                let bytes_read = table.for_each(|raw, bytes_read| -> Result<(), SourceError> {
                    assembler.assemble(raw, row);
                    progress(bytes_read);
                    Ok(())
                })?;
                progress(bytes_read);
                Ok(())
            }
            Table::Parquet(table) => table.for_each(progress, |raw| assembler.assemble(raw, row)),
        }
    }
}

/// Rows coded by the schema, some of a table, in its order. Private: no `Debug`.
///
/// Of the rows of one privacy unit only the first `rows_max` of the whole table are among them. Which they are depends on
/// the rows of that unit alone. Under label adjacency, where it is public which rows have a label, those without are not among them.
#[derive(Clone, Copy)]
pub struct CodedRows<'a> {
    /// Row after row, one code a slot.
    pub codes: &'a [u16],
    /// One label a row.
    pub labels: &'a [CodedLabel],
}

impl TableSource {
    /// Codes all rows, on all threads, and hands them to `rows` some at a time, in the file's order and on this thread. The
    /// memory that this takes does not grow with the table, but for the keys of privacy units. Now and then `progress` is
    /// told the bytes read so far.
    ///
    /// # Errors
    /// The first error of `rows`, which ends the reading, or [`SourceError`] when the file turns out to be cut short or
    /// damaged, or the disk fails. Rows may have been handed over by then; nothing may be made of them.
    pub fn for_each_coded<E: From<SourceError>>(
        self,
        schema: &Schema,
        progress: &mut dyn FnMut(u64),
        rows: &mut dyn FnMut(CodedRows<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Self { table, assembler, .. } = self;
        let coder = RowCoder::new(schema, assembler.readers);
        let threads = rayon::current_num_threads();
        let mut filter = RowFilter::new(schema.privacy());
        let slots = coder.coding.codes();
        let mut bytes_reported = 0;
        let mut sink = |batch: &mut CodedBatch| -> Result<(), E> {
            filter.apply(slots, batch)?;
            rows(CodedRows { codes: &batch.codes, labels: &batch.labels })?;
            if batch.bytes_read != bytes_reported {
                bytes_reported = batch.bytes_read;
                progress(bytes_reported);
            }
            Ok(())
        };
        let bytes_read = match table {
            Table::Csv(table) => {
                let (cutter, delimiter, columns) = table.into_records();
                let coder = TextCoder::new(coder, delimiter, columns);
                TextCoding { coder: &coder, threads }.run(cutter, &mut sink)?
            }
            Table::Libsvm(table) => {
                let mut batch = CodedBatch::default();
                let bytes_total = table.for_each(|raw, bytes_read| {
                    coder.code_row(raw, &mut batch);
                    batch.bytes_read = bytes_read;
                    if batch.is_full() {
                        sink(&mut batch)?;
                        batch.clear();
                    }
                    Ok::<(), E>(())
                })?;
                sink(&mut batch)?;
                bytes_total
            }
            Table::Parquet(table) => {
                code_columns(&table, &coder, threads, &mut sink)?;
                table.bytes_total()
            }
        };
        progress(bytes_read);
        Ok(())
    }
}

/// Says which rows are handed on.
struct RowFilter {
    /// Whether rows without a usable label are left out: under label adjacency it is public which they are.
    only_labelled: bool,
    /// None when every row is a unit.
    rows_max: Option<u32>,
    rows_of_unit: HashMap<Box<[u8]>, u32>,
}

impl RowFilter {
    fn new(privacy: &Privacy) -> Self {
        let rows_max = match &privacy.unit {
            PrivacyUnit::Row => None,
            PrivacyUnit::Column { rows_max, .. } => Some(*rows_max),
        };
        let only_labelled = match privacy.adjacency {
            Adjacency::Label => true,
            Adjacency::AddRemove | Adjacency::Replace | Adjacency::Party => false,
        };
        Self { only_labelled, rows_max, rows_of_unit: HashMap::new() }
    }

    /// Drops the rows that are past their unit's cap. Rows without a key have an unusable label and add nothing, however
    /// many are kept.
    fn apply(&mut self, slots: usize, batch: &mut CodedBatch) -> Result<(), SourceError> {
        if !self.only_labelled && self.rows_max.is_none() {
            return Ok(());
        }
        batch.retain(slots, |label, key| {
            if self.only_labelled && label == UNUSABLE_LABEL {
                return Ok(false);
            }
            let Some(rows_max) = self.rows_max else { return Ok(true) };
            if let Some(rows) = self.rows_of_unit.get_mut(key) {
                *rows = rows.saturating_add(1);
                return Ok(*rows <= rows_max);
            }
            // An aborting allocation would print its size, and with it the number of units.
            self.rows_of_unit.try_reserve(1).map_err(|_| SourceError::OutOfMemory)?;
            self.rows_of_unit.insert(key.into(), 1);
            Ok(rows_max >= 1)
        })
    }
}

enum Table {
    Csv(Box<CsvTable>),
    Libsvm(Box<LibsvmTable>),
    Parquet(Box<ParquetTable>),
}

/// A table of any kind before it is bound to a schema, for drafting one.
pub(crate) enum UnboundTable {
    /// At the beginning of its text, with the size of the file.
    Csv(Box<ByteStream>),
    /// With its footer read.
    Parquet(Box<ParquetTable>),
}

impl UnboundTable {
    pub(crate) fn open(path: &Path) -> Result<Self, SourceError> {
        Ok(match compression::open(path)? {
            (Opened::Text(stream), _) => Self::Csv(Box::new(stream)),
            (Opened::Parquet(file), bytes_total) => {
                Self::Parquet(Box::new(ParquetTable::new(path, file, bytes_total)?))
            }
        })
    }
}

/// The values of one row by slot: private.
pub(crate) trait RawRow {
    /// The value in a slot of the projection.
    fn value(&self, slot: usize) -> RawValue<'_>;

    /// The slots that the row lists, none twice, in a format whose rows list those that are not 0: the only one where features may
    /// be listed ([`Schema::nonzeros_max`]).
    fn given(&self) -> Option<&[usize]> {
        None
    }
}

/// What a column is read for, which decides the types it may have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A numeric feature, or a target with bounds.
    Number,
    /// A categorical feature, or a target with classes.
    Word,
    /// The privacy unit, or the event id.
    Key,
}

impl Role {
    pub(crate) fn expected(self) -> &'static str {
        match self {
            Self::Number => "a number, a boolean, a date or a time",
            Self::Word => "text, a boolean or a number",
            Self::Key => "text or a whole number",
        }
    }
}

/// A column that is looked for in the file.
pub(crate) struct WantedColumn<'s> {
    pub(crate) name: &'s str,
    pub(crate) role: Role,
    pub(crate) needed_by: &'static str,
    pub(crate) named_in: NamedIn,
}

/// The columns of a file, to find others among.
pub(crate) struct ColumnNames<'a> {
    pub(crate) path: &'a Path,
    pub(crate) names: &'a [String],
    /// Whether these are names for certain: a first line that is really a row must not be quoted.
    pub(crate) may_be_quoted: bool,
}

impl ColumnNames<'_> {
    /// Place of each wanted column in the file.
    pub(crate) fn resolve(&self, wanted: &[WantedColumn<'_>]) -> Result<Vec<usize>, SourceError> {
        let mut places: HashMap<&str, (usize, bool)> = HashMap::with_capacity(self.names.len());
        for (place, name) in self.names.iter().enumerate() {
            places.entry(name).and_modify(|(_, repeated)| *repeated = true).or_insert((place, false));
        }
        let resolve = |wanted: &WantedColumn<'_>| match places.get(wanted.name.trim_ascii()) {
            Some((place, false)) => Ok(*place),
            Some((_, true)) => Err(SourceError::DuplicateColumn {
                path: self.path.to_owned(),
                column: wanted.name.to_owned(),
                needed_by: wanted.needed_by,
            }),
            None => Err(self.missing(wanted)),
        };
        wanted.iter().map(resolve).collect()
    }

    fn missing(&self, wanted: &WantedColumn<'_>) -> SourceError {
        let names = if self.may_be_quoted { self.names } else { &[] };
        SourceError::MissingColumn {
            path: self.path.to_owned(),
            column: wanted.name.to_owned(),
            needed_by: wanted.needed_by,
            named_in: wanted.named_in,
            nearest: nearest_name(wanted.name, names.iter().map(String::as_str)).map(str::to_owned),
            columns: names.to_vec(),
        }
    }
}

/// Readers of the values of a row by slot: the features in the schema's order, then the target, then the privacy unit.
struct RowReaders {
    features: Vec<FeatureReader>,
    target: Option<TargetReader>,
    keys: Option<KeyReader>,
}

impl RowReaders {
    fn new(schema: &Schema, need: Need) -> Self {
        let features = if need == Need::Target { Vec::new() } else { schema.feature_readers() };
        let (target, keys) = match need {
            Need::Features => (None, None),
            Need::FeaturesAndTarget | Need::Target => (Some(schema.target_reader()), KeyReader::of(schema)),
            Need::FeaturesAndTargetOfPublicRows => (Some(schema.target_reader()), None),
        };
        Self { features, target, keys }
    }

    /// The label by the target alone.
    #[inline]
    fn label(&self, target: RawValue<'_>) -> Label {
        self.target.as_ref().map_or(Label::Unusable, |reader| reader.label(target))
    }

    /// The key of the privacy unit, when there is one to be read.
    #[inline]
    fn key<'a>(&self, unit: RawValue<'a>) -> Option<&'a [u8]> {
        self.keys.as_ref().and_then(|keys| keys.key(unit))
    }

    /// Label and key of a row; without a key that it should have, a row has no label.
    #[inline]
    fn label_and_key<'a>(&self, raw: &'a impl RawRow) -> (Label, Option<&'a [u8]>) {
        let target_slot = self.features.len();
        let label = self.target.as_ref().map_or(Label::Unusable, |target| target.label(raw.value(target_slot)));
        let Some(keys) = &self.keys else { return (label, None) };
        let key = keys.key(raw.value(target_slot + 1));
        (label_with_key(label, key), key)
    }
}

/// The label of a row whose unit is a column: without a key it has none, because whose row it is cannot be told.
#[inline]
fn label_with_key(label: Label, key: Option<&[u8]>) -> Label {
    if key.is_some() { label } else { Label::Unusable }
}

/// Makes rows of raw values; one buffer for all.
struct RowAssembler {
    readers: RowReaders,
    /// Slot of the event id, and how it is read.
    ids: Option<(usize, KeyReader)>,
    cells: Vec<Cell>,
    /// Cells of features that a row does not list, and the features that the last one did.
    absent: Vec<Cell>,
    given: Vec<usize>,
}

impl RowAssembler {
    fn new(schema: &Schema, need: Need, id_slot: Option<usize>) -> Self {
        let readers = RowReaders::new(schema, need);
        let absent: Vec<Cell> = readers.features.iter().map(|feature| feature.cell(RawValue::Number(0.0))).collect();
        let ids = id_slot.map(|slot| (slot, KeyReader::reading(schema)));
        Self { readers, ids, cells: absent.clone(), absent, given: Vec::new() }
    }

    #[inline]
    fn assemble<R: RawRow>(&mut self, raw: &R, row: &mut dyn FnMut(Row<'_>)) {
        match raw.given() {
            None => {
                for (slot, (cell, feature)) in self.cells.iter_mut().zip(&self.readers.features).enumerate() {
                    *cell = feature.cell(raw.value(slot));
                }
            }
            Some(given) => {
                self.given.drain(..).for_each(|slot| self.cells[slot] = self.absent[slot]);
                self.given.extend(given.iter().filter(|slot| **slot < self.cells.len()));
                for slot in &self.given {
                    self.cells[*slot] = self.readers.features[*slot].cell(raw.value(*slot));
                }
            }
        }
        let (label, unit) = self.readers.label_and_key(raw);
        let id = self.ids.as_ref().and_then(|(slot, ids)| ids.key(raw.value(*slot)));
        let given = raw.given().map(|_| &self.given[..]);
        row(Row { cells: &self.cells, given, label, unit, id });
    }
}

/// Reads the key of the privacy unit, or an event id.
struct KeyReader {
    missing: Vec<Vec<u8>>,
}

impl KeyReader {
    fn of(schema: &Schema) -> Option<Self> {
        match &schema.privacy().unit {
            PrivacyUnit::Row => None,
            PrivacyUnit::Column { .. } => Some(Self::reading(schema)),
        }
    }

    fn reading(schema: &Schema) -> Self {
        Self { missing: schema.table().missing.iter().map(|spelling| spelling.as_bytes().to_vec()).collect() }
    }

    fn key<'a>(&self, raw: RawValue<'a>) -> Option<&'a [u8]> {
        let key = match raw {
            RawValue::Text(text) => text.trim_ascii(),
            RawValue::Missing => return None,
            RawValue::Number(_) | RawValue::Boolean(_) => unreachable!("the readers hand keys over as text"),
        };
        let is_missing = key.is_empty() || self.missing.iter().any(|spelling| spelling == key);
        (!is_missing).then_some(key)
    }
}

/// The features that are read.
fn needed_features(schema: &Schema, need: Need) -> &[Feature] {
    if need == Need::Target { &[] } else { schema.features() }
}

/// Features in order, then the target, then the unit's column: the slots of a row.
fn wanted_columns(schema: &Schema, need: Need) -> Vec<WantedColumn<'_>> {
    let named_in = NamedIn::Schema;
    let features = needed_features(schema, need);
    let mut wanted = Vec::with_capacity(features.len() + 2);
    for feature in features {
        let (role, needed_by) = match &feature.kind {
            FeatureKind::Numeric { .. } => (Role::Number, "the schema lists as a feature with bounds"),
            FeatureKind::Categorical { .. } => (Role::Word, "the schema lists as a feature with categories"),
            FeatureKind::Hashed { .. } => (Role::Word, "the schema lists as a hashed feature"),
        };
        wanted.push(WantedColumn { name: &feature.name, role, needed_by, named_in });
    }
    if need != Need::Features {
        let (role, needed_by) = match &schema.target().kind {
            TargetKind::Classes(_) => (Role::Word, "the schema names as the target with classes"),
            TargetKind::Bounds { .. } => (Role::Number, "the schema names as the target with bounds"),
        };
        wanted.push(WantedColumn { name: &schema.target().column, role, needed_by, named_in });
        if let (Need::FeaturesAndTarget | Need::Target, PrivacyUnit::Column { column, .. }) =
            (need, &schema.privacy().unit)
        {
            let needed_by = "the schema names as the privacy unit";
            wanted.push(WantedColumn { name: column, role: Role::Key, needed_by, named_in });
        }
    }
    wanted
}

/// Finds the wanted columns by the header, or by the schema's own list when there is none.
fn resolve_text_columns(
    path: &Path,
    table: &mut CsvTable,
    schema: &Schema,
    wanted: &[WantedColumn<'_>],
) -> Result<Vec<usize>, SourceError> {
    let declared = schema.table().columns.as_deref();
    if !schema.table().header {
        let names = declared.expect("a schema without a header names its columns");
        return ColumnNames { path, names, may_be_quoted: true }.resolve(wanted);
    }
    let names = table.read_header()?.ok_or_else(|| SourceError::Empty { path: path.to_owned() })?;
    if let Some(declared) = declared {
        check_declared_header(path, &names, declared)?;
    }
    let is_wanted = |name: &String| wanted.iter().any(|wanted| wanted.name.trim_ascii() == name);
    if !names.iter().any(is_wanted) {
        let delimiter = schema.table().delimiter;
        return Err(SourceError::NotTheHeader {
            path: path.to_owned(),
            delimiter,
            likely_delimiter: likely_delimiter(&names, delimiter),
        });
    }
    // With a known name in it and no number this is a header and no row.
    let may_be_quoted = !names.iter().any(|name| !is_wanted(name) && is_number(name));
    ColumnNames { path, names: &names, may_be_quoted }.resolve(wanted)
}

fn check_declared_header(path: &Path, names: &[String], declared: &[String]) -> Result<(), SourceError> {
    let path = || -> PathBuf { path.to_owned() };
    if names.len() != declared.len() {
        return Err(SourceError::HeaderLength { path: path(), found: names.len(), declared: declared.len() });
    }
    let differs = |(name, declared): (&String, &String)| name != declared.trim_ascii();
    match names.iter().zip(declared).position(differs) {
        None => Ok(()),
        Some(place) => {
            Err(SourceError::HeaderDiffers { path: path(), position: place + 1, declared: declared[place].clone() })
        }
    }
}

/// A usual delimiter that occurs in the only field of the first line.
fn likely_delimiter(names: &[String], declared: u8) -> Option<u8> {
    let [only] = names else { return None };
    let occurs = |delimiter: &u8| *delimiter != declared && only.as_bytes().contains(delimiter);
    USUAL_DELIMITERS.into_iter().find(occurs)
}

/// The delimiters that tables usually have, the usual first.
pub(crate) const USUAL_DELIMITERS: [u8; 4] = *b",;\t|";

/// Whether a name is a number, which makes the line it stands in suspect of being a row.
pub(crate) fn is_number(name: &str) -> bool {
    name.parse::<f64>().is_ok_and(|number| !number.is_nan())
}

#[cfg(test)]
mod tests;
