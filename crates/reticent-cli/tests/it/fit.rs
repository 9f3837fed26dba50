//! `reticent fit`: the result, the price and the account.

use insta::assert_snapshot;

use crate::support::{DOSE, FIT, Folder, SCHEMA, Table, gzip, is_close, json, keys, number, xz, zstd};

#[test]
fn stdout_tells_claim_model_and_account() {
    let folder = Folder::with_table();
    assert_snapshot!(folder.succeed(FIT), @"
    Privacy: epsilon 1 at delta 1e-6 (mu 0.236705)
    Protects: row:add-remove
    Public:
      - names of the columns; bounds of 2 numeric and categories of 1 categorical features
      - target column `outcome` and its classes or bounds
      - at most 2147483648 rows
      - 7 encoded columns

    Model: model.json
    Ledger [folder]/table.csv.ledger: this table has paid mu 0.236705 (epsilon 1.000000 at delta 1e-6, if no price was chosen in view of earlier answers) in all, under row:add-remove
      no limit is set; the owner can set one with `reticent ledger init`
    ");
    let files: Vec<String> = folder.files().into_keys().collect();
    assert_eq!(files, ["model.json", "schema.toml", "table.csv", "table.csv.ledger"]);
}

#[test]
fn json_tells_the_same() {
    let folder = Folder::with_table();
    let result = json(&folder.succeed(&format!("{FIT} --json")));
    assert_eq!(keys(&result), ["model", "certificate", "remark", "ledger"]);
    assert_eq!(result["model"], "model.json");
    assert_eq!(result["certificate"], folder.json("model.json")["certificate"]);
    assert_eq!(keys(&result["ledger"]), ["path", "delta", "budget", "relations"]);
    assert!(result["ledger"]["path"].as_str().is_some_and(|path| path.ends_with("table.csv.ledger")), "{result}");
    assert!(result["ledger"]["budget"].is_null());
    let relation = &result["ledger"]["relations"][0];
    assert_eq!(relation["relation"], "row:add-remove");
    let (certified, spent) = (number(&result["certificate"]["mu"]), number(&relation["spent"]["mu"]));
    assert!(is_close(certified, spent, 1e-12), "{certified} {spent}");
    // What is claimed is what was asked: not more, and hardly less.
    let epsilon = number(&relation["spent"]["epsilon"]);
    assert!(epsilon <= 1.0 + 1e-9 && epsilon > 0.999, "{epsilon}");
}

/// What no refusal may tell, counts do that the fit releases anyway.
#[test]
fn a_table_without_a_usable_target_is_remarked() {
    let folder = Folder::with_table();
    folder.write("schema.toml", SCHEMA.replace(r#"["no", "yes"]"#, r#"["No", "Yes"]"#));
    let remark = |text: &str| text.lines().find(|line| line.starts_with("Remark: ")).map(str::to_owned);
    let told = remark(&folder.succeed(FIT)).expect("no label is usable");
    for part in ["show no rows with a usable target", "compare the values of its column `outcome` with `classes`"] {
        assert!(told.contains(part), "{told}");
    }
    assert_eq!(remark(&folder.succeed("show model.json")), Some(told));
    // Numbers with decimal commas.
    let comma = Table::usual().with(|_, row| row[DOSE] = format!("\"{},5\"", row[DOSE].replace('.', "")));
    folder.write("table.csv", comma.csv());
    let number = SCHEMA.replace("dose = { bounds = [0, 5000] }\n", "");
    let number = number.replace("\"outcome\"\nclasses = [\"no\", \"yes\"]", "\"dose\"\nbounds = [0, 5000]");
    folder.write("schema.toml", number);
    for method in ["noisy-gd", "gram"] {
        folder.remove("table.csv.ledger");
        let told = remark(&folder.succeed(&format!("{FIT} --method {method}"))).expect("no number is usable");
        assert!(told.contains("the numbers of its column `dose` are written: 12.5, not 12,5"), "{told}");
    }
    let fitted = json(&folder.succeed(&format!("{FIT} --json")));
    assert!(fitted["remark"].as_str().is_some_and(|remark| remark.contains("usable target")), "{fitted}");
    // There is none about the usual table.
    let usual = Folder::with_table();
    assert_eq!(remark(&usual.succeed(FIT)), None);
    assert!(usual.json("model.json").get("remark").is_none());
}

/// Spending is never untracked: the ledger beside the data file adds up.
#[test]
fn the_ledger_beside_the_data_file_accumulates() {
    let folder = Folder::with_table();
    folder.succeed(FIT);
    let once = folder.spent("table.csv.ledger");
    folder.succeed(FIT);
    folder.succeed(FIT);
    let thrice = folder.spent("table.csv.ledger");
    assert!(is_close(thrice, once * 3f64.sqrt(), 1e-9), "{once} {thrice}");
    let ledger = folder.ledger("table.csv.ledger");
    assert_eq!(ledger["entries"].as_array().map(Vec::len), Some(3));
    assert_eq!(folder.json("model.json")["certificate"]["ledger"]["entry"], 3);
    assert_eq!(folder.json("model.json")["certificate"]["ledger"]["id"], ledger["id"]);
}

/// Noise is fresh in every run: the same command gives another model.
#[test]
fn two_runs_differ() {
    let folder = Folder::with_table();
    folder.succeed(FIT);
    let first = folder.json("model.json");
    folder.succeed(FIT);
    assert_ne!(first["outputs"][0]["coefficients"], folder.json("model.json")["outputs"][0]["coefficients"]);
    assert_ne!(first["outputs"][0]["intercept"], folder.json("model.json")["outputs"][0]["intercept"]);
}

#[test]
fn a_model_replaces_the_one_that_was_there_and_is_as_readable_as_any_file() {
    let folder = Folder::with_table();
    folder.write("model.json", "old");
    folder.succeed(FIT);
    assert_eq!(folder.json("model.json")["format"], "reticent-model");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |name: &str| folder.path(name).metadata().expect("it is there").permissions().mode() & 0o777;
        // The table was written by this process under the same umask.
        assert_eq!(mode("model.json"), mode("table.csv"));
    }
}

/// With a large budget the signal in the table is found: age and ward decide the outcome, the dose does not.
#[test]
fn a_large_budget_finds_the_signal() {
    let folder = Folder::with_table();
    folder.write("table.csv", Table::of(4000).csv());
    folder.succeed(&FIT.replace("--epsilon 1 ", "--epsilon 20 "));
    let figures = json(&folder.succeed("evaluate --model model.json --data table.csv --public --json"));
    assert!(number(&figures["accuracy"]) > 0.85, "{figures}");
    assert!(number(&figures["auc"]) > 0.93, "{figures}");
    let model = folder.json("model.json");
    let coefficient = |column: &str| {
        let all = model["outputs"][0]["coefficients"].as_array().expect("a list");
        number(&all.iter().find(|one| one["column"] == column).expect("the column")["coefficient"])
    };
    assert!(coefficient("age") > 0.02 && coefficient("ward=south") > coefficient("ward=north") + 0.5, "{model}");
}

/// Another name of the same table is no second budget.
#[cfg(unix)]
#[test]
fn a_link_to_a_table_shares_its_ledger() {
    let folder = Folder::with_table();
    folder.succeed(FIT);
    std::os::unix::fs::symlink(folder.path("table.csv"), folder.path("link.csv")).expect("a link");
    folder.succeed(&FIT.replace("table.csv", "link.csv"));
    assert!(!folder.exists("link.csv.ledger"));
    assert_eq!(folder.ledger("table.csv.ledger")["entries"].as_array().map(Vec::len), Some(2));
}

#[test]
fn every_format_of_a_table_is_fitted() {
    let table = Table::usual();
    for (name, bytes) in [
        ("table.csv.gz", gzip(&table.csv())),
        ("table.csv.xz", xz(&table.csv())),
        ("table.csv.zst", zstd(&table.csv())),
        ("table.parquet", table.parquet()),
    ] {
        let folder = Folder::new();
        folder.write(name, bytes);
        folder.succeed(&FIT.replace("table.csv", name));
        assert!(folder.exists(&format!("{name}.ledger")));
        assert_eq!(folder.ledger(&format!("{name}.ledger"))["entries"][0]["data"], name);
    }
}

#[test]
fn a_public_model_can_be_the_start() {
    let folder = Folder::new();
    folder.write("table.csv", Table::usual().csv());
    folder.succeed(
        &FIT.replace("--out model.json", "--init model.json --passes 1 --epsilon 1e-6 --out next.json")
            .replace("--epsilon 1 ", ""),
    );
    let public = folder.json("next.json")["certificate"]["public"].clone();
    let public = public.as_array().expect("a list").iter().map(|fact| fact.as_str().expect("a sentence"));
    assert_snapshot!(public.filter(|fact| fact.contains("start model")).collect::<Vec<_>>().join("\n"), @"
    the start model (sha256 [fingerprint]), declared public
    the start model was itself fitted privately: epsilon 1 at delta 1e-6 (mu 0.236705), ledger [id], entry 1; for units that are in both tables the two claims add up
    ");
    // One pass at such a price moves the weights little: measured, the coefficient scatters by 0.0003.
    let age = &folder.json("next.json")["outputs"][0]["coefficients"][0];
    assert_eq!(age["column"], "age");
    assert!((number(&age["coefficient"]) - 0.06).abs() < 0.03, "{age}");
    folder.write("schema.toml", SCHEMA.replace("[0, 5000]", "[0, 6000]"));
    assert_snapshot!(folder.refuse(2, &FIT.replace("--out model.json", "--init model.json --out other.json")), @r#"error: the start model does not fit the schema: its feature "dose" has other bounds, categories or `missing`; declare them alike"#);
}

/// Where neighbouring tables have as many rows a fit counts them and says so. A plan, which reads no table, does not know.
#[test]
fn rows_are_counted_where_their_number_is_public() {
    let folder = Folder::with_table();
    let rows = std::fs::read_to_string(folder.path("table.csv")).expect("there").lines().count() - 1;
    let told =
        format!("a figure of {rows} for the number of units, declared in the schema or counted where it declares none");
    let tells = |schema: String, command: &str| {
        folder.write("schema.toml", schema);
        let _ = std::fs::remove_file(folder.path("table.csv.ledger"));
        folder.succeed(command);
        folder.json("model.json")["certificate"].to_string().contains(&told)
    };
    let of = |adjacency: &str| SCHEMA.replace("add-remove", adjacency);
    assert!(!tells(of("add-remove"), FIT));
    assert!(!tells(of("replace").replace("\"row\"", "{ column = \"patient\", rows_max = 4 }"), FIT));
    assert!(tells(of("label"), FIT) && tells(of("replace"), FIT));
    let lecture = format!("{FIT} --method noisy-gd-lecture --passes 2");
    assert!(tells(of("replace"), &lecture));
    let plan = "plan --schema schema.toml --epsilon 1 --delta 1e-6 --method noisy-gd-lecture";
    assert!(folder.refuse(2, plan).contains("counts it itself under replace and label"));
}

/// Which flags are refused, unpaid, would tell the number of rows with a usable label if that chose the method.
#[test]
fn the_method_is_chosen_before_rows_are_counted() {
    let folder = Folder::with_table();
    let schema = SCHEMA.replace("add-remove", "replace").replace("classes = [\"no\", \"yes\"]", "bounds = [0, 1]");
    folder.write("schema.toml", schema.replace("\"outcome\"", "\"patient\""));
    let fit = |epsilon: u32, flag: &str| {
        let line = FIT.replace("--epsilon 1 ", &format!("--epsilon {epsilon} "));
        let outcome = folder.run(&format!("{line} --method auto {flag}"));
        let _ = std::fs::remove_file(folder.path("table.csv.ledger"));
        (outcome.code, outcome.stderr)
    };
    for (epsilon, flag, is_refused) in
        [(1, "--scaling bounds", true), (20, "--scaling bounds", false), (20, "--passes 100", true)]
    {
        let told = [20, 4000].map(|rows| {
            folder.write("table.csv", Table::of(rows).csv());
            fit(epsilon, flag)
        });
        assert_eq!(told[0], told[1], "--epsilon {epsilon} {flag}");
        assert_eq!(told[0].0, if is_refused { 2 } else { 0 }, "--epsilon {epsilon} {flag}: {}", told[0].1);
    }
}

/// All rows of a patient are one unit: the certificate says so, and rows beyond the cap do not count.
#[test]
fn grouped_units_are_protected_as_a_whole() {
    let folder = Folder::with_table();
    folder.write("schema.toml", SCHEMA.replace("\"row\"", "{ column = \"patient\", rows_max = 4 }"));
    let text = folder.succeed(FIT);
    assert!(text.contains("Protects: patient<=4:add-remove"), "{text}");
    let per_row = &folder.json("model.json")["certificate"]["releases"][1]["sensitivity"];
    let init = "ledger init both.ledger --epsilon 5 --delta 1e-6";
    folder.succeed(&format!("{init} --promise patient<=4:replace --promise patient<=4:add-remove"));
    folder.succeed(&FIT.replace("--out", "--ledger both.ledger --out"));
    assert_eq!(per_row, &folder.json("model.json")["certificate"]["releases"][1]["sensitivity"]);
    // Replacing somebody moves the sums further: charged in each relation with its own sensitivity.
    let ledger = folder.ledger("both.ledger");
    let spent = |relation: &str| {
        let all = ledger["relations"].as_array().expect("a list");
        number(&all.iter().find(|one| one["relation"] == relation).expect("promised")["spent"]["mu"])
    };
    let ratio = spent("patient<=4:replace") / spent("patient<=4:add-remove");
    assert!((1.9..2.0).contains(&ratio), "{ledger}");
    folder.write("table.csv", "age,dose,ward,outcome\n20,100,north,no\n");
    let message = folder.refuse(3, &FIT.replace("--out", "--ledger both.ledger --out"));
    assert!(message.contains("has no column \"patient\", which the schema names as the privacy unit"), "{message}");
}

/// Four fits at once on a budget for one: exactly one is admitted.
#[test]
fn fits_at_once_do_not_spend_a_budget_twice() {
    let folder = Folder::with_table();
    folder.succeed("ledger init l.ledger --epsilon 1 --delta 1e-6");
    let codes: Vec<i32> = std::thread::scope(|scope| {
        let fit = |number: usize| {
            let line = FIT.replace("--out model.json", &format!("--ledger l.ledger --out model-{number}.json"));
            let mut command = folder.reticent();
            command.args(line.split_whitespace());
            move || command.output().expect("the program starts").status.code().expect("not killed")
        };
        let running: Vec<_> = (0..4).map(|number| scope.spawn(fit(number))).collect();
        running.into_iter().map(|one| one.join().expect("no panic")).collect()
    });
    let mut sorted = codes.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, [0, 4, 4, 4]);
    for (number, code) in codes.iter().enumerate() {
        assert_eq!(folder.exists(&format!("model-{number}.json")), *code == 0);
    }
    assert_eq!(folder.ledger("l.ledger")["entries"].as_array().map(Vec::len), Some(1));
}
