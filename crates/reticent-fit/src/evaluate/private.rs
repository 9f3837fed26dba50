//! Noisy figures on private rows: counts-like queries that share a budget.

use std::num::NonZeroU32;
use std::sync::Arc;

use reticent_core::encoding::Encoding;
use reticent_core::pass_weights::PassWeights;
use reticent_core::query::{Map, QueryShape, SumQuery, log_loss_cap};
use reticent_core::schema::{FeatureKind, Schema, TargetKind};
use reticent_core::session::{Session, SessionError};
use reticent_core::sum::Release;
use reticent_core::units::MuSquared;

use super::{Calibration, Evaluation, Figure, HIDDEN};
use crate::model::{Task, class_names};
use crate::plan::{Plan, PlanError, PrivacyClaim, plan_release, public_of_schema};

/// Buckets of the score histogram: fine enough for the AUC, coarse enough for the noise.
///
/// They are as wide as each other in the probability of half the score. So those of rare classes are narrow, too: the first ends at 0.001, and
/// the widest, in the middle, is 0.06 wide.
const BUCKETS: u32 = 32;
/// What scores are divided by before buckets are taken of them.
const STRETCH: f64 = 2.0;

/// Name of this pass in plans, ledgers and certificates.
const PURPOSE: &str = "evaluation";

/// Plans the evaluation. Two classes: a third of the budget each for accuracy, log loss, and the histogram of AUC and
/// calibration. More classes: half each for accuracy and log loss. A number: all of it for the squared error.
///
/// Who is protected, and how the table is read, is the owner's to say: where the model's author is somebody else, `schema` is
/// [`Schema::in_table_of`] the owner's.
///
/// # Errors
/// [`PlanError`] when the budget is too small.
pub fn plan(schema: &Schema, claim: PrivacyClaim) -> Result<Plan, PlanError> {
    let classes = class_names(schema).len() as u32;
    let (correct, loss) =
        (("correct predictions", Map::CorrectCount { classes }), ("log loss", Map::LogLoss { classes }));
    let maps = match Task::of(schema) {
        Task::BinaryClassification => {
            vec![correct, loss, ("score histogram", Map::ScoreHistogram { buckets: BUCKETS })]
        }
        Task::MulticlassClassification => vec![correct, loss],
        Task::Regression => vec![("squared error", Map::SquaredError)],
    };
    let parts = NonZeroU32::new(maps.len() as u32).expect("every task has a question");
    let share: MuSquared = claim.mu_squared.share_down(parts);
    let mut releases = Vec::with_capacity(maps.len());
    for (purpose, map) in maps {
        let shape = QueryShape::of_schema(map, schema)?;
        releases.push(plan_release(PURPOSE, purpose, shape, NonZeroU32::MIN, share, &claim.relation)?);
    }
    let public = public_of_schema(schema);
    Ok(Plan::of_schema(PURPOSE, schema, claim, releases, public))
}

/// Buys the figures. `grants` pays for the plan's releases in order; `weights` are those of the encoded columns.
///
/// Figures are ratios of noisy sums; the standard errors come from the noise alone, by the delta method. The log loss of a
/// row is capped at [`loss_cap`].
///
/// # Errors
/// [`SessionError`] when a release fails.
pub fn evaluate(
    session: &mut Session<'_>,
    grants: Vec<reticent_core::session::Grant>,
    plan: &Plan,
    schema: &Schema,
    encoding: &Arc<Encoding>,
    weights: &[f64],
) -> Result<Evaluation, SessionError> {
    let pass = PassWeights::quantise(weights);
    let stretched = PassWeights::quantise(&weights.iter().map(|weight| weight / STRETCH).collect::<Vec<_>>());
    let mut answers: Vec<Release> = Vec::with_capacity(3);
    for (grant, planned) in grants.into_iter().zip(&plan.releases) {
        let is_histogram = matches!(planned.shape.map(), Map::ScoreHistogram { .. });
        let pass = if is_histogram { &stretched } else { &pass };
        let query = SumQuery::new(planned.shape.clone(), encoding.clone(), pass.clone())
            .expect("the plan was made from the schema of this encoding");
        answers.push(session.release(grant, &query)?);
    }
    Ok(match &answers[..] {
        [correct, loss, histogram] => {
            let counts = histogram.values();
            let (negative, positive) = counts.split_at(BUCKETS as usize);
            let noise = histogram.noise_standard_deviation;
            Evaluation {
                auc: Some(auc(negative, positive, has_numbers(schema), noise)),
                calibration: Some(calibration(negative, positive, noise)),
                ..classification(schema, correct, loss)
            }
        }
        [correct, loss] => classification(schema, correct, loss),
        [errors] => regression(schema, errors),
        _ => unreachable!("the plan has one to three releases"),
    })
}

