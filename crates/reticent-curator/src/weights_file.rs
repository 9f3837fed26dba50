//! The weights file that crosses between two organisations: event ids and integers, as CSV. Whoever sent it is not trusted.
//!
//! ```text
//!   # lines for people: 1 rows
//!   id,q1,q2
//!   7f3a,1048576,0
//! ```
//! Read are the ids, the integers and the number of columns: bounds, norms and noise follow from the integers. How many rows the lines for people tell of
//! is compared, so that a file that was cut short on its way is not paid for. The format is described in `docs/reference/walr-files.md`.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use rayon::prelude::*;
use reticent_core::label_query::{EventIds, WeightList, WeightListError};
use reticent_core::public_matrix::{MatrixError, PublicMatrix};

use crate::source::{CsvTable, PublicRecord, SourceError, UnboundTable};

/// Most columns of integers.
pub const WEIGHT_COLUMNS_MAX: usize = 1 << 16;
/// Lines for people at the beginning that are skipped.
const COMMENTS_MAX: usize = 100;
/// Numbers that a thread makes text of at a time.
const TEXT_NUMBERS: usize = 1 << 16;
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
    /// Fewer rows than there were, or more; or no end of the last line.
    #[error(
        "the weights file tells of {told} rows and has {found}{}: it was cut short or changed on its way; ask for it again",
        if told == found { ", of which the last does not end" } else { "" }
    )]
    Rows {
        /// Rows by its first lines.
        told: usize,
        /// Rows that are there.
        found: usize,
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
            Self::Header
            | Self::Width { .. }
            | Self::Integer { .. }
            | Self::Rows { .. }
            | Self::Matrix(_)
            | Self::List(_) => false,
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
    let (mut header, mut told) = (None, None);
    for _ in 0..=COMMENTS_MAX {
        header = table.read_header()?;
        match &header {
            Some(names) if names[0].starts_with('#') => told = told.or_else(|| rows_told_of(&names[0])),
            Some(_) | None => break,
        }
    }
    let width = match header {
        Some(names) if names[0] == ID && (2..=WEIGHT_COLUMNS_MAX + 1).contains(&names.len()) => names.len(),
        Some(_) | None => return Err(WeightsFileError::Header),
    };
    let columns = width - 1;
    let (mut ids, mut values) = (EventIds::default(), Vec::<i32>::new());
    let make = |record: &PublicRecord<'_>, rows: &mut WeightRows| rows.add(record, width);
    table.for_each_public(width + 2, progress, make, &mut |rows: WeightRows| {
        values.try_reserve(rows.values.len()).map_err(|_| WeightsFileError::OutOfMemory)?;
        values.extend_from_slice(&rows.values);
        let starts = [0].into_iter().chain(rows.id_ends.iter().copied());
        starts.zip(&rows.id_ends).try_for_each(|(start, end)| ids.push(&rows.ids[start..*end]))?;
        let row = ids.len() + 1;
        match rows.fault {
            None => Ok(()),
            Some(Fault::Width) => Err(WeightsFileError::Width { row, columns }),
            Some(Fault::Integer) => Err(WeightsFileError::Integer { row }),
            Some(Fault::OutOfMemory) => Err(WeightsFileError::OutOfMemory),
        }
    })?;
    let found = ids.len();
    match told {
        Some(told) if told != found || !ends_in_line_break(path) => {
            return Err(WeightsFileError::Rows { told, found });
        }
        Some(_) | None => (),
    }
    if ids.is_empty() {
        return Err(WeightListError::Empty.into());
    }
    Ok(WeightList::new(ids, PublicMatrix::new(columns, values)?)?)
}

/// How many rows a comment tells of: `# anything 300 rows`, up to its first comma.
fn rows_told_of(comment: &str) -> Option<usize> {
    comment.trim_end().strip_suffix(" rows")?.rsplit(' ').next()?.parse().ok()
}

/// Whether the last line of a file of comments and rows is whole. One that is packed, or cannot be read from its end, is taken to be: what is missing at the
/// end of a packed file is noticed when it is unpacked.
fn ends_in_line_break(path: &Path) -> bool {
    let ends = || -> io::Result<[u8; 2]> {
        let (mut file, mut first, mut last) = (File::open(path)?, [0], [0]);
        file.read_exact(&mut first)?;
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        Ok([first[0], last[0]])
    };
    ends().map_or(true, |[first, last]| first != b'#' || matches!(last, b'\n' | b'\r'))
}

