//! Which column a request takes as the label, and which labels of it are usable.
//!
//! Under label adjacency all of a row but its label is public, and so is which rows have a usable label. That holds for *one* column read
//! in *one* way: where a second request takes another column, the first label is a public feature there; where it takes another part of the
//! classes, the rows that are usable in one and not in the other are told apart by their labels. So all requests to one ledger that
//! promises label adjacency have the same.

use serde::{Deserialize, Serialize};

use crate::adjacency::Adjacency;
use crate::schema::{Schema, TableFormat, TargetKind};

/// The labels of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelUse {
    /// Column of the labels.
    pub column: String,
    /// How a usable label is told, where the request makes public which rows have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usable: Option<UsableLabels>,
}

/// What decides whether the label of a row is usable, and what a row is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsableLabels {
    /// All spellings of the declared classes, sorted; `None` for a number.
    pub spellings: Option<Vec<String>>,
    /// How the table is read.
    pub table: TableFormat,
}

impl LabelUse {
    /// Of requests about the rows of a schema.
    #[must_use]
    pub fn of(schema: &Schema) -> Self {
        let usable = || {
            let spellings = match &schema.target().kind {
                TargetKind::Classes(classes) => {
                    let mut all: Vec<_> = classes.iter().flat_map(|class| class.spellings.clone()).collect();
                    all.sort();
                    Some(all)
                }
                TargetKind::Bounds { .. } => None,
            };
            // How many values a row may list says nothing about labels.
            let table = TableFormat { nonzeros_max: None, ..schema.table().clone() };
            UsableLabels { spellings, table }
        };
        let is_public = schema.privacy().adjacency == Adjacency::Label;
        Self { column: schema.target().column.clone(), usable: is_public.then(usable) }
    }

    /// Of requests about labels alone, which tell nobody the rows that have one.
    #[must_use]
    pub fn of_labels_alone(schema: &Schema) -> Self {
        Self { column: schema.target().column.clone(), usable: None }
    }

    /// Whether two requests take the same labels as far as what is public of them goes.
    #[must_use]
    pub fn agrees_with(&self, other: &Self) -> bool {
        let usable = self.usable.as_ref().zip(other.usable.as_ref());
        self.column == other.column && usable.is_none_or(|(own, other)| own == other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(adjacency: &str, table: &str, target: &str) -> LabelUse {
        let text = format!(
            "[privacy]\nunit = \"row\"\nadjacency = \"{adjacency}\"\n[table]\n{table}\n[target]\n{target}\n[features]\nx = {{ bounds = [0, 1] }}\n"
        );
        LabelUse::of(&Schema::from_text(&text).unwrap_or_else(|problems| panic!("{problems}")))
    }

    #[test]
    fn labels_agree_as_long_as_nothing_public_of_them_differs() {
        let first = labels("label", "", "column = \"y\"\nclasses = [0, 1]");
        for (adjacency, table, target, agrees) in [
            ("label", "", "column = \"y\"\nclasses = [1, 0]", true),
            ("label", "", "column = \"y\"\nclasses = [0, 2]", false),
            ("label", "", "column = \"y\"\nclasses = [0, 1, 2]", false),
            ("label", "", "column = \"y\"\nbounds = [0, 1]", false),
            ("label", "missing = [\"0\"]", "column = \"y\"\nclasses = [0, 1]", false),
            ("label", "delimiter = \";\"", "column = \"y\"\nclasses = [0, 1]", false),
            ("label", "", "column = \"z\"\nclasses = [0, 1]", false),
            // Where it is private which rows have a usable label, only the column counts.
            ("replace", "", "column = \"y\"\nclasses = [0, 2]", true),
            ("replace", "", "column = \"z\"\nclasses = [0, 1]", false),
        ] {
            let other = labels(adjacency, table, target);
            assert_eq!(first.agrees_with(&other), agrees, "{adjacency} {table} {target}");
            assert_eq!(other.agrees_with(&first), agrees, "{adjacency} {table} {target}");
        }
        let number = |low: i32| labels("label", "", &format!("column = \"y\"\nbounds = [{low}, 9]"));
        assert!(number(0).agrees_with(&number(3)), "a number out of bounds is usable, too");
    }
}
