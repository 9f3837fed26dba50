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
use reticent_core::ledger::{Account, Budget, LedgerError, LedgerStore, Request};
use reticent_core::units::{Delta, Epsilon, MuSquared};
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior, params};

mod error;
mod journal;
mod seal;
#[cfg(test)]
mod tests;

pub use error::LedgerFileError;

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
    last_entry: Option<(u64, String)>,
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
        let (path, folder, wait) = (&self.path, &self.folder, self.wait);
        let database = |source| LedgerFileError::from_database(path, wait, source);
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(database)?;
        let account = read_account(&transaction, path, wait)?;
        if let Some(budget) = account.budget {
            return Err(LedgerFileError::BudgetIsSet { path: path.clone(), budget });
        }
        insert_budget(&transaction, budget).map_err(database)?;
        commit(transaction, path, folder, wait)?;
        let limit = budget.mu_squared_down();
        Ok(account.spent.into_iter().filter(|(_, spent)| *spent > limit).map(|(relation, _)| relation).collect())
    }

    /// Every charge, oldest first.
    ///
    /// # Errors
    /// [`LedgerFileError`] when the file cannot be read.
    pub fn entries(&self) -> Result<Vec<Entry>, LedgerFileError> {
        // One transaction, so that an entry is never seen without its charges.
        let reading = self.connection.unchecked_transaction().map_err(|source| self.database(source))?;
        read_account(&reading, &self.path, self.wait)?;
        read_entries(&reading, &self.path, self.wait)
    }

    /// The answer that is kept under the name of a question, if there is one.
    ///
    /// # Errors
    /// [`LedgerFileError`] when the file cannot be read.
    pub fn kept_answer(&self, query: &str) -> Result<Option<String>, LedgerFileError> {
        let reading = self.connection.unchecked_transaction().map_err(|source| self.database(source))?;
        read_account(&reading, &self.path, self.wait)?;
        read_answer(&reading, query).map_err(|source| self.database(source))
    }

    /// Keeps the answer to a question, which entry `entry` paid for, and returns what is kept: an earlier answer to the same
    /// question is never replaced. On disk when this returns.
    ///
    /// # Errors
    /// [`LedgerFileError`] when the file cannot be written.
    pub fn keep_answer(&mut self, query: &str, entry: u64, answer: &str) -> Result<String, LedgerFileError> {
        let (path, folder, wait) = (&self.path, &self.folder, self.wait);
        let database = |source| LedgerFileError::from_database(path, wait, source);
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(database)?;
        read_account(&transaction, path, wait)?;
        if let Some(kept) = read_answer(&transaction, query).map_err(database)? {
            return Ok(kept);
        }
        let keep = || {
            let entry = i64::try_from(entry).expect("entries are numbered from 1");
            let seal = seal::of_answer(&ledger_seal(&transaction)?, query, entry, answer);
            transaction.execute("INSERT INTO answer VALUES (?1, ?2, ?3, ?4)", params![query, entry, answer, seal])
        };
        keep().map_err(database)?;
        commit(transaction, path, folder, wait)?;
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

    /// Number and seal of the entry that this object wrote last; `None` before its first charge.
    #[must_use]
    pub fn last_entry(&self) -> Option<(u64, &str)> {
        self.last_entry.as_ref().map(|(number, seal)| (*number, seal.as_str()))
    }

    fn open_waiting(path: &Path, wait: Duration) -> Result<Self, LedgerFileError> {
        let path = absolute(path)?;
        refuse_what_is_no_file(&path)?;
        refuse_foreign(&path, wait)?;
        let database = |source| LedgerFileError::from_database(&path, wait, source);
        // Without CREATE: a file that vanishes meanwhile is an error and not a new, empty ledger.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&path, flags).map_err(database)?;
        connection.busy_timeout(wait).map_err(database)?;
        distrust(&connection).map_err(database)?;
        let id = read_sound(&connection, &path, wait)?;
        // Last, because it may write: a ledger that another tool left in another mode is brought back.
        if !make_durable(&connection).map_err(database)? {
            return Err(LedgerFileError::Locked { path, waited: wait });
        }
        let folder = folder_of(&fs::canonicalize(&path).map_err(failed(&path, "opened"))?)?.to_owned();
        Ok(Self { connection, path, folder, wait, id, last_entry: None })
    }

    fn try_account(&self) -> Result<Account, LedgerFileError> {
        let reading = self.connection.unchecked_transaction().map_err(|source| self.database(source))?;
        read_account(&reading, &self.path, self.wait)
    }

    fn database(&self, source: rusqlite::Error) -> LedgerFileError {
        LedgerFileError::from_database(&self.path, self.wait, source)
    }
}

