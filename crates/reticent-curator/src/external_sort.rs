//! Records of one length in the order of their bytes, however many there are, sorted in memory whose size is known beforehand.
//!
//! ```text
//!   push ─▶ chunk in memory, sorted when it is full ─▶ a run in a scratch file ──┐
//!   more runs than buffers: some at a time are merged ─▶ longer runs in a new file ◀┘ ─▶ ... ─▶ the last merge: next, next, ...
//! ```
//! The buffers of a merge take the place of the chunk. Runs follow each other in their file, whole blocks of records; where one begins is
//! computed, so that no list grows with their number.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::ops::Range;

use rayon::slice::ParallelSliceMut;

use crate::scratch_file::{Keystream, ScratchError, ScratchFile, ScratchPlace};

/// How much of the records is in memory at once: public, and of no influence on their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortShape {
    /// Records that are written or read at a time.
    pub block_records: usize,
    /// Blocks of a chunk, and runs that are merged at a time, each through a buffer of one block. Two at least.
    pub blocks: usize,
}

impl SortShape {
    /// Half a million records in memory; 134 million of them are merged at a time.
    pub const USUAL: Self = Self { block_records: 1 << 11, blocks: 1 << 8 };

    /// Most bytes that sorting records of so many bytes takes: the blocks, one on its way to the disk, and one that covers where each buffer
    /// stands.
    pub(crate) const fn bytes(self, record_bytes: usize) -> usize {
        (self.blocks + 2) * self.block_records * record_bytes
    }
}

/// Takes records in any order. Private: no `Debug`.
pub(crate) struct ExternalSort<const N: usize> {
    shape: SortShape,
    place: ScratchPlace,
    chunk: Vec<[u8; N]>,
    runs: RunWriter<N>,
}

/// Gives records back in their order, equal ones as often as they came. Private: no `Debug`.
pub(crate) struct SortedRecords<const N: usize> {
    runs: Runs<N>,
    merge: Merge<N>,
}

impl<const N: usize> ExternalSort<N> {
    /// Takes the memory for a chunk, and makes a scratch file.
    pub(crate) fn new(shape: SortShape, place: &ScratchPlace) -> Result<Self, ScratchError> {
        assert!(shape.block_records > 0 && shape.blocks > 1, "a merge makes fewer runs of several");
        let chunk = Vec::with_capacity(shape.blocks * shape.block_records);
        Ok(Self { shape, place: place.clone(), chunk, runs: RunWriter::new(shape.block_records, place)? })
    }

    pub(crate) fn push(&mut self, record: [u8; N]) -> Result<(), ScratchError> {
        self.chunk.push(record);
        if self.chunk.len() == self.shape.blocks * self.shape.block_records { self.write_run() } else { Ok(()) }
    }

    /// All records that were pushed, in order.
    pub(crate) fn finish(mut self) -> Result<SortedRecords<N>, ScratchError> {
        self.write_run()?;
        let Self { shape, place, chunk, runs } = self;
        drop(chunk);
        let mut runs = runs.finish((shape.blocks * shape.block_records) as u64)?;
        while runs.number() > shape.blocks as u64 {
            runs = runs.merged(shape.blocks as u64, &place)?;
        }
        let merge = Merge::of(&runs, 0..runs.number())?;
        Ok(SortedRecords { runs, merge })
    }

    fn write_run(&mut self) -> Result<(), ScratchError> {
        self.chunk.par_sort_unstable();
        self.chunk.drain(..).try_for_each(|record| self.runs.push(record))
    }
}

impl<const N: usize> SortedRecords<N> {
    /// The next record; none after the last.
    pub(crate) fn next(&mut self) -> Result<Option<[u8; N]>, ScratchError> {
        self.merge.next(&self.runs)
    }
}

/// Sorted runs of equal length in a file, the last of which may be shorter.
struct Runs<const N: usize> {
    block_records: usize,
    /// A multiple of the records of a block.
    run_records: u64,
    records: u64,
    file: ScratchFile,
    keystream: Keystream,
}

