//! Places where a result cannot go, and disks that fill up. A result is whole or not there, and what was paid is not lost.

use insta::assert_snapshot;

use crate::support::{BY_PATIENT, FIT, Folder, Outcome, SCHEMA, Table, json, program};

fn folder_to_predict(rows: usize) -> Folder {
    let folder = Folder::new();
    folder.write("table.csv", Table::of(rows).csv());
    folder
}

#[test]
fn a_folder_that_is_not_there_costs_nothing() {
    let folder = Folder::with_table();
    assert_snapshot!(folder.refuse(5, &FIT.replace("model.json", "no/model.json")), @"error: no/model.json: cannot write here: there is no folder no; make it first, or mend the name");
    let folder = folder_to_predict(10);
    assert_snapshot!(folder.refuse(5, "predict --model model.json --data table.csv --out no/p.csv"), @"error: no/p.csv: cannot write here: there is no folder no; make it first, or mend the name");
}

#[test]
fn a_folder_in_place_of_the_result_costs_nothing() {
    let folder = Folder::with_table();
    std::fs::create_dir(folder.path("results")).expect("a folder");
    assert_snapshot!(folder.refuse(5, &FIT.replace("model.json", "results")), @"error: results: cannot write here: it is a folder; choose another place for the result");
    folder.refuse(5, &FIT.replace("model.json", "results/"));
    // A file where a folder should be.
    folder.refuse(5, &FIT.replace("model.json", "schema.toml/model.json"));
}

/// A pipe or a device would be replaced by a file of its name: as root even `/dev/null`.
#[cfg(unix)]
#[test]
fn a_pipe_or_device_is_not_replaced() {
    use std::os::unix::fs::FileTypeExt;

    let folder = Folder::with_table();
    let made = std::process::Command::new("mkfifo").arg(folder.path("pipe")).status().expect("mkfifo");
    assert!(made.success());
    let mut command = folder.reticent();
    command.args(FIT.replace("model.json", "pipe").split_whitespace()).timeout(std::time::Duration::from_secs(10));
    let outcome = Outcome::of(command.output().expect("the program starts"));
    assert!(folder.path("pipe").metadata().expect("it is there").file_type().is_fifo(), "the pipe is gone");
    assert_eq!(outcome.code, 5);
    assert!(!folder.exists("table.csv.ledger"), "it was charged");
}

#[cfg(unix)]
#[test]
fn a_link_is_followed_and_stays() {
    let folder = Folder::with_table();
    folder.write("kept.json", "old");
    std::os::unix::fs::symlink(folder.path("kept.json"), folder.path("link.json")).expect("a link");
    folder.succeed(&FIT.replace("model.json", "link.json"));
    assert!(folder.path("link.json").is_symlink(), "the link was replaced");
    assert_eq!(folder.json("kept.json")["format"], "reticent-model");
    // Where it leads nowhere nothing is charged for.
    std::os::unix::fs::symlink(folder.path("absent/model.json"), folder.path("broken.json")).expect("a link");
    assert_snapshot!(folder.refuse(5, &FIT.replace("model.json", "broken.json")), @"error: broken.json: cannot write here: it is a link to [folder]/absent/model.json: No such file or directory (os error 2); choose another place for the result");
    // Nor is a link that only the system can follow.
    let message = folder.refuse(5, &FIT.replace("model.json", "/dev/stdout"));
    assert!(message.contains("a link of the system's"), "{message}");
}

/// A result in place of what it is made from would lose it.
#[test]
fn a_result_does_not_replace_what_is_read() {
    let folder = Folder::with_table();
    folder.refuse(2, &FIT.replace("model.json", "table.csv"));
    folder.refuse(2, &FIT.replace("model.json", "schema.toml"));
    folder.succeed("ledger init l.ledger --epsilon 2 --delta 1e-6");
    folder.refuse(2, &FIT.replace("model.json", "l.ledger --ledger l.ledger"));
    let folder = folder_to_predict(10);
    folder.refuse(2, "predict --model model.json --data table.csv --out model.json");
    folder.refuse(2, "predict --model model.json --data table.csv --out table.csv");
}

#[test]
fn a_result_does_not_replace_any_ledger() {
    let folder = Folder::with_table();
    folder.succeed("ledger init other.ledger --epsilon 2 --delta 1e-6");
    assert_snapshot!(folder.refuse(2, &FIT.replace("model.json", "other.ledger")), @"error: other.ledger is a database, perhaps a ledger, and is not replaced; choose another place for the result");
}

