//! First lines that look like a row: they are not written into a schema as if they were names.

use std::path::Path;

use reticent_core::schema::MISSING_DEFAULT;

use super::foreign_numbers::{is_separated, unit};
use crate::source::{SourceError, is_number, refuse_delimiter_note};

/// Refuses a first line that may be a row, or stand above the header. It is not quoted.
pub(super) fn refuse(path: &Path, names: &[String]) -> Result<(), SourceError> {
    refuse_delimiter_note(path, names)?;
    doubt(names).map_or(Ok(()), |reason| Err(SourceError::HeaderDoubtful { path: path.to_owned(), reason }))
}

/// What is unlike a header.
fn doubt(names: &[String]) -> Option<&'static str> {
    if names.first().is_some_and(|name| name.starts_with(['@', '%'])) {
        return Some("it begins as ARFF files do, which are not read; turn it into CSV");
    }
    // A name such as `#chrom`, or the sign alone, may begin a header.
    let is_comment =
        |name: &String| name.starts_with("# ") || name.starts_with("##") || names.len() == 1 && name.starts_with('#');
    if names.first().is_some_and(is_comment) {
        return Some("it begins with # as a comment does; remove that line from the file if it is one");
    }
    if names.iter().any(|name| name.contains(char::REPLACEMENT_CHARACTER)) {
        return Some("it has letters that are not UTF-8; save the file as UTF-8");
    }
    if names.iter().any(|name| is_number(name) || is_foreign_number(name)) {
        return Some("it has a number where a name is expected");
    }
    if names.iter().any(|name| is_date(name)) {
        return Some("it has a date where a name is expected");
    }
    let is_pair = |word: &str| word.split_once(':').is_some_and(|(index, value)| is_number(index) && is_number(value));
    if names.iter().flat_map(|name| name.split_ascii_whitespace()).any(is_pair) {
        return Some(
            "it has index:value pairs, as libsvm files do, whose schema has format = \"libsvm\" under [table]",
        );
    }
    // A table's first column may be a nameless row number.
    if names.iter().skip(1).any(|name| MISSING_DEFAULT.contains(&name.as_str())) {
        return Some("a name is missing in it");
    }
    None
}

/// A decimal comma, groups of thousands, or an amount of money. Other units do not count: `24h` and `95%` are names of columns, too.
fn is_foreign_number(name: &str) -> bool {
    let unsigned = name.strip_prefix(['-', '+']).unwrap_or(name);
    is_separated(unsigned) || unit(unsigned).is_some_and(|unit| unit.chars().all(is_currency))
}

fn is_currency(letter: char) -> bool {
    matches!(letter, '$' | '¢' | '£' | '¤' | '¥' | '฿' | '\u{20a0}'..='\u{20cf}')
}

/// A day in figures, perhaps with a time of day: `2021-08-06`, `06.08.2021`, `8/6/21`, `2021-08-06T12:30:00Z`.
fn is_date(name: &str) -> bool {
    let day = match name.split_once(['T', ' ']) {
        Some((day, time)) if time.starts_with(|letter: char| letter.is_ascii_digit()) && time.contains(':') => day,
        Some(_) => return false,
        None => name,
    };
    let is_of_day = |part: &str| part.len() <= 2 && part.parse().is_ok_and(|number: u8| (1..=31).contains(&number));
    let is_year = |part: &str| matches!(part.len(), 2 | 4) && part.bytes().all(|byte| byte.is_ascii_digit());
    ['-', '.', '/'].into_iter().any(|separator| match day.split(separator).collect::<Vec<_>>()[..] {
        [first, middle, last] => {
            let begins_with_year = first.len() == 4 && is_year(first) && is_of_day(last);
            is_of_day(middle) && (begins_with_year || is_of_day(first) && is_year(last))
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_told_from_names() {
        for value in ["77,1", "-1.234,00", "1'000", "$12.50", "€5", "12,50 €", "-£3"] {
            assert!(is_foreign_number(value), "{value}");
        }
        for value in ["2021-08-06", "06.08.2021", "06/08/2021", "8/6/21", "2021/8/6", "2021-08-06 12:30"] {
            assert!(is_date(value), "{value}");
        }
        for name in [
            "age",
            "",
            "24h",
            "95%",
            "3 months",
            "#1",
            "18-64",
            "65+",
            "1.1 Age",
            "v1.2",
            "10.0.0.1",
            "2020-21",
            "Q1/2020",
            "1-2-3",
            "US$",
            "price $",
            "2021-08-06 at noon",
            "40-50-60",
            "2021-00-06",
        ] {
            assert_eq!(doubt(&[name.to_owned(), "age".to_owned()]), None, "{name}");
        }
    }
}
