//! Results as text for a person and as JSON for a machine. Everything here is public.

use std::path::Path;

use serde_json::Value;

/// Writing to a `String` does not fail.
macro_rules! line {
    ($text:expr, $($argument:tt)*) => {
        writeln!($text, $($argument)*).expect("a string grows")
    };
}

mod claim;
mod evaluation;
mod ledger;
mod model;
mod plan;
mod schema;

pub(crate) use self::claim::{Claim, is_large, weak_claim};
pub(crate) use self::evaluation::{comparison, evaluation, evaluation_json};
pub(crate) use self::ledger::{account, account_json, account_json_at, entry_json, late_limit, ledger};
pub(crate) use self::model::{model, not_private, remark};
pub(crate) use self::plan::plan;
pub(crate) use self::schema::schema;

/// The name of a file in a document: as `Display` gives it, since text in JSON is Unicode and a name need not be. A document of what was
/// paid for must not fail for the folder that it is in.
pub(crate) fn path_json(path: &Path) -> Value {
    path.to_string_lossy().into()
}

/// The same as text: what a name has of control characters stays out of the terminal, and of the lines that a script reads.
pub(crate) fn path_text(path: &Path) -> String {
    printable(&path.to_string_lossy())
}

/// Text of a file that somebody else may have written: control characters stay out of the terminal, and so do those that turn the
/// direction of what follows.
pub(crate) fn printable(text: &str) -> String {
    let shown = |character: char| {
        if character.is_control() || is_direction(character) {
            character.escape_default().to_string()
        } else {
            character.to_string()
        }
    };
    text.chars().map(shown).collect()
}

/// A message of several lines: the same, but for ends of lines.
pub(crate) fn printable_lines(text: &str) -> String {
    text.split('\n').map(printable).collect::<Vec<_>>().join("\n")
}

/// Marks, embeddings, overrides and isolates of Unicode's algorithm for text in two directions (UAX 9).
fn is_direction(character: char) -> bool {
    matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::{printable, printable_lines};

    #[test]
    fn control_characters_are_spelt_out() {
        assert_eq!(printable("a\u{1b}[2J\nß"), "a\\u{1b}[2J\\nß");
        assert_eq!(printable("a\u{202e}csv"), "a\\u{202e}csv");
        assert_eq!(printable_lines("a\u{1b}\n b\u{7}"), "a\\u{1b}\n b\\u{7}");
    }
}
