//! The ledger on disk: one SQLite file that several processes charge at once and that no crash makes forget.
//!
//! A charge is one transaction: read the account, ask [`Account::admit`], write the entry and its price in every
//! promised relation, commit. [`LedgerStore::charge`] returns `Ok` only after the operating system has reported the file
//! and its folder as written. What was spent is added up from the entries each time; no total is stored that could disagree.
//! The format is described in `docs/reference/ledger.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, fs, io};

use reticent_core::adjacency::Relation;
use reticent_core::hex::hex;
use reticent_core::ledger::{Account, Budget, LedgerError, LedgerReference, LedgerStore, Request};
use reticent_core::units::MuSquared;
use rusqlite::{Connection, OpenFlags};

mod draft;
mod error;
mod format;
mod journal;
mod reading;
mod seal;

use draft::{refuse_existing, refuse_illegal_promise, refuse_stray_journal, write_draft};
pub use error::LedgerFileError;
use format::{APPLICATION_ID, insert_answer, insert_budget, insert_entry, read_pragma, refuse_header};
use reading::Reading;

/// An open ledger.
///
/// Not `Clone`, and the account is read from the file at every charge: no copy of an object in memory spends twice.
/// Do not carry one across `fork`; open the file again in the child.
pub struct LedgerFile {
    connection: Connection,
    path: PathBuf,
    /// Where the file and its journal are, links followed.
    folder: PathBuf,
    wait: Duration,
    id: String,
    last_entry: Option<LedgerReference>,
}

/// One charge, as it was written down.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Number of the entry: 1, 2, 3 and so on, without a gap.
    pub id: u64,
    /// When it was written, in UTC as RFC 3339 text. For people: no rule depends on it.
    pub time: String,
    /// What was bought.
    pub request: Request,
    /// The price in every promised relation.
    pub charged: BTreeMap<Relation, MuSquared>,
    /// 64 hexadecimal digits that no other history of the ledger up to this entry has.
    pub seal: String,
}

impl LedgerFile {
    /// Makes a ledger that promises `promised`, with a limit or (`None`) without one for now.
    ///
    /// The file appears complete or not at all, also when several processes make it at once.
    ///
    /// # Errors
    /// [`LedgerFileError`]; [`LedgerFileError::Exists`] when anything of this name is there.
    pub fn create(path: &Path, promised: &BTreeSet<Relation>, budget: Option<Budget>) -> Result<Self, LedgerFileError> {
        let path = absolute(path)?;
        refuse_illegal_promise(&path, promised)?;
        let folder = folder_of(&path)?;
        refuse_existing(&path)?;
        refuse_stray_journal(&path)?;
        let draft = write_draft(&path, folder, promised, budget)?;
        draft.persist_noclobber(&path).map_err(|refused| {
            match refused.error.kind() == io::ErrorKind::AlreadyExists {
                true => LedgerFileError::Exists { path: path.clone() },
                false => failed(&path, "put in its place")(refused.error),
            }
        })?;
        make_name_durable(folder).map_err(failed(&path, "written"))?;
        Self::open(&path)
    }

    /// Opens a ledger after checking all of it.
    ///
    /// # Errors
    /// [`LedgerFileError`]: a file that is not a sound ledger of a known format is left as it was found.
    pub fn open(path: &Path) -> Result<Self, LedgerFileError> {
        Self::open_waiting(path, LOCK_WAIT)
    }

    /// Opens the ledger at `path`, or makes one without a limit. What an existing one promises stays as it is.
    ///
    /// # Errors
    /// [`LedgerFileError`].
    pub fn open_or_create(path: &Path, promised: &BTreeSet<Relation>) -> Result<Self, LedgerFileError> {
        match Self::open(path) {
            Err(LedgerFileError::Missing { .. }) => {}
            opened => return opened,
        }
        match Self::create(path, promised, None) {
            // Another process was quicker.
            Err(LedgerFileError::Exists { .. }) => Self::open(path),
            created => created,
        }
    }

    /// Sets the limit of a ledger that has none, once and for all. Returns the promised relations in which more than
    /// the limit has been spent already: with any of these, every further request is refused.
    ///
    /// # Errors
    /// [`LedgerFileError::BudgetIsSet`] with the limit in force, and those of reading and writing.
    pub fn set_budget(&mut self, budget: Budget) -> Result<Vec<Relation>, LedgerFileError> {
        let reading = Reading::alone(&mut self.connection, &self.path, self.wait)?;
        let account = reading.account()?;
        if let Some(budget) = account.budget {
            return Err(LedgerFileError::BudgetIsSet { path: self.path.clone(), budget });
        }
        reading.within(|file| insert_budget(file, budget))?;
        reading.commit(&self.folder)?;
        let limit = budget.mu_squared_down();
        Ok(account.spent.into_iter().filter(|(_, spent)| *spent > limit).map(|(relation, _)| relation).collect())
    }

