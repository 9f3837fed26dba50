//! Rows of equal size in blocks: the first in memory, as many as there is room for, the others in a scratch file, which one thread reads
//! in order. All threads work on them.
//!
//! ```text
//!   memory ───────────────────────────────────────▶ all threads: work
//!   disk ─▶ one reading thread, some blocks ahead ─▶ all threads: decrypt, work ─▶ empty buffers back to the reader
//! ```
//! The room in memory is taken once and the buffers are made once a pass and go round, so that memory does not depend on the number of
//! rows.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::scratch_file::{Keystream, ScratchError, ScratchFile, ScratchPlace};

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

    /// Blocks of so many rows.
    fn blocks(self, rows: u64) -> u64 {
        rows.div_ceil(self.block_rows as u64)
    }

    /// How many of the rows are in the first blocks that fit into so many bytes, and how many blocks those are.
    fn kept(self, rows: u64, bytes: u64) -> (u64, u64) {
        if bytes >= rows * self.row_bytes as u64 {
            return (rows, self.blocks(rows));
        }
        let blocks = bytes / self.bytes() as u64;
        (blocks * self.block_rows as u64, blocks)
    }
}

/// Room for blocks that are written anew again and again.
pub(crate) struct BlockRoom {
    /// Empty, with room for the first blocks.
    memory: Vec<u8>,
    /// For the others.
    file: ScratchFile,
}

impl BlockRoom {
    /// Takes room for so many rows: whole blocks in memory, up to `memory_bytes`, and the others on the disk.
    pub(crate) fn take(
        shape: BlockShape,
        rows: u64,
        memory_bytes: u64,
        place: &ScratchPlace,
    ) -> Result<Self, ScratchError> {
        let wanted = usize::try_from(memory_bytes.min(rows * shape.row_bytes as u64)).unwrap_or(usize::MAX);
        let mut memory = Vec::new();
        // What the system does not give lies on the disk, too.
        let _ = memory.try_reserve_exact(wanted);
        let (kept_rows, _) = shape.kept(rows, memory.capacity() as u64);
        let file = place.create()?;
        file.reserve((rows - kept_rows) * shape.row_bytes as u64)?;
        Ok(Self { memory, file })
    }
}

/// Blocks each of which was written once, those of the file under one keystream.
pub(crate) struct ScratchBlocks {
    shape: BlockShape,
    rows: u64,
    /// Blocks that lie in memory, one after the other.
    kept: u64,
    memory: Mutex<Vec<u8>>,
    file: ScratchFile,
    keystream: Keystream,
}

/// Buffers that wait between the reader and the threads, over the one that each thread works on.
pub(crate) const READ_AHEAD: usize = 4;

impl ScratchBlocks {
    /// Blocks in a file that were written.
    pub(crate) fn written(shape: BlockShape, rows: u64, file: ScratchFile, keystream: Keystream) -> Self {
        Self { shape, rows, kept: 0, memory: Mutex::new(Vec::new()), file, keystream }
    }

    /// Blocks that are about to be written with [`Self::write`].
    pub(crate) fn in_room(shape: BlockShape, rows: u64, room: BlockRoom) -> Result<Self, ScratchError> {
        let BlockRoom { mut memory, file } = room;
        let keystream = file.new_keystream()?;
        let (kept_rows, kept) = shape.kept(rows, memory.capacity() as u64);
        // Within the capacity: nothing is allocated.
        memory.resize(kept_rows as usize * shape.row_bytes, 0);
        Ok(Self { shape, rows, kept, memory: Mutex::new(memory), file, keystream })
    }

    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    pub(crate) fn block_rows(&self) -> usize {
        self.shape.block_rows
    }

    /// The room, to be written anew under another keystream.
    pub(crate) fn into_room(self) -> BlockRoom {
        let mut memory = self.memory.into_inner().unwrap_or_else(PoisonError::into_inner);
        memory.clear();
        BlockRoom { memory, file: self.file }
    }

    /// Writes the rows of a block, encrypted where it is in the file; each block once.
    pub(crate) fn write(&self, block: u64, bytes: &mut [u8]) -> Result<(), ScratchError> {
        let block_bytes = self.shape.bytes() as u64;
        if block < self.kept {
            let start = (block * block_bytes) as usize;
            self.memory()[start..start + bytes.len()].copy_from_slice(bytes);
            return Ok(());
        }
        self.keystream.apply(block, bytes);
        self.file.write_at((block - self.kept) * block_bytes, bytes)
    }

    /// A panic in between leaves bytes that nobody asks for again.
    fn memory(&self) -> MutexGuard<'_, Vec<u8>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands every block to `add`: a thread's own total, the block's number, its rows as they were before they were encrypted.
    /// Returns the totals of the threads.
    ///
    /// Blocks come in any order.
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
        let memory = self.memory();
        let kept = KeptBlocks { bytes: &memory, block_bytes: self.shape.bytes(), taken: AtomicU64::new(0) };
        let totals = Mutex::new(Vec::with_capacity(workers));
        thread::scope(|threads| {
            let reader = thread::Builder::new().spawn_scoped(threads, move || self.read(&empty, &full_sender));
            let reader = reader.map_err(|error| self.file.read_error(error))?;
            rayon::scope(|tasks| {
                for _ in 0..workers {
                    let empty_sender = empty_sender.clone();
                    let (kept, full, totals, start, add) = (&kept, &full, &totals, &start, &add);
                    tasks.spawn(move |_| {
                        let total = self.work(kept, full, &empty_sender, start(), add);
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

    /// Fills buffers with the blocks of the file, in order.
    fn read(&self, empty: &Receiver<Vec<u8>>, full: &Sender<(u64, Vec<u8>)>) -> Result<(), ScratchError> {
        self.file.rewind()?;
        let block_rows = self.shape.block_rows as u64;
        for block in self.kept..self.shape.blocks(self.rows) {
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
        kept: &KeptBlocks<'_>,
        full: &Mutex<Receiver<(u64, Vec<u8>)>>,
        empty: &Sender<Vec<u8>>,
        mut total: T,
        add: &impl Fn(&mut T, u64, &[u8]) -> Result<(), ScratchError>,
    ) -> Result<T, ScratchError> {
        while let Some((block, bytes)) = kept.next() {
            add(&mut total, block, bytes)?;
        }
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

/// Blocks in memory that threads take in turn.
struct KeptBlocks<'a> {
    bytes: &'a [u8],
    block_bytes: usize,
    taken: AtomicU64,
}

impl KeptBlocks<'_> {
    fn next(&self) -> Option<(u64, &[u8])> {
        let block = self.taken.fetch_add(1, Ordering::Relaxed);
        self.bytes.chunks(self.block_bytes).nth(block as usize).map(|bytes| (block, bytes))
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
