//! Prices of privacy: what a `mu` is worth in (epsilon, delta), what a pure epsilon costs in `mu`.
//!
//! The ledger adds `mu²` in integers ([`crate::units::MuSquared`]); floats appear only at the edge, here. Every number is
//! rounded outward: a charge up, a budget down, named by the suffix `_up` or `_down`. Nothing here sees data.
//!
//! The guarantees hold in every relation (adjacency) in which the `mu` or the epsilon itself was proved; mus of
//! different relations are never composed with each other.

pub mod gdp;
pub mod normal;
pub mod objective;
pub mod pure;

/// The two neighbouring floats between which `is_low` turns from true to false, by halving the range of bit patterns.
///
/// `0 <= low < high`, taken to be on their sides without a test. At most 64 steps whatever the range, which no bracket
/// of a Newton step could promise from 1e-300 to 1e300. If rounding makes `is_low` waver, each returned float still
/// answered (or was taken) as its side says.
fn boundary(low: f64, high: f64, is_low: impl Fn(f64) -> bool) -> (f64, f64) {
    // Non-negative floats are ordered as their bit patterns are.
    let (mut low, mut high) = (low.to_bits(), high.to_bits());
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if is_low(f64::from_bits(middle)) {
            low = middle;
        } else {
            high = middle;
        }
    }
    (f64::from_bits(low), f64::from_bits(high))
}

#[cfg(test)]
mod tests {
    use super::boundary;

    #[test]
    fn boundary_returns_neighbours_around_the_change() {
        for threshold in [f64::from_bits(3), 1e-300, 0.1, 1.0, 12345.678, 1e299] {
            let (low, high) = boundary(0.0, 1e300, |value| value < threshold);
            assert_eq!(high.to_bits(), threshold.to_bits());
            assert_eq!(low.to_bits() + 1, threshold.to_bits());
        }
        let (low, high) = boundary(1.0, 2.0, |_| false);
        assert_eq!(
            (low.to_bits() + 1, high.to_bits()),
            (high.to_bits(), 1f64.next_up().to_bits()),
            "taken, not tested"
        );
    }
}
