//! The schema's text: TOML to [`Schema`] with every problem and its line, and back.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use super::feature_runs::follows;
use super::nearest_name::did_you_mean;
use super::rules::feature_place;
use super::{
    Adjacency, Class, ENCODED_COLUMNS_MAX, Feature, FeatureKind, MISSING_DEFAULT, OTHER, Privacy, PrivacyUnit,
    ROWS_MAX_DEFAULT, Schema, SchemaParts, SchemaProblem, SchemaProblems, TableFormat, Target, TargetKind, TextFormat,
};

impl Schema {
    /// Reads the TOML that a person writes; `docs/reference/schema.md` describes it.
    ///
    /// # Errors
    /// [`SchemaProblems`] lists everything that is wrong, each with its line. Text that is not TOML is one problem.
    pub fn from_text(text: &str) -> Result<Self, SchemaProblems> {
        let mut reader = TextReader::new(text);
        let root = match DeTable::parse(text) {
            Ok(root) => root,
            Err(error) => {
                let line = error.span().map(|span| reader.line_of(&span));
                let message = format!("this is not TOML: {}", error.message());
                return Err(SchemaProblems(vec![SchemaProblem { line, place: String::new(), message }]));
            }
        };
        let parts = reader.parts(root.get_ref());
        reader.finish(parts)
    }

    /// Writes the schema as TOML that reads back as the same schema; what equals its default is left out.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        write_privacy(&mut text, self.privacy());
        write_table(&mut text, self.table());
        write_target(&mut text, self.target());
        text.push_str("\n[features]\n");
        for features in
            self.features().chunk_by(|one, next| self.table().format == TextFormat::Libsvm && follows(one, next))
        {
            let (Some(first), Some(last)) = (features.first(), features.last()) else { continue };
            let name = if first == last { first.name.clone() } else { format!("{}..{}", first.name, last.name) };
            write_feature(&mut text, &name, &first.kind);
        }
        text
    }
}

/// The indices of `first..last`, the last among them.
fn index_range(key: &str) -> Option<Range<usize>> {
    let (first, last) = key.split_once("..")?;
    let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
    Some(first as usize..last as usize + 1)
}

/// A TOML key: bare where TOML allows it, otherwise in quotes.
#[must_use]
pub fn toml_key(name: &str) -> String {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if !name.is_empty() && name.bytes().all(bare) { name.to_owned() } else { toml_string(name) }
}

/// A TOML string in double quotes.
#[must_use]
pub fn toml_string(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\t' => quoted.push_str("\\t"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            control if control.is_control() => {
                quoted.push_str(&format!("\\U{:08X}", u32::from(control)));
            }
            plain => quoted.push(plain),
        }
    }
    quoted.push('"');
    quoted
}

/// The spelling of a number that categories and classes are compared by, TOML as well: `1` for 1.0, `0.5`, `1e21`.
#[must_use]
pub fn number_spelling(number: f64) -> String {
    // Whole numbers below 2^53 are exact in both types, so the cast changes nothing.
    if number.fract().abs() <= 0.0 && number.abs() < 9_007_199_254_740_992.0 {
        (number as i64).to_string()
    } else {
        format!("{number:?}")
    }
}

/// One table of the text, with its place and the line of each key.
struct Section<'t> {
    place: String,
    entries: Vec<Entry<'t>>,
}

#[derive(Clone, Copy)]
struct Entry<'t> {
    key: &'t str,
    value: &'t Spanned<DeValue<'t>>,
}

/// Reads parts leniently: what cannot be read is a problem and gets a stand-in that passes the later checks, so that
/// one mistake is reported once and does not hide the others. With a problem in hand no stand-in reaches a [`Schema`].
struct TextReader {
    line_starts: Vec<usize>,
    lines: HashMap<String, usize>,
    problems: Vec<SchemaProblem>,
    /// Places with a stand-in that the schema's own checks would complain about a second time.
    stand_ins: HashSet<&'static str>,
}

