//! Into how many bins numbers are counted before they are scaled, where that can tell anything.

use reticent_core::adjacency::Relation;
use reticent_core::coding::Coding;
use reticent_core::query::{COUNT_STEP, Map, NUMBER_BINS, QueryShape};
use reticent_core::schema::Schema;
use reticent_core::units::MuSquared;

/// Fewest bins that are worth asking for.
const BINS_MIN: u32 = 16;
/// Counts of all numbers together, at most: so many, that sums of them stay small beside a table.
const COUNTS_MAX: u64 = 1 << 18;
/// A run of bins is believed when its noise is at most this share of the rows: half of what [`reticent_math::range_search`] asks.
const NOISE_MAX: f64 = 0.15;
/// The run that must be found: an eighth of the bounds. Narrower ones are found, too, and wider ones may be missed.
const RUNS: f64 = 8.0;

/// The bins to ask for with `share`: the largest power of two, at most 256, whose counts can be told from their noise `e`,
/// ```text
///   2 e sqrt(bins / 8) <= 3/10 rows,      e = sensitivity / sqrt(share)
/// ```
/// None without numbers, or where that is fewer than 16.
pub(super) fn bins_that_tell(coding: &Coding, schema: &Schema, share: MuSquared, relation: &Relation) -> Option<Map> {
    // What one row moves is the same with few bins and with many.
    let shape = QueryShape::of_schema(Map::number_bins(coding, NUMBER_BINS.0), schema).ok()?;
    let sensitivity = (shape.sensitivity(relation)?.get() as f64).sqrt() / COUNT_STEP as f64;
    let noise = sensitivity / share.mu_up() / super::expected_rows(schema);
    let told = RUNS * (NOISE_MAX / noise).powi(2);
    let numbers = u64::from(shape.coordinates() / NUMBER_BINS.0);
    let mut bins = NUMBER_BINS.1;
    while f64::from(bins) > told || u64::from(bins) * numbers > COUNTS_MAX {
        bins /= 2;
        if bins < BINS_MIN {
            return None;
        }
    }
    Some(Map::number_bins(coding, bins))
}
