//! Text cut into blocks of whole records, to be read on several threads.
//!
//! Only here does one block depend on another, and only through its quotation marks: where a record ends is decided from
//! the start of the text on, exactly, by the grammar of [`super::csv`]. The bytes of the file are read once, in order, so
//! the table is what was read, whatever else happens to the file meanwhile.

use csv_core::ReadRecordResult;

use super::compression::{BYTE_ORDER_MARK, ByteStream};
use super::csv::{Record, TextInput};
use super::separators::{GROUP_BYTES, find_marks, find_quotations, places_max};
use super::{SourceError, csv};
use crate::out_of_memory::make_room;

/// Bytes before and after the text of a block that readers of fields may load.
pub(super) const MARGIN: usize = GROUP_BYTES;

/// Whole records, in a buffer that is used again: private.
#[derive(Default)]
pub(super) struct RecordBlock {
    /// A margin, the text, a margin and up to a group more.
    bytes: Vec<u8>,
    /// End of the records.
    end: usize,
    /// First and last mark of each quotation, counted from the start of the text.
    quotations: Vec<(u32, u32)>,
    marks: Vec<u32>,
    bytes_read: u64,
}

impl RecordBlock {
    /// The records from [`MARGIN`] on, with their margins. The last one ends with a line end.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The records, and then whatever fills the last group.
    pub(super) fn text_in_groups(&self) -> &[u8] {
        &self.bytes[MARGIN..MARGIN + (self.end - MARGIN).next_multiple_of(GROUP_BYTES)]
    }

    pub(super) fn quotations(&self) -> &[(u32, u32)] {
        &self.quotations
    }

    /// Bytes of the file read when the block was complete.
    pub(super) fn bytes_read(&self) -> u64 {
        self.bytes_read
    }
}

/// What comes next in the text.
pub(super) enum Piece {
    /// The block was filled.
    Block,
    /// A record too long for a block: it is in [`RecordCutter::long_record`].
    LongRecord,
    /// Nothing.
    End,
}

/// Cuts the rest of a text.
pub(super) struct RecordCutter {
    stream: ByteStream,
    delimiter: u8,
    block_bytes: usize,
    long_bytes: usize,
    /// Whether a byte order mark may come.
    is_at_start: bool,
    is_at_end: bool,
    /// The beginning of the next record, left over from the last block.
    rest: Vec<u8>,
    long_record: Option<Box<Record>>,
    fields_max: usize,
}

impl RecordCutter {
    pub(super) fn new(stream: ByteStream, delimiter: u8, is_at_start: bool, fields_max: usize) -> Self {
        Self {
            stream,
            delimiter,
            block_bytes: BLOCK_BYTES,
            long_bytes: LONG_BYTES,
            is_at_start,
            is_at_end: false,
            rest: Vec::new(),
            long_record: None,
            fields_max,
        }
    }

    /// The same with other sizes, which change no record.
    #[cfg(test)]
    pub(super) fn with_sizes(self, block_bytes: usize, long_bytes: usize) -> Self {
        Self { block_bytes, long_bytes, ..self }
    }

    /// The record that did not fit, after [`Piece::LongRecord`].
    pub(super) fn long_record(&self) -> &Record {
        self.long_record.as_ref().expect("asked for after a long record only")
    }

    /// Whether what was cut is more than a table that is quicker read on one thread.
    pub(super) fn has_read_much(&self) -> bool {
        !self.is_at_end && !self.is_at_start
    }

    /// Bytes of the file read so far, before decompression.
    pub(super) fn bytes_read(&self) -> u64 {
        self.stream.bytes_read()
    }

    /// Fills `block` with the next records, or reads one that is too long for it.
    pub(super) fn next(&mut self, block: &mut RecordBlock) -> Result<Piece, SourceError> {
        let mut filled = MARGIN + self.rest.len();
        let mut wanted = filled + self.block_bytes.max(BYTE_ORDER_MARK.len());
        loop {
            // Room for what may have to be added at the end, and for the margin.
            let length = wanted + 2 * MARGIN + GROUP_BYTES;
            if block.bytes.len() < length {
                make_room(&mut block.bytes, length)?;
                block.bytes.resize(length, 0);
            }
            block.bytes[MARGIN..MARGIN + self.rest.len()].copy_from_slice(&self.rest);
            while filled < wanted && !self.is_at_end {
                let count = self.stream.read_into(&mut block.bytes[filled..wanted])?;
                self.is_at_end = count == 0;
                filled += count;
            }
            if self.is_at_start {
                self.is_at_start = false;
                if block.bytes[MARGIN..filled].starts_with(BYTE_ORDER_MARK) {
                    block.bytes.copy_within(MARGIN + BYTE_ORDER_MARK.len()..filled, MARGIN);
                    filled -= BYTE_ORDER_MARK.len();
                }
            }
            let is_quoted = self.mark_quotations(block, filled)?;
            if self.is_at_end {
                if filled == MARGIN {
                    return Ok(Piece::End);
                }
                // The last record need not have an end, nor its last quotation.
                for missing in if is_quoted { &b"\"\n"[..] } else { b"\n" } {
                    block.bytes[filled] = *missing;
                    filled += 1;
                }
                self.finish(block, filled, filled)?;
                return Ok(Piece::Block);
            }
            if let Some(end) = last_end(&block.bytes[MARGIN..filled], &block.quotations) {
                self.finish(block, MARGIN + end, filled)?;
                return Ok(Piece::Block);
            }
            // One record, and not all of it.
            if filled - MARGIN >= self.long_bytes {
                self.rest.clear();
                self.read_long_record(&block.bytes[MARGIN..filled])?;
                return Ok(Piece::LongRecord);
            }
            self.rest.clear();
            wanted = filled + (filled - MARGIN).max(self.block_bytes);
        }
    }

