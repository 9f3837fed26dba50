//! The descent: how long it goes on, in what steps, with what momentum, and the mean of its last points.

use super::column_order::ColumnOrder;

/// Least momentum `beta`: the effective step is `eta / (1 - beta)`.
const MOMENTUM: f64 = 0.9;
/// Where the largest stable steps are too short for the time, momentum rises to at most `1 - MEMORY/T`: swings from the start,
/// which shrink by `sqrt(beta)` a pass, are then down to `e^{-3}` at the end, before they are averaged.
const MEMORY: f64 = 6.0;
/// How fast momentum rises to its whole: see [`Stride::at_pass`].
const RISE: f64 = 3.0;
/// Share of the iterates, the last ones, that the result is the mean of.
const AVERAGED_SHARE: f64 = 0.3;
/// Time of the descent of two classes, in units of `n mu / A`, and the signal-to-noise ratio `n mu` at which it is halved: see
/// [`descent_time`].
pub(super) const TIME: f64 = 0.75;
const SIGNAL_HALF: f64 = 4.0;
/// The same of more classes, whose scores are larger.
const TIME_OF_MANY: f64 = 1.2;
const SIGNAL_HALF_OF_MANY: f64 = 20.0;
/// A descent is to end where the square of the mean gradient is this share of the noise in the mean of all passes: see [`Progress`].
const ENDING_SHARE: f64 = 1.0 / 50.0;
/// Where in the time, as a share of it, a descent is watched: the middle of the second quarter.
const WATCHED_AT: f64 = 3.0 / 8.0;
/// Least signal `n mu` a direction for each whole time that a descent may take, and most times.
const SIGNAL_A_TIME: f64 = 20.0;
const TIMES_MAX: f64 = 8.0;

/// How long a descent goes on, for a signal `n mu` and a typical row norm `A`.
///
/// ```text
///   time = eta T / (1 - beta) = c n mu / A,    c = 3/4 · n mu / (n mu + 4),  with more than two classes  6/5 · n mu / (n mu + 20)
/// ```
/// At that time the noise of all passes, added up, has moved each weight by about `c/A`: the score of a row, then, by about `c`, the size of a usual
/// score. Going on would add noise faster than signal.
pub(super) fn descent_time(classes: u32, signal: f64, row_norm: f64) -> f64 {
    let (time, half) = if classes == 2 { (TIME, SIGNAL_HALF) } else { (TIME_OF_MANY, SIGNAL_HALF_OF_MANY) };
    time * signal / (signal + half) * signal / row_norm
}

/// Time of the descent of a number, in standard deviations of the target and units of `n mu / A`.
const TIME_OF_NUMBER: f64 = 0.8;
/// The signal at which it is halved.
const SIGNAL_HALF_OF_NUMBER: f64 = 20.0;

/// The same for a number that varies by `deviation`, whose scores are no larger:
/// ```text
///   time = 4/5 deviation · n mu / (n mu + 20) · n mu / A
/// ```
pub(super) fn descent_time_of_number(deviation: f64, signal: f64, row_norm: f64) -> f64 {
    TIME_OF_NUMBER * deviation * signal / (signal + SIGNAL_HALF_OF_NUMBER) * signal / row_norm
}

/// Step `eta` and momentum `beta` of a descent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stride {
    pub(super) step: f64,
    pub(super) momentum: f64,
}

impl Stride {
    /// That of `passes` passes `T` that take `time = eta T / (1 - beta)` together, or as near as they come to it.
    ///
    /// ```text
    ///   eta <= 2 (1 + beta) / L      stable: Polyak 1964, with L the largest eigenvalue of the mean Hessian
    ///   time = 2 T (1 + beta) / ((1 - beta) L)  at that step,   so  beta = 1 - 2/(r + 1)  with  r = time L / (2 T)
    /// ```
    /// within `[9/10, 1 - 6/T]`. `largest_curvature` is at least `L`: the curvature of the loss times the mean row norm, and the
    /// penalty a row.
    pub(super) fn of(time: f64, largest_curvature: f64, passes: u32) -> Self {
        let passes = f64::from(passes);
        let ratio = time * largest_curvature / (2.0 * passes);
        let most = (1.0 - MEMORY / passes).max(MOMENTUM);
        let momentum = (1.0 - 2.0 / (ratio + 1.0)).clamp(MOMENTUM, most);
        let step = (time * (1.0 - momentum) / passes).min(2.0 * (1.0 + momentum) / largest_curvature);
        Self { step, momentum }
    }

