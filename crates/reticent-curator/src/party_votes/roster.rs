//! The parties that vote: their names, fixed before any vote is read.

use std::collections::BTreeSet;

use thiserror::Error;

/// The names of all parties, each once: public, and fixed before any vote is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roster(Vec<String>);

/// A roster that cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RosterError {
    /// Not a name that a file can have.
    #[error(
        "line {line} of the list of parties is not a name: use 1 to 64 letters, digits, `.`, `_` or `-`, and no `.` in front"
    )]
    Name {
        /// Line, counted from 1.
        line: usize,
    },
    /// The same name twice.
    #[error("line {line} of the list of parties repeats `{party}`: every party votes once")]
    Duplicate {
        /// Line, counted from 1.
        line: usize,
        /// The name.
        party: String,
    },
    /// No names.
    #[error("the list of parties is empty: write one name a line")]
    Empty,
}

impl Roster {
    /// Reads one name a line; blank lines and lines that begin with `#` are skipped.
    ///
    /// # Errors
    /// [`RosterError`] when a name cannot be used or comes twice.
    pub fn parse(text: &str) -> Result<Self, RosterError> {
        let mut seen = BTreeSet::new();
        let mut parties = Vec::new();
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (line, name) in text.lines().enumerate() {
            let (line, name) = (line + 1, name.trim());
            if name.is_empty() || name.starts_with('#') {
                continue;
            }
            if !is_party_name(name) {
                return Err(RosterError::Name { line });
            }
            // Files of the two would be one file where names ignore capitals.
            if !seen.insert(name.to_ascii_lowercase()) {
                return Err(RosterError::Duplicate { line, party: name.to_owned() });
            }
            parties.push(name.to_owned());
        }
        if parties.is_empty() { Err(RosterError::Empty) } else { Ok(Self(parties)) }
    }

    /// The names, in the order of the list.
    #[must_use]
    pub fn parties(&self) -> &[String] {
        &self.0
    }
}

/// Whether a party can have this name: it becomes the name of a file.
#[must_use]
pub fn is_party_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=64).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(allowed)
}
