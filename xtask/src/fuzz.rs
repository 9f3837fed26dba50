//! `cargo xtask fuzz`: runs the fuzz targets of `fuzz/`, one after the other, for some minutes of processor time each.
//!
//! ```text
//!   fuzz/corpus/NAME (kept) ─▶ target/fuzz/…/NAME, instrumented, with AddressSanitizer ─▶ fuzz/artifacts/NAME (findings)
//!                                 └─▶ target/fuzz/corpus/NAME: inputs that reached something new, for the next run
//! ```
//! It is what `cargo fuzz` does, without that tool: a nightly compiler is all that is needed. Processor time and not time is
//! counted, so that ten minutes are ten minutes on a busy machine, too.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;

use crate::{print, root, say};

#[derive(Args)]
pub(crate) struct FuzzArguments {
    /// Only these
    #[arg(long, value_name = "NAME")]
    target: Vec<String>,
    /// Minutes of processor time a target
    #[arg(long, value_name = "M", default_value_t = 10.0)]
    minutes: f64,
    /// Put the inputs that together reach all that was reached into `fuzz/corpus`, those of up to this many bytes
    #[arg(long, value_name = "BYTES")]
    keep: Option<u64>,
}

/// A target, the longest input that it is given, and the words that it is told.
struct Target {
    name: &'static str,
    bytes_max: u32,
    dictionary: Option<&'static str>,
}

/// All targets, as in `reticent_hostile::TARGETS`.
const TARGETS: [Target; 9] = [
    Target { name: "csv", bytes_max: 4096, dictionary: Some("csv") },
    Target { name: "parquet", bytes_max: 16_384, dictionary: None },
    Target { name: "libsvm", bytes_max: 4096, dictionary: Some("libsvm") },
    Target { name: "schema", bytes_max: 4096, dictionary: Some("schema") },
    Target { name: "model", bytes_max: 16_384, dictionary: Some("json") },
    Target { name: "votes", bytes_max: 2048, dictionary: Some("text") },
    Target { name: "weights", bytes_max: 4096, dictionary: Some("text") },
    Target { name: "releases", bytes_max: 8192, dictionary: Some("json") },
    Target { name: "ledger", bytes_max: 65_536, dictionary: Some("json") },
];

/// What the fuzzer measures by, the sanitizer, and the assertions that a release leaves out.
const FLAGS: [&str; 7] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Zsanitizer=address",
    "-Cdebug-assertions",
];

/// Seconds for one input, and megabytes in all: beyond, it is a finding.
const SECONDS_MAX: u32 = 60;
const MEGABYTES_MAX: u32 = 2048;

/// What a run came to.
struct Figures {
    executions: u64,
    seconds: f64,
    edges: u64,
    megabytes: u64,
    findings: Vec<PathBuf>,
}

pub(crate) fn run(arguments: &FuzzArguments) -> Result<(), String> {
    for name in &arguments.target {
        if !TARGETS.iter().any(|target| target.name == *name) {
            let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
            return Err(format!("no target is called {name}; there are {}", names.join(", ")));
        }
    }
    let machine = nightly_machine()?;
    let binaries = build(&machine)?;
    print("| target | executions | processor seconds | edges covered | peak memory [MB] | findings |");
    print("|---|---|---|---|---|---|");
    let mut findings = Vec::new();
    for target in &TARGETS {
        if !arguments.target.is_empty() && !arguments.target.iter().any(|name| name == target.name) {
            continue;
        }
        let figures = fuzz(target, &binaries, arguments.minutes * 60.0)?;
        let Figures { executions, seconds, edges, megabytes, findings: found } = figures;
        print(&format!("| {} | {executions} | {seconds:.0} | {edges} | {megabytes} | {} |", target.name, found.len()));
        findings.extend(found);
        if let Some(bytes_max) = arguments.keep {
            keep(target, &binaries, bytes_max)?;
        }
    }
    if findings.is_empty() {
        return Ok(());
    }
    let listed: Vec<String> = findings.iter().map(|path| path.display().to_string()).collect();
    Err(format!(
        "inputs that end in a panic, a broken memory rule, too much memory or too much time: {}; mend the defect and move the \
         input into fuzz/corpus",
        listed.join(", ")
    ))
}

