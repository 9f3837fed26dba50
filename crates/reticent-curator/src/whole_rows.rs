//! Lattice rows with all their zeros, block after block, wherever they lie: what the search for a minimum goes over again and again.

use rayon::prelude::*;
use reticent_core::contribution::CodedLabel;
use reticent_core::encoding::Encoding;
use reticent_core::engine::EngineError;

use crate::lattice::KeptBlock;
use crate::memory_lattice::{Lattice, fold_blocks};
use crate::out_of_memory::OutOfMemory;
use crate::scratch_blocks::ScratchBlocks;
use crate::spilled_lattice::LatticeRows;

/// Private rows that can be gone over any number of times.
pub(crate) trait WholeRows: Sync {
    /// How many there are.
    fn count(&self) -> u64;

    /// Most rows that are handed over at once. Public.
    fn at_once_max(&self) -> usize;

    /// Hands all rows to `add`, some at a time and in any order, with a total that is a thread's own: the coordinates row after row, and the
    /// labels. Returns the totals.
    ///
    /// # Errors
    /// [`EngineError`] when the rows cannot be read, or a total has no room.
    fn fold<T: Send>(
        &self,
        start: impl Fn() -> Result<T, OutOfMemory> + Sync,
        add: impl Fn(&mut T, &[i16], &[CodedLabel]) + Sync,
    ) -> Result<Vec<T>, EngineError>;
}

/// Most coordinates of rows whose zeros are put in, unless one row has more.
const COORDINATES: usize = 1 << 19;

/// Bytes of the rows that are handed over at once, at most.
pub(crate) fn bytes_at_once_max(columns: usize) -> usize {
    columns.max(COORDINATES) * size_of::<i16>()
}

/// Rows of a block, or as many of them as have their zeros put in at once.
fn at_once_max(encoding: &Encoding, block_rows: usize) -> usize {
    let layout = encoding.layout();
    if layout.chosen() == 0 { block_rows } else { block_rows.min((COORDINATES / layout.columns()).max(1)) }
}

/// Room for rows whose zeros are put in, and for coarse ones of a block in 16 bits: as large for every table.
struct Room {
    at_once: usize,
    features: Vec<i16>,
    wider: Vec<i16>,
}

impl Room {
    fn of(encoding: &Encoding, block_rows: usize) -> Self {
        let (layout, at_once) = (encoding.layout(), at_once_max(encoding, block_rows));
        let coordinates = if layout.chosen() == 0 { 0 } else { at_once * layout.columns() };
        let coarse = if encoding.is_coarse() { block_rows * layout.packed().len() } else { 0 };
        Self { at_once, features: Vec::with_capacity(coordinates), wider: Vec::with_capacity(coarse) }
    }

    /// Hands over the rows of a block, as they are where nothing was left out of them.
    fn hand_over(&mut self, block: &KeptBlock<'_>, mut add: impl FnMut(&[i16], &[CodedLabel])) {
        let block = block.widened(&mut self.wider);
        if block.layout.chosen() == 0 {
            return add(block.packed.features, block.packed.labels);
        }
        for first in (0..block.rows()).step_by(self.at_once) {
            let some = block.of_rows(first..(first + self.at_once).min(block.rows()));
            self.features.resize(some.rows() * block.layout.columns(), 0);
            some.expand(&mut self.features);
            add(&self.features, some.packed.labels);
        }
    }
}

/// The rows of a table in memory.
pub(crate) struct RowsInMemory<'a> {
    pub(crate) lattice: &'a Lattice,
    pub(crate) labels: &'a [CodedLabel],
    pub(crate) block_rows: usize,
}

