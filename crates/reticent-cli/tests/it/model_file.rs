//! The model file: what is in it, how it is shown, and files that are none.

use insta::assert_snapshot;
use serde_json::Value;

use crate::support::{FIT, Folder, MODEL, SCHEMA, json, keys, number};

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
    let newer = MODEL.replace("\"version\": 3", "\"version\": 4, \"layers\": []");
    assert_snapshot!(refused(&folder, &newer), @"error: model.json: the model file has version 4, and this program reads version 3; use the program that wrote it");
    let mut without_fields = json(&newer);
    without_fields.as_object_mut().expect("an object").remove("outputs");
    // The version is what is wrong, whatever else a later version has or lacks.
    assert!(refused(&folder, &without_fields.to_string()).contains("version 4"));
}

/// For a machine `show` prints what `fit` wrote, and only of a model that is one.
#[test]
fn a_model_is_shown_as_it_is_kept() {
    let folder = Folder::new();
    assert_eq!(json(&folder.succeed("show model.json --json")), json(MODEL));
    folder.write("model.json", MODEL.replace("\"version\": 3", "\"version\": 4"));
    assert!(folder.refuse(2, "show model.json --json").contains("version 4"));
}

/// Who compares a category with 0 concludes that none matters.
#[test]
fn intervals_of_categories_are_said_to_be_of_differences() {
    let folder = Folder::with_table();
    let number = SCHEMA.replace("age = { bounds = [0, 100] }\n", "");
    let number = number.replace("\"outcome\"\nclasses = [\"no\", \"yes\"]", "\"age\"\nbounds = [0, 100]");
    let shown = |schema: &str, method: &str| {
        folder.write("schema.toml", schema);
        folder.succeed(&format!("{FIT} --method {method}"));
        folder.succeed("show model.json")
    };
    let said = "Categories of a feature are known by their differences";
    assert!(shown(&number, "gram").contains(said));
    assert!(!shown(&number, "noisy-gd").contains(said), "there are no intervals");
    let plain = number.replace("ward = { categories = [\"north\", \"south\"] }\n", "");
    let plain = shown(&plain, "gram");
    assert!(plain.contains("95 % interval") && !plain.contains(said), "{plain}");
}

