//! From a value in the file to a cell: pure functions of the row's value and the public schema.
//!
//! Nothing here can fail, and nothing depends on another row: an unreadable value has a declared meaning instead of an
//! error, because an error that depends on a value is an output nobody paid for. The types that hold a row's values
//! have neither `Debug` nor `Display`, so that no message can quote one.
//!
//! Values in a text table are trimmed of ASCII whitespace, then:
//!
//! | value | numeric feature | categorical feature | class target | bounded target |
//! |---|---|---|---|---|
//! | within the bounds, or declared | itself | its index | its index | itself |
//! | outside the bounds, infinite | the nearer bound | – | – | the nearer bound |
//! | a spelling of missing, NaN | `missing` | `missing` | unusable | unusable |
//! | anything else, not UTF-8 included | `missing` | "other" | unusable | unusable |
//!
//! A declared category or class wins over the same text in `table.missing`. A hashed feature makes "missing" of a spelling of
//! missing or a typed NaN, and a bucket of everything else ([`hash_bucket`]).
//!
//! The same table must read alike from a text file and from a typed one. So text is compared with a declared spelling
//! as it stands; failing that as a number below 2^53 (`1`, `1.0`, `+1` and a typed 1 are one value; `01` is not a number
//! but a code); and failing that as a boolean (`true`, `True` and a typed true are one value, and so is 1 unless it is
//! declared itself).

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::schema::{Class, FeatureKind, Schema, TargetKind, number_spelling};

/// A value as a table's reader hands it over.
#[derive(Clone, Copy, PartialEq)]
pub enum RawValue<'a> {
    /// No value: a null of a typed table.
    Missing,
    /// The bytes of a text table's field, without quotes.
    Text(&'a [u8]),
    /// A number of a typed table.
    Number(f64),
    /// A boolean of a typed table.
    Boolean(bool),
}

/// A feature's value after the schema has been applied.
#[derive(Clone, Copy, PartialEq)]
pub enum Cell {
    /// A finite number within the feature's bounds.
    Number(f64),
    /// 0 for "other", otherwise 1 plus the place in the declared list; 0 for a missing value of a hashed feature, otherwise its
    /// bucket.
    Category(u32),
}

/// A target's value after the schema has been applied.
#[derive(Clone, Copy, PartialEq)]
pub enum Label {
    /// Place of the class in the declared list, from 0.
    Class(u16),
    /// A finite number within the target's bounds.
    Value(f64),
    /// Missing or unknown: the row contributes zero to every sum.
    Unusable,
}

impl Label {
    /// The number that stands for a usable label: the place of the class, or the value itself.
    #[must_use]
    pub fn number(self) -> Option<f64> {
        match self {
            Self::Class(class) => Some(f64::from(class)),
            Self::Value(value) => Some(value),
            Self::Unusable => None,
        }
    }
}

/// The values that a column of a typed table can hold, by its type alone, which is public.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ColumnValues {
    /// None at all.
    Nothing,
    /// False and true.
    Booleans,
    /// Whole numbers from `low` to `high`.
    WholeNumbers {
        /// The smallest.
        low: f64,
        /// The largest.
        high: f64,
    },
    /// Numbers with so many digits after the point.
    Decimals {
        /// Their number; below 0 as 0.
        digits: i8,
    },
    /// Any numbers.
    Numbers,
    /// Texts of a length.
    Texts {
        /// In bytes.
        length: usize,
    },
}

impl ColumnValues {
    fn holds_number(self, number: f64) -> bool {
        match self {
            Self::WholeNumbers { low, high } => number.fract().abs() <= 0.0 && (low..=high).contains(&number),
            Self::Decimals { digits } => {
                // Rust writes a float with all digits that tell it from others, and without an exponent.
                let spelling = number.to_string();
                let found = spelling.split_once('.').map_or(0, |(_, digits)| digits.len());
                number.is_finite() && found <= usize::try_from(digits).unwrap_or(0)
            }
            Self::Numbers => true,
            Self::Nothing | Self::Booleans | Self::Texts { .. } => false,
        }
    }
}

