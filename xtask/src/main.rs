//! Chores of the repository: `cargo xtask test`, `cargo xtask study`, `cargo xtask bench`, `cargo xtask assure`, `cargo xtask
//! mutants`, `cargo xtask fuzz`, `cargo xtask instructions`.

mod assure;
mod bench;
mod fuzz;
mod instructions;
mod mutants;
mod study;
mod test;

use std::process::{Command, ExitCode};

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Chores of the repository")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Format check, lints, every test, documentation: all that a change must pass
    Test,
    /// Accuracy on real data over random splits, by the commands that a user runs
    Study(study::StudyArguments),
    /// Speed and memory beside what a user would take instead
    Bench(bench::BenchArguments),
    /// The promises of docs/assurance.md put to the test, with a figure for each
    Assure(assure::AssureArguments),
    /// Mistakes that must turn a test red, made one at a time in a copy of the repository
    Mutants(mutants::MutantsArguments),
    /// Hostile files of every kind, made up for some minutes each; needs a nightly compiler
    Fuzz(fuzz::FuzzArguments),
    /// Machine instructions of the inner loops beside what they were; needs valgrind
    Instructions(instructions::InstructionsArguments),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().chore {
        Chore::Test => test::run(),
        Chore::Study(arguments) => study::run(&arguments),
        Chore::Bench(arguments) => bench::run(&arguments),
        Chore::Assure(arguments) => assure::run(&arguments),
        Chore::Mutants(arguments) => mutants::run(&arguments),
        Chore::Fuzz(arguments) => fuzz::run(&arguments),
        Chore::Instructions(arguments) => instructions::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            say(&format!("error: {message}"));
            ExitCode::FAILURE
        }
    }
}

/// A line for the person at the terminal.
#[allow(clippy::print_stderr, reason = "a chore talks to the person who runs it")]
fn say(line: &str) {
    eprintln!("{line}");
}

/// A line of results, for whoever reads or keeps stdout.
#[allow(clippy::print_stdout, reason = "the one place of the chores that writes results")]
fn print(line: &str) {
    println!("{line}");
}

/// A chore is a development build, with checks; one that measures is run again as what ships is built.
fn run_optimised() -> Result<(), String> {
    say("building with optimisation");
    let status = Command::new(env!("CARGO"))
        .args(["run", "--release", "--locked", "--quiet", "--package", "xtask", "--"])
        .args(std::env::args_os().skip(1))
        .current_dir(root())
        .status()
        .map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err("the measurement did not come to its end".to_owned()) }
}

/// The folder of the repository: where cargo was told to run this. A program that two checkouts share was compiled in one of them.
fn root() -> std::path::PathBuf {
    let xtask = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    std::path::Path::new(&xtask).parent().expect("xtask lies in the repository").to_owned()
}
