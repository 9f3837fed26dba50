//! Tables: opened, checked against the schema, then read row by row, or straight to codes on several threads.
//!
//! ```text
//! file ─compression─▶ bytes ─csv─▶ fields ──┐
//!      ├──libsvm────────────▶ values ───────┤
//!      └───────parquet──────▶ columns ──────┴─▶ raw values ─core::record─▶ cells, label, unit
//!
//! file ─compression─▶ bytes ─record_blocks─▶ blocks ─block_fields, text_coder─▶ codes, labels, units   (text_threads)
//!      │                                            └─block_records, row_workers─▶ what is made of rows (text_threads)
//!      └───────parquet──────▶ columns ───────────────column_coder────────────▶ codes, labels, units   (column_threads)
//! ```
//!
//! All that can fail is public: the file, its compression, its header or footer. Everything that depends on a row's
//! values has a declared meaning instead, so that no error, message or exit code tells of a row: a field that is not
//! there is missing, a surplus field is ignored, an unreadable value is what the schema says, a row without a usable
//! target or key contributes zero. `docs/reference/bad-input.md` lists the cases.

mod block_fields;
mod block_records;
mod coded_batch;
mod column_coder;
mod column_names;
mod column_threads;
mod compression;
mod csv;
mod error;
mod libsvm;
mod made_batch;
mod parquet;
mod parquet_footer;
mod parquet_values;
mod public_records;
mod record_blocks;
mod row_coder;
mod row_filter;
mod row_readers;
mod row_workers;
mod separators;
mod text_coder;
mod text_threads;

use std::path::Path;

use reticent_core::contribution::CodedLabel;
use reticent_core::record::{Cell, FeatureReader, Label, RawValue};
use reticent_core::schema::{Schema, TextFormat};