impl WholeRows for RowsInMemory<'_> {
    fn count(&self) -> u64 {
        self.labels.len() as u64
    }

    fn at_once_max(&self) -> usize {
        at_once_max(&self.lattice.encoding, self.block_rows)
    }

    fn fold<T: Send>(
        &self,
        start: impl Fn() -> Result<T, OutOfMemory> + Sync,
        add: impl Fn(&mut T, &[i16], &[CodedLabel]) + Sync,
    ) -> Result<Vec<T>, EngineError> {
        let buffers = || Ok((start()?, Room::of(&self.lattice.encoding, self.block_rows)));
        // A total may be as large as the rows of many blocks: one a thread.
        let totals =
            fold_blocks(self.labels, self.block_rows, rayon::current_num_threads(), buffers, |sum, first, labels| {
                if let Ok((total, room)) = sum {
                    let block = self.lattice.kept_block(first, labels);
                    room.hand_over(&block, |features, labels| add(total, features, labels));
                }
            });
        let totals = totals.map(|sum| sum.map(|(total, _)| total)).collect::<Result<_, OutOfMemory>>();
        totals.map_err(|error| EngineError(Box::new(error)))
    }
}

/// The rows of a table in scratch files.
pub(crate) struct RowsOnDisk<'a> {
    pub(crate) blocks: &'a ScratchBlocks,
    pub(crate) encoding: &'a Encoding,
}

impl WholeRows for RowsOnDisk<'_> {
    fn count(&self) -> u64 {
        self.blocks.rows()
    }

    fn at_once_max(&self) -> usize {
        at_once_max(self.encoding, self.blocks.block_rows())
    }

    fn fold<T: Send>(
        &self,
        start: impl Fn() -> Result<T, OutOfMemory> + Sync,
        add: impl Fn(&mut T, &[i16], &[CodedLabel]) + Sync,
    ) -> Result<Vec<T>, EngineError> {
        let buffers = || (start(), LatticeRows::default(), Room::of(self.encoding, self.blocks.block_rows()));
        let totals = self.blocks.fold(buffers, |(total, rows, room), _, bytes| {
            // A total without room takes nothing in; the rest of the pass is of no use, and says nothing.
            if let Ok(total) = total {
                rows.fetch(self.encoding, bytes);
                room.hand_over(&rows.block(self.encoding), |features, labels| add(total, features, labels));
            }
            Ok(())
        });
        let totals = totals.map_err(|error| EngineError(Box::new(error)))?.into_iter().map(|(total, _, _)| total);
        totals.collect::<Result<_, OutOfMemory>>().map_err(|error| EngineError(Box::new(error)))
    }
}

#[cfg(test)]
mod tests {
    use reticent_core::coding::Coding;
    use reticent_core::encoding::NormRule;
    use reticent_core::schema::Schema;

    use super::*;
    use crate::source::CodedRows;

    /// Five rows of a number and a wide category, two at a time.
    #[test]
    fn rows_without_their_zeros_are_handed_over_whole_and_some_at_a_time() {
        let categories: Vec<String> = (0..80).map(|category| format!("\"c{category}\"")).collect();
        let schema = Schema::from_text(&format!(
            "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nclasses = [0, 1]\n[features]\n\
             x = {{ bounds = [0, 1] }}\nk = {{ categories = [{}] }}\n",
            categories.join(", ")
        ))
        .expect("legal");
        for is_coarse in [false, true] {
            let encoding = Encoding::plain(Coding::of(&schema), NormRule::OwnNorm).coarse(is_coarse);
            let mut rows = LatticeRows::default();
            let labels = [0, 1, 1, 0, 1];
            rows.encode(&encoding, CodedRows { codes: &[9, 3, 99, 70, 999, 0, 9999, 5, 99, 4], labels: &labels });
            let block = rows.block(&encoding);
            let columns = encoding.layout().columns();
            assert!(encoding.layout().chosen() == 1 && columns > 80, "left out: all of a category but one column");
            let mut whole = vec![0; 5 * columns];
            block.widened(&mut Vec::new()).expand(&mut whole);

            let (mut features, mut of_rows, mut counts) = (Vec::new(), Vec::new(), Vec::new());
            let mut room = Room { at_once: 2, ..Room::of(&encoding, 5) };
            room.hand_over(&block, |some, labels| {
                features.extend_from_slice(some);
                of_rows.extend_from_slice(labels);
                counts.push(labels.len());
            });
            assert_eq!(features, whole);
            assert_eq!((of_rows.as_slice(), counts.as_slice()), (&labels[..], &[2, 2, 1][..]));
            assert_eq!(at_once_max(&encoding, 1 << 20), COORDINATES / columns);
            assert_eq!(at_once_max(&encoding, 7), 7);
        }
    }
}
