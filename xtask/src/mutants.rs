//! `cargo xtask mutants`: makes the mistakes of `xtask/mutants.toml` one at a time and asks which test notices.
//!
//! ```text
//!   files of the repository ─▶ target/mutants/tree-N ─edit─▶ build one test binary ─▶ run it ─ red ─▶ killed, by which test
//!                                                     ▲                                  └ green ─▶ the next binary
//!                                                     └── likely killers first
//! ```
//! The checkout is never edited. What no test notices is a survivor, and an error; so is an edit that no longer fits or
//! does not compile.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::Value;

use crate::{root, say};

#[derive(Args)]
pub(crate) struct MutantsArguments {
    /// Say what there is, and run nothing
    #[arg(long)]
    list: bool,
    /// Only these
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Mutants at a time; each needs a tree and build products of its own, about 3 GB
    #[arg(long, value_name = "N", default_value_t = 1)]
    jobs: usize,
    /// Trust that the tests pass without a mutant
    #[arg(long)]
    skip_baseline: bool,
    /// Only the tests that the list names: a survivor may still be killed by another
    #[arg(long)]
    named_killers: bool,
    /// Instead of the list: what cargo-mutants makes up in these source files, or in all of core (hours)
    #[arg(long, value_name = "FILE", num_args = 0.., conflicts_with_all = ["list", "only", "jobs", "skip_baseline", "named_killers"])]
    generated: Option<Vec<String>>,
}

/// Test binaries in the order in which survivors of their own killers meet them.
const BINARIES: [&str; 10] = [
    "core lib",
    "core it",
    "curator lib",
    "curator it",
    "fit replay",
    "fit lib",
    "curator faults",
    "core stat",
    "fit it",
    "xtask tidy",
];

/// A mutant that hangs a test is noticed, too.
const PATIENCE: Duration = Duration::from_secs(900);

/// One entry of the list.
#[derive(Clone)]
struct Mutant {
    name: String,
    idea: String,
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    Edit(Edit),
    /// Why the mistake cannot be made.
    Impossible(String),
}

#[derive(Clone)]
struct Edit {
    file: String,
    old: String,
    new: String,
    killers: Vec<String>,
}

/// Small edits that nobody thought of, against the tests of their own crate alone. `.cargo/mutants.toml` says how.
fn run_generated(files: &[String]) -> Result<(), String> {
    let mut command = Command::new("cargo");
    let output = root().join("target/mutants/generated");
    fs::create_dir_all(&output).map_err(|error| format!("{}: {error}", output.display()))?;
    command.current_dir(root()).args(["mutants", "--output"]).arg(&output);
    let mut packages = BTreeSet::new();
    for file in files {
        let package = file.strip_prefix("crates/").and_then(|rest| rest.split_once("/src/"));
        let (Some((package, _)), true) = (package, root().join(file).is_file()) else {
            return Err(format!("{file} is no source file of a crate, as crates/reticent-core/src/units.rs is"));
        };
        packages.insert(package);
        command.args(["--file", file]);
    }
    if packages.is_empty() {
        packages.insert("reticent-core");
    }
    for package in packages {
        command.args(["--package", package]);
    }
    let status = command.status().map_err(|error| error.to_string())?;
    if status.success() {
        return Ok(());
    }
    Err("a mutant survived, or there is no cargo-mutants: cargo install --locked cargo-mutants cargo-nextest"
        .to_owned())
}

/// What became of an edit.
enum Outcome {
    Killed {
        by: String,
    },
    Survived,
    /// It does not compile, or does not fit: the list is wrong.
    Broken(String),
}

