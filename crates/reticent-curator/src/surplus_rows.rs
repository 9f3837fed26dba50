//! Which rows are beyond the cap of their privacy unit, found in memory that grows neither with the rows nor with the units.
//!
//! ```text
//!   key ─▶ digest, number of the row ─sort─▶ each unit's rows together, in the table's order ─▶ those beyond the cap ─sort─▶ in the table's order
//! ```
//! They are those that a count for every key would find ([`crate::source`] keeps one for tables in memory): all but the first of each unit.
//!
//! Two keys with one digest would share a cap, and one unit's rows would decide about another's. Digests are the first 192 bits of SHA-256
//! (FIPS 180-4) over a random block and the key: the block is in memory only, so that nobody can choose keys with equal digests, and of `n`
//! units any two have one with a probability of at most `n² / 2^193` as long as SHA-256 so keyed is a pseudorandom function: below
//! `2^-113` for a million million units.

use sha2::{Digest, Sha256};

use crate::external_sort::{ExternalSort, SortShape, SortedRecords};
use crate::scratch_file::{ScratchError, ScratchPlace};

/// Takes the key of every row. Private: no `Debug`.
pub(crate) struct UnitRows {
    rows_max: u32,
    /// Has taken the random block.
    keyed: Sha256,
    rows: u64,
    shape: SortShape,
    place: ScratchPlace,
    sort: ExternalSort<RECORD_BYTES>,
}

/// Numbers of the rows that do not count, in the table's order. Private: no `Debug`.
pub(crate) struct SurplusRows {
    sorted: SortedRecords<ROW_BYTES>,
}

/// Bytes that say whose a row is.
const DIGEST_BYTES: usize = 24;

// What the bound on equal digests rests on.
const _: () = assert!(8 * DIGEST_BYTES == 192);

/// Bytes of a row's number, the highest first: in the order of the bytes numbers are in their own.
const ROW_BYTES: usize = size_of::<u64>();

const RECORD_BYTES: usize = DIGEST_BYTES + ROW_BYTES;

/// Most bytes that finding them takes: their numbers are being collected while the others are merged.
pub(crate) const fn memory_bytes(shape: SortShape) -> usize {
    shape.bytes(RECORD_BYTES) + shape.bytes(ROW_BYTES)
}

impl UnitRows {
    /// No rows yet.
    pub(crate) fn new(rows_max: u32, shape: SortShape, place: &ScratchPlace) -> Result<Self, ScratchError> {
        // A whole block of the hash, which it takes once and not for every key.
        let mut block = [0; 64];
        getrandom::fill(&mut block).map_err(ScratchError::Entropy)?;
        let keyed = Sha256::new_with_prefix(block);
        Ok(Self { rows_max, keyed, rows: 0, shape, place: place.clone(), sort: ExternalSort::new(shape, place)? })
    }

    /// The next row of the table, by its key.
    pub(crate) fn push(&mut self, key: &[u8]) -> Result<(), ScratchError> {
        let digest = self.keyed.clone().chain_update(key).finalize();
        let mut record = [0; RECORD_BYTES];
        record[..DIGEST_BYTES].copy_from_slice(&digest[..DIGEST_BYTES]);
        record[DIGEST_BYTES..].copy_from_slice(&self.rows.to_be_bytes());
        self.rows += 1;
        self.sort.push(record)
    }

    /// All rows but the first of each unit, as many as its cap.
    pub(crate) fn surplus(self) -> Result<SurplusRows, ScratchError> {
        let mut surplus = ExternalSort::new(self.shape, &self.place)?;
        let mut sorted = self.sort.finish()?;
        let (mut unit, mut rows_of_unit) = (None, 0u32);
        while let Some(record) = sorted.next()? {
            let (digest, row) = record.split_first_chunk::<DIGEST_BYTES>().expect("a record begins with a digest");
            if unit != Some(*digest) {
                (unit, rows_of_unit) = (Some(*digest), 0);
            }
            rows_of_unit = rows_of_unit.saturating_add(1);
            if rows_of_unit > self.rows_max {
                surplus.push(row.try_into().expect("and ends with a number"))?;
            }
        }
        // Gives its room back before the next is taken.
        drop(sorted);
        Ok(SurplusRows { sorted: surplus.finish()? })
    }
}

impl SurplusRows {
    /// The next of them; none after the last.
    pub(crate) fn next(&mut self) -> Result<Option<u64>, ScratchError> {
        Ok(self.sorted.next()?.map(u64::from_be_bytes))
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// The surplus of rows with these keys.
    fn surplus<'a>(keys: impl IntoIterator<Item = &'a [u8]>, rows_max: u32, shape: SortShape) -> Vec<u64> {
        // Not the folder of temporary files, which may lie in memory.
        let place = ScratchPlace::encrypted(PathBuf::from(env!("CARGO_MANIFEST_DIR")));
        let mut units = UnitRows::new(rows_max, shape, &place).expect("a folder on a disk");
        keys.into_iter().for_each(|key| units.push(key).expect("there is room"));
        let mut surplus = units.surplus().expect("the disk works");
        std::iter::from_fn(|| surplus.next().expect("was written")).collect()
    }

    const SMALL: SortShape = SortShape { block_records: 2, blocks: 2 };

    #[test]
    fn the_first_rows_of_a_unit_count() {
        let keys = ["ann", "bob", "ann", "", "ann", "bob", "ann", "", "an", ""].map(str::as_bytes);
        for shape in [SMALL, SortShape::USUAL] {
            assert_eq!(surplus(keys, 1, shape), [2, 4, 5, 6, 7, 9]);
            assert_eq!(surplus(keys, 2, shape), [4, 6, 9]);
            assert_eq!(surplus(keys, 3, shape), [6]);
            assert!(surplus(keys, 4, shape).is_empty());
            assert!(surplus([], 1, shape).is_empty());
        }
    }

    /// One unit has all rows, more than a byte can number; and every row is a unit.
    #[test]
    fn units_have_any_number_of_rows() {
        let rows = 70_000u32;
        let shape = SortShape { block_records: 100, blocks: 30 };
        assert!(surplus((0..rows).map(|_| &b"ann"[..]), 3, shape).into_iter().eq(3..u64::from(rows)));
        let keys: Vec<[u8; 4]> = (0..rows).map(u32::to_le_bytes).collect();
        assert!(surplus(keys.iter().map(|key| &key[..]), 1, shape).is_empty());
        // Keys longer than a block of the hash, unlike in the last byte alone.
        let keys: Vec<Vec<u8>> = (0..=255).map(|last| [&[7; 200][..], &[last]].concat()).collect();
        assert!(surplus(keys.iter().map(|key| &key[..]), 1, SMALL).is_empty());
    }
}