use self::coded_batch::CodedBatch;
pub(crate) use self::column_names::{
    ColumnNames, Role, USUAL_DELIMITERS, WantedColumn, is_number, refuse_delimiter_note,
};
use self::column_names::{needed_features, resolve_text_columns, wanted_columns};
use self::column_threads::code_columns;
pub(crate) use self::compression::ByteStream;
use self::compression::Opened;
pub(crate) use self::csv::CsvTable;
pub use self::error::{NamedIn, SourceError};
use self::libsvm::LibsvmTable;
use self::made_batch::{MadeBatch, for_each_made_of_text, rows_at_once};
pub(crate) use self::parquet::ParquetTable;
pub(crate) use self::parquet_values::ValueClass;
pub(crate) use self::public_records::PublicRecord;
use self::row_coder::RowCoder;
pub(crate) use self::row_filter::RowFilter;
use self::row_readers::RowAssembler;
use self::row_workers::{RowWorker, TextRows, share_rows};
use self::text_coder::TextCoder;
use self::text_threads::{Batch, TextThreads};

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
    /// The features this row names (libsvm): each feature not named is 0. None in formats that give every value.
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
    /// Whether columns lie in pages of their own, one of each of which is read at a time: so it is with Parquet.
    #[must_use]
    pub fn has_pages(&self) -> bool {
        matches!(self.table, Table::Parquet(_))
    }

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
        let assembler = RowAssembler::new(schema, need, id_slot);
        let is_header = schema.table().header && schema.table().format == TextFormat::Delimited;
        let (table, bytes_total) = match compression::open(path, is_header)? {
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
                table.check_spellings(&wanted, &assembler.readers)?;
                (Table::Parquet(Box::new(table)), bytes_total)
            }
        };
        Ok(Self { bytes_total, table, assembler })
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
        let Self { table, assembler, .. } = self;
        let mut room = assembler.room();
        match table {
            Table::Csv(table) => table.for_each(progress, |raw| assembler.assemble(raw, &mut room, row)),
            Table::Libsvm(table) => {
                let bytes_read = table.for_each(|raw, bytes_read| -> Result<(), SourceError> {
                    assembler.assemble(raw, &mut room, row);
                    progress(bytes_read);
                    Ok(())
                })?;
                progress(bytes_read);
                Ok(())
            }
            Table::Parquet(table) => table.for_each(progress, |raw| assembler.assemble(raw, &mut room, row)),
        }
    }

    /// Makes something of every row, on all threads (of libsvm on this one), and hands what was made of some rows after another to
    /// `take`, in the file's order and on this thread. Each thread begins with a `worker` of its own, which adds a row to what it makes of those before it: about
    /// `numbers_of_row` numbers, by which it is decided how many rows are waited for. The memory that this takes does not grow with
    /// the table. Now and then `progress` is told the bytes read so far.
    ///
    /// # Errors
    /// The first error of `take`, which ends the reading, or [`SourceError`] as of [`Self::for_each_row`].
    pub fn for_each_made<T, W, E>(
        self,
        numbers_of_row: usize,
        progress: &mut dyn FnMut(u64),
        worker: &(impl Fn() -> W + Sync),
        take: &mut dyn FnMut(T) -> Result<(), E>,
    ) -> Result<(), E>
    where
        T: Default + Send,
        W: FnMut(Row<'_>, &mut T) + Send,
        E: From<SourceError>,
    {
        let Self { table, assembler, .. } = self;
        let rows_at_once = rows_at_once(numbers_of_row);
        let worker_with = || RowWorker::new(&assembler, worker());
        match table {
            Table::Csv(table) => {
                let (cutter, delimiter, columns) = table.into_records();
                let reader = &TextRows::new(&assembler, delimiter, columns, rows_at_once, worker);
                for_each_made_of_text(reader, cutter, progress, take)
            }
            Table::Libsvm(table) => {
                let (mut worker, mut batch) = (worker_with(), MadeBatch::default());
                let bytes_read = table.for_each(|raw, bytes_read| -> Result<(), E> {
                    worker.add(raw, &mut batch);
                    if batch.rows() >= rows_at_once {
                        take(batch.take()?)?;
                        progress(bytes_read);
                    }
                    Ok(())
                })?;
                take(batch.take()?)?;
                progress(bytes_read);
                Ok(())
            }
            Table::Parquet(table) => {
                let workers = (0..rayon::current_num_threads()).map(|_| (worker_with(), MadeBatch::default()));
                let mut workers: Vec<_> = workers.collect();
                table.for_each_batch(progress, |columns, rows| {
                    share_rows(columns, rows, rows_at_once, &mut workers, take)
                })
            }
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

/// Rows as [`CodedRows`], but that there may be more of a privacy unit than its cap: whoever takes them counts. Private: no `Debug`.
#[derive(Clone, Copy)]
pub struct UncappedRows<'a> {
    /// Row after row, one code a slot.
    pub codes: &'a [u16],
    /// One label a row.
    pub labels: &'a [CodedLabel],
    /// Keys of the privacy units, one after another. Rows without a key have an empty one, and count as one unit.
    pub keys: &'a [u8],
    /// Where each row's key ends.
    pub key_ends: &'a [usize],
}

impl<'a> UncappedRows<'a> {
    /// One key a row.
    pub fn unit_keys(self) -> impl Iterator<Item = &'a [u8]> {
        let starts = [0].into_iter().chain(self.key_ends.iter().copied());
        starts.zip(self.key_ends).map(move |(start, end)| &self.keys[start..*end])
    }
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
        self.for_each_batch(schema, RowFilter::new(schema.privacy()), progress, &mut |batch| {
            rows(CodedRows { codes: &batch.codes, labels: &batch.labels })
        })
    }

    /// The same without the cap on the rows of a privacy unit, in memory that does not grow with the keys either.
    ///
    /// # Errors
    /// As [`Self::for_each_coded`].
    pub fn for_each_uncapped<E: From<SourceError>>(
        self,
        schema: &Schema,
        progress: &mut dyn FnMut(u64),
        rows: &mut dyn FnMut(UncappedRows<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let filter = RowFilter::without_cap(schema.privacy());
        self.for_each_batch(schema, filter, progress, &mut |batch| rows(batch.uncapped()))
    }

    fn for_each_batch<E: From<SourceError>>(
        self,
        schema: &Schema,
        mut filter: RowFilter,
        progress: &mut dyn FnMut(u64),
        rows: &mut dyn FnMut(&CodedBatch) -> Result<(), E>,
    ) -> Result<(), E> {
        let Self { table, assembler, .. } = self;
        let coder = RowCoder::new(schema, assembler.readers);
        let threads = rayon::current_num_threads();
        let slots = coder.coding.codes();
        let mut bytes_reported = 0;
        let mut sink = |batch: &mut CodedBatch| -> Result<(), E> {
            filter.apply(slots, batch)?;
            rows(batch)?;
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
                TextThreads { reader: &coder, threads }.run(cutter, &mut sink)?
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

enum Table {
    Csv(Box<CsvTable>),
    Libsvm(Box<LibsvmTable>),
    Parquet(Box<ParquetTable>),
}

/// A table of any kind before it is bound to a schema, for drafting one.
pub(crate) enum UnboundTable {
    /// At the beginning of its text.
    Csv(Box<ByteStream>),
    /// With its footer read.
    Parquet(Box<ParquetTable>),
}

impl UnboundTable {
    /// `is_header`: whether the first line of a text is one.
    pub(crate) fn open(path: &Path, is_header: bool) -> Result<Self, SourceError> {
        Ok(match compression::open(path, is_header)? {
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

    /// What the reader of a slot makes of it.
    #[inline]
    fn cell(&self, slot: usize, reader: &FeatureReader) -> Cell {
        reader.cell(self.value(slot))
    }

    /// The slots this row names, none twice (libsvm, the only format with [`Schema::nonzeros_max`]): each feature not named is 0.
    /// None in formats that give every value.
    fn given(&self) -> Option<&[usize]> {
        None
    }
}

#[cfg(test)]
mod tests;