    /// `eta T / (1 - beta)`.
    pub(super) fn time(self, passes: u32) -> f64 {
        self.step * f64::from(passes) / (1.0 - self.momentum)
    }

    /// That of the pass after so many others: momentum rises to its whole as `1 - 3/(pass + 3)`, and is no less than the least.
    ///
    /// What is found in the first passes would else be followed for as long as all that comes: where classes are nearly separable far beyond where
    /// the loss is least, as slopes vanish soon, and the few rows that are wrong there bring weights back slowly. Steps are as near to the
    /// longest stable ones as before.
    fn at_pass(self, pass: u32) -> Self {
        let pass = f64::from(pass);
        let momentum = (1.0 - RISE / (pass + RISE)).max(MOMENTUM).min(self.momentum);
        Self { step: self.step * (1.0 + momentum) / (1.0 + self.momentum), momentum }
    }
}

/// A whole descent: its steps, how many, and the penalty a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flow {
    pub(super) stride: Stride,
    pub(super) passes: u32,
    pub(super) ridge: f64,
}

impl Flow {
    /// `eta T / (1 - beta)`.
    pub(super) fn time(self) -> f64 {
        self.stride.time(self.passes)
    }

    /// How far the mean of the last points gets without noise, as a share of the way to where the loss is least, along directions in which
    /// it has these curvatures.
    pub(super) fn response(self, curvatures: &[f64]) -> Vec<f64> {
        // The first place is that of an intercept, which is not penalised.
        let columns = curvatures.len() + 1;
        let mut descent = HeavyBall::from(vec![0.0; columns], columns, self.stride, 1.0, self.ridge, self.passes);
        for _ in 0..self.passes {
            let along = curvatures.iter().zip(&descent.weights[1..]);
            let gradient: Vec<f64> =
                [0.0].into_iter().chain(along.map(|(curvature, at)| curvature * (at - 1.0))).collect();
            descent.follow(&gradient);
        }
        descent.mean().split_off(1)
    }
}

/// The last of so many passes, whose points the result is the mean of.
pub(super) fn averaged_passes(passes: u32) -> u32 {
    ((f64::from(passes) * AVERAGED_SHARE).ceil() as u32).clamp(1, passes)
}

/// Watches the gradients of the second quarter of a descent, and says how many times as long as planned it is to go on: where directions
/// have converged, noise moves them no farther, and where they have not there is still something to find.
///
/// ```text
///   s = G·G' T / (d e²) - 8 / sqrt(d)          G, G': means of the odd and of the even gradients of that quarter;  e: noise of one
///   times = sqrt(50 s) · 3/8  within  [1, min(8, n mu / (20 d))]
/// ```
/// with `d` directions (columns times scores) and `T` passes. The noises of `G` and `G'` are independent, so that the product has the mean
/// of the squared mean gradient, less what noise that was already taken in is pulled back by; its noise is `8 / sqrt(d)`, and one of that is
/// taken off. A squared gradient that falls with the square of the time, as where classes are nearly separable, is at the end of that time
/// 1/50 of the noise in the mean of all passes. The bound: once all directions have converged, the score of a row has the noise
/// `d t (A/h) / (n mu)²` at most, for rows of norm `A` and the curvature `h` of the loss: of `times` about `c / (20 h)`, with `c` as in
/// [`descent_time`]. Gradients are released, so this costs nothing. Derived in `docs/methods/noisy-gd.md`, "Going on".
pub(super) struct Progress {
    passes: u32,
    seen: u32,
    /// Of odd passes and of even ones.
    sums: [Vec<f64>; 2],
}

impl Progress {
    /// Of `passes` gradients with so many `directions`.
    pub(super) fn of(directions: usize, passes: u32) -> Self {
        Self { passes, seen: 0, sums: [vec![0.0; directions], vec![0.0; directions]] }
    }

    /// Passes that are left when a descent may turn to longer strides.
    pub(super) fn left(&self) -> u32 {
        self.passes - self.passes / 2
    }

