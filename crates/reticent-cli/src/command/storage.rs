//! Where the coded rows of a command lie while it works: in memory, or under a declared ceiling in scratch files.

use std::sync::Arc;

use reticent_core::encoding::Encoding;
use reticent_core::engine::Engine;
use reticent_core::query::QueryShape;
use reticent_core::schema::Schema;
use reticent_curator::memory_ceiling::MemoryCeiling;
use reticent_curator::memory_engine::MemoryEngine;
use reticent_curator::scratch_file::ScratchPlace;
use reticent_curator::source::{SourceError, TableSource};
use reticent_curator::spilled_engine::{self, SpilledEngine};
use reticent_curator::spilled_table::SpilledTable;

use super::read_private;
use crate::args::StorageArguments;
use crate::failure::Failure;
use crate::progress;

/// What helps where rows do not fit in memory.
const ON_A_DISK: &str = "or keep the rows on a disk, with --memory SIZE";

/// Rows that are ready to be asked.
pub(super) enum StoredRows {
    Memory(MemoryEngine),
    Scratch(SpilledEngine),
}

/// Where rows may lie.
pub(super) enum Storage {
    Memory,
    /// In a folder, but for so many bytes that are left in memory under a ceiling.
    Scratch {
        place: ScratchPlace,
        kept_bytes: u64,
        ceiling: MemoryCeiling,
    },
}

impl Storage {
    /// Refuses what the declared ceiling does not allow, from public figures, before a row is read.
    pub(super) fn checked<'a>(
        arguments: &StorageArguments,
        schema: &Schema,
        asked: impl IntoIterator<Item = &'a QueryShape>,
    ) -> Result<Self, Failure> {
        let Some(ceiling) = arguments.memory else { return Ok(Self::Memory) };
        let kept_bytes = spilled_engine::check(ceiling, schema, asked).map_err(Failure::usage)?;
        let folder = arguments.scratch.clone().unwrap_or_else(ScratchPlace::usual_folder);
        let place = if arguments.scratch_unencrypted {
            ScratchPlace::unencrypted(folder)
        } else {
            ScratchPlace::encrypted(folder)
        };
        Ok(Self::Scratch { place, kept_bytes, ceiling })
    }
}

impl StoredRows {
    /// Reads all rows. With a ceiling, room for all that follows is taken.
    pub(super) fn read(source: TableSource, schema: &Schema, storage: &Storage) -> Result<Self, Failure> {
        let Storage::Scratch { place, kept_bytes, ceiling } = storage else {
            let table = read_private(source, schema).map_err(|error| {
                let is_of_memory = matches!(error, SourceError::OutOfMemory);
                let failure = Failure::from(error);
                if is_of_memory { failure.with_remedy(ON_A_DISK) } else { failure }
            })?;
            return Ok(Self::Memory(MemoryEngine::new(table)));
        };
        let kept_bytes = if source.has_pages() {
            spilled_engine::check_pages(*ceiling, *kept_bytes, schema).map_err(Failure::usage)?
        } else {
            *kept_bytes
        };
        let bytes = source.bytes_total();
        let table = progress::while_reading(bytes, |progress| SpilledTable::read(source, schema, place, progress))?;
        Ok(Self::Scratch(SpilledEngine::new(table, kept_bytes)?))
    }

    pub(super) fn engine(&self) -> &dyn Engine {
        match self {
            Self::Memory(engine) => engine,
            Self::Scratch(engine) => engine,
        }
    }

    /// Makes sure that the rows fit, under an encoding as large as the one that will be asked, before anything is paid.
    pub(super) fn prepare(&self, encoding: &Arc<Encoding>) -> Result<(), Failure> {
        match self {
            Self::Memory(engine) => {
                engine.prepare(encoding).map_err(|error| Failure::from(error).with_remedy(ON_A_DISK))
            }
            // The room was taken when the rows had been read.
            Self::Scratch(_) => Ok(()),
        }
    }
}
