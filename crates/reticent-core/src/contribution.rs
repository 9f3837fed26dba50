//! What one private row adds to a sum: the only arithmetic that touches a row, in scalar code.
//!
//! This is the reference. A faster kernel is right when it equals this, integer for integer, on every row.
//! A contribution is a pure function of the row and of the query's public values: never of the row's position, its
//! neighbours or the block it is read in. (In a matrix product the position names the public row that the label belongs to.)
//! Slopes are the same on every machine; log losses use the platform's `exp`.

use crate::ceil_sqrt::ceil_sqrt;
use crate::coding::{CODE_MAX, SlotKind};
use crate::encoding::{LATTICE_NORM_MAX, LatticeRow, norm_square};
use crate::largest_place::largest_place;
use crate::pass_weights::PassWeights;
use crate::query::{
    COUNT_STEP, LOG_LOSS_STEP, Loss, Map, ProductTarget, SLOPE_MAX, SumQuery, log_loss_cap, outputs, target_counts,
};
use crate::slope::{bounded_softmax_slopes, exp, sigmoid, slope, softmax_slopes};
use crate::target_window::TargetWindow;

/// Label of a row as stored: a class index, or a number with the target's bounds mapped onto `-32767..=32767`, or
/// [`UNUSABLE_LABEL`].
pub type CodedLabel = i16;

/// Stored for a label that is missing or outside the declared classes: such a row adds zero to every sum.
pub const UNUSABLE_LABEL: CodedLabel = i16::MIN;

/// Adds the contribution of one row to `totals`, one place a coordinate of the query.
///
/// Guarantee: what is added has at most the norm that [`crate::query::QueryShape::sensitivity`] charges, for *every*
/// row that satisfies the invariant of [`LatticeRow`] and every label.
///
/// # Panics
/// On queries that do not read lattice rows, which have functions of their own here: marginals, bins, label sums, votes of parties, and
/// minima.
pub fn add_contribution(query: &SumQuery, row: LatticeRow<'_>, label: CodedLabel, totals: &mut [i128]) {
    let weights = query.weights();
    match *query.shape().map() {
        Map::Gradient { loss, .. } => {
            add_scaled(totals, slope(loss, weights, score(weights, row), label), row.features);
        }
        Map::ClippedGradient { clip, .. } => {
            let slope = slope(Loss::Logistic, weights, score(weights, row), label);
            let largest = largest_slope(row.features, clip);
            add_scaled(totals, slope.clamp(-largest, largest), row.features);
        }
        Map::SoftmaxGradient { classes, .. } | Map::BoundedSoftmaxGradient { classes, .. } => {
            let Some(class) = class_of(label, classes) else { return };
            let mut slopes = vec![0; classes as usize];
            let scores = class_scores(weights, row);
            if matches!(query.shape().map(), Map::BoundedSoftmaxGradient { .. }) {
                bounded_softmax_slopes(&scores, class, weights.saturation(), &mut slopes);
            } else {
                softmax_slopes(&scores, class, &mut slopes);
            }
            for (totals, slope) in totals.chunks_exact_mut(row.features.len()).zip(slopes) {
                add_scaled(totals, slope, row.features);
            }
        }
        Map::Gram { target, diagonal, off_diagonal, cross, square, .. } => {
            let Some(label) = product_label(target, weights.target_window(), label, row.step) else { return };
            add_products(totals, row.features, label, [diagonal, off_diagonal, cross, square].map(i64::from));
        }
        Map::ClassCount { .. } | Map::TargetSum | Map::TargetBins { .. } => {
            add_scored(query, &[], row.step, label, totals)
        }
        Map::CorrectCount { .. }
        | Map::ExcessHits { .. }
        | Map::ConfidenceSteps { .. }
        | Map::ResidualSteps { .. }
        | Map::LogLoss { .. }
        | Map::ScoreHistogram { .. }
        | Map::SquaredError => {
            let of_score = weights.weights().chunks_exact(row.features.len());
            let dots: Vec<i64> = of_score.map(|weights| dot(weights, row.features)).collect();
            add_scored(query, &dots, row.step, label, totals);
        }
        Map::Marginals { .. }
        | Map::NumberBins { .. }
        | Map::MatrixProduct { .. }
        | Map::LabelsByBin { .. }
        | Map::LabelBins
        | Map::LabelSquares
        | Map::PartyVectors { .. }
        | Map::PartyMinimum { .. }
        | Map::Minimum(_) => unreachable!("answered from codes, labels or votes"),
    }
}

