//! A ledger that is being made: complete under a passing name before it is put in its place.

use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, io};

use reticent_core::adjacency::Relation;
use reticent_core::ledger::Budget;
use rusqlite::{Connection, TransactionBehavior, params};

use super::format::{APPLICATION_ID, FORMAT, NOW, TABLES, insert_budget, triggers};
use super::{LOCK_WAIT, LedgerFileError, draw_id, failed, make_durable, with_suffix};

/// Writes a complete ledger under a passing name in the same folder.
pub(super) fn write_draft(
    path: &Path,
    folder: &Path,
    promised: &BTreeSet<Relation>,
    budget: Option<Budget>,
) -> Result<tempfile::TempPath, LedgerFileError> {
    let id = draw_id(path)?;
    let mut draft = tempfile::Builder::new();
    draft.prefix(".ledger-").suffix(".new");
    #[cfg(unix)]
    draft.permissions(permissions(path));
    let draft = draft.tempfile_in(folder).map_err(failed(path, "made"))?;
    #[cfg(unix)]
    keep_from_another_group(draft.as_file(), path).map_err(failed(path, "made"))?;
    let draft = draft.into_temp_path();
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

/// As any new file, within the user's umask: the ledger of a shared table is charged by several users. Whom the table `FILE` is kept from, though,
/// its ledger `FILE.ledger` is kept from as well.
#[cfg(unix)]
fn permissions(path: &Path) -> fs::Permissions {
    use std::os::unix::fs::PermissionsExt;

    let readers = table_beside(path).map_or(0o444, |table| table.permissions().mode() & 0o444);
    // Who may read the table may charge it.
    fs::Permissions::from_mode(0o600 | readers | readers >> 1)
}

/// The ledger's group is that of who makes it: where the table has another, what that group may do with the table this one may not with the ledger.
#[cfg(unix)]
fn keep_from_another_group(draft: &fs::File, path: &Path) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    let made = draft.metadata()?;
    let is_the_same = table_beside(path).is_none_or(|table| table.gid() == made.gid());
    if is_the_same { Ok(()) } else { draft.set_permissions(fs::Permissions::from_mode(made.mode() & 0o707)) }
}

#[cfg(unix)]
fn table_beside(path: &Path) -> Option<fs::Metadata> {
    let is_beside = path.extension().is_some_and(|extension| extension == "ledger");
    is_beside.then(|| fs::metadata(path.with_extension("")).ok()).flatten()
}

pub(super) fn refuse_illegal_promise(path: &Path, promised: &BTreeSet<Relation>) -> Result<(), LedgerFileError> {
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

pub(super) fn refuse_existing(path: &Path) -> Result<(), LedgerFileError> {
    // Not following links: a link that leads nowhere is in the way as well.
    match fs::symlink_metadata(path) {
        Ok(_) => Err(LedgerFileError::Exists { path: path.to_owned() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(path, "made")(error)),
    }
}

/// SQLite plays a journal back into whatever file has its name: an old one would overwrite a new ledger.
pub(super) fn refuse_stray_journal(path: &Path) -> Result<(), LedgerFileError> {
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