/// Where the log loss of a row is cut, in nats.
#[must_use]
pub fn loss_cap(schema: &Schema) -> u32 {
    log_loss_cap(class_names(schema).len() as u32)
}

/// Accuracy and log loss from counts and summed losses.
fn classification(schema: &Schema, correct: &Release, loss: &Release) -> Evaluation {
    let values = correct.values();
    // At least one row: a noisy count may be anything, and a ratio needs a denominator.
    let rows = values[0].max(1.0);
    let ratio = |numerator: f64, numerator_error: f64, most: f64| {
        let value = (numerator / rows).clamp(0.0, most);
        let error = numerator_error.hypot(value * correct.noise_standard_deviation) / rows;
        Figure::noisy(value, error, most)
    };
    Evaluation {
        accuracy: Some(ratio(values[1], correct.noise_standard_deviation, 1.0)),
        log_loss: Some(ratio(loss.values()[0], loss.noise_standard_deviation, f64::from(loss_cap(schema)))),
        ..Evaluation::default()
    }
}

/// Mean squared error and explained variance from count, quarter errors, labels and squared labels.
fn regression(schema: &Schema, released: &Release) -> Evaluation {
    let TargetKind::Bounds { low, high } = schema.target().kind else { unreachable!("planned for a number") };
    let noise = released.noise_standard_deviation;
    let [rows, errors, labels, squares] = released.values()[..] else { unreachable!("four sums") };
    let rows = rows.max(1.0);
    let unit = ((high - low) / 2.0).powi(2);
    let error = (4.0 * errors / rows).clamp(0.0, 4.0);
    let spread = (squares / rows - (labels / rows).powi(2)).clamp(1e-9, 1.0);
    let of_error = (4.0 * noise).hypot(error * noise) / rows;
    let of_spread = noise.hypot(2.0 * (labels / rows).abs() * noise) / rows;
    // Beside what the target varies by: an error of half of that, or not known beside what is noise itself, says nothing.
    let of_share = (of_error / spread).hypot(error / spread * of_spread / spread);
    let is_known = of_spread < HIDDEN * spread;
    let told = |value: f64, is_told: bool| if is_told { value } else { f64::NAN };
    let is_error_told = of_error < HIDDEN * error || is_known && of_error < HIDDEN * spread;
    Evaluation {
        mean_squared_error: Some(Figure {
            value: told(error * unit, is_error_told),
            standard_error: Some(of_error * unit),
        }),
        r_squared: Some(Figure {
            value: told(1.0 - error / spread, is_known && of_share < HIDDEN),
            standard_error: Some(of_share),
        }),
        ..Evaluation::default()
    }
}

/// Whether scores take so many values that two in one bucket hardly ever tie.
fn has_numbers(schema: &Schema) -> bool {
    schema.features().iter().any(|feature| matches!(feature.kind, FeatureKind::Numeric { .. }))
}

/// `sum_{i<j} n_i p_j + sum_i w_i n_i p_i` over `N P`, from noisy counts of bucket `i`; `w_i` is 1/2 where scores tie within a bucket, and
/// [`within_buckets`] where they hardly do.
fn auc(negative: &[f64], positive: &[f64], has_numbers: bool, noise: f64) -> Figure {
    let negatives = negative.iter().sum::<f64>().max(1.0);
    let positives = positive.iter().sum::<f64>().max(1.0);
    let within = if has_numbers { within_buckets(negative, positive) } else { vec![0.5; negative.len()] };
    let (mut below, mut above) = (0.0, positives);
    // Share of the other class that a row of each bucket beats, or is beaten by.
    let mut shares = Vec::with_capacity(negative.len());
    for ((negative, positive), within) in negative.iter().zip(positive).zip(&within) {
        shares.push(((below + within * negative) / negatives, (above - (1.0 - within) * positive) / positives));
        (below, above) = (below + negative, above - positive);
    }
    let wins: f64 = positive.iter().zip(&shares).map(|(positive, (beats, _))| positive * beats).sum();
    let value = (wins / positives).clamp(0.0, 1.0);
    // Derivatives of the ratio by each count.
    let by_counts =
        |(beats, beaten): &(f64, f64)| ((beats - value) / positives).powi(2) + ((beaten - value) / negatives).powi(2);
    let variance: f64 = shares.iter().map(by_counts).sum();
    Figure::noisy(value, noise * variance.sqrt(), 1.0)
}

