//! The schema: everything about a table that is public before a row of it is read.
//!
//! A person writes it as TOML ([`Schema::from_text`]); a model file carries it as JSON (serde). Both ways, and building
//! one in code, end in [`Schema::new`], which is the only constructor and reports every problem at once. The parts are
//! plain data and promise nothing; only a [`Schema`] is checked, and only a [`Schema`] makes the readers of
//! [`record`](crate::record) that turn a row's values into cells.

mod feature_runs;
mod text;

use std::collections::{HashMap, HashSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::adjacency::{Adjacency, PrivacyUnit, Relation};

pub(crate) use text::number_spelling;
pub use text::{toml_key, toml_list, toml_string};

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

/// Name of the bucket for every value of a categorical feature that is not declared.
pub const OTHER: &str = "other";
/// The declared maximum number of rows when the schema does not say: `2^31`.
pub const ROWS_MAX_DEFAULT: u64 = 1 << 31;
/// The largest maximum number of rows that can be declared: `2^36`.
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
/// A numeric feature gets its log column by default from this span of its bounds on.
pub const LOG_SPAN: f64 = 1000.0;

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
        Ok(Self(parts))
    }

    /// Who is protected, and the public facts about the table's size.
    #[must_use]
    pub fn privacy(&self) -> &Privacy {
        &self.0.privacy
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

    /// Names of the columns that are read from the file: features in order, target, then the unit's column if any.
    #[must_use]
    pub fn columns_read(&self) -> Vec<&str> {
        let features = self.0.features.iter().map(|feature| feature.name.as_str());
        features.chain([self.0.target.column.as_str()]).chain(self.0.unit_column()).collect()
    }

    /// Number of columns that the features encode to, "other" buckets and log columns included, intercept not.
    #[must_use]
    pub fn encoded_columns(&self) -> usize {
        self.0.encoded_columns()
    }

    /// SHA-256 of a canonical serialisation, as 64 lower-case hexadecimal digits.
    ///
    /// Equal schemas have equal fingerprints, however their texts were written. The serialisation starts with its
    /// version, and every list and text with its length, so that different schemas serialise differently.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let mut canonical = Canonical(Sha256::new());
        canonical.text("reticent schema 1");
        canonical.privacy(&self.0.privacy);
        canonical.table(&self.0.table);
        canonical.target(&self.0.target);
        canonical.count(self.0.features.len());
        for feature in &self.0.features {
            canonical.feature(feature);
        }
        canonical.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
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
    /// Everything that is wrong, each with its place; the lines are for whoever has the text.
    fn problems(&self) -> Vec<SchemaProblem> {
        let mut problems = Problems(Vec::new());
        problems.check_privacy(&self.privacy);
        problems.check_table(&self.table);
        problems.check_target(&self.target);
        for feature in &self.features {
            problems.check_feature(feature);
        }
        problems.check_columns_against_each_other(self);
        problems.0
    }

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
}

/// The rules. Each check names the place that the schema's text uses, so that the text's reader finds the line.
struct Problems(Vec<SchemaProblem>);

impl Problems {
    fn add(&mut self, place: impl Into<String>, message: impl Into<String>) {
        self.0.push(SchemaProblem { line: None, place: place.into(), message: message.into() });
    }