    /// Finds the quotations of the text that is there so far; says whether the last one is open.
    fn mark_quotations(&self, block: &mut RecordBlock, filled: usize) -> Result<bool, SourceError> {
        block.quotations.clear();
        if memchr::memchr(b'"', &block.bytes[MARGIN..filled]).is_none() {
            return Ok(false);
        }
        block.bytes[filled..filled + GROUP_BYTES].fill(0);
        let groups = MARGIN..MARGIN + (filled - MARGIN).next_multiple_of(GROUP_BYTES);
        make_room(&mut block.marks, places_max(groups.len()))?;
        let count = find_marks(&block.bytes[groups], &mut block.marks);
        make_room(&mut block.quotations, count)?;
        Ok(find_quotations(&block.bytes[MARGIN..filled], self.delimiter, &block.marks[..count], &mut block.quotations))
    }

    /// Ends the block at `end` and keeps what comes after for the next.
    fn finish(&mut self, block: &mut RecordBlock, end: usize, filled: usize) -> Result<(), SourceError> {
        self.rest.clear();
        make_room(&mut self.rest, filled - end)?;
        self.rest.extend_from_slice(&block.bytes[end..filled]);
        // What is left of the last group must not look like a separator.
        block.bytes[end..end + GROUP_BYTES].fill(0);
        block.end = end;
        let records = block.quotations.partition_point(|(open, _)| (*open as usize) < end - MARGIN);
        block.quotations.truncate(records);
        block.bytes_read = self.stream.bytes_read();
        Ok(())
    }

    /// Reads the record that begins with `beginning`, which holds no record's end, as a reader of single records does.
    fn read_long_record(&mut self, beginning: &[u8]) -> Result<(), SourceError> {
        let mut tokenizer = csv::tokenizer(self.delimiter);
        // A byte order mark counts at the start of the text only: the tokenizer has to have read something.
        let (result, ..) = tokenizer.read_record(b"\n", &mut [0], &mut [0]);
        debug_assert!(matches!(result, ReadRecordResult::InputEmpty), "an empty line is no record");
        let record = self.long_record.get_or_insert_with(|| Box::new(Record::new()));
        let mut input = Continued { beginning, stream: &mut self.stream };
        let is_record = record.read(&mut tokenizer, &mut input, self.fields_max)?;
        debug_assert!(is_record && input.beginning.is_empty(), "the beginning is of one record, which it does not end");
        Ok(())
    }
}

/// Bytes taken from a stream already, then the stream.
struct Continued<'a> {
    beginning: &'a [u8],
    stream: &'a mut ByteStream,
}

impl TextInput for Continued<'_> {
    fn fill(&mut self) -> Result<&[u8], SourceError> {
        if self.beginning.is_empty() { self.stream.fill() } else { Ok(self.beginning) }
    }

    fn consume(&mut self, bytes: usize) {
        if self.beginning.is_empty() {
            self.stream.consume(bytes);
        } else {
            self.beginning = &self.beginning[bytes..];
        }
    }
}

/// The end of the last line that ends outside quotations.
fn last_end(text: &[u8], quotations: &[(u32, u32)]) -> Option<usize> {
    let last_in = |from: usize, to: usize| {
        let end = memchr::memrchr2(b'\n', b'\r', text.get(from..to)?)?;
        Some(from + end + 1)
    };
    let mut to = text.len();
    for (open, close) in quotations.iter().rev() {
        let end = last_in(*close as usize + 1, to);
        if end.is_some() {
            return end;
        }
        to = *open as usize;
    }
    last_in(0, to)
}

/// Text of a usual block: it, its places and its codes fit the second-level cache.
const BLOCK_BYTES: usize = 512 * 1024;
/// A record from here on is read by itself.
const LONG_BYTES: usize = 4 * 1024 * 1024;
