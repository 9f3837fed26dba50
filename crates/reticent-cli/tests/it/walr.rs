//! `reticent walr`: two organisations, each with its own files, from features and labels to a model and its figures.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, StringArray};
use insta::assert_snapshot;
use reticent_core::label_query::NOT_PROTECTED;
use reticent_math::fixed_sequence::FixedSequence;
use serde_json::json;

use crate::support::{CANARY, Folder, is_close, number, parquet_of};

const FEATURES_SCHEMA: &str = "[privacy]\nunit = \"row\"\nadjacency = \"label\"\n[target]\ncolumn = \"clicked\"\n\
    classes = [\"no\", \"yes\"]\n[features]\nage = { bounds = [0, 100] }\nward = { categories = [\"north\", \"south\"] }\n";
const LABELS_SCHEMA: &str = "[privacy]\nunit = { column = \"user\", rows_max = 2 }\nadjacency = \"label\"\n[target]\n\
    column = \"clicked\"\nclasses = [\"no\", \"yes\"]\n[features]\n";

const PREPARE: &str = "walr prepare --data features.csv --schema features.toml --id event --out weights.csv";
const MEASURE: &str = "walr measure --weights weights.csv --labels labels.csv --schema labels.toml --id event --epsilon 6 \
    --delta 1e-6 --ledger labels.ledger --out release.json";
const FIT: &str = "walr fit --data features.csv --schema features.toml --id event --weights weights.csv --release \
    release.json --out fitted.json";

/// The feature holder's and the label holder's files: 900 events, of which the label holder knows two thirds.
fn folder() -> Folder {
    let folder = Folder::new();
    let (mut features, mut labels) = (String::from("event,age,ward,note\n"), String::from("user,event,clicked,note\n"));
    let mut sequence = FixedSequence::new(7);
    let mut draw = move |below: u64| sequence.next_below(below);
    for event in 0..900 {
        let (age, south) = (draw(101), draw(2));
        features.push_str(&format!("e{event},{age},{},{CANARY}\n", ["north", "south"][south as usize]));
        let clicked = age + 30 * south > 55 + draw(40);
        if event % 3 > 0 || clicked {
            labels.push_str(&format!("{},e{event},{},{CANARY}\n", event / 2, if clicked { "yes" } else { "no" }));
        }
    }
    folder.write("features.csv", features);
    folder.write("labels.csv", labels);
    folder.write("features.toml", FEATURES_SCHEMA);
    folder.write("labels.toml", LABELS_SCHEMA);
    folder.succeed("ledger init labels.ledger --epsilon 10 --delta 1e-6 --promise user<=2:label");
    folder
}

/// A schema that both sides share names features that the label holder does not have.
#[test]
fn labels_need_no_features() {
    let folder = folder();
    folder.write(
        "labels.toml",
        format!("{LABELS_SCHEMA}age = {{ bounds = [0, 100] }}\nward = {{ categories = [\"north\"] }}\n"),
    );
    folder.succeed(PREPARE);
    folder.succeed(MEASURE);
}

