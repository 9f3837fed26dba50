//! The fields of the records of a block, one after another.

use super::record_blocks::{MARGIN, RecordBlock};
use super::separators::{find_separators, keep_unquoted, places_max};
use crate::out_of_memory::{OutOfMemory, make_room};

/// What is told of the fields of each record.
pub(super) trait FieldVisitor<E> {
    /// The field at `place` of the record lies from `start` to `end` in the block's bytes, with its quotes.
    fn field(&mut self, place: usize, start: usize, end: usize);

    /// The record is over. Fields from `count` on are not there.
    fn record(&mut self, count: usize) -> Result<(), E>;
}

/// Makes room for the places of separators in a block, and for what is in quotes: no value is longer than the text it is in.
pub(super) fn make_room_for_fields(
    block: &RecordBlock,
    places: &mut Vec<u32>,
    unquoted: &mut Vec<u8>,
) -> Result<(), OutOfMemory> {
    let length = block.text_in_groups().len();
    make_room(places, places_max(length))?;
    make_room(unquoted, length)
}

/// Tells of the first `fields_max` fields of every record; surplus fields are ignored. `places` is room that was made by
/// [`make_room_for_fields`].
#[inline(always)]
pub(super) fn visit_fields<E>(
    block: &RecordBlock,
    delimiter: u8,
    fields_max: usize,
    places: &mut Vec<u32>,
    visitor: &mut impl FieldVisitor<E>,
) -> Result<(), E> {
    let mut count = find_separators(block.text_in_groups(), delimiter, places);
    if !block.quotations().is_empty() {
        count = keep_unquoted(&mut places[..count], block.quotations());
    }
    let bytes = block.bytes();
    let mut ends = places[..count].iter().map(|place| MARGIN + *place as usize);
    let mut start = MARGIN;
    while let Some(mut end) = ends.next() {
        if start == end && bytes[end] != delimiter {
            // A blank line is not a row.
            start = end + 1;
            continue;
        }
        let mut place = 0;
        loop {
            if place < fields_max {
                visitor.field(place, start, end);
                place += 1;
            }
            start = end + 1;
            if bytes[end] != delimiter {
                break;
            }
            end = ends.next().expect("a block ends with the end of a record");
        }
        visitor.record(place)?;
    }
    Ok(())
}
