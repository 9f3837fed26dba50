//! Help, version, pipes: how the program behaves at a prompt and in a script.

use std::process::{Command, Stdio};

use insta::assert_snapshot;

use crate::support::{FIT, Folder, Outcome, Table, json, program};

#[test]
fn help_is_an_overview() {
    let folder = Folder::new();
    assert_snapshot!(folder.succeed("--help"), @"
    Regression models from private tables, with a certificate of what they reveal

    Usage: reticent <COMMAND>

    Commands:
      fit         Fit a private model to a table, charge the ledger, write model and certificate
      fit-public  Fit a model without privacy to rows that are public: a yardstick, or, of many rows, a
                  start for `fit --init`
      plan        Say what `fit` would ask, pay and expect, without reading a row
      predict     Score the rows of a table with a model
      evaluate    Measure a model on a table: exactly if its rows are public, by noisy counts if not
      show        Print a model and its certificate for a person
      walr        Regress on labels that another organisation holds: weights go out, a noisy answer
                  comes back, by files
      ledger      Keep the account of what a table has paid
      schema      Write and check schemas
      party       Learn from the votes of parties on public rows: no row and no model crosses
      audit       Bound from below what a method reveals, by many fits of neighbouring synthetic tables
      demo        Run the whole job on the census table that comes with the program
      help        Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help
      -V, --version  Print version

    Examples:
      reticent demo                                        see it work on a census table
      reticent schema draft patients.csv > patients.toml   start a schema; fill in the bounds
      reticent plan --schema patients.toml --epsilon 1 --delta 1e-6
      reticent fit --data patients.csv --schema patients.toml --epsilon 1 --delta 1e-6 --out model.json
      reticent show model.json

    Exit codes:
      0 done   2 usage: flags, schema or model file   3 data file   4 refused by the ledger   5
      input/output   70 a defect   129, 130, 143 interrupted
    ");
}

#[test]
fn every_command_has_help() {
    let folder = Folder::new();
    for command in [
        "fit",
        "plan",
        "predict",
        "evaluate",
        "show",
        "ledger",
        "ledger init",
        "ledger show",
        "ledger export",
        "schema",
    ] {
        let help = folder.succeed(&format!("{command} --help"));
        assert!(help.contains(&format!("Usage: reticent {command}")), "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 110), "{help}");
    }
    for command in ["schema draft", "schema check", "demo"] {
        folder.succeed(&format!("{command} --help"));
    }
}

#[test]
fn the_version_is_the_packages() {
    let folder = Folder::new();
    assert_eq!(folder.succeed("--version"), concat!("reticent ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn no_command_or_a_wrong_one_is_a_usage_error() {
    let folder = Folder::new();
    folder.refuse(2, "");
    let message = folder.refuse(2, "fitt");
    assert!(message.contains("'fit'"), "{message}");
}

/// `reticent ledger export l | head -1`: the reader has gone before the first byte.
#[test]
fn a_closed_pipe_is_no_error() {
    let folder = Folder::with_table();
    folder.succeed(FIT);
    for line in [
        "show model.json",
        "ledger show table.csv.ledger",
        "ledger export table.csv.ledger",
        "plan --schema schema.toml --epsilon 1 --delta 1e-6",
        "evaluate --model model.json --data table.csv --public",
        "schema draft table.csv",
        "predict --model model.json --data table.csv --out -",
        "--help",
        FIT,
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = Command::new(program());
        command.args(line.split_whitespace()).current_dir(folder.path("")).stdout(writer).stderr(Stdio::piped());
        let outcome = Outcome::of(command.output().expect("the program starts"));
        assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{line}");
    }
}

/// Sends a signal to a command as soon as `is_time`: how it ended.
#[cfg(unix)]
fn ended_by(signal: &str, folder: &Folder, arguments: &str, is_time: impl FnMut() -> bool) -> Outcome {
    command_ended_by(&[signal], started(&format!("--default-signal={signal}"), folder, arguments), is_time)
}

/// The program with a signal as by default, or ignored: what this test itself was started with may be either. Only Linux tells the program
/// which.
#[cfg(unix)]
fn started(how: &str, folder: &Folder, arguments: &str) -> Command {
    let mut command = Command::new(if cfg!(target_os = "linux") { "env".as_ref() } else { program() });
    if cfg!(target_os = "linux") {
        command.arg(how).arg(program());
    }
    command.args(arguments.split_whitespace()).current_dir(folder.path(""));
    command
}

#[cfg(unix)]
fn command_ended_by(signals: &[&str], mut command: Command, mut is_time: impl FnMut() -> bool) -> Outcome {
    // Stdin stays open, so that a table that is read from it has no end.
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    while !is_time() {
        assert!(child.try_wait().expect("a child").is_none(), "it ended before the signal");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    for signal in signals {
        let kill = format!("kill -{signal} {}", child.id());
        assert!(Command::new("sh").arg("-c").arg(kill).status().expect("a shell").success());
    }
    let stdin = child.stdin.take();
    let outcome = Outcome::of(child.wait_with_output().expect("a child"));
    drop(stdin);
    outcome
}

/// A fit that waits for the rest of its table.
#[cfg(unix)]
fn fit_from_a_pipe() -> (Folder, String) {
    let folder = Folder::new();
    folder.remove("model.json");
    folder.succeed("ledger init pipe.ledger --epsilon 10 --delta 1e-6");
    (folder, FIT.replace("table.csv", "/dev/stdin") + " --ledger pipe.ledger")
}

#[cfg(unix)]
#[test]
fn a_signal_leaves_no_half_written_file_and_says_what_may_be_paid() {
    let (folder, waiting) = fit_from_a_pipe();
    let is_partial = |name: &String| name.ends_with(".partial");
    for (signal, code, message) in
        [("INT", 130, "error: interrupted; nothing was paid\n"), ("TERM", 143, "error: terminated; nothing was paid\n")]
    {
        let before = ended_by(signal, &folder, &waiting, || folder.files().keys().any(is_partial));
        assert_eq!((before.code, before.stderr.as_str()), (code, message));
        assert!(!folder.files().keys().any(is_partial));
    }

    folder.write("table.csv", Table::of(100_000).csv());
    let long = format!("{FIT} --method noisy-gd --passes 100000");
    let is_paid = || {
        // Not `run`, which wants no half-written file to be there.
        let shown = folder.reticent().args(["ledger", "show", "table.csv.ledger", "--json"]).output().expect("starts");
        shown.status.success() && !json(&Outcome::of(shown).stdout)["entries"].as_array().expect("a list").is_empty()
    };
    let after = ended_by("INT", &folder, &long, is_paid);
    assert_eq!(after.code, 130);
    assert_snapshot!(after.stderr, @"error: interrupted; what was paid by then stays paid: `reticent ledger show [folder]/table.csv.ledger` lists it");
    assert!(!folder.exists("model.json") && !folder.files().keys().any(is_partial));
    assert_eq!(folder.ledger("table.csv.ledger")["entries"].as_array().map(Vec::len), Some(1));
}

#[cfg(target_os = "linux")]
#[test]
fn a_terminal_that_goes_away_ends_a_command_but_for_nohup() {
    let (folder, waiting) = fit_from_a_pipe();
    let has_partial = || folder.files().keys().any(|name| name.ends_with(".partial"));
    let ended = ended_by("HUP", &folder, &waiting, has_partial);
    assert_eq!((ended.code, ended.stderr.as_str()), (129, "error: the terminal went away; nothing was paid\n"));
    assert!(!has_partial());

    let ignoring = started("--ignore-signal=HUP", &folder, &waiting);
    let ended = command_ended_by(&["HUP", "TERM"], ignoring, has_partial);
    assert_eq!(ended.code, 143, "the first of the two did nothing");
    assert!(!has_partial());
}

/// A pipe that takes nothing more: whoever writes a report into it waits.
#[cfg(target_os = "linux")]
fn full_pipe() -> (std::io::PipeReader, std::io::PipeWriter) {
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::OpenOptionsExt;

    /// `O_NONBLOCK` of Linux: such a handle fails where another would wait.
    const NONBLOCK: i32 = 0o4000;
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let again = format!("/proc/self/fd/{}", writer.as_raw_fd());
    let mut filling = std::fs::File::options().write(true).custom_flags(NONBLOCK).open(again).expect("the same pipe");
    for size in [4096, 1] {
        while filling.write(&[0; 4096][..size]).is_ok() {}
    }
    (reader, writer)
}

/// Sends SIGTERM to a command that has written a file and cannot print its report: the message.
#[cfg(target_os = "linux")]
fn terminated_when_complete(mut command: Command, is_complete: impl Fn() -> bool) -> String {
    let (reader, writer) = full_pipe();
    let mut child = command.stdout(writer).stderr(Stdio::piped()).spawn().expect("starts");
    while !is_complete() {
        assert!(child.try_wait().expect("a child").is_none(), "it ended before the signal");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let kill = format!("kill -TERM {}", child.id());
    assert!(Command::new("sh").arg("-c").arg(kill).status().expect("a shell").success());
    let outcome = Outcome::of(child.wait_with_output().expect("a child"));
    drop(reader);
    assert_eq!(outcome.code, 143);
    outcome.stderr
}

#[cfg(target_os = "linux")]
#[test]
fn a_signal_after_the_result_says_that_it_is_complete() {
    let folder = Folder::with_table();
    let command = started("--default-signal=TERM", &folder, FIT);
    let message = terminated_when_complete(command, || folder.exists("model.json"));
    assert_snapshot!(message, @"error: terminated; what was paid by then stays paid: `reticent ledger show [folder]/table.csv.ledger` lists it; model.json is complete");
    folder.succeed("show model.json");
}

/// Ledger and model of a demo are gone when it ends.
#[cfg(target_os = "linux")]
#[test]
fn a_demo_that_a_signal_ends_names_no_file_that_is_gone() {
    let folder = Folder::new();
    let temporary = folder.path("temporary");
    std::fs::create_dir(&temporary).expect("a folder");
    let inside = || std::fs::read_dir(&temporary).expect("it can be listed").flatten().map(|entry| entry.path());
    let mut command = started("--default-signal=TERM", &folder, "demo --epsilon 1");
    command.env("TMPDIR", &temporary);
    let message = terminated_when_complete(command, || inside().any(|made| made.join("model.json").exists()));
    assert_eq!(message, "error: terminated; nothing was paid\n");
    assert_eq!(inside().count(), 0);
}

/// Where there is no `script`, which makes a terminal, nothing is tested.
#[cfg(target_os = "linux")]
#[test]
fn rows_on_a_terminal_are_alone_there() {
    let folder = Folder::new();
    folder.write("table.csv", Table::of(2000).csv());
    let on_terminal = |terminal: &str, out: &str| {
        let line = format!("'{}' predict --model model.json --data table.csv --out {out}", program().display());
        let mut command = assert_cmd::Command::new("script");
        command.args(["-qec", &line, "/dev/null"]).current_dir(folder.path("")).env("TERM", terminal);
        let output = command.timeout(std::time::Duration::from_secs(60)).output().ok()?;
        assert!(output.status.success(), "{line}");
        Some(String::from_utf8(output.stdout).expect("UTF-8"))
    };
    let Some(rows) = on_terminal("xterm", "-") else { return };
    assert!(!rows.contains("reading") && rows.lines().count() == 2001, "{rows}");
    assert_eq!(on_terminal("dumb", "p.csv").as_deref(), Some(""));
    // So that the word is the right one.
    assert!(on_terminal("xterm", "p.csv").is_some_and(|shown| shown.contains("reading")));
}

/// A script starts what it leaves in the background so that Ctrl-C, which is for the script, does not end it.
#[cfg(target_os = "linux")]
#[test]
fn a_command_in_the_background_of_a_script_is_not_interrupted() {
    let (folder, waiting) = fit_from_a_pipe();
    let has_partial = || folder.files().keys().any(|name| name.ends_with(".partial"));
    let ignoring = started("--ignore-signal=INT", &folder, &waiting);
    let ended = command_ended_by(&["INT", "TERM"], ignoring, has_partial);
    assert_eq!(ended.code, 143, "the first of the two did nothing");
}

/// A reader that takes one line of a long result.
#[cfg(unix)]
#[test]
fn head_takes_what_it_wants() {
    let folder = Folder::with_table();
    folder.succeed(FIT);
    let script = "\"$0\" ledger export table.csv.ledger 2>errors | head -n 1";
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).arg(program()).current_dir(folder.path(""));
    let outcome = Outcome::of(command.output().expect("a shell"));
    assert_eq!((outcome.code, outcome.stdout.as_str()), (0, "{\n"));
    assert_eq!(folder.text("errors"), "");
}

/// A stack that no machine has room for stands for a limit on threads, which does not hold for root.
#[cfg(target_os = "linux")]
#[test]
fn threads_that_cannot_be_started_are_no_defect_and_cost_nothing() {
    let folder = Folder::with_table();
    let before = folder.files();
    let mut command = folder.reticent();
    command.args(FIT.split_whitespace()).env("RUST_MIN_STACK", (1u64 << 50).to_string());
    let outcome = Outcome::of(command.output().expect("the program starts"));
    assert_eq!((outcome.code, outcome.stdout.as_str()), (5, ""));
    assert!(outcome.stderr.starts_with("error: no thread could be started: "), "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("RAYON_NUM_THREADS") && outcome.stderr.ends_with("nothing was paid\n"),
        "{}",
        outcome.stderr
    );
    assert!(folder.files() == before);
}

/// Also when both are closed.
#[test]
fn an_error_with_stderr_closed_keeps_its_exit_code() {
    let folder = Folder::new();
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = Command::new(program());
    command.args(["show", "no.json"]).current_dir(folder.path("")).stderr(writer);
    assert_eq!(command.status().expect("the program starts").code(), Some(5));
}
