//! Where a session's noise comes from: the operating system's random bits, and in tests a seed.

use super::discrete_laplace::sample_discrete_laplace;
use super::entropy::{EntropyError, OsEntropy};
use super::rounded_gaussian::sample_rounded_gaussian;
use crate::units::{NoiseDistribution, NoiseScale};
use rand_core::TryCryptoRng;

/// A source of noise. Only `danger` can make one that is not from the operating system.
pub(crate) enum NoiseSource {
    OperatingSystem(Box<OsEntropy>),
    #[cfg(feature = "danger")]
    Seeded(Box<crate::danger::SeededNoise>),
}

impl NoiseSource {
    pub(crate) fn from_operating_system() -> Result<Self, EntropyError> {
        Ok(Self::OperatingSystem(Box::new(OsEntropy::new()?)))
    }

    /// Independent draws of one distribution.
    pub(crate) fn draw(
        &mut self,
        distribution: NoiseDistribution,
        scale: NoiseScale,
        count: u32,
    ) -> Result<Vec<i128>, EntropyError> {
        match self {
            Self::OperatingSystem(entropy) => draws(distribution, scale, count, &mut entropy.for_this_process()?),
            #[cfg(feature = "danger")]
            Self::Seeded(seeded) => match draws(distribution, scale, count, seeded.stream()) {
                Ok(draws) => {
                    seeded.witness_draw(distribution, scale, &draws);
                    Ok(draws)
                }
                Err(never) => match never {},
            },
        }
    }
}

fn draws<R: TryCryptoRng>(
    distribution: NoiseDistribution,
    scale: NoiseScale,
    count: u32,
    stream: &mut R,
) -> Result<Vec<i128>, R::Error> {
    let draw = match distribution {
        NoiseDistribution::RoundedGaussian => sample_rounded_gaussian,
        NoiseDistribution::DiscreteLaplace => sample_discrete_laplace,
    };
    (0..count).map(|_| draw(scale, stream)).collect()
}
