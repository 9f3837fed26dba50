//! How keys, texts, numbers and lists are spelt in TOML.

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

/// How to write the spellings of a list: bare when all are whole numbers or booleans as TOML writes them, else quoted.
pub(super) fn spelling_writer<'s>(mut spellings: impl Iterator<Item = &'s String>) -> fn(&str) -> String {
    let bare = |spelling: &String| {
        let whole: Result<i64, _> = spelling.parse();
        // Only what comes back as the same text: 01, +1 and 1.0 stay in quotes.
        spelling == "true" || spelling == "false" || whole.is_ok_and(|whole| whole.to_string() == *spelling)
    };
    if spellings.all(bare) { str::to_owned } else { toml_string }
}

pub(super) fn grouped(number: u64) -> String {
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

/// Long lists are broken before this column.
const LINE_WIDTH: usize = 100;

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
