//! Weights read from a model file, for figures that only the truth behind a generated table can give.

use std::path::Path;

use serde_json::Value;

/// Standard errors to either side of a coefficient that a 95 % interval holds.
pub(super) const INTERVAL: f64 = 1.96;

/// One score: intercept and coefficients in the units of the table, in the order of the model's columns.
pub(super) struct Fitted {
    pub(super) intercept: f64,
    pub(super) columns: Vec<String>,
    pub(super) coefficients: Vec<f64>,
    /// What the model reads each column within, where it looked for that: values beyond count as the nearest.
    ranges: Vec<Option<[f64; 2]>>,
    /// Where the method knows them.
    standard_errors: Vec<Option<f64>>,
}

impl Fitted {
    /// The model's first output: a number, or the last of two classes.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Self::of(&serde_json::from_str(&text).map_err(|error| error.to_string())?)
    }

    pub(super) fn of(model: &Value) -> Result<Self, String> {
        let output = &model["outputs"][0];
        let listed = output["coefficients"].as_array().ok_or("the model has no coefficients")?;
        Ok(Self {
            intercept: output["intercept"].as_f64().ok_or("the model has no intercept")?,
            columns: listed.iter().map(|one| one["column"].as_str().unwrap_or_default().to_owned()).collect(),
            coefficients: listed.iter().map(|one| one["coefficient"].as_f64().unwrap_or(f64::NAN)).collect(),
            ranges: listed
                .iter()
                .map(|one| one["range"].as_array().and_then(|ends| Some([ends[0].as_f64()?, ends[1].as_f64()?])))
                .collect(),
            standard_errors: listed.iter().map(|one| one["standard_error"].as_f64()).collect(),
        })
    }

    /// Standard errors from a coefficient to its truth, where the method knows them: a 95 % interval reaches as far as [`INTERVAL`].
    pub(super) fn errors_off(&self, place: usize, truth: f64) -> Option<f64> {
        Some((self.coefficients[place] - truth).abs() / self.standard_errors[place]?)
    }

    pub(super) fn score(&self, row: &[f64]) -> f64 {
        assert_eq!(row.len(), self.coefficients.len(), "a coefficient a column");
        let read =
            |(value, range): (&f64, &Option<[f64; 2]>)| range.map_or(*value, |[low, high]| value.clamp(low, high));
        let values = row.iter().zip(&self.ranges).map(read);
        self.intercept + values.zip(&self.coefficients).map(|(value, weight)| value * weight).sum::<f64>()
    }
}

/// Expected log loss of a score beyond that of the true one.
pub(super) fn excess_loss(truth: f64, found: f64) -> f64 {
    let share = 1.0 / (1.0 + (-truth).exp());
    let loss = |score: f64| score.max(0.0) + (-score.abs()).exp().ln_1p() - share * score;
    loss(found) - loss(truth)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_count_as_the_model_reads_them() {
        let model = serde_json::json!({"outputs": [{"intercept": 1.0, "coefficients": [
            {"column": "a", "coefficient": 2.0, "range": [-0.5, 0.25]},
            {"column": "b", "coefficient": 3.0},
        ]}]});
        let model = Fitted::of(&model).expect("a model");
        for (row, score) in [([0.1, 1.0], 4.2), ([4.0, 1.0], 4.5), ([-4.0, 0.0], 0.0)] {
            assert!((model.score(&row) - score).abs() < 1e-12, "{row:?}");
        }
    }
}
