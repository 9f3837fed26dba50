//! Where the coded rows of a command lie while it works: in memory, or under a declared ceiling in scratch files.

use std::sync::Arc;

use reticent_core::encoding::Encoding;
use reticent_core::engine::Engine;
use reticent_core::query::QueryShape;
use reticent_core::schema::Schema;
use reticent_curator::memory_engine::MemoryEngine;
use reticent_curator::scratch_file::ScratchPlace;
use reticent_curator::source::TableSource;
use reticent_curator::spilled_engine::{self, SpilledEngine};
use reticent_curator::spilled_table::SpilledTable;

use super::read_private;
use crate::args::StorageArguments;
use crate::failure::Failure;
use crate::progress;

/// Rows that are ready to be asked.
pub(super) enum StoredRows {
    Memory(MemoryEngine),
    Scratch(SpilledEngine),
}

/// Refuses what the declared ceiling does not allow, from public figures, before a row is read.
pub(super) fn check<'a>(
    arguments: &StorageArguments,
    schema: &Schema,
    asked: impl IntoIterator<Item = &'a QueryShape>,
) -> Result<(), Failure> {
    match arguments.memory {
        Some(ceiling) => spilled_engine::check(ceiling, schema, asked).map_err(Failure::usage),
        None => Ok(()),
    }
}

impl StoredRows {
    /// Reads all rows. With a ceiling, room on the disk is taken for all that follows.
    pub(super) fn read(source: TableSource, schema: &Schema, arguments: &StorageArguments) -> Result<Self, Failure> {
        if arguments.memory.is_none() {
            return Ok(Self::Memory(MemoryEngine::new(read_private(source, schema)?)));
        }
        let folder = arguments.scratch.clone().unwrap_or_else(ScratchPlace::usual_folder);
        let place = if arguments.scratch_unencrypted {
            ScratchPlace::unencrypted(folder)
        } else {
            ScratchPlace::encrypted(folder)
        };
        let bytes = source.bytes_total();
        let table = progress::while_reading(bytes, |progress| SpilledTable::read(source, schema, &place, progress))?;
        Ok(Self::Scratch(SpilledEngine::new(table)?))
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
            Self::Memory(engine) => Ok(engine.prepare(encoding)?),
            // The room was taken when the rows had been read.
            Self::Scratch(_) => Ok(()),
        }
    }
}
