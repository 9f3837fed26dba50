//! A declared ceiling: memory stays under it whatever the table, and scratch files tell nobody anything and leave nothing.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array};
use insta::assert_snapshot;

use crate::support::{BY_PATIENT, FIT, Folder, SCHEMA, json, keys, number, parquet_of};

/// A fit under a ceiling, with scratch files in the folder `scratch`.
const UNDER: &str = "fit --data table.csv --schema schema.toml --epsilon 1 --delta 1e-6 --out model.json --memory 1GiB \
                     --scratch scratch";

/// A folder with the usual table, and a folder `scratch` that lies on a disk, as the folder of temporary files need not.
#[cfg(unix)]
fn folder() -> Folder {
    let folder = Folder::with_table();
    std::os::unix::fs::symlink(env!("CARGO_TARGET_TMPDIR"), folder.path("scratch")).expect("a link");
    folder
}

#[test]
fn a_ceiling_is_a_number_with_a_unit() {
    let folder = Folder::with_table();
    for size in ["1", "0GiB", "1G", "lots", "GiB", "1e3MiB"] {
        let message = folder.refuse(2, &format!("{FIT} --memory {size}"));
        assert!(message.contains("for example 512MiB"), "{size}: {message}");
    }
    assert_snapshot!(folder.refuse(2, &format!("{FIT} --memory 1024")), @r"
    error: invalid value '1024' for '--memory <SIZE>': a size is a number above 0 and its unit, KiB, MiB, GiB, TiB, kB, MB, GB or TB; for example 512MiB or 1.5GiB

    For more information, try '--help'.
    ");
    let message = folder.refuse(2, &format!("{FIT} --memory 1MiB"));
    assert!(message.starts_with("error: --memory 1MiB is too little for these columns"), "{message}");
    assert!(message.contains("at least ") && message.ends_with("MiB are needed\n"), "{message}");
    // Without a ceiling there is no scratch file to speak of.
    folder.refuse(2, &format!("{FIT} --scratch ."));
    folder.refuse(2, &format!("{FIT} --scratch-unencrypted"));
}

#[test]
fn what_needs_all_rows_in_memory_is_refused_before_a_row_is_read() {
    let folder = Folder::with_table();
    // Not even opened.
    folder.remove("table.csv");
    let fit = format!("{FIT} --memory 1GiB");
    folder.write("schema.toml", SCHEMA.replace("\"add-remove\"", "\"label\"\nrows = 400"));
    assert_snapshot!(folder.refuse(2, &format!("{fit} --method walr")), @"error: --memory does not go with walr, to which the features of all rows are public: it holds them in memory; choose noisy-gd or gram, or leave --memory out");
    // A plan says it too.
    folder.refuse(2, "plan --schema schema.toml --epsilon 1 --delta 1e-6 --memory 1GiB --method walr");
    folder.succeed("plan --schema schema.toml --epsilon 1 --delta 1e-6 --memory 1GiB --method noisy-gd");
}

/// Of which kind a table is shows when it is opened; nothing is paid by then.
#[test]
fn too_little_for_the_pages_of_parquet_is_refused_before_a_row_is_read() {
    let folder = Folder::new();
    let names: Vec<String> = (0..300).map(|feature| format!("x{feature}")).collect();
    let features: String = names.iter().map(|name| format!("{name} = {{ bounds = [0, 1] }}\n")).collect();
    folder.write(
        "schema.toml",
        format!(
            "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nclasses = [0, 1]\n[features]\n{features}"
        ),
    );
    let fit = format!("{FIT} --memory 256MiB --scratch {}", env!("CARGO_TARGET_TMPDIR"));
    let columns = names.iter().map(String::as_str).chain(["y"]);
    let ones: ArrayRef = Arc::new(Int64Array::from(vec![1; 5]));
    folder.write("table.csv", parquet_of(columns.clone().map(|name| (name, ones.clone()))));
    let message = folder.refuse(2, &fit);
    assert!(message.starts_with("error: --memory 256MiB is too little for these columns"), "{message}");
    assert!(!folder.exists("table.csv.ledger"), "nothing was paid");
    let line = vec!["1"; 301].join(",");
    let header = columns.collect::<Vec<_>>().join(",");
    folder.write("table.csv", format!("{header}\n{line}\n{line}\n"));
    folder.succeed(&fit);
}

/// Keys are sorted in memory that the ceiling has to have room for, too.
#[test]
fn too_little_for_the_keys_of_units_is_refused_before_a_row_is_read() {
    let folder = Folder::with_table();
    folder.remove("table.csv");
    let least = || {
        let told = folder.refuse(2, &format!("{FIT} --memory 1MiB"));
        let least = told.split("at least ").nth(1).and_then(|rest| rest.split("MiB").next());
        least.and_then(|least| least.parse::<u32>().ok()).expect("a ceiling that would do")
    };
    let of_rows = least();
    folder.write("schema.toml", SCHEMA.replace("\"row\"", BY_PATIENT));
    let of_units = least();
    assert!((20..22).contains(&(of_units - of_rows)), "{of_units} {of_rows}");
    let plan = "plan --schema schema.toml --epsilon 1 --delta 1e-6";
    let message = folder.refuse(2, &format!("{plan} --memory {of_rows}MiB"));
    assert!(message.starts_with(&format!("error: --memory {of_rows}MiB is too little for these columns")), "{message}");
    folder.succeed(&format!("{plan} --memory {of_units}MiB"));
}

#[cfg(unix)]
#[test]
fn units_of_several_rows_go_under_a_ceiling() {
    let folder = folder();
    folder.write("schema.toml", SCHEMA.replace("\"row\"", BY_PATIENT));
    let plain = json(&folder.succeed(&format!("{FIT} --json")));
    let under = json(&folder.succeed(&format!("{UNDER} --json")));
    assert_eq!(keys(&plain["certificate"]), keys(&under["certificate"]));
    for key in ["releases", "public", "mu", "relation", "method"] {
        assert_eq!(plain["certificate"][key], under["certificate"][key], "{key}");
    }
    let evaluate = "evaluate --model model.json --data table.csv --epsilon 1 --memory 1GiB --scratch scratch";
    folder.succeed(evaluate);
}

#[test]
fn a_scratch_folder_that_is_not_there_costs_nothing() {
    let folder = Folder::with_table();
    assert_snapshot!(folder.refuse(5, &format!("{FIT} --memory 1GiB --scratch no")), @"error: no: cannot make a scratch file here: No such file or directory (os error 2); name another folder with --scratch; nothing was paid");
}

#[cfg(unix)]
#[test]
fn a_fit_under_a_ceiling_is_a_fit_like_any_other() {
    let folder = folder();
    let plain = json(&folder.succeed(&format!("{FIT} --json")));
    for line in [UNDER.to_owned(), format!("{UNDER} --scratch-unencrypted")] {
        let under = json(&folder.succeed(&format!("{line} --json")));
        assert_eq!(keys(&plain["certificate"]), keys(&under["certificate"]));
        for key in ["releases", "public", "mu", "relation", "method"] {
            assert_eq!(plain["certificate"][key], under["certificate"][key], "{key}");
        }
    }
    // Linear regression takes another way through the rows.
    folder.write(
        "schema.toml",
        SCHEMA
            .replace("\"outcome\"\nclasses = [\"no\", \"yes\"]", "\"age\"\nbounds = [0, 100]")
            .replace("age = { bounds = [0, 100] }\n", ""),
    );
    folder.succeed(&UNDER.replace("model.json", "linear.json"));
    assert_eq!(folder.json("linear.json")["task"], "regression");
}

/// With little noise the model is right: what was laid down is what comes back, pass after pass or as a minimum.
#[cfg(unix)]
#[test]
fn a_large_budget_finds_the_signal_under_a_ceiling() {
    let folder = folder();
    let line = UNDER.replace("--epsilon 1 ", "--epsilon 100 ");
    for method in ["objective-perturbation", "output-perturbation --l2 1", "noisy-gd"] {
        folder.succeed(&format!("{line} --method {method}"));
        let figures = json(&folder.succeed("evaluate --model model.json --data table.csv --public --json"));
        assert!(number(&figures["auc"]) > 0.9, "{method}: {figures}");
    }
    let figures = json(&folder.succeed("evaluate --model model.json --data table.csv --public --json"));
    let evaluate = "evaluate --model model.json --data table.csv --epsilon 100 --json --memory 1GiB --scratch scratch";
    let bought = json(&folder.succeed(evaluate));
    assert!((number(&bought["accuracy"]) - number(&figures["accuracy"])).abs() < 0.05, "{bought} {figures}");
}

#[cfg(target_os = "linux")]
mod on_linux {
    use std::fs::{self, File};
    use std::io::Write;
    use std::process::{Child, Command, Stdio};
    use std::thread;
    use std::time::{Duration, Instant};

    use super::{UNDER, folder};
    use crate::support::{BY_PATIENT, Folder, peak_memory, program};

    const NUMBERS: usize = 20;

    /// A unit in the words of a schema, and with its adjacency in those of a ledger.
    #[derive(Clone, Copy)]
    struct Unit(&'static str, &'static str);

    const ROW: Unit = Unit("\"row\"", "row:add-remove");
    const PATIENT: Unit = Unit(BY_PATIENT, "patient<=4:add-remove");

    /// A schema of [`NUMBERS`] numeric features.
    fn write_schema(folder: &Folder, Unit(unit, _): Unit) {
        let mut schema = format!(
            "[privacy]\nunit = {unit}\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nclasses = [\"no\", \"yes\"]\n\
             [features]\n"
        );
        (0..NUMBERS).for_each(|feature| schema.push_str(&format!("x{feature} = {{ bounds = [0, 9] }}\n")));
        folder.write("schema.toml", schema);
    }

    /// Starts a command whose table is a pipe.
    fn start(folder: &Folder, Unit(_, promise): Unit, line: &str) -> (Child, File) {
        folder.remove("table.csv");
        let made = Command::new("mkfifo").arg(folder.path("table.csv")).status().expect("mkfifo");
        assert!(made.success());
        // Beside a pipe none is made.
        let ledger = Command::new(program())
            .args(["ledger", "init", "table.ledger", "--epsilon", "1000", "--delta", "1e-6", "--promise", promise])
            .current_dir(folder.path(""))
            .stdout(Stdio::null())
            .status();
        assert!(ledger.expect("the program starts").success());
        let mut command = Command::new(program());
        command
            .args(line.split_whitespace())
            .args(["--ledger", "table.ledger"])
            .current_dir(folder.path(""))
            .env("RAYON_NUM_THREADS", "2");
        let child = command.stdout(Stdio::null()).spawn().expect("the program starts");
        let pipe = File::options().write(true).open(folder.path("table.csv")).expect("the program reads it");
        (child, pipe)
    }

    fn write_header(pipe: &mut File) {
        let names: Vec<String> = (0..NUMBERS).map(|feature| format!("x{feature}")).collect();
        writeln!(pipe, "{},y,patient", names.join(",")).expect("it is read");
    }

    /// Equal rows: on a disk they are easily recognised.
    fn write_rows(pipe: &mut File, rows: usize, key: impl Fn(usize) -> usize) {
        const ROWS: usize = 1000;
        let row = format!("{}yes", "4,".repeat(NUMBERS));
        for block in 0..rows / ROWS {
            let rows: String = (0..ROWS).map(|number| format!("{row},{}\n", key(block * ROWS + number))).collect();
            pipe.write_all(rows.as_bytes()).expect("it is read");
        }
    }

    /// The peak of a fit of a table with these keys, which is too large for the memory.
    fn peak_of_fit(line: &str, unit: Unit, key: fn(usize) -> usize) -> u64 {
        peak_of(&format!("{line} --method noisy-gd --passes 2"), unit, key)
    }

    fn peak_of(line: &str, unit: Unit, key: fn(usize) -> usize) -> u64 {
        const ROWS: usize = 2_000_000;
        let folder = folder();
        write_schema(&folder, unit);
        let (child, mut pipe) = start(&folder, unit, line);
        thread::scope(|scope| {
            scope.spawn(move || {
                write_header(&mut pipe);
                write_rows(&mut pipe, ROWS, key);
            });
            peak_memory(child)
        })
    }

    #[test]
    fn peak_memory_stays_under_the_ceiling() {
        let ceiling = 128 << 20;
        let under = peak_of_fit(&UNDER.replace("1GiB", "128MiB"), ROW, |_| 1);
        assert!((1 << 20..ceiling).contains(&under), "{under} bytes");
        let without = peak_of_fit(&UNDER.replace("--memory 1GiB --scratch scratch", ""), ROW, |_| 1);
        assert!(without > ceiling, "the table fits, and the test shows nothing: {without} bytes");
        // A search goes over the rows again and again, with room of its own.
        let ceiling = 144 << 20;
        let line = UNDER.replace("1GiB", "144MiB");
        let under = peak_of(&format!("{line} --method objective-perturbation"), ROW, |_| 1);
        assert!((1 << 20..ceiling).contains(&under), "{under} bytes");
    }

    /// As many units as rows, and a single one, all but a few of whose rows are taken out.
    #[test]
    fn peak_memory_stays_under_the_ceiling_whatever_the_number_of_units() {
        let ceiling = 144 << 20;
        for key in [|row| row, |_| 1] {
            let under = peak_of_fit(&UNDER.replace("1GiB", "144MiB"), PATIENT, key);
            assert!((1 << 20..ceiling).contains(&under), "{under} bytes");
        }
        let without = peak_of_fit(&UNDER.replace("--memory 1GiB --scratch scratch", ""), PATIENT, |row| row);
        assert!(without > ceiling, "the table fits, and the test shows nothing: {without} bytes");
    }

    /// The scratch files of a program: what it has open and what has no name.
    fn scratch_files(child: &Child) -> Vec<std::path::PathBuf> {
        let Ok(open) = fs::read_dir(format!("/proc/{}/fd", child.id())) else { return Vec::new() };
        let links = open.filter_map(|entry| Some(entry.ok()?.path()));
        let is_scratch = |link: &std::path::PathBuf| {
            fs::read_link(link).is_ok_and(|file| {
                file.starts_with(env!("CARGO_TARGET_TMPDIR")) && file.to_string_lossy().ends_with("(deleted)")
            })
        };
        links.filter(is_scratch).collect()
    }

    fn wait_for<T>(mut found: impl FnMut() -> Option<T>) -> T {
        let begin = Instant::now();
        loop {
            if let Some(found) = found() {
                return found;
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "it never came");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Looks at the scratch file of a running program, then kills it.
    fn look_and_kill(line: &str) -> Vec<u8> {
        let folder = folder();
        write_schema(&folder, ROW);
        let scratch = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        let line = line.replace("--scratch scratch", &format!("--scratch scratch/{}", name(&scratch)));
        let (mut child, mut pipe) = start(&folder, ROW, &line);
        write_header(&mut pipe);
        // More than a block, and more than the pipe and the reader's buffer hold.
        write_rows(&mut pipe, 200_000, |_| 1);
        let content = wait_for(|| {
            let file = scratch_files(&child).into_iter().next()?;
            fs::read(file).ok().filter(|content| content.len() > 100_000)
        });
        let is_empty = || fs::read_dir(scratch.path()).expect("readable").next().is_none();
        assert!(is_empty(), "it has a name while the program runs");
        child.kill().expect("SIGKILL");
        child.wait().expect("it is ours");
        assert!(is_empty(), "something was left");
        assert!(!folder.exists("table.csv.ledger"), "nothing was charged");
        content
    }

    fn name(folder: &tempfile::TempDir) -> String {
        folder.path().file_name().expect("a name").to_string_lossy().into_owned()
    }

    #[test]
    fn a_kill_leaves_no_scratch_file_and_what_lay_on_the_disk_was_encrypted() {
        let share_of_commonest = |content: &[u8]| {
            let mut counts = [0u32; 256];
            content.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
            f64::from(*counts.iter().max().expect("256")) / content.len() as f64
        };
        // Every byte of a keystream is as likely as every other; equal rows as they are have few values.
        let encrypted = share_of_commonest(&look_and_kill(UNDER));
        assert!(encrypted < 1.5 / 256.0, "{encrypted}");
        let plain = share_of_commonest(&look_and_kill(&format!("{UNDER} --scratch-unencrypted")));
        assert!(plain > 0.3, "{plain}");
    }
}
