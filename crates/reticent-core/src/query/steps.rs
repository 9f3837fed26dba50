//! The steps in which rows, slopes, losses, votes and weights are added up.

#[cfg(doc)]
use super::Map;
use crate::encoding::LATTICE_NORM_MAX;
use crate::schema::ROWS_MAX_LIMIT;

/// Steps of a slope: a derivative of the loss in `[-1, 1]` becomes an integer in `[-2048, 2048]`.
///
/// 11 bits, because 32 products with coordinates up to 32767 then fit an i32.
pub const SLOPE_MAX: i32 = 2048;

/// `2048 · 32767`: the largest norm of a slope times a lattice row.
pub const GRADIENT_NORM_MAX: u32 = SLOPE_MAX as u32 * LATTICE_NORM_MAX as u32;

const _: () = assert!(ROWS_MAX_LIMIT as u128 * (GRADIENT_NORM_MAX as u128) < 1 << 63, "the longest sum fits 64 bits");

/// Steps that one counted row adds: counts are kept on a fine lattice so that the noise scale can be fine too.
pub const COUNT_STEP: i64 = 1 << 20;

/// Steps of one unit of log loss.
pub const LOG_LOSS_STEP: i64 = 1 << 20;

/// A row's log loss is capped here, in nats, when it is added up for a private evaluation: 4 for two classes, and for more of them by as
/// many whole nats more as a guess among all of them loses more.
#[must_use]
pub fn log_loss_cap(classes: u32) -> u32 {
    let more = (f64::from(classes.max(2)) / 2.0).ln().ceil();
    4 + more as u32
}

/// Steps of a whole vote: a party's votes on one auxiliary row add up to at most this.
pub const VOTE_STEPS: i32 = 1 << 12;

/// Steps of one unit of weight in [`Map::PartyVectors`], and of one unit of penalty.
pub const PARTY_STEPS: u32 = 1 << 20;

/// Steps of one unit of weight in [`Map::PartyMinimum`].
pub const MINIMUM_STEPS: u32 = 1 << 24;

/// The gradient of the mean loss at a [`Map::PartyMinimum`] has at most the norm `1 / MINIMUM_TOLERANCE`, rounding included.
pub const MINIMUM_TOLERANCE: u32 = 1 << 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cap_of_the_log_loss_grows_with_the_classes() {
        assert_eq!([2, 3, 5, 6, 10, 21, 1000].map(log_loss_cap), [4, 5, 5, 6, 6, 7, 11]);
    }
}