/// Reads the values of one feature; built once from the schema.
pub struct FeatureReader {
    kind: FeatureReaderKind,
    missing: Arc<Spellings>,
}

/// Reads the values of the target; built once from the schema.
pub struct TargetReader {
    kind: TargetReaderKind,
    missing: Arc<Spellings>,
}

impl Schema {
    /// A reader for each feature, in order.
    #[must_use]
    pub fn feature_readers(&self) -> Vec<FeatureReader> {
        let missing = self.missing_spellings();
        let reader = |kind: &FeatureKind| FeatureReader { kind: kind.into(), missing: Arc::clone(&missing) };
        self.features().iter().map(|feature| reader(&feature.kind)).collect()
    }

    /// The reader of the target.
    #[must_use]
    pub fn target_reader(&self) -> TargetReader {
        TargetReader { kind: (&self.target().kind).into(), missing: self.missing_spellings() }
    }

    fn missing_spellings(&self) -> Arc<Spellings> {
        let spellings = self.table().missing.iter().map(|spelling| (spelling.as_str(), 0));
        Arc::new(Spellings::new(spellings, BooleanNumbers::Apart))
    }
}

impl FeatureReader {
    /// The bounds of a numeric feature all of whose numbers stand for themselves: the cell of a number that is not NaN
    /// is then the number clamped into them. None when a number is declared as a spelling of a missing value.
    #[must_use]
    pub fn bounds_of_plain_numbers(&self) -> Option<(f64, f64)> {
        match self.kind {
            FeatureReaderKind::Numeric { low, high, .. } if !self.missing.any_number => Some((low, high)),
            FeatureReaderKind::Numeric { .. }
            | FeatureReaderKind::Categorical { .. }
            | FeatureReaderKind::Hashed { .. } => None,
        }
    }

    /// How many of the declared categories a column of such values can hold; none where nothing is listed.
    #[must_use]
    pub fn categories_among(&self, values: ColumnValues) -> Option<usize> {
        match &self.kind {
            FeatureReaderKind::Categorical { categories, .. } => Some(categories.count_among(values)),
            FeatureReaderKind::Numeric { .. } | FeatureReaderKind::Hashed { .. } => None,
        }
    }

    /// The cell of a value.
    #[must_use]
    pub fn cell(&self, raw: RawValue<'_>) -> Cell {
        match &self.kind {
            FeatureReaderKind::Numeric { low, high, missing } => {
                Cell::Number(self.missing.number(raw).map_or(*missing, |number| number.clamp(*low, *high)))
            }
            FeatureReaderKind::Categorical { categories, missing } => {
                let raw = raw.trimmed();
                if let Some(index) = categories.find(raw) {
                    return Cell::Category(index);
                }
                Cell::Category(if self.missing.is_missing(raw) { *missing } else { 0 })
            }
            FeatureReaderKind::Hashed { buckets } => {
                let raw = raw.trimmed();
                Cell::Category(if self.missing.is_missing(raw) { 0 } else { raw.hash_bucket(*buckets) })
            }
        }
    }
}

impl TargetReader {
    /// How many of the declared classes a column of such values can hold; none for a number.
    #[must_use]
    pub fn classes_among(&self, values: ColumnValues) -> Option<usize> {
        match &self.kind {
            TargetReaderKind::Classes(classes) => Some(classes.count_among(values)),
            TargetReaderKind::Bounds { .. } => None,
        }
    }

    /// The label of a value.
    #[must_use]
    pub fn label(&self, raw: RawValue<'_>) -> Label {
        match &self.kind {
            TargetReaderKind::Bounds { low, high } => {
                self.missing.number(raw).map_or(Label::Unusable, |number| Label::Value(number.clamp(*low, *high)))
            }
            TargetReaderKind::Classes(classes) => {
                let class = classes.find(raw.trimmed()).and_then(|index| u16::try_from(index).ok());
                class.map_or(Label::Unusable, Label::Class)
            }
        }
    }
}

