//! Blocks of text read on several threads, and what they make of it handed over in the file's order.
//!
//! One thread at a time reads, decompresses and cuts; the others make batches of what they cut. A thread has a few batches of its own
//! and waits when they are all on their way, so memory is bounded by the number of threads. The thread whose block is next
//! gets its batches back at once: nothing waits in a circle.

use std::any::Any;
use std::collections::BTreeMap;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use super::SourceError;
use super::coded_batch::BATCHES_A_WORKER;
use super::csv::Record;
use super::record_blocks::{Piece, RecordBlock, RecordCutter};

/// What makes batches of the records of a text; the same for all threads.
pub(super) trait RecordReader: Sync {
    /// What a thread keeps from block to block.
    type Scratch;
    /// What is made of some records.
    type Batch: Batch;

    /// At the beginning of a thread's work.
    fn scratch(&self) -> Self::Scratch;

    /// Reads the records of a block. When the batch is full, `emit` takes it and leaves an empty one.
    fn read_block<E>(
        &self,
        block: &RecordBlock,
        scratch: &mut Self::Scratch,
        batch: &mut Self::Batch,
        emit: impl FnMut(&mut Self::Batch) -> Result<(), E>,
    ) -> Result<(), E>;

    /// Reads a record that came by itself.
    fn read_record(&self, record: &Record, scratch: &mut Self::Scratch, batch: &mut Self::Batch);
}

/// What is on its way from a thread to whoever takes it, and is used again.
pub(super) trait Batch: Default + Send {
    /// Empties it.
    fn clear(&mut self);

    /// Says how many bytes of the file were read when it was complete.
    fn set_bytes_read(&mut self, bytes: u64);
}

/// A way to read the records of a text, and the threads that do.
pub(super) struct TextThreads<'a, R> {
    pub(super) reader: &'a R,
    pub(super) threads: usize,
}

/// Takes batches in their order.
type Sink<'s, B, E> = &'s mut dyn FnMut(&mut B) -> Result<(), E>;

impl<R: RecordReader> TextThreads<'_, R> {
    /// Reads all that is left of a text and hands it to `sink`, in order and on this thread. Returns the bytes of the file
    /// that were read.
    pub(super) fn run<E: From<SourceError>>(
        &self,
        mut cutter: RecordCutter,
        sink: Sink<'_, R::Batch, E>,
    ) -> Result<u64, E> {
        // A short table is not worth a thread.
        let mut place = self.workplace();
        let mut goes_on = true;
        while goes_on && (self.threads <= 1 || !cutter.has_read_much()) {
            goes_on = self.read_next(&mut cutter, &mut place, sink)?;
        }
        if !goes_on {
            return Ok(cutter.bytes_read());
        }
        drop(place);
        self.run_on_threads(cutter, sink)
    }

    fn workplace(&self) -> Workplace<R> {
        Workplace { block: RecordBlock::default(), scratch: self.reader.scratch(), batch: R::Batch::default() }
    }

    /// Reads one piece on this thread; says whether there was one.
    fn read_next<E: From<SourceError>>(
        &self,
        cutter: &mut RecordCutter,
        place: &mut Workplace<R>,
        sink: Sink<'_, R::Batch, E>,
    ) -> Result<bool, E> {
        let Workplace { block, scratch, batch } = place;
        batch.clear();
        match cutter.next(block)? {
            Piece::End => return Ok(false),
            Piece::Block => self.reader.read_block(block, scratch, batch, |batch| -> Result<(), E> {
                sink(batch)?;
                batch.clear();
                Ok(())
            })?,
            Piece::LongRecord => self.read_long_record(cutter, scratch, batch),
        }
        sink(batch)?;
        Ok(true)
    }

    fn read_long_record(&self, cutter: &RecordCutter, scratch: &mut R::Scratch, batch: &mut R::Batch) {
        self.reader.read_record(cutter.long_record(), scratch, batch);
        batch.set_bytes_read(cutter.bytes_read());
    }

    fn run_on_threads<E: From<SourceError>>(
        &self,
        cutter: RecordCutter,
        sink: Sink<'_, R::Batch, E>,
    ) -> Result<u64, E> {
        let cutting = Mutex::new(Cutting { cutter, next_piece: 0, is_over: false });
        let (done, parts) = channel();
        thread::scope(|scope| {
            let mut batches_back = Vec::with_capacity(self.threads);
            for worker in 0..self.threads {
                let (back, batches) = channel();
                let (done, cutting) = (done.clone(), &cutting);
                let work = move || {
                    let outcome = catch_unwind(AssertUnwindSafe(|| self.work(worker, cutting, &batches, &done)));
                    if let Err(panic) = outcome {
                        // Nobody listens once the rows are not wanted any more.
                        let _ = done.send(Part::Panic(panic));
                    }
                };
                // Fewer threads than wished for do it, too.
                if thread::Builder::new().spawn_scoped(scope, work).is_ok() {
                    (0..BATCHES_A_WORKER).try_for_each(|_| back.send(R::Batch::default())).unwrap_or(());
                    batches_back.push((worker, back));
                }
            }
            drop(done);
            if batches_back.is_empty() {
                let mut cutting = cutting.lock().expect("no thread has it");
                let mut place = self.workplace();
                while self.read_next(&mut cutting.cutter, &mut place, sink)? {}
                return Ok(());
            }
            deliver(&parts, &batches_back, sink)
            // Dropping the channels ends the threads that still wait for batches.
        })?;
        let cutting = cutting.into_inner().expect("a panic was handed on");
        Ok(cutting.cutter.bytes_read())
    }

    /// What each thread does, until there is no more text or nobody wants it.
    fn work(
        &self,
        worker: usize,
        cutting: &Mutex<Cutting>,
        batches: &Receiver<R::Batch>,
        done: &Sender<Part<R::Batch>>,
    ) {
        let mut block = RecordBlock::default();
        let mut scratch = self.reader.scratch();
        let send =
            |piece, batch, is_last| done.send(Part::Rows { worker, piece, batch, is_last }).map_err(|_| NotWanted);
        let receive = || {
            let mut batch = batches.recv().map_err(|_| NotWanted)?;
            batch.clear();
            Ok(batch)
        };
        while let Ok(mut batch) = receive() {
            let Ok(mut cutting) = cutting.lock() else { return };
            if cutting.is_over {
                return;
            }
            let piece = cutting.next_piece;
            cutting.next_piece += 1;
            let next = cutting.cutter.next(&mut block);
            let is_read = match next {
                Ok(Piece::Block) => {
                    drop(cutting);
                    self.reader.read_block(&block, &mut scratch, &mut batch, |batch| {
                        send(piece, mem::take(batch), false)?;
                        *batch = receive()?;
                        Ok(())
                    })
                }
                Ok(Piece::LongRecord) => {
                    self.read_long_record(&cutting.cutter, &mut scratch, &mut batch);
                    Ok(())
                }
                Ok(Piece::End) => {
                    cutting.is_over = true;
                    return;
                }
                Err(error) => {
                    cutting.is_over = true;
                    let _ = done.send(Part::Failure { piece, error });
                    return;
                }
            };
            if is_read.and_then(|()| send(piece, batch, true)).is_err() {
                return;
            }
        }
    }
}

