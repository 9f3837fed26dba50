//! `cargo xtask test`: everything that a change must pass, in the order in which it fails fastest.

use std::process::Command;

use crate::assure::{self, AssureArguments};
use crate::{instructions, root, say};

pub(crate) fn run() -> Result<(), String> {
    cargo(&["fmt", "--all", "--check"], &[])?;
    cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "--deny", "warnings"], &[])?;
    cargo(&["test", "--workspace", "--locked", "--no-fail-fast"], &[])?;
    cargo(
        &["doc", "--workspace", "--no-deps", "--locked", "--document-private-items"],
        &[("RUSTDOCFLAGS", "--deny warnings")],
    )?;
    // The product as it is shipped: without `danger`, which a release build refuses to compile.
    cargo(&["run", "--release", "--locked", "--", "demo"], &[])?;
    if instructions::can_count() {
        cargo(&["run", "--release", "--locked", "--quiet", "--package", "xtask", "--", "instructions"], &[])?;
    } else {
        say("instructions are not counted here: that takes valgrind and AVX2");
    }
    // Runs some of the tests once more, for their figures.
    assure::run(&AssureArguments::default())?;
    say("all passed");
    Ok(())
}

fn cargo(arguments: &[&str], environment: &[(&str, &str)]) -> Result<(), String> {
    let line = format!("cargo {}", arguments.join(" "));
    say(&format!("$ {line}"));
    let status = Command::new(env!("CARGO"))
        .args(arguments)
        .envs(environment.iter().copied())
        .current_dir(root())
        .status()
        .map_err(|error| format!("{line}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{line}: {status}")) }
}
