//! Tables as delimited text.
//!
//! This tokenises with `csv-core`, the automaton under the `csv` crate and under `arrow-csv`, and with neither of those
//! two on top. `arrow-csv` fails on ragged rows, on text that is not UTF-8 and on values of the wrong type, and its
//! messages carry row numbers: whether such an error occurs depends on private values, so it is an output that nobody
//! paid for. `csv` holds a whole record in memory, however long. Here a record is as long as it likes: one that passes
//! [`RECORD_BYTES_MAX`] is a row without any value. Were only what is beyond dropped, then under `label`, where features are public, the
//! length of a usable label would decide which features its row has.
//!
//! A field starts a quotation with `"` and holds a `"` as `""`; a record ends at CR, LF or CRLF outside quotes. Blank
//! lines are not rows. The table is the sequence of records that this grammar finds: a quote that is never closed is
//! the writer's mistake, and makes one long field of all that follows. A header is one line, whose quotes are closed.

use std::path::{Path, PathBuf};

use csv_core::ReadRecordResult;
use reticent_core::record::RawValue;

use super::compression::{BYTE_ORDER_MARK, ByteStream};
use super::record_blocks::RecordCutter;
use super::{RawRow, SourceError};

/// The longest record of which anything is kept.
pub(crate) const RECORD_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The most columns that a header may have.
const HEADER_COLUMNS_MAX: usize = 1 << 20;

/// Where text comes from.
pub(super) trait TextInput {
    /// The unread bytes in hand; empty at the end only.
    fn fill(&mut self) -> Result<&[u8], SourceError>;
    /// Marks bytes that [`Self::fill`] returned as read.
    fn consume(&mut self, bytes: usize);
}

impl TextInput for ByteStream {
    fn fill(&mut self) -> Result<&[u8], SourceError> {
        Self::fill(self)
    }

    fn consume(&mut self, bytes: usize) {
        Self::consume(self, bytes);
    }
}

/// A tokenizer of this grammar, at the start of a text.
pub(super) fn tokenizer(delimiter: u8) -> csv_core::Reader {
    csv_core::ReaderBuilder::new().delimiter(delimiter).build()
}

/// A text table, at its header or at its first row.
pub(crate) struct CsvTable {
    path: PathBuf,
    stream: ByteStream,
    delimiter: u8,
    tokenizer: csv_core::Reader,
    /// Whether the header was read.
    has_header: bool,
    record: Record,
    /// Place in the record of each slot of a row.
    slots: Vec<usize>,
}

impl CsvTable {
    /// Starts at the beginning of the text; a byte order mark is skipped.
    pub(crate) fn new(path: &Path, stream: ByteStream, delimiter: u8) -> Self {
        let (path, tokenizer) = (path.to_owned(), tokenizer(delimiter));
        Self { path, stream, delimiter, tokenizer, has_header: false, record: Record::new(), slots: Vec::new() }
    }

    /// The names in the first line, trimmed; none when the file is empty.
    pub(crate) fn read_header(&mut self) -> Result<Option<Vec<String>>, SourceError> {
        self.has_header = true;
        let mut line = FirstLine {
            path: &self.path,
            stream: &mut self.stream,
            consumed: 0,
            is_begun: false,
            without_end: 0,
            left: None,
            is_at_end: false,
            is_passed: false,
        };
        let is_found = self.record.read(&mut self.tokenizer, &mut line, HEADER_COLUMNS_MAX)?;
        if line.is_passed {
            return Err(SourceError::HeaderNotClosed { path: self.path.clone() });
        }
        if !is_found {
            return Ok(None);
        }
        if self.record.is_cut {
            return Err(SourceError::HeaderTooLong { path: self.path.clone() });
        }
        let name =
            |field| String::from_utf8_lossy(self.record.field(field).unwrap_or_default().trim_ascii()).into_owned();
        Ok(Some((0..self.record.fields).map(name).collect()))
    }

