//! Columns that follow each other as pixels do, or readings over time: a descent takes longer steps along what neighbours have in common.
//!
//! ```text
//!   the first 3 of 10 passes: gradients g as they are;  F: filter of their mean, against 16 times the noise of all passes; a quarter passes anyway
//!   from then on:  F g / mean pass of F  for the numbers, up to four times as far along what is smooth, and on average over frequencies as far
//! ```
//! What was gone so far is filtered as well. Nothing changes where columns are in no order that gradients tell of. Gradients are released, and
//! what is made of them costs nothing. Row F171; derived in `docs/methods/noisy-gd.md`, "Columns in order".

use reticent_core::coding::{Coding, SlotKind};
use reticent_math::sequence_filter::SequenceFilter;

/// Share of the passes that are watched.
const WATCHED: f64 = 0.3;
/// Fewest numbers that are looked at.
const NUMBERS_MIN: usize = 64;
/// What frequencies are held against, in variances of the noise of all passes together.
const FLOOR: f64 = 16.0;
/// What passes of each frequency anyway: steps along it are no shorter than by this.
const LEAST: f64 = 0.25;

/// Finds out whether columns are in an order, and holds gradients to it.
pub(super) struct ColumnOrder {
    /// Columns that are numbers, in order; empty where there are few.
    numbers: Vec<usize>,
    /// Encoded columns a score.
    columns: usize,
    /// Noise of one gradient.
    noise: f64,
    passes: u32,
    seen: u32,
    sum: Vec<f64>,
    found: Option<Found>,
}

/// A filter, and how many times as long the steps are that follow it.
struct Found {
    filter: SequenceFilter,
    stretch: f64,
}

impl ColumnOrder {
    /// Of a descent of so many passes, one score after the other, with this noise in a coordinate of a gradient.
    pub(super) fn of(coding: &Coding, scores: usize, passes: u32, noise: f64) -> Self {
        let mut numbers = Vec::new();
        let mut place = 1;
        for slot in coding.slot_kinds() {
            match slot {
                SlotKind::Numeric => {
                    numbers.push(place);
                    place += 1;
                }
                SlotKind::Categories(categories) => place += categories,
            }
        }
        if numbers.len() < NUMBERS_MIN {
            numbers.clear();
        }
        let columns = coding.columns().len();
        Self { numbers, columns, noise, passes, seen: 0, sum: vec![0.0; scores * columns], found: None }
    }

    /// Takes in the next gradient: whether an order has just been found.
    pub(super) fn is_found_by(&mut self, gradient: &[f64]) -> bool {
        let watched = (f64::from(self.passes) * WATCHED).round() as u32;
        if self.numbers.is_empty() || self.seen >= watched {
            return false;
        }
        self.seen += 1;
        self.sum.iter_mut().zip(gradient).for_each(|(sum, noisy)| *sum += noisy);
        if self.seen < watched {
            return false;
        }
        let mean: Vec<f64> = self.sum.iter().map(|sum| sum / f64::from(watched)).collect();
        let sequences: Vec<Vec<f64>> = mean.chunks_exact(self.columns).map(|score| self.numbers_of(score)).collect();
        let floor = FLOOR * self.noise * self.noise / f64::from(self.passes);
        let filter = SequenceFilter::of(&sequences, self.noise / f64::from(watched).sqrt(), floor, LEAST);
        self.found = filter.map(|filter| Found { stretch: filter.mean_pass().recip(), filter });
        self.found.is_some()
    }

    /// How many times as long as planned steps are: 1 where there is no order.
    pub(super) fn stretch(&self) -> f64 {
        self.found.as_ref().map_or(1.0, |found| found.stretch)
    }

    /// What the next of the longer steps is to follow, in place of this gradient with its penalty.
    pub(super) fn hold(&self, gradient: &mut [f64]) {
        let Some(Found { filter, stretch }) = &self.found else { return };
        for score in gradient.chunks_exact_mut(self.columns) {
            let filtered = filter.filtered(&self.numbers_of(score));
            score.iter_mut().for_each(|other| *other /= stretch);
            self.set_numbers(score, &filtered);
        }
    }

    /// Holds back of the numbers what their neighbours do not bear out.
    pub(super) fn filter(&self, change: &mut [f64]) {
        let Some(Found { filter, .. }) = &self.found else { return };
        for score in change.chunks_exact_mut(self.columns) {
            let filtered = filter.filtered(&self.numbers_of(score));
            self.set_numbers(score, &filtered);
        }
    }

    fn set_numbers(&self, score: &mut [f64], numbers: &[f64]) {
        self.numbers.iter().zip(numbers).for_each(|(place, number)| score[*place] = *number);
    }

    fn numbers_of(&self, score: &[f64]) -> Vec<f64> {
        self.numbers.iter().map(|place| score[*place]).collect()
    }
}

