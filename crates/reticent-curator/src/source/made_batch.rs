//! What was made of a few rows, on its way from a thread to whoever takes it.

use std::mem;

use super::SourceError;
use super::text_threads::Batch;

/// Rows of which something is made before it is handed on.
const ROWS_FULL: usize = 8192;

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

    /// Whether it is time to hand it on.
    pub(super) fn is_full(&self) -> bool {
        self.rows >= ROWS_FULL
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
