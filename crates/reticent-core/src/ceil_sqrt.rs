//! The square root of an integer, rounded up: lengths from their squares, never too short.

/// The smallest integer whose square is at least `square`.
pub(crate) fn ceil_sqrt(square: u128) -> u128 {
    let root = square.isqrt();
    root + u128::from(root * root < square)
}

#[cfg(test)]
mod tests {
    use super::ceil_sqrt;

    #[test]
    fn a_root_is_rounded_up() {
        let roots = [0, 1, 2, 3, 4, 5, 8, 9, 10, 1 << 100, (1 << 100) + 1, (1 << 100) - 1].map(ceil_sqrt);
        assert_eq!(roots, [0, 1, 2, 2, 2, 3, 3, 3, 4, 1 << 50, (1 << 50) + 1, 1 << 50]);
        assert_eq!(ceil_sqrt(u128::MAX), 1 << 64);
    }
}
