//! What noisy sequences have in common from place to place: a filter that keeps of new ones what neighbours bear out.
//!
//! Pixels, spectra and readings over time are sequences whose neighbours are alike. How alike, at every distance, is in their autocovariance;
//! its transform says at which frequencies there is more than noise.

use std::fmt;
use std::sync::Arc;

use realfft::num_complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};

/// Errors by which the covariance at some distance must stand out.
const STANDS_OUT: f64 = 5.0;
/// A covariance of so many errors counts half.
const HALF_BELIEVED: f64 = 2.0;

/// A linear filter of sequences of one length: what passes of a frequency is the share of the signal in it, scaled so that the one that
/// passes best passes whole.
#[derive(Clone)]
pub struct SequenceFilter {
    /// What passes of each frequency of a sequence with as many zeros after it, 0 to 1.
    passes: Vec<f64>,
    transform: Transform,
}

impl SequenceFilter {
    /// From sequences of one length, two places or more, with noise of this standard deviation in every place; `floor` is the variance `N` that frequencies are
    /// held against, and `least` the share of each that passes anyway. None where places at no distance are alike.
    ///
    /// ```text
    ///   r(l) = 1/(K d) sum_k sum_j x_kj x_k,j+l,  l <= d/2,    r(0) less noise²        K sequences of d places
    ///   error e² = noise² (noise² + 2 r(0)) / (K d) + r(0)²/d,  of distance l times 1 - l/d
    ///   r(l) <- r(l) · r(l)² / (r(l)² + 4 e²),  where some r(l) is beyond 5 e;        S = transform of r, at least 0
    ///   passes = least + (1 - least) P / max P,  P = S / (S + N)
    /// ```
    /// Sources: Wiener 1949 (the filter); Bartlett 1946 (errors of an autocovariance, of places that are not alike).
    #[must_use]
    pub fn of(sequences: &[Vec<f64>], noise: f64, floor: f64, least: f64) -> Option<Self> {
        let length = sequences.first().map(Vec::len).filter(|length| *length > 1)?;
        let transform = Transform::of(length);
        let places = (sequences.len() * length) as f64;
        let mut power = vec![0.0; length + 1];
        for sequence in sequences {
            let frequencies = transform.forward(sequence);
            power.iter_mut().zip(frequencies).for_each(|(sum, frequency)| *sum += frequency.norm_sqr() / places);
        }
        let mut covariance = transform.back(power.into_iter().map(|power| Complex::new(power, 0.0)).collect());
        // Farther apart there are too few pairs for their mean to be normal.
        covariance.truncate(length / 2 + 1);
        let white = noise * noise;
        covariance[0] = (covariance[0] - white).max(0.0);
        let own = covariance[0];
        let error = (white * (white + 2.0 * own) / places + own * own / length as f64).sqrt();
        let errors = |distance: usize| error * (1.0 - distance as f64 / length as f64).sqrt();
        let mut away = covariance.iter().enumerate().skip(1);
        if !away.any(|(distance, covariance)| covariance.abs() > STANDS_OUT * errors(distance)) {
            return None;
        }
        for (distance, covariance) in covariance.iter_mut().enumerate().skip(1) {
            let square = *covariance * *covariance;
            *covariance *= square / (square + (HALF_BELIEVED * errors(distance)).powi(2));
        }
        // Both sides of it, as the transform of twice the length wants them.
        let mut both = vec![0.0; 2 * length];
        for (distance, covariance) in covariance.into_iter().enumerate() {
            both[distance] = covariance;
            both[(2 * length - distance) % (2 * length)] = covariance;
        }
        let spectrum = transform.forward(&both).into_iter().map(|frequency| frequency.re.max(0.0));
        let mut passes: Vec<f64> = spectrum.map(|power| power / (power + floor)).collect();
        let largest = passes.iter().fold(0.0, |largest: f64, pass| largest.max(*pass));
        if largest <= 0.0 {
            return None;
        }
        passes.iter_mut().for_each(|pass| *pass = least + (1.0 - least) * *pass / largest);
        Some(Self { passes, transform })
    }

    /// Mean over all frequencies of what passes: 1 where nothing is held back.
    #[must_use]
    pub fn mean_pass(&self) -> f64 {
        // All but the first and the last are there twice.
        let [first, inner @ .., last] = &self.passes[..] else { return self.passes[0] };
        (first + 2.0 * inner.iter().sum::<f64>() + last) / (2 * (self.passes.len() - 1)) as f64
    }

    /// The sequence without what the filter holds back.
    #[must_use]
    pub fn filtered(&self, sequence: &[f64]) -> Vec<f64> {
        let mut frequencies = self.transform.forward(sequence);
        frequencies.iter_mut().zip(&self.passes).for_each(|(frequency, pass)| *frequency *= *pass);
        let mut filtered = self.transform.back(frequencies);
        filtered.truncate(sequence.len());
        filtered
    }
}

impl fmt::Debug for SequenceFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SequenceFilter").field("passes", &self.passes).finish_non_exhaustive()
    }
}

/// Fourier transform of sequences with as many zeros after them, so that their ends do not meet.
#[derive(Clone)]
struct Transform {
    forward: Arc<dyn RealToComplex<f64>>,
    back: Arc<dyn ComplexToReal<f64>>,
}

impl Transform {
    fn of(length: usize) -> Self {
        let mut planner = RealFftPlanner::new();
        Self { forward: planner.plan_fft_forward(2 * length), back: planner.plan_fft_inverse(2 * length) }
    }