impl<const N: usize> Runs<N> {
    fn number(&self) -> u64 {
        self.records.div_ceil(self.run_records)
    }

    /// The same records in longer runs, so many of these merged to one.
    fn merged(self, number: u64, place: &ScratchPlace) -> Result<Self, ScratchError> {
        let mut longer = RunWriter::new(self.block_records, place)?;
        let mut first = 0;
        while first < self.number() {
            let mut merge = Merge::of(&self, first..self.number().min(first + number))?;
            first += number;
            while let Some(record) = merge.next(&self)? {
                longer.push(record)?;
            }
        }
        longer.finish(self.run_records * number)
    }
}

/// Writes one record after the other.
struct RunWriter<const N: usize> {
    block_records: usize,
    file: ScratchFile,
    keystream: Keystream,
    /// The block that is being filled.
    block: Vec<[u8; N]>,
    /// Blocks that are written.
    blocks: u64,
}

impl<const N: usize> RunWriter<N> {
    fn new(block_records: usize, place: &ScratchPlace) -> Result<Self, ScratchError> {
        let file = place.create()?;
        let keystream = file.new_keystream()?;
        Ok(Self { block_records, file, keystream, block: Vec::with_capacity(block_records), blocks: 0 })
    }

    fn push(&mut self, record: [u8; N]) -> Result<(), ScratchError> {
        self.block.push(record);
        if self.block.len() == self.block_records { self.write_block() } else { Ok(()) }
    }

    fn finish(mut self, run_records: u64) -> Result<Runs<N>, ScratchError> {
        let records = self.blocks * self.block_records as u64 + self.block.len() as u64;
        if !self.block.is_empty() {
            self.write_block()?;
        }
        let Self { block_records, file, keystream, .. } = self;
        Ok(Runs { block_records, run_records, records, file, keystream })
    }

    fn write_block(&mut self) -> Result<(), ScratchError> {
        let bytes = self.block.as_flattened_mut();
        self.keystream.apply(self.blocks, bytes);
        self.file.write_at(self.blocks * (self.block_records * N) as u64, bytes)?;
        self.block.clear();
        self.blocks += 1;
        Ok(())
    }
}

/// Some runs on their way to one.
struct Merge<const N: usize> {
    readers: Vec<RunReader<N>>,
    /// The first record of each run that is not merged yet, with the place of its reader; the least on top.
    first: BinaryHeap<Reverse<([u8; N], usize)>>,
}

impl<const N: usize> Merge<N> {
    fn of(runs: &Runs<N>, numbers: Range<u64>) -> Result<Self, ScratchError> {
        let mut readers: Vec<RunReader<N>> = numbers.map(|number| RunReader::of(runs, number)).collect();
        let mut first = BinaryHeap::with_capacity(readers.len());
        for (place, reader) in readers.iter_mut().enumerate() {
            first.extend(reader.next(runs)?.map(|record| Reverse((record, place))));
        }
        Ok(Self { readers, first })
    }

    fn next(&mut self, runs: &Runs<N>) -> Result<Option<[u8; N]>, ScratchError> {
        let Some(mut top) = self.first.peek_mut() else { return Ok(None) };
        let Reverse((record, place)) = *top;
        match self.readers[place].next(runs)? {
            Some(next) => *top = Reverse((next, place)),
            None => drop(PeekMut::pop(top)),
        }
        Ok(Some(record))
    }
}

/// Reads a run block by block.
struct RunReader<const N: usize> {
    /// Records of the file that are to be read.
    rest: Range<u64>,
    block: Vec<[u8; N]>,
    /// Records of the block that were given.
    given: usize,
}

impl<const N: usize> RunReader<N> {
    fn of(runs: &Runs<N>, number: u64) -> Self {
        let start = number * runs.run_records;
        Self { rest: start..runs.records.min(start + runs.run_records), block: Vec::new(), given: 0 }
    }

