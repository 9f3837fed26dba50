//! One table of the schema's text: how it is opened, its keys are checked and its values read, each with its line.

use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use super::reader::TextReader;
use crate::schema::nearest_name::did_you_mean;
use crate::schema::{number_spelling, toml_key, toml_string};

/// One table of the text, with its place and the line of each key.
pub(super) struct Section<'t> {
    pub(super) place: String,
    pub(super) entries: Vec<Entry<'t>>,
}

#[derive(Clone, Copy)]
pub(super) struct Entry<'t> {
    pub(super) key: &'t str,
    pub(super) value: &'t Spanned<DeValue<'t>>,
}

impl<'t> Section<'t> {
    pub(super) fn get(&self, key: &str) -> Option<Entry<'t>> {
        self.entries.iter().copied().find(|entry| entry.key == key)
    }

    pub(super) fn place_of(&self, key: &str) -> String {
        let key = toml_key(key);
        if self.place.is_empty() { key } else { format!("{}.{key}", self.place) }
    }
}

impl TextReader {
    pub(super) fn bounds(&mut self, section: &Section<'_>, entry: Entry<'_>) -> Option<(f64, f64)> {
        let place = section.place_of(entry.key);
        if let Some([low, high]) = entry.value.get_ref().as_array().map(|items| &items[..])
            && let (Some(low), Some(high)) = (number_of(low.get_ref()), number_of(high.get_ref()))
        {
            return Some((low, high));
        }
        let items = entry.value.get_ref().as_array().map_or(&[][..], |items| &items[..]);
        self.add(
            &place,
            if items.iter().any(|item| matches!(item.get_ref(), DeValue::Datetime(_))) {
                "has a date; write days since 1970-01-01, or seconds for a timestamp, as Parquet is read: 2020-01-01 is 18262 days"
            } else {
                "is not two numbers; write the smallest and the largest plausible value: bounds = [0, 100]"
            },
        );
        None
    }

    pub(super) fn spellings(&mut self, section: &Section<'_>, entry: Entry<'_>) -> Option<Vec<String>> {
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
    pub(super) fn spellings_of<'s, 'v: 's>(
        &mut self,
        place: &str,
        items: impl Iterator<Item = &'s Spanned<DeValue<'v>>>,
    ) -> Option<Vec<String>> {
        let read: Vec<Option<String>> =
            items.enumerate().map(|(index, item)| self.spelling(&format!("{place}[{index}]"), item)).collect();
        read.into_iter().collect()
    }

    pub(super) fn spelling(&mut self, place: &str, item: &Spanned<DeValue<'_>>) -> Option<String> {
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

    pub(super) fn texts(&mut self, section: &Section<'_>, entry: Entry<'_>) -> Option<Vec<String>> {
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

    pub(super) fn required_text(&mut self, section: &Section<'_>, key: &str, hint: &str) -> Option<String> {
        match section.get(key) {
            Some(entry) => self.text(section, entry),
            None => {
                self.add(&section.place_of(key), format!("is missing; {hint}"));
                None
            }
        }
    }

    pub(super) fn text(&mut self, section: &Section<'_>, entry: Entry<'_>) -> Option<String> {
        let text = entry.value.get_ref().as_str().map(str::to_owned);
        if text.is_none() {
            let message = format!("is {}; write text in quotes", described(entry.value.get_ref()));
            self.add(&section.place_of(entry.key), message);
        }
        text
    }

    pub(super) fn boolean(&mut self, section: &Section<'_>, entry: Entry<'_>) -> Option<bool> {
        let boolean = entry.value.get_ref().as_bool();
        if boolean.is_none() {
            let message = format!("is {}; write true or false", described(entry.value.get_ref()));
            self.add(&section.place_of(entry.key), message);
        }
        boolean
    }

    pub(super) fn number(&mut self, section: &Section<'_>, entry: Entry<'_>) -> Option<f64> {
        let number = number_of(entry.value.get_ref());
        if number.is_none() {
            let message = format!("is {}; write a number", described(entry.value.get_ref()));
            self.add(&section.place_of(entry.key), message);
        }
        number
    }

    pub(super) fn whole_number(&mut self, section: &Section<'_>, entry: Entry<'_>) -> Option<u64> {
        let value = entry.value.get_ref();
        let whole = value.as_integer().and_then(integer_of).and_then(|integer| u64::try_from(integer).ok());
        if whole.is_none() {
            let message = format!("is {}; write a whole number such as 40_000", described(value));
            self.add(&section.place_of(entry.key), message);
        }
        whole
    }

    pub(super) fn required_section<'t>(&mut self, root: &Section<'t>, name: &str, hint: &str) -> Option<Section<'t>> {
        if root.get(name).is_none() {
            self.add(name, format!("is missing; {hint}"));
        }
        self.optional_section(root, name)
    }

    pub(super) fn optional_section<'t>(&mut self, root: &Section<'t>, name: &str) -> Option<Section<'t>> {
        let entry = root.get(name)?;
        if let Some(table) = entry.value.get_ref().as_table() {
            return Some(self.section(name.to_owned(), table));
        }
        self.add(name, format!("is {}; write a section that starts with [{name}]", described(entry.value.get_ref())));
        None
    }

    /// Opens a table: its entries in the order of the text, and the line of each.
    pub(super) fn section<'t>(&mut self, place: String, table: &'t DeTable<'t>) -> Section<'t> {
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
    pub(super) fn refuse_unknown_keys(&mut self, section: &Section<'_>, known: &[&str]) -> bool {
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
}

fn integer_of(integer: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

fn number_of(value: &DeValue<'_>) -> Option<f64> {
    match value {
        // Digits beyond 64 bits are a number all the same, whose size is for the rules to judge.
        DeValue::Integer(integer) => {
            integer_of(integer).map_or_else(|| integer.as_str().parse().ok(), |integer| Some(integer as f64))
        }
        DeValue::Float(float) => float.as_str().parse().ok(),
        DeValue::String(_) | DeValue::Boolean(_) | DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

/// A value in a message: short ones as they stand, others by their kind.
pub(super) fn described(value: &DeValue<'_>) -> String {
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
