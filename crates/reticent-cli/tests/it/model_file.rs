//! The model file: what is in it, how it is shown, and files that are none.

use insta::assert_snapshot;
use serde_json::Value;

use crate::support::{FIT, Folder, MODEL, json, keys, number};

const USES: [&str; 3] = [
    "show model.json",
    "predict --model model.json --data table.csv --out p.csv",
    "evaluate --model model.json --data table.csv --public --json",
];

/// Every command that reads a model refuses this one with the same message.
fn refused(folder: &Folder, model: &str) -> String {
    folder.write("table.csv", "age,dose,ward,outcome\n20,100,north,no\n");
    folder.write("model.json", model);
    let messages = USES.map(|line| folder.refuse(2, line));
    assert!(messages.iter().all(|message| message == &messages[0]), "{messages:?}");
    let init = "fit --data table.csv --schema schema.toml --epsilon 1 --delta 1e-6 --init model.json --out new.json";
    assert_eq!(folder.refuse(2, init), messages[0]);
    messages[0].clone()
}

#[test]
fn a_model_of_another_version_is_refused() {
    let folder = Folder::new();
    let newer = MODEL.replace("\"version\": 1", "\"version\": 2, \"layers\": []");
    assert_snapshot!(refused(&folder, &newer), @"");
    let mut without_fields = json(&newer);
    without_fields.as_object_mut().expect("an object").remove("coefficients");
    // The version is what is wrong, whatever else a later version has or lacks.
    assert!(refused(&folder, &without_fields.to_string()).contains("version 2"));
}

#[test]
fn what_is_no_model_is_refused() {
    let folder = Folder::new();
    assert_snapshot!(refused(&folder, ""), @"");
    assert_snapshot!(refused(&folder, "{}"), @"");
    assert_snapshot!(refused(&folder, &MODEL[..MODEL.len() / 2]), @"");
    assert_snapshot!(refused(&folder, &MODEL.replace("reticent-model", "onnx")), @"");
    folder.remove("model.json");
    assert_snapshot!(folder.refuse(5, "show model.json"), @"");
}

/// A table given where a model belongs, a slip of the hand, is not quoted.
#[test]
fn a_table_in_place_of_the_model_is_not_quoted() {
    let folder = Folder::with_table();
    assert_snapshot!(folder.refuse(2, "show table.csv"), @"");
    folder.write("model.json", "\"SECRETCELL42\"\n");
    folder.refuse(2, "show model.json");
    folder.write("model.json", "{\"format\": \"SECRETCELL42\"}\n");
    let output = folder.reticent().args(["show", "model.json"]).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_model_that_contradicts_itself_is_refused() {
    let folder = Folder::new();
    assert_snapshot!(refused(&folder, &MODEL.replace("\"column\": \"ward=south\"", "\"column\": \"ward=west\"")), @"");
    let mut classes = json(MODEL);
    classes["classes"] = serde_json::json!(["yes", "no"]);
    assert_snapshot!(refused(&folder, &classes.to_string()), @"");
    let mut budget = json(MODEL);
    budget["certificate"]["epsilon"] = serde_json::json!(-1.0);
    assert_snapshot!(refused(&folder, &budget.to_string()), @"");
}

#[test]
fn show_prints_model_and_certificate() {
    let folder = Folder::new();
    assert_snapshot!(folder.succeed("show model.json"), @"");
    let mut public = json(MODEL);
    public["certificate"] = Value::Null;
    folder.write("model.json", public.to_string());
    let shown = folder.succeed("show model.json");
    assert!(shown.starts_with("NOT PRIVATE"), "{shown}");
}

#[test]
fn a_fitted_model_has_the_documented_parts() {
    let folder = Folder::with_table();
    folder.succeed(FIT);
    let model = folder.json("model.json");
    assert_eq!(
        keys(&model),
        ["format", "version", "task", "classes", "intercept", "coefficients", "schema", "certificate"]
    );
    // The same layout as the one of version 1 that is kept here, name by name.
    let kept = json(MODEL);
    assert_eq!(keys(&model["certificate"]), keys(&kept["certificate"]));
    assert_eq!(model["schema"], kept["schema"]);
    assert_eq!(model["classes"], kept["classes"]);
    for (name, value) in kept["certificate"].as_object().expect("an object") {
        if name != "ledger" && name != "software" {
            assert_eq!(&model["certificate"][name], value, "{name}");
        }
    }
    let columns = |model: &Value| -> Vec<String> {
        let all = model["coefficients"].as_array().expect("a list").clone();
        all.iter().map(|one| one["column"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(columns(&model), columns(&kept));
    assert!(number(&model["intercept"]).is_finite());
    // Reading and showing it changes nothing.
    let text = folder.succeed("show model.json");
    assert!(text.contains(model["certificate"]["ledger"]["id"].as_str().expect("an id")), "{text}");
}