enum FeatureReaderKind {
    Numeric { low: f64, high: f64, missing: f64 },
    Categorical { categories: Spellings, missing: u32 },
    Hashed { buckets: u32 },
}

enum TargetReaderKind {
    Classes(Spellings),
    Bounds { low: f64, high: f64 },
}

impl From<&FeatureKind> for FeatureReaderKind {
    fn from(kind: &FeatureKind) -> Self {
        match kind {
            FeatureKind::Numeric { low, high, missing, log: _ } => {
                Self::Numeric { low: *low, high: *high, missing: *missing }
            }
            FeatureKind::Categorical { categories, missing } => {
                let indexed = categories.iter().map(String::as_str).zip(1..);
                let missing = u32::try_from(*missing).expect("a schema caps its columns");
                Self::Categorical { categories: Spellings::new(indexed, BooleanNumbers::Alike), missing }
            }
            FeatureKind::Hashed { buckets } => {
                Self::Hashed { buckets: u32::try_from(*buckets).expect("a schema caps its columns") }
            }
        }
    }
}

impl From<&TargetKind> for TargetReaderKind {
    fn from(kind: &TargetKind) -> Self {
        match kind {
            TargetKind::Bounds { low, high } => Self::Bounds { low: *low, high: *high },
            TargetKind::Classes(classes) => Self::Classes(Spellings::of_classes(classes)),
        }
    }
}

/// The bucket of a value, from 1: one more than the first eight bytes of its SHA-256, as a little-endian number, modulo the
/// number of buckets. Every machine and language finds the same.
#[must_use]
pub fn hash_bucket(value: &[u8], buckets: u32) -> u32 {
    let digest = Sha256::digest(value);
    let first = digest.first_chunk().expect("a digest has 32 bytes");
    let place = u64::from_le_bytes(*first) % u64::from(buckets.max(1));
    1 + u32::try_from(place).expect("below the number of buckets")
}

impl RawValue<'_> {
    /// [`hash_bucket`] of the value's text, numbers and booleans in their plainest spelling: `1`, `1.0` and a typed true are one
    /// value, `01` is a code and another. From 2^53 on, where floats are fewer than whole numbers, a text is hashed as it stands.
    fn hash_bucket(self, buckets: u32) -> u32 {
        let number = match self {
            Self::Missing => return 0,
            Self::Number(number) => Some(number),
            Self::Boolean(boolean) => Some(f64::from(boolean)),
            Self::Text(text) => parse_exact_number(text).or_else(|| parse_boolean(text).map(f64::from)),
        };
        match (number, self) {
            // All digits of a whole number, as a text has them.
            (Some(number), _) if number.abs() >= EXACT_BELOW => hash_bucket(number.to_string().as_bytes(), buckets),
            (Some(number), _) => hash_bucket(number_spelling(number).as_bytes(), buckets),
            (None, Self::Text(text)) => hash_bucket(text, buckets),
            (None, Self::Missing | Self::Number(_) | Self::Boolean(_)) => unreachable!("only a text may be no number"),
        }
    }

    fn trimmed(self) -> Self {
        match self {
            Self::Text(text) => Self::Text(text.trim_ascii()),
            Self::Missing | Self::Number(_) | Self::Boolean(_) => self,
        }
    }
}

/// Declared spellings, each with the index it stands for.
struct Spellings {
    exact: HashMap<Box<[u8]>, u32, BuildHasherDefault<SpellingHasher>>,
    /// By the bits of the number, `-0.0` being 0.0.
    numbers: HashMap<u64, u32, BuildHasherDefault<SpellingHasher>>,
    /// False, true.
    booleans: [Option<u32>; 2],
    /// Whether a readable number can be one of the spellings; if not, numbers need no look-up.
    any_number: bool,
}

