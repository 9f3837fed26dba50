//! Blocks of text coded on several threads and handed over in the file's order.
//!
//! One thread at a time reads, decompresses and cuts; the others code what they cut. A thread has a few batches of its own
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
use super::coded_batch::{BATCHES_A_WORKER, CodedBatch};
use super::record_blocks::{Piece, RecordBlock, RecordCutter};
use super::text_coder::{Scratch, TextCoder};

/// What codes the records of a text.
pub(super) struct TextCoding<'a> {
    pub(super) coder: &'a TextCoder,
    pub(super) threads: usize,
}

impl TextCoding<'_> {
    /// Codes all that is left of a text and hands it to `sink`, in order and on this thread. Returns the bytes of the file
    /// that were read.
    pub(super) fn run<E: From<SourceError>>(
        &self,
        mut cutter: RecordCutter,
        sink: &mut dyn FnMut(&mut CodedBatch) -> Result<(), E>,
    ) -> Result<u64, E> {
        // A short table is not worth a thread.
        let mut place = Workplace::default();
        let mut goes_on = true;
        while goes_on && (self.threads <= 1 || !cutter.has_read_much()) {
            goes_on = self.code_next(&mut cutter, &mut place, sink)?;
        }
        if !goes_on {
            return Ok(cutter.bytes_read());
        }
        drop(place);
        self.run_on_threads(cutter, sink)
    }

    /// Codes one piece on this thread; says whether there was one.
    fn code_next<E: From<SourceError>>(
        &self,
        cutter: &mut RecordCutter,
        place: &mut Workplace,
        sink: &mut dyn FnMut(&mut CodedBatch) -> Result<(), E>,
    ) -> Result<bool, E> {
        let Workplace { block, scratch, batch } = place;
        batch.clear();
        match cutter.next(block)? {
            Piece::End => return Ok(false),
            Piece::Block => self.coder.code_block(block, scratch, batch, |batch| -> Result<(), E> {
                sink(batch)?;
                batch.clear();
                Ok(())
            })?,
            Piece::LongRecord => self.code_long_record(cutter, batch),
        }
        sink(batch)?;
        Ok(true)
    }

    fn code_long_record(&self, cutter: &RecordCutter, batch: &mut CodedBatch) {
        self.coder.code_record(cutter.long_record(), batch);
        batch.bytes_read = cutter.bytes_read();
    }

    fn run_on_threads<E: From<SourceError>>(
        &self,
        cutter: RecordCutter,
        sink: &mut dyn FnMut(&mut CodedBatch) -> Result<(), E>,
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
                    (0..BATCHES_A_WORKER).try_for_each(|_| back.send(CodedBatch::default())).unwrap_or(());
                    batches_back.push((worker, back));
                }
            }
            drop(done);
            if batches_back.is_empty() {
                let mut cutting = cutting.lock().expect("no thread has it");
                let mut place = Workplace::default();
                while self.code_next(&mut cutting.cutter, &mut place, sink)? {}
                return Ok(());
            }
            deliver(&parts, &batches_back, sink)
            // Dropping the channels ends the threads that still wait for batches.
        })?;
        let cutting = cutting.into_inner().expect("a panic was handed on");
        Ok(cutting.cutter.bytes_read())
    }

    /// What each thread does, until there is no more text or nobody wants it.
    fn work(&self, worker: usize, cutting: &Mutex<Cutting>, batches: &Receiver<CodedBatch>, done: &Sender<Part>) {
        let mut block = RecordBlock::default();
        let mut scratch = Scratch::default();
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
            let is_coded = match next {
                Ok(Piece::Block) => {
                    drop(cutting);
                    self.coder.code_block(&block, &mut scratch, &mut batch, |batch| {
                        send(piece, mem::take(batch), false)?;
                        *batch = receive()?;
                        Ok(())
                    })
                }
                Ok(Piece::LongRecord) => {
                    self.code_long_record(&cutting.cutter, &mut batch);
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
            if is_coded.and_then(|()| send(piece, batch, true)).is_err() {
                return;
            }
        }
    }
}

/// Hands parts on in order as they come, and batches back to their threads.
fn deliver<E: From<SourceError>>(
    parts: &Receiver<Part>,
    batches_back: &[(usize, Sender<CodedBatch>)],
    sink: &mut dyn FnMut(&mut CodedBatch) -> Result<(), E>,
) -> Result<(), E> {
    let mut next_piece = 0;
    let mut early: BTreeMap<usize, Vec<Part>> = BTreeMap::new();
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
#[derive(Default)]
struct Workplace {
    block: RecordBlock,
    scratch: Scratch,
    batch: CodedBatch,
}

/// What one thread at a time has.
struct Cutting {
    cutter: RecordCutter,
    next_piece: usize,
    is_over: bool,
}

/// What a thread sends.
enum Part {
    /// Rows of a piece of the text.
    Rows { worker: usize, piece: usize, batch: CodedBatch, is_last: bool },
    /// The piece cannot be read.
    Failure { piece: usize, error: SourceError },
    /// A mistake of this code.
    Panic(Box<dyn Any + Send>),
}

/// The receiver of rows is gone.
struct NotWanted;
