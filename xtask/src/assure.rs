//! `cargo xtask assure`: the promises of `docs/assurance.md` put to the test, with a figure for each.
//!
//! The quick form is a part of `cargo xtask test`. The long one takes hours: every mutant, long runs of samplers, replay, audits
//! and ledger. A check that fails does not stop the others; its output is kept under `target/assure`.

use std::fs;
use std::process::Command;
use std::time::Instant;

use clap::Args;
use serde_json::Value;

use crate::{print, root, say};

#[derive(Args, Default)]
pub(crate) struct AssureArguments {
    /// Everything at its full size: hours
    #[arg(long)]
    long: bool,
    /// Only these checks
    #[arg(value_name = "CHECK")]
    checks: Vec<String>,
}

/// A promise and how it is tested.
struct Check {
    name: &'static str,
    promise: &'static str,
    /// Gives a figure a line.
    run: fn(Size) -> Result<Vec<String>, String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Size {
    Quick,
    Long,
}

const CHECKS: [Check; 9] = [
    Check {
        name: "replay",
        promise: "a neighbour changes nothing but answers, and those by no more than was declared",
        run: replay,
    },
    Check { name: "samplers", promise: "noise has its exact distribution, and a wrong one is refused", run: samplers },
    Check { name: "audits", promise: "fits of neighbours cannot be told apart better than claimed", run: audits },
    Check { name: "leaks", promise: "no channel but the releases depends on the rows", run: leaks },
    Check {
        name: "ledger",
        promise: "whatever fails, no charge that returned is lost and no limit passed",
        run: ledger,
    },
    Check { name: "hostile", promise: "a hostile file is read or refused, within bounded memory", run: hostile },
    Check { name: "mutants", promise: "a classic mistake turns a test red", run: mutants },
    Check { name: "memory", promise: "the code that the compiler cannot check does as it says", run: memory },
    Check { name: "supply", promise: "dependencies are licensed, chosen and built reproducibly", run: supply },
];

pub(crate) fn run(arguments: &AssureArguments) -> Result<(), String> {
    for name in &arguments.checks {
        if !CHECKS.iter().any(|check| check.name == *name) {
            let names: Vec<&str> = CHECKS.iter().map(|check| check.name).collect();
            return Err(format!("no check is called {name}; there are: {}", names.join(", ")));
        }
    }
    let size = if arguments.long { Size::Long } else { Size::Quick };
    let chosen = |check: &&Check| arguments.checks.is_empty() || arguments.checks.iter().any(|name| name == check.name);
    let mut table = vec!["| check | promise | figures | seconds | |".to_owned(), "|---|---|---|---|---|".to_owned()];
    let mut failed = Vec::new();
    for check in CHECKS.iter().filter(chosen) {
        say(&format!("{}: {}", check.name, check.promise));
        let start = Instant::now();
        let result = (check.run)(size);
        let seconds = start.elapsed().as_secs();
        let (figures, verdict) = match result {
            Ok(figures) => (figures, "holds"),
            Err(message) => {
                say(&format!("{}: {message}", check.name));
                failed.push(check.name);
                (vec!["-".to_owned()], "FAILS")
            }
        };
        let figures = figures.join("<br>");
        table.push(format!("| {} | {} | {figures} | {seconds} | {verdict} |", check.name, check.promise));
    }
    print(&table.join("\n"));
    if failed.is_empty() { Ok(()) } else { Err(format!("does not hold: {}", failed.join(", "))) }
}

fn replay(size: Size) -> Result<Vec<String>, String> {
    let cases = if size == Size::Long { "1500" } else { "50" };
    let told =
        cargo("replay", &["test", "--workspace", "--locked", "--test", "replay"], &[("RETICENT_REPLAY_CASES", cases)])?;
    let figures: Vec<String> =
        told.lines().filter(|line| line.contains(" pairs, ") && line.contains(" draws, ")).map(str::to_owned).collect();
    if figures.is_empty() { Err("nothing was replayed".to_owned()) } else { Ok(figures) }
}

fn hostile(size: Size) -> Result<Vec<String>, String> {
    let kept = passed(&cargo("hostile", &["test", "--workspace", "--locked", "--test", "hostile"], &[])?)?;
    let bombs = passed(&cargo("bombs", &["test", "--workspace", "--locked", "--test", "it", "bombs"], &[])?)?;
    let mut figures = vec![format!("kept inputs: {kept}"), format!("absurd sizes: {bombs}")];
    if size == Size::Long {
        let told = xtask("fuzz", &["fuzz", "--minutes", "10"])?;
        figures.extend(told.lines().filter(|line| line.starts_with("| ")).skip(1).map(|line| line.replace('|', " ")));
    }
    Ok(figures)
}

fn samplers(size: Size) -> Result<Vec<String>, String> {
    let mut arguments = vec!["test", "--workspace", "--locked", "--test", "stat"];
    let mut figures = vec![passed(&cargo("samplers", &arguments, &[])?)? + ", 2e6 draws a scale"];
    if size == Size::Long {
        arguments.extend(["--", "--ignored"]);
        figures.push(passed(&cargo("samplers-long", &arguments, &[])?)? + ", 2e7 draws a scale");
    }
    Ok(figures)
}

/// An audit: the command line after `reticent`, and the least share of the claim that its bound must reach in the long form.
/// Zero where no table attains the sensitivity that is paid for, so that only "not above the claim" can be asked.
struct Audit {
    line: &'static str,
    runs: [u32; 2],
    least_share: f64,
}

const AUDITS: [Audit; 14] = [
    Audit { line: "audit --method gram --scaling bounds --mu 1", runs: [2000, 20000], least_share: 0.85 },
    Audit { line: "audit --method walr --rows 30 --mu 1", runs: [2000, 20000], least_share: 0.85 },
    // More runs: a quarter of its `mu²` goes to releases that the attack does not look at.
    Audit { line: "audit --method noisy-gd --passes 10 --mu 1", runs: [4000, 20000], least_share: 0.85 },
    Audit { line: "audit --method noisy-gd-lecture --passes 10 --mu 1", runs: [2000, 20000], least_share: 0.85 },
    Audit { line: "audit --method noisy-gd-slides --passes 10 --mu 1", runs: [2000, 20000], least_share: 0.85 },
    Audit { line: "audit --method functional --noise gaussian --mu 1", runs: [2000, 20000], least_share: 0.85 },
    Audit { line: "audit --method functional --mu 1", runs: [500, 20000], least_share: 0.0 },
    Audit { line: "audit --method output-perturbation --mu 1", runs: [2000, 20000], least_share: 0.85 },
    Audit { line: "audit --method objective-perturbation --l2 100 --mu 1", runs: [2000, 20000], least_share: 0.85 },
    Audit { line: "audit --method objective-perturbation --mu 1", runs: [500, 20000], least_share: 0.0 },
    Audit { line: "party audit --combiner party-statistic --mu 1", runs: [2000, 20000], least_share: 0.85 },
    Audit {
        line: "party audit --combiner party-averaging --norm 1 --others 1 --mu 1",
        runs: [2000, 20000],
        least_share: 0.85,
    },
    Audit {
        line: "party audit --combiner party-soft-labels --penalty 10 --mu 1",
        runs: [500, 20000],
        least_share: 0.0,
    },
    Audit { line: "party audit --combiner party-majority --penalty 10 --mu 1", runs: [500, 20000], least_share: 0.0 },
];

fn audits(size: Size) -> Result<Vec<String>, String> {
    AUDITS
        .iter()
        .map(|audit| {
            let runs = audit.runs[usize::from(size == Size::Long)].to_string();
            let start = ["run", "--release", "--locked", "--quiet", "--"];
            // The quick form runs often: chance alone must not make it fail. At this confidence the bounds of the tight audits
            // have a mean of .70 to .74 of the claim and a standard deviation of at most .043.
            let confidence = if size == Size::Long { "0.999" } else { "0.99999" };
            let end = ["--json", "--runs", &runs, "--confidence", confidence];
            let arguments: Vec<&str> = start.into_iter().chain(audit.line.split(' ')).chain(end).collect();
            // Exit code 70, and so an error, when the bound is above the claim.
            let told = cargo("audits", &arguments, &[])?;
            let json = told.find('{').map_or("", |place| &told[place..]);
            let told: Value = serde_json::from_str(json.trim()).map_err(|error| format!("{}: {error}", audit.line))?;
            let share = told["lower_bound"]["mu_over_claim"].as_f64().ok_or("an audit without a bound")?;
            // Few runs bound loosely: half of it must be seen even so.
            let least = if size == Size::Long { audit.least_share } else { audit.least_share / 2.0 };
            if share < least {
                return Err(format!("audit {}: bound {share:.3} of the claim, and {least} was expected", audit.line));
            }
            Ok(format!("{}: at least {share:.3} of the claim, {runs} fits a neighbour", audit.line))
        })
        .collect()
}

fn leaks(_: Size) -> Result<Vec<String>, String> {
    Ok(vec![passed(&cargo("leaks", &["test", "--workspace", "--locked", "--test", "it", "leaks::"], &[])?)?])
}

fn ledger(size: Size) -> Result<Vec<String>, String> {
    let runs = if size == Size::Long { "10000" } else { "60" };
    let arguments = ["test", "--workspace", "--locked", "--test", "faults", "--", "--nocapture", "--test-threads=1"];
    let told = cargo("ledger", &arguments, &[("RETICENT_FAULT_RUNS", runs)])?;
    let figures = |line: &&str| line.contains(" runs, ") || line.starts_with("faults that struck");
    let figures: Vec<String> = told.lines().filter(figures).map(str::to_owned).collect();
    if figures.is_empty() { Err("no fault struck".to_owned()) } else { Ok(figures) }
}

fn mutants(size: Size) -> Result<Vec<String>, String> {
    if size == Size::Long {
        let told = xtask("mutants", &["mutants"])?;
        return Ok(told.lines().filter(|line| line.contains("mutants killed")).map(str::to_owned).collect());
    }
    cargo("mutants", &["test", "--workspace", "--locked", "--test", "mutants"], &[])?;
    let told = xtask("mutants", &["mutants", "--list"])?;
    Ok(told.lines().filter(|line| line.contains("that cannot be made")).map(str::to_owned).collect())
}

fn memory(size: Size) -> Result<Vec<String>, String> {
    let tidy = ["test", "--workspace", "--locked", "--test", "tidy", "three_files_alone"];
    let mut figures = vec![passed(&cargo("memory", &tidy, &[])?)? + ": three files may"];
    if size == Size::Long {
        let tests = ["--package", "reticent-curator", "--lib", "--test", "it", "--", "kernel::", "coded_rows::"];
        // Tables of full scale would take the interpreter hours.
        let interpreted = [&["miri", "test", "--locked"][..], &tests, &["--skip", "full_"]].concat();
        // It knows no file system of the machine, where failing properties would be kept. Some hundred times slower: fewer cases.
        let environment = [("MIRIFLAGS", "-Zmiri-disable-isolation"), ("PROPTEST_CASES", "16")];
        let told = nightly("miri", "miri", &interpreted, &environment)?;
        figures.push(passed(&told)? + ", portable kernel, interpreted by Miri");
        // A target of its own, so that build scripts and macros stay as they are.
        let target = "x86_64-unknown-linux-gnu";
        let sanitized = [&["test", "--locked", "--target", target][..], &tests].concat();
        // Two constants of SQLite's C code have one name, in functions of their own.
        let environment = [("RUSTFLAGS", "-Zsanitizer=address"), ("ASAN_OPTIONS", "detect_odr_violation=0")];
        let told = nightly("sanitizer", "miri", &sanitized, &environment)?;
        figures.push(passed(&told)? + ", every kernel of this machine, under AddressSanitizer");
    }
    Ok(figures)
}

fn supply(size: Size) -> Result<Vec<String>, String> {
    let tidy = ["test", "--workspace", "--locked", "--test", "tidy", "depend"];
    let mut figures = vec![passed(&cargo("supply", &tidy, &[])?)? + ": core's dependencies are those of the list"];
    if size == Size::Long {
        // Not the advisories: their database needs a network that this command may not have.
        let deny = ["deny", "--locked", "check", "licenses", "bans", "sources"];
        cargo("deny", &deny, &[]).map_err(|error| format!("{error}; cargo install cargo-deny --locked brings it"))?;
        figures.push("licences, bans and sources as deny.toml has them".to_owned());
        figures.push(reproducible()?);
    }
    Ok(figures)
}

/// Builds the program twice, in two folders, and compares the bytes.
fn reproducible() -> Result<String, String> {
    let place = root().join("target/assure/reproducible");
    if place.exists() {
        fs::remove_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    }
    let build = |name: &str| {
        let folder = place.join(name);
        let shown = folder.to_string_lossy().into_owned();
        let clone = Command::new("git").args(["clone", "--quiet", "."]).arg(&folder).current_dir(root()).status();
        if !clone.map_err(|error| format!("git clone: {error}"))?.success() {
            return Err("git clone failed".to_owned());
        }
        let manifest = format!("{shown}/Cargo.toml");
        let arguments = ["build", "--release", "--locked", "--package", "reticent-cli", "--manifest-path", &manifest];
        cargo(&format!("reproducible-{name}"), &arguments, &[("CARGO_TARGET_DIR", &format!("{shown}/target"))])?;
        fs::read(folder.join("target/release/reticent")).map_err(|error| format!("{shown}: {error}"))
    };
    let (one, other) = (build("one")?, build("other-folder")?);
    fs::remove_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    if one == other {
        Ok(format!("two builds of the last commit in two folders are the same {} bytes", one.len()))
    } else {
        Err("two builds of one commit differ".to_owned())
    }
}

/// Runs another chore. By cargo: the tests have put another build in the place of this program.
fn xtask(name: &str, arguments: &[&str]) -> Result<String, String> {
    let start = ["run", "--quiet", "--locked", "--package", "xtask", "--"];
    let all: Vec<&str> = start.iter().chain(arguments).copied().collect();
    cargo(name, &all, &[])
}

fn cargo(name: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Result<String, String> {
    output(name, Command::new(env!("CARGO")).args(arguments).envs(environment.iter().copied()))
}

/// As `cargo`, of the nightly toolchain, which knows the tools that look at memory.
fn nightly(name: &str, component: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Result<String, String> {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo"]).args(arguments).envs(environment.iter().copied());
    // Products of another compiler, in a place of their own.
    command.env("CARGO_TARGET_DIR", root().join(format!("target/assure/{name}")));
    // What the stable cargo has said to this program.
    command.env_remove("RUSTUP_TOOLCHAIN").env_remove("RUSTC").env_remove("CARGO");
    output(name, &mut command)
        .map_err(|error| format!("{error}; it needs `rustup toolchain install nightly --component {component}`"))
}

/// What a command says on both outputs; kept under `target/assure`.
fn output(name: &str, command: &mut Command) -> Result<String, String> {
    let line = format!("{command:?}");
    say(&format!("$ {line}"));
    let output = command.current_dir(root()).output().map_err(|error| format!("{line}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    let folder = root().join("target/assure");
    let log = folder.join(format!("{name}.log"));
    fs::create_dir_all(&folder).and_then(|()| fs::write(&log, text.as_bytes())).map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(text.into_owned())
    } else {
        Err(format!("{}; see {}", output.status, log.display()))
    }
}

/// How many tests passed, of all binaries of a run.
fn passed(told: &str) -> Result<String, String> {
    let counts = told.lines().filter_map(|line| line.strip_prefix("test result: ok. "));
    let passed: u32 = counts.filter_map(|rest| rest.split(' ').next()?.parse::<u32>().ok()).sum();
    if passed == 0 { Err("no test was run".to_owned()) } else { Ok(format!("{passed} tests passed")) }
}

#[cfg(test)]
mod tests {
    use reticent_fit::method;
    use reticent_fit::party::Combiner;

    use super::AUDITS;

    #[test]
    fn every_method_and_combiner_is_audited() {
        let names = method::ALL.iter().map(|method| method.name()).chain(Combiner::ALL.map(Combiner::name));
        for name in names {
            let audited = |line: &str| line.split(' ').any(|word| word == name);
            assert!(AUDITS.iter().any(|audit| audited(audit.line)), "{name}");
        }
    }
}
