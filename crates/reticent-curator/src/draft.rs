//! Schema drafts: the TOML that a person completes.
//!
//! Of a private file only what is public is used: the names in a header, the names and types in Parquet metadata. No
//! value is looked at, because a bound or a category taken from private rows would be an output that nobody paid for.
//! Of a file that its owner declares public the values are read, and the draft is complete.

mod doubtful_header;
mod foreign_numbers;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::Write as _;
use std::path::Path;

use arrow_schema::DataType;
use reticent_core::record::RawValue;
use reticent_core::schema::{
    BOUND_MAX, MISSING_DEFAULT, OTHER, has_span, number_spelling, toml_key, toml_list, toml_string,
};

use self::foreign_numbers::ForeignNumbers;
use crate::source::{
    ColumnNames, CsvTable, NamedIn, ParquetTable, RawRow, Role, SourceError, USUAL_DELIMITERS, UnboundTable,
    ValueClass, WantedColumn,
};

/// What is known about a file before a schema is drafted from it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DraftOptions {
    /// The column to predict; it is left to fill in when this is none.
    pub target: Option<String>,
    /// Whether the owner declares the file public: only then are its values read.
    pub public: bool,
    /// Whether a text file has a header. None: it has one, and the draft is refused when its first line looks like a
    /// row.
    pub header: Option<bool>,
    /// The character between two values of a text file. None: the usual one that the first line has most of; where that is a row, and the file is
    /// not public, a comma.
    pub delimiter: Option<u8>,
}

/// Writes the schema of a file as far as it can be known: complete when the file is public and the target is named.
///
/// # Errors
/// [`SourceError`] when the file cannot be read, when it has no column of the target's name, or when the first line of
/// a text file may be a row.
pub fn draft_schema(path: &Path, options: &DraftOptions) -> Result<String, SourceError> {
    let draft = match UnboundTable::open(path, options.header != Some(false))? {
        UnboundTable::Csv(stream) => draft_of_text(path, *stream, options)?,
        UnboundTable::Parquet(table) => draft_of_parquet(*table, options)?,
    };
    if let Some(target) = &options.target {
        let needed_by = "was named as the target";
        let wanted = WantedColumn { name: target, role: Role::Word, needed_by, named_in: NamedIn::TargetFlag };
        ColumnNames { path, names: &draft.names, may_be_quoted: true }.resolve(&[wanted])?;
    }
    Ok(draft.text(path, options))
}

/// The most different words that are written out as categories or classes.
const WORDS_MAX: usize = 50;
/// A whole number with at most this many values is a class rather than a quantity, if it is the target.
const NUMERIC_CLASSES_MAX: usize = 10;
/// A longer word is free text and no category.
const WORD_BYTES_MAX: usize = 200;

/// So many whole numbers are looked at for two equal ones.
const IDS_WATCHED: usize = 10_000;

struct Draft {
    names: Vec<String>,
    columns: Vec<Known>,
    /// Lines of `[table]` that differ from the default.
    format: Vec<String>,
    /// Whether a delimiter was looked for in a text and none was there.
    is_undelimited: bool,
}

