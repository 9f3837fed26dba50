//! Options of the methods as flags, taken from the methods themselves: a new method needs no new word here.

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use reticent_fit::method::{self, Method};
use reticent_fit::options::{MethodOption, Options};

/// Name of the choice that lets public figures decide.
const AUTO: &str = "auto";

/// The method and its options, as they were given.
pub(crate) struct MethodChoice {
    /// `None` for `auto`.
    pub(crate) method: Option<&'static dyn Method>,
    pub(crate) options: Options,
}

impl MethodChoice {
    /// Lets public figures decide, without options.
    pub(crate) fn auto() -> Self {
        Self { method: None, options: Options::default() }
    }
}

/// Every option once, with the names of the methods that have it.
fn all_options() -> Vec<(&'static MethodOption, Vec<&'static str>)> {
    let mut all: Vec<(&'static MethodOption, Vec<&'static str>)> = Vec::new();
    for method in method::ALL {
        for option in method.options() {
            match all.iter_mut().find(|(known, _)| known.name == option.name) {
                Some((_, methods)) => methods.push(method.name()),
                None => all.push((option, vec![method.name()])),
            }
        }
    }
    all
}

impl Args for MethodChoice {
    fn augment_args(command: Command) -> Command {
        let mut help = String::from("Method; auto decides from public figures and says why in `plan`\n\n");
        for method in method::ALL {
            help.push_str(&format!("- {}: {}\n", method.name(), method.summary()));
        }
        let names = std::iter::once(AUTO).chain(method::ALL.iter().map(|method| method.name()));
        let method = Arg::new("method")
            .long("method")
            .value_name("METHOD")
            .value_parser(PossibleValuesParser::new(names))
            .default_value(AUTO)
            .help(help.lines().next().unwrap_or_default().to_owned())
            .long_help(help.clone());
        all_options().into_iter().fold(command.arg(method), |command, (option, methods)| {
            command.arg(
                Arg::new(option.name)
                    .long(option.name)
                    .value_name(option.value)
                    .allow_negative_numbers(true)
                    .help(format!("{} ({})", option.help, methods.join(", ")))
                    .help_heading("Options of methods"),
            )
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for MethodChoice {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let named = matches.get_one::<String>("method").map_or(AUTO, String::as_str);
        let given = all_options()
            .into_iter()
            .filter_map(|(option, _)| matches.get_one::<String>(option.name).map(|value| (option.name, value.clone())));
        let options = given.fold(Options::default(), |options, (name, value)| options.with(name, value));
        Ok(Self { method: method::by_name(named), options })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
