//! The weights file that crosses between two organisations: event ids and integers, as CSV. Whoever sent it is not trusted.
//!
//! ```text
//!   # lines for people, not read
//!   id,q1,q2
//!   7f3a,1048576,0
//! ```
//! Read are the ids, the integers and the number of columns, and nothing else: bounds, norms and noise follow from the
//! integers. The format is described in `docs/reference/walr-files.md`.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use reticent_core::label_query::{EventIds, WeightList, WeightListError};
use reticent_core::public_matrix::{MatrixError, PublicMatrix};

use crate::source::{CsvTable, SourceError, UnboundTable};

/// Most columns of integers.
pub const WEIGHT_COLUMNS_MAX: usize = 1 << 16;
/// Lines for people at the beginning that are skipped.
const COMMENTS_MAX: usize = 100;
/// What stands in a comment before the origin of the rows, and where in the file the comment ends at the latest.
const ORIGIN: &str = "; made of sha256 ";
const COMMENT_BYTES_MAX: u64 = 1 << 10;
/// Name of the first column.
const ID: &str = "id";

/// A weights file that is refused, for a reason that whoever wrote it can see in it.
#[derive(Debug, thiserror::Error)]
pub enum WeightsFileError {
    /// The file cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Not the header of such a file.
    #[error(
        "the weights file does not begin with a header `id,...` of 2 to {} columns; `reticent walr prepare` writes one",
        WEIGHT_COLUMNS_MAX + 1
    )]
    Header,
    /// A row with too many or too few fields.
    #[error("row {row} of the weights file does not have {columns} integers after its id")]
    Width {
        /// Its place, counted from 1.
        row: usize,
        /// Columns of the header without the id.
        columns: usize,
    },
    /// A field that is no integer of 32 bits.
    #[error("row {row} of the weights file has a weight that is not a whole number of 32 bits")]
    Integer {
        /// Its place, counted from 1.
        row: usize,
    },
    /// Integers past their bounds.
    #[error("the weights file is refused: {0}")]
    Matrix(#[from] MatrixError),
    /// Ids that are missing or repeated.
    #[error("the weights file is refused: {0}")]
    List(#[from] WeightListError),
    /// The integers do not fit.
    #[error("not enough memory for the weights file; ask for one with fewer rows or columns")]
    OutOfMemory,
}

impl WeightsFileError {
    /// Whether the disk or the system is at fault rather than the file.
    #[must_use]
    pub fn is_io(&self) -> bool {
        match self {
            Self::Source(error) => error.is_io(),
            Self::OutOfMemory | Self::List(WeightListError::OutOfMemory) => true,
            Self::Header | Self::Width { .. } | Self::Integer { .. } | Self::Matrix(_) | Self::List(_) => false,
        }
    }
}

/// Reads and checks a weights file: unique ids, integers of 32 bits, rows of one width and of norm at most `2^20`.
///
/// # Errors
/// [`WeightsFileError`], a function of the file alone.
pub fn read_weights(path: &Path, progress: &mut dyn FnMut(u64)) -> Result<WeightList, WeightsFileError> {
    let UnboundTable::Csv(stream) = UnboundTable::open(path, true)? else { return Err(WeightsFileError::Header) };
    let mut table = CsvTable::new(path, *stream, b',');
    let mut header = None;
    for _ in 0..=COMMENTS_MAX {
        header = table.read_header()?;
        if !header.as_ref().is_some_and(|names| names[0].starts_with('#')) {
            break;
        }
    }
    let width = match header {
        Some(names) if names[0] == ID && (2..=WEIGHT_COLUMNS_MAX + 1).contains(&names.len()) => names.len(),
        Some(_) | None => return Err(WeightsFileError::Header),
    };
    let columns = width - 1;
    let (mut ids, mut values) = (EventIds::default(), Vec::<i32>::new());
    table.for_each_public(width + 2, progress, |record| {
        let row = ids.len() + 1;
        if record.fields() != Some(width) {
            return Err(WeightsFileError::Width { row, columns });
        }
        values.try_reserve(columns).map_err(|_| WeightsFileError::OutOfMemory)?;
        for field in 1..width {
            let text = std::str::from_utf8(record.field(field)).ok();
            let whole = text.filter(|text| !text.starts_with('+')).and_then(|text| text.parse().ok());
            values.push(whole.ok_or(WeightsFileError::Integer { row })?);
        }
        Ok(ids.push(record.field(0))?)
    })?;
    if ids.is_empty() {
        return Err(WeightListError::Empty.into());
    }
    Ok(WeightList::new(ids, PublicMatrix::new(columns, values)?)?)
}

/// What a weights file's comment says that its rows were made of ([`write_weights`]); `None` where it says nothing, or is packed.
///
/// For whoever made the file: nobody else has a reason to believe it.
///
/// # Errors
/// The system's, when the file cannot be read.
pub fn origin_of(path: &Path) -> io::Result<Option<String>> {
    let mut start = Vec::new();
    File::open(path)?.take(COMMENT_BYTES_MAX).read_to_end(&mut start)?;
    let line = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let comment = std::str::from_utf8(line).ok().and_then(|line| line.strip_prefix('#'));
    let origin = comment.and_then(|comment| comment.trim_end().split_once(ORIGIN));
    Ok(origin.map(|(_, origin)| origin.to_owned()))
}

/// Writes a weights file; `comment` is for people, without line breaks, and `origin` what the rows were made of.
///
/// # Errors
/// The system's, when the file cannot be written.
pub fn write_weights(list: &WeightList, comment: &str, origin: &str, sink: impl Write) -> io::Result<()> {
    let mut sink = io::BufWriter::new(sink);
    let columns = list.matrix().columns();
    writeln!(sink, "# {}{ORIGIN}{origin}", comment.replace(['\r', '\n', '"'], " "))?;
    let names: Vec<String> = (1..=columns).map(|column| format!("q{column}")).collect();
    writeln!(sink, "{ID},{}", names.join(","))?;
    for (row, id) in list.ids().iter().enumerate() {
        write_field(&mut sink, id)?;
        for value in list.matrix().row(row) {
            write!(sink, ",{value}")?;
        }
        sink.write_all(b"\n")?;
    }
    sink.flush()
}

/// A field of CSV, in quotes where it needs them.
fn write_field(sink: &mut impl Write, field: &[u8]) -> io::Result<()> {
    if !field.iter().any(|byte| b",\"\r\n".contains(byte)) {
        return sink.write_all(field);
    }
    sink.write_all(b"\"")?;
    for byte in field {
        sink.write_all(if *byte == b'"' { b"\"\"" } else { std::slice::from_ref(byte) })?;
    }
    sink.write_all(b"\"")
}