#[test]
fn a_model_is_fitted_and_measured_on_labels_that_stay_where_they_are() {
    let folder = folder();
    assert!(folder.succeed(PREPARE).contains("NOT protected"));
    let header: Vec<String> = folder.text("weights.csv").lines().take(3).map(str::to_owned).collect();
    assert!(header[0].starts_with("# weights") && header[1].starts_with("id,q1") && header[2].starts_with("e0,"));
    let measured = folder.succeed(MEASURE);
    assert!(measured.contains("NOT protected") && measured.contains("Protects: user<=2:label"), "{measured}");
    assert!(folder.succeed(FIT).contains("NOT protected"));
    let (model, release) = (folder.json("fitted.json"), folder.json("release.json"));
    let certificate = &model["certificate"];
    assert_eq!(
        certificate["relation"],
        json!({ "unit": { "column": { "column": "user", "rows_max": 2 } }, "adjacency": "label" })
    );
    assert_eq!(certificate["ledger"], json!({ "id": release["label_set"], "entry": 1 }));
    assert_eq!(folder.ledger("labels.ledger")["id"], release["label_set"]);
    assert_eq!(certificate["epsilon"], 6.0);
    assert!(is_close(number(&certificate["mu"]), folder.spent("labels.ledger"), 1e-9));
    assert!(folder.succeed("show fitted.json").contains("NOT protected"));

    folder.succeed("walr prepare-evaluation --model fitted.json --data features.csv --id event --out questions.csv");
    let asked = MEASURE.replace("weights.csv", "questions.csv").replace("release.json", "answers.json");
    folder.succeed(&asked.replace("--epsilon 6", "--epsilon 4"));
    let evaluate = "walr evaluate --model fitted.json --data features.csv --id event --weights questions.csv --release \
                    answers.json --json";
    let figures: serde_json::Value = serde_json::from_str(&folder.succeed(evaluate)).expect("JSON");
    // About 0.2, with a standard error of 0.05 and five of those to either side; a coin has 0.693.
    assert!((-0.05..0.45).contains(&number(&figures["log_loss"])), "{figures}");
    assert!(number(&figures["auc"]) > 0.75, "{figures}");
    assert!(number(&figures["standard_error"]["auc"]) > 0.0);
    assert!(figures["privacy"]["not_protected"].as_str().expect("text").contains("NOT protected"));
    let text = folder.succeed(&evaluate.replace(" --json", ""));
    assert!(text.contains("NOT protected") && text.contains("without a usable label count as class \"no\""), "{text}");
    assert_eq!(figures["unmatched"], "no");
    let public = certificate["public"].as_array().expect("a list");
    let says = |what: &str| public.iter().any(|fact| fact.as_str().expect("text").contains(what));
    assert!(says("rows without a usable label count as class `no`") && says("target column `clicked`"), "{public:?}");
    assert!(!says("which rows have a usable label"), "{public:?}");
}

