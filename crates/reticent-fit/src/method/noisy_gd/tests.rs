//! The shares of a budget, and each step of the method against numbers that Python computed.

use reticent_core::coding::CODE_MAX;
use reticent_core::slope::bounded_softmax_slopes;
use serde::de::DeserializeOwned;

use super::calibration::likely_factor;
use super::optimism::degrees_of_freedom;
use super::signal_check::{chance_of_signs, kept_share, unexplained};
use super::*;

#[test]
fn counts_and_check_get_more_where_little_signal_is_expected() {
    let of_classes = |rows: &str, classes: &str| {
        let text = format!(
            "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n{rows}\n[target]\ncolumn = \"y\"\nclasses = [{classes}]\n\
             [features]\na = {{ bounds = [0, 10] }}\n"
        );
        Schema::from_text(&text).expect("legal")
    };
    let schema = |rows: &str| of_classes(rows, "1, 2");
    assert!((weak_share(&schema("rows = 3000"), 2, 0.06) - 0.5).abs() < 1e-12, "n mu = 180");
    assert!((weak_share(&schema("rows = 3000"), 8, 0.12) - 0.5).abs() < 1e-12, "n mu = 360");
    assert!((weak_share(&schema(""), 2, 0.0025) - 0.8).abs() < 1e-12, "36,000 rows: n mu = 90");
    let shares = |epsilon: f64, schema: &Schema| -> Vec<f64> {
        use reticent_core::units::{Delta, Epsilon};
        let claim = crate::plan::PrivacyClaim::new(
            schema.relation(),
            Epsilon::new(epsilon).expect("legal"),
            Delta::new(1e-6).expect("legal"),
        );
        let options = crate::options::Options::default();
        let prepared = NoisyGd.prepare(&FitRequest { schema, claim: &claim, init: None, options: &options });
        let plan = prepared.expect("affordable");
        let price = |release: &reticent_core::ledger::PlannedRelease| {
            let sensitivity = release.shape.sensitivity(&claim.relation).expect("finite").get() as f64;
            let noise = release.noise_scale.get() as f64;
            f64::from(release.times) * sensitivity / (noise * noise) / (claim.mu * claim.mu)
        };
        plan.plan().releases.iter().map(price).collect()
    };
    for (found, expected) in [
        (shares(3.0, &schema("rows = 1000000")), &[0.05, 0.05, 0.05, 0.75, 0.05, 0.05][..]),
        (shares(0.001, &schema("rows = 100")), &[0.15, 0.05, 0.65, 0.1, 0.05]),
        (shares(3.0, &of_classes("rows = 1000000", "1, 2, 3")), &[0.05, 0.05, 0.05, 0.775, 0.025, 0.05]),
        (shares(0.001, &of_classes("rows = 100", "1, 2, 3")), &[0.15, 0.05, 0.675, 0.075, 0.05]),
    ] {
        assert!(found.len() == expected.len() && found.iter().sum::<f64>() <= 1.0);
        assert!(found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 2e-4), "{found:?}");
    }
}

/// Reference numbers by `testdata/golden/noisy_gd.py`.
struct Golden(serde_json::Value);

impl Golden {
    fn read() -> Self {
        let text = include_str!("../../../../../testdata/golden/noisy_gd.json");
        Self(serde_json::from_str(text).expect("JSON"))
    }

    /// A number, or a list, or a list of lists.
    fn of<T: DeserializeOwned>(&self, name: &str) -> T {
        serde_json::from_value(self.0[name].clone()).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn number(&self, name: &str) -> f64 {
        self.of(name)
    }

    fn numbers(&self, name: &str) -> Vec<f64> {
        self.of(name)
    }

    /// Numeric and categorical columns that the marginals are of.
    fn coding() -> Coding {
        let schema = "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nclasses = [\"no\", \"yes\"]\n\
             [features]\na = { bounds = [0, 10] }\nb = { bounds = [0, 10] }\nk = { categories = [\"a\", \"b\", \"c\"] }\n";
        Coding::of(&Schema::from_text(schema).expect("legal"))
    }

    fn marginals(&self, binned: Option<&BinnedNumbers>) -> ReleasedMarginals {
        let binned = binned.map(|binned| (binned, RANGE_RULE));
        ReleasedMarginals::of(&Self::coding(), &self.numbers("sums"), self.number("rows"), self.number("noise"), binned)
    }

    fn scaled(&self) -> ScaledColumns {
        self.marginals(None).scaled(&Self::coding(), self.number("signal"), SCALING)
    }

    /// Degrees of freedom of the descent that the check and the calibration look at.
    fn freedom(&self) -> f64 {
        let flow = Flow { stride: Stride { step: 0.031, momentum: 0.9 }, passes: 100, ridge: 0.002 };
        degrees_of_freedom(&[0.3], &self.scaled(), flow, self.number("rows"))
    }
}

fn assert_close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-9 * (1.0 + expected.abs()), "{found} instead of {expected}");
    }
}

