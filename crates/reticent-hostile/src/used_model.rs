//! What commands do with a model once it is read.

use reticent_core::coding::Coding;
use reticent_core::encoding::{Encoding, NormRule};
use reticent_core::record::RawValue;
use reticent_core::units::{Delta, Epsilon};
use reticent_fit::evaluate::labels::LabelQuestions;
use reticent_fit::evaluate::public;
use reticent_fit::method::{FitRequest, prepare};
use reticent_fit::model::{Model, Task};
use reticent_fit::options::Options;
use reticent_fit::plan::PrivacyClaim;

/// Shows it, predicts and evaluates with it, starts from it.
pub(crate) fn is_used(model: &Model) {
    let text = model.to_json();
    let again = Model::from_json(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert!(again == *model && again.fingerprint() == model.fingerprint(), "another model: {text}");

    let rows = raw_rows(model);
    let columns = rows[0].len();
    for row in &rows {
        match model.task {
            Task::Regression => {
                let number = model.number(row);
                assert!(number.is_finite(), "a prediction is {number}");
            }
            Task::BinaryClassification | Task::MulticlassClassification => {
                let probabilities = model.probabilities(row);
                assert_eq!(probabilities.len(), model.classes.len(), "one probability a class");
                assert!(probabilities.iter().all(|one| (0.0..=1.0).contains(one)), "probabilities {probabilities:?}");
            }
        }
    }
    let labelled = rows.iter().enumerate().map(|(row, columns)| (columns.as_slice(), (row % 2) as f64));
    serde_json::to_string(&public::evaluate(model, labelled)).expect("figures are numbers or null");
    let scores: Vec<f64> =
        rows.iter().flat_map(|row| (0..model.outputs.len()).map(|output| model.score(output, row))).collect();
    if let Ok(questions) = LabelQuestions::of(model, &scores) {
        let released =
            vec![1.0; questions.matrix().columns() * if model.classes.len() > 2 { model.classes.len() } else { 1 }];
        serde_json::to_string(&questions.evaluate(&released, 1.0)).expect("figures are numbers or null");
    }
    let plain = Encoding::plain(Coding::of(&model.schema), NormRule::OwnNorm);
    for encoding in [plain, model.encoding()] {
        assert_eq!(model.weights(&encoding).len(), columns * model.outputs.len(), "one weight a column and output");
    }
    let epsilon = Epsilon::new(1.0).expect("above 0");
    let claim = PrivacyClaim::new(model.schema.relation(), epsilon, Delta::new(1e-6).expect("between 0 and 1"));
    let options = Options::default();
    if columns <= 64 {
        // A start that no method takes is refused.
        let _ =
            prepare(None, &FitRequest { schema: &model.schema, claim: &claim, init: Some(model), options: &options });
    }
    if let Some(certificate) = &model.certificate {
        for release in &certificate.releases {
            let _ = release.planned.price_up(&certificate.relation);
        }
    }
}

/// Rows as a table's reader makes them, each of one value in all columns.
fn raw_rows(model: &Model) -> Vec<Vec<f64>> {
    let coding = Coding::of(&model.schema);
    let values = [RawValue::Missing, RawValue::Number(f64::MAX), RawValue::Number(-f64::MAX), RawValue::Number(0.5)];
    let readers = model.schema.feature_readers();
    let raw = |value| {
        let cells: Vec<_> = readers.iter().map(|reader| reader.cell(value)).collect();
        let mut row = vec![0.0; coding.columns().len()];
        coding.raw_columns(&cells, &mut row);
        row
    };
    values.into_iter().map(raw).collect()
}