/// The published descents take the features' own vectors, and their answer serves as many of them as one likes.
#[test]
fn the_published_solvers_fit_answers_about_their_own_weights() {
    let folder = folder();
    folder.succeed(PREPARE);
    folder.succeed(MEASURE);
    let descent = format!("{FIT} --solver full-batch");
    assert_snapshot!(folder.refuse(2, &descent), @"error: the weights were not made for a published solver; fit with --solver noise-aware, the default, or make new ones with `walr prepare --solver full-batch` or `hybrid-minibatch`, which both take, and have them measured");

    folder.succeed(&format!("{PREPARE} --solver hybrid-minibatch").replace("weights.csv", "features-weights.csv"));
    let ours = |command: &str| {
        command
            .replace("weights.csv", "features-weights.csv")
            .replace("release.json", "own.json")
            .replace("labels.ledger", "own.ledger")
    };
    folder.succeed("ledger init own.ledger --epsilon 60 --delta 1e-6 --promise user<=2:label");
    folder.succeed(&ours(MEASURE).replace("--epsilon 6", "--epsilon 60"));
    let spent = folder.spent("own.ledger");
    let slope_of_age = |options: &str, model: &str| {
        folder.succeed(&format!("{} {options}", ours(FIT)).replace("fitted.json", model));
        number(&folder.json(model)["outputs"][0]["coefficients"][0]["coefficient"])
    };
    let slopes = [
        slope_of_age("", "default.json"),
        slope_of_age("--solver full-batch --steps 3000", "full.json"),
        slope_of_age("--solver hybrid-minibatch --steps 3000 --batch 64", "hybrid.json"),
    ];
    let penalised = slope_of_age("--solver full-batch --l2 1e6", "penalised.json");
    // Without noise about .17; that of epsilon 60 moves it by .01.
    assert!(slopes.iter().all(|slope| (0.1..0.25).contains(slope)), "{slopes:?}");
    assert!(penalised.abs() < 0.01, "{penalised}");
    assert!(is_close(folder.spent("own.ledger"), spent, 1e-12), "an answer is paid for once");

    let steps = folder.refuse(2, &format!("{PREPARE} --steps 9").replace("weights.csv", "w.csv"));
    assert!(steps.contains("unexpected argument '--steps'"), "{steps}");
    assert_snapshot!(folder.refuse(2, &format!("{} --steps 9", ours(FIT)).replace("fitted.json", "f.json")), @"error: --steps is for --solver full-batch or hybrid-minibatch, not noise-aware");
    assert_snapshot!(folder.refuse(2, &format!("{PREPARE} --solver newton").replace("weights.csv", "w.csv")), @r#"error: --solver must be one of noise-aware, full-batch, hybrid-minibatch, not "newton""#);
}

/// Figures of labels in another order, or of other classes, would be wrong and look right.
#[test]
fn figures_are_not_made_of_answers_about_another_target() {
    let folder = folder();
    folder.succeed(PREPARE);
    folder.succeed(MEASURE);
    folder.succeed(FIT);
    folder.succeed("walr prepare-evaluation --model fitted.json --data features.csv --id event --out questions.csv");
    let evaluate = "walr evaluate --model fitted.json --data features.csv --id event --weights questions.csv --release answers.json";
    for (file, target) in [
        ("a", "classes = [\"yes\", \"no\"]"),
        ("b", "classes = [\"no\", \"yes\", \"perhaps\"]"),
        ("c", "bounds = [0, 1]"),
    ] {
        folder.write("labels.toml", LABELS_SCHEMA.replace("classes = [\"no\", \"yes\"]", target));
        folder.succeed(&format!("ledger init {file}.ledger --epsilon 10 --delta 1e-6 --promise user<=2:label"));
        let asked = MEASURE.replace("weights.csv", "questions.csv").replace("release.json", "answers.json");
        folder.succeed(&asked.replace("labels.ledger", &format!("{file}.ledger")));
        assert!(folder.refuse(2, evaluate).contains("agree on the target"), "{target}");
    }
}

/// Ids that went to other rows in between would give labels to other features, and a model of nothing.
#[test]
fn features_that_the_weights_were_not_made_of_are_refused() {
    let folder = folder();
    folder.succeed(PREPARE);
    folder.succeed(MEASURE);
    let (own, schema) = (folder.text("features.csv"), folder.text("features.toml"));
    let swapped = own.replace("e0,", "other,").replace("e1,", "e0,").replace("other,", "e1,");
    folder.write("features.csv", &swapped);
    let refused = folder.refuse(3, FIT);
    assert!(refused.contains("not made of this table with this schema"), "{refused}");
    // Rows in another order are the same rows, and rows that were not asked about do not matter.
    let (header, rows) = own.split_once('\n').expect("rows");
    let mut reversed: Vec<&str> = rows.lines().rev().collect();
    let more = reversed[0].replacen("e", "more", 1);
    reversed.push(&more);
    folder.write("features.csv", format!("{header}\n{}\n", reversed.join("\n")));
    folder.succeed(FIT);
    folder.write("features.toml", schema.replacen("bounds = [", "bounds = [-9", 1));
    assert!(folder.refuse(3, FIT).contains("not made of this table with this schema"));
    // Without its comment the file is one that anybody could have written.
    folder.write("features.toml", &schema);
    let bare: String = folder.text("weights.csv").lines().skip(1).map(|line| format!("{line}\n")).collect();
    folder.write("weights.csv", bare);
    folder.write("features.csv", &swapped);
    folder.succeed(FIT);
}

/// `docs/reference/walr-files.md` has the whole flow, to be copied.
#[test]
fn the_commands_of_the_page_run_as_they_are_written() {
    let page = include_str!("../../../../docs/reference/walr-files.md");
    let (_, section) = page.split_once("## From weights to figures").expect("the section");
    let (section, _) = section.split_once("\n## ").expect("another follows");
    let commands = section.replace("\\\n", " ");
    let commands: Vec<&str> = commands.lines().filter_map(|line| line.trim().strip_prefix("reticent ")).collect();
    assert_eq!(commands.len(), 7);
    let folder = folder();
    folder.remove("labels.ledger");
    folder.write("labels.toml", LABELS_SCHEMA.replace("rows_max = 2", "rows_max = 4"));
    for command in commands {
        folder.succeed(&command.replace('\'', ""));
    }
    assert_eq!(folder.ledger("labels.ledger")["entries"].as_array().map(Vec::len), Some(2));
}

/// Bounds that the label holder chose much too wide cost little, and the command says what was read.
#[test]
fn numbers_are_read_where_they_lie() {
    let folder = folder();
    let numbers = |event: u64| 1000.0 + 20.0 * ((event * 37) % 101) as f64;
    let mut features = String::from("event,age\n");
    let mut labels = String::from("event,amount\n");
    for event in 0..4000 {
        features.push_str(&format!("e{event},{}\n", (event * 37) % 101));
        labels.push_str(&format!("e{event},{}\n", numbers(event)));
    }
    folder.write("features.csv", features);
    folder.write("labels.csv", labels);
    let schema = "[privacy]\nunit = \"row\"\nadjacency = \"label\"\n[target]\ncolumn = \"amount\"\nbounds = [0, 1000000]\n[features]\n";
    folder.write("labels.toml", schema);
    folder.write("features.toml", format!("{schema}age = {{ bounds = [0, 100] }}\n"));
    folder.succeed("ledger init numbers.ledger --epsilon 2 --delta 1e-6 --promise row:label");
    folder.succeed(PREPARE);
    let measure = MEASURE.replace("labels.ledger", "numbers.ledger").replace("--epsilon 6", "--epsilon 2");
    let measured = folder.succeed(&measure);
    // All labels are in the part, which is a small one of the bounds.
    let (_, part) = measured.split_once("Labels were read from ").expect("a part is told");
    let ends: Vec<f64> =
        part.split_whitespace().filter_map(|word| word.trim_end_matches(',').parse().ok()).take(2).collect();
    assert!(ends[0] <= 1000.0 && ends[1] >= 3000.0 && ends[1] < 100_000.0, "{measured}");
    folder.succeed(FIT);
    let model = folder.json("fitted.json");
    let slope = number(&model["outputs"][0]["coefficients"][0]["coefficient"]);
    let intercept = number(&model["outputs"][0]["intercept"]);
    assert!((slope - 20.0).abs() < 4.0 && (intercept - 1000.0).abs() < 300.0, "{slope} {intercept}");
    assert!(is_close(number(&model["certificate"]["mu"]), folder.spent("numbers.ledger"), 1e-9));
    // As in one process, where the same rate is refused before anything is paid.
    let diverging = FIT.replace("fitted.json", "f.json") + " --solver full-batch --learning-rate 2.1";
    assert!(folder.refuse(2, &diverging).contains("--learning-rate must be at most 2 for a number"));
    // Numbers without the questions that are asked of them alone.
    let mut release = folder.json("release.json");
    release["planned"]["of_numbers"] = json!([]);
    folder.write("release.json", release.to_string());
    assert!(folder.refuse(3, FIT).contains("contradicts itself"));
}

/// What the other organisation may have edited: the claim, names, and the sentence about what the claim does not cover.
#[test]
fn a_release_is_not_believed_against_itself() {
    let folder = folder();
    folder.succeed(PREPARE);
    folder.succeed(MEASURE);
    let release = folder.json("release.json");
    let edited = |field: &str, value: serde_json::Value| {
        let mut release = release.clone();
        release[field] = value;
        folder.write("release.json", release.to_string());
    };
    for (field, value) in [("epsilon", 0.1), ("epsilon", 5.99), ("epsilon", 60.0), ("delta", 1e-9), ("delta", 0.5)] {
        edited(field, json!(value));
        let refused = folder.refuse(3, FIT);
        assert!(refused.contains("contradicts itself: its noise is not that of its epsilon and delta"), "{refused}");
    }
    edited("label_set", json!("\u{1b}[2J"));
    let refused = folder.refuse(3, FIT);
    assert!(refused.contains("a control character in a name") && !refused.contains('\u{1b}'), "{refused}");
    edited(
        "target",
        json!({ "classes": [{ "name": "\u{1b}[2J", "spellings": ["x"] }, { "name": "b", "spellings": ["b"] }] }),
    );
    let refused = folder.refuse(2, FIT);
    assert!(refused.contains("agree on the target") && !refused.contains('\u{1b}'), "{refused}");

    edited("not_protected", json!("\u{1b}[2Jeverything is protected"));
    for text in [folder.succeed(FIT), folder.succeed("show fitted.json"), folder.text("fitted.json")] {
        assert!(text.contains(NOT_PROTECTED) && !text.contains("everything is protected"), "{text}");
    }
    assert_eq!(release["not_protected"], NOT_PROTECTED, "what `walr measure` writes");
}

/// The feature holder does not have the label holder's ledger, and so no seal.
#[test]
fn a_model_without_a_seal_does_not_read_as_one_that_was_changed() {
    let folder = folder();
    folder.succeed(PREPARE);
    folder.succeed(MEASURE);
    folder.succeed(FIT);
    let refused = folder.refuse(3, "ledger verify labels.ledger --model fitted.json");
    assert!(
        refused.contains("of another organisation (`walr fit`) carries none")
            && refused.contains("cannot be verified this way"),
        "{refused}"
    );
}

#[test]
fn an_answer_can_be_had_again_for_nothing() {
    let folder = folder();
    folder.succeed(PREPARE);
    folder.succeed(MEASURE);
    let (first, spent) = (folder.read("release.json"), folder.spent("labels.ledger"));
    folder.remove("release.json");
    let again = folder.succeed(MEASURE);
    assert!(again.contains("nothing charged"), "{again}");
    assert_eq!(folder.read("release.json"), first);
    assert!(is_close(folder.spent("labels.ledger"), spent, 1e-15));
    let repeated: serde_json::Value =
        serde_json::from_str(&folder.succeed(&format!("{MEASURE} --json"))).expect("JSON");
    assert_eq!(repeated["repeated"], true);
    // The same weights under a new comment.
    let weights = folder.text("weights.csv");
    folder.write(
        "weights.csv",
        format!("# rows 1, noise 0, epsilon 1000\n{}", weights.split_once('\n').expect("lines").1),
    );
    folder.succeed(MEASURE);
    assert_eq!(folder.read("release.json"), first);
    // With labels that have changed since.
    folder.write("labels.csv", "user,event,clicked\n");
    folder.succeed(MEASURE);
    assert_eq!(folder.read("release.json"), first);
}

#[test]
fn what_is_refused_is_refused_by_name_and_costs_nothing() {
    let folder = folder();
    folder.succeed(PREPARE);
    let weights = folder.text("weights.csv");
    let row = weights.lines().nth(2).expect("a row").to_owned();
    let cases: [(i32, String, &str); 8] = [
        (4, MEASURE.replace("--epsilon 6", "--epsilon 11"), "the ledger refuses"),
        (2, MEASURE.replace("--id event", "--id clicked"), "is the target"),
        (3, MEASURE.replace("--id event", "--id evnt"), "no column \"evnt\""),
        (
            5,
            MEASURE.replace("--ledger labels.ledger", "--ledger absent.ledger"),
            "init absent.ledger --epsilon EPSILON --delta DELTA --promise 'user<=2:label'`",
        ),
        (2, MEASURE.replace("--out release.json", "--out labels.ledger"), "would replace"),
        (2, format!("{MEASURE} --unmatched perhaps"), "cannot be the label of unmatched ids"),
        (
            3,
            PREPARE.replace("--id event", "--id ward").replace("weights.csv", "w2.csv"),
            "features.csv: the column \"ward\" does not name events: row 2 has the id of an earlier row; give",
        ),
        (3, PREPARE.replace("--id event", "--id evnt"), "mend the name after --id or give the right file"),
    ];
    for (code, line, message) in cases {
        let refused = folder.refuse(code, &line);
        assert!(refused.contains(message), "{line}: {refused}");
    }
    let features = folder.text("features.csv");
    for missing in [",", "NA,"] {
        folder.write("features.csv", features.replacen("e1,", missing, 1));
        let refused = folder.refuse(3, PREPARE);
        let expected = "row 2 has no id, or what the schema reads as a missing value";
        assert!(refused.contains("features.csv") && refused.contains(expected), "{refused}");
    }
    folder.write("features.csv", "event,age,ward,note\n");
    let refused = folder.refuse(3, PREPARE);
    assert!(refused.contains("the public features have no row"), "{refused}");
    let age = || -> ArrayRef { Arc::new(Float64Array::from(vec![20.0, 30.0])) };
    let ward: ArrayRef = Arc::new(StringArray::from(vec!["north", "south"]));
    folder.write("features.csv", parquet_of([("event", age()), ("age", age()), ("ward", ward)]));
    let refused = folder.refuse(3, PREPARE);
    assert!(refused.contains("\"event\" of features.csv has the Parquet type Float64"), "{refused}");
    assert!(refused.contains("name another column after --id or convert the column"), "{refused}");
    folder.write("features.csv", features);
    folder.write("weights.csv", format!("{weights}{row}\n"));
    let refused = folder.refuse(3, MEASURE);
    assert!(refused.contains("error: weights.csv: ") && refused.contains("has the id of an earlier row"), "{refused}");
    folder.write("weights.csv", weights.replacen(",", ",2147483647,", 3));
    assert!(folder.refuse(3, MEASURE).contains("error: weights.csv: "));
    folder.write("weights.csv", &weights);
    folder.write("labels.toml", LABELS_SCHEMA.replace("\"label\"", "\"replace\""));
    folder.refuse(2, MEASURE);
    folder.write("labels.toml", LABELS_SCHEMA.replace("rows_max = 2", "rows_max = 3"));
    assert!(folder.refuse(4, MEASURE).contains("promises only"));
}

/// Weights for a published solver may have more columns than the estimate takes: an answer to them is not fitted by the default, which would not end.
#[test]
fn a_model_that_is_too_large_to_estimate_is_refused_with_every_command() {
    let folder = Folder::new();
    let schema =
        "[privacy]\nunit = \"row\"\nadjacency = \"label\"\n[target]\ncolumn = \"y\"\nclasses = [0, 1]\n[features]\n";
    folder.write("labels.toml", schema);
    folder.write("features.toml", format!("{schema}w = {{ hash_buckets = 5000 }}\n"));
    let rows: String = (0..40).map(|row| format!("e{row},w{row},{}\n", row % 2)).collect();
    folder.write("table.csv", format!("event,w,y\n{rows}"));
    folder.succeed("ledger init labels.ledger --epsilon 6 --delta 1e-6 --promise row:label");
    let of_table = |command: &str| command.replace("features.csv", "table.csv").replace("labels.csv", "table.csv");
    assert!(folder.refuse(2, &of_table(PREPARE)).contains("walr estimates at most 4096 coefficients"));
    folder.succeed(&format!("{} --solver full-batch", of_table(PREPARE)));
    folder.succeed(&of_table(MEASURE));
    let message = folder.refuse(2, &of_table(FIT));
    assert!(message.contains("at most 4096 coefficients") && message.contains("--solver full-batch"), "{message}");
    folder.succeed(&format!("{} --solver full-batch", of_table(FIT)));
    folder.write("party.toml", folder.text("features.toml").replace("label", "party"));
    folder.write("parties.txt", "east\nwest\n");
    let plan = "party plan --schema party.toml --auxiliary table.csv --parties parties.txt --epsilon 1 --delta 1e-6";
    assert!(folder.refuse(2, plan).contains("party-statistic estimates at most 4096 coefficients"));
    folder.succeed(&format!("{plan} --combiner party-soft-labels"));
}

/// Features are held with all their zeros: what memory could not hold would be paid for and lost.
#[test]
fn features_that_are_too_many_are_refused_before_anything_is_paid() {
    let folder = Folder::new();
    let words: String = (0..8).map(|word| format!("w{word} = {{ hash_buckets = 60000 }}\n")).collect();
    let schema = format!(
        "[privacy]\nunit = \"row\"\nadjacency = \"label\"\n[target]\ncolumn = \"y\"\nclasses = [0, 1]\n[features]\n{words}"
    );
    folder.write("schema.toml", &schema);
    let rows: String = (0..2400).map(|row| format!("e{row},{}{}\n", "word,".repeat(8), row % 2)).collect();
    folder.write("table.csv", format!("id,w0,w1,w2,w3,w4,w5,w6,w7,y\n{rows}"));
    let prepare =
        "walr prepare --data table.csv --schema schema.toml --id id --solver hybrid-minibatch --out weights.csv";
    assert_snapshot!(folder.refuse(3, prepare), @"error: table.csv: 2400 rows with 480009 columns each are more than the 1073741824 numbers, zeros among them, that are held in memory; list fewer features, categories or hash buckets, or take fewer rows");
    let fit = "fit --data table.csv --schema schema.toml --epsilon 1 --delta 1e-6 --method walr --solver full-batch --out fitted.json";
    folder.succeed("ledger init table.csv.ledger --epsilon 1 --delta 1e-6 --promise row:label");
    let refused = folder.run(fit);
    assert_eq!(refused.code, 3);
    assert_snapshot!(refused.stderr, @"error: 2400 rows with 480009 columns each are more than the 1073741824 numbers, zeros among them, that are held in memory; list fewer features, categories or hash buckets, or take fewer rows; in `fit`, --method noisy-gd keeps rows by what is not 0 in them. Nothing was charged, but the ledger holds to the classes or bounds of this schema from now on, as with others the number of rows would tell labels unpaid");
    assert!(folder.succeed("ledger show table.csv.ledger").contains("paid mu 0.000000"));
    folder.write("schema.toml", schema.replace("classes = [0, 1]", "classes = [0, 5]"));
    assert!(folder.refuse(4, fit).contains("labels"));
}

#[test]
fn a_release_is_used_with_its_own_weights_target_and_table() {
    let folder = folder();
    folder.succeed(PREPARE);
    folder.succeed(MEASURE);
    let (weights, release) = (folder.text("weights.csv"), folder.text("release.json"));
    folder.write("weights.csv", weights.replacen("e0,", "e0000,", 1));
    assert!(folder.refuse(3, FIT).contains("weights.csv: the id of row 1 of the weights file is not in the table"));
    let line = weights.lines().nth(2).expect("a row");
    let (start, last) = line.rsplit_once(',').expect("fields");
    let other = format!("{start},{}", if last == "0" { 1 } else { 0 });
    folder.write("weights.csv", weights.replacen(line, &other, 1));
    assert!(folder.refuse(3, FIT).contains("release.json: the release answers another question"));
    folder.write("weights.csv", &weights);
    folder.write("release.json", "{}");
    assert!(folder.refuse(3, FIT).contains("not a release of labels"));
    folder.write("release.json", &release);
    folder.write("features.toml", FEATURES_SCHEMA.replace("[\"no\", \"yes\"]", "[\"0\", \"1\"]"));
    assert!(folder.refuse(2, FIT).contains("agree on the target"));
    folder.write("features.toml", FEATURES_SCHEMA.replace("\"label\"", "\"replace\""));
    assert!(folder.refuse(2, FIT).contains("protects labels only"));
}

/// Weights are text, whatever the name says.
#[test]
fn names_of_compressed_files_are_refused() {
    let folder = Folder::new();
    for prepare in
        [PREPARE, "walr prepare-evaluation --model model.json --data features.csv --id event --out weights.csv"]
    {
        for name in ["weights.csv.gz", "weights.ZST", "weights.xz"] {
            let message = folder.refuse(2, &prepare.replace("weights.csv", name));
            assert_eq!(
                message,
                format!("error: --out {name}: weights are not compressed; choose a name that ends in .csv\n")
            );
        }
    }
}