#[cfg(test)]
mod tests {
    use reticent_core::schema::Schema;
    use reticent_math::fixed_sequence::FixedSequence;

    use super::super::heavy_ball::{HeavyBall, Stride};
    use super::*;

    /// So many numbers after a category of three.
    fn coding(numbers: usize) -> Coding {
        let columns: String = (0..numbers).map(|place| format!("x{place} = {{ bounds = [0, 1] }}\n")).collect();
        let schema = format!(
            "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nclasses = [1, 2, 3]\n[features]\n\
             k = {{ categories = [\"a\", \"b\"] }}\n{columns}"
        );
        Coding::of(&Schema::from_text(&schema).expect("legal"))
    }

    /// Two scores whose numbers are a slow wave.
    fn gradient(columns: usize) -> Vec<f64> {
        let score = |shift: f64| (0..columns).map(move |place| (place as f64 / 9.0 + shift).sin());
        score(0.0).chain(score(1.0)).collect()
    }

    #[test]
    fn an_order_is_found_once_three_in_ten_gradients_are_seen() {
        let coding = coding(80);
        let columns = coding.columns().len();
        let mut order = ColumnOrder::of(&coding, 2, 10, 0.8);
        let found: Vec<bool> = (0..10).map(|_| order.is_found_by(&gradient(columns))).collect();
        assert_eq!(found, [false, false, true, false, false, false, false, false, false, false]);
        let stretch = order.stretch();
        assert!((2.0..=4.0).contains(&stretch), "{stretch}");
        // What is smooth is followed in longer steps, but for the ends; everything else as it was.
        let (before, mut held) = (gradient(columns), gradient(columns));
        order.hold(&mut held);
        let first = columns - 80;
        for score in 0..2 {
            for place in 0..columns {
                let share = held[score * columns + place] / before[score * columns + place];
                if place < first {
                    assert!((share * stretch - 1.0).abs() < 1e-12 || before[score * columns + place] == 0.0, "{share}");
                }
            }
            let of = |of: &[f64]| of[score * columns + first..][..80].iter().map(|value| value * value).sum::<f64>();
            assert!(of(&held) > 0.8 * of(&before), "{}", of(&held) / of(&before));
        }
        // What alternates passes by a quarter.
        let mut rough: Vec<f64> = (0..2 * columns).map(|place| if place % 2 == 0 { 1.0 } else { -1.0 }).collect();
        order.filter(&mut rough);
        assert!((rough[first + 40].abs() - LEAST).abs() < 0.02, "{}", rough[first + 40]);
        assert!(rough[..first].iter().all(|value| (value.abs() - 1.0).abs() < f64::EPSILON));
    }

    /// Of `1/2 ‖w - wave‖² + 1/2 · 1/2 ‖w‖²`: two thirds of the wave, and of an intercept all of it.
    #[test]
    fn with_a_penalty_the_minimum_is_the_same() {
        let coding = coding(80);
        let columns = coding.columns().len();
        let (wave, start) = (gradient(columns), vec![0.0; 2 * columns]);
        let mut order = ColumnOrder::of(&coding, 2, 1000, 0.8);
        let slow = Stride { step: 2e-3, momentum: 0.9 };
        let mut descent = HeavyBall::from(start.clone(), columns, slow, 1.0, 0.5, 1000);
        for _ in 0..1000 {
            let slopes: Vec<f64> = descent.weights.iter().zip(&wave).map(|(weight, wave)| weight - wave).collect();
            descent.follow_in_order(&slopes, &start, &mut order, |_| Stride { step: 0.1, momentum: 0.9 });
        }
        assert!(order.stretch() > 1.0, "no order");
        for (place, (found, wave)) in descent.mean().iter().zip(&wave).enumerate() {
            let share = if place % columns == 0 { 1.0 } else { 2.0 / 3.0 };
            assert!((found - share * wave).abs() < 1e-3, "{place}: {found} of {wave}");
        }
    }

    #[test]
    fn without_an_order_or_with_few_numbers_nothing_changes() {
        let mut sequence = FixedSequence::new(5);
        let disordered = (0..2 * 83).map(|_| sequence.next_uniform()).collect();
        for (numbers, gradient) in [(63, gradient(66)), (80, disordered)] {
            let mut order = ColumnOrder::of(&coding(numbers), 2, 10, 1.0);
            assert!((0..10).all(|_| !order.is_found_by(&gradient)), "{numbers}");
            assert!((order.stretch() - 1.0).abs() < f64::EPSILON);
            let mut held = gradient.clone();
            order.hold(&mut held);
            order.filter(&mut held);
            assert_eq!(held, gradient);
        }
        let mut single = ColumnOrder::of(&coding(80), 2, 1, 0.1);
        assert!(!single.is_found_by(&gradient(83)), "one pass is not watched");
    }
}
