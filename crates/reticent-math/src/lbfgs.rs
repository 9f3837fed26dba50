//! Minimises a smooth convex function of many variables: L-BFGS with a line search for the weak Wolfe conditions.
//!
//! Sources: Nocedal, Wright 2006, *Numerical Optimization*, algorithms 7.4 and 7.5 (two-loop recursion, scaling);
//! Lewis, Overton 2013, "Nonsmooth optimization via quasi-Newton methods", algorithm 2.6 (line search by bisection).
//! Written here because the optimiser crates bring their own traits for vectors and problems, more text than this.

use thiserror::Error;

/// Pairs of steps and gradient differences that stand for the Hessian.
const MEMORY: usize = 12;
/// Steps over which a lack of progress is measured.
const WINDOW: usize = 10;

/// When to stop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stop {
    /// The largest entry of the gradient is at most this, or
    pub gradient: f64,
    /// ten steps together lower the value by less than this.
    pub decrease: f64,
    /// The most evaluations.
    pub evaluations: usize,
}

/// Where a way down ended.
#[derive(Clone, Debug)]
pub struct Descended {
    /// The lowest point that was found.
    pub point: Vec<f64>,
    /// Whether it is the minimum, and not only where evaluations ran out.
    pub is_minimum: bool,
}

/// A minimum that was not reached.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LbfgsError {
    /// The value or the gradient is not a finite number at the start.
    #[error("the function has no finite value at the start point")]
    NotFinite,
    /// The gradient did not become small.
    #[error("no convergence in {0} evaluations; use a larger ridge")]
    Evaluations(usize),
}

/// Point at which `objective` is least. `objective` writes the gradient at a point and returns the value there.
///
/// # Errors
/// [`LbfgsError`] when no point meets `stop`.
pub fn minimise(
    start: Vec<f64>,
    objective: impl FnMut(&[f64], &mut [f64]) -> f64,
    stop: Stop,
) -> Result<Vec<f64>, LbfgsError> {
    let Descended { point, is_minimum } = descend(start, objective, stop)?;
    if is_minimum { Ok(point) } else { Err(LbfgsError::Evaluations(stop.evaluations)) }
}

/// The same for a function of which a low point is good enough.
///
/// # Errors
/// [`LbfgsError::NotFinite`].
pub fn descend(
    start: Vec<f64>,
    mut objective: impl FnMut(&[f64], &mut [f64]) -> f64,
    stop: Stop,
) -> Result<Descended, LbfgsError> {
    let mut point = start;
    let mut gradient = vec![0.0; point.len()];
    let mut value = objective(&point, &mut gradient);
    if !value.is_finite() || gradient.iter().any(|entry| !entry.is_finite()) {
        return Err(LbfgsError::NotFinite);
    }
    let mut memory: Vec<Pair> = Vec::new();
    let mut values = vec![value];
    let mut evaluations = 1;
    while largest(&gradient) > stop.gradient {
        let mut direction = two_loop(&memory, &gradient);
        let mut slope = dot(&direction, &gradient);
        if slope >= 0.0 {
            // Rounding has spoiled the memory: down the gradient instead.
            memory.clear();
            direction = two_loop(&memory, &gradient);
            slope = dot(&direction, &gradient);
        }
        let mut length = if memory.is_empty() { 1.0 / norm(&gradient).max(1.0) } else { 1.0 };
        let (mut low, mut high) = (0.0, f64::INFINITY);
        let mut next_gradient = vec![0.0; point.len()];
        let (next, next_value) = loop {
            let next: Vec<f64> = point.iter().zip(&direction).map(|(at, along)| at + length * along).collect();
            let next_value = objective(&next, &mut next_gradient);
            evaluations += 1;
            let falls = next_value <= value + 1e-4 * length * slope;
            if falls && dot(&direction, &next_gradient) >= 0.9 * slope {
                break (next, next_value);
            }
            if evaluations >= stop.evaluations {
                let lower = if falls { next } else { point };
                return Ok(Descended { point: lower, is_minimum: false });
            }
            if falls {
                low = length;
            } else {
                high = length;
            }
            if high - low <= 1e-14 * low.max(f64::MIN_POSITIVE) || length < 1e-20 {
                // The value is flat to the last digit: there is nothing left to gain.
                return Ok(Descended { point, is_minimum: true });
            }
            length = if high.is_finite() { f64::midpoint(low, high) } else { 2.0 * length };
        };
        memory.extend(Pair::new(&point, &next, &gradient, &next_gradient));
        if memory.len() > MEMORY {
            memory.remove(0);
        }
        (point, value, gradient) = (next, next_value, next_gradient);
        values.push(value);
        if values.len() > WINDOW && values[values.len() - 1 - WINDOW] - value < stop.decrease {
            return Ok(Descended { point, is_minimum: true });
        }
        if evaluations >= stop.evaluations {
            return Ok(Descended { point, is_minimum: false });
        }
    }
    Ok(Descended { point, is_minimum: true })
}

