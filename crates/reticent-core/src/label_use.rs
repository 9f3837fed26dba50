//! Which column a request takes as the label, and which labels of it are usable.
//!
//! Under label adjacency all of a row but its label is public, and so is which rows have a usable label. That holds for *one* column read
//! in *one* way: where a second request takes another column, the first label is a public feature there; where it takes another part of the
//! classes, the rows that are usable in one and not in the other are told apart by their labels. So all requests to one ledger that
//! promises label adjacency have the same, and read the table in one way ([`Account::check_table`](crate::ledger::Account::check_table)).

use serde::{Deserialize, Serialize};

use crate::adjacency::Adjacency;
use crate::schema::{Schema, TableFormat, TargetKind};

/// The labels of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelUse {
    /// Column of the labels.
    pub column: String,
    /// Its place in a table without a header, where the schema names the columns: another list could give its name to another column.
    /// Entries that were written before requests kept their table have it here alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<usize>,
    /// How a usable label is told, where all but labels is public; none in entries that were written before questions about labels alone
    /// kept it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usable: Option<UsableLabels>,
    /// Whether the request makes public which rows have a usable label.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub is_told: bool,
}

fn yes() -> bool {
    true
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "what serde calls it with")]
fn is_yes(yes: &bool) -> bool {
    *yes
}

/// What decides whether the label of a row is usable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsableLabels {
    /// All spellings of the declared classes, sorted; `None` for a number.
    pub spellings: Option<Vec<String>>,
    /// How the table is read, in entries that were written before requests kept it themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<TableFormat>,
}

impl LabelUse {
    /// Of requests about the rows of a schema.
    #[must_use]
    pub fn of(schema: &Schema) -> Self {
        let labels = Self::of_labels_alone(schema);
        let usable = labels.usable.filter(|_| schema.privacy().adjacency == Adjacency::Label);
        Self { usable, is_told: true, ..labels }
    }

    /// Of requests about labels alone, which tell nobody the rows that have one.
    #[must_use]
    pub fn of_labels_alone(schema: &Schema) -> Self {
        let spellings = match &schema.target().kind {
            TargetKind::Classes(classes) => {
                let mut all: Vec<_> = classes.iter().flat_map(|class| class.spellings.clone()).collect();
                all.sort();
                Some(all)
            }
            TargetKind::Bounds { .. } => None,
        };
        let table = schema.table();
        let column = schema.target().column.clone();
        let place_in = |columns: &Vec<String>| columns.iter().position(|name| name == column.trim_ascii());
        let place = table.columns.as_ref().filter(|_| !table.header).and_then(place_in);
        Self { column, place, usable: Some(UsableLabels { spellings, table: None }), is_told: false }
    }

    /// Whether two requests take the same labels as far as what is public of them goes. One that tells which rows have a usable label tells
    /// of other classes' labels, too, which a question about labels alone may have been about.
    #[must_use]
    pub fn agrees_with(&self, other: &Self) -> bool {
        let is_one_column = (&self.column, self.place) == (&other.column, other.place);
        let usable = self.usable.as_ref().zip(other.usable.as_ref()).filter(|_| self.is_told || other.is_told);
        is_one_column && usable.is_none_or(|(own, other)| own.spellings == other.spellings)
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
            ("label", "", "column = \"z\"\nclasses = [0, 1]", false),
            // Where it is private which rows have a usable label, only the column counts.
            ("replace", "", "column = \"y\"\nclasses = [0, 2]", true),
            ("replace", "", "column = \"z\"\nclasses = [0, 1]", false),
        ] {
            let other = labels(adjacency, table, target);
            assert_eq!(first.agrees_with(&other), agrees, "{adjacency} {table} {target}");
            assert_eq!(other.agrees_with(&first), agrees, "{adjacency} {table} {target}");
        }
        // The same name, given to another column of the same file.
        let without_header = |adjacency: &str, columns: &str| {
            labels(adjacency, &format!("header = false\ncolumns = {columns}"), "column = \"y\"\nclasses = [0, 1]")
        };
        for adjacency in ["label", "replace"] {
            let first = without_header(adjacency, "[\"x\", \"y\"]");
            assert!(first.agrees_with(&without_header("replace", "[\"x\", \"y\", \"z\"]")));
            for swapped in ["label", "replace"].map(|adjacency| without_header(adjacency, "[\"y\", \"x\"]")) {
                assert!(!first.agrees_with(&swapped) && !swapped.agrees_with(&first));
            }
            assert!(!first.agrees_with(&labels(adjacency, "", "column = \"y\"\nclasses = [0, 1]")));
        }
        // A question about labels alone tells nobody which rows have one, but must not be followed or preceded by a request that does, for
        // other classes.
        let alone = |target: &str| {
            let text = format!("[privacy]\nunit = \"row\"\nadjacency = \"label\"\n[target]\n{target}\n[features]\n");
            LabelUse::of_labels_alone(&Schema::from_text(&text).unwrap_or_else(|problems| panic!("{problems}")))
        };
        let asked = alone("column = \"y\"\nclasses = [0, 1]");
        for (other, agrees) in [
            (alone("column = \"y\"\nclasses = [0, 2]"), true),
            (alone("column = \"z\"\nclasses = [0, 1]"), false),
            (labels("label", "", "column = \"y\"\nclasses = [1, 0]"), true),
            (labels("label", "", "column = \"y\"\nclasses = [1, 7]"), false),
            (labels("replace", "", "column = \"y\"\nclasses = [1, 7]"), true),
        ] {
            assert_eq!((asked.agrees_with(&other), other.agrees_with(&asked)), (agrees, agrees), "{other:?}");
        }
        let written = serde_json::to_string(&asked).expect("texts");
        assert_eq!(serde_json::from_str::<LabelUse>(&written).expect("as written"), asked);
        let early: LabelUse = serde_json::from_str("{\"column\":\"y\"}").expect("of an earlier release");
        assert!(early.usable.is_none() && early.is_told && early.agrees_with(&asked));
        let number = |low: i32| labels("label", "", &format!("column = \"y\"\nbounds = [{low}, 9]"));
        assert!(number(0).agrees_with(&number(3)), "a number out of bounds is usable, too");
    }
}