/// Adds the contribution of one row to a query that looks at its label and its scores alone. `dots` are the exact products of
/// the row with the weights of each score, in order.
///
/// Guarantee: as [`add_contribution`], and for every `dots`: counts, losses and errors are bounded whatever the scores are.
///
/// # Panics
/// On queries that look at more, and when there are fewer products than the query has scores.
pub fn add_scored(query: &SumQuery, dots: &[i64], row_step: f32, label: CodedLabel, totals: &mut [i128]) {
    let score = |output: usize| scale_score(dots[output], query.weights(), row_step);
    let all_scores = || -> Vec<f32> { (0..dots.len()).map(score).collect() };
    match *query.shape().map() {
        Map::ClassCount { classes } => {
            let Some(class) = class_of(label, classes) else { return };
            totals[class] += i128::from(COUNT_STEP);
        }
        Map::TargetSum => {
            if label != UNUSABLE_LABEL {
                totals[0] += i128::from(query.weights().target_window().of(label));
            }
        }
        Map::TargetBins { bins } => {
            let Some(bin) = target_bin(label, query.weights().target_window(), bins) else { return };
            totals[bin] += i128::from(COUNT_STEP);
        }
        Map::CorrectCount { classes } => {
            let Some(class) = class_of(label, classes) else { return };
            let predicted =
                if outputs(classes) == 1 { usize::from(score(0) > 0.0) } else { largest_place(&all_scores()) };
            totals[0] += i128::from(COUNT_STEP);
            totals[1] += i128::from(COUNT_STEP) * i128::from(predicted == class);
        }
        Map::ExcessHits { classes } => {
            let Some(class) = class_of(label, classes) else { return };
            let outputs = outputs(classes);
            let rises: Vec<i64> = (0..outputs).map(|output| dots[outputs + output] - dots[output]).collect();
            let rising = if let [rise] = rises[..] { usize::from(rise > 0) } else { largest_place(&rises) };
            let scores = all_scores();
            let (first, second) = scores.split_at(outputs);
            let steps = |scores: &[f32]| (f64::from(probability(scores, rising)) * COUNT_STEP as f64) as i64;
            let before = steps(first).clamp(0, COUNT_STEP);
            let gain = (steps(second) - before).clamp(0, COUNT_STEP - before);
            totals[0] += i128::from(COUNT_STEP * i64::from(rising == class) - before);
            totals[1] += i128::from(gain / 2);
        }
        Map::ConfidenceSteps { classes, .. } => {
            let Some(class) = class_of(label, classes) else { return };
            let outputs = outputs(classes);
            let scores = all_scores();
            let (change, models) = scores.split_at(outputs);
            let (raised, rise) = raised_class(change);
            let steps = |share: f32| ((f64::from(share) * COUNT_STEP as f64) as i64).clamp(0, COUNT_STEP);
            let confidence: Vec<i64> =
                models.chunks_exact(outputs).map(|scores| steps(probability(scores, raised))).collect();
            let grows = confidence.windows(2).map(|pair| pair[1] - pair[0]);
            // The longest that the contribution is with any label: the weight does not look at the label.
            let farthest = confidence[0].max(COUNT_STEP - confidence[0]);
            let square = grows.clone().chain([farthest]).map(|step| step.unsigned_abs().pow(2)).sum::<u64>();
            let longest = (ceil_sqrt(u128::from(square)) as i64).max(COUNT_STEP);
            let beyond = COUNT_STEP * i64::from(raised == class) - confidence[0];
            for (total, step) in totals.iter_mut().zip([beyond].into_iter().chain(grows)) {
                *total += i128::from(step * steps(rise) / longest);
            }
        }
        Map::ResidualSteps { .. } => {
            if label == UNUSABLE_LABEL {
                return;
            }
            let scores = all_scores();
            let (change, models) = scores.split_at(1);
            // A share of `c`, far enough for every number: a NaN becomes 0.
            let steps = |value: f32| {
                let share = f64::from(value) / f64::from(query.weights().saturation());
                ((share * COUNT_STEP as f64) as i64).clamp(-FAR, FAR)
            };
            let models: Vec<i64> = models.iter().map(|score| steps(*score)).collect();
            let weight = ((f64::from(change[0]) * COUNT_STEP as f64) as i64).clamp(-COUNT_STEP, COUNT_STEP);
            let longest = (ceil_sqrt(u128::from(longest_residual_steps(&models))) as i64).max(COUNT_STEP);
            let number = steps(query.weights().target_window().share_of(label));
            for (total, step) in totals.iter_mut().zip(residual_steps(&models, number)) {
                *total += i128::from(step * weight / longest);
            }
        }
        Map::LogLoss { classes } => {
            let Some(class) = class_of(label, classes) else { return };
            let loss = if outputs(classes) == 1 {
                let z = f64::from(score(0));
                let margin = if class == 1 { z } else { -z };
                // ln(1 + e^-margin), stable on both sides.
                (-margin).max(0.0) + (-margin.abs()).exp().ln_1p()
            } else {
                log_sum_exp_excess(&all_scores(), class)
            };
            let cap = LOG_LOSS_STEP * i64::from(log_loss_cap(classes));
            totals[0] += i128::from(((loss * LOG_LOSS_STEP as f64) as i64).clamp(0, cap));
        }
        Map::ScoreHistogram { buckets } => {
            let Some(class) = class_of(label, 2) else { return };
            let bucket = ((sigmoid(score(0)) * buckets as f32) as u32).min(buckets - 1);
            totals[(class as u32 * buckets + bucket) as usize] += i128::from(COUNT_STEP);
        }
        Map::SquaredError => {
            if label == UNUSABLE_LABEL {
                return;
            }
            let full = f64::from(LATTICE_NORM_MAX);
            let label = f64::from(label) / full;
            let error = f64::from(score(0)).clamp(-1.0, 1.0) - label;
            let step = |value: f64| i128::from((value * COUNT_STEP as f64) as i64).clamp(-COUNT, COUNT);
            const COUNT: i128 = COUNT_STEP as i128;
            for (total, value) in totals.iter_mut().zip([1.0, error * error / 4.0, label, label * label]) {
                *total += step(value);
            }
        }
        Map::Gradient { .. }
        | Map::ClippedGradient { .. }
        | Map::SoftmaxGradient { .. }
        | Map::BoundedSoftmaxGradient { .. }
        | Map::Gram { .. }
        | Map::Marginals { .. }
        | Map::NumberBins { .. }
        | Map::MatrixProduct { .. }
        | Map::LabelsByBin { .. }
        | Map::LabelBins
        | Map::LabelSquares
        | Map::PartyVectors { .. }
        | Map::PartyMinimum { .. }
        | Map::Minimum(_) => unreachable!("answered from whole rows, codes, labels or votes"),
    }
}

