//! The schema: everything about a table that is public before a row of it is read.
//!
//! A person writes it as TOML ([`Schema::from_text`]); a model file carries it as JSON (serde). Both ways, and building
//! one in code, end in [`Schema::new`], which is the only constructor and reports every problem at once. The parts are
//! plain data and promise nothing; only a [`Schema`] is checked, and only a [`Schema`] makes the readers of
//! [`record`](crate::record) that turn a row's values into cells.

mod feature_runs;
mod fingerprint;
mod nearest_name;
mod rules;
mod text;
mod toml_spelling;

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::adjacency::{Adjacency, PrivacyUnit, Relation};

pub use nearest_name::nearest_name;
pub use toml_spelling::{number_spelling, toml_key, toml_list, toml_string};

/// What is public about a table: who is protected, how the file is written, the target and the features.
///
/// Immutable, and checked however it was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "SchemaParts", into = "SchemaParts")]
pub struct Schema(SchemaParts);

/// The four parts of a [`Schema`], not yet checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchemaParts {
    /// Who is protected, and the public facts about the table's size.
    pub privacy: Privacy,
    /// How the file is written.
    pub table: TableFormat,
    /// What is predicted.
    pub target: Target,
    /// What it is predicted from, in the order of the encoded columns.
    #[serde(with = "feature_runs")]
    pub features: Vec<Feature>,
}

/// The privacy promise's unit and neighbour relation, and public bounds on the size of the table and of a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Privacy {
    /// Who is protected.
    pub unit: PrivacyUnit,
    /// How neighbouring tables differ.
    pub adjacency: Adjacency,
    /// A public round figure for the number of units, at least 1. `None`: not public, to be bought when needed.
    pub rows: Option<u64>,
    /// Declared maximum of the number of rows, between 1 and [`ROWS_MAX_LIMIT`]; excludes overflow of sums.
    pub rows_max: u64,
    /// Bound on the L2 norm of an encoded row, above 0. `None`: the largest norm the schema allows.
    pub row_norm: Option<f64>,
}

/// How a text table is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableFormat {
    /// What the lines of a text file are.
    #[serde(default, skip_serializing_if = "TextFormat::is_default")]
    pub format: TextFormat,
    /// Whether the first line names the columns.
    pub header: bool,
    /// The file's columns in order. `None`: taken from the header.
    pub columns: Option<Vec<String>>,
    /// How many values that are not 0 a row of a libsvm file may have in features that it lists ([`FeatureKind::may_be_listed`]);
    /// 0: every feature has a place in every row. `None`: [`Schema::nonzeros_max`] decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonzeros_max: Option<u32>,
    /// The ASCII character between two values.
    pub delimiter: u8,
    /// Spellings of a missing value.
    pub missing: Vec<String>,
}

/// What the lines of a text file are. A file that is not text says itself what it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TextFormat {
    /// Values between delimiters.
    #[default]
    Delimited,
    /// A label, then `index:value` for each value that is not 0: the format of libsvm and svmlight. The names of features are
    /// the indices, and the only privacy unit besides the row is [`LIBSVM_GROUP`].
    Libsvm,
}

impl TextFormat {
    const ALL: [Self; 2] = [Self::Delimited, Self::Libsvm];

    fn is_default(&self) -> bool {
        *self == Self::default()
    }

    fn name(self) -> &'static str {
        match self {
            Self::Delimited => "delimited",
            Self::Libsvm => "libsvm",
        }
    }
}

/// Name of the group in a libsvm file, which svmlight writes as `qid:7`.
pub const LIBSVM_GROUP: &str = "qid";

/// The column that is predicted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Its name in the file.
    pub column: String,
    /// Its classes or bounds.
    pub kind: TargetKind,
}

/// What a target can be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum TargetKind {
    /// A class out of at least two; the last of two is the positive one.
    Classes(Vec<Class>),
    /// A number, clamped into `[low, high]`.
    Bounds {
        /// The smallest value, finite.
        low: f64,
        /// The largest value, finite and above `low`.
        high: f64,
    },
}