/// What is known about a column.
enum Known {
    Name,
    /// And what it counts, where its type says more.
    IsNumber(&'static str),
    IsBoolean,
    IsText,
    CannotBeUsed(&'static str),
    Values(Summary),
}

fn draft_of_text(
    path: &Path,
    mut stream: crate::source::ByteStream,
    options: &DraftOptions,
) -> Result<Draft, SourceError> {
    let delimiter = match options.delimiter {
        Some(delimiter) => delimiter,
        None if options.header == Some(false) && !options.public => b',',
        None => most_frequent_delimiter(stream.peek(FIRST_LINE_MAX)?),
    };
    let mut table = CsvTable::new(path, stream, delimiter);
    let mut names = table.read_header()?.ok_or_else(|| SourceError::Empty { path: path.to_owned() })?;
    let mut format = Vec::new();
    if options.header == Some(false) {
        names = (1..=names.len()).map(|place| format!("c{place}")).collect();
        format.push("header = false".to_owned());
        let quoted: Vec<String> = names.iter().map(|name| toml_string(name)).collect();
        format.push(format!("columns = {}", toml_list(&quoted, "columns = ".len())));
        // The first line is a row: begin again.
        if let UnboundTable::Csv(stream) = UnboundTable::open(path, false)? {
            table = CsvTable::new(path, *stream, delimiter);
        }
    } else if options.header.is_none() {
        doubtful_header::refuse(path, &names)?;
    }
    if delimiter != b',' {
        format.push(format!("delimiter = {}", toml_string(&char::from(delimiter).to_string())));
    }
    let columns = if options.public {
        let mut summaries: Vec<Summary> = names.iter().map(|_| Summary::default()).collect();
        table.project((0..names.len()).collect());
        table.for_each(&mut |_| {}, |row| observe(&mut summaries, row))?;
        summaries.into_iter().map(Known::Values).collect()
    } else {
        names.iter().map(|_| Known::Name).collect()
    };
    let is_undelimited = options.delimiter.is_none() && names.len() == 1;
    Ok(Draft { names, columns, format, is_undelimited })
}

fn draft_of_parquet(mut table: ParquetTable, options: &DraftOptions) -> Result<Draft, SourceError> {
    let names = table.names().to_vec();
    let mut roles = Vec::with_capacity(names.len());
    let mut columns = Vec::with_capacity(names.len());
    for column in 0..names.len() {
        let (role, known) = match ValueClass::of(table.data_type(column)) {
            ValueClass::Whole | ValueClass::Fraction => (Some(Role::Number), Known::IsNumber("")),
            ValueClass::Date => (Some(Role::Number), Known::IsNumber(IN_DAYS)),
            ValueClass::Time(_) if matches!(table.data_type(column), DataType::Timestamp(..)) => {
                (Some(Role::Number), Known::IsNumber(IN_SECONDS))
            }
            ValueClass::Time(_) => (Some(Role::Number), Known::IsNumber(", in seconds since midnight")),
            ValueClass::Boolean => (Some(Role::Word), Known::IsBoolean),
            ValueClass::Text => (Some(Role::Word), Known::IsText),
            ValueClass::Nothing => (None, Known::CannotBeUsed("has no values by its type")),
            ValueClass::Other => (None, Known::CannotBeUsed("has a type that is neither number, boolean nor text")),
        };
        roles.push(role);
        columns.push(known);
    }
    if options.public {
        let read: Vec<(usize, Role)> =
            roles.iter().enumerate().filter_map(|(column, role)| Some((column, (*role)?))).collect();
        let wanted: Vec<WantedColumn<'_>> = read
            .iter()
            .map(|(column, role)| {
                let name = &names[*column];
                WantedColumn { name, role: *role, needed_by: "is drafted", named_in: NamedIn::Schema }
            })
            .collect();
        let places: Vec<usize> = read.iter().map(|(column, _)| *column).collect();
        table.project(&wanted, &places)?;
        let mut summaries: Vec<Summary> = places.iter().map(|_| Summary::default()).collect();
        table.for_each(&mut |_| {}, |row| observe(&mut summaries, row))?;
        for (place, summary) in places.into_iter().zip(summaries) {
            columns[place] = Known::Values(summary);
        }
    }
    Ok(Draft { names, columns, format: Vec::new(), is_undelimited: false })
}

/// What the values of a column of a public file have in common.
struct Summary {
    /// Whether every value so far is a number, and none is a code such as 007.
    is_number: bool,
    is_whole: bool,
    low: f64,
    high: f64,
    /// The different values; none when they are too many, or too long to be words.
    words: Option<BTreeSet<String>>,
    /// Whether a number came twice, and the bits of those that came so far: the first [`IDS_WATCHED`] of a column of whole numbers.
    has_equals: bool,
    seen: HashSet<u64>,
    /// How many values are numbers, and how many are not.
    numbers: u64,
    others: u64,
    /// Whether one of the others is a code such as 007: a number would be another's.
    has_codes: bool,
    /// Those of the others that a person would read as numbers.
    foreign: ForeignNumbers,
}

impl Default for Summary {
    fn default() -> Self {
        Self {
            is_number: true,
            is_whole: true,
            low: f64::INFINITY,
            high: f64::NEG_INFINITY,
            words: Some(BTreeSet::new()),
            has_equals: false,
            seen: HashSet::new(),
            numbers: 0,
            others: 0,
            has_codes: false,
            foreign: ForeignNumbers::default(),
        }
    }
}

impl Summary {
    fn observe(&mut self, raw: RawValue<'_>) {
        match raw {
            RawValue::Missing => {}
            RawValue::Number(number) => self.observe_number(number),
            RawValue::Boolean(boolean) => {
                self.is_number = false;
                self.observe_word(if boolean { "true" } else { "false" });
            }
            RawValue::Text(text) => {
                let text = text.trim_ascii();
                let Ok(text) = std::str::from_utf8(text) else {
                    // It cannot be written in a schema, so it will be "other".
                    self.is_number = false;
                    return;
                };
                if MISSING_DEFAULT.contains(&text) {
                    return;
                }
                let digits = text.trim_start_matches(['-', '+']).as_bytes();
                let is_code = matches!(digits, [b'0', second, ..] if second.is_ascii_digit());
                match text.parse::<f64>() {
                    Ok(number) if !is_code => self.observe_number(number),
                    Ok(_) | Err(_) => {
                        self.is_number = false;
                        self.others += 1;
                        self.has_codes |= is_code;
                        self.foreign.observe(text);
                        self.observe_word(text);
                    }
                }
            }
        }
    }

    fn observe_number(&mut self, number: f64) {
        // Infinity is a value beyond any bound, NaN is no value.
        if number.is_finite() {
            self.numbers += 1;
            self.is_whole &= number.fract().abs() <= 0.0;
            if self.is_whole && !self.has_equals && self.seen.len() < IDS_WATCHED {
                self.has_equals = !self.seen.insert((number + 0.0).to_bits());
            }
            if !self.is_whole || self.has_equals {
                self.seen = HashSet::new();
            }
            self.low = self.low.min(number);
            self.high = self.high.max(number);
            if self.words.is_some() {
                self.observe_word(&number_spelling(number));
            }
        }
    }

    fn observe_word(&mut self, word: &str) {
        if let Some(words) = &mut self.words {
            if !words.contains(word) {
                words.insert(word.to_owned());
            }
            if words.len() > WORDS_MAX || word.len() > WORD_BYTES_MAX {
                self.words = None;
            }
        }
    }

    /// What to say where nearly all values look like numbers, and are not read as such.
    fn foreign_hint(&self) -> Option<&'static str> {
        self.foreign.hint(self.numbers, self.others)
    }

    /// Whether nearly all values are numbers, and too many to be classes: the others, none of them a code, are then taken for missing values.
    fn is_nearly_number(&self) -> bool {
        self.words.is_none()
            && !self.has_codes
            && self.numbers > 0
            && 10 * self.numbers >= 9 * (self.numbers + self.others)
    }

    /// The different words but for capitals.
    fn folded_words(&self) -> HashSet<String> {
        self.words.iter().flatten().map(|word| word.to_lowercase()).collect()
    }

    /// Whether two words are one but for capitals.
    fn has_spellings(&self) -> bool {
        self.words.as_ref().is_some_and(|words| self.folded_words().len() < words.len())
    }

    /// Whether these are many whole numbers, no two of which are equal.
    fn are_perhaps_ids(&self) -> bool {
        self.is_number && self.is_whole && !self.has_equals && self.words.is_none()
    }

    /// Bounds as a schema writes them, or why there are none.
    fn bounds(&self) -> Result<String, &'static str> {
        let has_several = self.words.as_ref().is_none_or(|words| words.len() > 1);
        let reason = if has_several { TOO_CLOSE } else { "has one value only, which tells nothing" };
        let (low, high) = friendly_bounds(self).ok_or(reason)?;
        Ok(format!("bounds = [{}, {}]", number_spelling(low), number_spelling(high)))
    }

