//! `reticent plan`: price and noise from public values alone.

use insta::assert_snapshot;
use serde_json::Value;

use crate::support::{Folder, SCHEMA, is_close, json, keys, number};

const PLAN: &str = "plan --schema schema.toml --epsilon 1 --delta 1e-6";

fn plan(folder: &Folder, schema: &str) -> Value {
    folder.write("schema.toml", schema);
    json(&folder.succeed(&format!("{PLAN} --json")))["plan"].take()
}

/// Noise scale of the release for `purpose`.
fn noise(plan: &Value, purpose: &str) -> f64 {
    let releases = plan["releases"].as_array().expect("a list");
    number(&releases.iter().find(|release| release["purpose"] == purpose).expect("planned")["noise_scale"])
}

#[test]
fn a_plan_is_printed() {
    let folder = Folder::new();
    assert_snapshot!(folder.succeed(PLAN), @"
    Method: noisy-gd
    Chosen because features are private and the target has classes; 7 encoded columns, an undeclared number of rows, mu 0.2367
    Privacy: epsilon 1 at delta 1e-6 (mu 0.236705)
    Protects: row:add-remove
    Public:
      - names of the columns; bounds of 2 numeric and categories of 1 categorical features
      - target column `outcome` and its classes or bounds
      - at most 2147483648 rows
      - 7 encoded columns

    Question                  times  coordinates    noise [lattice]    mu of one  mu of all
    class counts                  1            2           19811102     0.052929   0.052929
    marginals                     1           11           37063177     0.052929   0.052929
    bins of numbers               1          768           34313834     0.052929   0.052929
    gradient                    591            7         7958357545     0.008433   0.204993
    signal check                  1            4           19811102     0.052929   0.052929
    calibration                   1            6           19811102     0.052929   0.052929

    Expect:
      noise of a gradient coordinate        118.59239   standard deviation of one pass, in rows; a row adds at most 1
      noise of all passes together            4.87824   standard deviation per coordinate of the mean over all passes, in rows; a table of fewer rows has no signal
      noise of the row count                 26.71922   standard deviation in rows, before it is combined with what is declared
      signal of one row                       0.20499   multiply by the number of rows to get n mu of the gradients (declare `rows` to have it printed): above 1000, and above 100 a column, privacy costs little; below 50 the model is little more than the base rate
    ");
}

#[test]
fn with_a_declared_number_of_rows_noise_is_compared_with_signal() {
    let folder = Folder::new();
    folder.write("schema.toml", SCHEMA.replace("\n[target]", "rows = 40_000\n\n[target]"));
    assert_snapshot!(folder.succeed(PLAN), @"
    Method: noisy-gd
    Chosen because features are private and the target has classes; 7 encoded columns, about 40000 rows (n mu = 9468), mu 0.2367
    Privacy: epsilon 1 at delta 1e-6 (mu 0.236705)
    Protects: row:add-remove
    Public:
      - names of the columns; bounds of 2 numeric and categories of 1 categorical features
      - target column `outcome` and its classes or bounds
      - at most 2147483648 rows
      - 7 encoded columns
      - a round figure of 40000 for the number of units, declared in the schema

    Question                  times  coordinates    noise [lattice]    mu of one  mu of all
    class counts                  1            2           19811102     0.052929   0.052929
    marginals                     1           11           37063177     0.052929   0.052929
    bins of numbers               1          768           34313834     0.052929   0.052929
    gradient                    591            7         7958357545     0.008433   0.204993
    signal check                  1            4           19811102     0.052929   0.052929
    calibration                   1            6           19811102     0.052929   0.052929

    Expect:
      noise of a gradient coordinate        118.59239   standard deviation of one pass, in rows; a row adds at most 1
      noise of all passes together            4.87824   standard deviation per coordinate of the mean over all passes, in rows; a table of fewer rows has no signal
      noise of the row count                 26.71922   standard deviation in rows, before it is combined with what is declared
      signal against noise                 8199.68027   n mu of the gradients: above 1000, and above 100 a column, privacy costs little; below 50 the model is little more than the base rate
    ");
}

/// Pure noise costs a ledger more than the claim at the same epsilon says; `fit` charges what the plan tells.
#[test]
fn a_plan_tells_what_the_ledger_will_be_charged() {
    let folder = Folder::with_table();
    let planned = |method: &str| json(&folder.succeed(&format!("{PLAN} --method {method} --json")));
    let (pure, gaussian) = (planned("functional"), planned("noisy-gd"));
    let (claimed, charged) = (number(&pure["plan"]["claim"]["mu"]), number(&pure["price"]["mu"]));
    assert!(charged > 2.0 * claimed, "{claimed} {charged}");
    assert!((number(&pure["pure_epsilon"]) - 1.0).abs() < 1e-6, "{pure}");
    assert!(is_close(number(&gaussian["price"]["mu"]), number(&gaussian["plan"]["claim"]["mu"]), 1e-3));
    assert_eq!(gaussian["pure_epsilon"], Value::Null);
    folder.succeed(
        "fit --data table.csv --schema schema.toml --epsilon 1 --delta 1e-6 --out model.json --method functional",
    );
    let spent = folder.ledger("table.csv.ledger")["relations"][0]["spent"]["mu"].clone();
    assert!(is_close(number(&spent), charged, 1e-9), "{spent} {charged}");
}

#[test]
fn a_large_delta_is_explained() {
    let folder = Folder::new();
    let remark = "Delta 0.1 is large: it allows all of a row to be shown with that probability; choose it below 1 / (number of rows)";
    assert!(folder.succeed(&PLAN.replace("1e-6", "0.1")).contains(remark));
    assert!(!folder.succeed(PLAN).contains("is large"));
    // Beside a declared number of rows, too.
    folder.write("schema.toml", SCHEMA.replace("[target]", "rows = 40_000\n[target]"));
    assert!(folder.succeed(&PLAN.replace("1e-6", "1e-4")).contains("Delta 0.0001 is large"));
    assert!(!folder.succeed(&PLAN.replace("1e-6", "1e-5")).contains("is large"));
}

#[test]
fn a_large_epsilon_is_explained_where_it_is_promised_too() {
    let folder = Folder::new();
    let large = PLAN.replace("--epsilon 1 ", "--epsilon 40 ");
    assert!(folder.succeed(&large).contains("Epsilon 40 is large: "));
    assert!(folder.succeed("ledger init l.ledger --epsilon 40 --delta 0.01").contains("Epsilon 40 is large: "));
    assert!(folder.succeed("ledger show l.ledger").contains("Delta 0.01 is large: "));
    // Of a ledger with a limit, too, epsilon is told at the delta that is asked for.
    assert!(folder.succeed("ledger show l.ledger --delta 1e-9").contains("at delta 1e-9"));
}

/// Files that a `fit` line names need not be there, and nothing is written.
#[test]
fn a_plan_opens_neither_table_nor_output() {
    let folder = Folder::new();
    let before = folder.files();
    let text = folder.succeed(&format!("{PLAN} --data no/table.csv --out no/model.json"));
    assert_eq!(text, folder.succeed(PLAN));
    assert!(folder.files() == before);
}

#[test]
fn a_plan_asks_the_ledger_and_charges_nothing() {
    let folder = Folder::new();
    folder.succeed("ledger init l.ledger --epsilon 1 --delta 1e-6");
    let before = folder.files();
    let text = folder.succeed(&format!("{PLAN} --ledger l.ledger"));
    assert!(text.ends_with("\nThe ledger would admit this fit as it stands.\n"), "{text}");
    let text = folder.succeed(&format!("{} --ledger l.ledger", PLAN.replace("--epsilon 1", "--epsilon 1.5")));
    assert!(text.contains("\nthe ledger refuses: under row:add-remove the request costs mu"), "{text}");
    let result = json(&folder.succeed(&format!("{PLAN} --ledger l.ledger --json")));
    assert_eq!(keys(&result), ["plan", "price", "pure_epsilon", "ledger"]);
    assert_eq!(keys(&result["plan"]), ["method", "claim", "releases", "public", "expectations", "reason"]);
    assert_eq!(result["ledger"]["admits"], true);
    assert!(folder.files() == before, "a plan changes nothing");
}

/// `fit` would refuse a ledger that does not promise the schema's relation; so does the plan.
#[test]
fn a_plan_tells_when_the_ledger_promises_another_relation() {
    let folder = Folder::new();
    folder.succeed("ledger init l.ledger --epsilon 2 --delta 1e-6 --promise row:replace");
    // Under row:replace the price of this one would fit.
    let plan = PLAN.replace("--epsilon 1", "--epsilon 0.5");
    let result = json(&folder.succeed(&format!("{plan} --ledger l.ledger --json")));
    assert_eq!(result["ledger"]["admits"], false, "{}", result["ledger"]);
}

/// Replacing a row moves a gradient sum twice as far as adding one; a unit of four rows moves it four times as far.
#[test]
fn noise_follows_sensitivity() {
    let folder = Folder::new();
    let usual = plan(&folder, SCHEMA);
    let replace = plan(&folder, &SCHEMA.replace("add-remove", "replace"));
    let grouped = plan(&folder, &SCHEMA.replace("\"row\"", "{ column = \"patient\", rows_max = 4 }"));
    assert!(is_close(noise(&replace, "gradient"), 2.0 * noise(&usual, "gradient"), 1e-3));
    assert!(is_close(noise(&grouped, "gradient"), 4.0 * noise(&usual, "gradient"), 1e-3));
    assert!(is_close(noise(&grouped, "class counts"), 4.0 * noise(&usual, "class counts"), 1e-3));
    assert!(noise(&replace, "class counts") > 1.2 * noise(&usual, "class counts"));
}

#[test]
fn half_the_budget_needs_more_noise() {
    let folder = Folder::new();
    let price = |flags: &str| {
        let plan =
            json(&folder.succeed(&format!("plan --schema schema.toml --delta 1e-6 {flags} --json")))["plan"].take();
        (noise(&plan, "gradient"), number(&plan["claim"]["mu"]))
    };
    let (noise_1, mu_1) = price("--epsilon 1 --passes 100");
    let (noise_half, mu_half) = price("--epsilon 0.5 --passes 100");
    assert!(is_close(noise_half / noise_1, mu_1 / mu_half, 1e-6));
    let (noise_more, _) = price("--epsilon 1 --passes 400");
    assert!(is_close(noise_more, 2.0 * noise_1, 1e-6), "four times the passes, twice the noise of each");
}

/// What is planned is what is paid.
#[test]
fn a_fit_pays_what_was_planned() {
    let folder = Folder::with_table();
    let planned = plan(&folder, SCHEMA);
    folder.succeed(crate::support::FIT);
    let certificate = folder.json("model.json")["certificate"].take();
    let releases = certificate["releases"].as_array().expect("a list");
    for (paid, planned) in releases.iter().zip(planned["releases"].as_array().expect("a list")) {
        for (name, value) in planned.as_object().expect("an object") {
            assert_eq!(&paid[name], value, "{name}");
        }
    }
    assert!(number(&certificate["mu"]) <= number(&planned["claim"]["mu"]) * (1.0 + 1e-12));
    assert_eq!(certificate["public"], planned["public"]);
}