    fn check_privacy(&mut self, privacy: &Privacy) {
        if let PrivacyUnit::Column { column, rows_max } = &privacy.unit {
            self.check_column_name("privacy.unit.column", column);
            if *rows_max == 0 {
                self.add("privacy.unit.rows_max", "is 0; a unit must be allowed at least 1 row");
            } else if u64::from(*rows_max) > privacy.rows_max {
                let message = format!("is above privacy.rows_max, {}; lower it", privacy.rows_max);
                self.add("privacy.unit.rows_max", message);
            }
        }
        if !(1..=ROWS_MAX_LIMIT).contains(&privacy.rows_max) {
            let message = format!("is {}; write a number between 1 and {ROWS_MAX_LIMIT} (2^36)", privacy.rows_max);
            self.add("privacy.rows_max", message);
        }
        if let Some(rows) = privacy.rows {
            if rows == 0 {
                self.add("privacy.rows", "is 0; write a public round figure of at least 1, or leave it out");
            } else if rows > privacy.rows_max {
                let message =
                    format!("{rows} is above privacy.rows_max, {}; lower it or raise rows_max", privacy.rows_max);
                self.add("privacy.rows", message);
            }
        }
        if let Some(norm) = privacy.row_norm
            && !(ROW_NORM_MIN..=BOUND_MAX).contains(&norm)
        {
            self.add(
                "privacy.row_norm",
                format!("is {norm}; write a number from {ROW_NORM_MIN:e} to {BOUND_MAX:e}, or leave it out"),
            );
        }
    }

    fn check_table(&mut self, table: &TableFormat) {
        if table.format == TextFormat::Libsvm {
            let usual = TableFormat::default();
            for (key, is_usual) in [
                ("header", table.header == usual.header),
                ("columns", table.columns.is_none()),
                ("delimiter", table.delimiter == usual.delimiter),
            ] {
                if !is_usual {
                    self.add(format!("table.{key}"), "goes with delimited text; a libsvm file has none: delete it");
                }
            }
        } else if table.nonzeros_max.is_some() {
            self.add(
                "table.nonzeros_max",
                "goes with format = \"libsvm\"; a row of delimited text has every value: delete it",
            );
        }
        if let Some(most) = table.nonzeros_max
            && most > NONZEROS_MAX_LIMIT
        {
            let message = format!("is {most}; write a number up to {NONZEROS_MAX_LIMIT}");
            self.add("table.nonzeros_max", message);
        }
        if !table.delimiter.is_ascii()
            || table.delimiter.is_ascii_alphanumeric()
            || b"\"\r\n\0.+-".contains(&table.delimiter)
        {
            let message = "cannot be told from a value; use a character such as \",\", \";\", \"|\" or \"\\t\"";
            self.add("table.delimiter", message);
        }
        match &table.columns {
            None if !table.header => {
                let message = "is missing; a file without a header needs its columns named here, in order: \
                               columns = [\"first\", \"second\"]";
                self.add("table.columns", message);
            }
            None => {}
            Some(columns) => {
                if columns.is_empty() {
                    self.add("table.columns", "is empty; name every column of the file, in order");
                }
                self.check_distinct("table.columns", columns.iter(), "column");
            }
        }
        for (index, spelling) in table.missing.iter().enumerate() {
            self.check_trimmed(&format!("table.missing[{index}]"), spelling);
        }
    }

    fn check_target(&mut self, target: &Target) {
        self.check_column_name("target.column", &target.column);
        match &target.kind {
            TargetKind::Bounds { low, high } => {
                self.check_bounds("target.bounds", *low, *high);
            }
            TargetKind::Classes(classes) => {
                if classes.len() < 2 {
                    let message = format!(
                        "has {}; a target needs at least two, for example classes = [\"no\", \"yes\"]",
                        counted(classes.len(), "class", "classes")
                    );
                    self.add("target.classes", message);
                }
                if classes.len() > CLASSES_MAX {
                    let message = format!("has {} classes; at most {CLASSES_MAX} are possible", classes.len());
                    self.add("target.classes", message);
                }
                for (index, class) in classes.iter().enumerate() {
                    let place = format!("target.classes[{index}]");
                    if class.spellings.first() != Some(&class.name) {
                        self.add(&place, "has no spelling; the first spelling of a class is its name");
                    } else if class.name.is_empty() {
                        self.add(&place, "has an empty name; put a name first: [\"unknown\", \"\"]");
                    }
                    for spelling in &class.spellings {
                        self.check_trimmed(&place, spelling);
                    }
                }
                let spellings = classes.iter().flat_map(|class| &class.spellings);
                self.check_distinct("target.classes", spellings, "class spelling");
            }
        }
    }

