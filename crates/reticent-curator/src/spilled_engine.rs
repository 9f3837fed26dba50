//! Answers queries from a table in scratch files, with all threads, in memory that does not depend on the number of rows.
//!
//! ```text
//!   codes file ─▶ encode (once an encoding) ─▶ lattice in memory, the rest in a file ─▶ decrypt, add up ─▶ exact, opaque sum
//!                                                                                     └▶ a minimum, pass after pass
//!   codes file ─▶ class counts and marginals
//! ```
//! As much of the lattice as the ceiling leaves room for stays in memory. All room is taken when the engine is made, before anything is
//! paid; encoding again writes the lattice anew in the same room, under another key.

use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;
use reticent_core::adjacency::PrivacyUnit;
use reticent_core::encoding::Encoding;
use reticent_core::engine::{Disclosure, Engine, EngineError, Task};
use reticent_core::minimum::MinimumQuery;
use reticent_core::public_features::PublicFeatures;
use reticent_core::query::{Map, QueryShape, SumQuery};
use reticent_core::schema::Schema;
use reticent_core::sum::PartialSum;
use thiserror::Error;

use crate::external_sort::SortShape;
use crate::memory_ceiling::MemoryCeiling;
use crate::minimiser::{self, minimise};
use crate::running_sum::RunningSum;
use crate::scratch_blocks::{BlockRoom, BlockShape, READ_AHEAD, ScratchBlocks};
use crate::scratch_file::ScratchError;
use crate::spilled_lattice::{LatticeRows, row_bytes, row_bytes_max};
use crate::spilled_table::{SpilledTable, default_block_rows};
use crate::surplus_rows;
use crate::whole_rows::RowsOnDisk;

/// A coded table on the disk with its latest lattice. Sums are those of [`crate::memory_engine::MemoryEngine`], integer for
/// integer.
pub struct SpilledEngine {
    table: SpilledTable,
    /// Held during a pass: two at once would make the disk seek.
    lattice: Mutex<Lattice>,
}

/// Rows on the lattice, or the room for them.
enum Lattice {
    Room(BlockRoom),
    Rows(Arc<Encoding>, ScratchBlocks),
    /// Writing failed, and took the file along.
    Lost,
}

/// A fit that cannot be done in bounded memory. Depends on schema, plan and machine alone.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum CannotSpill {
    /// Votes of parties are read whole.
    #[error("--memory does not go with the votes of parties, which are read into memory; leave --memory out")]
    Votes,
    /// Features that are public to the fitter are handed to it whole.
    #[error(
        "--memory does not go with walr, to which the features of all rows are public: it holds them in memory; choose \
         noisy-gd or gram, or leave --memory out"
    )]
    PublicFeatures,
    /// The ceiling is below what the buffers of any table take.
    #[error(
        "--memory {ceiling} is too little for these columns, this method and {threads} threads; at least {needed} are needed"
    )]
    TooLittle {
        /// What was declared.
        ceiling: MemoryCeiling,
        /// What would do.
        needed: MemoryCeiling,
        /// Threads that share the work, each with buffers of its own.
        threads: usize,
    },
}

/// Something that this engine was not asked whether it can: [`check`] comes first.
#[derive(Debug, Error)]
#[error("rows in a scratch file can only be added up one by one; leave --memory out for this method")]
struct NotStreamed;

/// The lattice could not be written by an earlier query.
#[derive(Debug, Error)]
#[error("the scratch file was lost by an earlier failure")]
struct LostScratch;

/// What the program takes whatever is asked, with the window of `xz -9`, the largest of the usual ones: measured, rounded up.
const BASE_BYTES: u64 = 96 << 20;

/// What a reader takes for a column of a Parquet file: the page that it is in.
const PAGE_BYTES: u64 = 1 << 20;

/// Bytes for a coordinate of a sum: in each thread (two sums, and the kernel's), and in all that is computed from it.
const COORDINATE_BYTES: (u64, u64) = (64, 128);