    /// Takes in the next gradient: whether it was the last of the first half.
    pub(super) fn is_halfway(&mut self, gradient: &[f64]) -> bool {
        let half = self.passes / 2;
        self.seen += 1;
        if (half / 2 + 1..=half).contains(&self.seen) {
            let side = &mut self.sums[self.seen as usize % 2];
            side.iter_mut().zip(gradient).for_each(|(sum, noisy)| *sum += noisy);
        }
        self.seen == half
    }

    /// How many times as long, for a signal `n mu` and gradients with this noise a coordinate.
    pub(super) fn times(&self, signal: f64, noise: f64) -> f64 {
        let directions = self.sums[0].len() as f64;
        let quarter = f64::from(self.passes / 2 - self.passes / 4);
        let product: f64 = self.sums[0].iter().zip(&self.sums[1]).map(|(odd, even)| odd * even).sum();
        // Of an odd number of passes one half has one more than the other.
        let means = product / ((quarter / 2.0).floor() * (quarter / 2.0).ceil()).max(1.0);
        let found = means * f64::from(self.passes) / (directions * noise * noise) - 8.0 / directions.sqrt();
        let most = (signal / (SIGNAL_A_TIME * directions)).clamp(1.0, TIMES_MAX);
        (WATCHED_AT * (found.max(0.0) / ENDING_SHARE).sqrt()).clamp(1.0, most)
    }
}

/// Heavy-ball descent on noisy gradients, and the mean of its last points.
pub(super) struct HeavyBall {
    pub(super) weights: Vec<f64>,
    velocity: Vec<f64>,
    sum: Vec<f64>,
    columns: usize,
    stride: Stride,
    rows: f64,
    l2: f64,
    passes: u32,
    left: u32,
    averaged: u32,
}

impl HeavyBall {
    /// The first of every `columns` weights is an intercept, which is not penalised.
    pub(super) fn from(start: Vec<f64>, columns: usize, stride: Stride, rows: f64, l2: f64, passes: u32) -> Self {
        let averaged = averaged_passes(passes);
        let zero = vec![0.0; start.len()];
        let (velocity, sum, left) = (zero.clone(), zero, passes);
        Self { weights: start, velocity, sum, columns, stride, rows, l2, passes, left, averaged }
    }

    /// Goes on in other strides.
    pub(super) fn turn(&mut self, stride: Stride) {
        self.stride = stride;
    }

    /// Filters all that it has changed of its start, and what it is moving by.
    fn filter(&mut self, start: &[f64], order: &ColumnOrder) {
        let mut change: Vec<f64> = self.weights.iter().zip(start).map(|(weight, start)| weight - start).collect();
        order.filter(&mut change);
        self.weights = start.iter().zip(change).map(|(start, change)| start + change).collect();
        order.filter(&mut self.velocity);
    }

    /// One pass: `gradient` is the noisy sum over the rows.
    pub(super) fn follow(&mut self, gradient: &[f64]) {
        let slope = self.penalised(gradient);
        self.step(&slope);
    }

    /// The same of a descent that began at `start` and keeps to an order of its columns, from the pass on in which it is found: in the stride for
    /// steps that are so many times as long. Whether it was found in this pass.
    pub(super) fn follow_in_order(
        &mut self,
        gradient: &[f64],
        start: &[f64],
        order: &mut ColumnOrder,
        stride: impl Fn(f64) -> Stride,
    ) -> bool {
        let is_found = order.is_found_by(gradient);
        if is_found {
            self.filter(start, order);
            self.turn(stride(order.stretch()));
        }
        // The penalty is held as well, or the minimum would be another.
        let mut slope = self.penalised(gradient);
        order.hold(&mut slope);
        self.step(&slope);
        is_found
    }

    fn penalised(&self, gradient: &[f64]) -> Vec<f64> {
        let of_place = |(place, noisy): (usize, &f64)| {
            noisy + if place % self.columns == 0 { 0.0 } else { self.l2 * self.weights[place] }
        };
        gradient.iter().enumerate().map(of_place).collect()
    }

    fn step(&mut self, slope: &[f64]) {
        let Stride { step, momentum } = self.stride.at_pass(self.passes - self.left);
        let step = step / self.rows;
        for (place, slope) in slope.iter().enumerate() {
            self.velocity[place] = momentum * self.velocity[place] - step * slope;
            self.weights[place] += self.velocity[place];
        }
        if self.left <= self.averaged {
            for (total, weight) in self.sum.iter_mut().zip(&self.weights) {
                *total += weight;
            }
        }
        self.left -= 1;
    }