impl LedgerStore for LedgerFile {
    fn account(&self) -> Result<Account, LedgerError> {
        self.try_account().map_err(stored)
    }

    fn charge(&mut self, request: &Request) -> Result<(), LedgerError> {
        let (path, folder, wait) = (&self.path, &self.folder, self.wait);
        let database = |source| stored(LedgerFileError::from_database(path, wait, source));
        let nonce = draw_id(path).map_err(stored)?;
        // Immediate: from reading the account to the commit nobody else can write. Every early return rolls back.
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(database)?;
        let prices = read_account(&transaction, path, wait).map_err(stored)?.admit(request)?;
        let entry = insert_entry(&transaction, &nonce, request, &prices).map_err(database)?;
        commit(transaction, path, folder, wait).map_err(stored)?;
        self.last_entry = Some(entry);
        Ok(())
    }
}

impl fmt::Debug for LedgerFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("LedgerFile").field("path", &self.path).field("id", &self.id).finish_non_exhaustive()
    }
}

// Making a file.

/// Writes a complete ledger under a passing name in the same folder.
fn write_draft(
    path: &Path,
    folder: &Path,
    promised: &BTreeSet<Relation>,
    budget: Option<Budget>,
) -> Result<tempfile::TempPath, LedgerFileError> {
    let id = draw_id(path)?;
    let mut draft = tempfile::Builder::new();
    draft.prefix(".ledger-").suffix(".new");
    // As any new file, within the user's umask: the ledger of a shared table is charged by several users.
    #[cfg(unix)]
    draft.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let draft = draft.tempfile_in(folder).map_err(failed(path, "made"))?.into_temp_path();
    let write = || {
        let mut connection = Connection::open(&draft)?;
        assert!(make_durable(&connection)?, "nobody else knows the draft's name");
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Exclusive)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", FORMAT)?;
        transaction.execute_batch(TABLES)?;
        transaction.execute(&format!("INSERT INTO ledger VALUES (1, ?1, {NOW})"), params![id])?;
        for relation in promised {
            transaction.execute("INSERT INTO promise VALUES (?1)", params![relation.to_string()])?;
        }
        if let Some(budget) = budget {
            insert_budget(&transaction, budget)?;
        }
        transaction.execute_batch(&triggers())?;
        transaction.commit()?;
        connection.close().map_err(|(_, error)| error)
    };
    write().map_err(|source| LedgerFileError::from_database(path, LOCK_WAIT, source))?;
    Ok(draft)
}

fn draw_id(path: &Path) -> Result<String, LedgerFileError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| LedgerFileError::Entropy { path: path.to_owned(), reason: error.to_string() })?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Ends a transaction so that what it wrote survives a crash of the machine.
///
/// SQLite syncs the folder too, when it has made the journal and when it has removed it; but it goes on in silence where the
/// folder cannot be opened, and the journal may then be lost while it is needed, or come back and undo the entry.
fn commit(transaction: Transaction<'_>, path: &Path, folder: &Path, wait: Duration) -> Result<(), LedgerFileError> {
    make_name_durable(folder).map_err(failed(path, "written"))?;
    transaction.commit().map_err(|source| LedgerFileError::from_database(path, wait, source))?;
    make_name_durable(folder).map_err(|source| LedgerFileError::Unsynced { path: path.to_owned(), source })
}

/// A new name survives a crash of the machine only when its folder is written too.
fn make_name_durable(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { fs::File::open(folder)?.sync_all() } else { Ok(()) }
}

fn refuse_illegal_promise(path: &Path, promised: &BTreeSet<Relation>) -> Result<(), LedgerFileError> {
    if promised.is_empty() {
        return Err(LedgerFileError::NothingPromised { path: path.to_owned() });
    }
    match promised.iter().find(|relation| relation.to_string().parse::<Relation>().as_ref() != Ok(relation)) {
        Some(relation) => {
            Err(LedgerFileError::IllegalRelation { path: path.to_owned(), relation: Box::new(relation.clone()) })
        }
        None => Ok(()),
    }
}