impl TextReader {
    fn new(text: &str) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(offset, _)| offset + 1);
        Self {
            line_starts: [0].into_iter().chain(newlines).collect(),
            lines: HashMap::new(),
            problems: Vec::new(),
            stand_ins: HashSet::new(),
        }
    }

    fn parts(&mut self, root: &DeTable<'_>) -> SchemaParts {
        let root = self.section(String::new(), root);
        self.refuse_unknown_keys(&root, &["privacy", "table", "target", "features"]);
        let (privacy, table, target) = (self.privacy(&root), self.table(&root), self.target(&root));
        let features = self.features(&root, table.format);
        SchemaParts { privacy, table, target, features }
    }

    /// Adds the problems of the parts themselves, gives each its line and sorts.
    fn finish(mut self, parts: SchemaParts) -> Result<Schema, SchemaProblems> {
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
            privacy.rows_max = self.whole_number(&section, entry).unwrap_or(super::ROWS_MAX_LIMIT);
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

    fn features(&mut self, root: &Section<'_>, format: TextFormat) -> Vec<Feature> {
        let hint = "name the columns to learn from: [features] with for example age = { bounds = [0, 100] }";
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

    fn bounds(&mut self, section: &Section<'_>, entry: Entry<'_>) -> Option<(f64, f64)> {
        let place = section.place_of(entry.key);
        if let Some([low, high]) = entry.value.get_ref().as_array().map(|items| &items[..])
            && let (Some(low), Some(high)) = (number_of(low.get_ref()), number_of(high.get_ref()))
        {
            return Some((low, high));
        }
        self.add(&place, "is not two numbers; write the smallest and the largest plausible value: bounds = [0, 100]");
        None
    }

    fn spellings(&mut self, section: &Section<'_>, entry: Entry<'_>) -> Option<Vec<String>> {
        let place = section.place_of(entry.key);
        match entry.value.get_ref().as_array() {
            Some(items) => self.spellings_of(&place, items.iter()),
            None => {
                let message =
                    format!("is {}; write a list: {} = [\"a\", \"b\"]", described(entry.value.get_ref()), entry.key);
                self.add(&place, message);
                None
            }
        }
    }

    /// All spellings, or `None` when one cannot be read; every bad one is reported.
    fn spellings_of<'s, 'v: 's>(
        &mut self,
        place: &str,
        items: impl Iterator<Item = &'s Spanned<DeValue<'v>>>,
    ) -> Option<Vec<String>> {
        let read: Vec<Option<String>> =
            items.enumerate().map(|(index, item)| self.spelling(&format!("{place}[{index}]"), item)).collect();
        read.into_iter().collect()
    }

    fn spelling(&mut self, place: &str, item: &Spanned<DeValue<'_>>) -> Option<String> {
        self.remember(place, item.span());
        let spelling = match item.get_ref() {
            DeValue::String(text) => Some(text.clone().into_owned()),
            DeValue::Boolean(boolean) => Some(boolean.to_string()),
            DeValue::Integer(integer) => integer_of(integer).map(|integer| integer.to_string()),
            DeValue::Float(_) => number_of(item.get_ref()).filter(|number| number.is_finite()).map(number_spelling),
            DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
        };
        if spelling.is_none() {
            let message =
                format!("is {}; write text in quotes, a finite number, true or false", described(item.get_ref()));
            self.add(place, message);
        }
        spelling
    }

    fn texts(&mut self, section: &Section<'_>, entry: Entry<'_>) -> Option<Vec<String>> {
        let place = section.place_of(entry.key);
        let texts: Option<Vec<String>> = entry
            .value
            .get_ref()
            .as_array()
            .and_then(|items| items.iter().map(|item| item.get_ref().as_str().map(str::to_owned)).collect());
        if texts.is_none() {
            self.add(&place, format!("is not a list of names in quotes; write {} = [\"age\", \"income\"]", entry.key));
        }
        texts
    }

    fn required_text(&mut self, section: &Section<'_>, key: &str, hint: &str) -> Option<String> {
        match section.get(key) {
            Some(entry) => self.text(section, entry),
            None => {
                self.add(&section.place_of(key), format!("is missing; {hint}"));
                None
            }
        }
    }

    fn text(&mut self, section: &Section<'_>, entry: Entry<'_>) -> Option<String> {
        let text = entry.value.get_ref().as_str().map(str::to_owned);
        if text.is_none() {
            let message = format!("is {}; write text in quotes", described(entry.value.get_ref()));
            self.add(&section.place_of(entry.key), message);
        }
        text
    }

    fn boolean(&mut self, section: &Section<'_>, entry: Entry<'_>) -> Option<bool> {
        let boolean = entry.value.get_ref().as_bool();
        if boolean.is_none() {
            let message = format!("is {}; write true or false", described(entry.value.get_ref()));
            self.add(&section.place_of(entry.key), message);
        }
        boolean
    }

    fn number(&mut self, section: &Section<'_>, entry: Entry<'_>) -> Option<f64> {
        let number = number_of(entry.value.get_ref());
        if number.is_none() {
            let message = format!("is {}; write a number", described(entry.value.get_ref()));
            self.add(&section.place_of(entry.key), message);
        }
        number
    }

    fn whole_number(&mut self, section: &Section<'_>, entry: Entry<'_>) -> Option<u64> {
        let value = entry.value.get_ref();
        let whole = value.as_integer().and_then(integer_of).and_then(|integer| u64::try_from(integer).ok());
        if whole.is_none() {
            let message = format!("is {}; write a whole number such as 40_000", described(value));
            self.add(&section.place_of(entry.key), message);
        }
        whole
    }

    fn required_section<'t>(&mut self, root: &Section<'t>, name: &str, hint: &str) -> Option<Section<'t>> {
        if root.get(name).is_none() {
            self.add(name, format!("is missing; {hint}"));
        }
        self.optional_section(root, name)
    }

    fn optional_section<'t>(&mut self, root: &Section<'t>, name: &str) -> Option<Section<'t>> {
        let entry = root.get(name)?;
        if let Some(table) = entry.value.get_ref().as_table() {
            return Some(self.section(name.to_owned(), table));
        }
        self.add(name, format!("is {}; write a section that starts with [{name}]", described(entry.value.get_ref())));
        None
    }

    /// Opens a table: its entries in the order of the text, and the line of each.
    fn section<'t>(&mut self, place: String, table: &'t DeTable<'t>) -> Section<'t> {
        let mut keyed: Vec<_> = table.iter().collect();
        keyed.sort_by_key(|(key, _)| key.span().start);
        let entries = keyed.iter().map(|(key, value)| Entry { key: key.get_ref().as_ref(), value }).collect();
        let section = Section { place, entries };
        for (key, _) in keyed {
            self.remember(&section.place_of(key.get_ref()), key.span());
        }
        section
    }

    /// Whether every key is known.
    fn refuse_unknown_keys(&mut self, section: &Section<'_>, known: &[&str]) -> bool {
        let unknown: Vec<&str> =
            section.entries.iter().map(|entry| entry.key).filter(|key| !known.contains(key)).collect();
        for key in &unknown {
            let hint = did_you_mean(key, known.iter().copied());
            let message = if hint.is_empty() {
                format!("is not known; write one of {}", known.join(", "))
            } else {
                format!("is not known{hint}")
            };
            self.add(&section.place_of(key), message);
        }
        unknown.is_empty()
    }

    fn add(&mut self, place: &str, message: impl Into<String>) {
        let line = self.line_at(place);
        self.problems.push(SchemaProblem { line, place: place.to_owned(), message: message.into() });
    }

    fn remember(&mut self, place: &str, span: Range<usize>) {
        let line = self.line_of(&span);
        self.lines.insert(place.to_owned(), line);
    }

    fn line_of(&self, span: &Range<usize>) -> usize {
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

impl<'t> Section<'t> {
    fn get(&self, key: &str) -> Option<Entry<'t>> {
        self.entries.iter().copied().find(|entry| entry.key == key)
    }

    fn place_of(&self, key: &str) -> String {
        let key = toml_key(key);
        if self.place.is_empty() { key } else { format!("{}.{key}", self.place) }
    }
}