/// Says whether some questions can be answered from scratch files, within a ceiling, whatever the size of the table; and if so how many
/// bytes of the ceiling are left for rows that stay in memory. Of a table whose columns have pages, [`check_pages`] comes after it.
///
/// # Errors
/// [`CannotSpill`], from public figures alone: nothing has been read or paid.
pub fn check<'a>(
    ceiling: MemoryCeiling,
    schema: &Schema,
    asked: impl IntoIterator<Item = &'a QueryShape>,
) -> Result<u64, CannotSpill> {
    let units = match &schema.privacy().unit {
        PrivacyUnit::Row => 0,
        PrivacyUnit::Column { .. } => surplus_rows::memory_bytes(SortShape::USUAL) as u64,
    };
    let threads = rayon::current_num_threads();
    let (mut coordinates, mut search) = (0, 0);
    for shape in asked {
        answered_from(shape.map())?;
        coordinates = coordinates.max(u64::from(shape.coordinates()));
        if let Map::Minimum(minimum) = shape.map() {
            search = search.max(minimiser::bytes_max(minimum, threads as u64));
        }
    }
    let coding = reticent_core::coding::Coding::of(schema);
    let lattice = row_bytes_max(&coding) * default_block_rows(&coding);
    // A block as it is read and as it is worked on, and the blocks that wait. A row of codes is never longer than its lattice row.
    let blocks = (2 * threads + READ_AHEAD) as u64 * 2 * lattice as u64;
    let sums = coordinates * (COORDINATE_BYTES.0 * threads as u64 + COORDINATE_BYTES.1);
    left_of(ceiling, BASE_BYTES + blocks + sums + search + units)
}

/// What a Parquet file of the schema leaves of the bytes that [`check`] has found to be left: a page of every column is read at a time.
///
/// # Errors
/// [`CannotSpill::TooLittle`].
pub fn check_pages(ceiling: MemoryCeiling, left_bytes: u64, schema: &Schema) -> Result<u64, CannotSpill> {
    left_of(ceiling, ceiling.bytes() - left_bytes + schema.features().len() as u64 * PAGE_BYTES)
}

fn left_of(ceiling: MemoryCeiling, needed: u64) -> Result<u64, CannotSpill> {
    let needed = MemoryCeiling::of_bytes(needed).expect("the base is above zero");
    let threads = rayon::current_num_threads();
    ceiling.bytes().checked_sub(needed.bytes()).ok_or(CannotSpill::TooLittle { ceiling, needed, threads })
}

/// The file that a question is answered from.
enum Answer {
    Codes,
    Lattice,
}

/// Where a question finds its rows, or why it finds none here.
fn answered_from(map: &Map) -> Result<Answer, CannotSpill> {
    match map {
        Map::ClassCount { .. }
        | Map::Marginals { .. }
        | Map::NumberBins { .. }
        | Map::TargetSum
        | Map::TargetBins { .. } => Ok(Answer::Codes),
        Map::Gradient { .. }
        | Map::ClippedGradient { .. }
        | Map::SoftmaxGradient { .. }
        | Map::BoundedSoftmaxGradient { .. }
        | Map::Gram { .. }
        | Map::CorrectCount { .. }
        | Map::ExcessHits { .. }
        | Map::ConfidenceSteps { .. }
        | Map::ResidualSteps { .. }
        | Map::LogLoss { .. }
        | Map::ScoreHistogram { .. }
        | Map::SquaredError
        | Map::Minimum(_) => Ok(Answer::Lattice),
        Map::PartyMinimum { .. } | Map::PartyVectors { .. } => Err(CannotSpill::Votes),
        Map::MatrixProduct { .. } | Map::LabelsByBin { .. } | Map::LabelBins | Map::LabelSquares => {
            Err(CannotSpill::PublicFeatures)
        }
    }
}

impl SpilledEngine {
    /// Takes the table over, and room for its lattice: up to `kept_bytes` in memory, which [`check`] found to be left, and the rest on
    /// the disk.
    ///
    /// # Errors
    /// [`ScratchError`] when there is no room: before anything is paid.
    pub fn new(table: SpilledTable, kept_bytes: u64) -> Result<Self, ScratchError> {
        let shape = BlockShape { row_bytes: row_bytes_max(table.coding()), block_rows: table.block_rows() };
        let room = BlockRoom::take(shape, table.rows(), kept_bytes, table.place())?;
        Ok(Self { table, lattice: Mutex::new(Lattice::Room(room)) })
    }

    /// The sum from codes and labels alone.
    fn sum_codes(&self, query: &SumQuery) -> Result<PartialSum, ScratchError> {
        let sums = self.table.fold(
            || RunningSum::zero(query),
            |sum, _, rows| {
                sum.add_codes(rows.codes, rows.labels);
                Ok(())
            },
        )?;
        Ok(joined(query, sums))
    }