/// Adds class, categories and moments of one row: see [`Map::Marginals`]. A row without a usable class adds nothing.
///
/// # Panics
/// On any other query.
pub fn add_marginals(query: &SumQuery, codes: &[u16], label: CodedLabel, totals: &mut [i128]) {
    let Map::Marginals { classes, .. } = *query.shape().map() else { unreachable!("called for marginals only") };
    let coding = query.encoding().expect("marginals are asked of a table").coding();
    if classes > 0 {
        let Some(class) = class_of(label, classes) else { return };
        totals[class] += i128::from(COUNT_STEP);
    } else {
        if label == UNUSABLE_LABEL {
            return;
        }
        totals[0] += i128::from(COUNT_STEP);
    }
    let mut place = target_counts(classes) as usize;
    for (code, slot) in codes.iter().zip(coding.marginal_kinds()) {
        match slot {
            SlotKind::Numeric => {
                for (total, moment) in totals[place..].iter_mut().zip(moments(*code)) {
                    *total += i128::from(moment);
                }
                place += 2;
            }
            SlotKind::Categories(categories) => {
                totals[place + usize::from(*code).min(categories - 1)] += i128::from(COUNT_STEP);
                place += categories;
            }
        }
    }
}

/// Counts every number of a row in its bin: see [`Map::NumberBins`]. A row without a usable label adds nothing.
///
/// # Panics
/// On any other query.
pub fn add_number_bins(query: &SumQuery, codes: &[u16], label: CodedLabel, totals: &mut [i128]) {
    let Map::NumberBins { bins, .. } = *query.shape().map() else { unreachable!("called for bins of numbers only") };
    let coding = query.encoding().expect("bins of numbers are asked of a table").coding();
    if label == UNUSABLE_LABEL {
        return;
    }
    let numbers = codes.iter().zip(coding.slot_kinds()).filter(|(_, kind)| matches!(kind, SlotKind::Numeric));
    for ((code, _), counts) in numbers.zip(totals.chunks_exact_mut(bins as usize)) {
        counts[number_bin(*code, bins)] += i128::from(COUNT_STEP);
    }
}

