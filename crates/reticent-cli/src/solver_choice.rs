//! `--solver` of regressions on labels elsewhere and what belongs to it, as flags: those that method `walr` has in one process.

use clap::{ArgMatches, Args, Command, FromArgMatches};
use reticent_fit::method::Method;
use reticent_fit::method::walr::{NAME, Walr};
use reticent_fit::options::Options;

use crate::option_flags::{self, Owner};

/// The solver, and with `STEPS` what may be chosen about its steps: whoever makes weights chooses the solver alone.
pub(crate) struct SolverChoice<const STEPS: bool>(pub(crate) Options);

impl<const STEPS: bool> SolverChoice<STEPS> {
    fn owner() -> Owner {
        let all = Walr.options();
        let solver = all.iter().position(|option| option.name == "solver").expect("the method has solvers");
        (NAME, if STEPS { all } else { &all[solver..=solver] })
    }
}

impl<const STEPS: bool> Args for SolverChoice<STEPS> {
    fn augment_args(command: Command) -> Command {
        option_flags::add(command, "Options of the solver", [Self::owner()])
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const STEPS: bool> FromArgMatches for SolverChoice<STEPS> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self(option_flags::given(matches, [Self::owner()])))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
