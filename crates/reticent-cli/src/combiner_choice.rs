//! `--combiner` and the options of the combiners, as flags.

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use reticent_fit::options::Options;
use reticent_fit::party::Combiner;

use crate::option_flags::{self, Owner};

/// The combiner and its options, as they were given.
pub(crate) struct CombinerChoice {
    pub(crate) combiner: Combiner,
    pub(crate) options: Options,
}

fn owners() -> impl Iterator<Item = Owner> {
    Combiner::ALL.into_iter().map(|combiner| (combiner.name(), combiner.options()))
}

impl Args for CombinerChoice {
    fn augment_args(command: Command) -> Command {
        let help = "How votes become a model";
        let summaries: String =
            Combiner::ALL.iter().map(|combiner| format!("\n- {}: {}", combiner.name(), combiner.summary())).collect();
        let combiner = Arg::new("combiner")
            .long("combiner")
            .value_name("COMBINER")
            .value_parser(PossibleValuesParser::new(Combiner::ALL.map(Combiner::name)))
            .default_value(Combiner::ALL[0].name())
            .help(help)
            .long_help(format!("{help}\n{summaries}"));
        option_flags::add(command.arg(combiner), "Options of combiners", owners())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for CombinerChoice {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let named = matches.get_one::<String>("combiner");
        let combiner = Combiner::ALL.into_iter().find(|combiner| named.is_some_and(|named| named == combiner.name()));
        let combiner = combiner.expect("it has a default, and clap lets only these names through");
        Ok(Self { combiner, options: option_flags::given(matches, owners()) })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
