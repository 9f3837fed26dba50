//! Requests that cannot be met: flags, schemas, start models and budgets. Nothing is read, written or charged for them.

use insta::assert_snapshot;

use crate::support::{FIT, Folder, MODEL, SCHEMA, is_close, json, number};

/// First line of each message, behind the value that was tried.
fn refusals(folder: &Folder, code: i32, line: &str, values: &[&str]) -> String {
    let mut text = String::new();
    for value in values {
        let message = folder.refuse(code, &line.replace("VALUE", value));
        text.push_str(&format!("{value:>6}  {}\n", message.lines().next().unwrap_or_default()));
    }
    text
}

const VALUES: [&str; 8] = ["0", "-1", "NaN", "1e400", "inf", "-0", "1e-400", "much"];

#[test]
fn epsilon_is_a_finite_number_above_zero() {
    let folder = Folder::with_table();
    let fit = "fit --data table.csv --schema schema.toml --epsilon=VALUE --delta 1e-6 --out model.json";
    assert_snapshot!(refusals(&folder, 2, fit, &VALUES), @r#"
         0  error: invalid value '0' for '--epsilon <EPSILON>': epsilon must be a finite number above 0, not "0"
        -1  error: invalid value '-1' for '--epsilon <EPSILON>': epsilon must be a finite number above 0, not "-1"
       NaN  error: invalid value 'NaN' for '--epsilon <EPSILON>': epsilon must be a finite number above 0, not "NaN"
     1e400  error: invalid value '1e400' for '--epsilon <EPSILON>': epsilon must be a finite number above 0, not "1e400"
       inf  error: invalid value 'inf' for '--epsilon <EPSILON>': epsilon must be a finite number above 0, not "inf"
        -0  error: invalid value '-0' for '--epsilon <EPSILON>': epsilon must be a finite number above 0, not "-0"
    1e-400  error: invalid value '1e-400' for '--epsilon <EPSILON>': epsilon must be a finite number above 0, not "1e-400"
      much  error: invalid value 'much' for '--epsilon <EPSILON>': epsilon must be a finite number above 0, not "much"
    "#);
    for command in [
        "plan --schema schema.toml --epsilon=VALUE --delta 1e-6",
        "ledger init l.ledger --epsilon=VALUE --delta 1e-6",
        "evaluate --model model.json --data table.csv --epsilon=VALUE --delta 1e-6",
        "demo --epsilon=VALUE",
    ] {
        assert!(!refusals(&folder, 2, command, &VALUES).is_empty());
    }
}

#[test]
fn delta_is_strictly_between_zero_and_one() {
    let folder = Folder::with_table();
    let values = ["0", "1", "2", "-1", "NaN", "inf", "1e-400"];
    let fit = "fit --data table.csv --schema schema.toml --epsilon 1 --delta=VALUE --out model.json";
    assert_snapshot!(refusals(&folder, 2, fit, &values), @r#"
         0  error: invalid value '0' for '--delta <DELTA>': delta must be a number strictly between 0 and 1, not "0"
         1  error: invalid value '1' for '--delta <DELTA>': delta must be a number strictly between 0 and 1, not "1"
         2  error: invalid value '2' for '--delta <DELTA>': delta must be a number strictly between 0 and 1, not "2"
        -1  error: invalid value '-1' for '--delta <DELTA>': delta must be a number strictly between 0 and 1, not "-1"
       NaN  error: invalid value 'NaN' for '--delta <DELTA>': delta must be a number strictly between 0 and 1, not "NaN"
       inf  error: invalid value 'inf' for '--delta <DELTA>': delta must be a number strictly between 0 and 1, not "inf"
    1e-400  error: invalid value '1e-400' for '--delta <DELTA>': delta must be a number strictly between 0 and 1, not "1e-400"
    "#);
    for command in [
        "plan --schema schema.toml --epsilon 1 --delta=VALUE",
        "ledger init l.ledger --epsilon 1 --delta=VALUE",
        "evaluate --model model.json --data table.csv --epsilon 1 --delta=VALUE",
    ] {
        assert!(!refusals(&folder, 2, command, &values).is_empty());
    }
}

/// The message is about the number, also where a shell user leaves out the `=`.
#[test]
fn a_negative_number_is_not_taken_for_a_flag() {
    let folder = Folder::with_table();
    let fit = "fit --data table.csv --schema schema.toml --epsilon -1 --delta 1e-6 --out model.json";
    let message = folder.refuse(2, fit);
    assert!(message.contains("epsilon must be a finite number above 0"), "{message}");
}

/// Legal, and beyond what noise on a lattice can give: an error of the plan or a plan, never a defect.
#[test]
fn extreme_budgets_are_planned_or_refused() {
    let folder = Folder::with_table();
    for epsilon in ["1e-300", "1e-20", "1e-9", "700", "1e6", "1e300"] {
        for delta in ["1e-300", "1e-12", "0.999999"] {
            let line = format!("plan --schema schema.toml --epsilon {epsilon} --delta {delta} --json");
            let outcome = folder.run(&line);
            match outcome.code {
                0 => {
                    let plan = json(&outcome.stdout);
                    assert!(number(&plan["plan"]["claim"]["mu"]) > 0.0, "{line}");
                }
                2 => assert!(outcome.stderr.contains("too small a budget"), "{line}: {}", outcome.stderr),
                code => panic!("{line}: exit code {code}, {}", outcome.stderr),
            }
        }
    }
    assert_snapshot!(folder.refuse(2, "plan --schema schema.toml --epsilon 1e-20 --delta 1e-30"), @"error: mu 0e0 is too small a budget for 1 release: the noise would pass 2^60 lattice units; ask for more epsilon");
    let ridge = "plan --schema schema.toml --epsilon 0.1 --delta 1e-6 --method objective-perturbation --l2 0.05";
    assert_snapshot!(folder.refuse(2, ridge), @"error: --l2 is too small for mu 0.0275: the smaller the ridge, the more one row can bend the loss, and beyond that no noise hides it; ask for a larger --l2, or leave it out for one that fits the budget");
}

#[test]
fn parameters_of_the_method_are_checked_before_anything_is_paid() {
    let folder = Folder::with_table();
    let fit = |flags: &str| format!("{FIT} {flags}");
    let mut messages = String::new();
    for flags in ["--l2=-1", "--l2=NaN", "--passes=0", "--passes=100001"] {
        messages.push_str(&folder.refuse(2, &fit(flags)));
    }
    assert_snapshot!(messages, @r#"
    error: --l2 must be a finite number of at least 0, not "-1"
    error: --l2 must be a finite number of at least 0, not "NaN"
    error: --passes must be between 1 and 100000, not "0"
    error: --passes must be between 1 and 100000, not "100001"
    "#);
    for flags in ["--passes=-1", "--passes=1.5", "--l2=x", "--method=newton", "--seed=1"] {
        folder.refuse(2, &fit(flags));
    }
}

#[test]
fn what_is_left_out_is_asked_for() {
    let folder = Folder::with_table();
    assert_snapshot!(folder.refuse(2, "fit --data table.csv"), @r"
    error: the following required arguments were not provided:
      --schema <FILE>
      --epsilon <EPSILON>
      --delta <DELTA>
      --out <MODEL>

    Usage: reticent fit --data <FILE> --schema <FILE> --epsilon <EPSILON> --delta <DELTA> --out <MODEL>

    For more information, try '--help'.
    ");
    // The rows may be private or public: one way alone would be advice.
    assert_snapshot!(folder.refuse(2, "evaluate --model model.json --data table.csv"), @r"
    error: the following required arguments were not provided:
      <--epsilon <EPSILON>|--public>

    Usage: reticent evaluate --model <MODEL> --data <FILE> <--epsilon <EPSILON>|--public>

    For more information, try '--help'.
    ");
    for audit in ["audit --method gram", "party audit"] {
        let message = folder.refuse(2, audit);
        // Listed, and in the usage.
        assert_eq!(message.matches("<--mu <MU>|--epsilon <EPSILON>>").count(), 2, "{message}");
    }
    folder.refuse(2, "audit --method gram --mu 1 --epsilon 1");
    folder.refuse(2, "evaluate --model model.json --data table.csv --public --epsilon 1");
    folder.refuse(2, "evaluate --model model.json --data table.csv --public --ledger l.ledger");
}

/// The refusal tells what was asked, what is left, and the largest request that fits; that request is then admitted.
#[test]
fn an_exhausted_budget_tells_what_is_left() {
    let folder = Folder::with_table();
    folder.succeed("ledger init l.ledger --epsilon 1 --delta 1e-6");
    let fit = |epsilon: &str| {
        format!(
            "fit --data table.csv --schema schema.toml --epsilon {epsilon} --delta 1e-6 --ledger l.ledger --out model.json"
        )
    };
    folder.succeed(&fit("0.8"));
    folder.remove("model.json");
    // What is left is 0.55977745..., so the figure is the same rounded down and rounded to the nearest.
    let message = folder.refuse(4, &fit("0.8"));
    assert_snapshot!(message, @"error: the ledger refuses: under row:add-remove the request costs mu 0.192379 (epsilon 0.800000 at delta 1e-6) and mu 0.137910 is left; the largest request that fits is epsilon 0.559777 at delta 1e-6");
    assert_eq!(folder.ledger("l.ledger")["entries"].as_array().map(Vec::len), Some(1));
    folder.succeed(&fit(largest_request(&message)));
    let refused = folder.refuse(4, &fit("0.01"));
    assert!(refused.contains("the largest request that fits is epsilon 0.000"), "{refused}");
}

/// Whatever the digits, the printed epsilon is not above the largest one that fits.
#[test]
fn the_largest_request_is_rounded_down() {
    let folder = Folder::with_table();
    for (number, limit) in
        ["0.123456789", "0.2345678", "0.7654321", "1.9999999", "3.1415926", "0.0314159265"].iter().enumerate()
    {
        let ledger = format!("{number}.ledger");
        folder.succeed(&format!("ledger init {ledger} --epsilon {limit} --delta 1e-6"));
        let plan = |epsilon: &str| {
            format!("plan --schema schema.toml --epsilon {epsilon} --delta 1e-6 --ledger {ledger} --json")
        };
        let refused = json(&folder.succeed(&plan("9")));
        assert_eq!(refused["ledger"]["admits"], false);
        let message = refused["ledger"]["refusal"].as_str().expect("a message").to_owned();
        let admitted = json(&folder.succeed(&plan(largest_request(&message))));
        assert_eq!(admitted["ledger"]["admits"], true, "{limit}: {message}");
    }
}

fn largest_request(message: &str) -> &str {
    let (_, after) = message.split_once("the largest request that fits is epsilon ").expect("it says what fits");
    after.split(' ').next().expect("a number")
}

#[test]
fn a_limit_set_on_an_unlimited_ledger_is_enforced() {
    let folder = Folder::with_table();
    folder.succeed(FIT);
    folder.remove("model.json");
    let told = folder.succeed("ledger init table.csv.ledger --epsilon 1.2 --delta 1e-6");
    assert!(told.contains("left: mu"), "{told}");
    let message = folder.refuse(4, FIT);
    assert!(message.contains("the ledger refuses"), "{message}");
    folder.succeed(&FIT.replace("--epsilon 1 ", "--epsilon 0.5 "));
}

#[test]
fn a_limit_below_what_was_spent_refuses_everything() {
    let folder = Folder::with_table();
    folder.succeed(FIT);
    folder.remove("model.json");
    folder.succeed("ledger init table.csv.ledger --epsilon 0.5 --delta 1e-6");
    let message = folder.refuse(4, &FIT.replace("--epsilon 1 ", "--epsilon 0.001 "));
    assert!(message.contains("mu 0.000000 is left; no request fits"), "{message}");
    assert!(is_close(folder.spent("table.csv.ledger"), number(&json(MODEL)["certificate"]["mu"]), 1e-9));
}

#[test]
fn a_ledger_that_promises_another_relation_refuses() {
    let folder = Folder::with_table();
    folder.succeed("ledger init l.ledger --epsilon 2 --delta 1e-6 --promise row:replace");
    let fit = FIT.replace("--out", "--ledger l.ledger --out");
    assert_snapshot!(folder.refuse(4, &fit), @"error: the ledger refuses: the schema protects row:add-remove, and the ledger promises only row:replace; change `unit` and `adjacency` in the schema, or make a ledger with `--promise 'row:add-remove'`, which knows nothing of what this one has spent");
    folder.succeed("ledger init p.ledger --epsilon 2 --delta 1e-6 --promise patient<=4:add-remove");
    let fit = FIT.replace("--out", "--ledger p.ledger --out");
    assert_snapshot!(folder.refuse(4, &fit), @"error: the ledger refuses: the schema protects row:add-remove, and the ledger promises only patient<=4:add-remove; change `unit` and `adjacency` in the schema, or make a ledger with `--promise 'row:add-remove'`, which knows nothing of what this one has spent");
    let both = "ledger init b.ledger --epsilon 2 --delta 1e-6 --promise patient<=4:add-remove --promise row:add-remove";
    assert_snapshot!(folder.refuse(2, both), @"error: --promise patient<=4:add-remove and --promise row:add-remove protect different units: no table is read for both, so such a ledger would refuse every request; promise one unit, the largest");
}

#[test]
fn a_relation_is_spelled_unit_and_adjacency() {
    let folder = Folder::new();
    let init = "ledger init l.ledger --epsilon 1 --delta 1e-6 --promise=VALUE";
    let values = ["patient", "row:none", "patient<=0:replace", "patient:replace", "<=3:replace"];
    assert_snapshot!(refusals(&folder, 2, init, &values), @r#"
    patient  error: invalid value 'patient' for '--promise <RELATION>': "patient" is not a relation: write UNIT:ADJACENCY, for example row:add-remove or patient<=4:replace
    row:none  error: invalid value 'row:none' for '--promise <RELATION>': "row:none" is not a relation: write UNIT:ADJACENCY, for example row:add-remove or patient<=4:replace
    patient<=0:replace  error: invalid value 'patient<=0:replace' for '--promise <RELATION>': "patient<=0:replace" is not a relation: write UNIT:ADJACENCY, for example row:add-remove or patient<=4:replace
    patient:replace  error: invalid value 'patient:replace' for '--promise <RELATION>': "patient:replace" is not a relation: write UNIT:ADJACENCY, for example row:add-remove or patient<=4:replace
    <=3:replace  error: invalid value '<=3:replace' for '--promise <RELATION>': "<=3:replace" is not a relation: write UNIT:ADJACENCY, for example row:add-remove or patient<=4:replace
    "#);
}

#[test]
fn a_ledger_that_was_named_must_be_there() {
    let folder = Folder::with_table();
    assert_snapshot!(folder.refuse(5, &FIT.replace("--out", "--ledger l.ledger --out")), @"error: l.ledger: there is no such ledger; check the name, or make one that promises what the schema protects: `reticent ledger init l.ledger --epsilon EPSILON --delta DELTA --promise row:add-remove`, with the most that may ever be spent");
    assert_snapshot!(folder.refuse(5, &FIT.replace("--out", "--ledger no/l.ledger --out")), @"error: [folder]/no/l.ledger: the folder [folder]/no does not exist; make it first, or check the name");
}

#[test]
fn a_schema_is_refused_with_all_its_problems() {
    let folder = Folder::with_table();
    folder.write("schema.toml", SCHEMA.replace("[0, 100]", "[100, 0]").replace("\"row\"", "\"person\""));
    assert_snapshot!(folder.refuse(2, FIT), @r#"
    error: schema.toml:
    the schema has 2 problems:
      line 2: privacy.unit: is the text "person"; write "row", or { column = "patient_id", rows_max = 4 } for all rows with the same value in a column
      line 10: features.age.bounds: [100, 0] has the larger number first; write [0, 100]
    "#);
    folder.write("schema.toml", b"[privacy]\n\xff\xfe");
    assert_snapshot!(folder.refuse(2, FIT), @"error: schema.toml: not a schema: it is not UTF-8 text");
    folder.remove("schema.toml");
    assert_snapshot!(folder.refuse(5, FIT), @"error: schema.toml: reading the schema: No such file or directory (os error 2)");
}

#[test]
fn a_target_that_the_method_cannot_fit_is_refused() {
    let folder = Folder::with_table();
    folder.write("schema.toml", SCHEMA.replace("\"yes\"]", "\"yes\", \"perhaps\"]"));
    let functional = format!("{FIT} --method functional");
    assert_snapshot!(folder.refuse(2, &functional), @"error: method functional fits a number (bounds) or two classes, and the schema's target has 3 classes; choose another method (auto takes one that fits it), or describe the column otherwise in [target]");
    folder.write("schema.toml", SCHEMA.replace("classes = [\"no\", \"yes\"]", "bounds = [0, 1]"));
    let lecture = format!("{FIT} --method noisy-gd-lecture");
    assert_snapshot!(folder.refuse(2, &lecture), @"error: method noisy-gd-lecture fits classes, and the schema's target has bounds, as for a linear regression; choose another method (auto takes one that fits it), or describe the column otherwise in [target]");
}