    fn has_values(&self) -> bool {
        self.words.as_ref().is_none_or(|words| !words.is_empty())
    }
}

fn observe(summaries: &mut [Summary], row: &impl RawRow) {
    for (slot, summary) in summaries.iter_mut().enumerate() {
        summary.observe(row.value(slot));
    }
}

impl Draft {
    fn text(&self, path: &Path, options: &DraftOptions) -> String {
        let file = toml_string(&path.file_name().unwrap_or(path.as_os_str()).to_string_lossy());
        let mut text = String::new();
        if options.public {
            line(&mut text, format_args!("# Drafted from the values of {file}, which was declared public."));
            line(&mut text, format_args!("# Check that the bounds and lists below also suit the private table."));
        } else {
            let known =
                if options.header == Some(false) { "number of values in the first line" } else { "column names" };
            line(&mut text, format_args!("# Drafted from the {known} of {file}; no value of it was looked at."));
            line(&mut text, format_args!("# Complete every line that says \"fill in\", from what everybody may know:"));
            line(&mut text, format_args!("# what stands here is public, so do not look it up in the private table."));
        }
        line(&mut text, format_args!("# `reticent schema check` tells what is still wrong or missing."));
        if self.is_undelimited {
            text.push_str(UNDELIMITED);
        }
        text.push_str(PRIVACY_SECTION);
        self.write_table(&mut text);
        self.write_target(&mut text, options.target.as_deref());
        self.write_features(&mut text, options.target.as_deref());
        text
    }