/// Hands parts on in order as they come, and batches back to their threads.
fn deliver<B, E: From<SourceError>>(
    parts: &Receiver<Part<B>>,
    batches_back: &[(usize, Sender<B>)],
    sink: Sink<'_, B, E>,
) -> Result<(), E> {
    let mut next_piece = 0;
    let mut early: BTreeMap<usize, Vec<Part<B>>> = BTreeMap::new();
    while let Ok(part) = parts.recv() {
        let piece = match part {
            Part::Panic(panic) => resume_unwind(panic),
            Part::Rows { piece, .. } | Part::Failure { piece, .. } => piece,
        };
        early.entry(piece).or_default().push(part);
        while let Some(parts) = early.get_mut(&next_piece) {
            let mut is_complete = false;
            for part in parts.drain(..) {
                match part {
                    Part::Rows { worker, mut batch, is_last, .. } => {
                        sink(&mut batch)?;
                        is_complete = is_last;
                        if let Some((_, back)) = batches_back.iter().find(|(owner, _)| *owner == worker) {
                            // The thread may be done.
                            let _ = back.send(batch);
                        }
                    }
                    Part::Failure { error, .. } => return Err(error.into()),
                    Part::Panic(panic) => resume_unwind(panic),
                }
            }
            if !is_complete {
                break;
            }
            early.remove(&next_piece);
            next_piece += 1;
        }
    }
    Ok(())
}

/// What one thread needs.
struct Workplace<R: RecordReader> {
    block: RecordBlock,
    scratch: R::Scratch,
    batch: R::Batch,
}

/// What one thread at a time has.
struct Cutting {
    cutter: RecordCutter,
    next_piece: usize,
    is_over: bool,
}

/// What a thread sends.
enum Part<B> {
    /// Rows of a piece of the text.
    Rows { worker: usize, piece: usize, batch: B, is_last: bool },
    /// The piece cannot be read.
    Failure { piece: usize, error: SourceError },
    /// A mistake of this code.
    Panic(Box<dyn Any + Send>),
}

/// The receiver of rows is gone.
struct NotWanted;