    fn forward(&self, sequence: &[f64]) -> Vec<Complex<f64>> {
        let mut padded = self.forward.make_input_vec();
        padded[..sequence.len()].copy_from_slice(sequence);
        let mut frequencies = self.forward.make_output_vec();
        self.forward.process(&mut padded, &mut frequencies).expect("lengths are the plan's");
        frequencies
    }

    /// The inverse of [`Self::forward`].
    fn back(&self, mut frequencies: Vec<Complex<f64>>) -> Vec<f64> {
        // Of a real sequence these two are real; the transform insists.
        for end in [0, frequencies.len() - 1] {
            frequencies[end].im = 0.0;
        }
        let mut sequence = self.back.make_output_vec();
        self.back.process(&mut frequencies, &mut sequence).expect("lengths are the plan's");
        let length = sequence.len() as f64;
        sequence.iter_mut().for_each(|value| *value /= length);
        sequence
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixed_sequence::FixedSequence;

    /// Reference numbers by `testdata/golden/sequence_filter.py`.
    #[test]
    fn golden_filters() {
        let text = include_str!("../../../testdata/golden/sequence_filter.json");
        let golden: serde_json::Value = serde_json::from_str(text).expect("JSON");
        for case in golden.as_array().expect("a list") {
            let number = |name: &str| case[name].as_f64().expect("a number");
            let numbers = |of: &serde_json::Value| -> Vec<f64> { serde_json::from_value(of.clone()).expect("numbers") };
            let sequences: Vec<Vec<f64>> = case["sequences"].as_array().expect("a list").iter().map(numbers).collect();
            let filter = SequenceFilter::of(&sequences, number("noise"), number("floor"), number("least"));
            let filter = filter.expect("neighbours are alike");
            assert!((filter.mean_pass() - number("mean_pass")).abs() < 1e-12);
            for (found, expected) in filter.filtered(&sequences[0]).iter().zip(numbers(&case["filtered"])) {
                assert!((found - expected).abs() < 1e-12 * (1.0 + expected.abs()), "{found} {expected}");
            }
        }
    }

    fn normals(seed: u64, count: usize) -> Vec<f64> {
        let mut sequence = FixedSequence::new(seed);
        let mut normal = || (0..12).map(|_| sequence.next_uniform()).sum::<f64>() / 2.0;
        (0..count).map(|_| normal()).collect()
    }

    /// A slow wave, in places of which each is as large as its noise.
    fn wave(place: usize) -> f64 {
        (place as f64 / 10.0).sin() * std::f64::consts::SQRT_2
    }

    #[test]
    fn what_is_smooth_passes_and_what_is_rough_does_not() {
        let of = |noise: Vec<f64>| -> Vec<f64> {
            noise.into_iter().enumerate().map(|(place, noise)| wave(place) + noise).collect()
        };
        let filter = SequenceFilter::of(&[of(normals(2, 400))], 1.0, 1.0, 0.0).expect("a wave");
        let smooth: Vec<f64> = (0..400).map(wave).collect();
        let error = |of: &[f64]| of.iter().zip(&smooth).map(|(found, so)| (found - so).powi(2)).sum::<f64>() / 400.0;
        let fresh = of(normals(3, 400));
        assert!(error(&filter.filtered(&fresh)) < 0.25 * error(&fresh), "{}", error(&filter.filtered(&fresh)));
        assert!(filter.mean_pass() < 0.3, "{}", filter.mean_pass());
        let held = SequenceFilter::of(&[fresh], 1.0, 1.0, 0.25).expect("a wave");
        assert!((0.25..0.5).contains(&held.mean_pass()), "{}", held.mean_pass());
    }

    /// Sequences of noise alone, and of signals that are in no order: of five errors at one of 300 distances one in some thousand is beyond.
    #[test]
    fn where_neighbours_are_not_alike_there_is_no_filter() {
        for seed in 0..50 {
            assert!(SequenceFilter::of(&[normals(seed, 300)], 1.0, 1.0, 0.0).is_none(), "{seed}");
            assert!(SequenceFilter::of(&[normals(seed, 300)], 0.0, 1.0, 0.0).is_none(), "{seed}");
            // The same signal in three sequences is one signal.
            let thrice = vec![normals(seed, 300); 3];
            assert!(SequenceFilter::of(&thrice, 0.1, 1.0, 0.0).is_none(), "{seed}");
        }
        assert!(SequenceFilter::of(&[], 1.0, 1.0, 0.0).is_none());
        assert!(SequenceFilter::of(&[vec![]], 1.0, 1.0, 0.0).is_none());
        assert!(SequenceFilter::of(&[vec![0.0; 100]], 0.0, 1.0, 0.0).is_none());
        assert!(SequenceFilter::of(&[vec![7.0]], 1.0, 1.0, 0.0).is_none());
    }

    /// A filter that follows a descent must be symmetric and positive, or the descent may climb.
    #[test]
    fn a_filter_is_symmetric_and_positive() {
        let noise = normals(9, 64);
        let sequence: Vec<f64> = (0..64).map(|place| 2.0 * wave(place) + noise[place]).collect();
        let filter = SequenceFilter::of(&[sequence], 1.0, 1.0, 0.1).expect("a wave");
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        for seed in 0..20 {
            let (left, right) = (normals(2 * seed, 64), normals(2 * seed + 1, 64));
            let (one, other) = (product(&left, &filter.filtered(&right)), product(&filter.filtered(&left), &right));
            assert!((one - other).abs() < 1e-9);
            let kept = product(&left, &filter.filtered(&left)) / product(&left, &left);
            assert!((0.1 - 1e-9..=1.0 + 1e-9).contains(&kept), "{kept}");
        }
    }
}