const FEATURE_HINT: &str = "write { bounds = [0, 100] } for a number, { categories = [\"a\", \"b\"] } for a category, \
                            or delete the line to leave the column out";

/// Long lists are broken before this column.
const LINE_WIDTH: usize = 100;

fn write_privacy(text: &mut String, privacy: &Privacy) {
    text.push_str("[privacy]\n");
    match &privacy.unit {
        PrivacyUnit::Row => text.push_str("unit = \"row\"\n"),
        PrivacyUnit::Column { column, rows_max } => {
            push_line(text, format_args!("unit = {{ column = {}, rows_max = {rows_max} }}", toml_string(column)));
        }
    }
    push_line(text, format_args!("adjacency = {}", toml_string(privacy.adjacency.name())));
    if let Some(rows) = privacy.rows {
        push_line(text, format_args!("rows = {}", grouped(rows)));
    }
    if privacy.rows_max != ROWS_MAX_DEFAULT {
        push_line(text, format_args!("rows_max = {}", grouped(privacy.rows_max)));
    }
    if let Some(norm) = privacy.row_norm {
        push_line(text, format_args!("row_norm = {}", number_spelling(norm)));
    }
}

fn write_table(text: &mut String, table: &TableFormat) {
    if *table == TableFormat::default() {
        return;
    }
    text.push_str("\n[table]\n");
    if table.format != TextFormat::default() {
        push_line(text, format_args!("format = {}", toml_string(table.format.name())));
    }
    if let Some(most) = table.nonzeros_max {
        push_line(text, format_args!("nonzeros_max = {most}"));
    }
    if !table.header {
        text.push_str("header = false\n");
    }
    if let Some(columns) = &table.columns {
        let columns: Vec<String> = columns.iter().map(|column| toml_string(column)).collect();
        push_line(text, format_args!("columns = {}", toml_list(&columns, "columns = ".len())));
    }
    if table.delimiter != b',' {
        let delimiter = char::from(table.delimiter).to_string();
        push_line(text, format_args!("delimiter = {}", toml_string(&delimiter)));
    }
    if table.missing != MISSING_DEFAULT {
        let missing: Vec<String> = table.missing.iter().map(|spelling| toml_string(spelling)).collect();
        push_line(text, format_args!("missing = {}", toml_list(&missing, "missing = ".len())));
    }
}

