//! Results as text for a person and as JSON for a machine. Everything here is public.

/// Writing to a `String` does not fail.
macro_rules! line {
    ($text:expr, $($argument:tt)*) => {
        writeln!($text, $($argument)*).expect("a string grows")
    };
}

mod evaluation;
mod ledger;
mod model;
mod plan;
mod schema;

pub(crate) use self::evaluation::{comparison, evaluation, evaluation_json};
pub(crate) use self::ledger::{account, account_json, entry_json, late_limit, ledger};
pub(crate) use self::model::{claim, is_large, large_delta, model, not_private, remark};
pub(crate) use self::plan::plan;
pub(crate) use self::schema::schema;

/// Text of a file that somebody else may have written: control characters stay out of the terminal.
fn printable(text: &str) -> String {
    let shown = |character: char| {
        if character.is_control() { character.escape_default().to_string() } else { character.to_string() }
    };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn control_characters_are_spelt_out() {
        assert_eq!(printable("a\u{1b}[2J\nß"), "a\\u{1b}[2J\\nß");
    }
}