/// What lies beside a ledger under these names SQLite plays back or deletes: the journal of a crash, or a model that was paid for.
#[test]
fn a_result_does_not_replace_what_belongs_to_a_ledger() {
    let folder = Folder::with_table();
    folder.write("model.json", crate::support::MODEL);
    folder.succeed("ledger init l.ledger --epsilon 2 --delta 1e-6");
    for suffix in ["-journal", "-wal", "-shm", "-Journal"] {
        for ledger in ["l.ledger", "table.csv.ledger"] {
            let message = folder
                .refuse(2, &FIT.replace("--out model.json", &format!("--ledger l.ledger --out {ledger}{suffix}")));
            assert!(message.contains("belongs to the database beside it"), "{message}");
            folder.refuse(2, &FIT.replace("model.json", &format!("{ledger}{suffix}")));
            folder.refuse(2, &format!("predict --model model.json --data table.csv --out {ledger}{suffix}"));
        }
    }
    std::fs::write(folder.path("l.ledger-journal"), "of a crash").expect("written");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(folder.path("l.ledger-journal"), folder.path("link.json")).expect("a link");
        folder.refuse(2, &FIT.replace("model.json", "link.json"));
    }
}

/// The ledger beside the data file is the memory of all that was spent.
#[test]
fn a_result_does_not_replace_the_ledger_beside_the_data_file() {
    let folder = Folder::with_table();
    folder.refuse(2, &FIT.replace("model.json", "table.csv.ledger"));
    folder.succeed(FIT);
    folder.refuse(2, &FIT.replace("model.json", "table.csv.ledger"));
    assert_eq!(folder.ledger("table.csv.ledger")["entries"].as_array().map(Vec::len), Some(1));
}

/// Runs with files limited to `blocks` of 512 bytes (of 1024 in some shells): the writes beyond fail as on a full disk.
#[cfg(unix)]
fn run_limited(folder: &Folder, blocks: u32, line: &str) -> Outcome {
    // By itself the signal of such a write would end the program, and not the write alone. What started this test may ignore it.
    let mut command = std::process::Command::new(if cfg!(target_os = "linux") { "env" } else { "sh" });
    if cfg!(target_os = "linux") {
        command.args(["--default-signal=XFSZ", "sh"]);
    }
    let script = format!("ulimit -f {blocks}; exec \"$0\" {line}");
    command.arg("-c").arg(script).arg(program()).current_dir(folder.path(""));
    Outcome::of(command.output().expect("a shell"))
}

#[cfg(unix)]
#[test]
fn predictions_that_do_not_fit_on_the_disk_leave_no_file() {
    let folder = folder_to_predict(20_000);
    let before = folder.files();
    for name in ["p.csv", "p.parquet"] {
        let outcome = run_limited(&folder, 64, &format!("predict --model model.json --data table.csv --out {name}"));
        assert_eq!((outcome.code, outcome.stdout.as_str()), (5, ""), "{name}");
        assert!(outcome.stderr.contains(&format!("{name}: writing predictions: ")), "{}", outcome.stderr);
        assert!(folder.files() == before, "{name}: something was left");
    }
    folder.write("p.csv", "the last good one");
    run_limited(&folder, 64, "predict --model model.json --data table.csv --out p.csv");
    assert_eq!(folder.text("p.csv"), "the last good one");
}

/// Codes of 8 bytes a row, keys of 32, and lattice rows of 20, of which less than a mebibyte stays in memory: the disk is full while the
/// table is read, when keys are sorted, or when room is taken for what follows. All come before payment.
#[cfg(unix)]
#[test]
fn scratch_files_that_do_not_fit_on_the_disk_cost_nothing() {
    for (unit, rows, disk) in [("\"row\"", 20_000, 64), ("\"row\"", 400_000, 6_500), (BY_PATIENT, 400_000, 6_500)] {
        let folder = Folder::with_table();
        folder.write("schema.toml", SCHEMA.replace("\"row\"", unit));
        let told = folder.refuse(2, &format!("{FIT} --memory 1MiB --scratch scratch"));
        let least =
            told.split("at least ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a ceiling that would do");
        folder.write("table.csv", Table::of(rows).csv());
        std::os::unix::fs::symlink(env!("CARGO_TARGET_TMPDIR"), folder.path("scratch")).expect("a link");
        let before = folder.files();
        let fit = format!("{FIT} --memory {least} --scratch scratch");
        let outcome = run_limited(&folder, disk, &fit);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (5, ""), "{rows} rows: {}", outcome.stderr);
        let message = "error: scratch: writing the scratch file: File too large (os error 27); name a folder with more room \
                       with --scratch; nothing was paid\n";
        assert_eq!(outcome.stderr, message, "{rows} rows");
        assert!(folder.files() == before, "{rows} rows");
        folder.succeed(&fit);
    }
}