    /// The mean of the last three in ten points.
    pub(super) fn mean(self) -> Vec<f64> {
        let averaged = f64::from(self.averaged);
        self.sum.into_iter().map(|total| total / averaged).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_step_stays_in_the_stable_range() {
        for signal in [1e-3, 1.0, 1e3, 1e6, 1e12] {
            for norm in [1.0, 3.0, 30.0] {
                for curvature in [0.25, 1.0] {
                    for penalty in [0.0, 1.0, 1e9] {
                        for passes in [1, 7, 100, 1000] {
                            let largest = norm * curvature + penalty;
                            let stride = Stride::of(descent_time(2, signal, norm), largest, passes);
                            // Heavy ball on a quadratic with curvature up to L converges for eta <= 2 (1 + beta) / L.
                            let most = 2.0 * (1.0 + stride.momentum) / largest;
                            assert!(stride.step > 0.0 && stride.step <= most * (1.0 + 1e-12), "{stride:?}");
                            assert!((0.9..1.0).contains(&stride.momentum), "{stride:?}");
                        }
                    }
                }
            }
        }
    }

    /// Where classes are nearly separable the first slopes are as large as they can be and the later ones nothing, but for few rows.
    #[test]
    fn the_first_slopes_are_not_followed_for_as_long_as_later_ones() {
        let stride = Stride { step: 1.9, momentum: 0.99 };
        let passes = |passes: std::ops::RangeInclusive<u32>| passes.map(|pass| stride.at_pass(pass));
        assert!(passes(0..=27).all(|at| (at.momentum - 0.9).abs() < 1e-12));
        assert!((stride.at_pass(57).momentum - 0.95).abs() < 1e-12, "1 - 3/60");
        assert!(passes(297..=1000).all(|at| (at.momentum - 0.99).abs() < 1e-12));
        // `eta / (1 + beta)`, what is stable, is what it was.
        assert!(passes(0..=400).all(|at| (at.step / (1.0 + at.momentum) - 1.9 / 1.99).abs() < 1e-12));
        let short = Stride { step: 1.0, momentum: 0.9 };
        assert!((short.at_pass(0).step - 1.0).abs() < 1e-12, "the least momentum is there from the start");
        let moved = |slopes: &[f64]| {
            let mut descent = HeavyBall::from(vec![0.0; 2], 2, stride, 1.0, 0.0, 1000);
            (0..1000).for_each(|pass| descent.follow(&[0.0, *slopes.get(pass).unwrap_or(&0.0)]));
            -descent.weights[1]
        };
        let (first, later) = (moved(&[1.0]), moved(&[&[0.0; 400][..], &[1.0]].concat()));
        assert!(first < 0.2 * later && (later / 190.0 - 1.0).abs() < 0.01, "{first} {later}");
    }

    #[test]
    fn momentum_rises_where_steps_alone_are_too_short() {
        // The longest time of a momentum of nine tenths: 38 passes over the curvature.
        let short = Stride::of(1900.0, 2.0, 100);
        assert!((short.momentum - 0.9).abs() < 1e-12 && (short.time(100) - 1900.0).abs() < 1e-6, "{short:?}");
        let longer = Stride::of(2500.0, 2.0, 100);
        assert!(longer.momentum > 0.9 && (longer.time(100) - 2500.0).abs() < 1e-6, "{longer:?}");
        let longest = Stride::of(1e9, 2.0, 100);
        assert!(
            (longest.momentum - 0.94).abs() < 1e-12 && (longest.time(100) - 9700.0 / 3.0).abs() < 1e-6,
            "{longest:?}"
        );
    }

    #[test]
    fn a_descent_without_noise_gets_as_far_as_its_steps_and_its_penalty_let_it() {
        let flow = Flow { stride: Stride { step: 0.1, momentum: 0.9 }, passes: 1000, ridge: 0.5 };
        let [near, half, nothing] = flow.response(&[4.5, 0.5, 0.0])[..] else { panic!("three") };
        assert!((near - 0.9).abs() < 1e-6 && (half - 0.5).abs() < 1e-6 && nothing.abs() < 1e-12, "{near} {half}");
        // By hand: one pass moves by eta h, two by eta h (1 + 1.9), less the second order; the mean of one in two is the last.
        let two = Flow { passes: 2, ridge: 0.0, ..flow }.response(&[1e-3])[0];
        assert!((two / 2.9e-4 - 1.0).abs() < 1e-3, "{two}");
        // Long and smooth: a flow of the same time, 0.02, but for the start and the mean of the last.
        let flow = Flow { stride: Stride { step: 1e-4, momentum: 0.9 }, passes: 1000, ridge: 0.0 };
        let found = flow.response(&[0.05])[0];
        assert!((0.8..0.9).contains(&(found / (0.05 * flow.time()))), "{found}");
    }

    #[test]
    fn the_mean_is_that_of_the_last_points_after_their_steps() {
        let stride = Stride { step: 5.0, momentum: 0.9 };
        let mut descent = HeavyBall::from(vec![0.0, 0.0], 2, stride, 10.0, 2.0, 4);
        for gradient in [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]] {
            descent.follow(&gradient);
        }
        // By hand: the intercept feels no penalty; thirty in a hundred of four passes are the last two.
        let points = [-0.5, -0.95, -1.355, -1.7195];
        let other = [0.0, -0.5, -0.45, 0.045];
        let mean = descent.mean();
        assert!((mean[0] - (points[2] + points[3]) / 2.0).abs() < 1e-12, "{mean:?}");
        assert!((mean[1] - (other[2] + other[3]) / 2.0).abs() < 1e-12, "{mean:?}");
    }