fn refuse_existing(path: &Path) -> Result<(), LedgerFileError> {
    // Not following links: a link that leads nowhere is in the way as well.
    match fs::symlink_metadata(path) {
        Ok(_) => Err(LedgerFileError::Exists { path: path.to_owned() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(path, "made")(error)),
    }
}

/// SQLite plays a journal back into whatever file has its name: an old one would overwrite a new ledger.
fn refuse_stray_journal(path: &Path) -> Result<(), LedgerFileError> {
    for suffix in ["-journal", "-wal"] {
        let journal = with_suffix(path, suffix);
        if fs::symlink_metadata(&journal).is_ok() {
            // Unless it belongs to a ledger that another process has just made and is charging.
            refuse_existing(path)?;
            return Err(LedgerFileError::StrayJournal { path: path.to_owned(), journal });
        }
    }
    Ok(())
}

// Checking a file.

/// Checks that need the folder's word only.
fn refuse_what_is_no_file(path: &Path) -> Result<(), LedgerFileError> {
    folder_of(path)?;
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => Err(LedgerFileError::NotAFile { path: path.to_owned() }),
        Ok(metadata) if metadata.len() == 0 => Err(LedgerFileError::Empty { path: path.to_owned() }),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(LedgerFileError::Missing { path: path.to_owned() })
        }
        Err(error) => Err(failed(path, "opened")(error)),
    }
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

fn refuse_header(path: &Path, application: i32, format: i32) -> Result<(), LedgerFileError> {
    let path = path.to_owned();
    if application != APPLICATION_ID || format < 1 {
        Err(LedgerFileError::NotALedger { path })
    } else if format < FORMAT {
        Err(LedgerFileError::Older { path, found: format })
    } else if format > FORMAT {
        Err(LedgerFileError::Newer { path, found: format, known: FORMAT })
    } else {
        Ok(())
    }
}

/// Checks everything that can be checked, in one transaction, and returns the ledger's id.
fn read_sound(connection: &Connection, path: &Path, wait: Duration) -> Result<String, LedgerFileError> {
    let database = |source| LedgerFileError::from_database(path, wait, source);
    let damaged = |finding: String| LedgerFileError::Damaged { path: path.to_owned(), finding };
    let reading = connection.unchecked_transaction().map_err(database)?;
    refuse_header(
        path,
        read_pragma(&reading, "application_id").map_err(database)?,
        read_pragma(&reading, "user_version").map_err(database)?,
    )?;
    let finding: String = reading.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(database)?;
    if finding != "ok" {
        return Err(damaged(finding));
    }
    if read_definitions(&reading).map_err(database)? != expected_definitions().map_err(database)? {
        return Err(damaged("its tables are not those of the format".to_owned()));
    }
    read_account(&reading, path, wait)?;
    read_entries(&reading, path, wait)?;
    check_other_seals(&reading, path, wait)?;
    reading.query_row("SELECT id FROM ledger", [], |row| row.get(0)).map_err(database)
}

fn read_definitions(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement =
        connection.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name")?;
    statement.query_map([], |row| row.get(0))?.collect()
}

fn expected_definitions() -> rusqlite::Result<Vec<String>> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(TABLES)?;
    connection.execute_batch(&triggers())?;
    read_definitions(&connection)
}

// Reading and writing, always inside a transaction.

fn read_account(transaction: &Transaction<'_>, path: &Path, wait: Duration) -> Result<Account, LedgerFileError> {
    let database = |source| LedgerFileError::from_database(path, wait, source);
    let damaged = |finding: &str| LedgerFileError::Damaged { path: path.to_owned(), finding: finding.to_owned() };
    // A newer release may have changed the format since the file was opened.
    refuse_header(path, APPLICATION_ID, read_pragma(transaction, "user_version").map_err(database)?)?;
    let complete: bool = transaction.query_row(COMPLETE, [], |row| row.get(0)).map_err(database)?;
    if !complete {
        return Err(damaged("entries or their charges are missing"));
    }
    let mut spent = read_promises(transaction, path, wait)?;
    let mut statement = transaction.prepare_cached("SELECT relation, mu_squared FROM charge").map_err(database)?;
    let mut rows = statement.query([]).map_err(database)?;
    let mut by_text: BTreeMap<String, Vec<MuSquared>> = BTreeMap::new();
    while let Some(row) = rows.next().map_err(database)? {
        let price = parse_price(&row.get::<_, String>(1).map_err(database)?, path)?;
        by_text.entry(row.get(0).map_err(database)?).or_default().push(price);
    }
    for (text, prices) in by_text {
        let total = spent.get_mut(&parse_relation(&text, path)?).ok_or_else(|| damaged("a charge for no promise"))?;
        *total = prices
            .into_iter()
            .try_fold(*total, MuSquared::checked_add)
            .ok_or_else(|| damaged("the charges add up to more than a ledger can hold"))?;
    }
    Ok(Account { budget: read_budget(transaction, path, wait)?, spent })
}