/// A class of the target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// Its name in models and reports; the first of its spellings.
    pub name: String,
    /// How the file spells it.
    pub spellings: Vec<String>,
}

/// A column that the target is predicted from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Feature {
    /// Its name in the file.
    pub name: String,
    /// Its bounds or categories.
    pub kind: FeatureKind,
}

/// What a feature can be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum FeatureKind {
    /// A number, clamped into `[low, high]`.
    Numeric {
        /// The smallest value, finite.
        low: f64,
        /// The largest value, finite and above `low`.
        high: f64,
        /// What a missing value becomes, within the bounds.
        missing: f64,
        /// Whether a second column `sign(x) ln(1 + |x|)` stands beside the first.
        log: bool,
    },
    /// One of a public list of values. Index 0 is always "other"; the declared categories are `1..=len`.
    Categorical {
        /// The declared values, at least one.
        categories: Vec<String>,
        /// Index that a missing value becomes: 0 for "other", otherwise 1 plus the place in the list.
        missing: usize,
    },
    /// One of so many values that nobody lists them: each stands in the bucket that its hash names
    /// ([`crate::record::hash_bucket`]). Index 0 is a missing value; the buckets are `1..=buckets`.
    Hashed {
        /// Their number, at least 2.
        buckets: usize,
    },
}

/// Everything that is wrong with a schema, in the order of its lines.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct SchemaProblems(pub Vec<SchemaProblem>);

/// One thing that is wrong with a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaProblem {
    /// Line of the schema's text, counted from 1. `None` for a missing part, or when there is no text.
    pub line: Option<usize>,
    /// Where in the schema, for example `features.age.bounds`.
    pub place: String,
    /// What is wrong and what to do.
    pub message: String,
}

/// The most categories of one feature: a stored code has 16 bits, and 0 is "other".
pub const CATEGORIES_MAX: usize = u16::MAX as usize;
/// The smallest bound on a row's norm: below it nothing would be left of a row but rounding.
pub const ROW_NORM_MIN: f64 = 1e-6;
/// The smallest span of bounds, next to their size: closer bounds are one number in 64-bit arithmetic.
pub const SPAN_MIN: f64 = 1e-9;

/// Whether bounds leave room for more than one value.
#[must_use]
pub fn has_span(low: f64, high: f64) -> bool {
    high - low > SPAN_MIN * low.abs().max(high.abs()).max(1e-90)
}

/// Name of the bucket for every value of a categorical feature that is not declared. A list may name it: that changes nothing.
pub const OTHER: &str = "other";
/// The declared maximum number of rows when the schema does not say: `2^31`.
pub const ROWS_MAX_DEFAULT: u64 = 1 << 31;
/// The largest maximum number of rows that can be declared: `2^36 · 2048 · 32767 < 2^63`, so that even a 64-bit engine does
/// not overflow.
pub const ROWS_MAX_LIMIT: u64 = 1 << 36;
/// The most columns that the features may encode to, `2^20`: their names and coefficients take some hundred megabytes.
pub const ENCODED_COLUMNS_MAX: usize = 1 << 20;
/// The most values that are not 0 that a row may be declared to have.
pub const NONZEROS_MAX_LIMIT: u32 = 1 << 16;
/// How many it may have when the schema does not say.
pub const NONZEROS_MAX_DEFAULT: u32 = 512;
/// From so many features that may be listed on, rows of a libsvm file list them when the schema does not say.
pub const LISTED_FROM: usize = 1024;
/// The most classes that a target may have: a stored label is an `i16`, its negative half kept for other uses.
pub const CLASSES_MAX: usize = 1 << 15;
/// The largest magnitude of a bound: the squares of larger numbers are not finite.
pub const BOUND_MAX: f64 = 1e100;
/// Spellings of a missing value when the schema does not say.
pub const MISSING_DEFAULT: [&str; 5] = ["", "?", "NA", "NaN", "null"];
/// A numeric feature gets its log column by default from this span of its bounds on: a thousand whole numbers, be it from 0 or from 1.
pub const LOG_SPAN: f64 = 999.0;

