//! Tables as libsvm and svmlight write them: a label, then the values that are not zero, each with its index.
//!
//! ```text
//!   +1 3:0.5 11:1 12:1          label  index:value ...
//!   -1 qid:7 3:1 # a remark     a group, which may be the privacy unit; the rest of the line is not read
//! ```
//! As everywhere, nothing in a row is an error: an index that is not there has the value 0, of one that is there twice the last
//! value counts, and what is neither a label nor an `index:value` is ignored. A line without a word is not a row.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use reticent_core::record::RawValue;
use reticent_core::schema::LIBSVM_GROUP;

use super::compression::{BYTE_ORDER_MARK, ByteStream};
use super::csv::RECORD_BYTES_MAX;
use super::{RawRow, Role, SourceError, WantedColumn};
use crate::out_of_memory::make_room;

/// A libsvm table at its first row.
pub(crate) struct LibsvmTable {
    stream: ByteStream,
    slots: Slots,
}

/// Where in a line the value of each slot is, if it is there. A line may name few of a million slots.
struct Values {
    places: Vec<Option<Range<usize>>>,
    /// The slots that are there, in the line's order; none twice.
    given: Vec<usize>,
}

impl Values {
    fn new(slots: usize) -> Self {
        Self { places: vec![None; slots], given: Vec::new() }
    }

    fn clear(&mut self) {
        self.given.drain(..).for_each(|slot| self.places[slot] = None);
    }

    fn set(&mut self, slot: usize, place: Range<usize>) {
        if self.places[slot].replace(place).is_none() {
            self.given.push(slot);
        }
    }
}

/// Where in a line each slot of a row is found.
struct Slots {
    features: FeatureSlots,
    label: Option<usize>,
    /// Privacy unit and event id, which are both the group.
    groups: Vec<usize>,
    count: usize,
}

/// The slot of each feature by its index.
#[derive(Default)]
struct FeatureSlots {
    /// Of small indices, which are nearly all; [`NO_SLOT`] where there is none.
    near: Vec<u32>,
    far: HashMap<u64, usize>,
}

const NO_SLOT: u32 = u32::MAX;
/// Indices below this are small: their slots take no more than 16 MiB.
const NEAR: u64 = 1 << 22;

impl FeatureSlots {
    fn insert(&mut self, index: u64, slot: usize) {
        if index >= NEAR {
            self.far.insert(index, slot);
            return;
        }
        let place = index as usize;
        if self.near.len() <= place {
            self.near.resize(place + 1, NO_SLOT);
        }
        self.near[place] = u32::try_from(slot).expect("a schema caps its columns");
    }

    fn get(&self, index: u64) -> Option<usize> {
        if index < NEAR {
            return self.near.get(index as usize).filter(|slot| **slot != NO_SLOT).map(|slot| *slot as usize);
        }
        self.far.get(&index).copied()
    }
}