fn read_promises(
    transaction: &Transaction<'_>,
    path: &Path,
    wait: Duration,
) -> Result<BTreeMap<Relation, MuSquared>, LedgerFileError> {
    let database = |source| LedgerFileError::from_database(path, wait, source);
    let mut statement = transaction.prepare_cached("SELECT relation FROM promise").map_err(database)?;
    let texts = statement.query_map([], |row| row.get(0)).and_then(Iterator::collect::<rusqlite::Result<Vec<String>>>);
    texts.map_err(database)?.iter().map(|text| Ok((parse_relation(text, path)?, MuSquared::ZERO))).collect()
}

fn read_budget(transaction: &Transaction<'_>, path: &Path, wait: Duration) -> Result<Option<Budget>, LedgerFileError> {
    let mut statement = transaction
        .prepare_cached("SELECT epsilon, delta FROM budget")
        .map_err(|source| LedgerFileError::from_database(path, wait, source))?;
    let found: rusqlite::Result<(f64, f64)> = statement.query_row([], |row| Ok((row.get(0)?, row.get(1)?)));
    let (epsilon, delta) = match found {
        Ok(found) => found,
        Err(rusqlite::Error::QueryReturnedNoRows) => return Ok(None),
        Err(source) => return Err(LedgerFileError::from_database(path, wait, source)),
    };
    let budget = || Ok(Budget { epsilon: Epsilon::new(epsilon)?, delta: Delta::new(delta)? });
    budget().map(Some).map_err(|error: reticent_core::units::UnitError| LedgerFileError::Damaged {
        path: path.to_owned(),
        finding: error.to_string(),
    })
}

fn read_entries(transaction: &Transaction<'_>, path: &Path, wait: Duration) -> Result<Vec<Entry>, LedgerFileError> {
    let database = |source| LedgerFileError::from_database(path, wait, source);
    let mut charges = transaction
        .prepare_cached("SELECT relation, mu_squared FROM charge WHERE entry = ?1 ORDER BY relation")
        .map_err(database)?;
    let mut statement =
        transaction.prepare_cached("SELECT id, nonce, time, request, seal FROM entry ORDER BY id").map_err(database)?;
    let mut rows = statement.query([]).map_err(database)?;
    let mut entries = Vec::new();
    let mut previous = ledger_seal(transaction).map_err(database)?;
    while let Some(row) = rows.next().map_err(database)? {
        let id: i64 = row.get(0).map_err(database)?;
        let text = |place: usize| row.get::<_, String>(place).map_err(database);
        let (nonce, time, request, seal) = (text(1)?, text(2)?, text(3)?, text(4)?);
        let prices = charges.query_map([id], |row| Ok((row.get(0)?, row.get(1)?)));
        let prices: rusqlite::Result<Vec<(String, String)>> = prices.and_then(Iterator::collect);
        let prices = prices.map_err(database)?;
        if seal != seal::of_entry(&previous, id, &nonce, &time, &request, &prices) {
            return Err(LedgerFileError::Damaged {
                path: path.to_owned(),
                finding: format!("entry {id} or something before it was changed after it was written"),
            });
        }
        previous.clone_from(&seal);
        let request = serde_json::from_str(&request).map_err(|error| LedgerFileError::Damaged {
            path: path.to_owned(),
            finding: format!("the request of entry {id} cannot be read: {error}"),
        })?;
        let charged = prices
            .iter()
            .map(|(relation, price)| Ok((parse_relation(relation, path)?, parse_price(price, path)?)))
            .collect::<Result<BTreeMap<_, _>, LedgerFileError>>()?;
        let id = u64::try_from(id).expect("entries are numbered from 1: the account was read before");
        entries.push(Entry { id, time, request, charged, seal });
    }
    Ok(entries)
}