/// A schema whose model file is larger than a ledger.
#[cfg(unix)]
fn write_wide_schema(folder: &Folder) {
    let categories: Vec<String> = (0..4000).map(|number| format!("\"a rather long name of ward {number}\"")).collect();
    let wide = SCHEMA.replace("\"north\", \"south\"", &categories.join(", "));
    folder.write("schema.toml", wide);
}

/// It is paid for and has no place on the disk: then it is on the terminal rather than lost.
#[cfg(unix)]
#[test]
fn a_paid_model_that_does_not_fit_on_the_disk_goes_to_stdout() {
    let folder = Folder::with_table();
    write_wide_schema(&folder);
    let outcome = run_limited(&folder, 300, &format!("{FIT} --passes 2"));
    assert_eq!(outcome.code, 5);
    assert!(outcome.stderr.contains("model.json: writing the result: "), "{}", outcome.stderr);
    assert!(!folder.exists("model.json"));
    let files: Vec<String> = folder.files().into_keys().collect();
    assert_eq!(files, ["schema.toml", "table.csv", "table.csv.ledger"]);
    let model = json(&outcome.stdout);
    assert_eq!(model["format"], "reticent-model");
    let ledger = folder.ledger("table.csv.ledger");
    assert_eq!(ledger["entries"].as_array().map(Vec::len), Some(1));
    assert_eq!(model["certificate"]["ledger"]["id"], ledger["id"]);
    folder.write("model.json", &outcome.stdout);
    folder.succeed("show model.json");
}

/// No entry, no model: nothing was spent, and the ledger is sound.
#[cfg(unix)]
#[test]
fn a_ledger_that_cannot_grow_gives_no_model() {
    let folder = Folder::with_table();
    folder.succeed("ledger init l.ledger --epsilon 2 --delta 1e-6");
    let fit = FIT.replace("--out", "--ledger l.ledger --out");
    let outcome = run_limited(&folder, 1, &fit);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (5, ""), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("l.ledger: "), "{}", outcome.stderr);
    assert!(!folder.exists("model.json"));
    let ledger = folder.ledger("l.ledger");
    assert_eq!(ledger["entries"].as_array().map(Vec::len), Some(0));
    folder.succeed(&fit);
    // Without a ledger one cannot be made either, and no draft of it is left.
    folder.remove("model.json");
    let before = folder.files();
    let outcome = run_limited(&folder, 1, FIT);
    assert_eq!(outcome.code, 5);
    assert!(folder.files() == before);
}

/// The one device that is always full.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_under_stdout_is_an_error() {
    let folder = Folder::new();
    let full = std::fs::File::options().write(true).open("/dev/full").expect("Linux has it");
    let mut command = std::process::Command::new(program());
    command.args(["show", "model.json"]).current_dir(folder.path("")).stdout(full);
    let outcome = Outcome::of(command.output().expect("the program starts"));
    assert_eq!(outcome.code, 5);
    assert_snapshot!(outcome.stderr, @"error: writing to stdout: No space left on device (os error 28)");
}

/// An audit takes minutes, and its figures do not lie in the plot.
#[cfg(unix)]
#[test]
fn an_audit_whose_plot_does_not_fit_on_the_disk_prints_its_figures() {
    let folder = Folder::new();
    let before = folder.files();
    let outcome = run_limited(
        &folder,
        1,
        "audit --method functional --rows 1 --runs 100 --mu 1 --confidence 0.9999999 --plot plot.svg --json",
    );
    assert_eq!(outcome.code, 5, "{}", outcome.stderr);
    assert!(outcome.stderr.starts_with("error: drawing the plot: "), "{}", outcome.stderr);
    assert_eq!(json(&outcome.stdout)["runs_per_neighbour"], 100);
    assert!(folder.files() == before);
}

