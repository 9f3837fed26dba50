//! Who is protected, and against what: the privacy unit and the neighbour relation.
//!
//! Two tables are *neighbours* when they differ in one unit in the way that the [`Adjacency`] says. Every `match` on an
//! adjacency names all cases, so that a new one cannot silently inherit the sensitivity of another.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How two neighbouring tables differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Adjacency {
    /// One unit is present in one table and absent in the other. The number of rows is private.
    AddRemove,
    /// One unit's rows are replaced by others. The number of units is public.
    Replace,
    /// The labels of one unit change. Features, and so the number of rows, are public to the fitter.
    Label,
    /// Everything that one party holds is replaced. The number of parties is public.
    Party,
}

impl Adjacency {
    /// All relations, in the order in which documents list them.
    pub const ALL: [Self; 4] = [Self::AddRemove, Self::Replace, Self::Label, Self::Party];

    /// The spelling used in schemas, ledgers, certificates and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AddRemove => "add-remove",
            Self::Replace => "replace",
            Self::Label => "label",
            Self::Party => "party",
        }
    }
}

impl fmt::Display for Adjacency {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Most rows that a unit may be allowed: sums of its rows keep to their bits.
pub const UNIT_ROWS_MAX: u32 = 1 << 20;

/// What one unit of protection is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrivacyUnit {
    /// Each row is a unit of its own.
    Row,
    /// All rows with the same value in a column are one unit; at most `rows_max` of them, the first in the table, count.
    Column {
        /// Name of the column that identifies the unit, for example a patient number.
        column: String,
        /// Cap on the rows that one unit contributes, at least 1.
        rows_max: u32,
    },
}

impl PrivacyUnit {
    /// The most rows that one unit contributes to a sum.
    #[must_use]
    pub const fn rows_max(&self) -> u32 {
        match self {
            Self::Row => 1,
            Self::Column { rows_max, .. } => *rows_max,
        }
    }
}

impl fmt::Display for PrivacyUnit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Row => formatter.write_str("row"),
            Self::Column { column, rows_max } => write!(formatter, "{column}<={rows_max}"),
        }
    }
}

/// A promise that can be kept or broken: a privacy unit together with a neighbour relation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Relation {
    /// Who is protected.
    pub unit: PrivacyUnit,
    /// Against which difference.
    pub adjacency: Adjacency,
}

impl Relation {
    /// Whether the number of rows is public: each row is a unit, and neighbouring tables have as many.
    #[must_use]
    pub const fn has_public_row_number(&self) -> bool {
        match (&self.unit, self.adjacency) {
            (PrivacyUnit::Row, Adjacency::Replace | Adjacency::Label) => true,
            (PrivacyUnit::Row, Adjacency::AddRemove | Adjacency::Party) | (PrivacyUnit::Column { .. }, _) => false,
        }
    }

    /// Whether the number of rows of a table that is read for this claim is public under another promise, too. Under label adjacency
    /// rows without a usable label are left out, and which those are is public under no other.
    #[must_use]
    pub fn reads_public_row_number_of(&self, promised: &Self) -> bool {
        let leaves_rows_out = self.adjacency == Adjacency::Label && promised.adjacency != Adjacency::Label;
        self.has_public_row_number() && promised.has_public_row_number() && !leaves_rows_out
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.unit, self.adjacency)
    }
}

/// A relation that could not be read, with the spelling that can be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a relation: write UNIT:ADJACENCY, for example row:add-remove or patient<=4:replace")]
pub struct RelationSyntax(String);

impl std::str::FromStr for Relation {
    type Err = RelationSyntax;

    /// Reads the spelling that `Display` writes.
    fn from_str(text: &str) -> Result<Self, RelationSyntax> {
        let refused = || RelationSyntax(text.to_owned());
        let (unit, adjacency) = text.rsplit_once(':').unwrap_or(("row", text));
        let adjacency = Adjacency::ALL.into_iter().find(|known| known.name() == adjacency).ok_or_else(refused)?;
        let unit = if unit == "row" {
            PrivacyUnit::Row
        } else {
            let (column, rows_max) = unit.rsplit_once("<=").ok_or_else(refused)?;
            let rows_max: u32 = rows_max.parse().map_err(|_| refused())?;
            if column.is_empty() || rows_max == 0 {
                return Err(refused());
            }
            PrivacyUnit::Column { column: column.to_owned(), rows_max }
        };
        Ok(Self { unit, adjacency })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relation_reads_back_as_written() {
        for text in ["row:add-remove", "row:replace", "patient<=4:add-remove", "a:b<=12:label", "row:party"] {
            assert_eq!(text.parse::<Relation>().expect("legal").to_string(), text);
        }
        assert_eq!("replace".parse::<Relation>().expect("unit defaults to row").to_string(), "row:replace");
        for text in ["", "row", "row:", "patient:replace", "patient<=0:replace", "<=3:replace", "row:Replace"] {
            assert!(text.parse::<Relation>().is_err(), "{text:?}");
        }
    }
}
