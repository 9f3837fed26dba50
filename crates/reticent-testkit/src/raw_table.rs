//! Pairs of neighbouring tables as text, hostile rows among them: what a file may hold, before any reader has seen it.

use proptest::prelude::*;
use reticent_core::adjacency::{Adjacency, PrivacyUnit, Relation};
use reticent_core::schema::{LIBSVM_GROUP, Schema, TextFormat};

/// Column of the privacy unit, where the unit is not the row.
const UNIT: &str = "who";
/// Cap on the rows of one unit, where the unit is not the row.
const UNIT_ROWS: u32 = 3;
/// Key of the unit that the tables of a pair differ in; no other row has it.
const CHANGED: &str = "u9";

/// What is predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Classes `no` and `yes`.
    TwoClasses,
    /// Classes `a`, `b` and `c`.
    ThreeClasses,
    /// A number in `[-5, 20]`.
    Number,
}

impl Target {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::TwoClasses, Self::ThreeClasses, Self::Number];

    const fn section(self) -> &'static str {
        match self {
            Self::TwoClasses => "classes = [\"no\", \"yes\"]",
            Self::ThreeClasses => "classes = [\"a\", \"b\", \"c\"]",
            Self::Number => "bounds = [-5, 20]",
        }
    }

    /// Labels as a file may spell them. The first are usable and come most often; the last class is rare.
    fn labels(self) -> BoxedStrategy<String> {
        let (usual, rare): (&[&str], &[&str]) = match self {
            Self::TwoClasses => (&["no", "yes"], &["maybe", "", "NaN"]),
            Self::ThreeClasses => (&["a", "b"], &["c", "d", "", "inf"]),
            Self::Number => (&["-5", "20", "7.25"], &["1e300", "-inf", "NaN", "", "x"]),
        };
        texts(usual, rare)
    }

    /// Whether one of these labels can be used.
    fn is_usable(self, label: &str) -> bool {
        match self {
            Self::TwoClasses => ["no", "yes"].contains(&label),
            Self::ThreeClasses => ["a", "b", "c"].contains(&label),
            Self::Number => !["NaN", "", "x"].contains(&label),
        }
    }
}

/// Row or column as the unit of protection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Each row is a unit.
    Row,
    /// Rows with one key are a unit.
    Column,
}

impl Unit {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Row, Self::Column];
}

/// A schema of two numbers and a category, for the tables of this module: as delimited text.
///
/// # Panics
/// Never: the text is legal.
#[must_use]
pub fn schema(target: Target, unit: Unit, adjacency: Adjacency) -> Schema {
    let features = "x0 = { bounds = [0, 10] }\nx1 = { bounds = [-1, 1], missing = 1 }\nk = ";
    of_sections(target, (unit, UNIT), adjacency, "", features)
}

/// The same as libsvm text, with rows that list one of the two numbers.
///
/// # Panics
/// Never: the text is legal.
#[must_use]
pub fn listed_schema(target: Target, unit: Unit, adjacency: Adjacency) -> Schema {
    let table = "[table]\nformat = \"libsvm\"\nnonzeros_max = 1\n";
    let features = "1 = { bounds = [0, 10] }\n2 = { bounds = [0, 1], missing = 1 }\n3 = ";
    of_sections(target, (unit, LIBSVM_GROUP), adjacency, table, features)
}

fn of_sections(target: Target, unit: (Unit, &str), adjacency: Adjacency, table: &str, features: &str) -> Schema {
    let unit = match unit {
        (Unit::Row, _) => "\"row\"".to_owned(),
        (Unit::Column, column) => format!("{{ column = \"{column}\", rows_max = {UNIT_ROWS} }}"),
    };
    let text = format!(
        "[privacy]\nunit = {unit}\nadjacency = \"{adjacency}\"\nrows = 40\nrows_max = 10000\n\
         {table}[target]\ncolumn = \"y\"\n{}\n[features]\n{features}{{ categories = [\"a\", \"b\", \"c\"] }}\n",
        target.section()
    );
    Schema::from_text(&text).expect("the generated schema is legal")
}

/// A line of a table, and how often it stands there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawRow {
    unit: String,
    label: String,
    features: [String; 3],
    /// Fields that are there: a line may be cut short.
    fields: usize,
    copies: usize,
}

/// Two tables that differ in one unit, as text with a header.
#[derive(Clone, Debug)]
pub struct RawPair {
    /// A table.
    pub left: Vec<RawRow>,
    /// Its neighbour.
    pub right: Vec<RawRow>,
}

