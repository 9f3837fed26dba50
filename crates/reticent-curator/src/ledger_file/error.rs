//! What can be wrong with a ledger file, and what to do about it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use reticent_core::adjacency::Relation;
use reticent_core::ledger::Budget;
use rusqlite::ErrorCode;
use rusqlite::ffi::SQLITE_READONLY_DBMOVED;
use thiserror::Error;

/// A ledger file that could not be made, opened, read or charged.
///
/// Unless the message says otherwise the file was left as it was found, and nothing was spent.
#[derive(Debug, Error)]
pub enum LedgerFileError {
    /// Making a ledger never replaces a file.
    #[error(
        "{}: something of this name exists already; open it, or choose another name for the new ledger",
        path.display()
    )]
    Exists {
        /// The ledger.
        path: PathBuf,
    },
    /// There is no such file.
    #[error("{}: there is no such ledger; make one with `reticent ledger init`, or check the name", path.display())]
    Missing {
        /// The ledger.
        path: PathBuf,
    },
    /// There is no folder to keep the file in.
    #[error("{}: the folder {} does not exist; make it first, or check the name", path.display(), folder.display())]
    MissingFolder {
        /// The ledger.
        path: PathBuf,
        /// Where it should be.
        folder: PathBuf,
    },
    /// A folder, a pipe or a device.
    #[error("{}: this is a folder or a device, and a ledger is a file; name a file in it", path.display())]
    NotAFile {
        /// What was found.
        path: PathBuf,
    },
    /// A file without a byte: no ledger ever is.
    #[error(
        "{}: the file is empty, and a ledger never is: its content was lost, or something else made the file; \
         restore it from a backup, or move it away to begin a new ledger", path.display()
    )]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// A hard link: the journal that undoes a half-written entry is found by name.
    #[error(
        "{}: the ledger has another name, a hard link, under which charges could be lost after a crash; find it with `find FOLDER -samefile \
         LEDGER` and delete it (keep the name that has a -journal beside it, if one has; a `.ledger-*.new` is never needed), or point to \
         the ledger with a symbolic link instead (nothing was spent)", path.display()
    )]
    Linked {
        /// The ledger.
        path: PathBuf,
    },
    /// A file of another kind.
    #[error("{}: this is not a ledger of Reticent; check the name (the file was not changed)", path.display())]
    NotALedger {
        /// The file.
        path: PathBuf,
    },
    /// A ledger of a time before the first release.
    #[error(
        "{}: the ledger has format {found}, which was written before the first release and has no seals; keep it as a record of \
         what was spent, and use the program that made it (the file was not changed)", path.display()
    )]
    Older {
        /// The ledger.
        path: PathBuf,
        /// Its format.
        found: i32,
    },
    /// A ledger that only a later release understands.
    #[error(
        "{}: the ledger has format {found} and this release reads up to format {known}; use a newer release of \
         Reticent (the file was not changed)", path.display()
    )]
    Newer {
        /// The ledger.
        path: PathBuf,
        /// Its format.
        found: i32,
        /// The newest format that this release reads.
        known: i32,
    },
    /// A ledger with a part that is missing, cut off or overwritten.
    #[error(
        "{}: the ledger is damaged ({finding}); keep this file, restore the newest backup, and count what was spent \
         since as spent", path.display()
    )]
    Damaged {
        /// The ledger.
        path: PathBuf,
        /// What was found.
        finding: String,
    },
    /// The journal of a ledger that is gone; SQLite would play it back into the new one.
    #[error(
        "{}: the file {} is left of an earlier ledger of this name; put that ledger back, or move the journal away",
        path.display(), journal.display()
    )]
    StrayJournal {
        /// The ledger to be made.
        path: PathBuf,
        /// The journal.
        journal: PathBuf,
    },
    /// Somebody else held the ledger for too long.
    #[error(
        "{}: another process has kept the ledger locked for {} seconds; wait for it or end it, then try again \
         (nothing was spent)", path.display(), waited.as_secs_f64()
    )]
    Locked {
        /// The ledger.
        path: PathBuf,
        /// How long this process waited.
        waited: Duration,
    },
    /// The file, its folder or its disk does not let this process in.
    #[error(
        "{}: the ledger cannot be read and written by this process; allow it to read and write the file *and* its \
         folder (a journal lies beside the file while it changes; nothing was spent)", path.display()
    )]
    NotPermitted {
        /// The ledger.
        path: PathBuf,
    },
    /// The file was moved, deleted or replaced while it was open.
    #[error(
        "{}: the ledger was moved, deleted or replaced while it was open; put it back and try again (nothing \
         was spent)",
        path.display()
    )]
    Moved {
        /// Where it was opened.
        path: PathBuf,
    },
    /// No room for the entry.
    #[error(
        "{}: no room is left on the disk for the entry; make room and try again (nothing was spent)",
        path.display()
    )]
    DiskFull {
        /// The ledger.
        path: PathBuf,
    },
    /// A limit is set once.
    #[error(
        "{}: the ledger has a limit already, epsilon {} at delta {:e}, and a limit once promised is not changed; \
         make a new ledger for new data", path.display(), budget.epsilon, budget.delta.get()
    )]
    BudgetIsSet {
        /// The ledger.
        path: PathBuf,
        /// The limit in force.
        budget: Budget,
    },
    /// A ledger must protect somebody.
    #[error("{}: a ledger must promise at least one relation, for example row:add-remove", path.display())]
    NothingPromised {
        /// The ledger to be made.
        path: PathBuf,
    },
    /// A relation that would not read back as it is written.
    #[error(
        "{}: {relation} cannot be promised: name the unit's column and let it contribute at least one row",
        path.display()
    )]
    IllegalRelation {
        /// The ledger to be made.
        path: PathBuf,
        /// The relation.
        relation: Box<Relation>,
    },
    /// The operating system gave no randomness for the ledger's name.
    #[error("{}: the operating system gave no randomness for the ledger: {reason}; try again (nothing was spent)", path.display())]
    Entropy {
        /// The ledger to be made.
        path: PathBuf,
        /// The system's words.
        reason: String,
    },
    /// The operating system refused.
    #[error(
        "{}: the ledger could not be {action}: {source}; check the name, the permissions and the disk",
        path.display()
    )]
    Io {
        /// The ledger.
        path: PathBuf,
        /// What was attempted.
        action: &'static str,
        /// The system's words.
        source: std::io::Error,
    },
    /// The entry is in the file, but the folder was not synced: a loss of power could undo it.
    #[error(
        "{}: the ledger was written, and its folder could not be synced: {source}; nothing was released, and `reticent ledger \
         show` tells whether the entry was kept", path.display()
    )]
    Unsynced {
        /// The ledger.
        path: PathBuf,
        /// The system's words.
        source: std::io::Error,
    },
    /// The database failed in another way, for instance at a disk error: whether the entry was kept is not known.
    #[error(
        "{}: the ledger could not be read or written: {source}; nothing was released, and `reticent ledger show` tells \
         whether the entry was kept", path.display()
    )]
    Database {
        /// The ledger.
        path: PathBuf,
        /// The database's words.
        source: rusqlite::Error,
    },
}

impl LedgerFileError {
    /// Sorts a failure of the database by what its owner has to do.
    pub(super) fn from_database(path: &Path, waited: Duration, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        let Some(failure) = source.sqlite_error().copied() else {
            // A value of another type than the format has, or a row too few.
            return Self::Damaged { path, finding: source.to_string() };
        };
        // A chain, because the library may add codes and none of them may be mistaken for these.
        let code = failure.code;
        if code == ErrorCode::DatabaseBusy || code == ErrorCode::DatabaseLocked {
            Self::Locked { path, waited }
        } else if failure.extended_code == SQLITE_READONLY_DBMOVED {
            Self::Moved { path }
        } else if [ErrorCode::ReadOnly, ErrorCode::CannotOpen, ErrorCode::PermissionDenied].contains(&code) {
            Self::NotPermitted { path }
        } else if code == ErrorCode::DiskFull {
            Self::DiskFull { path }
        } else if code == ErrorCode::NotADatabase {
            Self::NotALedger { path }
        } else if code == ErrorCode::DatabaseCorrupt {
            Self::Damaged { path, finding: source.to_string() }
        } else {
            Self::Database { path, source }
        }
    }
}