/// A name stays in its line, and what it has for a terminal does not reach it.
#[cfg(unix)]
#[test]
fn control_characters_of_names_are_spelt_out_in_reports() {
    let folder = Folder::with_table();
    let name = "m\u{1b}[2J\nLedger.json";
    let mut command = folder.reticent();
    let words = FIT.split_whitespace().map(|word| if word == "model.json" { name } else { word });
    let outcome = Outcome::of(command.args(words).output().expect("the program starts"));
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(outcome.stdout.contains("\nModel: m\\u{1b}[2J\\nLedger.json\n"), "{}", outcome.stdout);
    assert!(!outcome.stdout.contains('\u{1b}'));
}

/// Then it is the report alone that is lost.
#[cfg(target_os = "linux")]
#[test]
fn a_paid_model_that_cannot_be_reported_is_said_to_be_complete() {
    let folder = Folder::with_table();
    for line in [FIT.to_owned(), format!("{FIT} --json")] {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("Linux has it");
        let mut command = std::process::Command::new(program());
        command.args(line.split_whitespace()).current_dir(folder.path("")).stdout(full);
        let outcome = Outcome::of(command.output().expect("the program starts"));
        assert_eq!(outcome.code, 5);
        let message = "error: writing to stdout: No space left on device (os error 28); the fit is paid for, and its model is complete in model.json\n";
        assert_eq!(outcome.stderr, message);
        folder.succeed("show model.json");
        folder.remove("model.json");
    }
}

/// Whatever the umask is.
#[cfg(unix)]
#[test]
fn a_result_is_kept_from_whom_the_file_was_that_it_replaces() {
    use std::os::unix::fs::PermissionsExt;

    let folder = folder_to_predict(10);
    let mode = |name: &str| folder.path(name).metadata().expect("it is there").permissions().mode() & 0o777;
    let predict = "predict --model model.json --data table.csv --out p.csv";
    folder.succeed(predict);
    folder.write("other.csv", "any new file");
    assert_eq!(mode("p.csv"), mode("other.csv"));
    for kept in [0o600, 0o666] {
        std::fs::set_permissions(folder.path("p.csv"), PermissionsExt::from_mode(kept)).expect("it is ours");
        folder.succeed(predict);
        assert_eq!(mode("p.csv"), kept);
    }
    // Only root may give a file to any group. Whoever is in the maker's was not in that one.
    if std::os::unix::fs::chown(folder.path("p.csv"), None, Some(54_321)).is_ok() {
        folder.succeed(predict);
        assert_eq!(mode("p.csv"), 0o606);
    }
}

/// Elsewhere than on Linux file systems may take names of text alone. What was paid for must not fail for the folder that it is in.
#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_not_text_stands_in_json_as_it_is_printed() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let folder = Folder::with_table();
    let place = folder.path("").join(OsStr::from_bytes(b"caf\xe9"));
    std::fs::create_dir(&place).expect("a folder");
    for name in ["table.csv", "schema.toml"] {
        std::fs::copy(folder.path(name), place.join(name)).expect("a copy");
    }
    let run = |line: &str| {
        let name = |word| if word == "NAME" { OsStr::from_bytes(b"m\xff.json") } else { OsStr::new(word) };
        let mut command = folder.reticent();
        command.args(line.split_whitespace().map(name)).current_dir(&place);
        let outcome = Outcome::of(command.output().expect("the program starts"));
        assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{line}");
        json(&outcome.stdout)
    };
    let (model, ledger) = ("m\u{fffd}.json", "/caf\u{fffd}/table.csv.ledger");
    let has_ledger = |document: &serde_json::Value| {
        assert!(document["ledger"]["path"].as_str().is_some_and(|path| path.ends_with(ledger)), "{document}");
    };
    let fitted = run(&FIT.replace("model.json", "NAME --json"));
    assert_eq!(fitted["model"], model);
    has_ledger(&fitted);
    has_ledger(&run("evaluate --model NAME --data table.csv --epsilon 0.1 --json"));
    assert_eq!(run("ledger verify table.csv.ledger --model NAME --json")["models"][0]["model"], model);
    assert_eq!(run("fit-public --data table.csv --schema schema.toml --out NAME --json")["model"], model);
    std::fs::rename(place.join("table.csv.ledger"), place.join(OsStr::from_bytes(b"m\xff.json"))).expect("renamed");
    assert_eq!(run("ledger show NAME --json")["path"], model);
    assert_eq!(run("ledger verify NAME --json")["ledger"], model);
}
