//! Which ledger pays for private rows: the one that was named, or one beside their file.

use std::path::{Path, PathBuf};

use reticent_core::adjacency::Relation;
use reticent_core::ledger::{LedgerStore, Request};
use reticent_curator::ledger_file::{LedgerFile, LedgerFileError};

use crate::failure::Failure;

/// Where the ledger of a private command is.
pub(super) enum LedgerPlace {
    /// It must be there.
    Named(PathBuf),
    /// It is made when it is needed first.
    Beside(PathBuf),
}

impl LedgerPlace {
    /// The named ledger, or the one beside the file or folder of private rows that `flag` names.
    ///
    /// Asked before anything else: what comes out of a pipe has no place of its own, and a ledger in `/dev` would be found by
    /// no later command.
    pub(super) fn of(named: Option<&Path>, flag: &str, file: &Path) -> Result<Self, Failure> {
        if let Some(named) = named {
            return Ok(Self::Named(named.to_owned()));
        }
        ledger_beside(file).map(Self::Beside).ok_or_else(|| {
            Failure::Usage(format!(
                "{flag} {} is a pipe or a device, and no ledger can lie beside it; name one with --ledger (`reticent ledger \
                 init` makes it)",
                file.display()
            ))
        })
    }

    pub(super) fn path(&self) -> &Path {
        let (Self::Named(path) | Self::Beside(path)) = self;
        path
    }

    /// Opens the ledger, which has to be there: for requests whose relation is not the owner's word, as that of a model file. A ledger that they made
    /// would promise what somebody else chose.
    pub(super) fn open(&self, relation: &Relation) -> Result<LedgerFile, Failure> {
        open_for(self.path(), relation)
    }

    /// The ledger where there is one already: that a named one is missing is told.
    pub(super) fn existing(&self, relation: &Relation) -> Result<Option<LedgerFile>, Failure> {
        match self {
            Self::Named(_) => self.open(relation).map(Some),
            Self::Beside(path) => match LedgerFile::open(path) {
                Err(LedgerFileError::Missing { .. }) => Ok(None),
                opened => Ok(Some(opened?)),
            },
        }
    }

    /// The same, before a row is read: what it refuses is told then.
    pub(super) fn open_existing(&self, request: &Request, relation: &Relation) -> Result<Option<LedgerFile>, Failure> {
        let ledger = self.existing(relation)?;
        if let Some(ledger) = &ledger {
            ledger.account()?.may_admit(relation, request)?;
        }
        Ok(ledger)
    }

    /// The ledger, once the rows have been read: only a table that can be read gets one beside it.
    pub(super) fn or_beside(&self, existing: Option<LedgerFile>, relation: Relation) -> Result<LedgerFile, Failure> {
        if let Some(existing) = existing {
            return Ok(existing);
        }
        let path = self.path();
        LedgerFile::open_or_create(path, &[relation].into()).map_err(|error| {
            // The owner of the rows need not be able to write where they lie.
            if matches!(error, LedgerFileError::Io { .. }) && !path.exists() {
                let advice = "or make a ledger in another place with `reticent ledger init`, and name it with --ledger";
                return Failure::InputOutput(format!("{error}; {advice}"));
            }
            error.into()
        })
    }
}

/// Opens a ledger that was named. Where there is none, the message has the promise that the one to be made needs: it cannot be changed.
pub(super) fn open_for(path: &Path, relation: &Relation) -> Result<LedgerFile, Failure> {
    LedgerFile::open(path).map_err(|error| {
        if let LedgerFileError::Missing { .. } = error {
            let promise = in_shell(&relation.to_string());
            return Failure::InputOutput(format!(
                "{0}: there is no such ledger; check the name, or make one that promises what the schema protects: `reticent ledger \
                 init {0} --epsilon EPSILON --delta DELTA --promise {promise}`, with the most that may ever be spent",
                path.display()
            ));
        }
        error.into()
    })
}

/// A word as a shell takes it.
fn in_shell(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || matches!(letter, ':' | '-' | '_');
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// A link to a table shares the ledger of the table itself. None beside a pipe, a device, or a file without a name.
pub(super) fn ledger_beside(file: &Path) -> Option<PathBuf> {
    // A folder may end in a slash, and the ledger lies beside it.
    let file = &file.components().collect::<PathBuf>();
    let has_own_name = !file.is_symlink() && file.file_name().is_some();
    let itself = if has_own_name { Ok(file.to_owned()) } else { file.canonicalize() };
    if file.metadata().is_ok_and(|found| itself.is_err() || !(found.is_file() || found.is_dir())) {
        return None;
    }
    // What is not there, or is a folder, is refused where it is read.
    let mut name = itself.unwrap_or_else(|_| file.to_owned()).into_os_string();
    name.push(".ledger");
    Some(PathBuf::from(name))
}

#[cfg(test)]
mod tests {
    use super::in_shell;

    #[test]
    fn words_are_quoted_where_a_shell_would_read_them_otherwise() {
        assert_eq!(
            ["row:label", "user<=4:label", "it's<=2:label"].map(in_shell),
            ["row:label", "'user<=4:label'", r"'it'\''s<=2:label'"]
        );
    }
}