/// The bin of a coded number among so many of equal width.
#[must_use]
#[inline]
pub fn number_bin(code: u16, bins: u32) -> usize {
    (u32::from(code.min(CODE_MAX)) * bins / (u32::from(CODE_MAX) + 1)) as usize
}

/// The bin of a number among so many of equal width over a window of the target's bounds; none for a label that is not usable.
#[must_use]
#[inline]
pub fn target_bin(label: CodedLabel, window: TargetWindow, bins: u32) -> Option<usize> {
    (label != UNUSABLE_LABEL).then(|| bin_of(window.of(label), bins) as usize)
}

#[inline]
fn bin_of(label: CodedLabel, bins: u32) -> i16 {
    let above = i32::from(label) - i32::from(i16::MIN);
    ((above * bins as i32) >> 16) as i16
}

/// `u - 1/2` and `(2u - 1)² - 1/2` in steps of [`COUNT_STEP`], from the code of `u`; each at most half a step count.
#[must_use]
pub fn moments(code: u16) -> [i64; 2] {
    let full = i64::from(CODE_MAX);
    let centred = 2 * i64::from(code.min(CODE_MAX)) - full;
    let half = COUNT_STEP / 2;
    // Truncation toward zero keeps the first within half a step count; the second lies between two integers that do.
    [half * centred / full, (COUNT_STEP * centred / full * centred / full) - half]
}

/// Adds a row of the query's public matrix times the integer that stands for the label: see [`Map::MatrixProduct`].
///
/// # Panics
/// On any other query, or where the matrix has no such row.
pub fn add_matrix_label(query: &SumQuery, row: usize, label: CodedLabel, totals: &mut [i128]) {
    let Map::MatrixProduct { outputs, target, label_low, label_high, .. } = *query.shape().map() else {
        unreachable!("called for matrix products only")
    };
    let window = query.weights().target_window();
    let matrix = query.matrix().expect("a matrix product has a matrix");
    let weights = matrix.row(row);
    // Every output is added to, whatever the label: neither time nor memory access depends on it.
    for (output, totals) in totals.chunks_exact_mut(matrix.columns()).enumerate() {
        let value = if outputs > 1 {
            label_high * is(label, output as i32)
        } else {
            match target {
                ProductTarget::Number | ProductTarget::NumberOverNorm => {
                    let usable = 1 - is(label, i32::from(UNUSABLE_LABEL));
                    window.counted(label, usable).clamp(label_low, label_high)
                }
                ProductTarget::Class => label_low * is(label, 0) + label_high * is(label, 1),
            }
        };
        for (total, weight) in totals.iter_mut().zip(weights) {
            *total += i128::from(value) * i128::from(*weight);
        }
    }
}