/// How often a row of the last class scores above one of the first in the same bucket: `1/2 + b h / 12`, at most 3/4, `h` the width of the
/// bucket in scores. `b = (m_1 - m_0) / v` is the slope of the log-odds by the score, from the mean score of each class and the variance around
/// it (Fisher's discriminant), within [0, 2].
///
/// A bucket's densities are taken for straight lines whose logarithms' difference has this slope. Without it the area is too
/// small, as rows of one bucket would be taken to tie.
fn within_buckets(negative: &[f64], positive: &[f64]) -> Vec<f64> {
    let score = |share: f64| STRETCH * (share / (1.0 - share)).ln();
    let middles: Vec<f64> = (0..BUCKETS).map(|index| (f64::from(index) + 0.5) / f64::from(BUCKETS)).collect();
    let scores: Vec<f64> = middles.iter().map(|middle| score(*middle)).collect();
    let moments = |counts: &[f64]| {
        let sum = counts.iter().zip(&scores).map(|(count, score)| count * score).sum::<f64>();
        let mean = sum / counts.iter().sum::<f64>().max(1.0);
        (mean, counts.iter().zip(&scores).map(|(count, score)| count * (score - mean).powi(2)).sum::<f64>())
    };
    let ((lower, of_negative), (upper, of_positive)) = (moments(negative), moments(positive));
    let rows = negative.iter().chain(positive).sum::<f64>().max(1.0);
    let variance = (of_negative + of_positive) / rows;
    let slope = if variance > 0.0 { ((upper - lower) / variance).clamp(0.0, 2.0) } else { 0.0 };
    let quarter = 0.25 / f64::from(BUCKETS);
    // Twice the middle half: the buckets at the ends have no width.
    let width = |middle: &f64| 2.0 * (score(middle + quarter) - score(middle - quarter));
    middles.iter().map(|middle| 0.5 + (slope * width(middle) / 12.0).min(0.25)).collect()
}

/// Eight buckets from the finer histogram; those whose count is within two standard errors of zero are left out.
fn calibration(negative: &[f64], positive: &[f64], noise: f64) -> Calibration {
    const TABLE: usize = 8;
    let per_bucket = negative.len() / TABLE;
    let mut buckets = vec![(0.0, 0.0, 0.0); TABLE];
    for (index, (negative, positive)) in negative.iter().zip(positive).enumerate() {
        let middle = probability_at((index as f64 + 0.5) / f64::from(BUCKETS));
        let bucket = &mut buckets[index / per_bucket];
        let rows = negative + positive;
        bucket.0 += rows;
        bucket.1 += rows * middle;
        bucket.2 += positive;
    }
    let bucket_noise = noise * (2.0 * per_bucket as f64).sqrt();
    for bucket in &mut buckets {
        if bucket.0 < 2.0 * bucket_noise {
            *bucket = (0.0, 0.0, 0.0);
        } else {
            bucket.1 = bucket.1.clamp(0.0, bucket.0);
        }
    }
    Calibration::of_buckets(&buckets, probability_at)
}

/// Probability of a score whose half has this one.
fn probability_at(stretched: f64) -> f64 {
    let [yes, no] = [stretched, 1.0 - stretched].map(|share| share.powf(STRETCH));
    yes / (yes + no)
}

#[cfg(test)]
mod tests {
    use reticent_math::sigmoid;

    use super::*;