#[test]
fn golden_marginals() {
    let golden = Golden::read();
    let scaled = golden.scaled();
    assert_close(&scaled.centre, &golden.numbers("centre"));
    assert_close(&scaled.scale, &golden.numbers("scale"));
    assert_close(&[scaled.row_norm], &[golden.number("row_norm")]);
}

#[test]
fn golden_marginals_in_ranges() {
    let (golden, coding) = (Golden::read(), Golden::coding());
    let binned =
        BinnedNumbers { counts: golden.numbers("binned"), bins: golden.of("bins"), noise: golden.number("bin_noise") };
    let marginals = golden.marginals(Some(&binned));
    let scaled = marginals.scaled(&coding, golden.number("signal"), SCALING);
    assert_close(&scaled.centre, &golden.numbers("binned_centre"));
    assert_close(&scaled.scale, &golden.numbers("binned_scale"));
    assert_close(&[scaled.row_norm], &[golden.number("binned_row_norm")]);
    let encoding = marginals.encoding(&coding, &scaled);
    let ranges: Vec<[u16; 2]> =
        encoding.ranges().expect("looked for").iter().map(|range| [range.low(), range.high()]).collect();
    let expected: [[u16; 2]; 2] = golden.of("ranges");
    assert_eq!(
        ranges,
        [expected[0], expected[1], [0, CODE_MAX]],
        "two numbers, and the category has no range of its own"
    );
}

#[test]
fn golden_times_and_strides() {
    let golden = Golden::read();
    let (signal, row_norm) = (golden.number("signal"), golden.scaled().row_norm);
    assert_close(&[2, 3].map(|classes| descent_time(classes, signal, row_norm)), &golden.numbers("times"));
    let strides: Vec<(f64, u32, f64, f64)> = golden.of("strides");
    assert_eq!(strides.len(), 4);
    for (time, passes, step, momentum) in strides {
        let stride = Stride::of(time, row_norm, passes);
        assert_close(&[stride.step, stride.momentum], &[step, momentum]);
    }
}

#[test]
fn golden_going_on() {
    let golden = Golden::read();
    let gradients: Vec<[f64; 3]> = golden.of("watched");
    let mut progress = Progress::of(3, gradients.len() as u32);
    let halfway: Vec<bool> = gradients.iter().map(|gradient| progress.is_halfway(gradient)).collect();
    assert_eq!(halfway.iter().filter(|is_halfway| **is_halfway).count(), 1);
    assert_close(&[1e4, 130.0].map(|signal| progress.times(signal, 6.0)), &golden.numbers("went_on"));
}

#[test]
fn golden_class_counts() {
    let golden = Golden::read();
    let ([first, second], noise): ([Vec<f64>; 2], [f64; 2]) = (golden.of("counts"), golden.of("count_noise"));
    let mut counts = ClassCounts::of(&first, noise[0]);
    counts.add(&second, noise[1]);
    let rows = counts.rows(None);
    let [log_odds] = counts.log_odds(rows)[..] else { panic!("two classes have one") };
    assert_close(&[rows, log_odds], &[golden.number("counted"), golden.number("log_odds")]);
}

#[test]
fn golden_descent() {
    let golden = Golden::read();
    let gradients: Vec<[f64; 3]> = golden.of("gradients");
    let stride = Stride { step: golden.number("step"), momentum: 0.9 };
    let (start, passes) = (golden.numbers("start"), gradients.len() as u32);
    let mut descent = HeavyBall::from(start, 3, stride, 1.0, golden.number("l2"), passes);
    gradients.iter().for_each(|gradient| descent.follow(gradient));
    assert_close(&descent.mean(), &golden.numbers("averaged"));
}