    fn check_feature(&mut self, feature: &Feature) {
        let place = feature_place(&feature.name);
        self.check_column_name(&place, &feature.name);
        match &feature.kind {
            FeatureKind::Numeric { low, high, missing, log: _ } => {
                let bounded = self.check_bounds(&format!("{place}.bounds"), *low, *high);
                if bounded && !(low..=high).contains(&missing) {
                    let message =
                        format!("{missing} is outside the bounds [{low}, {high}]; choose a value within them");
                    self.add(format!("{place}.missing"), message);
                }
            }
            FeatureKind::Categorical { categories, missing } => {
                let list = format!("{place}.categories");
                if categories.is_empty() {
                    self.add(&list, "is empty; list the values that get a column of their own");
                }
                for (index, category) in categories.iter().enumerate() {
                    let place = format!("{list}[{index}]");
                    self.check_trimmed(&place, category);
                    if category == OTHER {
                        let message = "\"other\" is reserved for every value that is not listed; leave it out: a value \
                                       spelt \"other\" is counted there anyway";
                        self.add(place, message);
                    }
                }
                self.check_distinct(&list, categories.iter(), "category");
                if categories.len() > CATEGORIES_MAX {
                    let message = format!("has {} categories; at most {CATEGORIES_MAX} are possible", categories.len());
                    self.add(&list, message);
                }
                if *missing > categories.len() {
                    let message = format!("{missing} is past the last category, {}", categories.len());
                    self.add(format!("{place}.missing"), message);
                }
            }
            FeatureKind::Hashed { buckets } => {
                if !(2..=CATEGORIES_MAX).contains(buckets) {
                    let message = format!("is {buckets}; write a number between 2 and {CATEGORIES_MAX}");
                    self.add(format!("{place}.hash_buckets"), message);
                }
            }
        }
    }

    fn check_libsvm_names(&mut self, parts: &SchemaParts) {
        for feature in &parts.features {
            let index: Result<u64, _> = feature.name.parse();
            if !index.is_ok_and(|index| index.to_string() == feature.name) {
                let message =
                    "is no index of a libsvm file; write a whole number such as 7, or a range such as \"1..123\"";
                self.add(feature_place(&feature.name), message);
            }
        }
        if parts.nonzeros_max().is_some() && !parts.features.iter().any(|feature| feature.kind.may_be_listed()) {
            let message = "has nothing to list: it goes with numbers whose bounds start at 0 and that have no log column \
                           (log = false); delete it, or change them";
            self.add("table.nonzeros_max", message);
        }
        if parts.nonzeros_max().is_some() && parts.table.zero_is_missing() {
            let message = "has 0 for a missing value, but rows that list their values leave out what is 0: delete it, or write \
                           nonzeros_max = 0";
            self.add("table.missing", message);
        }
        if parts.unit_column().is_some_and(|column| column != LIBSVM_GROUP) {
            let message = format!("is not {LIBSVM_GROUP:?}, the only group that a libsvm file can name");
            self.add("privacy.unit.column", message);
        }
    }