/// A step and what it did to the gradient.
struct Pair {
    step: Vec<f64>,
    change: Vec<f64>,
    curvature: f64,
}

impl Pair {
    /// `None` where the curvature is lost in rounding.
    fn new(point: &[f64], next: &[f64], gradient: &[f64], next_gradient: &[f64]) -> Option<Self> {
        let difference = |to: &[f64], from: &[f64]| to.iter().zip(from).map(|(to, from)| to - from).collect::<Vec<_>>();
        let (step, change) = (difference(next, point), difference(next_gradient, gradient));
        let curvature = dot(&step, &change);
        (curvature > 1e-14 * norm(&step) * norm(&change)).then_some(Self { step, change, curvature })
    }
}

/// Minus the gradient, times the inverse Hessian that the memory stands for.
fn two_loop(memory: &[Pair], gradient: &[f64]) -> Vec<f64> {
    let mut direction: Vec<f64> = gradient.iter().map(|entry| -entry).collect();
    let mut shares = Vec::with_capacity(memory.len());
    for Pair { step, change, curvature } in memory.iter().rev() {
        let share = dot(step, &direction) / curvature;
        add(&mut direction, -share, change);
        shares.push(share);
    }
    if let Some(Pair { change, curvature, .. }) = memory.last() {
        let scale = curvature / dot(change, change);
        direction.iter_mut().for_each(|entry| *entry *= scale);
    }
    for (Pair { step, change, curvature }, share) in memory.iter().zip(shares.into_iter().rev()) {
        let back = dot(change, &direction) / curvature;
        add(&mut direction, share - back, step);
    }
    direction
}

fn add(to: &mut [f64], times: f64, what: &[f64]) {
    for (to, what) in to.iter_mut().zip(what) {
        *to += times * what;
    }
}

fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(left, right)| left * right).sum()
}

fn norm(vector: &[f64]) -> f64 {
    dot(vector, vector).sqrt()
}

fn largest(vector: &[f64]) -> f64 {
    vector.iter().fold(0.0, |largest, entry| largest.max(entry.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STOP: Stop = Stop { gradient: 1e-10, decrease: 0.0, evaluations: 2000 };

    /// Not convex, and curved: a descent that trusts its memory too much fails here.
    #[test]
    fn the_rosenbrock_valley_is_followed_to_its_end() {
        let rosenbrock = |at: &[f64], gradient: &mut [f64]| {
            let (across, along) = (at[1] - at[0] * at[0], 1.0 - at[0]);
            gradient[0] = -400.0 * at[0] * across - 2.0 * along;
            gradient[1] = 200.0 * across;
            100.0 * across * across + along * along
        };
        let end = minimise(vec![-1.2, 1.0], rosenbrock, STOP).expect("it has a minimum");
        assert!((end[0] - 1.0).abs() < 1e-8 && (end[1] - 1.0).abs() < 1e-8, "{end:?}");
    }

    #[test]
    fn a_function_without_a_minimum_is_an_error() {
        let falling = |at: &[f64], gradient: &mut [f64]| {
            gradient[0] = -1.0;
            -at[0]
        };
        let stop = Stop { decrease: -1.0, ..STOP };
        assert_eq!(minimise(vec![0.0], falling, stop), Err(LbfgsError::Evaluations(2000)));
        assert_eq!(minimise(vec![0.0], |_, _| f64::NAN, STOP), Err(LbfgsError::NotFinite));
        let descended = descend(vec![0.0], falling, stop).expect("finite");
        assert!(!descended.is_minimum && descended.point[0] > 1.0, "{descended:?}");
    }
}