    fn write_table(&self, text: &mut String) {
        if self.format.is_empty() {
            return;
        }
        text.push_str("\n# How the file is written.\n[table]\n");
        for declared in &self.format {
            line(text, format_args!("{declared}"));
        }
    }

    fn write_target(&self, text: &mut String, target: Option<&str>) {
        text.push_str("\n# What is predicted: one of several classes, or a number within bounds.\n[target]\n");
        let Some(target) = target else {
            text.push_str("column = \"\"  # fill in: the column to predict, and delete its line under [features]\n");
            text.push_str(TARGET_TO_FILL_IN);
            return;
        };
        line(text, format_args!("column = {}", toml_string(target)));
        let place = self.names.iter().position(|name| name == target.trim_ascii());
        let known = place.map_or(&Known::Name, |place| &self.columns[place]);
        match known {
            Known::IsBoolean => line(text, format_args!("{OF_TWO_CLASSES}classes = [false, true]")),
            Known::Values(summary) => match declaration_of_target(summary) {
                Ok(Declaration { keys, comment }) => {
                    let has_two = keys.starts_with("classes") && summary.folded_words().len() == 2;
                    let order = if has_two { OF_TWO_CLASSES } else { "" };
                    line(text, format_args!("{order}{keys}{}", behind(comment)));
                }
                Err(reason) => {
                    line(text, format_args!("# The column {reason}."));
                    text.push_str(TARGET_TO_FILL_IN);
                }
            },
            Known::IsNumber("") => text.push_str("# fill in: bounds = [low, high], or classes = [0, 1]\n"),
            Known::IsNumber(counted) => line(text, format_args!("# fill in: bounds = [low, high]{counted}")),
            Known::IsText => {
                text.push_str("# fill in: classes = [\"no\", \"yes\"]; of two, the last is the positive one\n")
            }
            Known::Name | Known::CannotBeUsed(_) => text.push_str(TARGET_TO_FILL_IN),
        }
    }

    fn write_features(&self, text: &mut String, target: Option<&str>) {
        text.push_str(FEATURES_SECTION);
        let mut occurrences: HashMap<&str, u32> = HashMap::new();
        for name in &self.names {
            *occurrences.entry(name).or_default() += 1;
        }
        for (place, (name, known)) in self.names.iter().zip(&self.columns).enumerate() {
            if target.map(str::trim_ascii) == Some(name) {
                continue;
            }
            let key = toml_key(name);
            if name.is_empty() {
                line(text, format_args!("# column {} has no name and cannot be used", place + 1));
            } else if name.chars().any(char::is_control) {
                line(text, format_args!("# {key} has a control character in its name: rename it to use it"));
            } else if occurrences[name.as_str()] > 1 {
                line(text, format_args!("# {key} is the name of several columns: rename them to use them"));
            } else {
                write_feature(text, &key, known);
            }
        }
    }
}