/// Counts a label in its bin: see [`Map::LabelsByBin`].
///
/// # Panics
/// On any other query.
pub fn add_label_bin(query: &SumQuery, label: CodedLabel, totals: &mut [i128]) {
    let Map::LabelsByBin { bins } = *query.shape().map() else { unreachable!("called for bins of labels only") };
    // Every bin is added to, whatever the label.
    let usable = 1 - is(label, i32::from(UNUSABLE_LABEL));
    let of_label = bin_of(query.weights().target_window().of(label), bins);
    for (bin, total) in totals.iter_mut().enumerate() {
        let counted = is(of_label, bin as i32) * usable;
        *total += i128::from(COUNT_STEP) * i128::from(counted);
    }
}

/// Adds the square of a label: see [`Map::LabelSquares`].
///
/// # Panics
/// On any other query.
pub fn add_label_square(query: &SumQuery, label: CodedLabel, totals: &mut [i128]) {
    let Map::LabelSquares = *query.shape().map() else { unreachable!("called for squares of labels only") };
    let usable = 1 - is(label, i32::from(UNUSABLE_LABEL));
    totals[0] += i128::from(query.weights().target_window().counted(label, usable).pow(2));
}

/// 1 where a label is this number, else 0, by arithmetic: the top bit of `x | -x` is set for every `x` but 0.
#[inline]
fn is(label: CodedLabel, number: i32) -> i32 {
    let apart = i32::from(label) ^ number;
    1 ^ ((apart | apart.wrapping_neg()) as u32 >> 31) as i32
}

/// Adds the votes of one party times the rows of the public matrix. Whatever the votes are, each counts as clamped to the
/// query's range, and with an output a class those of a row count only up to `label_high` together. With one output the products are
/// shortened to [`crate::query::QueryShape::party_radius`] around those of votes in the middle of the range.
///
/// # Panics
/// On any other query, where votes have no price, or when there is not one vote a row and output.
pub fn add_party_votes(query: &SumQuery, votes: &[i32], totals: &mut [i128]) {
    let Map::MatrixProduct { outputs, label_low, label_high, .. } = *query.shape().map() else {
        unreachable!("called for matrix products only")
    };
    let matrix = query.matrix().expect("a matrix product has a matrix");
    assert_eq!(votes.len(), matrix.rows() * outputs as usize, "one vote a row and output");
    if outputs > 1 {
        for (row, votes) in votes.chunks_exact(outputs as usize).enumerate() {
            let mut left = label_high;
            for (totals, vote) in totals.chunks_exact_mut(matrix.columns()).zip(votes) {
                let vote = (*vote).clamp(0, left);
                left -= vote;
                add_weighted(totals, vote, matrix.row(row));
            }
        }
        return;
    }
    let middle = i32::midpoint(label_low, label_high);
    let mut apart = vec![0; matrix.columns()];
    for (row, vote) in votes.iter().enumerate() {
        add_weighted(&mut apart, (*vote).clamp(label_low, label_high) - middle, matrix.row(row));
        add_weighted(totals, middle, matrix.row(row));
    }
    // Within 2^53 squares of a million columns fit 128 bits; votes on four million rows go no further.
    apart.iter_mut().for_each(|one: &mut i128| *one = (*one).clamp(-(1 << 53), 1 << 53));
    let radius = query.shape().party_radius().expect("votes are priced by it");
    add_shortened(totals, &apart, radius);
}

fn add_weighted(totals: &mut [i128], weight: i32, row: &[i32]) {
    for (total, value) in totals.iter_mut().zip(row) {
        *total += i128::from(weight) * i128::from(*value);
    }
}

/// Adds a vector, shortened to a norm of at most `radius` by integers alone. Its square fits 128 bits.
fn add_shortened(totals: &mut [i128], vector: &[i128], radius: i128) {
    let square: u128 = vector.iter().map(|one| one.unsigned_abs().pow(2)).sum();
    // Truncation does not lengthen, and the divisor is at least the length.
    let length = if square <= radius.unsigned_abs().pow(2) {
        radius
    } else {
        i128::try_from(square.isqrt()).expect("a root of 128 bits") + 1
    };
    for (total, one) in totals.iter_mut().zip(vector) {
        *total += one * radius / length.max(1);
    }
}

