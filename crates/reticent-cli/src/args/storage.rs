//! The words that say where rows lie.

use std::path::PathBuf;

use clap::Args;
use reticent_curator::memory_ceiling::MemoryCeiling;

/// Where the rows lie while they are worked on.
#[derive(Args)]
pub(crate) struct StorageArguments {
    /// Memory ceiling, for example 1GiB: rows that do not fit are kept in encrypted scratch files
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<MemoryCeiling>,
    /// Folder on a disk for the scratch files, which have no names and end with the command; default: TMPDIR, else /var/tmp
    #[arg(long, value_name = "DIR", requires = "memory")]
    pub(crate) scratch: Option<PathBuf>,
    /// Do not encrypt the scratch files: for a disk that is encrypted itself
    #[arg(long, requires = "memory")]
    pub(crate) scratch_unencrypted: bool,
}
