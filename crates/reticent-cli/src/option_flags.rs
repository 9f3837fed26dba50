//! Options that methods and combiners offer, as flags: taken from them, so that a new one needs no new word here.

use clap::{Arg, ArgMatches, Command};
use reticent_fit::options::{MethodOption, Options};

/// A method or combiner: its name, and what may be chosen about it.
pub(crate) type Owner = (&'static str, &'static [MethodOption]);

/// An option of one or more owners.
struct OptionFlag {
    name: &'static str,
    value: &'static str,
    /// What it means, and for whom; owners that say the same stand together.
    helps: Vec<(&'static str, Vec<&'static str>)>,
}

impl OptionFlag {
    fn help(&self) -> String {
        let line = |(help, owners): &(&str, Vec<&str>)| format!("{help} ({})", owners.join(", "));
        self.helps.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// Every option once.
fn flags(owners: impl IntoIterator<Item = Owner>) -> Vec<OptionFlag> {
    let mut flags: Vec<OptionFlag> = Vec::new();
    for (owner, options) in owners {
        for option in options {
            let place = flags.iter().position(|flag| flag.name == option.name).unwrap_or_else(|| {
                flags.push(OptionFlag { name: option.name, value: option.value, helps: Vec::new() });
                flags.len() - 1
            });
            let helps = &mut flags[place].helps;
            match helps.iter_mut().find(|(known, _)| *known == option.help) {
                Some((_, owners)) => owners.push(owner),
                None => helps.push((option.help, vec![owner])),
            }
        }
    }
    flags
}

/// Adds a flag for every option, under this heading.
pub(crate) fn add(command: Command, heading: &'static str, owners: impl IntoIterator<Item = Owner>) -> Command {
    flags(owners).into_iter().fold(command, |command, flag| {
        command.arg(
            Arg::new(flag.name)
                .long(flag.name)
                .value_name(flag.value)
                .allow_negative_numbers(true)
                .help(flag.help())
                .help_heading(heading),
        )
    })
}

/// The options that were given.
pub(crate) fn given(matches: &ArgMatches, owners: impl IntoIterator<Item = Owner>) -> Options {
    let values = flags(owners)
        .into_iter()
        .filter_map(|flag| matches.get_one::<String>(flag.name).map(|value| (flag.name, value.clone())));
    values.fold(Options::default(), |options, (name, value)| options.with(name, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use reticent_fit::method;
    use reticent_fit::party::Combiner;

    #[test]
    fn help_says_what_an_option_means_to_each_of_its_owners() {
        let methods: Vec<Owner> = method::ALL.iter().map(|method| (method.name(), method.options())).collect();
        let combiners = Combiner::ALL.map(|combiner| (combiner.name(), combiner.options()));
        for owners in [&methods[..], &combiners[..]] {
            let flags = flags(owners.iter().copied());
            for (owner, options) in owners {
                for option in *options {
                    let flag = flags.iter().find(|flag| flag.name == option.name).expect("every option has a flag");
                    let help = flag.help();
                    let line = help.lines().find(|line| line.starts_with(option.help)).expect("its own words");
                    assert!(line[option.help.len()..].contains(owner), "{owner}: {line}");
                    assert!(!option.help.contains('\n'), "one line");
                }
            }
        }
    }
}