impl Schema {
    /// Checks the parts.
    ///
    /// # Errors
    /// [`SchemaProblems`] lists everything that is wrong, without lines.
    pub fn new(mut parts: SchemaParts) -> Result<Self, SchemaProblems> {
        let problems = parts.problems();
        if !problems.is_empty() {
            return Err(SchemaProblems(problems));
        }
        parts.drop_negative_zeros();
        parts.drop_listed_other();
        Ok(Self(parts))
    }

    /// Who is protected, and the public facts about the table's size.
    #[must_use]
    pub fn privacy(&self) -> &Privacy {
        &self.0.privacy
    }

    /// The same schema with a public number of units where it declares none: at least 1, at most the declared maximum of rows.
    #[must_use]
    pub fn with_rows(&self, rows: u64) -> Self {
        let mut parts = self.0.clone();
        parts.privacy.rows.get_or_insert(rows.clamp(1, self.0.privacy.rows_max));
        Self(parts)
    }

    /// The same target and features in the table of an owner, who says who is protected and how the file is read.
    ///
    /// What decides how rows are encoded stays (`row_norm`, `nonzeros_max`): it changes neither which rows there are nor whose they are.
    ///
    /// # Errors
    /// [`SchemaProblems`] where the owner's word does not go with the features, as where a unit's column is one of them.
    pub fn in_table_of(&self, owner: &Self) -> Result<Self, SchemaProblems> {
        let mut parts = self.0.clone();
        parts.privacy = Privacy { row_norm: parts.privacy.row_norm, ..owner.0.privacy.clone() };
        parts.table = TableFormat { nonzeros_max: parts.table.nonzeros_max, ..owner.0.table.clone() };
        Self::new(parts)
    }

    /// How the file is written.
    #[must_use]
    pub fn table(&self) -> &TableFormat {
        &self.0.table
    }

    /// What is predicted.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.0.target
    }

    /// What it is predicted from, in the order of the encoded columns.
    #[must_use]
    pub fn features(&self) -> &[Feature] {
        &self.0.features
    }

    /// The privacy unit together with the neighbour relation.
    #[must_use]
    pub fn relation(&self) -> Relation {
        Relation { unit: self.0.privacy.unit.clone(), adjacency: self.0.privacy.adjacency }
    }

    /// How many features a row may list instead of having a place for each ([`crate::listed_columns`]): as declared, and without a
    /// declaration [`NONZEROS_MAX_DEFAULT`] where a libsvm file has [`LISTED_FROM`] features or more that may be listed.
    #[must_use]
    pub fn nonzeros_max(&self) -> Option<u32> {
        self.0.nonzeros_max()
    }

    /// Number of columns that the features encode to, "other" buckets and log columns included, intercept not.
    #[must_use]
    pub fn encoded_columns(&self) -> usize {
        self.0.encoded_columns()
    }
}

impl TryFrom<SchemaParts> for Schema {
    type Error = SchemaProblems;
    fn try_from(parts: SchemaParts) -> Result<Self, SchemaProblems> {
        Self::new(parts)
    }
}

impl From<Schema> for SchemaParts {
    fn from(schema: Schema) -> Self {
        schema.0
    }
}

impl TableFormat {
    /// All of it that decides which rows a file has and which of its columns a name means. A header says what its columns are, how
    /// many values a row may list moves no column, and missing values may be listed in any order.
    #[must_use]
    pub fn as_read(&self) -> Self {
        let columns = self.columns.clone().filter(|_| !self.header);
        let mut missing = self.missing.clone();
        missing.sort_unstable();
        missing.dedup();
        Self { nonzeros_max: None, columns, missing, ..self.clone() }
    }

    /// What of it decides where a row of the file begins and ends, whatever its columns mean: line breaks within quotes do not end a row, and
    /// quotes are what follows a delimiter.
    #[must_use]
    pub fn row_breaks(&self) -> (TextFormat, u8) {
        (self.format, self.delimiter)
    }

    fn zero_is_missing(&self) -> bool {
        self.missing.iter().any(|spelling| spelling.parse().is_ok_and(|number: f64| number == 0.0))
    }
}