/// Adds the weights of one party, in the query's steps: see [`Map::PartyVectors`]. A vector that is longer than the query's
/// bound is shortened to it, by integers alone.
///
/// # Panics
/// On any other query.
pub fn add_party_vector(query: &SumQuery, weights: &[i64], totals: &mut [i128]) {
    let Map::PartyVectors { norm, .. } = *query.shape().map() else {
        unreachable!("called for vectors of parties only")
    };
    // Within 2^40 squares of any number of weights fit 128 bits.
    let vector: Vec<i128> = weights.iter().map(|weight| i128::from(*weight).clamp(-(1 << 40), 1 << 40)).collect();
    add_shortened(totals, &vector, i128::from(norm));
}

/// Sets the minimum that all parties' votes determine, in the query's steps: see [`Map::PartyMinimum`].
///
/// # Panics
/// On any other query.
pub fn set_party_minimum(query: &SumQuery, weights: &[i64], totals: &mut [i128]) {
    let Map::PartyMinimum { .. } = *query.shape().map() else { unreachable!("called for a minimum of parties only") };
    for (total, weight) in totals.iter_mut().zip(weights) {
        *total = i128::from(*weight);
    }
}

/// The class of a label, if it is one of the query's.
#[must_use]
#[inline]
pub fn class_of(label: CodedLabel, classes: u32) -> Option<usize> {
    let class = usize::try_from(label).ok()?;
    (class < classes as usize).then_some(class)
}

/// The integer in `[-32767, 32767]` that stands for a label in products with a row of the given step; a number is read in the window.
#[must_use]
#[inline]
pub fn product_label(target: ProductTarget, window: TargetWindow, label: CodedLabel, row_step: f32) -> Option<i64> {
    match (target, label) {
        (_, UNUSABLE_LABEL) => None,
        (ProductTarget::Number, label) => Some(i64::from(window.of(label))),
        (ProductTarget::NumberOverNorm, label) => {
            // Never enlarged, whatever the step; `max` also turns NaN into 1.
            let norm = (f64::from(row_step) * f64::from(LATTICE_NORM_MAX)).max(1.0);
            Some((f64::from(window.of(label)) / norm).round() as i64)
        }
        (ProductTarget::Class, 0) => Some(-i64::from(LATTICE_NORM_MAX)),
        (ProductTarget::Class, 1) => Some(i64::from(LATTICE_NORM_MAX)),
        (ProductTarget::Class, _) => None,
    }
}

/// The largest slope whose product with a row is no longer than `clip`, at most [`SLOPE_MAX`]:
/// `slope² · sum features² <= clip²`, as an integer fact.
#[must_use]
pub fn largest_slope(features: &[i16], clip: u32) -> i32 {
    match u64::from(clip).pow(2).checked_div(norm_square(features)) {
        // A whole number's square is at most a quotient when it is at most the quotient's whole part.
        Some(quotient) => i32::try_from(quotient.isqrt()).unwrap_or(SLOPE_MAX).min(SLOPE_MAX),
        None => SLOPE_MAX,
    }
}

fn add_scaled(totals: &mut [i128], slope: i32, features: &[i16]) {
    for (total, feature) in totals.iter_mut().zip(features) {
        *total += i128::from(slope) * i128::from(*feature);
    }
}

fn add_products(totals: &mut [i128], features: &[i16], label: i64, multipliers: [i64; 4]) {
    let [diagonal, off_diagonal, cross, square] = multipliers;
    let mut totals = totals.iter_mut();
    let mut add = |value: i64| *totals.next().expect("one place a product") += i128::from(value);
    for (first, feature) in features.iter().enumerate() {
        let feature = i64::from(*feature);
        add(diagonal * feature * feature);
        for other in &features[first + 1..] {
            add(off_diagonal * feature * i64::from(*other));
        }
    }
    if cross > 0 {
        for feature in features {
            add(cross * label * i64::from(*feature));
        }
    }
    if square > 0 {
        add(square * label * label);
    }
}

