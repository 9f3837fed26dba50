//! What released counts of classes say: number of rows and base rates.

use crate::trust::trust;

/// Noisy rows by class, pooled over releases.
pub(super) struct ClassCounts {
    counts: Vec<f64>,
    /// Standard deviation of one count.
    noise: f64,
}

/// Rows of a class that are believed at least, as where none was counted (Krichevsky, Trofimov 1981).
const ROWS_MIN: f64 = 0.5;
/// Prior standard deviation of the rate of one of two classes; times `2/K` for `K` classes.
const RATE_PRIOR: f64 = 0.3;

/// Relative standard deviation of a declared number of rows: a round figure.
const DECLARED_ERROR: f64 = 0.05;

impl ClassCounts {
    pub(super) fn of(counts: &[f64], noise: f64) -> Self {
        Self { counts: counts.to_vec(), noise }
    }

    /// Pools a second release of the same counts, each with the weight of its precision.
    pub(super) fn add(&mut self, counts: &[f64], noise: f64) {
        let (mine, others) = (self.noise.powi(-2), noise.powi(-2));
        for (count, other) in self.counts.iter_mut().zip(counts) {
            *count = (mine * *count + others * other) / (mine + others);
        }
        self.noise = (mine + others).powf(-0.5);
    }

    /// Number of rows: the noisy sum of the counts, pooled with a declared round figure. Below its own noise a sum says no
    /// more than "few".
    pub(super) fn rows(&self, declared: Option<f64>) -> f64 {
        let noise = (self.counts.len() as f64).sqrt() * self.noise;
        let counted: f64 = self.counts.iter().sum();
        let Some(declared) = declared else { return counted.max(1.5 * noise).max(1.0) };
        let (first, second) = (noise.powi(-2), (DECLARED_ERROR * declared).max(1.0).powi(-2));
        ((first * counted + second * declared) / (first + second)).max(1.0)
    }

    /// Rates of the classes, drawn toward equal shares as far as they are noise; they sum to 1.
    pub(super) fn rates(&self, rows: f64) -> Vec<f64> {
        let classes = self.counts.len() as f64;
        let mean = self.counts.iter().sum::<f64>() / classes;
        let noise = self.noise / rows * ((classes - 1.0) / classes).sqrt();
        let trust = trust(2.0 * RATE_PRIOR / classes, noise);
        // A rare class cannot be told from noise: its rate is not believed below half the noise.
        let least = (noise / 2.0).max(ROWS_MIN / rows).min(1.0 / classes);
        let rates: Vec<f64> =
            self.counts.iter().map(|count| (1.0 / classes + trust * (count - mean) / rows).max(least)).collect();
        let total: f64 = rates.iter().sum();
        rates.into_iter().map(|rate| rate / total).collect()
    }

    /// Rate of the second of two classes.
    pub(super) fn rate(&self, rows: f64) -> f64 {
        self.rates(rows)[1]
    }

    /// Intercepts that predict the rates: the log-odds for two classes, else the centred logarithms.
    pub(super) fn log_odds(&self, rows: f64) -> Vec<f64> {
        let rates = self.rates(rows);
        if let [first, second] = rates[..] {
            return vec![second.ln() - first.ln()];
        }
        centred_logs(&rates)
    }

    /// Standard deviation of the log-odds of two classes.
    pub(super) fn log_odds_error(&self, rows: f64) -> f64 {
        let rate = self.rate(rows);
        self.noise / (std::f64::consts::SQRT_2 * rows * rate * (1.0 - rate))
    }
}

/// Logarithms, less their mean.
pub(super) fn centred_logs(shares: &[f64]) -> Vec<f64> {
    let logs: Vec<f64> = shares.iter().map(|share| share.ln()).collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    logs.into_iter().map(|log| log - mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_is_only_noise_gives_a_base_rate_near_one_half() {
        let counts = ClassCounts::of(&[-900.0, 1100.0], 1000.0);
        let rows = counts.rows(None);
        assert!(rows >= 1500.0);
        assert!(counts.log_odds(rows)[0].abs() < 1.5, "drawn toward zero: {:?}", counts.log_odds(rows));
        let counts = ClassCounts::of(&[30_000.0, 10_000.0], 10.0);
        assert!((counts.log_odds(counts.rows(Some(40_000.0)))[0] - (1.0f64 / 3.0).ln()).abs() < 1e-3);
    }

    /// 150 rows in 300,000, counted with noise of 5: between 1/2 of the noise and the count nothing is made up.
    #[test]
    fn a_rare_class_is_believed_as_far_as_it_was_counted() {
        let rate = |counted: f64, noise: f64| ClassCounts::of(&[300_000.0 - counted, counted], noise).rate(300_000.0);
        assert!((rate(150.0, 5.0) / 5e-4 - 1.0).abs() < 1e-3, "{}", rate(150.0, 5.0));
        // The noise of a rate is that of a difference of two counts: 5 / sqrt(2) rows.
        assert!((rate(-3.0, 5.0) * 300_000.0 / (5.0 / 2f64.sqrt() / 2.0) - 1.0).abs() < 0.01, "{}", rate(-3.0, 5.0));
        assert!((rate(0.0, 1e-6) * 300_000.0 / 0.5 - 1.0).abs() < 1e-3, "half a row: {}", rate(0.0, 1e-6));
    }

    #[test]
    fn a_second_release_halves_the_variance() {
        let mut counts = ClassCounts::of(&[10.0, 20.0, 30.0], 2.0);
        counts.add(&[20.0, 20.0, 20.0], 2.0);
        assert!((counts.noise - 2.0f64.sqrt()).abs() < 1e-12);
        assert!((counts.rows(None) - 60.0).abs() < 1e-9);
        assert_eq!(counts.log_odds(60.0).len(), 3);
    }
}