/// A few rows, up to the first that is refused.
#[derive(Default)]
struct WeightRows {
    /// One after another.
    ids: Vec<u8>,
    id_ends: Vec<usize>,
    values: Vec<i32>,
    fault: Option<Fault>,
}

/// What is wrong with a row.
enum Fault {
    Width,
    Integer,
    OutOfMemory,
}

impl WeightRows {
    fn add(&mut self, record: &PublicRecord<'_>, width: usize) {
        if self.fault.is_some() {
            return;
        }
        if record.fields() != width {
            self.fault = Some(Fault::Width);
            return;
        }
        let id = record.field(0);
        let has_room = self.ids.try_reserve(id.len()).is_ok() && self.values.try_reserve(width).is_ok();
        if !has_room {
            self.fault = Some(Fault::OutOfMemory);
            return;
        }
        for field in 1..width {
            match whole_number(record.field(field)) {
                Some(number) => self.values.push(number),
                None => {
                    self.fault = Some(Fault::Integer);
                    return;
                }
            }
        }
        self.ids.extend_from_slice(id);
        self.id_ends.push(self.ids.len());
    }
}

/// Decimal digits, perhaps after `-`, of a number of 32 bits.
fn whole_number(text: &[u8]) -> Option<i32> {
    let (digits, sign) = match text {
        [b'-', digits @ ..] => (digits, -1),
        digits => (digits, 1),
    };
    if digits.is_empty() {
        return None;
    }
    let mut size = 0;
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        // Zeros in front do not count, and what is too large stays so.
        size = (size * 10 + i64::from(digit)).min(i64::from(u32::MAX));
    }
    i32::try_from(sign * size).ok()
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
pub fn write_weights(list: &WeightList, comment: &str, origin: &str, sink: impl Write + Send) -> io::Result<()> {
    let mut sink = io::BufWriter::new(sink);
    let columns = list.matrix().columns();
    writeln!(sink, "# {}{ORIGIN}{origin}", comment.replace(['\r', '\n', '"'], " "))?;
    let names: Vec<String> = (1..=columns).map(|column| format!("q{column}")).collect();
    writeln!(sink, "{ID},{}", names.join(","))?;
    let ids: Vec<&[u8]> = list.ids().iter().collect();
    let rows_of_text = (TEXT_NUMBERS / columns).max(1);
    let rows_at_once = rows_of_text * rayon::current_num_threads();
    let mut texts: Vec<Vec<u8>> = Vec::new();
    for (some, ids) in ids.chunks(rows_at_once).enumerate() {
        let of_rows = |(text, ids): (usize, &[&[u8]])| {
            text_of_rows(list.matrix(), some * rows_at_once + text * rows_of_text, ids)
        };
        let (written, next) = rayon::join(
            || texts.iter().try_for_each(|text| sink.write_all(text)),
            || ids.par_chunks(rows_of_text).enumerate().map(of_rows).collect(),
        );
        written?;
        texts = next;
    }
    texts.iter().try_for_each(|text| sink.write_all(text))?;
    sink.flush()
}

/// The lines of rows from `first` on, with these ids.
fn text_of_rows(matrix: &PublicMatrix, first: usize, ids: &[&[u8]]) -> Vec<u8> {
    let mut text = Vec::new();
    let mut digits = itoa::Buffer::new();
    for (row, id) in ids.iter().enumerate() {
        push_field(&mut text, id);
        for value in matrix.row(first + row) {
            text.push(b',');
            text.extend_from_slice(digits.format(*value).as_bytes());
        }
        text.push(b'\n');
    }
    text
}