fn write_feature(text: &mut String, key: &str, known: &Known) {
    match known {
        Known::Name => {
            line(text, format_args!("{key} = {{}}  # fill in: bounds = [low, high] or categories = [\"a\", \"b\"]"));
        }
        Known::IsNumber(counted) => {
            line(text, format_args!("{key} = {{}}  # fill in: bounds = [low, high]{counted}"));
        }
        Known::IsText => line(text, format_args!("{key} = {{}}  # fill in: categories = [\"a\", \"b\"]")),
        Known::IsBoolean => line(text, format_args!("{key} = {{ categories = [false, true] }}")),
        Known::CannotBeUsed(reason) => line(text, format_args!("# {key} {reason}")),
        Known::Values(summary) => match declaration_of_feature(summary, key) {
            Ok(Declaration { keys, comment }) => line(text, format_args!("{key} = {{ {keys} }}{}", behind(comment))),
            Err(reason) => line(text, format_args!("# {key} {reason}")),
        },
    }
}

/// What a schema says of a column.
struct Declaration {
    keys: String,
    /// What the person should know of it.
    comment: Option<&'static str>,
}

/// A comment behind a declaration.
fn behind(comment: Option<&'static str>) -> String {
    comment.map_or_else(String::new, |comment| format!("  # it {comment}"))
}

fn declaration_of_feature(summary: &Summary, key: &str) -> Result<Declaration, &'static str> {
    if !summary.has_values() {
        return Err("has no values");
    }
    if summary.is_number {
        let comment = summary.are_perhaps_ids().then_some(PERHAPS_IDS);
        return Ok(Declaration { keys: summary.bounds()?, comment });
    }
    let comment = summary.foreign_hint();
    if comment.is_none() && summary.is_nearly_number() {
        return Ok(Declaration { keys: summary.bounds()?, comment: Some(WORDS_ARE_MISSING) });
    }
    let words = summary.words.as_ref().ok_or(comment.unwrap_or(TOO_MANY_WORDS))?;
    let comment = comment.or_else(|| summary.has_spellings().then_some(SPELLINGS));
    let listed: Vec<String> = words.iter().filter(|word| *word != OTHER).map(|word| toml_string(word)).collect();
    if listed.is_empty() {
        return Err("has no value that a category can be made of");
    }
    let keys = format!("categories = {}", toml_list(&listed, key.len() + " = { categories = ".len()));
    Ok(Declaration { keys, comment })
}

fn declaration_of_target(summary: &Summary) -> Result<Declaration, &'static str> {
    if !summary.has_values() {
        return Err("has no values");
    }
    let words = summary.words.as_ref();
    let is_quantity = !summary.is_whole || words.is_none_or(|words| words.len() > NUMERIC_CLASSES_MAX);
    if summary.is_number && is_quantity {
        return Ok(Declaration { keys: summary.bounds()?, comment: None });
    }
    let comment = summary.foreign_hint();
    if comment.is_none() && summary.is_nearly_number() {
        return Ok(Declaration { keys: summary.bounds()?, comment: Some(WORDS_ARE_MISSING) });
    }
    let words = words.ok_or(comment.unwrap_or("has more than 50 different values"))?;
    if words.len() < 2 {
        return Err("has one value only");
    }
    let mut classes: Vec<&String> = words.iter().collect();
    if summary.is_number {
        let number = |word: &String| word.parse().unwrap_or(f64::INFINITY);
        classes.sort_by(|first, second| number(first).total_cmp(&number(second)));
    }
    let quote = |word: &&String| if summary.is_number { (*word).clone() } else { toml_string(word) };
    // Spellings of one word are one class.
    let mut spellings: Vec<(String, Vec<String>)> = Vec::new();
    for class in &classes {
        let folded = class.to_lowercase();
        match spellings.iter_mut().find(|(word, _)| *word == folded) {
            Some((_, alike)) => alike.push(quote(class)),
            None => spellings.push((folded, vec![quote(class)])),
        }
    }
    if spellings.len() < 2 {
        return Err("has one value only, but for capitals");
    }
    let written: Vec<String> = spellings
        .into_iter()
        .map(|(_, alike)| if alike.len() == 1 { alike[0].clone() } else { format!("[{}]", alike.join(", ")) })
        .collect();
    let comment = comment.or_else(|| summary.has_spellings().then_some(ONE_CLASS));
    Ok(Declaration { keys: format!("classes = {}", toml_list(&written, "classes = ".len())), comment })
}