    /// Chooses the columns, one a slot of a row.
    pub(crate) fn project(&mut self, slots: Vec<usize>) {
        self.slots = slots;
    }

    /// The remaining records, to be cut into blocks, the delimiter, and the place in a record of each slot of a row.
    pub(super) fn into_records(mut self) -> (RecordCutter, u8, Vec<usize>) {
        let slots = std::mem::take(&mut self.slots);
        let (cutter, delimiter) = self.into_records_of(fields_max(&slots));
        (cutter, delimiter, slots)
    }

    /// The same with so many fields at most, whatever slots they are.
    pub(super) fn into_records_of(self, fields_max: usize) -> (RecordCutter, u8) {
        // At most the second byte of the header's line end is left of it, which reads as a blank line.
        (RecordCutter::new(self.stream, self.delimiter, !self.has_header, fields_max), self.delimiter)
    }

    /// Hands every remaining record to `visit`.
    pub(crate) fn for_each(
        mut self,
        progress: &mut dyn FnMut(u64),
        mut visit: impl FnMut(&CsvRow<'_>),
    ) -> Result<(), SourceError> {
        let fields_max = fields_max(&self.slots);
        let mut bytes_reported = 0;
        while self.record.read(&mut self.tokenizer, &mut self.stream, fields_max)? {
            visit(&CsvRow { record: &self.record, slots: &self.slots });
            let bytes_read = self.stream.bytes_read();
            if bytes_read != bytes_reported {
                progress(bytes_read);
                bytes_reported = bytes_read;
            }
        }
        progress(self.stream.bytes_read());
        Ok(())
    }
}

/// The first line that is not blank, and nothing behind its line end: what follows is a row, and no quotation of a header may reach
/// into it.
struct FirstLine<'a> {
    path: &'a Path,
    stream: &'a mut ByteStream,
    /// Bytes taken so far: a device or a bomb may have no line end at all.
    consumed: usize,
    /// Whether a byte of the line was read.
    is_begun: bool,
    /// Bytes in hand that were looked through and do not end it: a record that is cut takes few at a time, and each would be looked at
    /// over and over.
    without_end: usize,
    /// Bytes of it that are not consumed, with its end, once that is in hand.
    left: Option<usize>,
    /// Whether the file ends with the line: it is read as if a line end stood there, so that a quotation is closed or is not whether
    /// or not rows follow.
    is_at_end: bool,
    /// Whether more was asked for.
    is_passed: bool,
}

impl TextInput for FirstLine<'_> {
    fn fill(&mut self) -> Result<&[u8], SourceError> {
        if let Some(left) = self.left {
            self.is_passed |= left == 0;
            return if self.is_at_end || left == 0 { Ok(&b"\n"[..left]) } else { Ok(&self.stream.fill()?[..left]) };
        }
        if self.consumed > RECORD_BYTES_MAX {
            return Err(SourceError::HeaderTooLong { path: self.path.to_owned() });
        }
        let bytes = self.stream.fill()?;
        if self.without_end > 0 {
            return Ok(&bytes[..self.without_end]);
        }
        if bytes.is_empty() && self.is_begun {
            self.is_at_end = true;
            self.left = Some(1);
            return Ok(b"\n");
        }
        let is_end = |byte: &u8| b"\r\n".contains(byte);
        let blank = match self.is_begun {
            true => 0,
            false => {
                bytes.iter().position(|byte| !is_end(byte) && !BYTE_ORDER_MARK.contains(byte)).unwrap_or(bytes.len())
            }
        };
        self.is_begun |= blank < bytes.len();
        match bytes[blank..].iter().position(is_end) {
            Some(length) => {
                let left = blank + length + 1;
                self.left = Some(left);
                Ok(&bytes[..left])
            }
            None => {
                self.without_end = bytes.len();
                Ok(bytes)
            }
        }
    }

    fn consume(&mut self, bytes: usize) {
        if !self.is_at_end {
            self.stream.consume(bytes);
        }
        self.consumed += bytes;
        self.without_end = self.without_end.saturating_sub(bytes);
        if let Some(left) = &mut self.left {
            *left -= bytes;
        }
    }
}