    fn check_columns_against_each_other(&mut self, parts: &SchemaParts) {
        // Who holds labels alone, for others' features, has no feature to list.
        if parts.features.is_empty() && parts.privacy.adjacency != Adjacency::Label {
            let message = "names no feature; add a line for each column to learn from, \
                           for example age = { bounds = [0, 100] }";
            self.add("features", message);
        }
        if parts.table.format == TextFormat::Libsvm {
            self.check_libsvm_names(parts);
        }
        let mut names = HashSet::new();
        for feature in &parts.features {
            if !names.insert(feature.name.as_str()) {
                self.add(feature_place(&feature.name), "is listed twice; keep one");
            }
            if feature.name == parts.target.column {
                let message = "is the target; a feature must not give the answer away: delete this line";
                self.add(feature_place(&feature.name), message);
            }
            if Some(feature.name.as_str()) == parts.unit_column() {
                let message =
                    "is the column of the privacy unit; a model must not learn who somebody is: delete this line";
                self.add(feature_place(&feature.name), message);
            }
        }
        if Some(parts.target.column.as_str()) == parts.unit_column() {
            self.add("target.column", "is the column of the privacy unit; it cannot be predicted as well");
        }
        let encoded = parts.encoded_columns();
        if encoded > ENCODED_COLUMNS_MAX {
            let message = format!(
                "encode to {encoded} columns; at most {ENCODED_COLUMNS_MAX} are possible: list fewer categories"
            );
            self.add("features", message);
        }
        let Some(columns) = parts.table.columns.as_ref().filter(|columns| !columns.is_empty()) else { return };
        let known: HashSet<&str> = columns.iter().map(String::as_str).collect();
        let features = parts.features.iter().map(|feature| (feature_place(&feature.name), feature.name.as_str()));
        let target = ("target.column".to_owned(), parts.target.column.as_str());
        let unit = parts.unit_column().map(|column| ("privacy.unit.column".to_owned(), column));
        for (place, column) in features.chain([target]).chain(unit) {
            if !column.is_empty() && !known.contains(column) {
                let hint = did_you_mean(column, columns.iter().map(String::as_str));
                self.add(place, format!("column {column:?} is not in table.columns{hint}"));
            }
        }
    }

    /// Whether the bounds are usable.
    fn check_bounds(&mut self, place: &str, low: f64, high: f64) -> bool {
        let message = if !low.is_finite() || !high.is_finite() {
            format!("[{low}, {high}] is not finite; write the smallest and the largest plausible value")
        } else if low.abs() > BOUND_MAX || high.abs() > BOUND_MAX {
            format!("[{low:e}, {high:e}] is beyond {BOUND_MAX:e}; write the smallest and the largest plausible value")
        } else if low > high {
            format!("[{low}, {high}] has the larger number first; write [{high}, {low}]")
        } else if high - low <= SPAN_MIN * low.abs().max(high.abs()).max(1e-90) {
            format!(
                "[{low}, {high}] leaves room for one value only, or nearly so; write the smallest and the largest plausible value"
            )
        } else {
            return true;
        };
        self.add(place, message);
        false
    }

    fn check_column_name(&mut self, place: &str, name: &str) {
        if name.is_empty() {
            self.add(place, "is an empty name; write the column's name as in the file");
        } else if name.chars().any(char::is_control) {
            self.add(place, format!("{name:?} has a control character; rename the column"));
        }
    }

    fn check_trimmed(&mut self, place: &str, spelling: &str) {
        if spelling.trim_ascii().len() != spelling.len() {
            let trimmed = spelling.trim_ascii();
            self.add(place, format!("{spelling:?} would never match, because values are trimmed; write {trimmed:?}"));
        }
    }

    fn check_distinct<'s>(&mut self, place: &str, spellings: impl Iterator<Item = &'s String>, noun: &str) {
        let mut counts: HashMap<&str, u32> = HashMap::new();
        for spelling in spellings {
            let count = counts.entry(spelling).or_insert(0);
            *count += 1;
            if *count == 2 {
                self.add(place, format!("{noun} {spelling:?} is listed twice; keep one"));
            }
        }
    }
}

/// Writes a schema for the fingerprint: numbers in eight bytes, least first; texts and lists after their length; a byte
/// for each choice.
struct Canonical(Sha256);

impl Canonical {
    fn privacy(&mut self, privacy: &Privacy) {
        match &privacy.unit {
            PrivacyUnit::Row => self.choice(0),
            PrivacyUnit::Column { column, rows_max } => {
                self.choice(1);
                self.text(column);
                self.integer(u64::from(*rows_max));
            }
        }
        self.text(privacy.adjacency.name());
        self.optional(privacy.rows, Self::integer);
        self.integer(privacy.rows_max);
        self.optional(privacy.row_norm, Self::number);
    }

