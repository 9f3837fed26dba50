//! The rules of a schema: what each part must satisfy, and what a person is told where it does not.

use std::collections::{HashMap, HashSet};

use super::nearest_name::did_you_mean;
use super::{
    BOUND_MAX, CATEGORIES_MAX, CLASSES_MAX, ENCODED_COLUMNS_MAX, Feature, FeatureKind, LIBSVM_GROUP,
    NONZEROS_MAX_LIMIT, OTHER, Privacy, ROW_NORM_MIN, ROWS_MAX_LIMIT, SchemaParts, SchemaProblem, TableFormat, Target,
    TargetKind, TextFormat, has_span, toml_key,
};
use crate::adjacency::{Adjacency, PrivacyUnit, UNIT_ROWS_MAX};

impl SchemaParts {
    /// Everything that is wrong, each with its place; the lines are for whoever has the text.
    pub(super) fn problems(&self) -> Vec<SchemaProblem> {
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
}

/// What was found so far. Each check names the place that the schema's text uses, so that the text's reader finds the line.
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
            } else if *rows_max > UNIT_ROWS_MAX {
                self.add(
                    "privacy.unit.rows_max",
                    format!("is {rows_max}; write a number between 1 and {UNIT_ROWS_MAX}"),
                );
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
                if categories.iter().all(|category| category == OTHER) {
                    let message = "lists no value that gets a column of its own; add one, as \"other\" is every value that is \
                                   not listed";
                    self.add(&list, message);
                }
                for (index, category) in categories.iter().enumerate() {
                    self.check_trimmed(&format!("{list}[{index}]"), category);
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
            let message = "names no feature; add a line for each column to learn from, for example age = { bounds = [0, 100] }, or \
                           write adjacency = \"label\" under [privacy] if this is the schema of labels for features that others have";
            self.add("features", message);
        }
        if parts.table.format == TextFormat::Libsvm {
            self.check_libsvm_names(parts);
        }
        // As the columns of a file are found: by their names without the blanks around them.
        let is_one = |one: &str, other: &str| one.trim_ascii() == other.trim_ascii();
        let is_unit = |column: &str| parts.unit_column().is_some_and(|unit| is_one(unit, column));
        let mut names = HashSet::new();
        for feature in &parts.features {
            if !names.insert(feature.name.trim_ascii()) {
                self.add(feature_place(&feature.name), "is listed twice; keep one");
            }
            if is_one(&feature.name, &parts.target.column) {
                let message = "is the target; a feature must not give the answer away: delete this line";
                self.add(feature_place(&feature.name), message);
            }
            if is_unit(&feature.name) {
                let message =
                    "is the column of the privacy unit; a model must not learn who somebody is: delete this line";
                self.add(feature_place(&feature.name), message);
            }
        }
        if is_unit(&parts.target.column) {
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
        } else if !has_span(low, high) {
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

/// Where a feature stands in the schema's text.
pub(super) fn feature_place(name: &str) -> String {
    format!("features.{}", toml_key(name))
}

fn counted(count: usize, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}