/// `z = (step_row · step_weights) · sum_j weights[j] · row[j]`: an exact integer, then two roundings in fixed order.
#[must_use]
#[inline]
pub fn score(weights: &PassWeights, row: LatticeRow<'_>) -> f32 {
    score_with(weights.weights(), weights, row)
}

/// One score a class: the weights lie class after class.
#[must_use]
pub fn class_scores(weights: &PassWeights, row: LatticeRow<'_>) -> Vec<f32> {
    weights.weights().chunks_exact(row.features.len()).map(|of_class| score_with(of_class, weights, row)).collect()
}

fn score_with(of_class: &[i16], weights: &PassWeights, row: LatticeRow<'_>) -> f32 {
    scale_score(dot(of_class, row.features), weights, row.step)
}

/// The exact product of a row with the weights of one score.
#[must_use]
#[inline]
pub fn dot(weights: &[i16], features: &[i16]) -> i64 {
    // Below 2^31 by the norms of both sides, so a narrower accumulator gives the same integer.
    weights.iter().zip(features).map(|(weight, feature)| i64::from(*weight) * i64::from(*feature)).sum()
}

/// The last step of [`score`], apart so that kernels that have the exact integer already share it.
#[must_use]
#[inline]
pub fn scale_score(dot: i64, weights: &PassWeights, row_step: f32) -> f32 {
    dot as f32 * (row_step * weights.step())
}

/// Probability of a class by its scores: of two classes one score, that of class 1.
fn probability(scores: &[f32], class: usize) -> f32 {
    if let [z] = *scores {
        return sigmoid(if class == 1 { z } else { -z });
    }
    let largest = scores.iter().fold(f32::NEG_INFINITY, |largest, score| largest.max(*score));
    let total: f32 = scores.iter().map(|score| exp(score - largest)).sum();
    exp(scores[class] - largest) / total
}

/// The class whose score is raised most, the first of several, and by how much beyond the mean of all. One score is that of class 1,
/// which rises by half of it while class 0 falls by as much.
fn raised_class(change: &[f32]) -> (usize, f32) {
    if let [z] = *change {
        return (usize::from(z > 0.0), z.abs() / 2.0);
    }
    let raised = largest_place(change);
    let mean = change.iter().sum::<f32>() / change.len() as f32;
    (raised, change[raised] - mean)
}

/// Farthest that a score or a number is taken to lie from the middle of its window in [`Map::ResidualSteps`].
const FAR: i64 = COUNT_STEP << 20;

/// The residual of a number by the first model, and by how much it falls from each to the next, each residual within one step of 0.
fn residual_steps(models: &[i64], number: i64) -> impl Iterator<Item = i64> {
    let residual = move |model: &i64| (number - model).clamp(-COUNT_STEP, COUNT_STEP);
    let first = models.first().map(residual);
    first.into_iter().chain(models.windows(2).map(move |pair| residual(&pair[0]) - residual(&pair[1])))
}

/// Square of the longest that [`residual_steps`] are with any number. Between the numbers at which a residual is brought to its bound they
/// are linear, so their square is convex: it is largest at one of those.
fn longest_residual_steps(models: &[i64]) -> u64 {
    let bounds = models.iter().flat_map(|model| [model - COUNT_STEP, model + COUNT_STEP]);
    let square = |number| residual_steps(models, number).map(|step| step.unsigned_abs().pow(2)).sum();
    bounds.map(square).max().unwrap_or(0)
}

/// `ln sum e^(z_k) - z_class`.
fn log_sum_exp_excess(scores: &[f32], class: usize) -> f64 {
    let largest = scores.iter().fold(f32::NEG_INFINITY, |largest, score| largest.max(*score));
    let total: f64 = scores.iter().map(|score| f64::from(score - largest).exp()).sum();
    total.ln() - f64::from(scores[class] - largest)
}