    fn table(&mut self, table: &TableFormat) {
        match table.format {
            TextFormat::Delimited => self.choice(u8::from(table.header)),
            TextFormat::Libsvm => self.choice(2),
        }
        self.optional(table.columns.as_deref(), Self::texts);
        self.choice(table.delimiter);
        self.texts(&table.missing);
        // After the list and before the target's name, whose length never has this first byte: schemas without it keep their
        // fingerprints.
        if let Some(most) = table.nonzeros_max {
            self.integer(u64::MAX);
            self.integer(u64::from(most));
        }
    }

    fn target(&mut self, target: &Target) {
        self.text(&target.column);
        match &target.kind {
            TargetKind::Classes(classes) => {
                self.choice(0);
                self.count(classes.len());
                classes.iter().for_each(|class| self.texts(&class.spellings));
            }
            TargetKind::Bounds { low, high } => {
                self.choice(1);
                self.number(*low);
                self.number(*high);
            }
        }
    }

    fn feature(&mut self, feature: &Feature) {
        self.text(&feature.name);
        match &feature.kind {
            FeatureKind::Numeric { low, high, missing, log } => {
                self.choice(0);
                [*low, *high, *missing].into_iter().for_each(|number| self.number(number));
                self.choice(u8::from(*log));
            }
            FeatureKind::Categorical { categories, missing } => {
                self.choice(1);
                self.texts(categories);
                self.count(*missing);
            }
            FeatureKind::Hashed { buckets } => {
                self.choice(2);
                self.count(*buckets);
            }
        }
    }

    fn choice(&mut self, choice: u8) {
        self.0.update([choice]);
    }

    fn integer(&mut self, integer: u64) {
        self.0.update(integer.to_le_bytes());
    }

    fn count(&mut self, count: usize) {
        self.integer(count as u64);
    }

    fn number(&mut self, number: f64) {
        self.integer(number.to_bits());
    }

    fn text(&mut self, text: &str) {
        self.count(text.len());
        self.0.update(text.as_bytes());
    }

    fn texts(&mut self, texts: &[String]) {
        self.count(texts.len());
        texts.iter().for_each(|text| self.text(text));
    }

    fn optional<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.choice(u8::from(value.is_some()));
        if let Some(value) = value {
            write(self, value);
        }
    }
}

fn feature_place(name: &str) -> String {
    format!("features.{}", toml_key(name))
}

fn counted(count: usize, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

/// The most similar of the known names, if one is similar enough to be a slip: letters and digits count, case does not.
#[must_use]
pub fn nearest_name<'n>(given: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let plain = |name: &str| -> Vec<char> {
        name.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    let given = plain(given);
    // The table of distances grows with both names; a name that nobody can type is not mistyped.
    if given.len() > NEAREST_LETTERS_MAX {
        return None;
    }
    known
        .filter(|name| name.len() <= NEAREST_LETTERS_MAX)
        .map(|name| (edit_distance(&given, &plain(name)), name))
        .filter(|(distance, _)| *distance <= given.len().div_ceil(4))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

const NEAREST_LETTERS_MAX: usize = 400;

/// `; did you mean "…"?` when one of the known names is near the given one, otherwise nothing.
fn did_you_mean<'n>(given: &str, known: impl Iterator<Item = &'n str>) -> String {
    nearest_name(given, known).map_or_else(String::new, |name| format!("; did you mean {}?", toml_string(name)))
}

/// Number of letters to insert, delete or replace (Levenshtein).
fn edit_distance(first: &[char], second: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=second.len()).collect();
    for (row_index, left) in first.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], row_index + 1);
        for (column_index, right) in second.iter().enumerate() {
            let replaced = diagonal + usize::from(left != right);
            diagonal = row[column_index + 1];
            row[column_index + 1] = replaced.min(diagonal + 1).min(row[column_index] + 1);
        }
    }
    row[second.len()]
}

#[cfg(test)]
mod tests;