/// Seals of the limit and of kept answers.
fn check_other_seals(transaction: &Transaction<'_>, path: &Path, wait: Duration) -> Result<(), LedgerFileError> {
    let database = |source| LedgerFileError::from_database(path, wait, source);
    let changed = |what: &str| LedgerFileError::Damaged {
        path: path.to_owned(),
        finding: format!("{what} was changed after it was written"),
    };
    let ledger = ledger_seal(transaction).map_err(database)?;
    let mut budgets = transaction.prepare("SELECT epsilon, delta, set_at, seal FROM budget").map_err(database)?;
    let mut rows = budgets.query([]).map_err(database)?;
    while let Some(row) = rows.next().map_err(database)? {
        let seal = || {
            let set_at: String = row.get(2)?;
            Ok((seal::of_budget(&ledger, row.get(0)?, row.get(1)?, &set_at), row.get::<_, String>(3)?))
        };
        let (expected, found) = seal().map_err(database)?;
        if expected != found {
            return Err(changed("the limit"));
        }
    }
    let mut answers = transaction.prepare("SELECT query, entry, release, seal FROM answer").map_err(database)?;
    let mut rows = answers.query([]).map_err(database)?;
    while let Some(row) = rows.next().map_err(database)? {
        let seal = || {
            let (query, release): (String, String) = (row.get(0)?, row.get(2)?);
            Ok((seal::of_answer(&ledger, &query, row.get(1)?, &release), row.get::<_, String>(3)?))
        };
        let (expected, found) = seal().map_err(database)?;
        if expected != found {
            return Err(changed("a kept answer"));
        }
    }
    Ok(())
}

/// The first link of the chain.
fn ledger_seal(transaction: &Transaction<'_>) -> rusqlite::Result<String> {
    let (id, made): (String, String) =
        transaction.query_row("SELECT id, made FROM ledger", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut promises = transaction.prepare_cached("SELECT relation FROM promise ORDER BY relation")?;
    let promises = promises.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
    Ok(seal::of_ledger(&id, &made, &promises))
}

fn now(transaction: &Transaction<'_>) -> rusqlite::Result<String> {
    transaction.query_row(&format!("SELECT {NOW}"), [], |row| row.get(0))
}

fn insert_entry(
    transaction: &Transaction<'_>,
    nonce: &str,
    request: &Request,
    prices: &BTreeMap<Relation, MuSquared>,
) -> rusqlite::Result<(u64, String)> {
    let request = serde_json::to_string(request).expect("a request is text and whole numbers, which JSON can say");
    let mut prices: Vec<(String, String)> =
        prices.iter().map(|(relation, price)| (relation.to_string(), price.steps().to_string())).collect();
    // As the database sorts texts.
    prices.sort();
    let last = transaction.query_row("SELECT id, seal FROM entry ORDER BY id DESC LIMIT 1", [], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
    });
    let (last, previous) = match last {
        Ok(last) => last,
        Err(rusqlite::Error::QueryReturnedNoRows) => (0, ledger_seal(transaction)?),
        Err(error) => return Err(error),
    };
    let (id, time) = (last + 1, now(transaction)?);
    let seal = seal::of_entry(&previous, id, nonce, &time, &request, &prices);
    let mut entry = transaction.prepare_cached("INSERT INTO entry VALUES (?1, ?2, ?3, ?4, ?5)")?;
    entry.execute(params![id, nonce, time, request, seal])?;
    let mut charge = transaction.prepare_cached("INSERT INTO charge VALUES (?1, ?2, ?3)")?;
    for (relation, price) in prices {
        charge.execute(params![id, relation, price])?;
    }
    Ok((u64::try_from(id).expect("entries are numbered from 1"), seal))
}

fn read_answer(transaction: &Transaction<'_>, query: &str) -> rusqlite::Result<Option<String>> {
    let mut statement = transaction.prepare_cached("SELECT release FROM answer WHERE query = ?1")?;
    match statement.query_row([query], |row| row.get(0)) {
        Ok(answer) => Ok(Some(answer)),
        Err(rusqlite::Error::QueryReturnedNoRows) => Ok(None),
        Err(error) => Err(error),
    }
}

fn insert_budget(transaction: &Transaction<'_>, budget: Budget) -> rusqlite::Result<()> {
    let (epsilon, delta, set_at) = (budget.epsilon.get(), budget.delta.get(), now(transaction)?);
    let seal = seal::of_budget(&ledger_seal(transaction)?, epsilon, delta, &set_at);
    transaction.execute("INSERT INTO budget VALUES (1, ?1, ?2, ?3, ?4)", params![epsilon, delta, set_at, seal])?;
    Ok(())
}