    #[test]
    fn an_area_that_noise_hides_is_no_number() {
        let figure = auc(&[300.0, 100.0], &[1.0, 3.0], false, 40.0);
        assert!(figure.value.is_nan() && figure.standard_error > Some(0.5), "{figure:?}");
        assert!((auc(&[300.0, 100.0], &[1.0, 3.0], false, 0.01).value - 0.75).abs() < 1e-12);
    }

    /// 10,000 rows that vary by a fiftieth of half the bounds' square, a tenth of it unexplained: quarter errors of 5.
    #[test]
    fn an_error_that_noise_hides_is_no_number() {
        let schema = "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nbounds = [0, 20]\n\
                      [features]\na = { bounds = [0, 1] }\n";
        let schema = Schema::from_text(schema).expect("legal");
        let figures = |noise: f64| {
            let integers = vec![10_000, 5, 0, 200];
            let found = regression(&schema, &Release { integers, step: 1.0, noise_standard_deviation: noise });
            [found.mean_squared_error, found.r_squared].map(|figure| figure.expect("of a number").value)
        };
        let [error, explained] = figures(0.01);
        assert!((error - 0.2).abs() < 1e-9 && (explained - 0.9).abs() < 1e-9);
        // Known to .8 of .2, a tenth of the variance.
        let [error, explained] = figures(20.0);
        assert!((error - 0.2).abs() < 1e-9 && (explained - 0.9).abs() < 1e-9);
        let [error, explained] = figures(30.0);
        assert!(error.is_nan() && explained.is_nan());
    }

    #[test]
    fn auc_of_exact_counts_is_the_statistic() {
        // Two buckets: negatives 3 and 1, positives 1 and 3: (1·1.5 + 3·3.5) / 16.
        let figure = auc(&[3.0, 1.0], &[1.0, 3.0], false, 0.0);
        assert!((figure.value - 12.0 / 16.0).abs() < 1e-12);
    }

    /// Normal scores on a fine grid, classes by the logistic model with a slope: the area by the grid, and by its buckets alone.
    #[test]
    fn an_area_by_buckets_is_that_of_their_scores() {
        for (mean, deviation, slope) in
            [(-1.0, 0.5, 1.0), (-1.0, 1.2, 1.0), (-5.0, 1.5, 1.0), (0.0, 3.0, 0.3), (-1.0, 0.5, 0.0)]
        {
            let mut counts = [[0.0; BUCKETS as usize]; 2];
            let (mut below, mut wins, mut totals) = (0.0, 0.0, [0.0; 2]);
            for step in -6000..=6000 {
                let normal = f64::from(step) / 1000.0;
                let score = mean + deviation * normal;
                let positive = sigmoid(mean + slope * deviation * normal);
                let rows = [1.0 - positive, positive].map(|share| share * (-normal * normal / 2.0).exp());
                wins += rows[1] * (below + rows[0] / 2.0);
                below += rows[0];
                for class in [0, 1] {
                    totals[class] += rows[class];
                    counts[class][(sigmoid(score / STRETCH) * f64::from(BUCKETS)) as usize] += rows[class];
                }
            }
            let exact = wins / (totals[0] * totals[1]);
            let off = |has_numbers| auc(&counts[0], &counts[1], has_numbers, 0.0).value - exact;
            assert!(off(true).abs() < 0.001, "{mean} {deviation} {slope}: {}", off(true));
            assert!(off(true).abs() < 0.3 * off(false).abs() + 1e-4, "{mean} {deviation} {slope}: {}", off(false));
        }
    }

    #[test]
    fn buckets_of_stretched_scores_are_those_of_their_probabilities() {
        for score in [-6.0f64, -0.3, 0.0, 2.5] {
            assert!((probability_at(sigmoid(score / STRETCH)) - sigmoid(score)).abs() < 1e-12);
        }
        assert!([0.0f64, 0.5, 1.0].iter().all(|end| (probability_at(*end) - end).abs() < 1e-12));
        assert!((probability_at(1.0 / 32.0) - 1.0 / 962.0).abs() < 1e-12);
    }

    #[test]
    fn buckets_that_are_only_noise_are_left_out() {
        let mut negative = vec![0.0; BUCKETS as usize];
        negative[0] = 1000.0;
        negative[31] = 3.0;
        let table = calibration(&negative, &vec![0.0; BUCKETS as usize], 5.0);
        assert_eq!(table.buckets.len(), 1);
    }
}
