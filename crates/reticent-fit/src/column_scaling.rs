//! Public maps from coded columns to columns of comparable size: from the schema's bounds, or from released marginals.

use reticent_core::coding::{Coding, Column, SlotKind};
use reticent_core::encoding::{Encoding, NormRule};
use reticent_core::schema::Schema;

/// How much room a rare category or a narrow number is given: see [`from_marginals`].
const FLOOR: (f64, f64) = (0.003, 0.3);
const FLOOR_SIGNAL: f64 = 14.0;
/// Squared norm that the listed columns of a typical row are brought to: measured in `docs/methods/noisy-gd.md`.
pub(crate) const LIST_SQUARE: f64 = 16.0;

/// Columns by the schema's bounds alone, and the bound on a row's norm.
///
/// ```text
///   number 2 (u - 1/2), in [-1, 1]      category 1 - 1/K or -1/K      listed number u      intercept 1, or 0 without one
/// ```
/// Rows longer than the schema's `row_norm` are shortened to it; without one the bound is the longest row that the bounds
/// allow.
#[must_use]
pub fn from_bounds(schema: &Schema, intercept: bool) -> (Encoding, f64) {
    let coding = Coding::of(schema);
    let (mut centre, mut scale) = (vec![0.0], vec![if intercept { 1.0 } else { 0.0 }]);
    for kind in coding.slot_kinds() {
        match kind {
            SlotKind::Numeric => {
                centre.push(0.5);
                scale.push(2.0);
            }
            SlotKind::Categories(categories) => {
                centre.extend(std::iter::repeat_n(1.0 / categories as f64, categories));
                scale.extend(std::iter::repeat_n(1.0, categories));
            }
        }
    }
    centre.resize(coding.columns().len(), 0.0);
    scale.resize(coding.columns().len(), 1.0);
    clipped(schema, coding, centre, scale)
}

/// Columns as Zhang et al. 2012 have them: numbers in `[0, 1]`, indicators, no intercept; with the bound on a row's norm.
pub(crate) fn unit_cube(schema: &Schema) -> (Encoding, f64) {
    let coding = Coding::of(schema);
    let scale = coding.columns().iter().map(|column| if *column == Column::Intercept { 0.0 } else { 1.0 }).collect();
    let centre = vec![0.0; coding.columns().len()];
    clipped(schema, coding, centre, scale)
}

fn clipped(schema: &Schema, coding: Coding, centre: Vec<f64>, scale: Vec<f64>) -> (Encoding, f64) {
    let largest = Encoding::largest_norm(&coding, &centre, &scale);
    // A schema without features has no norm; any positive bound does.
    let largest = if largest > 0.0 { largest } else { 1.0 };
    let bound = schema.privacy().row_norm.map_or(largest, |declared| declared.min(largest));
    (Encoding::new(coding, centre, scale, NormRule::Clip(bound)), bound)
}

/// Columns by released marginals, rows divided by their own norm.
///
/// `marginals` are the sums over the slots as [`reticent_core::query::Map::Marginals`] orders them, without what stands
/// before the slots; `noise` is their standard deviation; `rows` the number of rows; `signal` is `n mu`.
/// ```text
///   e = noise / rows,  W(a) = a²/(a² + e²):  share of a released mean that is kept, for a prior of standard deviation a
///   number:    m = 1/2 + W(.3) mean(u - 1/2),   v = E[(2u-1)²]/4 - (m - 1/2)², at least 1e-4
///              centre m, scale sqrt(.2 + k) / (2 sqrt(v + k/16))
///   category:  f = projection to the simplex of W(.1) share + (1 - W) / K
///              centre f, scale sqrt(.2 + k) / sqrt(f + k) · (K - 1)^(-1/8), with one factor that leaves sum scale² v unchanged
///   k = 14 / (n mu), within [.003, .3]: rarer categories cannot be learned, and are not scaled up further
///   listed numbers: centre 0, scale 4 / sqrt(s) with the typical squared norm s of a row's list
/// ```
/// Source: a heuristic, measured in `docs/methods/gram.md`; any scaling is valid.
pub(crate) fn from_marginals(coding: Coding, marginals: &[f64], noise: f64, rows: f64, signal: f64) -> Encoding {
    let kappa = (FLOOR_SIGNAL / signal).clamp(FLOOR.0, FLOOR.1);
    let error = noise / rows;
    let kept = |prior: f64| prior * prior / (prior * prior + error * error);
    let (mut centre, mut scale) = (vec![0.0], vec![1.0]);
    let (mut before, mut after) = (0.0, 0.0);
    let mut place = 0;
    for kind in coding.slot_kinds() {
        match kind {
            SlotKind::Numeric => {
                let mean = (0.5 + kept(0.3) * marginals[place] / rows).clamp(0.0, 1.0);
                let square = kept(0.3) * (marginals[place + 1] / rows + 0.5) + (1.0 - kept(0.3)) / 3.0;
                let variance = (square.clamp(0.0, 1.0) / 4.0 - (mean - 0.5).powi(2)).clamp(1e-4, 0.25);
                let factor = 0.5 / (variance + kappa / 16.0).sqrt();
                before += factor * factor * variance;
                after += factor * factor * variance;
                centre.push(mean);
                scale.push(factor);
                place += 2;
            }
            SlotKind::Categories(categories) => {
                let level = (1.0 - kept(0.1)) / categories as f64;
                let sums = &marginals[place..place + categories];
                let shares = nearest_shares(sums.iter().map(|sum| kept(0.1) * sum / rows + level).collect());
                let shrink = (categories as f64 - 1.0).max(1.0).powf(-0.125);
                for share in shares {
                    let factor = 1.0 / (share + kappa).sqrt();
                    before += factor * factor * share * (1.0 - share);
                    after += (factor * shrink).powi(2) * share * (1.0 - share);
                    centre.push(share);
                    scale.push(factor * shrink);
                }
                place += categories;
            }
        }
    }
    let whole = (0.2 + kappa).sqrt() * if after > 0.0 { (before / after).sqrt() } else { 1.0 };
    scale[1..].iter_mut().for_each(|factor| *factor *= whole);
    if let Some(listed) = coding.listed() {
        let size = (0.5 + kept(0.3) * marginals[place] / rows).clamp(0.0, 1.0);
        let columns = coding.columns().len();
        centre.resize(columns, 0.0);
        scale.resize(columns, (LIST_SQUARE / listed.typical_square(size)).sqrt());
    }
    Encoding::new(coding, centre, scale, NormRule::OwnNorm)
}