    /// Every charge, oldest first.
    ///
    /// # Errors
    /// [`LedgerFileError`] when the file cannot be read.
    pub fn entries(&self) -> Result<Vec<Entry>, LedgerFileError> {
        // One transaction, so that an entry is never seen without its charges.
        let reading = self.reading()?;
        reading.account()?;
        reading.entries()
    }

    /// The answer that is kept under the name of a question, if there is one.
    ///
    /// # Errors
    /// [`LedgerFileError`] when the file cannot be read.
    pub fn kept_answer(&self, query: &str) -> Result<Option<String>, LedgerFileError> {
        let reading = self.reading()?;
        reading.account()?;
        reading.answer(query)
    }

    /// Waits until nobody else makes an answer to keep in a ledger of this folder, and holds others off until what is returned is dropped.
    ///
    /// The folder is locked, as a second handle of the file itself would drop SQLite's locks when it is closed. On a file system without such
    /// locks nobody waits; then equal questions that come at once are each paid for, and the first answer is everybody's.
    #[must_use]
    pub fn alone_in_answering(&self) -> Option<fs::File> {
        let folder = fs::File::open(&self.folder).ok()?;
        folder.lock().ok()?;
        Some(folder)
    }

    /// Keeps the answer to a question, which entry `entry` paid for, and returns what is kept: an earlier answer to the same
    /// question is never replaced. On disk when this returns.
    ///
    /// # Errors
    /// [`LedgerFileError`] when the file cannot be written.
    pub fn keep_answer(&mut self, query: &str, entry: u64, answer: &str) -> Result<String, LedgerFileError> {
        let reading = Reading::alone(&mut self.connection, &self.path, self.wait)?;
        reading.account()?;
        if let Some(kept) = reading.answer(query)? {
            return Ok(kept);
        }
        reading.within(|file| insert_answer(file, query, entry, answer))?;
        reading.commit(&self.folder)?;
        Ok(answer.to_owned())
    }

    /// Name of this ledger: 32 hexadecimal digits, drawn when it was made; a copy of the file has the same.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Where the file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn open_waiting(path: &Path, wait: Duration) -> Result<Self, LedgerFileError> {
        let path = absolute(path)?;
        refuse_what_is_no_file(&path)?;
        refuse_foreign(&path, wait)?;
        let refused = |source| LedgerFileError::from_database(&path, wait, source);
        let connection = connect(&path, wait).map_err(refused)?;
        let id = Reading::shared(&connection, &path, wait)?.sound_id()?;
        // Last, because it may write: a ledger that another tool left in another mode is brought back.
        if !make_durable(&connection).map_err(refused)? {
            return Err(LedgerFileError::Locked { path, waited: wait });
        }
        let folder = folder_of(&fs::canonicalize(&path).map_err(failed(&path, "opened"))?)?.to_owned();
        Ok(Self { connection, path, folder, wait, id, last_entry: None })
    }

    fn reading(&self) -> Result<Reading<'_>, LedgerFileError> {
        Reading::shared(&self.connection, &self.path, self.wait)
    }
}

impl LedgerStore for LedgerFile {
    fn account(&self) -> Result<Account, LedgerError> {
        self.reading().and_then(|reading| reading.account()).map_err(stored)
    }

    fn charge(&mut self, request: &Request) -> Result<(), LedgerError> {
        let nonce = draw_id(&self.path).map_err(stored)?;
        // Alone: from reading the account to the commit nobody else can write. Every early return rolls back.
        let reading = Reading::alone(&mut self.connection, &self.path, self.wait).map_err(stored)?;
        let prices = reading.account().map_err(stored)?.admit(request)?;
        let (entry, seal) = reading.within(|file| insert_entry(file, &nonce, request, &prices)).map_err(stored)?;
        reading.commit(&self.folder).map_err(stored)?;
        self.last_entry = Some(LedgerReference { id: self.id.clone(), entry, seal: Some(seal) });
        Ok(())
    }

    fn last_entry(&self) -> Option<LedgerReference> {
        self.last_entry.clone()
    }
}

impl fmt::Debug for LedgerFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("LedgerFile").field("path", &self.path).field("id", &self.id).finish_non_exhaustive()
    }
}

fn draw_id(path: &Path) -> Result<String, LedgerFileError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| LedgerFileError::Entropy { path: path.to_owned(), reason: error.to_string() })?;
    Ok(hex(&bytes))
}

