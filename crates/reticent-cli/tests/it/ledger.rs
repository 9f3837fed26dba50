//! `reticent ledger`: making, showing and exporting; files that are no sound ledgers.

use insta::assert_snapshot;

use crate::support::{FIT, Folder, SCHEMA, Table, json, keys, number, with_own_fingerprint};

const INIT: &str = "ledger init l.ledger --epsilon 2 --delta 1e-6";

fn fit_with_ledger() -> String {
    FIT.replace("--out", "--ledger l.ledger --out")
}

#[test]
fn a_ledger_is_made_and_shown() {
    let folder = Folder::with_table();
    assert_snapshot!(folder.succeed(INIT), @"
    Ledger l.ledger: this table has paid mu 0.000000 (epsilon 0.000000 at delta 1e-6) in all, under row:add-remove
      left: mu 0.448334; the largest request that fits is epsilon 2.000000 at delta 1e-6
    ");
    assert_snapshot!(folder.succeed("ledger show l.ledger"), @"
    Budget: epsilon 2 at delta 1e-6 (mu 0.448335)
    Ledger l.ledger: this table has paid mu 0.000000 (epsilon 0.000000 at delta 1e-6) in all, under row:add-remove
      left: mu 0.448334; the largest request that fits is epsilon 2.000000 at delta 1e-6
    No entries.
    ");
    folder.succeed(&fit_with_ledger());
    assert_snapshot!(folder.succeed("ledger show l.ledger"), @"
    Budget: epsilon 2 at delta 1e-6 (mu 0.448335)
    Ledger l.ledger: this table has paid mu 0.236705 (epsilon 1.000000 at delta 1e-6, if no price was chosen in view of earlier answers) in all, under row:add-remove
      left: mu 0.380755; the largest request that fits is epsilon 1.673274 at delta 1e-6

    entry  time (UTC)            purpose       data       mu
        1  [time]  fit noisy-gd  table.csv  0.236705 row:add-remove
    ");
}

#[test]
fn a_ledger_is_shown_as_json() {
    let folder = Folder::with_table();
    folder.succeed("ledger init l.ledger --epsilon 5 --delta 1e-6 --promise row:replace --promise row:add-remove");
    folder.succeed(&fit_with_ledger());
    let shown = folder.ledger("l.ledger");
    assert_eq!(keys(&shown), ["path", "delta", "budget", "relations", "id", "entries"]);
    assert_eq!(keys(&shown["budget"]), ["epsilon", "delta", "mu"]);
    let relations = shown["relations"].as_array().expect("a list");
    assert_eq!(relations.len(), 2);
    let text = folder.succeed("ledger show l.ledger");
    assert!(text.contains("has to fit under all of them"), "{text}");
    for relation in relations {
        assert_eq!(keys(relation), ["relation", "spent", "left"]);
        let (spent, left) = (number(&relation["spent"]["mu"]), number(&relation["left"]["mu"]));
        let budget = number(&shown["budget"]["mu"]);
        assert!((spent.hypot(left) - budget).abs() < 1e-9, "mu² adds up: {relation}");
    }
    let entry = &shown["entries"][0];
    assert_eq!(keys(entry), ["entry", "time", "purpose", "data", "schema", "charged"]);
    assert_eq!(entry["entry"], 1);
    assert_eq!(entry["purpose"], "fit noisy-gd");
    assert_eq!(entry["data"], "table.csv");
    assert_eq!(entry["schema"], folder.json("model.json")["certificate"]["schema"]);
}

/// Under `replace` the number of rows is public, under `add-remove` it is not, and the ledger promised both.
#[test]
fn rows_are_not_counted_against_another_promise() {
    let folder = Folder::with_table();
    folder.write("schema.toml", SCHEMA.replace("add-remove", "replace"));
    folder.succeed("ledger init l.ledger --epsilon 5 --delta 1e-6 --promise row:replace --promise row:add-remove");
    let message = folder.refuse(4, &fit_with_ledger());
    assert!(message.contains("number of rows is private") && message.contains("`rows`"), "{message}");
    assert!(!folder.exists("model.json") && folder.spent("l.ledger").abs() < 1e-12);
    folder.write("schema.toml", SCHEMA.replace("add-remove\"", "replace\"\nrows = 200"));
    folder.succeed(&fit_with_ledger());
    folder.remove("model.json");
    folder.write("schema.toml", SCHEMA.replace("add-remove", "replace"));
    folder.succeed("ledger init own.ledger --epsilon 5 --delta 1e-6 --promise row:replace");
    folder.succeed(&fit_with_ledger().replace("l.ledger", "own.ledger"));
}

#[test]
fn the_export_holds_every_question() {
    let folder = Folder::with_table();
    folder.succeed(INIT);
    folder.succeed(&fit_with_ledger());
    folder.succeed("evaluate --model model.json --data table.csv --epsilon 0.5 --ledger l.ledger");
    let export = json(&folder.succeed("ledger export l.ledger"));
    assert_eq!(keys(&export), ["format", "version", "id", "mu_squared_step", "promised", "budget", "entries"]);
    let entries = export["entries"].as_array().expect("a list");
    assert_eq!(entries.len(), 2);
    assert_eq!(keys(&entries[0]), ["id", "time", "request", "charged_mu_squared_steps", "seal"]);
    let purposes = |entry: &serde_json::Value| -> Vec<String> {
        let releases = entry["request"]["releases"].as_array().expect("a list").clone();
        releases.iter().map(|release| release["purpose"].as_str().expect("a word").to_owned()).collect()
    };
    assert_eq!(
        purposes(&entries[0]),
        ["class counts", "marginals", "bins of numbers", "gradient", "signal check", "calibration"]
    );
    assert_eq!(purposes(&entries[1]), ["correct predictions", "log loss", "score histogram"]);
    // The certificate's price is the entry's, to the last of its 2^-96 steps.
    let certified = &folder.json("model.json")["certificate"]["mu_squared"];
    assert_eq!(&entries[0]["charged_mu_squared_steps"]["row:add-remove"], certified);
}

/// It tells what was asked of the table, and when.
#[cfg(unix)]
#[test]
fn a_new_ledger_is_kept_from_whom_its_table_is_kept() {
    use std::os::unix::fs::PermissionsExt;

    let folder = Folder::with_table();
    let ledger_beside = |table: u32| {
        std::fs::set_permissions(folder.path("table.csv"), PermissionsExt::from_mode(table)).expect("it is ours");
        folder.succeed(FIT);
        let mode = folder.path("table.csv.ledger").metadata().expect("it is there").permissions().mode() & 0o777;
        folder.remove("table.csv.ledger");
        mode
    };
    assert_eq!([0o600, 0o400].map(ledger_beside), [0o600; 2]);
    folder.write("other", "any new file");
    let usual = folder.path("other").metadata().expect("it is there").permissions().mode() & 0o777;
    assert_eq!(ledger_beside(0o444), usual);
    // Only root may give a file to any group. Whoever is in the maker's is not in that one.
    if std::os::unix::fs::chown(folder.path("table.csv"), None, Some(54_321)).is_ok() {
        assert_eq!(ledger_beside(0o640), 0o600);
    }
}

#[test]
fn a_limit_is_set_once_and_a_promise_never_changes() {
    let folder = Folder::new();
    folder.succeed(INIT);
    let refused = "ledger init l.ledger --epsilon 3 --delta 1e-6";
    assert_snapshot!(folder.refuse(5, refused), @"error: [folder]/l.ledger: the ledger has a limit already, epsilon 2 at delta 1e-6, and a limit once promised is not changed; make a new ledger for new data");
    assert_snapshot!(folder.refuse(2, &format!("{refused} --promise row:label")), @"error: l.ledger: this ledger exists and promises row:add-remove; the promise of a ledger does not change");
}

#[test]
fn an_unlimited_ledger_needs_a_delta_to_be_told_as_epsilon() {
    let folder = Folder::with_table();
    folder.succeed(FIT);
    assert_snapshot!(folder.succeed("ledger show table.csv.ledger"), @"
    Budget: no limit is set
    Spent: mu 0.236705 under row:add-remove; give --delta to see it as epsilon

    entry  time (UTC)            purpose       data       mu
        1  [time]  fit noisy-gd  table.csv  0.236705 row:add-remove
    ");
    let text = folder.succeed("ledger show table.csv.ledger --delta 1e-6");
    assert!(text.contains("(epsilon 1.000000 at delta 1e-6, if no price was chosen in view of earlier answers) in all, under row:add-remove"), "{text}");
    let shown = json(&folder.succeed("ledger show table.csv.ledger --json"));
    assert!(shown["delta"].is_null() && shown["relations"][0]["spent"]["epsilon"].is_null());
    // A limit that comes late changes nothing about what came before.
    let limited = folder.succeed(&INIT.replace("l.ledger", "table.csv.ledger"));
    assert!(limited.contains("if no price was chosen in view of earlier answers) in all"), "{limited}");
    assert!(limited.ends_with("if it was not itself chosen in view of an answer.\n"), "{limited}");
}

#[test]
fn what_is_no_sound_ledger_is_refused_and_left_untouched() {
    let folder = Folder::with_table();
    folder.succeed(INIT);
    folder.succeed(&fit_with_ledger());
    folder.remove("model.json");
    let sound = folder.read("l.ledger");
    let mut newer = sound.clone();
    // `user_version` of SQLite's header: four bytes at 60.
    newer[60..64].copy_from_slice(&4u32.to_be_bytes());
    let mut overwritten = sound.clone();
    overwritten[4096..8192].fill(0xa5);
    let cases: [(&str, &[u8]); 6] = [
        ("empty", b""),
        ("another kind", b"age,dose\n20,SECRETCELL42\n"),
        ("a newer version", &newer),
        ("cut off", &sound[..sound.len() / 2]),
        ("cut within a page", &sound[..5000]),
        ("overwritten", &overwritten),
    ];
    let mut messages = String::new();
    for (name, content) in cases {
        folder.write("l.ledger", content);
        let message = folder.refuse(5, &fit_with_ledger());
        for line in [
            "ledger show l.ledger",
            "ledger export l.ledger",
            INIT,
            "plan --schema schema.toml --epsilon 1 --delta 1e-6 --ledger l.ledger",
        ] {
            assert_eq!(folder.refuse(5, line), message, "{name}: {line}");
        }
        messages.push_str(&format!("{name}: {message}"));
    }
    assert_snapshot!(messages, @r"
    empty: error: [folder]/l.ledger: the file is empty, and a ledger never is: its content was lost, or something else made the file; restore it from a backup, or move it away to begin a new ledger
    another kind: error: [folder]/l.ledger: this is not a ledger of Reticent; check the name (the file was not changed)
    a newer version: error: [folder]/l.ledger: the ledger has format 4 and this release reads up to format 3; use a newer release of Reticent (the file was not changed)
    cut off: error: [folder]/l.ledger: the ledger is damaged (database disk image is malformed); keep this file, restore the newest backup, and count what was spent since as spent
    cut within a page: error: [folder]/l.ledger: the ledger is damaged (database disk image is malformed); keep this file, restore the newest backup, and count what was spent since as spent
    overwritten: error: [folder]/l.ledger: the ledger is damaged (Tree 2 page 2: btreeInitPage() returns error code 11); keep this file, restore the newest backup, and count what was spent since as spent
    ");
    // And the sound one still works.
    folder.write("l.ledger", &sound);
    assert!(folder.spent("l.ledger") > 0.0);
}

#[test]
fn seals_are_verified_against_certificates() {
    let folder = Folder::with_table();
    folder.succeed(INIT);
    let before = folder.read("l.ledger");
    folder.succeed(&fit_with_ledger());
    let verified = json(&folder.succeed("ledger verify l.ledger --model model.json --json"));
    assert_eq!(verified["seal"], folder.json("model.json")["certificate"]["ledger"]["seal"]);
    assert_eq!((&verified["entries"], &verified["models"][0]["entry"]), (&1.into(), &1.into()));
    let text = folder.succeed("ledger verify l.ledger --model model.json");
    assert!(
        text.contains("1 entries, all seals hold") && text.contains("its seal of entry 1 is the ledger's"),
        "{text}"
    );

    // Restored from before the fit, and spent anew: every file is sound by itself.
    folder.write("l.ledger", &before);
    let forgotten = folder.refuse(3, "ledger verify l.ledger --model model.json");
    assert!(forgotten.contains("restored from an older copy or rewritten"), "{forgotten}");
    folder.succeed(&fit_with_ledger().replace("model.json", "second.json"));
    folder.succeed("ledger verify l.ledger --model second.json");
    assert_eq!(folder.refuse(3, "ledger verify l.ledger --model model.json"), forgotten);

    let another = folder.succeed("ledger init other.ledger --epsilon 2 --delta 1e-6");
    assert!(another.contains("other.ledger"));
    let refused = folder.refuse(3, "ledger verify other.ledger --model second.json");
    assert!(refused.contains("name the other"), "{refused}");
}

/// A seal is of what was charged: a certificate that keeps it and says something else is refused.
#[test]
fn a_certificate_that_claims_less_than_was_charged_is_refused() {
    let folder = Folder::with_table();
    let init = "ledger init l.ledger --epsilon 9 --delta 1e-6 --promise row:add-remove --promise row:replace";
    folder.succeed(init);
    let fit = fit_with_ledger().replace("--epsilon 1 ", "--epsilon 3 ");
    folder.succeed(&fit);
    folder.succeed(&fit.replace("--epsilon 3 ", "--epsilon 0.5 ").replace("model.json", "small.json"));
    folder.succeed("ledger verify l.ledger --model model.json --model small.json");
    let verify = "ledger verify l.ledger --model edited.json";
    let (sound, small) = (folder.json("model.json"), folder.json("small.json"));
    let edited = |edit: &dyn Fn(&mut serde_json::Value)| {
        let mut model = sound.clone();
        edit(&mut model);
        folder.write("edited.json", model.to_string());
    };
    // Parts that contradict one another, which every reader of a model sees.
    edited(&|model| model["certificate"]["epsilon"] = 0.01.into());
    assert!(folder.refuse(2, verify).contains("a smaller epsilon than its mu has"));
    assert!(folder.refuse(2, "show edited.json").contains("a smaller epsilon than its mu has"));
    edited(&|model| model["certificate"]["mu_squared"] = small["certificate"]["mu_squared"].clone());
    assert!(folder.refuse(2, verify).contains("a smaller mu than its releases cost"));
    edited(&|model| model["certificate"]["public"] = serde_json::json!(["nothing: all is protected"]));
    assert!(folder.refuse(2, verify).contains("leaves out what its schema takes as public"));
    assert!(folder.refuse(2, "show edited.json").contains("leaves out what its schema takes as public"));
    for edit in [
        &(|model: &mut serde_json::Value| model["certificate"]["schema"] = "0".repeat(64).into())
            as &dyn Fn(&mut serde_json::Value),
        &|model| model["schema"]["features"][0]["kind"]["numeric"]["high"] = 101.0.into(),
    ] {
        edited(edit);
        assert!(folder.refuse(2, "show edited.json").contains("about another schema than the one in it"));
    }
    // Parts that fit one another, of another entry than the one named.
    for (what, edit) in [
        (
            "price under the relation",
            &(|model: &mut serde_json::Value| {
                let reference = model["certificate"]["ledger"].clone();
                model["certificate"] = small["certificate"].clone();
                model["certificate"]["ledger"] = reference;
            }) as &dyn Fn(&mut serde_json::Value),
        ),
        ("price under the relation", &|model| {
            let price: u128 = model["certificate"]["mu_squared"].as_str().expect("text").parse().expect("a number");
            model["certificate"]["mu_squared"] = (price + 1).to_string().into();
        }),
        ("list of releases", &|model| model["certificate"]["releases"][0]["purpose"] = "nothing".into()),
        ("list of releases", &|model| {
            let noise = model["certificate"]["releases"][0]["noise_scale"].as_u64().expect("a number");
            model["certificate"]["releases"][0]["noise_scale"] = (noise * 2).into();
        }),
        ("schema", &|model| {
            model["schema"]["features"][0]["kind"]["numeric"]["high"] = 101.0.into();
            *model = with_own_fingerprint(model.take());
        }),
        ("method", &|model| model["certificate"]["method"] = "walr".into()),
    ] {
        edited(edit);
        folder.succeed("show edited.json");
        let message = folder.refuse(3, verify);
        assert!(
            message.contains(&format!("its {what}")) && message.contains("changed after it was written"),
            "{message}"
        );
    }
}

/// A copy is a second budget that no file betrays; the models that were paid from it do.
#[test]
fn a_copy_that_was_charged_too_is_noticed() {
    let folder = Folder::with_table();
    folder.succeed(INIT);
    folder.write("copy.ledger", folder.read("l.ledger"));
    folder.succeed(&fit_with_ledger().replace("model.json", "first.json"));
    folder.succeed(&fit_with_ledger().replace("l.ledger", "copy.ledger").replace("model.json", "second.json"));
    for (ledger, own, other) in
        [("l.ledger", "first.json", "second.json"), ("copy.ledger", "second.json", "first.json")]
    {
        folder.succeed(&format!("ledger verify {ledger} --model {own}"));
        let found = folder.refuse(3, &format!("ledger verify {ledger} --model {own} --model {other}"));
        assert!(found.contains("restored from an older copy or rewritten"), "{found}");
    }
}

#[test]
fn a_damaged_ledger_beside_the_data_file_is_not_replaced_by_a_new_one() {
    let folder = Folder::with_table();
    folder.write("table.csv.ledger", "");
    assert_snapshot!(folder.refuse(5, FIT), @"error: [folder]/table.csv.ledger: the file is empty, and a ledger never is: its content was lost, or something else made the file; restore it from a backup, or move it away to begin a new ledger");
}

/// A ledger in `/dev` would be found by no later command, or fail after all rows were read.
#[cfg(unix)]
#[test]
fn no_ledger_lies_beside_a_pipe() {
    let folder = Folder::with_table();
    folder.write("model.json", crate::support::MODEL);
    let before = folder.files();
    let run = |line: &str| {
        let mut command = folder.reticent();
        command.args(line.split_whitespace()).write_stdin(folder.read("table.csv"));
        crate::support::Outcome::of(command.output().expect("the program starts"))
    };
    let fit = FIT.replace("table.csv", "/dev/stdin").replace("model.json", "fitted.json");
    let outcome = run(&fit);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""), "{}", outcome.stderr);
    assert_snapshot!(outcome.stderr, @"error: --data /dev/stdin is a pipe or a device, and no ledger can lie beside it; name one with --ledger (`reticent ledger init` makes it)");
    for line in [
        "evaluate --model absent.json --data /dev/stdin --epsilon 1",
        "party fit --schema absent.toml --auxiliary absent.csv --parties absent --votes /dev/stdin --epsilon 1 --delta 1e-6 \
         --out fitted.json",
    ] {
        let outcome = run(line);
        assert_eq!(outcome.code, 2, "{}", outcome.stderr);
        assert!(outcome.stderr.contains("--ledger"), "{}", outcome.stderr);
    }
    assert!(folder.files() == before && !std::path::Path::new("/dev/stdin.ledger").exists());
    folder.succeed(INIT);
    let outcome = run(&fit.replace("--out", "--ledger l.ledger --out"));
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert_eq!(folder.ledger("l.ledger")["entries"][0]["data"], "stdin");

    // A file under another name is no pipe, and has its usual ledger.
    let table = std::fs::File::open(folder.path("table.csv")).expect("it is there");
    let mut command = std::process::Command::new(crate::support::program());
    command.args(fit.split_whitespace()).current_dir(folder.path("")).stdin(table);
    let outcome = crate::support::Outcome::of(command.output().expect("the program starts"));
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert_eq!(folder.ledger("table.csv.ledger")["entries"].as_array().map(Vec::len), Some(1));
}

/// Root may write anything, so the program is then run as nobody.
#[cfg(unix)]
#[test]
fn a_ledger_that_may_not_be_written_is_shown_and_not_charged() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use crate::support::{Outcome, program};

    const NOBODY: u32 = 65_534;
    let folder = Folder::with_table();
    let ledgers = folder.path("ledgers");
    std::fs::create_dir(&ledgers).expect("a folder");
    folder.succeed("ledger init ledgers/l.ledger --epsilon 2 --delta 1e-6");
    let permit = |name: &str, mode: u32| {
        std::fs::set_permissions(folder.path(name), PermissionsExt::from_mode(mode)).expect("permissions")
    };
    // The result has a place, so that only the ledger fails.
    for (name, mode) in [("", 0o777), ("ledgers/l.ledger", 0o444), ("ledgers", 0o555)] {
        permit(name, mode);
    }
    let is_root = folder.path("").metadata().expect("it is there").uid() == 0;
    let command = |program: &std::path::Path| {
        let mut command = Command::new(program);
        command.current_dir(folder.path(""));
        if is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    };
    // The program may lie where nobody has no access.
    let mut reachable = program().to_owned();
    if command(&reachable).arg("--version").output().is_err() {
        reachable = folder.path("program");
        // Another process copies, as a child of another test would hold a copy of ours open for writing while it starts.
        assert!(Command::new("cp").arg(program()).arg(&reachable).status().expect("cp is everywhere").success());
        permit("program", 0o755);
    }
    let run = |line: &str| {
        Outcome::of(command(&reachable).args(line.split_whitespace()).output().expect("the program starts"))
    };
    let before = folder.read("ledgers/l.ledger");
    let fit = FIT.replace("--out", "--ledger ledgers/l.ledger --out");
    let refused = run(&fit);
    assert_eq!((refused.code, refused.stdout.as_str()), (5, ""));
    assert_snapshot!(refused.stderr, @"error: [folder]/ledgers/l.ledger: the ledger cannot be read and written by this process; allow it to read and write the file *and* its folder (a journal lies beside the file while it changes; nothing was spent)");
    assert!(!folder.exists("model.json"));
    assert!(folder.read("ledgers/l.ledger") == before);
    let shown = run("ledger show ledgers/l.ledger");
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(shown.stdout.contains("No entries."), "{}", shown.stdout);
    // The default ledger needs a place beside the data file.
    permit("", 0o555);
    let refused = run("evaluate --model no.json --data table.csv --epsilon 1");
    assert_eq!(refused.code, 5);
    let refused = run(FIT);
    assert_eq!(refused.code, 5, "{}", refused.stderr);
    // The table may be read where nothing may be written: then the ledger has to be named.
    std::fs::create_dir(folder.path("results")).expect("a folder");
    permit("results", 0o777);
    let refused = run(&FIT.replace("model.json", "results/model.json"));
    assert_eq!(refused.code, 5, "{}", refused.stderr);
    let advice = "or make a ledger in another place with `reticent ledger init`, and name it with --ledger";
    assert!(refused.stderr.trim_end().ends_with(advice), "{}", refused.stderr);
    assert!(!folder.exists("table.csv.ledger") && !folder.exists("model.json"));
    permit("", 0o755);
    permit("ledgers", 0o755);
}

/// Under label adjacency all but the label is public: of one column, read in one way.
#[test]
fn a_ledger_that_protects_labels_has_one_label() {
    let folder = Folder::new();
    let rows: String = (0..90).map(|row| format!("{},{}\n", row % 3, row % 5)).collect();
    folder.write("table.csv", format!("y,a\n{rows}"));
    let schema = |target: &str, feature: &str| {
        format!(
            "[privacy]\nunit = \"row\"\nadjacency = \"label\"\n[target]\n{target}\n[features]\n{feature} = {{ bounds = [0, 5] }}\n"
        )
    };
    let fit =
        |name: &str| format!("fit --data table.csv --schema {name}.toml --epsilon 1 --delta 1e-6 --out {name}.json");
    folder.write("three.toml", schema("column = \"y\"\nclasses = [0, 1, 2]", "a"));
    folder.write("two.toml", schema("column = \"y\"\nclasses = [0, 2]", "a"));
    folder.write("never.toml", schema("column = \"y\"\nclasses = [7, 8]", "a"));
    folder.write("swapped.toml", schema("column = \"a\"\nclasses = [0, 1, 2, 3, 4]", "y"));
    folder.succeed(&fit("three"));
    for (name, reason) in
        [("two", "other classes"), ("never", "other classes"), ("swapped", "in the column \"y\" and this one in \"a\"")]
    {
        let message = folder.refuse(4, &fit(name));
        assert!(message.contains("the ledger refuses") && message.contains(reason), "{name}: {message}");
        assert!(!folder.exists(&format!("{name}.json")), "{name}");
    }
    folder.succeed("ledger init other.ledger --promise row:label --epsilon 5 --delta 1e-6");
    folder.succeed(&format!("{} --ledger other.ledger", fit("swapped")));
    folder.succeed("evaluate --model three.json --data table.csv --epsilon 1 --delta 1e-6");
    assert!(folder.succeed("ledger show table.csv.ledger").contains("fit walr"));
}

/// The column that a ledger's promise names is one column of the file: not that of another list of names, nor the header's first row.
#[test]
fn a_ledger_that_protects_units_of_a_column_has_one_column_of_that_name() {
    let folder = Folder::new();
    let rows: String = (0..90).map(|row| format!("p{},v{row},{},{}\n", row % 3, row % 5, row % 2)).collect();
    folder.write("bare.csv", &rows);
    folder.write("headed.csv", format!("patient,visit,a,y\n{rows}"));
    let schema = |unit: &str, table: &str| {
        format!(
            "[privacy]\nunit = {unit}\nadjacency = \"add-remove\"\n[table]\n{table}\n[target]\ncolumn = \"y\"\nclasses = [0, 1]\n\
             [features]\na = {{ bounds = [0, 5] }}\n"
        )
    };
    let (own, other) = ("[\"patient\", \"visit\", \"a\", \"y\"]", "[\"visit\", \"patient\", \"a\", \"y\"]");
    for (unit, column) in [("patient", "{ column = \"patient\", rows_max = 1 }"), ("row", "\"row\"")] {
        folder.write(&format!("{unit}-own.toml"), schema(column, &format!("header = false\ncolumns = {own}")));
        folder.write(&format!("{unit}-other.toml"), schema(column, &format!("header = false\ncolumns = {other}")));
        folder.write(&format!("{unit}-headed.toml"), schema(column, ""));
    }
    let fit = |table: &str, schema: &str, ledger: &str| {
        format!(
            "fit --data {table}.csv --schema {schema}.toml --ledger {ledger} --epsilon 1 --delta 1e-6 --out {schema}.json"
        )
    };
    let init = |promise: &str, ledger: &str| {
        folder.succeed(&format!("ledger init {ledger} --promise {promise}:add-remove --epsilon 9 --delta 1e-6"));
    };
    // Models of every kind, each paid by a ledger of its own.
    for (name, table) in [("own", "bare"), ("other", "bare"), ("headed", "headed")] {
        init("patient<=1", &format!("{name}.ledger"));
        folder.succeed(&fit(table, &format!("patient-{name}"), &format!("{name}.ledger")));
    }
    for (first, table, others) in [
        ("own", "bare", ["other", "headed"]),
        ("other", "bare", ["own", "headed"]),
        ("headed", "headed", ["own", "other"]),
    ] {
        let ledger = format!("{first}.ledger");
        let evaluate = |model: &str| {
            format!(
                "evaluate --model patient-{model}.json --data {table}.csv --ledger {ledger} --epsilon 1 --delta 1e-6"
            )
        };
        for other in others {
            // A table without a header has none to be found.
            if (table, other) != ("bare", "headed") {
                let message = folder.refuse(4, &fit(table, &format!("patient-{other}"), &ledger));
                assert!(message.contains("declare [table] as before"), "{other}: {message}");
                folder.refuse(4, &evaluate(other));
                let message = folder.refuse(4, &format!("{} --schema patient-{other}.toml", evaluate(other)));
                assert!(message.contains("declare [table] as before"), "{other}: {message}");
            }
        }
        folder.succeed(&evaluate(first));
        folder.succeed(&fit(table, &format!("patient-{first}"), &ledger));
    }
    // Rows are units whatever their columns are called.
    init("row", "rows.ledger");
    for (name, table) in [("own", "bare"), ("other", "bare"), ("headed", "headed"), ("other", "headed")] {
        folder.succeed(&fit(table, &format!("row-{name}"), "rows.ledger"));
        folder.succeed(&format!(
            "evaluate --model row-{name}.json --data {table}.csv --ledger rows.ledger --epsilon 1 --delta 1e-6"
        ));
    }
}

/// A fit counts the rows with a usable label before it is planned and paid: of other labels than earlier requests had, that would count
/// those, and a plan that failed by the number would tell it. The default ridge is planned by it.
#[test]
fn a_refusal_does_not_count_labels() {
    let folder = Folder::new();
    let schema = |classes: &str| {
        format!(
            "[privacy]\nunit = \"row\"\nadjacency = \"label\"\n[target]\ncolumn = \"y\"\nclasses = {classes}\n\
             [features]\na = {{ bounds = [0, 5] }}\n"
        )
    };
    folder.write("own.toml", schema("[0, 1]"));
    folder.write("other.toml", schema("[1, 7]"));
    let mut told = Vec::new();
    for ones in [1, 90] {
        let rows: String = (0..90).map(|row| format!("{},{}\n", u8::from(row < ones), row % 5)).collect();
        folder.write("table.csv", format!("y,a\n{rows}"));
        for (ledger, is_used) in [("used", true), ("new", false)] {
            let _ = std::fs::remove_file(folder.path(&format!("{ledger}.ledger")));
            folder.succeed(&format!("ledger init {ledger}.ledger --promise row:label --epsilon 1 --delta 1e-6"));
            let fit = |name: &str, epsilon: &str| {
                format!(
                    "fit --data table.csv --schema {name}.toml --ledger {ledger}.ledger --epsilon {epsilon} --delta 1e-6 \
                     --method output-perturbation --out {name}.json"
                )
            };
            if is_used {
                folder.succeed(&fit("own", "0.5"));
            }
            // One row and 90 have a ridge in range up to about 5e6 and 5e8.
            for epsilon in ["1e6", "1e8", "1e10"] {
                told.push(folder.refuse(4, &fit("other", epsilon)));
            }
        }
    }
    let (few, many) = told.split_at(told.len() / 2);
    assert_eq!(few, many);
}

/// `rows_max` is declared and not counted: by no bound of it does a fit tell how many rows have a usable label, and what it looks at
/// is paid for.
#[test]
fn a_bound_of_the_rows_does_not_count_labels() {
    let schema = |classes: &str, rows_max: u32| {
        format!(
            "[privacy]\nunit = \"row\"\nadjacency = \"label\"\nrows_max = {rows_max}\n[target]\ncolumn = \"y\"\nclasses = {classes}\n\
             [features]\na = {{ bounds = [0, 5] }}\n"
        )
    };
    let rows: String = (0..90).map(|row| format!("{},{}\n", row % 3, row % 5)).collect();
    for method in ["walr", "noisy-gd", "output-perturbation"] {
        for rows_max in [1, 29, 30, 89, 90] {
            let folder = Folder::new();
            folder.write("table.csv", format!("y,a\n{rows}"));
            folder.write("rare.toml", schema("[2, 7]", rows_max));
            folder.write("other.toml", schema("[1, 7]", rows_max));
            let fit = |name: &str| {
                format!(
                    "fit --data table.csv --schema {name}.toml --epsilon 1 --delta 1e-6 --method {method} --out {name}.json"
                )
            };
            folder.succeed(&fit("rare"));
            assert!(folder.spent("table.csv.ledger") > 0.0, "{method}");
            assert!(folder.refuse(4, &fit("other")).contains("other classes"), "{method}");
        }
    }
}

/// An answer about labels alone protects them all; a fit with other classes would then make public which rows have some of them.
#[test]
fn labels_that_were_measured_are_not_told_by_a_fit_with_other_classes() {
    let folder = Folder::new();
    let rows: String = (0..90).map(|row| format!("{row},{},{}\n", row % 3, row % 5)).collect();
    folder.write("table.csv", format!("id,y,a\n{rows}"));
    let weights: String = (0..90).map(|row| format!("{row},{}\n", row * 7 % 100)).collect();
    folder.write("weights.csv", format!("id,q1\n{weights}"));
    for (name, classes) in [("own", "[0, 1, 2]"), ("other", "[1, 7]")] {
        folder.write(
            &format!("{name}.toml"),
            format!(
                "[privacy]\nunit = \"row\"\nadjacency = \"label\"\n[target]\ncolumn = \"y\"\nclasses = {classes}\n\
                 [features]\na = {{ bounds = [0, 5] }}\n"
            ),
        );
    }
    let measure = |ledger: &str| {
        format!(
            "walr measure --weights weights.csv --labels table.csv --id id --schema own.toml --ledger {ledger}.ledger --epsilon 0.5 \
             --delta 1e-6 --out release.json"
        )
    };
    let fit = |ledger: &str, name: &str| {
        format!(
            "fit --data table.csv --schema {name}.toml --ledger {ledger}.ledger --epsilon 0.5 --delta 1e-6 --out model.json"
        )
    };
    for ledger in ["measured", "fitted"] {
        folder.succeed(&format!("ledger init {ledger}.ledger --promise row:label --epsilon 5 --delta 1e-6"));
    }
    folder.succeed(&measure("measured"));
    assert!(folder.refuse(4, &fit("measured", "other")).contains("other classes"));
    folder.succeed(&fit("measured", "own"));
    folder.succeed(&fit("fitted", "other"));
    assert!(folder.refuse(4, &measure("fitted")).contains("other classes"));
}

/// Noise scales are whole, so that the price of a plan wavers a little with the number of rows that it is made for: by a part in 10^8. A limit in
/// between would tell the number, unpaid, by the exit code.
#[test]
fn whether_a_fit_is_paid_for_does_not_depend_on_the_rows_that_it_counts() {
    const ROWS: usize = 400;
    let folder = Folder::new();
    folder.remove("model.json");
    folder.write("table.csv", Table::of(ROWS).csv());
    let label = SCHEMA.replace("add-remove", "label");
    folder.write("schema.toml", &label);
    let planned = |method: &str, rows: usize, epsilon: f64| {
        folder.write("plan.toml", label.replace("\n[target]", &format!("rows = {rows}\n\n[target]")));
        let plan = format!("plan --schema plan.toml --epsilon {epsilon} --delta 1e-6 --method {method} --json");
        json(&folder.succeed(&plan))
    };
    let steps = |squared: &serde_json::Value| squared.as_str().expect("text").parse::<u128>().expect("steps");
    let price = |rows: usize, epsilon: f64| steps(&planned("noisy-gd", rows, epsilon)["price"]["mu_squared"]);
    // A plan for 36,000 rows is made before they are counted.
    let dearer = |epsilon: &f64| price(ROWS, *epsilon) > price(36_000, *epsilon);
    let epsilon = (0..400).map(|step| 0.5 + f64::from(step) * 1e-3).find(dearer).expect("it wavers");
    let (least, most) = (price(36_000, epsilon), price(ROWS, epsilon));
    let (mut low, mut high) = (epsilon * (1.0 - 1e-6), epsilon);
    let limit = (0..60).find_map(|_| {
        let middle = f64::midpoint(low, high);
        let limit = steps(&planned("walr", ROWS, middle)["plan"]["claim"]["mu_squared"]);
        if limit < least {
            low = middle;
        } else if limit >= most {
            high = middle;
        } else {
            return Some(middle);
        }
        None
    });
    let limit = limit.expect("a limit between the two prices");
    folder.succeed(&format!("ledger init l.ledger --epsilon {limit} --delta 1e-6 --promise row:label"));
    let fit = fit_with_ledger().replace("--epsilon 1", &format!("--epsilon {epsilon} --method noisy-gd"));
    folder.succeed(&fit);
    assert_eq!(folder.ledger("l.ledger")["entries"].as_array().map(Vec::len), Some(1));
}