pub(crate) fn run(arguments: &MutantsArguments) -> Result<(), String> {
    if let Some(files) = &arguments.generated {
        return run_generated(files);
    }
    let all = read_list()?;
    for name in &arguments.only {
        if !all.iter().any(|mutant| mutant.name == *name) {
            return Err(format!("no mutant is called {name}; --list names them"));
        }
    }
    let chosen: Vec<Mutant> =
        all.into_iter().filter(|mutant| arguments.only.is_empty() || arguments.only.contains(&mutant.name)).collect();
    let mut edits = VecDeque::new();
    let mut impossible = 0;
    for mutant in &chosen {
        match &mutant.kind {
            Kind::Impossible(because) => {
                impossible += 1;
                say(&format!("cannot be made  {} ({}): {because}", mutant.name, mutant.idea));
            }
            Kind::Edit(edit) => {
                if arguments.list {
                    say(&format!("{} ({}): {}", mutant.name, mutant.idea, edit.file));
                }
                edits.push_back((mutant.name.clone(), edit.clone()));
            }
        }
    }
    let total = edits.len();
    if arguments.list {
        say(&format!("{total} edits, {impossible} that cannot be made"));
        return Ok(());
    }
    let others: &[&str] = if arguments.named_killers { &[] } else { &BINARIES };
    let trees = (0..arguments.jobs.clamp(1, total.max(1))).map(Tree::prepare).collect::<Result<Vec<_>, _>>()?;
    if !arguments.skip_baseline {
        trees.first().expect("at least one job").baseline()?;
    }
    let (queue, outcomes) = (Mutex::new(edits), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for tree in &trees {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().expect("no job panics").pop_front();
                    let Some((name, edit)) = next else { return };
                    let start = Instant::now();
                    let outcome = tree.try_edit(&edit, others).unwrap_or_else(Outcome::Broken);
                    let seconds = start.elapsed().as_secs();
                    say(&match &outcome {
                        Outcome::Killed { by } => format!("killed    {name}: {by} ({seconds} s)"),
                        Outcome::Survived => format!("SURVIVED  {name} ({seconds} s)"),
                        Outcome::Broken(why) => format!("BROKEN    {name}: {why} ({seconds} s)"),
                    });
                    outcomes.lock().expect("no job panics").push((name, outcome));
                }
            });
        }
    });
    let outcomes = outcomes.into_inner().expect("no job panics");
    let of = |kind: fn(&Outcome) -> bool| -> Vec<&str> {
        outcomes.iter().filter(|(_, outcome)| kind(outcome)).map(|(name, _)| name.as_str()).collect()
    };
    let killed = of(|outcome| matches!(outcome, Outcome::Killed { .. }));
    let survived = of(|outcome| matches!(outcome, Outcome::Survived));
    let broken = of(|outcome| matches!(outcome, Outcome::Broken(_)));
    say(&format!("{} of {total} mutants killed; {impossible} cannot be made", killed.len()));
    if survived.is_empty() && broken.is_empty() {
        Ok(())
    } else {
        Err(format!("survived: {}; broken: {}", survived.join(", "), broken.join(", ")))
    }
}

fn read_list() -> Result<Vec<Mutant>, String> {
    let path = root().join("xtask/mutants.toml");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let table: toml::Table = text.parse().map_err(|error| format!("{}: {error}", path.display()))?;
    let entries = table.get("mutant").and_then(toml::Value::as_array).ok_or("the list has no [[mutant]]")?;
    entries.iter().map(Mutant::of).collect()
}

impl Mutant {
    fn of(entry: &toml::Value) -> Result<Self, String> {
        let word = |key: &str| entry.get(key).and_then(toml::Value::as_str).map(str::to_owned);
        let name = word("name").ok_or("a mutant has no name")?;
        let needs = |key: &str| word(key).ok_or(format!("mutant {name} has no {key}"));
        let kind = match word("because") {
            Some(because) => Kind::Impossible(because),
            None => {
                let killers = entry.get("killers").and_then(toml::Value::as_array).into_iter().flatten();
                let killers = killers.filter_map(toml::Value::as_str).map(str::to_owned).collect();
                Kind::Edit(Edit { file: needs("file")?, old: needs("old")?, new: needs("new")?, killers })
            }
        };
        Ok(Self { idea: needs("idea")?, name, kind })
    }
}