fn write_target(text: &mut String, target: &Target) {
    push_line(text, format_args!("\n[target]\ncolumn = {}", toml_string(&target.column)));
    match &target.kind {
        TargetKind::Bounds { low, high } => {
            push_line(text, format_args!("bounds = [{}, {}]", number_spelling(*low), number_spelling(*high)));
        }
        TargetKind::Classes(classes) => {
            let every = classes.iter().flat_map(|class| &class.spellings);
            let write = spelling_writer(every);
            let classes: Vec<String> = classes
                .iter()
                .map(|class| {
                    let spellings: Vec<String> = class.spellings.iter().map(|spelling| write(spelling)).collect();
                    match &spellings[..] {
                        [only] => only.clone(),
                        several => format!("[{}]", several.join(", ")),
                    }
                })
                .collect();
            push_line(text, format_args!("classes = {}", toml_list(&classes, "classes = ".len())));
        }
    }
}

fn write_feature(text: &mut String, name: &str, kind: &FeatureKind) {
    let key = toml_key(name);
    match kind {
        FeatureKind::Numeric { low, high, missing, log } => {
            let mut line = format!("{key} = {{ bounds = [{}, {}]", number_spelling(*low), number_spelling(*high));
            // Compared by bits: a default is left out only when reading makes the very same number again.
            if missing.to_bits() != FeatureKind::missing_default(*low, *high).to_bits() {
                line.push_str(&format!(", missing = {}", number_spelling(*missing)));
            }
            if *log != FeatureKind::log_default(*low, *high) {
                line.push_str(&format!(", log = {log}"));
            }
            push_line(text, format_args!("{line} }}"));
        }
        FeatureKind::Categorical { categories, missing } => {
            let write = spelling_writer(categories.iter());
            let written: Vec<String> = categories.iter().map(|category| write(category)).collect();
            let start = format!("{key} = {{ categories = ");
            let mut line = format!("{start}{}", toml_list(&written, start.len()));
            if let Some(category) = missing.checked_sub(1).and_then(|index| written.get(index)) {
                line.push_str(&format!(", missing = {category}"));
            }
            push_line(text, format_args!("{line} }}"));
        }
        FeatureKind::Hashed { buckets } => {
            push_line(text, format_args!("{key} = {{ hash_buckets = {buckets} }}"));
        }
    }
}