/// Whether 0 and 1 stand for false and true where those are not declared themselves, and the other way round.
#[derive(Clone, Copy, PartialEq)]
enum BooleanNumbers {
    Alike,
    Apart,
}

/// What finds the index of the class that a text stands for, by the rules for a target's values.
pub fn class_finder(classes: &[Class]) -> impl Fn(&str) -> Option<usize> {
    let spellings = Spellings::of_classes(classes);
    move |text| spellings.find(RawValue::Text(text.as_bytes()).trimmed()).map(|index| index as usize)
}

impl Spellings {
    fn of_classes(classes: &[Class]) -> Self {
        let indexed = classes.iter().zip(0..);
        let spellings =
            indexed.flat_map(|(class, index)| class.spellings.iter().map(move |spelling| (spelling.as_str(), index)));
        Self::new(spellings, BooleanNumbers::Alike)
    }

    fn new<'s>(spellings: impl Iterator<Item = (&'s str, u32)>, boolean_numbers: BooleanNumbers) -> Self {
        let mut read =
            Self { exact: HashMap::default(), numbers: HashMap::default(), booleans: [None; 2], any_number: false };
        for (spelling, index) in spellings {
            read.exact.insert(spelling.as_bytes().into(), index);
            read.any_number |= parse_number(spelling.as_bytes()).is_some_and(|number| !number.is_nan());
            if let Some(number) = parse_number_not_code(spelling.as_bytes()) {
                // Of two declared spellings of a number the plain one stands for it: "1.1" before "1.10".
                let entry = read.numbers.entry(number_key(number));
                if number_spelling(number) == spelling {
                    entry.insert_entry(index);
                } else {
                    entry.or_insert(index);
                }
            }
            if let Some(boolean) = parse_boolean(spelling.as_bytes()) {
                read.booleans[usize::from(boolean)].get_or_insert(index);
            }
        }
        if boolean_numbers == BooleanNumbers::Alike {
            for (boolean, number) in [(0, number_key(0.0)), (1, number_key(1.0))] {
                match (read.booleans[boolean], read.numbers.get(&number)) {
                    (None, Some(index)) => read.booleans[boolean] = Some(*index),
                    (Some(index), None) => {
                        read.numbers.insert(number, index);
                    }
                    (None, None) | (Some(_), Some(_)) => {}
                }
            }
        }
        read
    }

    /// The index of a trimmed value, by spelling, then number, then boolean.
    fn find(&self, raw: RawValue<'_>) -> Option<u32> {
        match raw {
            RawValue::Missing => None,
            RawValue::Number(number) => self.find_number(number),
            RawValue::Boolean(boolean) => self.booleans[usize::from(boolean)],
            RawValue::Text(text) => {
                if let Some(index) = self.exact.get(text) {
                    return Some(*index);
                }
                if !self.numbers.is_empty()
                    && let Some(number) = parse_exact_number(text)
                {
                    return self.find_number(number);
                }
                parse_boolean(text).and_then(|boolean| self.booleans[usize::from(boolean)])
            }
        }
    }

    /// How many indices some value of a typed column can stand for.
    fn count_among(&self, values: ColumnValues) -> usize {
        let found: BTreeSet<u32> = match values {
            ColumnValues::Nothing => BTreeSet::new(),
            ColumnValues::Booleans => self.booleans.iter().flatten().copied().collect(),
            ColumnValues::WholeNumbers { .. } | ColumnValues::Decimals { .. } | ColumnValues::Numbers => {
                let held = self.numbers.iter().filter(|(bits, _)| values.holds_number(f64::from_bits(**bits)));
                held.map(|(_, index)| *index).collect()
            }
            ColumnValues::Texts { length } => {
                self.exact.iter().filter(|(spelling, _)| spelling.len() == length).map(|(_, index)| *index).collect()
            }
        };
        found.len()
    }

    fn find_number(&self, number: f64) -> Option<u32> {
        if number.is_nan() { None } else { self.numbers.get(&number_key(number)).copied() }
    }

    /// Whether a trimmed value is missing, these being the spellings of a missing value.
    fn is_missing(&self, raw: RawValue<'_>) -> bool {
        let absent = match raw {
            RawValue::Missing => true,
            RawValue::Number(number) => number.is_nan(),
            RawValue::Text(_) | RawValue::Boolean(_) => false,
        };
        absent || self.find(raw).is_some()
    }

    /// The number in a value, possibly infinite; `None` when it is missing or cannot be read as a number.
    fn number(&self, raw: RawValue<'_>) -> Option<f64> {
        // As most values of a typed table are: what follows says the same.
        if let RawValue::Number(number) = raw
            && !self.any_number
        {
            return (!number.is_nan()).then_some(number);
        }
        let raw = raw.trimmed();
        let number = match raw {
            RawValue::Missing => return None,
            RawValue::Number(number) => number,
            RawValue::Boolean(boolean) => return (!self.is_missing(raw)).then_some(f64::from(boolean)),
            RawValue::Text(text) => match parse_number(text) {
                Some(number) => number,
                None => {
                    let boolean = parse_boolean(text)?;
                    return (!self.is_missing(raw)).then_some(f64::from(boolean));
                }
            },
        };
        // The usual table has no number among its spellings of missing, and then a number needs no look-up.
        let listed = self.any_number
            && match raw {
                RawValue::Text(text) if is_code(text) => self.exact.contains_key(text),
                RawValue::Text(_) | RawValue::Number(_) | RawValue::Boolean(_) | RawValue::Missing => {
                    self.find_number(number).is_some()
                }
            };
        if number.is_nan() || listed { None } else { Some(number) }
    }
}