impl LibsvmTable {
    /// A table whose first `feature_count` wanted columns are features, in a row's order of slots.
    pub(crate) fn new(
        path: &Path,
        stream: ByteStream,
        wanted: &[WantedColumn<'_>],
        feature_count: usize,
    ) -> Result<Self, SourceError> {
        let (mut features, mut label, mut groups) = (FeatureSlots::default(), None, Vec::new());
        for (slot, wanted) in wanted.iter().enumerate() {
            match wanted.role {
                Role::Number | Role::Word if slot < feature_count => {
                    features.insert(wanted.name.parse().expect("a schema of this format has indices for names"), slot);
                }
                Role::Number | Role::Word => label = Some(slot),
                Role::Key if wanted.name == LIBSVM_GROUP => groups.push(slot),
                Role::Key => {
                    return Err(SourceError::MissingColumn {
                        path: path.to_owned(),
                        column: wanted.name.to_owned(),
                        needed_by: wanted.needed_by,
                        named_in: wanted.named_in,
                        nearest: None,
                        columns: vec![LIBSVM_GROUP.to_owned()],
                    });
                }
            }
        }
        Ok(Self { stream, slots: Slots { features, label, groups, count: wanted.len() } })
    }

    /// Hands every row to `visit`, with the bytes read so far, until it fails. Returns the bytes of the file.
    pub(crate) fn for_each<E: From<SourceError>>(
        mut self,
        mut visit: impl FnMut(&LibsvmRow<'_>, u64) -> Result<(), E>,
    ) -> Result<u64, E> {
        let (mut line, mut values) = (Vec::new(), Values::new(self.slots.count));
        let mut is_first = true;
        while read_line(&mut self.stream, &mut line)? {
            if std::mem::take(&mut is_first) && line.starts_with(BYTE_ORDER_MARK) {
                line.drain(..BYTE_ORDER_MARK.len());
            }
            if self.slots.find(&line, &mut values) {
                visit(&LibsvmRow { line: &line, values: &values, slots: &self.slots }, self.stream.bytes_read())?;
            }
        }
        Ok(self.stream.bytes_read())
    }
}

/// The next line, without its end; false at the end of the file. A line that passes the longest record is a row without any value, as in
/// [`super::csv`].
fn read_line(stream: &mut ByteStream, line: &mut Vec<u8>) -> Result<bool, SourceError> {
    const WITHOUT_VALUES: &[u8] = b":";
    line.clear();
    let (mut is_any, mut is_too_long) = (false, false);
    loop {
        let input = stream.fill()?;
        if input.is_empty() {
            return Ok(is_any);
        }
        is_any = true;
        let end = input.iter().position(|byte| *byte == b'\n');
        let part = &input[..end.unwrap_or(input.len())];
        if is_too_long || line.len() + part.len() > RECORD_BYTES_MAX {
            is_too_long = true;
            line.clear();
        }
        let kept = if is_too_long { WITHOUT_VALUES } else { part };
        // An aborting allocation would print its size, and with it the length of a line.
        let length = line.len() + kept.len();
        make_room(line, length)?;
        line.extend_from_slice(kept);
        let consumed = part.len() + usize::from(end.is_some());
        stream.consume(consumed);
        if end.is_some() {
            return Ok(true);
        }
    }
}

impl Slots {
    /// Finds the values of a line; false when it is not a row.
    fn find(&self, line: &[u8], values: &mut Values) -> bool {
        values.clear();
        let line = &line[..line.iter().position(|byte| *byte == b'#').unwrap_or(line.len())];
        let mut is_row = false;
        let mut start = 0;
        for word in line.split(u8::is_ascii_whitespace) {
            let place = start;
            start += word.len() + 1;
            if word.is_empty() {
                continue;
            }
            let is_first = !std::mem::replace(&mut is_row, true);
            let Some(colon) = word.iter().position(|byte| *byte == b':') else {
                if let (true, Some(slot)) = (is_first, self.label) {
                    values.set(slot, place..place + word.len());
                }
                continue;
            };
            let value = place + colon + 1..place + word.len();
            if word[..colon] == *LIBSVM_GROUP.as_bytes() {
                self.groups.iter().for_each(|slot| values.set(*slot, value.clone()));
            } else if let Some(slot) = index(&word[..colon]).and_then(|index| self.features.get(index)) {
                values.set(slot, value);
            }
        }
        is_row
    }
}

/// A whole number in digits alone.
fn index(text: &[u8]) -> Option<u64> {
    let digits = text.iter().all(u8::is_ascii_digit);
    if digits { std::str::from_utf8(text).ok()?.parse().ok() } else { None }
}

/// One line as the slots of a row: private.
pub(crate) struct LibsvmRow<'a> {
    line: &'a [u8],
    values: &'a Values,
    slots: &'a Slots,
}

impl RawRow for LibsvmRow<'_> {
    fn value(&self, slot: usize) -> RawValue<'_> {
        match &self.values.places[slot] {
            Some(place) => RawValue::Text(&self.line[place.clone()]),
            None if self.slots.label == Some(slot) || self.slots.groups.contains(&slot) => RawValue::Missing,
            None => RawValue::Number(0.0),
        }
    }

    fn given(&self) -> Option<&[usize]> {
        Some(&self.values.given)
    }
}