fn push_line(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("writing to a String cannot fail");
}

/// A TOML list of items that are TOML already, broken over lines when it is long; `indent` characters stand before it.
#[must_use]
pub fn toml_list(items: &[String], indent: usize) -> String {
    let line = format!("[{}]", items.join(", "));
    if indent + line.chars().count() <= LINE_WIDTH {
        return line;
    }
    let mut lines = String::from("[");
    let mut width = LINE_WIDTH;
    for item in items {
        let length = item.chars().count() + 2;
        if width + length > LINE_WIDTH {
            lines.push_str("\n   ");
            width = 3;
        }
        lines.push_str(&format!(" {item},"));
        width += length;
    }
    lines.push_str("\n]");
    lines
}

/// How to write the spellings of a list: bare when all are whole numbers or booleans as TOML writes them, else quoted.
fn spelling_writer<'s>(mut spellings: impl Iterator<Item = &'s String>) -> fn(&str) -> String {
    let bare = |spelling: &String| {
        let whole: Result<i64, _> = spelling.parse();
        // Only what comes back as the same text: 01, +1 and 1.0 stay in quotes.
        spelling == "true" || spelling == "false" || whole.is_ok_and(|whole| whole.to_string() == *spelling)
    };
    if spellings.all(bare) { str::to_owned } else { toml_string }
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    if digits.len() < 5 {
        return digits;
    }
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('_');
        }
        text.push(digit);
    }
    text
}

fn adjacency_names() -> String {
    Adjacency::ALL.map(|adjacency| toml_string(adjacency.name())).join(", ")
}

fn integer_of(integer: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

fn number_of(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Integer(integer) => integer_of(integer).map(|integer| integer as f64),
        DeValue::Float(float) => float.as_str().parse().ok(),
        DeValue::String(_) | DeValue::Boolean(_) | DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

/// A value in a message: short ones as they stand, others by their kind.
fn described(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the text {}", toml_string(text)),
        DeValue::Integer(integer) => integer.to_string(),
        DeValue::Float(float) => float.to_string(),
        DeValue::Boolean(boolean) => boolean.to_string(),
        DeValue::Datetime(datetime) => format!("the date {datetime}"),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_broken_over_lines() {
        let items = |count: usize, letters: usize| vec!["x".repeat(letters); count];
        // Ten of eight letters with their commas, two brackets: a hundred characters; with one of indent a line too long.
        let fits = format!("[{}]", items(10, 8).join(", "));
        assert_eq!(fits.len(), LINE_WIDTH);
        assert_eq!(toml_list(&items(10, 8), 0), fits);
        let item = "xxxxxxxx,";
        assert_eq!(toml_list(&items(10, 8), 1), format!("[\n    {}\n    {item}\n]", [item; 9].join(" ")));
        // Three of indent and two items of 48 and 49 fill a line.
        let (one, two) = ("x".repeat(46), "y".repeat(47));
        let written = toml_list(&[one.clone(), two.clone(), one.clone()], 0);
        assert_eq!(written, format!("[\n    {one}, {two},\n    {one},\n]"));
        // Each takes its letters and two: a line holds 97.
        let item = format!("{},", "x".repeat(95));
        assert_eq!(toml_list(&items(2, 95), 0), format!("[\n    {item}\n    {item}\n]"));
    }

    #[test]
    fn numbers_and_spellings_are_written_plainly() {
        let written: Vec<String> = [7, 999, 1234, 12_345, 123_456, 1_234_567].into_iter().map(grouped).collect();
        assert_eq!(written, ["7", "999", "1234", "12_345", "123_456", "1_234_567"]);
        // From 2^53 on not every whole number is a double.
        let written = [-3.0, 0.5, 9_007_199_254_740_991.0, 9_007_199_254_740_992.0].map(number_spelling);
        assert_eq!(written, ["-3", "0.5", "9007199254740991", "9007199254740992.0"]);
        for (spellings, quoted) in
            [(["true", "false"], false), (["7", "true"], false), (["true", "yes"], true), (["01", "1"], true)]
        {
            let spellings = spellings.map(str::to_owned);
            assert_eq!(spelling_writer(spellings.iter())("1") == "\"1\"", quoted, "{spellings:?}");
        }
    }
}