    fn sum_lattice(&self, query: &SumQuery, encoding: &Arc<Encoding>) -> Result<PartialSum, EngineError> {
        self.with_lattice(encoding, |blocks| {
            let buffers = || (RunningSum::zero(query), LatticeRows::default());
            let sums = blocks.fold(buffers, |(sum, rows), _, bytes| {
                rows.fetch(encoding, bytes);
                sum.add(&rows.block(encoding), None);
                Ok(())
            });
            let sums = sums.map_err(|error| EngineError(Box::new(error)))?;
            Ok(joined(query, sums.into_iter().map(|(sum, _)| sum)))
        })
    }

    /// What `ask` makes of the rows under an encoding; they are written anew where they lie under another.
    fn with_lattice<A>(
        &self,
        encoding: &Arc<Encoding>,
        ask: impl FnOnce(&ScratchBlocks) -> Result<A, EngineError>,
    ) -> Result<A, EngineError> {
        // A panic while the lock was held left the lattice lost, or whole.
        let mut lattice = self.lattice.lock().unwrap_or_else(PoisonError::into_inner);
        let is_current = match &*lattice {
            Lattice::Rows(current, _) => Arc::ptr_eq(current, encoding) || current == encoding,
            Lattice::Room(_) | Lattice::Lost => false,
        };
        if !is_current {
            let room = match std::mem::replace(&mut *lattice, Lattice::Lost) {
                Lattice::Room(room) => room,
                Lattice::Rows(_, blocks) => blocks.into_room(),
                Lattice::Lost => return Err(EngineError(Box::new(LostScratch))),
            };
            let blocks = self.encode(encoding, room).map_err(|error| EngineError(Box::new(error)))?;
            *lattice = Lattice::Rows(encoding.clone(), blocks);
        }
        let Lattice::Rows(_, blocks) = &*lattice else { unreachable!("was written just now") };
        ask(blocks)
    }

    /// Writes the lattice of an encoding into a room, under a new key.
    fn encode(&self, encoding: &Arc<Encoding>, room: BlockRoom) -> Result<ScratchBlocks, ScratchError> {
        let shape = BlockShape { row_bytes: row_bytes(encoding), block_rows: self.table.block_rows() };
        let lattice = ScratchBlocks::in_room(shape, self.table.rows(), room)?;
        let buffers = || (LatticeRows::default(), Vec::new());
        self.table.fold(buffers, |(buffers, bytes), block, rows| {
            buffers.encode(encoding, rows);
            bytes.clear();
            buffers.append(encoding, bytes);
            lattice.write(block, bytes)
        })?;
        Ok(lattice)
    }
}

/// One sum of those of the threads.
fn joined<'a>(query: &'a SumQuery, sums: impl IntoIterator<Item = RunningSum<'a>>) -> PartialSum {
    sums.into_iter().reduce(RunningSum::joined).unwrap_or_else(|| RunningSum::zero(query)).finish()
}

impl Engine for SpilledEngine {
    fn unit(&self) -> &PrivacyUnit {
        self.table.unit()
    }

    fn schema(&self) -> &str {
        self.table.schema()
    }

    fn exact_sum(&self, query: &SumQuery) -> Result<PartialSum, EngineError> {
        let encoding = query.encoding().ok_or_else(|| EngineError(Box::new(NotStreamed)))?;
        assert!(encoding.coding() == self.table.coding(), "codes are read with the coding that made them");
        match answered_from(query.shape().map()) {
            Ok(Answer::Codes) => self.sum_codes(query).map_err(|error| EngineError(Box::new(error))),
            Ok(Answer::Lattice) => self.sum_lattice(query, encoding),
            Err(_) => Err(EngineError(Box::new(NotStreamed))),
        }
    }

    fn exact_minimum(&self, query: &MinimumQuery, perturbation: &[i128]) -> Result<PartialSum, EngineError> {
        let encoding = query.encoding();
        assert!(encoding.coding() == self.table.coding(), "codes are read with the coding that made them");
        let answer =
            self.with_lattice(encoding, |blocks| minimise(&RowsOnDisk { blocks, encoding }, query, perturbation))?;
        Ok(PartialSum::of_minimum(query, answer))
    }

    fn run_tasks(&self, tasks: Vec<Task<'_>>) {
        tasks.into_par_iter().for_each(|task| task());
    }

    fn row_number(&self, _: &Disclosure) -> Option<u64> {
        Some(self.table.rows())
    }

    fn public_features(&self, _: &Disclosure) -> Result<Option<PublicFeatures>, EngineError> {
        Err(EngineError(Box::new(NotStreamed)))
    }
}
