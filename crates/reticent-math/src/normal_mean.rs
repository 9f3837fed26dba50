//! Means over a standard normal variable.

/// The integral goes so far to both sides, in so many steps of Simpson's rule.
pub const END: f64 = 8.0;
const INTERVALS: u32 = 1280;

/// Mean over a standard normal `z` of a function that has the value `both` at `z` and at `-z`.
#[must_use]
pub fn over_normal(both: impl Fn(f64) -> f64) -> f64 {
    let [mean] = over_normal_each(|at| [both(at)]);
    mean
}

/// The same of several functions at once.
#[must_use]
pub fn over_normal_each<const N: usize>(both: impl Fn(f64) -> [f64; N]) -> [f64; N] {
    let width = END / f64::from(INTERVALS);
    let mut totals = [0.0; N];
    for place in 0..=INTERVALS {
        let at = f64::from(place) * width;
        let weight = match place {
            0 | INTERVALS => 1.0,
            odd if odd % 2 == 1 => 4.0,
            _ => 2.0,
        };
        let density = (-at * at / 2.0).exp();
        for (total, value) in totals.iter_mut().zip(both(at)) {
            *total += weight * value * density;
        }
    }
    totals.map(|total| total * width / 3.0 * (2.0 / std::f64::consts::PI).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_a_standard_normal() {
        for (power, moment) in [(0, 1.0), (2, 1.0), (4, 3.0), (6, 15.0)] {
            let found = over_normal(|z| z.powi(power));
            assert!((found / moment - 1.0).abs() < 1e-10, "{power}: {found}");
        }
    }
}
