//! Where a session's noise comes from: the operating system's random bits, and in tests a seed.

use super::discrete_laplace::sample_discrete_laplace;
use super::entropy::{EntropyError, OsEntropy};
use super::rounded_gaussian::sample_rounded_gaussian;
use crate::engine::{Engine, Task};
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

    /// Independent draws of one distribution. Many are drawn by the threads of an engine, each share from a stream with a key of its own from
    /// the operating system, so that no two draws share a random bit.
    pub(crate) fn draw(
        &mut self,
        distribution: NoiseDistribution,
        scale: NoiseScale,
        count: u32,
        engine: &dyn Engine,
    ) -> Result<Vec<i128>, EntropyError> {
        match self {
            Self::OperatingSystem(_) if count >= 2 * DRAWS_A_TASK => draw_shares(distribution, scale, count, engine),
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

/// Draws of one task: enough that a key and a start are little beside them.
const DRAWS_A_TASK: u32 = 1 << 14;

/// Draws of one stream.
struct Share {
    stream: OsEntropy,
    count: u32,
    /// None until they are drawn.
    drawn: Option<Result<Vec<i128>, EntropyError>>,
}

impl Share {
    fn draw(&mut self, distribution: NoiseDistribution, scale: NoiseScale) -> Result<Vec<i128>, EntropyError> {
        draws(distribution, scale, self.count, &mut self.stream.for_this_process()?)
    }
}

fn draw_shares(
    distribution: NoiseDistribution,
    scale: NoiseScale,
    count: u32,
    engine: &dyn Engine,
) -> Result<Vec<i128>, EntropyError> {
    let counts = (0..count).step_by(DRAWS_A_TASK as usize).map(|first| DRAWS_A_TASK.min(count - first));
    let share = |count| Ok(Share { stream: OsEntropy::new()?, count, drawn: None });
    let mut shares = counts.map(share).collect::<Result<Vec<_>, _>>()?;
    let task = |share: &mut Share| share.drawn = Some(share.draw(distribution, scale));
    engine.run_tasks(shares.iter_mut().map(|share| -> Task<'_> { Box::new(move || task(share)) }).collect());
    let mut all = Vec::with_capacity(count as usize);
    for mut share in shares {
        // What an engine left undone is done here: a release without a part of its noise must not be.
        all.extend(share.drawn.take().unwrap_or_else(|| share.draw(distribution, scale))?);
    }
    Ok(all)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adjacency::PrivacyUnit;
    use crate::engine::EngineError;
    use crate::query::SumQuery;
    use crate::sum::PartialSum;
    use std::collections::HashSet;

    /// Without rows. Runs so many tasks and forgets the others.
    struct Lazy(usize);

    impl Engine for Lazy {
        fn unit(&self) -> &PrivacyUnit {
            unreachable!("noise does not ask")
        }

        fn schema(&self) -> &str {
            unreachable!("noise does not ask")
        }

        fn exact_sum(&self, _: &SumQuery) -> Result<PartialSum, EngineError> {
            unreachable!("noise does not ask")
        }

        fn run_tasks(&self, tasks: Vec<Task<'_>>) {
            tasks.into_iter().take(self.0).for_each(|task| task());
        }
    }

    /// Of so many draws two are equal once in 2^28: a share that is left out, or drawn twice from one key, would be seen.
    #[test]
    fn every_share_is_drawn_whatever_an_engine_does() {
        let mut source = NoiseSource::from_operating_system().expect("the test machine has a random source");
        for count in [0, 1, 2 * DRAWS_A_TASK - 1, 2 * DRAWS_A_TASK, 4 * DRAWS_A_TASK + 3] {
            for done in [0, 2, usize::MAX] {
                let drawn = source.draw(NoiseDistribution::RoundedGaussian, NoiseScale::MAX, count, &Lazy(done));
                let different: HashSet<i128> = drawn.expect("a source that gives").into_iter().collect();
                assert_eq!(different.len(), count as usize, "{done} tasks done");
            }
        }
    }
}
