//! The shipped census table from end to end.

use std::path::Path;

use crate::support::{Folder, is_close, json, number};

/// With a comfortable budget the model is far better than saying the more frequent class of everybody. The figures of
/// such fits scatter by less than 0.002, so the margins are never reached by chance.
#[test]
fn a_model_of_the_census_beats_the_base_rate() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/adult");
    let folder = Folder::new();
    for name in ["adult.csv.xz", "adult.toml"] {
        std::fs::copy(examples.join(name), folder.path(name)).expect("it is shipped");
    }
    let fit = "fit --data adult.csv.xz --schema adult.toml --epsilon 5 --delta 4.2e-10 --out model.json --json";
    let result = json(&folder.succeed(fit));
    assert!(is_close(number(&result["certificate"]["epsilon"]), 5.0, 1e-12));
    let figures = json(&folder.succeed("evaluate --model model.json --data adult.csv.xz --public --json"));
    assert_eq!(figures["n"], 48_842, "every row has a known label");
    // 11,687 of the 48,842 earn more.
    let base = 1.0 - 11_687.0 / 48_842.0;
    assert!(number(&figures["accuracy"]) > base + 0.06, "{figures}");
    assert!(number(&figures["auc"]) > 0.87, "{figures}");
    assert!(number(&figures["log_loss"]) < 0.40, "{figures}");
    assert!(number(&figures["calibration"]["expected_error"]) < 0.05, "{figures}");
}
