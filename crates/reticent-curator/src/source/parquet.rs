//! Tables as Parquet, read through Arrow record batches.
//!
//! The types are Parquet's own; an Arrow schema in the file's metadata is not consulted, so dictionaries arrive as
//! their values. Text is read as bytes, because a reader of text fails on a value that is not UTF-8, and an error must
//! not depend on a value. A date becomes days since 1970, a timestamp seconds since 1970, a time of day seconds since
//! midnight, a decimal the nearest float, a null a missing value.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use arrow_schema::{ArrowError, DataType, Field, Schema as ArrowSchema, TimeUnit};
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::{Compression, Encoding, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::file::metadata::{FileMetaData, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::{ChunkReader, Length};
use parquet::schema::types::{SchemaDescriptor, Type};
use reticent_core::record::{ColumnValues, RawValue};

use super::parquet_footer::{self, DeclaredPage};
use super::parquet_values::{BatchColumn, Conversion, ValueClass, column_values};
use super::row_readers::RowReaders;
use super::{RawRow, SourceError, WantedColumn};

/// Most rows decoded at a time; fewer where rows are long or texts share their beginnings.
const BATCH_ROWS: usize = 8192;
const BATCH_ROWS_OF_SHARED_TEXT: usize = 64;
/// Bytes of decoded values that the rows of a batch are to have, where the footer tells: texts stay in their pages, which a batch holds.
const BATCH_BYTES: u64 = 32 << 20;
/// A page is decompressed whole; writers end one at about a megabyte. A file may ask for 2 GiB, for each of its columns.
const PAGE_BYTES_MAX: i64 = 256 << 20;
const LARGE_PAGE: &str = "a Parquet file with a page of more than 256 MiB";
/// Where each text may be as long as its page, a batch of them must stay below that, too.
const LARGE_PAGE_OF_SHARED_TEXT: &str =
    "a Parquet file with a page of more than 4 MiB of texts that share their beginnings (DELTA_BYTE_ARRAY)";

/// A Parquet table whose footer is read.
pub(crate) struct ParquetTable {
    path: PathBuf,
    file: SharedFile,
    bytes_total: u64,
    /// Some columns, or all.
    is_encrypted: bool,
    metadata: ArrowReaderMetadata,
    names: Vec<String>,
    types: Vec<DataType>,
    /// Column of the file and how its values become raw values, for each slot of a row.
    slots: Vec<(usize, Conversion)>,
}

impl ParquetTable {
    /// Reads the footer.
    pub(crate) fn new(path: &Path, file: File, bytes_total: u64) -> Result<Self, SourceError> {
        let failed = |source| SourceError::Io { path: path.to_owned(), source };
        if !parquet_footer::is_plausible(&file).map_err(failed)? {
            return Err(SourceError::Damaged { path: path.to_owned(), format: "Parquet", reason: None });
        }
        let read_footer = || {
            let footer = ParquetMetaDataReader::new().parse_and_finish(&file)?;
            if footer.file_metadata().num_rows() < 0 || footer.row_groups().iter().any(|group| group.num_rows() < 0) {
                return Err(ParquetError::General("it has less than no rows".to_owned()));
            }
            let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
            let declared = ArrowReaderMetadata::try_new(Arc::new(footer.clone()), options)?;
            Ok((declared, read_text_as_bytes(&footer)?))
        };
        let is_encrypted = parquet_footer::has_encrypted_columns(&file).map_err(failed)?;
        let (declared, metadata) =
            without_panic(read_footer).map_err(|error| decoder_failure(path, is_encrypted, error))?;
        let names = declared.schema().fields().iter().map(|field| field.name().trim_ascii().to_owned()).collect();
        let types = read_fields(&declared).iter().map(|field| field.data_type().clone()).collect();
        let file = SharedFile::new(file);
        Ok(Self { path: path.to_owned(), file, bytes_total, is_encrypted, metadata, names, types, slots: Vec::new() })
    }

    /// Names of the columns, trimmed.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Type of a column, as Arrow names it.
    pub(crate) fn data_type(&self, column: usize) -> &DataType {
        &self.types[column]
    }

    /// Chooses the columns, one a slot of a row, and checks that their types can mean what they are wanted for.
    pub(crate) fn project(&mut self, wanted: &[WantedColumn<'_>], columns: &[usize]) -> Result<(), SourceError> {
        self.slots.clear();
        for (wanted, column) in wanted.iter().zip(columns) {
            let found = &self.types[*column];
            let conversion = Conversion::of(found, wanted.role).filter(|_| !self.is_decimal_in_bytes(*column));
            let conversion = conversion.ok_or_else(|| self.wrong_type(wanted, found))?;
            self.check_codec(*column)?;
            self.slots.push((*column, conversion));
        }
        Ok(())
    }

    fn wrong_type(&self, wanted: &WantedColumn<'_>, found: &DataType) -> SourceError {
        SourceError::ColumnType {
            path: self.path.clone(),
            column: wanted.name.to_owned(),
            found: found.to_string(),
            needed_by: wanted.needed_by,
            expected: wanted.role.expected(),
            named_in: wanted.named_in,
        }
    }

    /// Checks that chosen columns can hold what the schema lists for them: no row of a boolean column is `"yes"`.
    pub(super) fn check_spellings(&self, wanted: &[WantedColumn<'_>], readers: &RowReaders) -> Result<(), SourceError> {
        for (slot, (wanted, (column, _))) in wanted.iter().zip(&self.slots).enumerate() {
            let found = &self.types[*column];
            let Some(values) = column_values(found) else { continue };
            // A feature without a value tells nothing; a target, a unit or an id is needed.
            if values == ColumnValues::Nothing && slot >= readers.features.len() {
                return Err(self.wrong_type(wanted, found));
            }
            let (as_classes, as_categories) = match values {
                ColumnValues::Booleans => ("classes = [false, true]", "categories = [false, true]"),
                ColumnValues::WholeNumbers { .. } => (
                    "whole numbers of this type, such as classes = [0, 1]",
                    "whole numbers of this type, such as categories = [1, 2, 3]",
                ),
                ColumnValues::Decimals { .. } => (
                    "numbers of as many decimals, such as classes = [0, 1]",
                    "numbers of as many decimals, such as categories = [1, 2, 3]",
                ),
                ColumnValues::Numbers => {
                    ("numbers, such as classes = [0, 1]", "numbers, such as categories = [1, 2, 3]")
                }
                ColumnValues::Texts { .. } => ("texts of as many bytes", "texts of as many bytes"),
                ColumnValues::Nothing => continue,
            };
            if !readers.can_be_found(slot, values) {
                let is_feature = slot < readers.features.len();
                return Err(SourceError::NeverFound {
                    path: self.path.clone(),
                    column: wanted.name.to_owned(),
                    found: found.to_string(),
                    lacking: if is_feature { "none of its categories" } else { "fewer than two of its classes" },
                    remedy: if is_feature { as_categories } else { as_classes },
                });
            }
        }
        Ok(())
    }

    /// Hands every row to `visit`.
    pub(crate) fn for_each(
        self,
        progress: &mut dyn FnMut(u64),
        mut visit: impl FnMut(&ParquetRow<'_>),
    ) -> Result<(), SourceError> {
        let mut reader = self.batches(0..self.raw_slots())?;
        let mut rows_read = 0;
        while let Some((rows, columns)) = reader.next()? {
            for row in 0..rows {
                visit(&ParquetRow { columns: &columns, row });
            }
            rows_read += rows as u64;
            progress(self.bytes_of_rows(rows_read));
        }
        progress(self.bytes_total);
        Ok(())
    }

    /// Hands the raw values of all rows to `visit`, some rows at a time, while the next are decoded: twice the memory.
    pub(super) fn for_each_batch<E: From<SourceError>>(
        self,
        progress: &mut dyn FnMut(u64),
        mut visit: impl FnMut(&[BatchColumn], usize) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut reader = self.batches(0..self.raw_slots())?;
        thread::scope(|scope| {
            let (done, batches) = sync_channel(0);
            let decode = move || {
                while let Some(batch) = reader.next().transpose() {
                    // Nobody listens once the rows are not wanted any more, and after an error there are none.
                    let is_last = batch.is_err();
                    if done.send(batch).is_err() || is_last {
                        return;
                    }
                }
            };
            let spawned = thread::Builder::new().spawn_scoped(scope, decode);
            spawned.map_err(|source| SourceError::Io { path: self.path.clone(), source })?;
            let mut rows_read = 0;
            for batch in batches {
                let (rows, columns) = batch?;
                visit(&columns, rows)?;
                rows_read += rows as u64;
                progress(self.bytes_of_rows(rows_read));
            }
            progress(self.bytes_total);
            Ok(())
        })
    }

    /// Number of raw values of a row.
    pub(super) fn raw_slots(&self) -> usize {
        self.slots.len()
    }

    /// A reader of some of the raw values of all rows.
    pub(super) fn batches(&self, slots: Range<usize>) -> Result<BatchReader, SourceError> {
        let slots = self.slots[slots].to_vec();
        let batch_rows = self.batch_rows();
        let file = self.file.for_one_reader(batch_rows);
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file.clone(), self.metadata.clone());
        let mask = ProjectionMask::roots(builder.parquet_schema(), slots.iter().map(|(column, _)| *column));
        let builder = builder.with_batch_size(batch_rows).with_projection(mask);
        let is_encrypted = self.is_encrypted;
        let reader =
            without_panic(|| builder.build()).map_err(|error| decoder_failure(&self.path, is_encrypted, error))?;
        // A projection keeps the file's order of columns.
        let mut projected: Vec<usize> = slots.iter().map(|(column, _)| *column).collect();
        projected.sort_unstable();
        projected.dedup();
        let declared = self.metadata.metadata().row_groups().iter();
        let rows_left = declared.fold(0u64, |rows, group| rows.saturating_add(group.num_rows().unsigned_abs()));
        Ok(BatchReader { path: self.path.clone(), file, is_encrypted, slots, projected, rows_left, reader })
    }

    /// Rows decoded at a time: the same for all readers, whose rows are joined. No more than have [`BATCH_BYTES`] in any group of rows.
    fn batch_rows(&self) -> usize {
        let footer = self.metadata.metadata();
        let leaves = footer.file_metadata().schema_descr();
        let mut rows = BATCH_ROWS;
        for group in footer.row_groups() {
            let read = group.columns().iter().enumerate().filter(|(leaf, _)| {
                let root = leaves.get_column_root_idx(*leaf);
                self.slots.iter().any(|(column, _)| *column == root)
            });
            let mut bytes = 0u64;
            for (_, chunk) in read {
                if chunk.encodings().any(|encoding| encoding == Encoding::DELTA_BYTE_ARRAY) {
                    rows = rows.min(BATCH_ROWS_OF_SHARED_TEXT);
                }
                bytes = bytes.saturating_add(chunk.uncompressed_size().unsigned_abs());
            }
            let of_row = (bytes / group.num_rows().unsigned_abs().max(1)).max(1);
            rows = rows.min(usize::try_from(BATCH_BYTES / of_row).unwrap_or(BATCH_ROWS).max(1));
        }
        rows
    }

    /// Which part of the file so many rows are.
    pub(super) fn bytes_of_rows(&self, rows: u64) -> u64 {
        let total = u64::try_from(self.metadata.metadata().file_metadata().num_rows()).unwrap_or(0).max(1);
        (self.bytes_total as f64 * (rows.min(total) as f64 / total as f64)) as u64
    }

    /// Size of the file.
    pub(super) fn bytes_total(&self) -> u64 {
        self.bytes_total
    }

    /// Where the file is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Said when columns contradict each other.
    pub(super) fn damaged(&self) -> SourceError {
        SourceError::Damaged { path: self.path.clone(), format: "Parquet", reason: None }
    }

    /// Arrow fails on a decimal of more bytes than its type holds: an error that would depend on a value.
    fn is_decimal_in_bytes(&self, column: usize) -> bool {
        let field = &self.metadata.metadata().file_metadata().schema_descr().root_schema().get_fields()[column];
        let in_bytes = field.is_primitive() && field.get_physical_type() == PhysicalType::BYTE_ARRAY;
        in_bytes && ValueClass::of(&self.types[column]) == ValueClass::Fraction
    }

    fn check_codec(&self, column: usize) -> Result<(), SourceError> {
        let footer = self.metadata.metadata();
        let leaves = footer.file_metadata().schema_descr();
        for group in footer.row_groups() {
            for (leaf, chunk) in group.columns().iter().enumerate() {
                if leaves.get_column_root_idx(leaf) == column && chunk.compression() == Compression::LZO {
                    let (path, column) = (self.path.clone(), self.names[column].clone());
                    return Err(SourceError::Codec { path, column, codec: "LZO".to_owned() });
                }
            }
        }
        Ok(())
    }
}

/// Decodes some columns from beginning to end.
pub(super) struct BatchReader {
    path: PathBuf,
    file: SharedFile,
    is_encrypted: bool,
    slots: Vec<(usize, Conversion)>,
    /// Columns of a decoded batch, by their place in the file.
    projected: Vec<usize>,
    /// Rows that the footer declares and that have not come yet.
    rows_left: u64,
    reader: ParquetRecordBatchReader,
}

impl BatchReader {
    /// The next rows: their number, and a column for each raw value.
    pub(super) fn next(&mut self) -> Result<Option<(usize, Vec<BatchColumn>)>, SourceError> {
        let Self { path, file, is_encrypted, slots, projected, rows_left, reader } = self;
        let decode = || -> Result<Option<(usize, Vec<BatchColumn>)>, ParquetError> {
            let Some(batch) = reader.next().transpose()? else {
                // The decoder takes the last page for the end.
                return if *rows_left == 0 { Ok(None) } else { Err(ParquetError::EOF("rows are missing".to_owned())) };
            };
            *rows_left = rows_left
                .checked_sub(batch.num_rows() as u64)
                .ok_or_else(|| ParquetError::General("it has more rows than it declares".to_owned()))?;
            let convert = |(column, conversion): &(usize, Conversion)| {
                let place = projected.binary_search(column).expect("every slot's column is projected");
                conversion.convert(&batch, place)
            };
            let columns = slots.iter().map(convert).collect::<Result<Vec<BatchColumn>, ArrowError>>()?;
            Ok(Some((batch.num_rows(), columns)))
        };
        without_panic(decode).map_err(|error| {
            if let Some(found) = file.refused.get() {
                return SourceError::Unsupported {
                    path: path.clone(),
                    found,
                    remedy: "write it anew with smaller pages",
                };
            }
            decoder_failure(path, *is_encrypted, error)
        })
    }
}

/// A file that several threads read in places of their own.
#[derive(Clone)]
pub(super) struct SharedFile {
    /// Whoever has it may move its position.
    file: Arc<Mutex<File>>,
    /// Why a page was refused to this reader: the decoder does not hand the reason on.
    refused: Arc<OnceLock<&'static str>>,
    /// Rows that are decoded together.
    batch_rows: usize,
}

impl SharedFile {
    fn new(file: File) -> Self {
        Self { file: Arc::new(Mutex::new(file)), refused: Arc::default(), batch_rows: BATCH_ROWS }
    }

    /// The same file for another reader: what one of them is refused is not said of the others, in no order of threads.
    fn for_one_reader(&self, batch_rows: usize) -> Self {
        Self { file: Arc::clone(&self.file), refused: Arc::default(), batch_rows }
    }

    /// The first reason stays.
    fn refuse(&self, reason: &'static str) {
        let _ = self.refused.set(reason);
    }

    fn read_at(&self, start: u64, buffer: &mut [u8]) -> io::Result<usize> {
        // A panic while it was held can have moved the position only.
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(start))?;
        file.read(buffer)
    }
}

impl Length for SharedFile {
    fn len(&self) -> u64 {
        Length::len(&*self.file.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ChunkReader for SharedFile {
    type T = BufReader<FilePlace>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        // Used for the headers of pages, which are short.
        Ok(BufReader::with_capacity(1024, FilePlace { file: self.clone(), place: start, is_at_start: true }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        // Room is made before anything is read, whatever the header of the page says.
        if length as u64 > PAGE_BYTES_MAX.unsigned_abs() {
            self.refuse(LARGE_PAGE);
        }
        if length as u64 > Length::len(self).saturating_sub(start).min(PAGE_BYTES_MAX.unsigned_abs()) {
            return Err(ParquetError::EOF("a page is longer than the file".to_owned()));
        }
        self.file.lock().unwrap_or_else(PoisonError::into_inner).get_bytes(start, length)
    }
}

/// A reader with a place of its own in a shared file.
///
/// What is read here begins with the header of a page: data are read by [`ChunkReader::get_bytes`].
pub(super) struct FilePlace {
    file: SharedFile,
    place: u64,
    is_at_start: bool,
}

impl Read for FilePlace {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(self.place, buffer)?;
        self.place += count as u64;
        if std::mem::take(&mut self.is_at_start) {
            let page = DeclaredPage::of(&buffer[..count]);
            // A footer that says nothing of such texts has larger batches.
            let texts = self.file.batch_rows.max(BATCH_ROWS_OF_SHARED_TEXT) as i64;
            let bytes_max = if page.shares_beginnings { PAGE_BYTES_MAX / texts } else { PAGE_BYTES_MAX };
            if page.bytes > bytes_max {
                self.file.refuse(if page.shares_beginnings { LARGE_PAGE_OF_SHARED_TEXT } else { LARGE_PAGE });
            }
            if page.bytes > bytes_max || page.dictionary_entries > page.bytes {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a page declares more than it can have"));
            }
        }
        Ok(count)
    }
}

/// One row of a batch: private.
pub(crate) struct ParquetRow<'a> {
    pub(super) columns: &'a [BatchColumn],
    pub(super) row: usize,
}

impl RawRow for ParquetRow<'_> {
    #[inline]
    fn value(&self, slot: usize) -> RawValue<'_> {
        self.columns[slot].value(self.row)
    }
}

/// The same footer with its text columns declared as bytes, and those to be read as views: a view shares a dictionary's
/// one copy of a long value, however many rows hold it.
fn read_text_as_bytes(footer: &ParquetMetaData) -> Result<ArrowReaderMetadata, ParquetError> {
    let file = footer.file_metadata();
    let root = file.schema_descr().root_schema();
    let mut fields = root.get_fields().to_vec();
    for field in &mut fields {
        let is_text = field.is_primitive() && field.get_physical_type() == PhysicalType::BYTE_ARRAY;
        // A decimal may be kept in bytes, too.
        if is_text && ValueClass::of(&arrow_type(field)?) == ValueClass::Text {
            let info = field.get_basic_info();
            let builder = Type::primitive_type_builder(field.name(), PhysicalType::BYTE_ARRAY)
                .with_repetition(info.repetition())
                .with_id(info.has_id().then(|| info.id()));
            *field = Arc::new(builder.build()?);
        }
    }
    let root = Type::group_type_builder(root.name()).with_fields(fields).build()?;
    let file = FileMetaData::new(
        file.version(),
        file.num_rows(),
        file.created_by().map(str::to_owned),
        None,
        Arc::new(SchemaDescriptor::new(Arc::new(root))),
        None,
    );
    let footer = Arc::new(ParquetMetaData::new(file, footer.row_groups().to_vec()));
    let options = || ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let inferred = ArrowReaderMetadata::try_new(Arc::clone(&footer), options())?;
    let view = |field: Field| {
        let is_bytes = *field.data_type() == DataType::Binary;
        if is_bytes { field.with_data_type(DataType::BinaryView) } else { field }
    };
    let views: Vec<Field> = read_fields(&inferred).into_iter().map(view).collect();
    let schema = ArrowSchema::new_with_metadata(views, inferred.schema().metadata().clone());
    ArrowReaderMetadata::try_new(footer, options().with_schema(Arc::new(schema)))
}

/// The columns with the types as which they are read. Timestamps of 96 bits (Spark, Hive, Impala) are asked for in microseconds: in
/// nanoseconds, as Arrow has them unless told, 64 bits end in 2262, and 9999-12-31 reads as a day in 1816.
fn read_fields(footer: &ArrowReaderMetadata) -> Vec<Field> {
    let of_file = footer.parquet_schema().root_schema().get_fields();
    let read = |(field, of_file): (&Arc<Field>, &Arc<Type>)| {
        let field = field.as_ref().clone();
        let is_wide = of_file.is_primitive() && of_file.get_physical_type() == PhysicalType::INT96;
        if is_wide { field.with_data_type(DataType::Timestamp(TimeUnit::Microsecond, None)) } else { field }
    };
    footer.schema().fields().iter().zip(of_file).map(read).collect()
}

/// The Arrow type of one column of the file.
fn arrow_type(field: &Arc<Type>) -> Result<DataType, ParquetError> {
    let alone = Type::group_type_builder("alone").with_fields(vec![Arc::clone(field)]).build()?;
    let descriptor = SchemaDescriptor::new(Arc::new(alone));
    Ok(parquet::arrow::parquet_to_arrow_schema(&descriptor, None)?.field(0).data_type().clone())
}

/// Runs a step of the decoder, which panics on some damaged files: here that is damage like any other.
///
/// The panic's words are dropped. The process's panic hook still sees them, and must not print them.
fn without_panic<T>(step: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    // Whatever a panic leaves half done is dropped by the caller on the error.
    catch_unwind(AssertUnwindSafe(step))
        .unwrap_or_else(|_| Err(ParquetError::General("its structure contradicts itself".to_owned())))
}

/// Keeps the decoder's words back: they may tell of values and places, and the footer's statistics are values, too.
fn decoder_failure(path: &Path, is_encrypted: bool, error: ParquetError) -> SourceError {
    if let ParquetError::External(source) = error
        && let Ok(source) = source.downcast::<std::io::Error>()
        && source.raw_os_error().is_some()
    {
        return SourceError::Io { path: path.to_owned(), source: *source };
    }
    if is_encrypted {
        return SourceError::encrypted_parquet(path);
    }
    SourceError::Damaged { path: path.to_owned(), format: "Parquet", reason: None }
}