/// Fields of a record up to the last that is wanted.
pub(super) fn fields_max(slots: &[usize]) -> usize {
    slots.iter().max().map_or(1, |last| last + 1)
}

/// One record as the slots of a row: private.
pub(crate) struct CsvRow<'a> {
    pub(super) record: &'a Record,
    pub(super) slots: &'a [usize],
}

impl RawRow for CsvRow<'_> {
    #[inline]
    fn value(&self, slot: usize) -> RawValue<'_> {
        self.record.field(self.slots[slot]).map_or(RawValue::Missing, RawValue::Text)
    }
}

/// The fields of one record, in buffers that are used again.
pub(super) struct Record {
    text: Vec<u8>,
    /// Where in `text` each field ends.
    ends: Vec<usize>,
    /// Number of fields kept.
    fields: usize,
    /// Whether fields were dropped because the record, or the number of its fields, is too long.
    is_cut: bool,
    /// What is dropped is written here, over and over.
    dropped_text: [u8; 4096],
    dropped_ends: [usize; 64],
}

impl Record {
    pub(super) fn new() -> Self {
        Self {
            text: vec![0; 64 * 1024],
            ends: vec![0; 256],
            fields: 0,
            is_cut: false,
            dropped_text: [0; 4096],
            dropped_ends: [0; 64],
        }
    }

    /// Number of fields that were kept.
    pub(super) fn count(&self) -> usize {
        self.fields
    }

    #[inline]
    pub(super) fn field(&self, field: usize) -> Option<&[u8]> {
        if field >= self.fields {
            return None;
        }
        let start = if field == 0 { 0 } else { self.ends[field - 1] };
        Some(&self.text[start..self.ends[field]])
    }

    /// Reads the next record and keeps at most `fields_max` of its fields, or none of a record that is too long; false at the end of the
    /// file.
    pub(super) fn read(
        &mut self,
        tokenizer: &mut csv_core::Reader,
        stream: &mut impl TextInput,
        fields_max: usize,
    ) -> Result<bool, SourceError> {
        let (mut length, mut is_too_long) = (0, false);
        self.fields = 0;
        self.is_cut = false;
        loop {
            let input = stream.fill()?;
            let (result, consumed, written, ended) = if self.is_cut {
                tokenizer.read_record(input, &mut self.dropped_text, &mut self.dropped_ends)
            } else {
                let kept = self.ends.len().min(fields_max);
                tokenizer.read_record(input, &mut self.text[length..], &mut self.ends[self.fields..kept])
            };
            stream.consume(consumed);
            if !self.is_cut {
                length += written;
                self.fields += ended;
            }
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull if self.is_cut => {}
                ReadRecordResult::OutputFull if self.text.len() < RECORD_BYTES_MAX => {
                    double(&mut self.text, RECORD_BYTES_MAX)?;
                }
                ReadRecordResult::OutputEndsFull if self.is_cut => {}
                ReadRecordResult::OutputEndsFull if self.ends.len() < fields_max => {
                    double(&mut self.ends, fields_max)?;
                }
                ReadRecordResult::OutputFull => {
                    (self.is_cut, is_too_long) = (true, true);
                }
                ReadRecordResult::OutputEndsFull => self.is_cut = true,
                ReadRecordResult::Record => {
                    if is_too_long {
                        self.fields = 0;
                    }
                    return Ok(true);
                }
                ReadRecordResult::End => return Ok(false),
            }
        }
    }
}

/// Twice the room, up to so much. An aborting allocation would print its size, and with it the length of a record.
fn double<T: Default + Clone>(room: &mut Vec<T>, length_max: usize) -> Result<(), SourceError> {
    let length = (room.len() * 2).min(length_max);
    room.try_reserve_exact(length - room.len()).map_err(|_| SourceError::OutOfMemory)?;
    room.resize(length, T::default());
    Ok(())
}
