//! Sources for the samplers' tests: one that follows a script, one that fails on demand.

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng, TryCryptoRng, TryRng};
use std::collections::VecDeque;
use std::fmt;

/// The refusal of a test source, with the number of the refused call, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) call: usize,
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "call {} is refused", self.call)
    }
}

impl std::error::Error for Refused {}

/// Hands out the given words in order and refuses afterwards; a 32-bit word is the high half of the next one.
pub(super) struct ScriptedSource {
    words: VecDeque<u64>,
    calls: usize,
}

impl ScriptedSource {
    pub(super) fn new(words: &[u64]) -> Self {
        Self { words: words.iter().copied().collect(), calls: 0 }
    }

    /// Number of words not handed out.
    pub(super) fn left(&self) -> usize {
        self.words.len()
    }
}

impl TryRng for ScriptedSource {
    type Error = Refused;

    fn try_next_u32(&mut self) -> Result<u32, Refused> {
        Ok((self.try_next_u64()? >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Refused> {
        let word = self.words.pop_front().ok_or(Refused { call: self.calls })?;
        self.calls += 1;
        Ok(word)
    }

    fn try_fill_bytes(&mut self, _bytes: &mut [u8]) -> Result<(), Refused> {
        unreachable!("samplers take words")
    }
}

impl TryCryptoRng for ScriptedSource {}

/// A seeded stream that refuses one call, and every later one.
pub(super) struct FailingSource {
    stream: ChaCha20Rng,
    pub(super) calls: usize,
    refuse_from: usize,
}

impl FailingSource {
    pub(super) fn new(seed: u64, refuse_from: usize) -> Self {
        Self { stream: ChaCha20Rng::seed_from_u64(seed), calls: 0, refuse_from }
    }

    fn count(&mut self) -> Result<(), Refused> {
        if self.calls >= self.refuse_from {
            return Err(Refused { call: self.calls });
        }
        self.calls += 1;
        Ok(())
    }
}

impl TryRng for FailingSource {
    type Error = Refused;

    fn try_next_u32(&mut self) -> Result<u32, Refused> {
        self.count()?;
        Ok(self.stream.next_u32())
    }

    fn try_next_u64(&mut self) -> Result<u64, Refused> {
        self.count()?;
        Ok(self.stream.next_u64())
    }

    fn try_fill_bytes(&mut self, _bytes: &mut [u8]) -> Result<(), Refused> {
        unreachable!("samplers take words")
    }
}

impl TryCryptoRng for FailingSource {}

/// Asserts that `sample` hands on the failure of every call that its draws make, for a number of seeds.
pub(super) fn assert_failures_are_handed_on(sample: impl Fn(&mut FailingSource) -> Result<i128, Refused>) {
    for seed in 0..50 {
        let mut whole = FailingSource::new(seed, usize::MAX);
        let value = sample(&mut whole).expect("this source never refuses");
        for call in 0..whole.calls {
            let mut source = FailingSource::new(seed, call);
            assert_eq!(sample(&mut source), Err(Refused { call }), "seed {seed}");
        }
        assert_eq!(
            sample(&mut FailingSource::new(seed, whole.calls)),
            Ok(value),
            "seed {seed}: no call beyond the last"
        );
    }
}

/// The first draws for each scale in the value-stability file, made by an independent implementation.
pub(super) fn assert_values_are_stable(
    distribution: &str,
    sample: impl Fn(crate::units::NoiseScale, &mut ChaCha20Rng) -> i128,
) {
    let file: serde_json::Value =
        serde_json::from_str(include_str!("../../../../testdata/golden/noise/value_stability.json"))
            .expect("the file is JSON");
    let seed = file["seed"].as_u64().expect("the seed is a whole number");
    let by_scale = file[distribution].as_object().expect("one list for each scale");
    assert!(by_scale.len() >= 5, "the file lists fewer scales than it should");
    for (scale, expected) in by_scale {
        let scale = crate::units::NoiseScale::new(scale.parse().expect("a whole number")).expect("in range");
        let mut source = ChaCha20Rng::seed_from_u64(seed);
        let expected = expected.as_array().expect("a list of draws");
        assert_eq!(expected.len(), 32);
        for (place, value) in expected.iter().enumerate() {
            let value: i128 = value.as_str().expect("a decimal string").parse().expect("a whole number");
            assert_eq!(sample(scale, &mut source), value, "{distribution}, scale {}, draw {place}", scale.get());
        }
    }
}