#[test]
fn what_is_no_model_is_refused() {
    let folder = Folder::new();
    assert_snapshot!(refused(&folder, ""), @"error: model.json: this is not a model file: EOF while parsing a value at line 1 column 0; a model file is written by `reticent fit --out`");
    assert_snapshot!(refused(&folder, "{}"), @r#"error: model.json: this is not a model file: its format is "", not "reticent-model""#);
    assert_snapshot!(refused(&folder, &MODEL[..MODEL.len() / 2]), @"error: model.json: this is not a model file: EOF while parsing a value at line 152 column 4; a model file is written by `reticent fit --out`");
    assert_snapshot!(refused(&folder, &MODEL.replace("reticent-model", "onnx")), @r#"error: model.json: this is not a model file: its format is "onnx", not "reticent-model""#);
    assert_snapshot!(refused(&folder, SCHEMA), @"error: model.json: this looks like a schema, and is not a model file, which `reticent fit --out` writes; a schema is given with --schema");
    folder.remove("model.json");
    assert_snapshot!(folder.refuse(5, "show model.json"), @"error: model.json: reading the model: No such file or directory (os error 2)");
}

/// A table given where a model belongs, a slip of the hand, is not quoted.
#[test]
fn a_table_in_place_of_the_model_is_not_quoted() {
    let folder = Folder::with_table();
    assert_snapshot!(folder.refuse(2, "show table.csv"), @"error: table.csv: this is not a model file: expected value at line 1 column 1; a model file is written by `reticent fit --out`");
    folder.write("model.json", "\"SECRETCELL42\"\n");
    folder.refuse(2, "show model.json");
    folder.write("model.json", "{\"format\": \"SECRETCELL42\"}\n");
    let output = folder.reticent().args(["show", "model.json"]).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_model_that_contradicts_itself_is_refused() {
    let folder = Folder::new();
    assert_snapshot!(refused(&folder, &MODEL.replace("\"column\": \"ward=south\"", "\"column\": \"ward=west\"")), @"error: model.json: the model file contradicts itself: its coefficients are not those of its schema");
    let mut classes = json(MODEL);
    classes["classes"] = serde_json::json!(["yes", "no"]);
    assert_snapshot!(refused(&folder, &classes.to_string()), @"error: model.json: the model file contradicts itself: its classes are not those of its schema");
    let mut budget = json(MODEL);
    budget["certificate"]["epsilon"] = serde_json::json!(-1.0);
    assert_snapshot!(refused(&folder, &budget.to_string()), @"error: model.json: this is not a model file: epsilon must be a finite number above 0, not -1 at line 1 column 1150; a model file is written by `reticent fit --out`");
}

/// What a certificate claims follows from the releases that it lists: less is refused by whatever reads the model.
#[test]
fn a_certificate_that_claims_less_than_its_releases_cost_is_refused() {
    let folder = Folder::new();
    let edited = |place: &str, value: Value| {
        let mut model = json(MODEL);
        *model["certificate"].pointer_mut(place).expect("a place in the certificate") = value;
        refused(&folder, &model.to_string())
    };
    for (place, value, what) in [
        ("/epsilon", 0.999.into(), "a smaller epsilon than its mu"),
        ("/delta", 1e-7.into(), "a smaller epsilon than its mu"),
        ("/mu", 0.2367.into(), "a smaller mu than its releases"),
        ("/mu_squared", "4439071780000000000000000000".into(), "a smaller mu than its releases"),
        ("/releases/3/times", 101.into(), "smaller mu than its releases"),
        ("/releases/3/noise_scale", 3_273_000_000_u64.into(), "sensitivity or mu of a release"),
        ("/releases/3/sensitivity", 67_106_815.0.into(), "sensitivity or mu of a release"),
        ("/releases/3/mu_of_one", 0.0204.into(), "sensitivity or mu of a release"),
        ("/relation/adjacency", "replace".into(), "sensitivity or mu of a release"),
        ("/relation/adjacency", "party".into(), "without a finite price"),
    ] {
        let message = edited(place, value);
        assert!(message.contains("contradicts itself") && message.contains(what), "{place}: {message}");
    }
    let mut pure = json(MODEL);
    pure["certificate"]["pure_epsilon"] = 0.5.into();
    assert!(refused(&folder, &pure.to_string()).contains("a smaller epsilon at delta 0"));
    // With more than they cost it is no lie.
    let mut more = json(MODEL);
    more["certificate"]["epsilon"] = 1.5.into();
    folder.write("model.json", more.to_string());
    folder.succeed("show model.json");
}

#[test]
fn show_prints_model_and_certificate() {
    let folder = Folder::new();
    assert_snapshot!(folder.succeed("show model.json"), @"
    Privacy: epsilon 1 at delta 1e-6 (mu 0.236705)
    Protects: row:add-remove
    Public:
      - names of the columns; bounds of 2 numeric and categories of 1 categorical features
      - target column `outcome` and its classes or bounds
      - at most 2147483648 rows
      - 7 encoded columns

    Method: noisy-gd, by reticent 0.1.0
    Schema: [fingerprint]
    Ledger: [id], entry 1

    Question                  times        sensitivity              noise    mu of one
    class counts                  1          1048576.0           19811102     0.052929
    marginals                     1          1961706.1           37063177     0.052929
    bins of numbers               1          1816186.9           34313834     0.052929
    gradient                    100         67106816.0         3273630862     0.020500
    signal check                  1          1048576.0           19811102     0.052929
    calibration                   1          1048576.0           19811102     0.052929

    Log-odds of yes (classes no / yes):
      (intercept)       -3.000000
      age                0.060000  within 0 to 100
      dose              -1.000e-4  within 0 to 5000
      symlog(dose)       0.050000  within 0 to 8.517
      ward=other        -0.500000
      ward=north        -0.600000
      ward=south         1.100000
    ");
    let mut public = json(MODEL);
    public["certificate"] = Value::Null;
    folder.write("model.json", public.to_string());
    let shown = folder.succeed("show model.json");
    assert!(shown.starts_with("NOT PRIVATE"), "{shown}");
}

#[test]
fn a_fitted_model_has_the_documented_parts() {
    let folder = Folder::with_table();
    folder.succeed(&format!("{FIT} --passes 100"));
    let model = folder.json("model.json");
    assert_eq!(keys(&model), ["format", "version", "task", "classes", "outputs", "schema", "certificate"]);
    // The same layout as the one of version 3 that is kept here, name by name.
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
        let all = model["outputs"][0]["coefficients"].as_array().expect("a list").clone();
        all.iter().map(|one| one["column"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(columns(&model), columns(&kept));
    assert!(number(&model["outputs"][0]["intercept"]).is_finite());
    // Reading and showing it changes nothing.
    let text = folder.succeed("show model.json");
    assert!(text.contains(model["certificate"]["ledger"]["id"].as_str().expect("an id")), "{text}");
}
