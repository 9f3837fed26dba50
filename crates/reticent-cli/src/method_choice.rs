//! `--method` and the options of the methods, as flags.

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use reticent_fit::method::{self, Method};
use reticent_fit::options::Options;

use crate::option_flags::{self, Owner};

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

fn owners() -> impl Iterator<Item = Owner> {
    method::ALL.iter().map(|method| (method.name(), method.options()))
}

impl Args for MethodChoice {
    fn augment_args(command: Command) -> Command {
        let help = "Method; auto decides from public figures and says why in `plan`";
        let summaries: String =
            method::ALL.iter().map(|method| format!("\n- {}: {}", method.name(), method.summary())).collect();
        let names = std::iter::once(AUTO).chain(method::ALL.iter().map(|method| method.name()));
        let method = Arg::new("method")
            .long("method")
            .value_name("METHOD")
            .value_parser(PossibleValuesParser::new(names))
            .default_value(AUTO)
            .help(help)
            .long_help(format!("{help}\n{summaries}"));
        option_flags::add(command.arg(method), "Options of methods", owners())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for MethodChoice {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let named = matches.get_one::<String>("method").map_or(AUTO, String::as_str);
        let method = (named != AUTO).then(|| method::by_name(named).expect("one of the possible values"));
        Ok(Self { method, options: option_flags::given(matches, owners()) })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
