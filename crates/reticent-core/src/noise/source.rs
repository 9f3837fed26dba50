//! Where a session's noise comes from: the operating system's random bits, and in tests a seed.

use super::entropy::{EntropyError, OsEntropy};
use super::rounded_gaussian::sample_rounded_gaussian;
use crate::units::NoiseScale;

/// A source of noise. Only `danger` can make one that is not from the operating system.
pub(crate) enum NoiseSource {
    OperatingSystem(Box<OsEntropy>),
    #[cfg(feature = "danger")]
    Seeded(Box<rand_chacha::ChaCha20Rng>),
}

impl NoiseSource {
    pub(crate) fn from_operating_system() -> Result<Self, EntropyError> {
        Ok(Self::OperatingSystem(Box::new(OsEntropy::new()?)))
    }

    #[cfg(feature = "danger")]
    pub(crate) fn seeded(seed: u64) -> Self {
        use rand_core::SeedableRng;
        Self::Seeded(Box::new(rand_chacha::ChaCha20Rng::seed_from_u64(seed)))
    }

    /// Independent draws of the rounded Gaussian.
    pub(crate) fn rounded_gaussian(&mut self, scale: NoiseScale, count: u32) -> Result<Vec<i128>, EntropyError> {
        match self {
            Self::OperatingSystem(entropy) => {
                let mut stream = entropy.for_this_process()?;
                (0..count).map(|_| sample_rounded_gaussian(scale, &mut stream)).collect()
            }
            #[cfg(feature = "danger")]
            Self::Seeded(stream) => (0..count)
                .map(|_| match sample_rounded_gaussian(scale, stream.as_mut()) {
                    Ok(draw) => Ok(draw),
                    Err(never) => match never {},
                })
                .collect(),
        }
    }
}
