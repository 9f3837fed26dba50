//! What was made of a few rows, on its way from a thread to whoever takes it.

use std::mem;

use super::SourceError;
use super::record_blocks::RecordCutter;
use super::text_threads::{Batch, RecordReader, TextThreads};

/// Rows of which something is made before it is handed on, and numbers.
pub(super) const ROWS_AT_ONCE: usize = 8192;
const NUMBERS_AT_ONCE: usize = 1 << 20;

/// The same where so many numbers are made of a row.
pub(super) fn rows_at_once(numbers_of_row: usize) -> usize {
    (NUMBERS_AT_ONCE / numbers_of_row.max(1)).clamp(1, ROWS_AT_ONCE)
}

/// What was made of a few rows: private.
#[derive(Default)]
pub(super) struct MadeBatch<T> {
    made: T,
    rows: usize,
    is_lost: bool,
    pub(super) bytes_read: u64,
}

impl<T: Default> MadeBatch<T> {
    /// Makes something of one row more.
    #[inline]
    pub(super) fn add(&mut self, make: impl FnOnce(&mut T)) {
        make(&mut self.made);
        self.rows += 1;
    }

    /// What was made, unless memory was refused for it.
    pub(super) fn take(&mut self) -> Result<T, SourceError> {
        self.rows = 0;
        let made = mem::take(&mut self.made);
        if self.is_lost { Err(SourceError::OutOfMemory) } else { Ok(made) }
    }

    /// Rows of which something was made.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Marks rows that nothing may be made of, because memory for a part of them was refused.
    pub(super) fn lose(&mut self) {
        self.is_lost = true;
    }
}

impl<T: Default + Send> Batch for MadeBatch<T> {
    fn clear(&mut self) {
        *self = Self::default();
    }

    fn set_bytes_read(&mut self, bytes: u64) {
        self.bytes_read = bytes;
    }
}

/// Reads a text on all threads, and hands what is made of its records to `take`, in order and on this thread.
pub(super) fn for_each_made_of_text<T, E>(
    reader: &impl RecordReader<Batch = MadeBatch<T>>,
    cutter: RecordCutter,
    progress: &mut dyn FnMut(u64),
    take: &mut dyn FnMut(T) -> Result<(), E>,
) -> Result<(), E>
where
    T: Default + Send,
    E: From<SourceError>,
{
    let reading = TextThreads { reader, threads: rayon::current_num_threads() };
    let bytes_read = reading.run(cutter, &mut |batch| -> Result<(), E> {
        take(batch.take()?)?;
        progress(batch.bytes_read);
        Ok(())
    })?;
    progress(bytes_read);
    Ok(())
}
