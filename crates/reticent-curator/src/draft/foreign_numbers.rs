//! Numbers of a public table that are not written as numbers are read: `12,5`, `1.234,00`, `5 kg`, and dates.

/// How many values of a column look like numbers in such a spelling.
#[derive(Default)]
pub(super) struct ForeignNumbers {
    separated: u64,
    with_unit: u64,
    dates: u64,
    /// What stands beside the first number that has something beside it.
    unit: Option<String>,
}

impl ForeignNumbers {
    /// Takes a value into account that is not read as a number.
    pub(super) fn observe(&mut self, text: &str) {
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        if is_separated(unsigned) {
            self.separated += 1;
        } else if is_date(unsigned) {
            self.dates += 1;
        } else if let Some(unit) = unit(unsigned)
            && self.unit.get_or_insert_with(|| unit.to_owned()) == unit
        {
            self.with_unit += 1;
        }
    }

    /// What to say of a column with so many values that are read as numbers and so many that are not, where nearly all look like numbers.
    pub(super) fn hint(&self, numbers: u64, others: u64) -> Option<&'static str> {
        let foreign = self.separated + self.with_unit + self.dates;
        let are_nearly_all = 10 * (numbers + foreign) >= 9 * (numbers + others);
        let hints = [(self.separated, SEPARATED), (self.with_unit, WITH_UNIT), (self.dates, DATES)];
        let (_, hint) = hints.into_iter().rev().max_by_key(|(count, _)| *count).expect("three");
        (foreign > 0 && are_nearly_all).then_some(hint)
    }
}

const SEPARATED: &str = "has values that look like numbers with a decimal comma or with separators (12,5 or 1.234,00), which are not read \
                         as numbers: write them as 12.5 and 1234 in the file, and bounds = [low, high] here";
const WITH_UNIT: &str = "has values that look like numbers with something beside them (5 kg, 12 % or $5), which are not read as numbers: \
                         write the number alone in the file, and bounds = [low, high] here";

const DATES: &str = "has values that look like dates, which are not read as numbers: write them as a number in the file, such as a year or the \
                     days since a fixed one, and bounds = [low, high] here";

/// Three numbers with two equal signs between them, the year in four digits first or last, perhaps with a time behind.
pub(super) fn is_date(text: &str) -> bool {
    let day = text.split(['T', ' ']).next().unwrap_or(text);
    ['-', '.', '/'].into_iter().any(|sign| {
        let parts: Vec<&str> = day.split(sign).collect();
        let are_digits = parts.iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
        let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
        are_digits && matches!(lengths[..], [4, 1..=2, 1..=2] | [1..=2, 1..=2, 2 | 4])
    })
}

/// A decimal comma, or groups of three digits, perhaps before a decimal sign of another kind.
pub(super) fn is_separated(text: &str) -> bool {
    let is_separator = |letter: char| matches!(letter, ',' | '.' | '\'' | '_' | ' ' | '\u{a0}' | '\u{202f}');
    let groups: Vec<&str> = text.split(is_separator).collect();
    let separators: Vec<char> = text.chars().filter(|letter| is_separator(*letter)).collect();
    let is_digits = |group: &&str| !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_digit());
    if !groups.iter().all(is_digits) {
        return false;
    }
    let are_thousands = |groups: &[&str]| groups[0].len() <= 3 && groups[1..].iter().all(|group| group.len() == 3);
    match separators[..] {
        [] => false,
        [','] => true,
        [_] => are_thousands(&groups),
        [first, .., last] if first == last => separators.iter().all(|one| *one == first) && are_thousands(&groups),
        [ref thousands @ .., last] => {
            let are_alike = thousands.iter().all(|one| *one == thousands[0]);
            are_alike && matches!(last, ',' | '.') && are_thousands(&groups[..thousands.len() + 1])
        }
    }
}

/// What stands behind a number, or before it where that is a sign such as that of a currency.
pub(super) fn unit(text: &str) -> Option<&str> {
    const UNIT_BYTES_MAX: usize = 12;
    let is_digit = |letter: char| letter.is_ascii_digit();
    let (first, last) = (text.find(is_digit)?, text.rfind(is_digit)?);
    let (before, number, after) = (text[..first].trim(), &text[first..=last], text[last + 1..].trim());
    let is_number = number.parse::<f64>().is_ok() || is_separated(number);
    let unit = match (before, after) {
        ("", unit) => unit,
        (sign, "") if !sign.chars().any(char::is_alphanumeric) => sign,
        _ => return None,
    };
    (is_number && !unit.is_empty() && unit.len() <= UNIT_BYTES_MAX).then_some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_and_units_are_told_from_words_and_codes() {
        for text in ["12,5", "0,25", "1,234", "1.234,00", "1,234.5", "1.234.567", "12 000", "1'234'567.25", "1_000_000"]
        {
            assert!(is_separated(text), "{text}");
        }
        for text in ["", "12", "1,2,3", "1.2.3", "2020.01.05", "12,", ",5", "1..000", "a,b", "1,234,5", "12 34"] {
            assert!(!is_separated(text), "{text}");
        }
        for (text, expected) in [("5 kg", "kg"), ("12%", "%"), ("1.5e3 m²", "m²"), ("€5", "€"), ("$ 1,234.50", "$")]
        {
            assert_eq!(unit(text), Some(expected), "{text}");
        }
        for text in ["north", "E11", "2020-01-05", "12:30", "5", "5 to 10 kg", "5 of all that there are"] {
            assert_eq!(unit(text), None, "{text}");
        }
    }

    #[test]
    fn dates_are_told_from_numbers_and_codes() {
        for text in ["2023-01-05", "5.1.2023", "31/12/99", "2023-01-05T12:30", "2023-01-05 12:30"] {
            assert!(is_date(text) && !is_separated(text), "{text}");
        }
        for text in ["12.5", "2023", "1.2.3.4", "123-45-678", "a-b-c", "2023-1", "1-2-3"] {
            assert!(!is_date(text), "{text}");
        }
        assert_eq!(seen(&["2023-01-05", "2023-02-05", "unknown"]).hint(0, 2), Some(DATES));
    }

    fn seen(texts: &[&str]) -> ForeignNumbers {
        let mut found = ForeignNumbers::default();
        texts.iter().for_each(|text| found.observe(text));
        found
    }

    #[test]
    fn a_hint_needs_nearly_all_values() {
        let found = seen(&["12,5", "-1,5", "3,25", "north"]);
        assert_eq!(found.hint(0, 4), None);
        assert_eq!(found.hint(6, 4), Some(SEPARATED));
        let found = seen(&["5 kg", "7 kg", "12A"]);
        assert_eq!(found.hint(0, 2), Some(WITH_UNIT));
        assert_eq!(found.hint(0, 3), None, "another unit is none");
        assert_eq!(ForeignNumbers::default().hint(0, 0), None);
    }
}
