//! Parquet coded on several threads: each decodes some of the columns from beginning to end, and rows are joined in order.
//!
//! Columns and not groups of rows are shared out, because a file may be a single group, and because rows then come in
//! order without one thread holding many of them for another.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use super::SourceError;
use super::coded_batch::{BATCHES_A_WORKER, CodedBatch};
use super::column_coder::ColumnGroup;
use super::parquet::ParquetTable;
use super::row_coder::RowCoder;
use super::text_threads::Batch;

/// Codes a table and hands it to `sink`, in order and on this thread.
pub(super) fn code_columns<E: From<SourceError>>(
    table: &ParquetTable,
    coder: &RowCoder,
    threads: usize,
    sink: &mut dyn FnMut(&mut CodedBatch) -> Result<(), E>,
) -> Result<(), E> {
    let groups = ColumnGroup::split(coder, threads);
    let mut progress = Progress { rows_read: 0, table };
    if let [group] = &groups[..] {
        let mut reader = table.batches(group.raw_slots(table.raw_slots()))?;
        let mut batch = CodedBatch::default();
        while let Some((rows, columns)) = reader.next()? {
            batch.clear();
            group.code(coder, &columns, rows, &mut batch);
            batch.bytes_read = progress.after(rows);
            sink(&mut batch)?;
        }
        return Ok(());
    }
    thread::scope(|scope| {
        let mut workers = Vec::with_capacity(groups.len());
        for group in &groups {
            let (done, parts) = channel();
            let (back, batches) = channel();
            let work = move || {
                let outcome = work(group, table, coder, &batches, &done);
                // Nobody listens once the rows are not wanted any more.
                let _ = done.send(outcome.map(|()| None));
            };
            // A thread may not be had: the message names the system's reason.
            let spawned = thread::Builder::new().spawn_scoped(scope, work);
            spawned.map_err(|source| SourceError::Io { path: table.path().to_owned(), source })?;
            (0..BATCHES_A_WORKER).try_for_each(|_| back.send(CodedBatch::default())).unwrap_or(());
            workers.push((parts, back));
        }
        join(&groups, &workers, coder.coding.slots(), &mut progress, sink)
    })
}

/// What each thread does.
fn work(
    group: &ColumnGroup,
    table: &ParquetTable,
    coder: &RowCoder,
    batches: &Receiver<CodedBatch>,
    done: &Sender<Result<Option<Part>, SourceError>>,
) -> Result<(), SourceError> {
    let mut reader = table.batches(group.raw_slots(table.raw_slots()))?;
    while let Some((rows, columns)) = reader.next()? {
        let Ok(mut batch) = batches.recv() else { return Ok(()) };
        batch.clear();
        group.code(coder, &columns, rows, &mut batch);
        if done.send(Ok(Some(Part { rows, batch }))).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// Rows of some columns.
struct Part {
    rows: usize,
    batch: CodedBatch,
}

type Worker = (Receiver<Result<Option<Part>, SourceError>>, Sender<CodedBatch>);

/// Makes rows of the parts of all threads.
fn join<E: From<SourceError>>(
    groups: &[ColumnGroup],
    workers: &[Worker],
    slots: usize,
    progress: &mut Progress<'_>,
    sink: &mut dyn FnMut(&mut CodedBatch) -> Result<(), E>,
) -> Result<(), E> {
    let mut joined = CodedBatch::default();
    loop {
        let mut parts = Vec::with_capacity(workers.len());
        for (received, _) in workers {
            // A thread that says nothing more has panicked, which ends this one, too.
            let Ok(part) = received.recv() else { return Ok(()) };
            parts.push(part?);
        }
        let Some(rows) = parts.iter().flatten().map(|part| part.rows).next() else { return Ok(()) };
        let fits = |part: &Option<Part>| part.as_ref().is_some_and(|part| part.rows == rows);
        if !parts.iter().all(fits) {
            return Err(progress.table.damaged().into());
        }
        let mut parts: Vec<CodedBatch> = parts.into_iter().flatten().map(|part| part.batch).collect();
        joined.codes.resize(rows * slots, 0);
        for (row, codes) in joined.codes.chunks_exact_mut(slots).enumerate() {
            for (group, part) in groups.iter().zip(&parts) {
                let width = group.slots.len();
                codes[group.slots.clone()].copy_from_slice(&part.codes[row * width..(row + 1) * width]);
            }
        }
        joined.swap_labels(parts.last_mut().expect("there are groups"));
        joined.bytes_read = progress.after(rows);
        sink(&mut joined)?;
        for ((_, back), part) in workers.iter().zip(parts) {
            // The thread may be done.
            let _ = back.send(part);
        }
    }
}

/// How much of the file the rows that were read are.
struct Progress<'a> {
    rows_read: u64,
    table: &'a ParquetTable,
}

impl Progress<'_> {
    fn after(&mut self, rows: usize) -> u64 {
        self.rows_read += rows as u64;
        self.table.bytes_of_rows(self.rows_read)
    }
}