/// The text of a table.
#[must_use]
pub fn text(rows: &[RawRow], format: TextFormat) -> String {
    let mut text = match format {
        TextFormat::Delimited => format!("{UNIT},y,x0,x1,k\n"),
        TextFormat::Libsvm => String::new(),
    };
    for row in rows {
        let [x0, x1, k] = &row.features;
        let line = match format {
            TextFormat::Delimited => [&row.unit, &row.label, x0, x1, k].map(String::as_str)[..row.fields].join(","),
            TextFormat::Libsvm => {
                let (label, group) = (&row.label, format!("{LIBSVM_GROUP}:{}", row.unit));
                let words = [group, label.clone(), format!("1:{x0}"), format!("2:{x1}"), format!("3:{k}")];
                let [group, label, features @ ..] = &words;
                let features = &features[..row.fields.saturating_sub(2)];
                [&[label.clone(), group.clone()], features].concat().join(" ")
            }
        };
        (0..row.copies).for_each(|_| {
            text.push_str(&line);
            text.push('\n');
        });
    }
    text
}

/// Pairs of neighbours under a relation of [`schema`]: empty tables, one row, rows at the bounds and beyond, missing and
/// unreadable values, unknown categories, rare classes, lines cut short, rows that stand there many times.
///
/// # Panics
/// Under party adjacency: a party holds votes, not rows.
pub fn pairs(target: Target, relation: &Relation) -> BoxedStrategy<RawPair> {
    let by_row = relation.unit == PrivacyUnit::Row;
    let others = prop::collection::vec(row(target, &["u0", "u1", "u2", " u1 "], &["", "u3"]), 0..12);
    // Rows of the unit that differs: more than count, where the unit is a column.
    let most = if by_row { 1 } else { UNIT_ROWS as usize + 2 };
    let own =
        move || prop::collection::vec((row(target, &[CHANGED], &[" u9"]), any::<prop::sample::Index>()), 1..=most);
    let adjacency = relation.adjacency;
    let relabelled = prop::collection::vec(target.labels(), most);
    (others, own(), own(), relabelled, any::<bool>())
        .prop_map(move |(others, one, other, labels, swap)| {
            let with = |own: &[(RawRow, prop::sample::Index)]| {
                let mut rows = others.clone();
                for (row, place) in own {
                    let copies = if by_row { 1 } else { row.copies.min(2) };
                    rows.insert(place.index(rows.len() + 1), RawRow { copies, ..row.clone() });
                }
                rows
            };
            let left = with(&one);
            let right = match adjacency {
                Adjacency::AddRemove => others.clone(),
                Adjacency::Replace => with(&other),
                Adjacency::Label => {
                    // Which rows have a usable label is public.
                    let relabel = |((row, place), label): (&(RawRow, prop::sample::Index), &String)| {
                        let is_changed = target.is_usable(&row.label) == target.is_usable(label);
                        let label = if is_changed { label } else { &row.label };
                        (RawRow { label: label.clone(), ..row.clone() }, *place)
                    };
                    with(&one.iter().zip(&labels).map(relabel).collect::<Vec<_>>())
                }
                Adjacency::Party => panic!("a party holds votes, not rows"),
            };
            if swap { RawPair { left: right, right: left } } else { RawPair { left, right } }
        })
        .boxed()
}

fn row(target: Target, units: &[&str], rare_units: &[&str]) -> impl Strategy<Value = RawRow> + use<> {
    let number = |low: f64, high: f64| {
        let bounds = [low, high].map(|bound| bound.to_string());
        prop_oneof![
            4 => prop::sample::select(bounds.to_vec()),
            3 => (0..=8u32).prop_map(move |eighth| (low + (high - low) * f64::from(eighth) / 8.0).to_string()),
            2 => texts(&["NaN", "inf", "-inf", ""], &["1e999", "-1e308", "0x10", "abc", "1e-320"]),
        ]
    };
    let features = [number(0.0, 10.0).boxed(), number(-1.0, 1.0).boxed(), texts(&["a", "b", "c"], &["", "z", "NaN"])];
    // Fields cut off are features, and then the label.
    let fields = prop_oneof![12 => Just(5usize), 1 => 1..5usize];
    // Enough copies to pass a kernel's flush now and then.
    let copies = prop_oneof![8 => Just(1usize), 2 => 2..5usize, 1 => 30..70usize];
    (texts(units, rare_units), target.labels(), features, fields, copies)
        .prop_map(|(unit, label, features, fields, copies)| RawRow { unit, label, features, fields, copies })
}

/// One of the usual texts, or now and then one of the rare ones; shrinks toward the first.
fn texts(usual: &[&str], rare: &[&str]) -> BoxedStrategy<String> {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    prop_oneof![5 => prop::sample::select(owned(usual)), 1 => prop::sample::select(owned(rare))].boxed()
}
