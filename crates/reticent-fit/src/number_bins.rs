//! Numbers counted by bins of their bounds before they are scaled: into how many, where that can tell anything.

use std::sync::Arc;

use reticent_core::adjacency::Relation;
use reticent_core::coding::Coding;
use reticent_core::encoding::Encoding;
use reticent_core::pass_weights::PassWeights;
use reticent_core::query::{COUNT_STEP, Map, NUMBER_BINS, QueryShape};
use reticent_core::schema::Schema;
use reticent_core::units::MuSquared;
use reticent_math::target_look::bins_told;

use crate::prepared_fit::{FitError, Releases};
use crate::row_number::expected_rows;

/// Fewest bins that are worth asking for.
const BINS_MIN: u32 = 16;
/// Most numbers whose bins are asked for. Hundreds are mostly of one kind, as pixels are, and share their bounds: those that vary little
/// then say little, and should not be scaled up to the others.
const NUMBERS_MAX: u32 = 100;
/// A run of bins is believed when its noise is at most this share of the rows: half of what [`reticent_math::range_search`] asks.
const NOISE_MAX: f64 = 0.15;

/// Noisy rows by the bins of every number.
pub(crate) struct BinnedNumbers {
    /// Bin after bin, number after number.
    pub(crate) counts: Vec<f64>,
    /// Bins of a number.
    pub(crate) bins: usize,
    /// Standard deviation of one count.
    pub(crate) noise: f64,
}

impl BinnedNumbers {
    /// What is asked at `place` of a plan, where it is bins.
    pub(crate) fn released(
        releases: &mut Releases<'_, '_>,
        place: usize,
        plain: &Arc<Encoding>,
    ) -> Result<Option<Self>, FitError> {
        let Map::NumberBins { bins, .. } = *releases.planned(place).shape.map() else { return Ok(None) };
        let counted = releases.sum(place, plain, PassWeights::none())?;
        let (counts, noise) = (counted.values(), counted.noise_standard_deviation);
        Ok(Some(Self { counts, bins: bins as usize, noise }))
    }
}

/// The bins to ask for with `share`: the largest power of two, at most 256, whose counts can be told from their noise `e`,
/// ```text
///   2 e sqrt(bins / 8) <= 3/10 rows,      e = sensitivity / sqrt(share)
/// ```
/// None where that is fewer than 16, without numbers, or with more than 100 of them.
pub(crate) fn bins_that_tell(coding: &Coding, schema: &Schema, share: MuSquared, relation: &Relation) -> Option<Map> {
    // What one row moves is the same with few bins and with many.
    let shape = QueryShape::of_schema(Map::number_bins(coding, NUMBER_BINS.0), schema).ok()?;
    let sensitivity = (shape.sensitivity(relation)?.get() as f64).sqrt() / COUNT_STEP as f64;
    let noise = sensitivity / share.mu_up() / expected_rows(schema);
    if shape.coordinates() / NUMBER_BINS.0 > NUMBERS_MAX {
        return None;
    }
    let bins = bins_told(noise, NOISE_MAX, NUMBER_BINS.1);
    (bins >= BINS_MIN).then(|| Map::number_bins(coding, bins))
}