fn parse_relation(text: &str, path: &Path) -> Result<Relation, LedgerFileError> {
    text.parse().map_err(|error: reticent_core::adjacency::RelationSyntax| LedgerFileError::Damaged {
        path: path.to_owned(),
        finding: error.to_string(),
    })
}

fn parse_price(text: &str, path: &Path) -> Result<MuSquared, LedgerFileError> {
    text.parse()
        .map(MuSquared::from_steps)
        .map_err(|_| LedgerFileError::Damaged { path: path.to_owned(), finding: format!("{text:?} is no price") })
}

fn read_pragma(connection: &Connection, name: &str) -> rusqlite::Result<i32> {
    connection.pragma_query_value(None, name, |row| row.get(0))
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

// The format.

/// How long to wait for other processes: a charge takes milliseconds, so this is a queue of hundreds.
const LOCK_WAIT: Duration = Duration::from_secs(30);

/// `Retc` in ASCII, in the header of the file.
const APPLICATION_ID: i32 = 0x5265_7463;

/// The format that this release reads and writes. 1 and 2 had no seals; no release made them.
const FORMAT: i32 = 3;

/// UTC, to the second.
const NOW: &str = "strftime('%Y-%m-%dT%H:%M:%SZ', 'now')";

/// Prices are decimal text because SQLite's integers end at 2^63 and a price may have 128 bits. `answer` holds answers to
/// questions of other organisations, by the name of the question: asked again, they cost nothing.
const TABLES: &str = "
CREATE TABLE ledger (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    id TEXT NOT NULL CHECK (length(id) = 32),
    made TEXT NOT NULL
) STRICT;
CREATE TABLE budget (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    epsilon REAL NOT NULL,
    delta REAL NOT NULL,
    set_at TEXT NOT NULL,
    seal TEXT NOT NULL CHECK (length(seal) = 64)
) STRICT;
CREATE TABLE promise (
    relation TEXT NOT NULL PRIMARY KEY
) STRICT, WITHOUT ROWID;
CREATE TABLE entry (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    nonce TEXT NOT NULL CHECK (length(nonce) = 32),
    time TEXT NOT NULL,
    request TEXT NOT NULL,
    seal TEXT NOT NULL CHECK (length(seal) = 64)
) STRICT;
CREATE TABLE charge (
    entry INTEGER NOT NULL REFERENCES entry (id),
    relation TEXT NOT NULL REFERENCES promise (relation),
    mu_squared TEXT NOT NULL CHECK (mu_squared <> '' AND mu_squared NOT GLOB '*[^0-9]*'),
    PRIMARY KEY (entry, relation)
) STRICT, WITHOUT ROWID;
CREATE TABLE answer (
    query TEXT NOT NULL PRIMARY KEY CHECK (length(query) = 64),
    entry INTEGER NOT NULL REFERENCES entry (id),
    release TEXT NOT NULL,
    seal TEXT NOT NULL CHECK (length(seal) = 64)
) STRICT, WITHOUT ROWID;
";

/// Whether the entries are 1 to n without a gap, none was ever removed, and each is charged in every promised relation.
const COMPLETE: &str = "
SELECT (SELECT count(*) FROM ledger) = 1
   AND (SELECT count(*) FROM promise) >= 1
   AND (SELECT count(*) FROM entry) = (SELECT coalesce(max(id), 0) FROM entry)
   AND (SELECT count(*) FROM entry) = (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'entry')
   AND (SELECT count(*) FROM charge) = (SELECT count(*) FROM entry) * (SELECT count(*) FROM promise)
";

/// A ledger only grows. This stops a slip in somebody's SQL, not an enemy: who can write the file can drop a trigger.
fn triggers() -> String {
    let kept = ["ledger", "budget", "promise", "entry", "charge", "answer"];
    let changes = kept.iter().flat_map(|table| ["UPDATE", "DELETE"].map(|action| refusing(table, action)));
    // What is promised is fixed when the ledger is made: a later promise would not cover earlier entries.
    let additions = ["ledger", "promise"].map(|table| refusing(table, "INSERT"));
    changes.chain(additions).collect()
}

fn refusing(table: &str, action: &str) -> String {
    format!(
        "CREATE TRIGGER {table}_no_{action} BEFORE {action} ON {table} \
         BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END;"
    )
}