    /// Gradients of four directions that vary by one from pass to pass around `mean`, odd passes and even ones alike.
    fn progress(mean: f64, passes: u32) -> Progress {
        let mut progress = Progress::of(4, passes);
        let turns: Vec<u32> = (1..=passes).filter(|_| progress.is_halfway(&[mean, -mean, mean, 0.0])).collect();
        assert_eq!(turns, [passes / 2], "one turn");
        progress
    }

    /// By hand: `3 mean² T / (4 e²) - 8/2` with `T = 100` and `e = 10`, and `3/8 sqrt(50 s)` of it.
    #[test]
    fn a_descent_goes_on_while_gradients_stand_out() {
        let times = |mean: f64, signal: f64| progress(mean, 100).times(signal, 10.0);
        assert!((times(3.0, 1e9) - 0.375 * (50.0f64 * 2.75).sqrt()).abs() < 1e-9, "{}", times(3.0, 1e9));
        assert!((times(2.3, 1e9) - 1.0).abs() < 1e-12, "within the noise of their product");
        assert!((times(0.0, 1e9) - 1.0).abs() < 1e-12, "nothing left to find");
        assert!((times(1e3, 1e9) - 8.0).abs() < 1e-12, "no longer than eight times");
        assert!((times(1e3, 240.0) - 3.0).abs() < 1e-12, "three times twenty a direction");
        assert!((times(1e3, 60.0) - 1.0).abs() < 1e-12, "too little signal a direction");
    }

    #[test]
    fn only_the_second_quarter_is_watched() {
        let mut progress = Progress::of(1, 100);
        for pass in 1..=100 {
            progress.is_halfway(&[if (26..=50).contains(&pass) { 2.0 } else { 1e6 }]);
        }
        assert_eq!(progress.sums, [vec![26.0], vec![24.0]]);
        assert!((progress.times(1e9, 5.0) - 0.375 * 400f64.sqrt()).abs() < 1e-9, "4 · 100 / 25 - 8");
        // What goes the other way from pass to pass is noise that is pulled back.
        let mut swinging = Progress::of(1, 100);
        for pass in 1..=100 {
            swinging.is_halfway(&[if pass % 2 == 0 { 9.0 } else { -9.0 }]);
        }
        assert!((swinging.times(1e9, 1.0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn few_passes_are_not_watched_for_longer() {
        for passes in 1..=7 {
            let mut progress = Progress::of(4, passes);
            let turns = (1..=passes).filter(|_| progress.is_halfway(&[1.0; 4])).count();
            assert!(turns <= 1 && progress.left() >= 1, "{passes}");
            assert!((1.0..=8.0).contains(&progress.times(1e9, 1e-3)), "{passes}");
        }
    }
}
