//! The known name that a mistyped one was meant to be: for messages about a schema's text, and about a file's header
//! (`source.rs` of `reticent-curator`, whose errors the command line prints).

use super::toml_string;

/// The most similar of the known names, if one is similar enough to be a slip: letters and digits count, case does not.
#[must_use]
pub fn nearest_name<'n>(given: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let plain = |name: &str| -> Vec<char> {
        name.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    let given = plain(given);
    // The table of distances grows with both names; a name that nobody can type is not mistyped, and one without letters is like no other.
    if given.is_empty() || given.len() > NEAREST_LETTERS_MAX {
        return None;
    }
    known
        .filter(|name| name.len() <= NEAREST_LETTERS_MAX && !plain(name).is_empty())
        .map(|name| (edit_distance(&given, &plain(name)), name))
        .filter(|(distance, _)| *distance <= given.len().div_ceil(4))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// `; did you mean "…"?` when one of the known names is near the given one, otherwise nothing.
pub(super) fn did_you_mean<'n>(given: &str, known: impl Iterator<Item = &'n str>) -> String {
    nearest_name(given, known).map_or_else(String::new, |name| format!("; did you mean {}?", toml_string(name)))
}

/// Number of letters to insert, delete or replace (Levenshtein).
fn edit_distance(first: &[char], second: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=second.len()).collect();
    for (row_index, left) in first.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], row_index + 1);
        for (column_index, right) in second.iter().enumerate() {
            let replaced = diagonal + usize::from(left != right);
            diagonal = row[column_index + 1];
            row[column_index + 1] = replaced.min(diagonal + 1).min(row[column_index] + 1);
        }
    }
    row[second.len()]
}

/// Letters of the longest name that is compared.
const NEAREST_LETTERS_MAX: usize = 400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_spellings_are_near_and_far_ones_are_not() {
        let known = ["bounds", "categories", "missing", "log"];
        for (given, told) in [
            ("bound", "; did you mean \"bounds\"?"),
            ("Categories", "; did you mean \"categories\"?"),
            ("mising", "; did you mean \"missing\"?"),
            ("colour", ""),
            ("x", ""),
            ("", ""),
        ] {
            assert_eq!(did_you_mean(given, known.into_iter()), told, "{given:?}");
        }
        assert_eq!(nearest_name("?", ["", "!"].into_iter()), None, "no letters");
        let letters = |word: &str| word.chars().collect::<Vec<char>>();
        assert_eq!(edit_distance(&letters("kitten"), &letters("sitting")), 3);
        assert_eq!(edit_distance(&letters(""), &letters("abc")), 3);
        assert_eq!(edit_distance(&letters("a"), &letters("ab")), 1);
        assert_eq!(edit_distance(&letters("ab"), &letters("b")), 1);
    }

    /// The distance of two names takes time and room for the letters of both.
    #[test]
    fn a_name_that_nobody_types_is_near_no_other() {
        let long = "a".repeat(400);
        assert_eq!(nearest_name(&long, ["b", &long].into_iter()), Some(long.as_str()));
        let longer = "a".repeat(401);
        assert_eq!(nearest_name(&longer, [longer.as_str()].into_iter()), None);
        assert_eq!(nearest_name(&long, [longer.as_str()].into_iter()), None);
    }
}