/// The machine that the nightly compiler builds for.
fn nightly_machine() -> Result<String, String> {
    let missing =
        "fuzzing needs a nightly compiler: `rustup toolchain install nightly --profile minimal`, and a C++ compiler";
    let answer = Command::new("rustup").args(["run", "nightly", "rustc", "-vV"]).output();
    let answer = answer.ok().filter(|answer| answer.status.success()).ok_or(missing)?;
    let text = String::from_utf8_lossy(&answer.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: ")).ok_or(missing)?;
    Ok(host.to_owned())
}

/// Builds all targets; returns the folder of the binaries.
fn build(machine: &str) -> Result<PathBuf, String> {
    say("building the targets; the first time takes many minutes");
    let place = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from).join("fuzz");
    let built = Command::new("rustup")
        .args(["run", "nightly", "cargo", "build", "--release", "--bins", "--target", machine, "--manifest-path"])
        .arg(root().join("fuzz/Cargo.toml"))
        .env("RUSTFLAGS", FLAGS.join(" "))
        .env("CARGO_TARGET_DIR", &place)
        // Of the compiler that runs this chore.
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("CARGO")
        .env_remove("RUSTC")
        .status()
        .map_err(|error| format!("cargo: {error}"))?;
    if !built.success() {
        return Err("the targets do not build; libfuzzer-sys needs a C++ compiler (g++ or clang++)".to_owned());
    }
    Ok(place.join(machine).join("release"))
}