/// The nearest point of the simplex: non-negative and adding up to 1.
fn nearest_shares(values: Vec<f64>) -> Vec<f64> {
    let mut sorted = values.clone();
    sorted.sort_by(|left, right| right.total_cmp(left));
    let (mut total, mut level) = (0.0, 0.0);
    for (index, value) in sorted.iter().enumerate() {
        total += value;
        let candidate = (total - 1.0) / (index + 1) as f64;
        if value - candidate > 0.0 {
            level = candidate;
        }
    }
    values.into_iter().map(|value| (value - level).max(0.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(extra: &str) -> Schema {
        Schema::from_text(&format!(
            "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n{extra}[target]\ncolumn = \"y\"\nbounds = [0, 1]\n\
             [features]\nx = {{ bounds = [0, 10] }}\nk = {{ categories = [\"a\"] }}\n"
        ))
        .expect("legal")
    }

    #[test]
    fn bounds_give_columns_of_size_one() {
        let (encoding, bound) = from_bounds(&schema(""), true);
        assert_eq!(encoding.centre(), [0.0, 0.5, 0.5, 0.5]);
        assert_eq!(encoding.scale(), [1.0, 2.0, 1.0, 1.0]);
        assert!((bound - 2.5f64.sqrt()).abs() < 1e-12, "1 + 1 + 1/4 + 1/4");
        let (_, declared) = from_bounds(&schema("row_norm = 1.2\n"), true);
        assert!((declared - 1.2).abs() < 1e-12);
        let (cube, bound) = unit_cube(&schema(""));
        assert_eq!(cube.scale(), [0.0, 1.0, 1.0, 1.0]);
        assert!((bound - 2f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn exact_marginals_centre_and_scale() {
        let coding = Coding::of(&schema(""));
        // 1000 rows: u has mean .6 and variance .01, so E[(2u-1)²] = 4 (.01 + .01); 900 rows have category a.
        let encoding = from_marginals(coding, &[100.0, -420.0, 100.0, 900.0], 1e-6, 1000.0, 1e9);
        let close = |found: &[f64], expected: [f64; 4]| {
            found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-6)
        };
        assert!(close(encoding.centre(), [0.0, 0.6, 0.1, 0.9]), "{:?}", encoding.centre());
        let unit = 0.203f64.sqrt();
        let number = unit * 0.5 / (0.01f64 + 0.003 / 16.0).sqrt();
        assert!(
            close(encoding.scale(), [1.0, number, unit / 0.103f64.sqrt(), unit / 0.903f64.sqrt()]),
            "{:?}",
            encoding.scale()
        );
        assert_eq!(encoding.norm(), NormRule::OwnNorm);
    }

    #[test]
    fn marginals_of_noise_alone_give_what_the_bounds_say() {
        let coding = Coding::of(&schema(""));
        let encoding = from_marginals(coding, &[3e4, -9e4, 5e4, -7e4], 1e9, 1000.0, 1e-3);
        assert!((encoding.centre()[1] - 0.5).abs() < 1e-3);
        assert!((encoding.centre()[2] - 0.5).abs() < 1e-3);
    }

    #[test]
    fn shares_are_projected() {
        assert_eq!(nearest_shares(vec![0.25, 0.75]), [0.25, 0.75]);
        assert_eq!(nearest_shares(vec![2.0, -1.0]), [1.0, 0.0]);
        let even = nearest_shares(vec![-5.0; 4]);
        assert!(even.iter().all(|share| (share - 0.25).abs() < 1e-12));
    }
}