#[test]
fn golden_line_search() {
    let golden = Golden::read();
    let scaled = golden.scaled();
    let cases = [(Loss::TwoSidedExponential, 0.0), (Loss::Logistic, 60.0)];
    for ((loss, l2), expected) in cases.into_iter().zip(golden.of::<[[f64; 2]; 2]>("searches")) {
        let start = [-0.8, 0.1, 0.0, 0.0, 0.0, 0.0, 0.0];
        let along = Searched {
            start: &start,
            scaled: &scaled,
            loss,
            rows: golden.number("rows"),
            l2,
            noise: 300.0,
            passes: 20,
        };
        let mut search = LineSearch::along(along);
        for at in 0..20 {
            let way = [0.3, 1.5, -2.0, 0.5, 0.4, -0.3, 0.2].map(|way| way * (1.0 - 0.9f64.powi(at)));
            let weights: [f64; 7] = std::array::from_fn(|column| start[column] + way[column]);
            let usual = [90.0, -160.0, 210.0, -40.0, 10.0, 30.0, -20.0];
            let wave = |column: usize| 200.0 * f64::from((column as i32 + 1) * (at + 1)).sin();
            let gradient: [f64; 7] = std::array::from_fn(|column| usual[column] + wave(column));
            let asked = search.asked(&weights);
            search.follow(&gradient, &asked);
        }
        let (factor, weights) = search.end(&start);
        let found = [factor, weights[0] - start[0]];
        let is_close = found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-4);
        assert!(is_close, "{found:?} instead of {expected:?}");
    }
}

#[test]
fn golden_check() {
    let golden = Golden::read();
    let freedom = golden.freedom();
    assert_close(&[freedom], &[golden.number("freedom")]);
    let cells: [f64; 4] = golden.of("cells");
    let (rows, rate, deviation) = (golden.number("rows"), golden.number("base"), golden.number("deviation"));
    let chance = chance_of_signs(10.0 * freedom, deviation, rows);
    assert_close(&[unexplained(&cells, rows, rate, chance)], &[golden.number("unexplained")]);
    let kept = kept_share(&cells, golden.number("cell_noise"), rows, rate, deviation, chance);
    assert_close(&[kept], &[golden.number("kept")]);
}

#[test]
fn golden_calibration() {
    let golden = Golden::read();
    let steps = golden.numbers("confidence_steps");
    let factor = likely_factor(&steps, golden.number("step_noise"), 2000.0, 6.5);
    assert_close(&[factor], &[golden.number("factor")]);
}

#[test]
fn golden_calibration_of_a_number() {
    let golden = Golden::read();
    let by_chance = number_calibration::by_chance(9.0, 0.3, 0.25, 0.4, 1.5) / 0.14;
    assert!((by_chance - golden.number("by_chance")).abs() < 1e-4 * by_chance, "two quadratures: {by_chance}");
    let chance = number_calibration::Chance { rows: golden.number("by_chance"), freedom: 9.0 };
    let steps = golden.numbers("residual_steps");
    let factor = number_calibration::likely_factor(&steps, golden.number("residual_noise"), chance);
    assert_close(&[factor], &[golden.number("factor_of_number")]);
}

#[test]
fn golden_saturation() {
    let golden = Golden::read();
    let signals = [1.0, 3.0].map(|times| times * golden.number("signal"));
    assert_close(&signals.map(saturation_of), &golden.numbers("saturations"));
    assert_close(&signals.map(saturation_in_order), &golden.numbers("saturations_in_order"));
    assert_close(&shares_of(&golden.numbers("stood_for"), 0.6), &golden.numbers("shares"));
}

#[test]
fn golden_bounded_slopes() {
    let golden = Golden::read();
    let saturation = saturation_of(golden.number("signal")) as f32;
    for (name, saturation) in [("softmax_slopes", 1.0), ("saturated_slopes", saturation)] {
        for (class, expected) in golden.of::<[[f64; 3]; 3]>(name).into_iter().enumerate() {
            let mut found = [0; 3];
            bounded_softmax_slopes(&[0.5, -1.0, 2.0], class, saturation, &mut found);
            let is_close =
                found.iter().zip(expected).all(|(found, expected)| (f64::from(*found) - expected).abs() < 1.01);
            assert!(is_close, "{name}: {found:?} instead of {expected:?}");
        }
    }
}
