//! Tables of many columns of which a row has few: libsvm files, hashed features, wide lists of categories.

use insta::assert_snapshot;

use crate::support::{Folder, json, number};

const LIBSVM: &str = "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[table]\nformat = \"libsvm\"\n[target]\n\
                      column = \"label\"\nclasses = [-1, 1]\n[features]\n\"1..40\" = { bounds = [0, 1] }\n";

const FIT: &str = "fit --data table --schema schema.toml --epsilon 20 --delta 1e-6 --out model.json";

/// Rows whose class is that of their first index.
fn libsvm(rows: usize) -> String {
    let line = |row: usize| {
        let class = row.is_multiple_of(3);
        format!("{} {}:1 {}:0.5 # row\n", if class { "+1" } else { "-1" }, if class { 3 } else { 17 }, 20 + row % 20)
    };
    (0..rows).map(line).collect()
}

#[test]
fn a_libsvm_file_is_fitted_scored_and_measured() {
    let folder = Folder::new();
    folder.write("schema.toml", LIBSVM);
    folder.write("table", libsvm(600));
    assert!(folder.succeed("schema check schema.toml").contains("Features: 40 (41 encoded columns"));
    folder.succeed(FIT);
    folder.succeed("predict --model model.json --data table --out scores.csv");
    let scores = folder.text("scores.csv");
    let mut lines = scores.lines();
    assert_eq!(lines.next(), Some("predicted_class,probability_-1,probability_1"));
    assert_eq!(lines.count(), 600);
    let figures = json(&folder.succeed("evaluate --model model.json --data table --public --json"));
    assert!(number(&figures["accuracy"]) > 0.9, "{figures}");
    assert_snapshot!(folder.refuse(3, "schema draft table"), @r#"error: the first line of table does not look like a header: it has index:value pairs, as libsvm files do, whose schema has format = "libsvm" under [table]; give --no-header if it is a row of data, or --header if it is a header all the same"#);
}

/// Ten thousand words, of which a row has eight: rows list them without being told to.
#[test]
fn a_table_of_many_words_is_fitted_by_what_its_rows_list() {
    let folder = Folder::new();
    folder.write("schema.toml", LIBSVM.replace("1..40", "1..10000"));
    let line = |row: usize| {
        let class = row.is_multiple_of(3);
        let words = (0..7).map(|word| format!(" {}:0.{}", 100 + (row * 37 + word * 1201) % 9000, 1 + word));
        format!(
            "{} {}:0.9{}\n",
            if class { "+1" } else { "-1" },
            if class { 3 } else { 9999 },
            words.collect::<String>()
        )
    };
    folder.write("table", (0..900).map(line).collect::<String>());
    let plan = folder.succeed("plan --schema schema.toml --epsilon 1 --delta 1e-6");
    assert!(plan.contains("of the values of a row that are not 0 the first 512 count (nonzeros_max)"), "{plan}");
    // The folder of temporary files need not lie on a disk.
    let on_disk = concat!(" --memory 400MiB --scratch ", env!("CARGO_TARGET_TMPDIR"));
    for memory in ["", on_disk, " --coordinate-bits 8"] {
        folder.succeed(&format!("{FIT}{memory}"));
        let figures = json(&folder.succeed("evaluate --model model.json --data table --public --json"));
        assert!(number(&figures["accuracy"]) > 0.95, "{memory}: {figures}");
        folder.remove("model.json");
    }
}

#[test]
fn values_that_nobody_lists_are_hashed() {
    let folder = Folder::new();
    let schema = "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nclasses = [0, 1]\n\
                  [features]\nsite = { hash_buckets = 5000 }\nage = { bounds = [0, 100] }\n";
    let rows: String =
        (0..900).map(|row| format!("site-{},{},{}\n", row % 9, row % 90, u8::from(row % 9 < 4))).collect();
    folder.write("schema.toml", schema);
    folder.write("table", format!("site,age,y\n{rows}"));
    // The folder of temporary files need not lie on a disk.
    let on_disk = concat!(" --memory 1GiB --scratch ", env!("CARGO_TARGET_TMPDIR"));
    for memory in ["", on_disk] {
        folder.succeed(&format!("{FIT}{memory}"));
        let figures = json(&folder.succeed("evaluate --model model.json --data table --public --json"));
        assert!(number(&figures["accuracy"]) > 0.9, "{figures}");
        folder.remove("model.json");
    }
    let plan = folder.succeed("plan --schema schema.toml --epsilon 1 --delta 1e-6");
    assert!(plan.contains("number of hash buckets of 1 hashed feature"), "{plan}");
}

/// What would be paid for and could not be read again.
#[test]
fn a_model_that_is_too_large_is_refused_before_it_is_paid() {
    let folder = Folder::new();
    let hashed: String = (0..8).map(|feature| format!("h{feature} = {{ hash_buckets = 60000 }}\n")).collect();
    folder.write(
        "schema.toml",
        format!("[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nclasses = [0, 1, 2]\n[features]\n{hashed}"),
    );
    folder.write("table", "h0,h1,h2,h3,h4,h5,h6,h7,y\n1,1,1,1,1,1,1,1,1\n");
    assert_snapshot!(folder.refuse(2, FIT), @"error: a model of 480009 encoded columns and 3 outputs would be a file of more than 128 MiB, which is not read again; list fewer categories or classes, or fewer hash buckets");
    assert!(!folder.exists("table.ledger"));
}

/// A row has three of 30,000 columns: fits without privacy take less than an eighth of what the zeros alone would.
#[cfg(target_os = "linux")]
#[test]
fn public_rows_of_many_columns_take_what_they_list() {
    use std::process::{Command, Stdio};

    use crate::support::{SCHEMA, peak_memory, program};

    const COLUMNS: usize = 30_000;
    const ROWS: usize = 5_000;
    let folder = Folder::new();
    let row = |row: usize| {
        let site = row * row % 29_989;
        format!(
            "{},{site},{},{}\n",
            row % 90,
            if site.is_multiple_of(3) { "yes" } else { "no" },
            ["a", "b", "c"][site % 3]
        )
    };
    folder.write("table.csv", format!("age,site,outcome,kind\n{}", (0..ROWS).map(row).collect::<String>()));
    let head = &SCHEMA[..SCHEMA.find("[features]").expect("a schema has features")];
    let of_target = |target: &str| {
        let head = head.replace("column = \"outcome\"\nclasses = [\"no\", \"yes\"]", target);
        format!("{head}[features]\nage = {{ bounds = [0, 100], log = false }}\nsite = {{ hash_buckets = {COLUMNS} }}\n")
    };
    let kinds = "column = \"kind\"\nclasses = [\"a\", \"b\", \"c\"]";
    let (outcome, number) =
        ("column = \"outcome\"\nclasses = [\"no\", \"yes\"]", "column = \"age\"\nbounds = [0, 100]");
    folder.write("schema.toml", of_target(outcome).replace("add-remove", "party"));
    folder.write("kinds.toml", of_target(kinds));
    folder.write("number.toml", of_target(number).replace("age = { bounds = [0, 100], log = false }\n", ""));
    let succeed = |line: &str| {
        let mut command = Command::new(program());
        command.args(line.split_whitespace()).current_dir(folder.path("")).stdout(Stdio::null());
        let peak = peak_memory(command.spawn().expect("the program starts"));
        let dense = (8 * ROWS * COLUMNS) as u64;
        assert!((1 << 20..dense / 8).contains(&peak), "{line}: {peak} bytes");
    };
    for schema in ["schema", "kinds", "number"] {
        succeed(&format!("fit-public --data table.csv --schema {schema}.toml --out {schema}.json"));
    }
    succeed("plan --public-data table.csv --schema kinds.toml --epsilon 1 --delta 1e-6");
    let public = "--schema schema.toml --auxiliary table.csv";
    succeed(&format!("party vote {public} --party a --data table.csv --out a.csv"));
    // The combiner wants all columns of all auxiliary rows, and a model has a size.
    folder.write("parties", "a\nb\n");
    let plan = format!("party plan {public} --parties parties --epsilon 1 --delta 1e-6");
    let message = folder.refuse(2, &plan);
    assert!(message.contains("5000 auxiliary rows of 30003 encoded columns"), "{message}");
    let many: Vec<String> = (0..60).map(|class| format!("\"{class}\"")).collect();
    folder.write("kinds.toml", of_target(&kinds.replace("\"a\", \"b\", \"c\"", &many.join(", "))));
    let message = folder.refuse(2, "fit-public --data nowhere.csv --schema kinds.toml --out m.json");
    assert!(message.contains("a model of 30003 encoded columns and 60 outputs"), "{message}");
}