/// A field of CSV, in quotes where it needs them.
fn push_field(text: &mut Vec<u8>, field: &[u8]) {
    if !field.iter().any(|byte| b",\"\r\n".contains(byte)) {
        text.extend_from_slice(field);
        return;
    }
    text.push(b'"');
    for byte in field {
        text.extend_from_slice(if *byte == b'"' { b"\"\"" } else { std::slice::from_ref(byte) });
    }
    text.push(b'"');
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;
    use tempfile::NamedTempFile;

    use super::*;

    fn read(text: &str) -> Result<WeightList, WeightsFileError> {
        let mut file = NamedTempFile::new().expect("a temporary file");
        file.write_all(text.as_bytes()).expect("is written");
        read_weights(file.path(), &mut |_| ())
    }

    /// So many rows that several threads read and write them, with an id in quotes now and then and a row that is read by itself.
    fn long_file(rows: usize) -> (String, Vec<String>) {
        let mut text = String::from("# made of sha256 nothing\nid,q1,q2\n");
        let id = |row: usize| match row % 1000 {
            500 => format!("{row},\"odd\"\n"),
            _ if row == 70_000 => "z".repeat(5 << 20),
            _ => format!("event {row}"),
        };
        let ids: Vec<String> = (0..rows).map(id).collect();
        for (row, id) in ids.iter().enumerate() {
            writeln!(text, "\"{}\", {} ,{}", id.replace('"', "\"\""), row % 700, -((row % 900) as i64))
                .expect("a text");
        }
        (text, ids)
    }

    #[test]
    fn what_is_written_is_read() {
        let (text, ids) = long_file(150_000);
        let list = read(&text).expect("a list");
        assert!(list.ids().iter().eq(ids.iter().map(|id| id.trim().as_bytes())));
        let values = (0..ids.len() as i32).flat_map(|row| [row % 700, -(row % 900)]);
        assert!(list.matrix().values().iter().copied().eq(values));
        let mut again = Vec::new();
        write_weights(&list, "once more", "nothing", &mut again).expect("is written");
        let again = read(std::str::from_utf8(&again).expect("a text")).expect("a list");
        assert!(again.ids() == list.ids() && again.matrix() == list.matrix());
    }

    /// Wherever a file is cut that tells how many rows it has; lines of other words tell nothing.
    #[test]
    fn a_file_that_was_cut_short_is_refused() {
        let ids = ["a", "b", "c"].map(|id| id.as_bytes().to_vec());
        let matrix = PublicMatrix::new(2, vec![1, -20, 300, 4000, -50_000, 600_000]).expect("short rows");
        let mut event_ids = EventIds::default();
        ids.iter().for_each(|id| event_ids.push(id).expect("is new"));
        let mut text = Vec::new();
        let list = WeightList::new(event_ids, matrix).expect("a list");
        write_weights(&list, "made by hand: 3 rows, 2 columns", "nothing", &mut text).expect("is written");
        let text = String::from_utf8(text).expect("a text");
        assert!(read(&text).is_ok() && read(&text.replace('\n', "\r\n")).is_ok());
        let body = text.find("id,").expect("a header") + "id,q1,q2".len();
        for end in body..text.len() {
            assert!(read(&text[..end]).is_err(), "{:?}", &text[..end]);
        }
        let error = read(&text[..text.len() - 2]).err().expect("is refused").to_string();
        assert!(error.contains("tells of 3 rows and has 3, of which the last does not end"), "{error}");
        let other = text.replace("3 rows", "some rows");
        assert!(read(other.trim_end()).is_ok());
    }

    /// The first of them in the order of the file, whichever thread finds it.
    #[test]
    fn the_first_row_that_is_wrong_is_named() {
        let (text, _) = long_file(150_000);
        let with = |faults: &[(usize, &str)]| {
            let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
            // In front of a row that begins a line.
            for (row, line) in faults {
                let place =
                    lines.iter().position(|other| other.starts_with(&format!("\"event {row}\""))).expect("is there");
                lines.insert(place, line);
            }
            read(&lines.concat()).err().expect("is refused").to_string()
        };
        assert!(
            with(&[(120_001, "a,1\n"), (140_000, "b,x,1\n")]).starts_with("row 120002 of the weights file does not")
        );
        assert!(
            with(&[(140_000, "b,1,1,1\n"), (99_001, "c,1,2.5\n")]).starts_with("row 99002 of the weights file has")
        );
        assert!(with(&[(90_001, "event 3,1,1\n"), (90_002, "c,1,\n")]).contains("row 90002 has the id of an earlier"));
        assert!(with(&[(80_001, ",1,1\n"), (80_002, "c\n")]).contains("row 80002 has no id"));
    }

    proptest! {
        #[test]
        fn whole_numbers_are_those_of_32_bits(text in "-?[0-9]{0,12}|[-+]{0,2}[0-9]{1,3}|-?0{0,9}21474836(4[78]|50)|.{0,4}") {
            let expected = text.parse().ok().filter(|_| !text.starts_with('+'));
            prop_assert_eq!(whole_number(text.as_bytes()), expected);
        }
    }
}