/// Rust's own grammar of decimal floats: a sign, digits, a point, an exponent, `inf`, `nan`; no underscores, no spaces.
fn parse_number(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// A number that stands for a category: neither NaN nor a code.
fn parse_number_not_code(text: &[u8]) -> Option<f64> {
    if is_code(text) { None } else { parse_number(text).filter(|number| !number.is_nan()) }
}

/// The same where floats tell whole numbers apart: beyond, an id of many digits is somebody else's id, and `12e345` a code that is no number.
fn parse_exact_number(text: &[u8]) -> Option<f64> {
    parse_number_not_code(text).filter(|number| number.abs() < EXACT_BELOW)
}

/// 2^53.
const EXACT_BELOW: f64 = 9_007_199_254_740_992.0;

/// Whether a text starts with a zero and another digit, as a post code may: equal to its own spelling only.
fn is_code(text: &[u8]) -> bool {
    let unsigned = text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text);
    matches!(unsigned, [b'0', second, ..] if second.is_ascii_digit())
}

fn parse_boolean(text: &[u8]) -> Option<bool> {
    if text.eq_ignore_ascii_case(b"true") {
        Some(true)
    } else if text.eq_ignore_ascii_case(b"false") {
        Some(false)
    } else {
        None
    }
}

fn number_key(number: f64) -> u64 {
    (number + 0.0).to_bits()
}

/// A hash by multiplication and folding, eight bytes at a time.
///
/// Unkeyed on purpose: the tables hold the schema's own words only, so a hostile row cannot lengthen a look-up beyond
/// what the schema's author wrote, and a look-up is made for every categorical value of the table.
#[derive(Default)]
struct SpellingHasher(u64);

impl Hasher for SpellingHasher {
    fn write(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            self.write_u64(u64::from_le_bytes(chunk.try_into().expect("chunks of eight")));
        }
        let rest = chunks.remainder();
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        // The odd constant is 2^64 divided by the golden ratio (Knuth, TAOCP 3, section 6.4). Both halves of the
        // product, because a float's few bits are its top ones and reach only the high half's low bits.
        let product = u128::from(self.0 ^ word) * 0x9E37_79B9_7F4A_7C15;
        self.0 = (product as u64) ^ (product >> 64) as u64;
    }

    fn write_usize(&mut self, length: usize) {
        self.write_u64(length as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests;