/// The bounds of the values, rounded outward to two figures of their span; none when there is no span that a schema takes.
fn friendly_bounds(summary: &Summary) -> Option<(f64, f64)> {
    let (low, high) = (summary.low.max(-BOUND_MAX), summary.high.min(BOUND_MAX));
    let span = high - low;
    if !has_span(low, high) {
        return None;
    }
    let exponent = span.log10().floor() as i32 - 1;
    // Powers of ten up to 10^22 are exact, so that 0.1 comes out as 0.1; beyond, two figures hardly matter.
    let round = |value: f64, outward: fn(f64) -> f64| {
        if exponent < 0 {
            let steps_per_unit = 10f64.powi(-exponent);
            outward(value * steps_per_unit) / steps_per_unit
        } else {
            let step = 10f64.powi(exponent);
            outward(value / step) * step
        }
    };
    // Rounding errors of the product must not move a bound inward, nor beyond what a schema takes.
    let low = round(low, f64::floor).min(low).max(-BOUND_MAX);
    let high = round(high, f64::ceil).max(high).min(BOUND_MAX);
    Some((low + 0.0, high + 0.0))
}

/// The usual delimiter that occurs most outside quotes in the first line.
fn most_frequent_delimiter(first: &[u8]) -> u8 {
    let mut is_quoted = false;
    let mut counts = [0usize; USUAL_DELIMITERS.len()];
    for byte in first {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b'\n' | b'\r' if !is_quoted => break,
            other if !is_quoted => {
                if let Some(place) = USUAL_DELIMITERS.iter().position(|delimiter| delimiter == other) {
                    counts[place] += 1;
                }
            }
            _ => {}
        }
    }
    let most = counts.iter().max().copied().unwrap_or(0);
    let place = counts.iter().position(|count| *count == most).unwrap_or(0);
    USUAL_DELIMITERS[place]
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("writing to a string cannot fail");
}

const TOO_MANY_WORDS: &str = "has more than 50 different words, or long ones: list the frequent ones as categories, or write hash_buckets = 1024, to use it";

const WORDS_ARE_MISSING: &str = "has some values that are no numbers, such as N/A or unknown: they count as missing";

const SPELLINGS: &str = "lists words that differ in capitals only: write them alike in the file if they mean the same";

const ONE_CLASS: &str = "takes words that differ in capitals only for one class";

const TOO_CLOSE: &str = "has numbers that are too large, or too close together, for bounds, as ids may have: to use what they tell, \
                         write it in another column";

const PERHAPS_IDS: &str =
    "has whole numbers of which no two are equal: delete this line if they are row numbers or ids";

/// Enough for the first line of most tables; a longer one is judged by its beginning.
const FIRST_LINE_MAX: usize = 64 * 1024;

const UNDELIMITED: &str = "
# The first line has no comma, semicolon, tab or |, so that this is taken for a table of one column. If it has several,
# draft it again with --delimiter and the character between two values.
";

const PRIVACY_SECTION: &str = "
# Who is protected. unit = \"row\": every row is somebody else. When one person has several rows, name the column that
# tells whose row it is, and how many of them may count: unit = { column = \"patient_id\", rows_max = 4 }.
# adjacency = \"add-remove\" hides whether somebody is in the table at all; \"replace\" only what is recorded there.
[privacy]
unit = \"row\"
adjacency = \"add-remove\"
# rows = 10_000  # about how many rows there are, if that is public; else it is bought with some of the budget
";

/// What dates and times of a typed table are read as.
const IN_DAYS: &str = ", in days since 1970-01-01 (20000 is 2024-10-04)";
const IN_SECONDS: &str = ", in seconds since 1970-01-01 (1700000000 is 2023-11-14)";

const TARGET_TO_FILL_IN: &str = "# fill in one of these two; of two classes, the last is the positive one:
# classes = [\"no\", \"yes\"]
# bounds = [0, 100]
";

const OF_TWO_CLASSES: &str = "# of two classes, the last is the positive one:\n";

const FEATURES_SECTION: &str = "
# What it is predicted from. A value beyond its bounds counts as the nearer bound, one that is not listed as \"other\".
# Delete the lines of columns that are not to be used, such as names and row numbers.
[features]
";
