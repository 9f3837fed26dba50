//! Probabilities of classes from their scores, without overflow.

/// `e^(z_k) / sum_l e^(z_l)`, for one score a class; whatever all scores share cancels.
pub(crate) fn softmax(scores: &[f64]) -> Vec<f64> {
    let largest = scores.iter().fold(f64::NEG_INFINITY, |largest, score| largest.max(*score));
    normalised(scores.iter().map(|score| (score - largest).exp()).collect())
}

/// Values over their sum.
pub(crate) fn normalised(values: Vec<f64>) -> Vec<f64> {
    let total: f64 = values.iter().sum();
    values.into_iter().map(|value| value / total).collect()
}