/// A new name survives a crash of the machine only when its folder is written too.
fn make_name_durable(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { fs::File::open(folder)?.sync_all() } else { Ok(()) }
}

// Opening a file.

/// Checks that need the folder's word only.
fn refuse_what_is_no_file(path: &Path) -> Result<(), LedgerFileError> {
    folder_of(path)?;
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => Err(LedgerFileError::NotAFile { path: path.to_owned() }),
        Ok(metadata) if metadata.len() == 0 => Err(LedgerFileError::Empty { path: path.to_owned() }),
        Ok(metadata) if has_other_names(&metadata) => Err(LedgerFileError::Linked { path: path.to_owned() }),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(LedgerFileError::Missing { path: path.to_owned() })
        }
        Err(error) => Err(failed(path, "opened")(error)),
    }
}

/// Whether hard links give the file other names. A journal is found by name: under another one, a charge would be written over what the
/// journal of a crash is still to undo, and be undone with it.
#[cfg(unix)]
fn has_other_names(metadata: &fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(metadata) > 1
}

#[cfg(not(unix))]
fn has_other_names(_: &fs::Metadata) -> bool {
    false
}

/// Refuses what is no ledger, or one of a later format, without a lock and without ever writing.
///
/// An ordinary connection would play back the journal of somebody else's database. Reading the header ourselves would
/// be worse: on POSIX, closing any descriptor of a file drops all locks that this process holds on it, also those of a
/// charge under way in another thread. SQLite knows of its own locks and keeps the descriptor open.
fn refuse_foreign(path: &Path, wait: Duration) -> Result<(), LedgerFileError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let probe = || {
        let connection = Connection::open_with_flags(immutable_uri(path), flags)?;
        Ok((read_pragma(&connection, "application_id")?, read_pragma(&connection, "user_version")?))
    };
    let looked = probe().map_err(|source| LedgerFileError::from_database(path, wait, source));
    match looked.and_then(|(application, format)| refuse_header(path, application, format)) {
        Ok(()) => Ok(()),
        // The power may have gone while its first page was written: the journal has that page, and undoes this.
        Err(_) if journal::is_of_application(&with_suffix(path, "-journal"), APPLICATION_ID) => Ok(()),
        // It may only look cut off because another process is making it longer; the check under a lock will tell.
        Err(LedgerFileError::Damaged { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Without CREATE: a file that vanishes meanwhile is an error and not a new, empty ledger.
fn connect(path: &Path, wait: Duration) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(wait)?;
    distrust(&connection)?;
    Ok(connection)
}

/// The file comes from outside: look at its pages twice, and let its definitions call nothing.
fn distrust(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "cell_size_check", "ON")?;
    connection.pragma_update(None, "trusted_schema", "OFF")
}

/// From now on a commit is on disk when it returns, and the journal that could undo it is gone for good.
/// Returns false when others keep the file in another mode.
fn make_durable(connection: &Connection) -> rusqlite::Result<bool> {
    connection.pragma_update(None, "synchronous", "EXTRA")?;
    // macOS: an ordinary sync stops at the drive's cache.
    connection.pragma_update(None, "fullfsync", "ON")?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    // Not a write-ahead log, which can be lost apart from its file.
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "DELETE", |row| row.get(0))?;
    Ok(mode == "delete")
}

// Names.

/// Absolute, because SQLite gives `:memory:` and the empty name a meaning of their own: a ledger that is never written.
fn absolute(path: &Path) -> Result<PathBuf, LedgerFileError> {
    std::path::absolute(path).map_err(failed(path, "opened"))
}

fn folder_of(path: &Path) -> Result<&Path, LedgerFileError> {
    let folder = path.parent().ok_or_else(|| LedgerFileError::NotAFile { path: path.to_owned() })?;
    if folder.is_dir() {
        Ok(folder)
    } else {
        Err(LedgerFileError::MissingFolder { path: path.to_owned(), folder: folder.to_owned() })
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

/// `immutable`: no lock, no journal, no write, whatever lies beside the file.
fn immutable_uri(path: &Path) -> String {
    let escape = |byte: &u8| match byte.is_ascii_alphanumeric() {
        true => char::from(*byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    let name: String = path.as_os_str().as_encoded_bytes().iter().map(escape).collect();
    format!("file:{name}?mode=ro&immutable=1")
}

fn failed(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> LedgerFileError {
    let path = path.to_owned();
    move |source| LedgerFileError::Io { path, action, source }
}

fn stored(error: LedgerFileError) -> LedgerError {
    LedgerError::Store(Box::new(error))
}

/// How long to wait for other processes: a charge takes milliseconds, so this is a queue of hundreds.
const LOCK_WAIT: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests;
