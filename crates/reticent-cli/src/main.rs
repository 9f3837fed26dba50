//! The command `reticent`. Parse, run one command, turn its error into a message and an exit code.

use std::process::ExitCode;

mod args;
mod combiner_choice;
mod command;
mod failure;
mod files;
mod interrupt;
mod method_choice;
mod option_flags;
mod progress;
mod report;
mod solver_choice;
mod threads;

use clap::Parser;

fn main() -> ExitCode {
    failure::without_panic_contents(|| {
        let arguments = args::Arguments::parse();
        interrupt::listen()?;
        if arguments.command.reads_rows() {
            threads::start()?;
        }
        command::run(&arguments.command)
    })
}