    fn next(&mut self, runs: &Runs<N>) -> Result<Option<[u8; N]>, ScratchError> {
        if self.given == self.block.len() {
            let records = (self.rest.end - self.rest.start).min(runs.block_records as u64);
            if records == 0 {
                return Ok(None);
            }
            self.block.resize(records as usize, [0; N]);
            let bytes = self.block.as_flattened_mut();
            runs.file.read_at(self.rest.start * N as u64, bytes)?;
            runs.keystream.apply(self.rest.start / runs.block_records as u64, bytes);
            (self.rest.start, self.given) = (self.rest.start + records, 0);
        }
        self.given += 1;
        Ok(Some(self.block[self.given - 1]))
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use proptest::prelude::*;
    use reticent_math::fixed_sequence::FixedSequence;

    use super::*;

    fn place() -> ScratchPlace {
        // Not the folder of temporary files, which may lie in memory.
        ScratchPlace::encrypted(PathBuf::from(env!("CARGO_MANIFEST_DIR")))
    }

    fn sorted<const N: usize>(records: &[[u8; N]], shape: SortShape, place: &ScratchPlace) -> Vec<[u8; N]> {
        let mut sort = ExternalSort::new(shape, place).expect("a folder on a disk");
        records.iter().for_each(|record| sort.push(*record).expect("there is room"));
        let mut sorted = sort.finish().expect("the disk works");
        let mut found = Vec::new();
        while let Some(record) = sorted.next().expect("was written") {
            found.push(record);
        }
        assert!(sorted.next().expect("was written").is_none(), "nothing comes after the last");
        found
    }

    /// Records without an order to speak of, each there twice.
    fn scattered(number: usize) -> Vec<[u8; 6]> {
        let mut sequence = FixedSequence::new(1);
        let record = || {
            let [a, b, c, d, ..] = sequence.next_word().to_be_bytes();
            [a, b, c, d, 7, 9]
        };
        std::iter::repeat_with(record).flat_map(|record| [record; 2]).take(number).collect()
    }

    /// None, one, a block or a chunk of six with one less and one more, as many chunks as there are buffers and one more, several merges.
    #[test]
    fn records_come_in_order_however_many_there_are() {
        let shape = SortShape { block_records: 3, blocks: 2 };
        for number in [0, 1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 18, 19, 24, 25, 48, 49, 100, 1000] {
            let records = scattered(number);
            let mut expected = records.clone();
            expected.sort_unstable();
            for place in [place(), ScratchPlace::unencrypted(PathBuf::from(env!("CARGO_MANIFEST_DIR")))] {
                assert_eq!(sorted(&records, shape, &place), expected, "{number} records");
            }
        }
    }

    #[test]
    fn equal_records_come_as_often_as_they_were_there() {
        let shape = SortShape { block_records: 2, blocks: 3 };
        assert_eq!(sorted(&[[5; 4]; 100], shape, &place()), [[5; 4]; 100]);
    }

    #[test]
    fn bytes_of_all_buffers_are_counted() {
        assert_eq!(SortShape { block_records: 3, blocks: 2 }.bytes(10), 120);
        // A chunk of 16 MiB, where each buffer stands in less than a block.
        assert_eq!(SortShape::USUAL.bytes(32), (16 << 20) + (128 << 10));
        let of_buffers = size_of::<RunReader<32>>() + size_of::<Reverse<([u8; 32], usize)>>();
        assert!(SortShape::USUAL.blocks * of_buffers <= SortShape::USUAL.block_records * 32);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn any_records_are_sorted(
            records in prop::collection::vec(any::<[u8; 2]>(), 0..200),
            block_records in 1..9usize,
            blocks in 2..5usize,
        ) {
            let mut expected = records.clone();
            expected.sort_unstable();
            prop_assert_eq!(sorted(&records, SortShape { block_records, blocks }, &place()), expected);
        }
    }
}
