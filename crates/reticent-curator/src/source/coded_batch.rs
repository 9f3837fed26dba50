//! A few rows as codes, on their way from a reader to whoever keeps them.

use reticent_core::contribution::CodedLabel;
use sha2::{Digest, Sha256};

use super::UncappedRows;
use super::text_threads::Batch;
use crate::out_of_memory::{OutOfMemory, make_room};

/// Rows in the file's order: private.
#[derive(Default)]
pub(crate) struct CodedBatch {
    /// Row after row, one code a slot.
    pub(crate) codes: Vec<u16>,
    pub(crate) labels: Vec<CodedLabel>,
    /// Keys of the privacy units, one after another; a row without a key has an empty one.
    keys: Vec<u8>,
    key_ends: Vec<usize>,
    is_lost: bool,
    /// Bytes of the file read when these rows were complete.
    pub(crate) bytes_read: u64,
}

impl Batch for CodedBatch {
    fn clear(&mut self) {
        self.codes.clear();
        self.labels.clear();
        self.keys.clear();
        self.key_ends.clear();
        self.is_lost = false;
    }

    fn set_bytes_read(&mut self, bytes: u64) {
        self.bytes_read = bytes;
    }
}

impl CodedBatch {
    /// Marks rows that nothing may be made of, because memory for a part of them was refused. They are handed on like others: an
    /// aborting allocation would print its size, and with it the length of a value.
    pub(super) fn lose(&mut self) {
        self.is_lost = true;
    }

    /// Whether nothing may be made of the rows.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Appends the label and the unit of a row whose codes are there.
    #[inline]
    pub(super) fn push(&mut self, label: CodedLabel, key: Option<&[u8]>) {
        self.labels.push(label);
        self.push_key(key);
    }

    /// Exchanges all but the codes.
    pub(super) fn swap_labels(&mut self, other: &mut Self) {
        std::mem::swap(&mut self.labels, &mut other.labels);
        std::mem::swap(&mut self.keys, &mut other.keys);
        std::mem::swap(&mut self.key_ends, &mut other.key_ends);
        std::mem::swap(&mut self.is_lost, &mut other.is_lost);
    }

    #[inline]
    fn push_key(&mut self, key: Option<&[u8]>) {
        let key = key.unwrap_or_default();
        let (start, rest) = key.split_at(if key.len() > KEY_BYTES { KEY_START_BYTES } else { key.len() });
        let length = self.keys.len() + key.len().min(KEY_BYTES + 1);
        match make_room(&mut self.keys, length) {
            Ok(()) => {
                self.keys.extend_from_slice(start);
                if !rest.is_empty() {
                    self.keys.extend_from_slice(&Sha256::digest(rest));
                }
            }
            Err(OutOfMemory) => self.lose(),
        }
        self.key_ends.push(self.keys.len());
    }

    /// The rows, with the keys of their units.
    pub(super) fn uncapped(&self) -> UncappedRows<'_> {
        UncappedRows { codes: &self.codes, labels: &self.labels, keys: &self.keys, key_ends: &self.key_ends }
    }

    /// Whether it is time to hand the rows on.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.codes.len() >= CODES_FULL || self.keys.len() >= KEYS_FULL
    }

    /// Drops the rows that `keep` refuses by their label and key; it is asked for every row, in order.
    pub(crate) fn retain<E>(
        &mut self,
        slots: usize,
        mut keep: impl FnMut(CodedLabel, &[u8]) -> Result<bool, E>,
    ) -> Result<(), E> {
        let (mut kept, mut kept_keys) = (0, 0);
        let mut key_start = 0;
        for row in 0..self.labels.len() {
            let key_end = self.key_ends[row];
            if keep(self.labels[row], &self.keys[key_start..key_end])? {
                self.labels[kept] = self.labels[row];
                self.codes.copy_within(row * slots..(row + 1) * slots, kept * slots);
                self.keys.copy_within(key_start..key_end, kept_keys);
                kept_keys += key_end - key_start;
                self.key_ends[kept] = kept_keys;
                kept += 1;
            }
            key_start = key_end;
        }
        self.labels.truncate(kept);
        self.codes.truncate(kept * slots);
        self.keys.truncate(kept_keys);
        self.key_ends.truncate(kept);
        Ok(())
    }
}

/// Codes, and bytes of keys, of a batch that is handed on: a block of text usually makes fewer.
const CODES_FULL: usize = 1 << 19;
const KEYS_FULL: usize = 1 << 20;

/// Longest key that is kept as it is. Of a longer one there are its start and the SHA-256 of the rest (FIPS 180-4): as many bytes as no key has
/// that is kept whole, so that two units have one key only if two texts with one digest can be found. A batch of long keys would fill
/// the memory, as a page of Parquet can hold one key for many rows.
const KEY_BYTES: usize = 256;
const KEY_START_BYTES: usize = KEY_BYTES + 1 - 32;

/// Batches that a thread has: one to fill, one on its way, one to wait with.
pub(super) const BATCHES_A_WORKER: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(keys: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut batch = CodedBatch::default();
        keys.iter().for_each(|key| batch.push(0, Some(key)));
        let starts = [0].into_iter().chain(batch.key_ends.iter().copied());
        starts.zip(&batch.key_ends).map(|(start, end)| batch.keys[start..*end].to_vec()).collect()
    }

    /// Two units with one key would share a cap, and one of them decide which rows of the other count.
    #[test]
    fn keys_stay_apart_however_long_they_are() {
        let of = |length: usize, last: u8| [vec![b'x'; length - 1], vec![last]].concat();
        let keys = [
            of(1, b'a'),
            of(256, b'a'),
            of(256, b'b'),
            of(257, b'a'),
            of(257, b'b'),
            of(100_000, b'a'),
            of(100_000, b'b'),
        ];
        let found = kept(&keys.each_ref().map(Vec::as_slice));
        assert_eq!(found[..3], keys[..3], "as they are");
        assert!(found[3..].iter().all(|key| key.len() == KEY_BYTES + 1), "longer than any that is kept whole");
        assert_eq!(found.iter().collect::<std::collections::BTreeSet<_>>().len(), keys.len());
        assert_eq!(kept(&[&keys[5]]), [found[5].clone()], "the same each time");
    }
}
