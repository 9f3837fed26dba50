//! Exact figures on rows that are declared public.

use super::{Calibration, Evaluation, Figure};

/// Buckets of the calibration table.
const CALIBRATION_BUCKETS: usize = 10;

/// Evaluates scores (log-odds of the last class) against classes (true for the last class).
///
/// Edges: no rows, or for the AUC rows of one class only, give NaN.
#[must_use]
pub fn evaluate(scored: &[(f64, bool)]) -> Evaluation {
    let rows = scored.len() as f64;
    let correct = scored.iter().filter(|(score, class)| (*score > 0.0) == *class).count();
    let losses = scored.iter().map(|(score, class)| log_loss(*score, *class));
    let mut buckets = [(0.0, 0.0, 0.0); CALIBRATION_BUCKETS];
    for (score, class) in scored {
        let probability = 1.0 / (1.0 + (-score).exp());
        let index = ((probability * CALIBRATION_BUCKETS as f64) as usize).min(CALIBRATION_BUCKETS - 1);
        let bucket = &mut buckets[index];
        bucket.0 += 1.0;
        bucket.1 += probability;
        bucket.2 += f64::from(u8::from(*class));
    }
    Evaluation {
        n: Some(scored.len() as u64),
        accuracy: Figure::exact(correct as f64 / rows),
        auc: Figure::exact(auc(scored)),
        log_loss: Figure::exact(losses.sum::<f64>() / rows),
        calibration: Calibration::of_buckets(&buckets),
    }
}

/// `ln(1 + e^-margin)`, the margin being the score seen from the true class.
fn log_loss(score: f64, class: bool) -> f64 {
    let margin = if class { score } else { -score };
    (-margin).max(0.0) + (-margin.abs()).exp().ln_1p()
}

/// Mann-Whitney statistic with ties counted half, by ranks.
fn auc(scored: &[(f64, bool)]) -> f64 {
    let mut sorted = scored.to_vec();
    sorted.sort_by(|left, right| left.0.total_cmp(&right.0));
    let positives = sorted.iter().filter(|(_, class)| *class).count() as f64;
    let negatives = sorted.len() as f64 - positives;
    let mut below = 0.0;
    let mut wins = 0.0;
    for tied in sorted.chunk_by(|left, right| left.0.total_cmp(&right.0).is_eq()) {
        let tied_positives = tied.iter().filter(|(_, class)| *class).count() as f64;
        let tied_negatives = tied.len() as f64 - tied_positives;
        wins += tied_positives * (below + tied_negatives / 2.0);
        below += tied_negatives;
    }
    wins / (positives * negatives)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures of scikit-learn 1.5 on the same eight rows (`testdata/golden/metrics.py`).
    #[test]
    fn agrees_with_scikit_learn() {
        let scored = [
            (-2.0, false),
            (-1.0, true),
            (-0.5, false),
            (0.25, false),
            (0.25, true),
            (0.75, true),
            (1.5, false),
            (3.0, true),
        ];
        let found = evaluate(&scored);
        assert!((found.accuracy.value - 0.625).abs() < 1e-12);
        assert!((found.auc.value - 0.656_25).abs() < 1e-12, "{}", found.auc.value);
        assert!((found.log_loss.value - 0.681_627_144_771).abs() < 1e-9, "{}", found.log_loss.value);
    }

    #[test]
    fn undefined_figures_are_null() {
        let json = serde_json::to_value(evaluate(&[])).expect("serialises");
        assert!(json["accuracy"].is_null() && json["auc"].is_null() && json["log_loss"].is_null());
        let one_class = evaluate(&[(0.1, true), (0.2, true)]);
        assert!(one_class.auc.value.is_nan());
        assert!((one_class.accuracy.value - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_calibrated_model_has_no_gap() {
        // Probability 0.75 is observed 3 times in 4.
        let score = 3f64.ln();
        let scored = [(score, true), (score, true), (score, true), (score, false)];
        let calibration = evaluate(&scored).calibration;
        assert!(calibration.expected_error.expect("has rows") < 1e-12);
        assert_eq!(calibration.buckets.len(), 1);
    }
}
