//! The reader of the schema's text: its four parts, and what a person is told where they cannot be read.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::section::{Entry, Section, described};
use crate::adjacency::{Adjacency, PrivacyUnit};
use crate::schema::nearest_name::did_you_mean;
use crate::schema::rules::feature_place;
use crate::schema::{
    Class, ENCODED_COLUMNS_MAX, Feature, FeatureKind, OTHER, Privacy, ROWS_MAX_DEFAULT, ROWS_MAX_LIMIT, Schema,
    SchemaParts, SchemaProblem, SchemaProblems, TableFormat, Target, TargetKind, TextFormat, toml_string,
};

/// Reads parts leniently: what cannot be read is a problem and gets a stand-in that passes the later checks, so that
/// one mistake is reported once and does not hide the others. With a problem in hand no stand-in reaches a [`Schema`].
pub(super) struct TextReader {
    line_starts: Vec<usize>,
    lines: HashMap<String, usize>,
    problems: Vec<SchemaProblem>,
    /// Places with a stand-in that the schema's own checks would complain about a second time.
    stand_ins: HashSet<&'static str>,
}

impl TextReader {
    pub(super) fn new(text: &str) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(offset, _)| offset + 1);
        Self {
            line_starts: [0].into_iter().chain(newlines).collect(),
            lines: HashMap::new(),
            problems: Vec::new(),
            stand_ins: HashSet::new(),
        }
    }

    pub(super) fn parts(&mut self, root: &DeTable<'_>) -> SchemaParts {
        let root = self.section(String::new(), root);
        self.refuse_unknown_keys(&root, &["privacy", "table", "target", "features"]);
        let (privacy, table, target) = (self.privacy(&root), self.table(&root), self.target(&root));
        let features = self.features(&root, table.format, privacy.adjacency);
        SchemaParts { privacy, table, target, features }
    }

    /// Adds the problems of the parts themselves, gives each its line and sorts.
    pub(super) fn finish(mut self, parts: SchemaParts) -> Result<Schema, SchemaProblems> {
        match Schema::new(parts) {
            Ok(schema) if self.problems.is_empty() => return Ok(schema),
            Ok(_) => {}
            Err(SchemaProblems(found)) => {
                for problem in found {
                    if !self.stand_ins.contains(problem.place.as_str()) {
                        self.add(&problem.place, problem.message);
                    }
                }
            }
        }
        self.problems.sort_by_key(|problem| problem.line.unwrap_or(usize::MAX));
        Err(SchemaProblems(self.problems))
    }

    fn privacy(&mut self, root: &Section<'_>) -> Privacy {
        let mut privacy = Privacy {
            unit: PrivacyUnit::Row,
            adjacency: Adjacency::AddRemove,
            rows: None,
            rows_max: ROWS_MAX_DEFAULT,
            row_norm: None,
        };
        let hint = "say who is protected: [privacy] with unit = \"row\" and adjacency = \"add-remove\"";
        let Some(section) = self.required_section(root, "privacy", hint) else { return privacy };
        self.refuse_unknown_keys(&section, &["unit", "adjacency", "rows", "rows_max", "row_norm"]);
        match section.get("unit") {
            Some(entry) => privacy.unit = self.unit(&section, entry).unwrap_or(PrivacyUnit::Row),
            None => {
                let message = "is missing; write unit = \"row\", or unit = { column = \"patient_id\", rows_max = 4 } \
                               when one person has several rows";
                self.add(&section.place_of("unit"), message);
            }
        }
        match section.get("adjacency") {
            Some(entry) => privacy.adjacency = self.adjacency(&section, entry).unwrap_or(Adjacency::AddRemove),
            None => {
                let message = format!("is missing; write one of {}, usually \"add-remove\"", adjacency_names());
                self.add(&section.place_of("adjacency"), message);
            }
        }
        if let Some(entry) = section.get("rows_max") {
            // The stand-in is the largest legal value, so that `rows` is not measured by a default nobody chose.
            privacy.rows_max = self.whole_number(&section, entry).unwrap_or(ROWS_MAX_LIMIT);
        }
        privacy.rows = section.get("rows").and_then(|entry| self.whole_number(&section, entry));
        privacy.row_norm = section.get("row_norm").and_then(|entry| self.number(&section, entry));
        privacy
    }

    fn unit(&mut self, section: &Section<'_>, entry: Entry<'_>) -> Option<PrivacyUnit> {
        let place = section.place_of("unit");
        let table = match entry.value.get_ref() {
            DeValue::Table(table) => table,
            DeValue::String(name) if name == "row" => return Some(PrivacyUnit::Row),
            other @ (DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_)) => {
                let message = format!(
                    "is {}; write \"row\", or {{ column = \"patient_id\", rows_max = 4 }} for all rows with the same \
                     value in a column",
                    described(other)
                );
                self.add(&place, message);
                return None;
            }
        };
        let unit = self.section(place, table);
        self.refuse_unknown_keys(&unit, &["column", "rows_max"]);
        let hint = "name the column that tells whose row it is: column = \"patient_id\"";
        let column = self.required_text(&unit, "column", hint);
        let rows_max = match unit.get("rows_max") {
            Some(entry) => self.whole_number(&unit, entry).and_then(|rows_max| {
                let narrow = u32::try_from(rows_max);
                if narrow.is_err() {
                    self.add(&unit.place_of("rows_max"), format!("is {rows_max}; at most {} is possible", u32::MAX));
                }
                narrow.ok()
            }),
            None => {
                let message = "is missing; say how many rows of one unit may count, for example rows_max = 4";
                self.add(&unit.place_of("rows_max"), message);
                None
            }
        };
        // Name and cap fail apart: a known name is still checked against the features.
        column.map(|column| PrivacyUnit::Column { column, rows_max: rows_max.unwrap_or(1) })
    }

    fn adjacency(&mut self, section: &Section<'_>, entry: Entry<'_>) -> Option<Adjacency> {
        let given = self.text(section, entry)?;
        let known = Adjacency::ALL.into_iter().find(|adjacency| adjacency.name() == given);
        if known.is_none() {
            let hint = did_you_mean(&given, Adjacency::ALL.iter().map(|adjacency| adjacency.name()));
            let message = format!("{} is not one of {}{hint}", toml_string(&given), adjacency_names());
            self.add(&section.place_of("adjacency"), message);
        }
        known
    }

    fn table(&mut self, root: &Section<'_>) -> TableFormat {
        let mut format = TableFormat::default();
        let Some(section) = self.optional_section(root, "table") else { return format };
        self.refuse_unknown_keys(&section, &["format", "header", "columns", "nonzeros_max", "delimiter", "missing"]);
        if let Some(entry) = section.get("format")
            && let Some(name) = self.text(&section, entry)
        {
            match TextFormat::ALL.into_iter().find(|format| format.name() == name) {
                Some(found) => format.format = found,
                None => {
                    let names = TextFormat::ALL.map(|format| toml_string(format.name())).join(", ");
                    let message = format!("{} is not one of {names}", toml_string(&name));
                    self.add(&section.place_of("format"), message);
                }
            }
        }
        if let Some(entry) = section.get("columns") {
            format.columns = self.texts(&section, entry);
            if format.columns.is_none() {
                self.stand_ins.insert("table.columns");
            }
        }
        if let Some(entry) = section.get("nonzeros_max") {
            // Too many for its type are too many for a row.
            let most = self.whole_number(&section, entry);
            format.nonzeros_max = most.map(|most| u32::try_from(most).unwrap_or(u32::MAX));
        }
        if let Some(entry) = section.get("header") {
            format.header = self.boolean(&section, entry).unwrap_or(true);
        }
        if let Some(entry) = section.get("delimiter")
            && let Some(text) = self.text(&section, entry)
        {
            match text.as_bytes() {
                [byte] => format.delimiter = *byte,
                _ => {
                    let message = format!(
                        "{} is not one ASCII character; write for example \",\", \";\" or \"\\t\"",
                        toml_string(&text)
                    );
                    self.add(&section.place_of("delimiter"), message);
                }
            }
        }
        if let Some(entry) = section.get("missing") {
            format.missing = self.spellings(&section, entry).unwrap_or_default();
        }
        format
    }

    fn target(&mut self, root: &Section<'_>) -> Target {
        let mut target = Target { column: String::new(), kind: TargetKind::Bounds { low: 0.0, high: 1.0 } };
        let hint = "say what to predict: [target] with column = \"income\" and classes = [\"no\", \"yes\"] \
                    (or bounds = [0, 100] for a number)";
        let Some(section) = self.required_section(root, "target", hint) else {
            self.stand_ins.insert("target.column");
            return target;
        };
        self.refuse_unknown_keys(&section, &["column", "classes", "bounds"]);
        let hint = "name the column to predict: column = \"income\"";
        match self.required_text(&section, "column", hint) {
            Some(column) => target.column = column,
            None => {
                self.stand_ins.insert("target.column");
            }
        }
        match (section.get("classes"), section.get("bounds")) {
            (Some(entry), None) => {
                if let Some(classes) = self.classes(&section, entry) {
                    target.kind = TargetKind::Classes(classes);
                }
            }
            (None, Some(entry)) => {
                if let Some((low, high)) = self.bounds(&section, entry) {
                    target.kind = TargetKind::Bounds { low, high };
                }
            }
            (Some(_), Some(_)) => {
                let message = "has both classes and bounds; keep classes for a category, bounds for a number";
                self.add(&section.place, message);
            }
            (None, None) => {
                let message = "has neither classes nor bounds; write classes = [\"no\", \"yes\"] for a category, \
                               bounds = [0, 100] for a number";
                self.add(&section.place, message);
            }
        }
        target
    }

    fn classes(&mut self, section: &Section<'_>, entry: Entry<'_>) -> Option<Vec<Class>> {
        let place = section.place_of("classes");
        let Some(items) = entry.value.get_ref().as_array() else {
            let message = format!("is {}; write a list: classes = [\"no\", \"yes\"]", described(entry.value.get_ref()));
            self.add(&place, message);
            return None;
        };
        let mut classes = Some(Vec::new());
        for (index, item) in items.iter().enumerate() {
            let place = format!("{place}[{index}]");
            self.remember(&place, item.span());
            let spellings = match item.get_ref().as_array() {
                Some(spellings) => self.spellings_of(&place, spellings.iter()),
                None => self.spelling(&place, item).map(|spelling| vec![spelling]),
            };
            // An empty list of spellings keeps an empty name, which the schema's own check refuses.
            let class = spellings.map(|spellings| {
                let name = spellings.first().cloned().unwrap_or_default();
                Class { name, spellings }
            });
            classes = classes.zip(class).map(|(mut classes, class)| {
                classes.push(class);
                classes
            });
        }
        classes
    }

    fn features(&mut self, root: &Section<'_>, format: TextFormat, adjacency: Adjacency) -> Vec<Feature> {
        let hint = match adjacency {
            Adjacency::AddRemove | Adjacency::Replace | Adjacency::Party => {
                "name the columns to learn from: [features] with for example age = { bounds = [0, 100] }"
            }
            Adjacency::Label => {
                "name the columns to learn from: [features] with for example age = { bounds = [0, 100] }; whoever holds the labels \
                 alone, for `walr measure`, leaves [features] empty"
            }
        };
        let Some(section) = self.required_section(root, "features", hint) else {
            self.stand_ins.insert("features");
            return Vec::new();
        };
        let mut features = Vec::new();
        // A short text must not stand for more features than a schema may have.
        let mut room = ENCODED_COLUMNS_MAX;
        for entry in &section.entries {
            let feature = self.feature(*entry);
            let Some(range) = index_range(entry.key).filter(|_| format == TextFormat::Libsvm) else {
                features.push(feature);
                continue;
            };
            let place = feature_place(entry.key);
            if range.is_empty() {
                self.add(&place, "has its end before its beginning; write the smaller index first");
            }
            let columns = range.len().saturating_mul(feature.kind.encoded_columns());
            if columns > room {
                self.add(&place, format!("has too many indices: at most {ENCODED_COLUMNS_MAX} columns are possible"));
                continue;
            }
            room -= columns;
            features.extend(range.map(|index| Feature { name: index.to_string(), kind: feature.kind.clone() }));
        }
        features
    }

    fn feature(&mut self, entry: Entry<'_>) -> Feature {
        let place = feature_place(entry.key);
        let kind = match entry.value.get_ref().as_table() {
            Some(table) => {
                let section = self.section(place, table);
                self.feature_kind(&section)
            }
            None => {
                let message = format!("is {}; {FEATURE_HINT}", described(entry.value.get_ref()));
                self.add(&place, message);
                None
            }
        };
        let stand_in = FeatureKind::Numeric { low: 0.0, high: 1.0, missing: 0.0, log: false };
        Feature { name: entry.key.to_owned(), kind: kind.unwrap_or(stand_in) }
    }

    fn feature_kind(&mut self, section: &Section<'_>) -> Option<FeatureKind> {
        if section.entries.is_empty() {
            self.add(&section.place, format!("is not filled in; {FEATURE_HINT}"));
            return None;
        }
        let known = self.refuse_unknown_keys(section, &["bounds", "categories", "hash_buckets", "missing", "log"]);
        if let Some(buckets) = section.get("hash_buckets") {
            return self.hashed(section, buckets);
        }
        match (section.get("bounds"), section.get("categories")) {
            (Some(bounds), None) => self.numeric(section, bounds),
            (None, Some(categories)) => self.categorical(section, categories),
            (Some(_), Some(_)) => {
                self.add(
                    &section.place,
                    "has both bounds and categories; keep bounds for a number, categories otherwise",
                );
                None
            }
            // A misspelt key is probably the one that is missed here.
            (None, None) if !known => None,
            (None, None) => {
                self.add(&section.place, format!("has neither bounds nor categories; {FEATURE_HINT}"));
                None
            }
        }
    }

    fn numeric(&mut self, section: &Section<'_>, bounds: Entry<'_>) -> Option<FeatureKind> {
        let bounds = self.bounds(section, bounds);
        let missing = section.get("missing").map(|entry| self.number(section, entry));
        let log = section.get("log").map(|entry| self.boolean(section, entry));
        let (low, high) = bounds?;
        let missing = missing.unwrap_or_else(|| Some(FeatureKind::missing_default(low, high)))?;
        let log = log.unwrap_or_else(|| Some(FeatureKind::log_default(low, high)))?;
        Some(FeatureKind::Numeric { low, high, missing, log })
    }

    fn categorical(&mut self, section: &Section<'_>, categories: Entry<'_>) -> Option<FeatureKind> {
        let categories = self.spellings(section, categories);
        if section.get("log").is_some() {
            self.add(&section.place_of("log"), "goes with bounds only; delete it");
        }
        let place = section.place_of("missing");
        let missing = match section.get("missing") {
            None => Some(OTHER.to_owned()),
            Some(entry) => self.spelling(&place, entry.value),
        };
        let (categories, missing) = (categories?, missing?);
        if missing == OTHER {
            return Some(FeatureKind::Categorical { categories, missing: 0 });
        }
        let index = categories.iter().position(|category| *category == missing);
        if index.is_none() {
            let hint = did_you_mean(&missing, categories.iter().map(String::as_str));
            let message = format!("{} is neither \"other\" nor one of the categories{hint}", toml_string(&missing));
            self.add(&place, message);
        }
        // The categories are still worth checking.
        Some(FeatureKind::Categorical { categories, missing: index.map_or(0, |index| index + 1) })
    }

    fn hashed(&mut self, section: &Section<'_>, buckets: Entry<'_>) -> Option<FeatureKind> {
        for key in ["bounds", "categories"] {
            if section.get(key).is_some() {
                self.add(&section.place, format!("has both hash_buckets and {key}; keep one of the two"));
            }
        }
        if section.get("log").is_some() {
            self.add(&section.place_of("log"), "goes with bounds only; delete it");
        }
        if section.get("missing").is_some() {
            let message = "goes with bounds or categories only; a missing value has a bucket of its own: delete it";
            self.add(&section.place_of("missing"), message);
        }
        let buckets = self.whole_number(section, buckets)?;
        // Too many for a machine word are too many for a feature.
        Some(FeatureKind::Hashed { buckets: usize::try_from(buckets).unwrap_or(usize::MAX) })
    }

    pub(super) fn add(&mut self, place: &str, message: impl Into<String>) {
        let line = self.line_at(place);
        self.problems.push(SchemaProblem { line, place: place.to_owned(), message: message.into() });
    }

    pub(super) fn remember(&mut self, place: &str, span: Range<usize>) {
        let line = self.line_of(&span);
        self.lines.insert(place.to_owned(), line);
    }

    pub(super) fn line_of(&self, span: &Range<usize>) -> usize {
        self.line_starts.partition_point(|start| *start <= span.start)
    }

    /// The line of a place, or of the nearest place around it that the text has.
    fn line_at(&self, place: &str) -> Option<usize> {
        let mut place = place;
        loop {
            if let Some(line) = self.lines.get(place) {
                return Some(*line);
            }
            place = &place[..place.rfind(['.', '['])?];
        }
    }
}

/// The indices of `first..last`, the last among them.
fn index_range(key: &str) -> Option<Range<usize>> {
    let (first, last) = key.split_once("..")?;
    let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
    Some(first as usize..last as usize + 1)
}

fn adjacency_names() -> String {
    Adjacency::ALL.map(|adjacency| toml_string(adjacency.name())).join(", ")
}

const FEATURE_HINT: &str = "write { bounds = [0, 100] } for a number, { categories = [\"a\", \"b\"] } for a category, \
                            or delete the line to leave the column out";