/// A copy of the repository with build products of its own.
struct Tree {
    source: PathBuf,
    target: PathBuf,
    /// Files of the repository.
    names: BTreeSet<String>,
}

impl Tree {
    fn prepare(job: usize) -> Result<Self, String> {
        let place = root().join("target/mutants");
        let (source, target) = (place.join(format!("tree-{job}")), place.join(format!("target-{job}")));
        let listed = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root())
            .output()
            .map_err(|error| format!("git ls-files: {error}"))?;
        let names = String::from_utf8(listed.stdout).map_err(|error| format!("git ls-files: {error}"))?;
        let names = names.split('\0').filter(|name| root().join(name).is_file()).map(str::to_owned).collect();
        let tree = Self { source, target, names };
        for name in &tree.names {
            let bytes = fs::read(root().join(name)).map_err(|error| format!("{name}: {error}"))?;
            let copy = tree.source.join(name);
            // An equal file keeps its time, and cargo what it built of it.
            if fs::read(&copy).ok().as_ref() != Some(&bytes) {
                fs::create_dir_all(copy.parent().expect("a file has a folder")).map_err(|error| error.to_string())?;
                fs::write(&copy, bytes).map_err(|error| format!("{}: {error}", copy.display()))?;
            }
        }
        remove_others(&tree.source, &tree.source, &tree.names)?;
        Ok(tree)
    }

    /// Every test that might kill a mutant must pass without one.
    fn baseline(&self) -> Result<(), String> {
        for binary in BINARIES {
            say(&format!("without a mutant: {binary}"));
            match self.test(binary)? {
                Verdict::Green => {}
                Verdict::Red(by) => return Err(format!("{by} fails without a mutant")),
                Verdict::NotCompiled(why) => {
                    return Err(format!("{binary} does not compile without a mutant: {why}"));
                }
            }
        }
        Ok(())
    }

    fn try_edit(&self, edit: &Edit, others: &[&str]) -> Result<Outcome, String> {
        let path = self.source.join(&edit.file);
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", edit.file))?;
        let found = text.matches(&edit.old).count();
        if found != 1 {
            return Err(format!("its old text is {found} times in {}", edit.file));
        }
        let write = |text: &str| fs::write(&path, text).map_err(|error| format!("{}: {error}", edit.file));
        write(&text.replace(&edit.old, &edit.new))?;
        let outcome = self.judge(edit, others);
        write(&text)?;
        // A failed property test leaves its seed, with which the next mutant would be easier to notice.
        remove_others(&self.source, &self.source, &self.names)?;
        outcome
    }

    fn judge(&self, edit: &Edit, others: &[&str]) -> Result<Outcome, String> {
        let whole = others.iter().map(|binary| (*binary).to_owned());
        let mut seen = BTreeSet::new();
        for binary in edit.killers.iter().cloned().chain(whole).filter(|binary| seen.insert(binary.clone())) {
            match self.test(&binary)? {
                Verdict::Green => {}
                Verdict::Red(by) => return Ok(Outcome::Killed { by }),
                Verdict::NotCompiled(why) => {
                    return Ok(Outcome::Broken(format!("{binary} does not compile: {why}")));
                }
            }
        }
        Ok(Outcome::Survived)
    }

    /// Builds and runs "CRATE BINARY FILTER".
    fn test(&self, what: &str) -> Result<Verdict, String> {
        let mut words = what.split(' ');
        let (Some(krate), Some(binary)) = (words.next(), words.next()) else {
            return Err(format!("{what:?} does not name a crate and a binary"));
        };
        let (package, folder) = match krate {
            "xtask" => (krate.to_owned(), self.source.join("xtask")),
            other => (format!("reticent-{other}"), self.source.join(format!("crates/reticent-{other}"))),
        };
        let executable = match self.build(&package, binary)? {
            Build::Done(executable) => executable,
            Build::Failed(why) => return Ok(Verdict::NotCompiled(why)),
        };
        let log = self.target.join("last-run.log");
        let file = || fs::File::create(&log).map_err(|error| format!("{}: {error}", log.display()));
        let mut child = Command::new(executable)
            .args(words)
            .current_dir(folder)
            .env("RUST_BACKTRACE", "0")
            .env("PROPTEST_MAX_SHRINK_ITERS", "0")
            .stdin(Stdio::null())
            .stdout(file()?)
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{what}: {error}"))?;
        let start = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().map_err(|error| format!("{what}: {error}"))? {
                break status;
            }
            if start.elapsed() > PATIENCE {
                child.kill().and_then(|()| child.wait()).map_err(|error| format!("{what}: {error}"))?;
                return Ok(Verdict::Red(format!("{what}: takes longer than {} s", PATIENCE.as_secs())));
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        if status.success() {
            return Ok(Verdict::Green);
        }
        let text = fs::read_to_string(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        Ok(Verdict::Red(format!("{krate} {binary} {}", failed_tests(&text).unwrap_or_else(|| status.to_string()))))
    }

    fn build(&self, package: &str, binary: &str) -> Result<Build, String> {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["test", "--locked", "--no-run", "--message-format=json", "--package", package]);
        if binary == "lib" {
            cargo.arg("--lib");
        } else {
            cargo.args(["--test", binary]);
        }
        // Built for one run: little optimisation, no debugging symbols, as much as possible kept from the last build.
        let profile = [
            ("CARGO_PROFILE_TEST_OPT_LEVEL", "1"),
            ("CARGO_PROFILE_TEST_DEBUG", "0"),
            ("CARGO_PROFILE_DEV_DEBUG", "0"),
            ("CARGO_INCREMENTAL", "1"),
        ];
        let output = cargo
            .envs(profile)
            .env("CARGO_TARGET_DIR", &self.target)
            .current_dir(&self.source)
            .output()
            .map_err(|error| format!("cargo test: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let mut messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        if !output.status.success() {
            let is_error = |message: &Value| message["message"]["level"] == "error";
            let why =
                messages.find(is_error).and_then(|message| message["message"]["message"].as_str().map(str::to_owned));
            return Ok(Build::Failed(why.unwrap_or_else(|| String::from_utf8_lossy(&output.stderr).trim().to_owned())));
        }
        let executable = messages.find_map(|message| {
            let target = &message["target"];
            let is_asked = if binary == "lib" { target["kind"][0] == "lib" } else { target["name"] == binary };
            message["executable"].as_str().filter(|_| is_asked).map(PathBuf::from)
        });
        executable.map(Build::Done).ok_or_else(|| format!("cargo built no {binary} of {package}"))
    }
}

enum Build {
    /// Where the test binary is.
    Done(PathBuf),
    /// What the compiler said first.
    Failed(String),
}

enum Verdict {
    Green,
    Red(String),
    NotCompiled(String),
}

/// The names below the last `failures:` of a test binary.
fn failed_tests(log: &str) -> Option<String> {
    let (_, list) = log.rsplit_once("\nfailures:\n")?;
    let names: Vec<&str> = list.lines().map_while(|line| line.strip_prefix("    ")).collect();
    let (first, others) = names.split_first()?;
    Some(if others.is_empty() { (*first).to_owned() } else { format!("{first} and {} more", others.len()) })
}

/// Removes files that the repository no longer has.
fn remove_others(folder: &Path, source: &Path, names: &BTreeSet<String>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            remove_others(&path, source, names)?;
            continue;
        }
        let name = path.strip_prefix(source).expect("below the tree").to_string_lossy().replace('\\', "/");
        if !names.contains(&name) {
            fs::remove_file(&path).map_err(failed)?;
        }
    }
    Ok(())
}
