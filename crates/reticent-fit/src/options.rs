//! What a caller chooses about a method, as text: one spelling for the command line, scripts and tests.

use std::collections::BTreeMap;

use crate::plan::PlanError;

/// A choice that a method offers. `--name` on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MethodOption {
    /// Its name, for example `learning-rate`.
    pub name: &'static str,
    /// What stands for its value in a help text.
    pub value: &'static str,
    /// One line of help, with the default.
    pub help: &'static str,
    /// The words that are allowed; empty where the value is a number.
    pub choices: &'static [&'static str],
}

/// The values that were given, by option name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options(BTreeMap<String, String>);

impl Options {
    /// Sets an option; a later value replaces an earlier one.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.0.insert(name.to_owned(), value.to_string());
        self
    }

    /// Refuses options that the method does not have, and words that an option does not know.
    ///
    /// # Errors
    /// [`PlanError::Parameter`] names the option and what is allowed.
    pub fn check(&self, method: &str, known: &[MethodOption]) -> Result<(), PlanError> {
        for (name, value) in &self.0 {
            let Some(option) = known.iter().find(|option| option.name == name) else {
                let names: Vec<String> = known.iter().map(|option| format!("--{}", option.name)).collect();
                let offered = if names.is_empty() { "no options".to_owned() } else { names.join(", ") };
                return Err(PlanError::Parameter(format!("method {method} has no option --{name}; it has {offered}")));
            };
            if !option.choices.is_empty() && !option.choices.contains(&value.as_str()) {
                let choices = option.choices.join(", ");
                return Err(PlanError::Parameter(format!("--{name} must be one of {choices}, not {value:?}")));
            }
        }
        Ok(())
    }

    /// The word given for an option.
    #[must_use]
    pub fn word(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The number given for an option; `rule` says in words what `allowed` tests.
    ///
    /// # Errors
    /// [`PlanError::Parameter`] when it is not such a number.
    pub fn number(&self, name: &str, rule: &str, allowed: impl Fn(f64) -> bool) -> Result<Option<f64>, PlanError> {
        let Some(text) = self.0.get(name) else { return Ok(None) };
        match text.trim().parse::<f64>() {
            Ok(number) if number.is_finite() && allowed(number) => Ok(Some(number)),
            Ok(_) | Err(_) => Err(PlanError::Parameter(format!("--{name} must be {rule}, not {text:?}"))),
        }
    }

    /// The whole number given for an option, within a range.
    ///
    /// # Errors
    /// [`PlanError::Parameter`] when it is not one.
    pub fn whole_number(&self, name: &str, range: std::ops::RangeInclusive<u32>) -> Result<Option<u32>, PlanError> {
        let Some(text) = self.0.get(name) else { return Ok(None) };
        match text.trim().parse::<u32>() {
            Ok(number) if range.contains(&number) => Ok(Some(number)),
            Ok(_) | Err(_) => {
                let (low, high) = (range.start(), range.end());
                Err(PlanError::Parameter(format!("--{name} must be between {low} and {high}, not {text:?}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [MethodOption; 2] = [
        MethodOption { name: "passes", value: "T", help: "", choices: &[] },
        MethodOption { name: "average", value: "WHICH", help: "", choices: &["all", "last-half"] },
    ];

    #[test]
    fn unknown_options_and_words_are_refused_by_name() {
        let refused = |options: Options| options.check("m", &KNOWN).expect_err("refused").to_string();
        assert_eq!(
            refused(Options::default().with("l2", 1)),
            "method m has no option --l2; it has --passes, --average"
        );
        assert_eq!(
            refused(Options::default().with("average", "none")),
            "--average must be one of all, last-half, not \"none\""
        );
        assert!(Options::default().with("average", "all").check("m", &KNOWN).is_ok());
    }

    #[test]
    fn numbers_outside_their_rule_are_refused() {
        let options = Options::default().with("passes", "0").with("l2", "nan");
        let error = options.whole_number("passes", 1..=9).expect_err("zero").to_string();
        assert_eq!(error, "--passes must be between 1 and 9, not \"0\"");
        let error = options.number("l2", "at least 0", |l2| l2 >= 0.0).expect_err("not a number").to_string();
        assert_eq!(error, "--l2 must be at least 0, not \"nan\"");
        assert_eq!(options.number("absent", "", |_| false), Ok(None));
    }
}