impl Default for TableFormat {
    fn default() -> Self {
        Self {
            format: TextFormat::default(),
            header: true,
            columns: None,
            nonzeros_max: None,
            delimiter: b',',
            missing: MISSING_DEFAULT.map(str::to_owned).to_vec(),
        }
    }
}

impl FeatureKind {
    /// What a missing number becomes when the schema does not say: the middle of the bounds.
    #[must_use]
    pub fn missing_default(low: f64, high: f64) -> f64 {
        low + (high - low) / 2.0
    }

    /// Whether there is a log column when the schema does not say: from a span of [`LOG_SPAN`] on.
    #[must_use]
    pub fn log_default(low: f64, high: f64) -> bool {
        high - low >= LOG_SPAN
    }

    /// Whether a row may leave the feature out where it is 0: a number with bounds from 0 on and without a log column.
    #[must_use]
    pub fn may_be_listed(&self) -> bool {
        matches!(self, Self::Numeric { low: 0.0, log: false, .. })
    }

    /// Number of columns that the feature encodes to: 1 or 2 for a number, one per category and one for "other", one per
    /// bucket and one for a missing value.
    #[must_use]
    pub fn encoded_columns(&self) -> usize {
        match self {
            Self::Numeric { log, .. } => 1 + usize::from(*log),
            Self::Categorical { categories, .. } => 1 + categories.len(),
            Self::Hashed { buckets } => 1 + buckets,
        }
    }
}

impl fmt::Display for SchemaProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(formatter, "line {line}: ")?;
        }
        if !self.place.is_empty() {
            write!(formatter, "{}: ", self.place)?;
        }
        formatter.write_str(&self.message)
    }
}

impl fmt::Display for SchemaProblems {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.0.len() == 1 { "" } else { "s" };
        write!(formatter, "the schema has {} problem{plural}:", self.0.len())?;
        self.0.iter().try_for_each(|problem| write!(formatter, "\n  {problem}"))
    }
}

impl SchemaParts {
    fn unit_column(&self) -> Option<&str> {
        match &self.privacy.unit {
            PrivacyUnit::Row => None,
            PrivacyUnit::Column { column, .. } => Some(column),
        }
    }

    fn nonzeros_max(&self) -> Option<u32> {
        let may_be_listed = || self.features.iter().filter(|feature| feature.kind.may_be_listed());
        let by_default = || match self.table.format {
            TextFormat::Libsvm if self.table.zero_is_missing() => 0,
            TextFormat::Libsvm if may_be_listed().nth(LISTED_FROM - 1).is_some() => NONZEROS_MAX_DEFAULT,
            TextFormat::Libsvm | TextFormat::Delimited => 0,
        };
        Some(self.table.nonzeros_max.unwrap_or_else(by_default)).filter(|most| *most > 0)
    }

    fn encoded_columns(&self) -> usize {
        self.features.iter().map(|feature| feature.kind.encoded_columns()).sum()
    }

    /// Equal schemas must have equal fingerprints, and `-0.0 == 0.0`.
    fn drop_negative_zeros(&mut self) {
        for feature in &mut self.features {
            if let FeatureKind::Numeric { low, high, missing, .. } = &mut feature.kind {
                (*low, *high, *missing) = (*low + 0.0, *high + 0.0, *missing + 0.0);
            }
        }
        if let TargetKind::Bounds { low, high } = &mut self.target.kind {
            (*low, *high) = (*low + 0.0, *high + 0.0);
        }
    }

    /// A listed category spelt "other" is what it says, the rest, which every feature has.
    fn drop_listed_other(&mut self) {
        for feature in &mut self.features {
            if let FeatureKind::Categorical { categories, missing } = &mut feature.kind
                && let Some(listed) = categories.iter().position(|category| category == OTHER)
            {
                categories.remove(listed);
                *missing = match (*missing).cmp(&(listed + 1)) {
                    Ordering::Less => *missing,
                    Ordering::Equal => 0,
                    Ordering::Greater => *missing - 1,
                };
            }
        }
    }
}

#[cfg(test)]
mod tests;