fn fuzz(target: &Target, binaries: &Path, seconds: f64) -> Result<Figures, String> {
    let (grown, kept, artifacts) = folders(target, binaries);
    for folder in [&grown, &kept, &artifacts] {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let before = listed(&artifacts)?;
    let place = grown.with_extension("log");
    let log = File::create(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    let mut command = Command::new(binaries.join(target.name));
    command
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg(format!("-max_len={}", target.bytes_max))
        .arg(format!("-timeout={SECONDS_MAX}"))
        .arg(format!("-rss_limit_mb={MEGABYTES_MAX}"))
        // A thread of a scope may still have its thread-local values when the leak check looks. What grows meets the limit.
        .args(["-print_final_stats=1", "-use_value_profile=1", "-detect_leaks=0"])
        .args(target.dictionary.map(|name| {
            format!("-dict={}", root().join("fuzz/dictionaries").join(name).with_extension("dict").display())
        }))
        .args([&grown, &kept])
        .stdout(Stdio::null())
        .stderr(log);
    if Path::new("/dev/shm").is_dir() {
        // Inputs are files for a moment.
        command.env("TMPDIR", "/dev/shm");
    }
    let mut child = command.spawn().map_err(|error| format!("{}: {error}", target.name))?;
    let used = wait(&mut child, seconds)?;
    let text = fs::read_to_string(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    let findings: Vec<PathBuf> = listed(&artifacts)?.into_iter().filter(|path| !before.contains(path)).collect();
    let figures = Figures {
        executions: figure(&text, "stat::number_of_executed_units:").ok_or_else(|| ended_early(&text, &place))?,
        seconds: used,
        edges: text.lines().rev().find_map(|line| figure(line, " cov:")).unwrap_or(0),
        megabytes: figure(&text, "stat::peak_rss_mb:").unwrap_or(0),
        findings,
    };
    Ok(figures)
}

/// Copies inputs that reach what no smaller kept one reaches.
fn keep(target: &Target, binaries: &Path, bytes_max: u64) -> Result<(), String> {
    let (grown, kept, _) = folders(target, binaries);
    let small = grown.with_extension("small");
    fs::create_dir_all(&small).map_err(|error| format!("{}: {error}", small.display()))?;
    for input in listed(&grown)? {
        let length = input.metadata().map_err(|error| format!("{}: {error}", input.display()))?.len();
        if length <= bytes_max {
            let copy = small.join(input.file_name().expect("a file has a name"));
            fs::copy(&input, &copy).map_err(|error| format!("{}: {error}", copy.display()))?;
        }
    }
    let merged = Command::new(binaries.join(target.name))
        .arg("-merge=1")
        .arg(format!("-max_len={}", target.bytes_max))
        .args([&kept, &small])
        .stderr(Stdio::null())
        .status();
    fs::remove_dir_all(&small).map_err(|error| format!("{}: {error}", small.display()))?;
    match merged {
        Ok(status) if status.success() => Ok(()),
        Ok(_) | Err(_) => Err(format!("the inputs of {} could not be merged", target.name)),
    }
}

/// Inputs of this machine, inputs of the repository, findings.
fn folders(target: &Target, binaries: &Path) -> (PathBuf, PathBuf, PathBuf) {
    let grown = binaries.join("corpus").join(target.name);
    let fuzz = root().join("fuzz");
    (grown, fuzz.join("corpus").join(target.name), fuzz.join("artifacts").join(target.name))
}

fn listed(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let entries = fs::read_dir(folder).map_err(failed)?;
    entries.map(|entry| Ok(entry.map_err(failed)?.path())).collect()
}

/// Waits for a fuzzer until it ends or has used its seconds of processor time; then asks it to end. Returns what it used.
fn wait(child: &mut Child, seconds: f64) -> Result<f64, String> {
    let start = Instant::now();
    let mut used = 0.0;
    let mut asked = false;
    loop {
        if child.try_wait().map_err(|error| error.to_string())?.is_some() {
            return Ok(used);
        }
        used = processor_seconds(child.id()).unwrap_or(start.elapsed().as_secs_f64()).max(used);
        if used >= seconds && !asked {
            asked = true;
            // It ends with its figures.
            let told = Command::new("kill").args(["-USR1", &child.id().to_string()]).status();
            if !told.is_ok_and(|status| status.success()) {
                child.kill().map_err(|error| error.to_string())?;
            }
        }
        thread::sleep(Duration::from_millis(500));
    }
}

/// Processor time of a process, where the system tells by a file: 14th and 15th field, in hundredths of a second.
fn processor_seconds(process: u32) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, after_name) = text.rsplit_once(')')?;
    let ticks = |place: usize| after_name.split_whitespace().nth(place)?.parse::<f64>().ok();
    Some((ticks(11)? + ticks(12)?) / 100.0)
}

/// The whole number after a label, the last one in the text.
fn figure(text: &str, label: &str) -> Option<u64> {
    let (_, after) = text.rsplit_once(label)?;
    after.split_whitespace().next()?.parse().ok()
}

fn ended_early(text: &str, log: &Path) -> String {
    let last: Vec<&str> = text.lines().rev().take(20).collect();
    format!(
        "the fuzzer ended without its figures; {}:\n{}",
        log.display(),
        last.into_iter().rev().collect::<Vec<_>>().join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_what_the_fuzzer_writes() {
        let text = "#8192\tpulse  cov: 12 ft: 40 corp: 7/70b\n#9\tNEW cov: 4567 ft: 99\nstat::number_of_executed_units: 81920\n\
                    stat::peak_rss_mb:              612\n";
        assert_eq!(figure(text, "stat::number_of_executed_units:"), Some(81_920));
        assert_eq!(figure(text, "stat::peak_rss_mb:"), Some(612));
        assert_eq!(text.lines().rev().find_map(|line| figure(line, " cov:")), Some(4567));
        assert_eq!(figure("no figures", "stat::peak_rss_mb:"), None);
    }

    #[test]
    fn every_target_is_a_binary_with_kept_inputs() {
        let manifest = fs::read_to_string(root().join("fuzz/Cargo.toml")).expect("the folder of the fuzzer");
        let manifest: toml::Table = manifest.parse().expect("a manifest is TOML");
        let binaries = manifest["bin"].as_array().expect("a list");
        let names: Vec<&str> = binaries.iter().filter_map(|binary| binary["name"].as_str()).collect();
        assert_eq!(names, TARGETS.map(|target| target.name));
        let hostile = fs::read_to_string(root().join("crates/reticent-hostile/src/lib.rs")).expect("the crate");
        for target in &TARGETS {
            assert!(hostile.contains(&format!("name: {:?}", target.name)), "{}", target.name);
            let inputs = listed(&root().join("fuzz/corpus").join(target.name)).expect("a folder of inputs");
            assert!(!inputs.is_empty(), "{}", target.name);
            let dictionary = target.dictionary.map(|name| root().join(format!("fuzz/dictionaries/{name}.dict")));
            assert!(dictionary.is_none_or(|path| path.is_file()), "{}", target.name);
        }
    }
}
