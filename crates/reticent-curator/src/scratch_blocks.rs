//! Rows of equal size in a scratch file, in blocks that are read in order by one thread and worked on by all.
//!
//! ```text
//!   disk ─▶ one reading thread, some blocks ahead ─▶ all threads: decrypt, work ─▶ empty buffers back to the reader
//! ```
//! The buffers are made once a pass and go round, so that memory does not depend on the number of rows.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::scratch_file::{Keystream, ScratchError, ScratchFile};

/// How rows lie in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockShape {
    /// Bytes of one row.
    pub(crate) row_bytes: usize,
    /// Rows of every block but the last.
    pub(crate) block_rows: usize,
}

impl BlockShape {
    /// Bytes of a whole block.
    pub(crate) fn bytes(self) -> usize {
        self.row_bytes * self.block_rows
    }
}

/// A file in which every block was written once under one keystream.
pub(crate) struct ScratchBlocks {
    shape: BlockShape,
    rows: u64,
    file: ScratchFile,
    keystream: Keystream,
}

/// Buffers that wait between the reader and the threads, over the one that each thread works on.
pub(crate) const READ_AHEAD: usize = 4;

impl ScratchBlocks {
    /// Blocks that were written, or are about to be with [`Self::write`].
    pub(crate) fn new(shape: BlockShape, rows: u64, file: ScratchFile, keystream: Keystream) -> Self {
        Self { shape, rows, file, keystream }
    }

    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    pub(crate) fn block_rows(&self) -> usize {
        self.shape.block_rows
    }

    /// The file, to be written anew under another keystream.
    pub(crate) fn into_file(self) -> ScratchFile {
        self.file
    }

    /// Encrypts the rows of a block and writes them; each block once.
    pub(crate) fn write(&self, block: u64, bytes: &mut [u8]) -> Result<(), ScratchError> {
        self.keystream.apply(block, bytes);
        self.file.write_at(block * self.shape.bytes() as u64, bytes)
    }

    /// Hands every block to `add`: a thread's own total, the block's number, its rows as they were before they were encrypted.
    /// Returns the totals of the threads.
    ///
    /// Blocks come in order to the threads together, in any order to one.
    pub(crate) fn fold<T: Send>(
        &self,
        start: impl Fn() -> T + Sync,
        add: impl Fn(&mut T, u64, &[u8]) -> Result<(), ScratchError> + Sync,
    ) -> Result<Vec<T>, ScratchError> {
        let workers = rayon::current_num_threads();
        let (full_sender, full) = channel();
        let (empty_sender, empty) = channel();
        for _ in 0..workers + READ_AHEAD {
            empty_sender.send(Vec::with_capacity(self.shape.bytes())).expect("the reader has not begun");
        }
        let full = Mutex::new(full);
        let totals = Mutex::new(Vec::with_capacity(workers));
        thread::scope(|threads| {
            let reader = thread::Builder::new().spawn_scoped(threads, move || self.read(&empty, &full_sender));
            let reader = reader.map_err(|error| self.file.read_error(error))?;
            rayon::scope(|tasks| {
                for _ in 0..workers {
                    let empty_sender = empty_sender.clone();
                    let (full, totals, start, add) = (&full, &totals, &start, &add);
                    tasks.spawn(move |_| {
                        let total = self.work(full, &empty_sender, start(), add);
                        totals.lock().unwrap_or_else(PoisonError::into_inner).push(total);
                    });
                }
                // The threads have the others: when the last of them ends, by a panic too, the reader ends.
                drop(empty_sender);
            });
            reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?;
        totals.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().collect()
    }

    /// Fills buffers with the blocks, in order.
    fn read(&self, empty: &Receiver<Vec<u8>>, full: &Sender<(u64, Vec<u8>)>) -> Result<(), ScratchError> {
        self.file.rewind()?;
        let block_rows = self.shape.block_rows as u64;
        for block in 0..self.rows.div_ceil(block_rows) {
            let rows = (self.rows - block * block_rows).min(block_rows) as usize;
            // No buffer comes back, or none is taken: the threads have ended, and say why.
            let Ok(mut bytes) = empty.recv() else { return Ok(()) };
            bytes.resize(rows * self.shape.row_bytes, 0);
            self.file.read_next(&mut bytes)?;
            if full.send((block, bytes)).is_err() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn work<T>(
        &self,
        full: &Mutex<Receiver<(u64, Vec<u8>)>>,
        empty: &Sender<Vec<u8>>,
        mut total: T,
        add: &impl Fn(&mut T, u64, &[u8]) -> Result<(), ScratchError>,
    ) -> Result<T, ScratchError> {
        loop {
            let next = full.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok((block, mut bytes)) = next else { return Ok(total) };
            self.keystream.apply(block, &mut bytes);
            add(&mut total, block, &bytes)?;
            // The reader may have read the last block already.
            let _ = empty.send(bytes);
        }
    }
}

/// Appends integers as they lie on the disk.
pub(crate) fn append<const N: usize, T: Copy>(bytes: &mut Vec<u8>, values: &[T], to_bytes: impl Fn(T) -> [u8; N]) {
    let start = bytes.len();
    bytes.resize(start + N * values.len(), 0);
    let (places, _) = bytes[start..].as_chunks_mut::<N>();
    for (place, value) in places.iter_mut().zip(values) {
        *place = to_bytes(*value);
    }
}

/// Reads integers back into as many places as there are.
pub(crate) fn fetch<const N: usize, T>(bytes: &[u8], values: &mut [T], from_bytes: impl Fn([u8; N]) -> T) {
    let (places, rest) = bytes.as_chunks::<N>();
    assert!(places.len() == values.len() && rest.is_empty(), "a part of a block holds its rows");
    for (value, place) in values.iter_mut().zip(places) {
        *value = from_bytes(*place);
    }
}
