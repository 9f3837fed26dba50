//! Which of several scores or votes is the largest, and which of equal ones: one rule for all that predicts and counts.

/// The place of the largest value: of equal ones the first.
///
/// A value that cannot be compared, such as NaN, is above none, and none is above it: the result is 0 where the first is one, and no
/// other such value is chosen. 0 where there is no value at all.
#[must_use]
pub fn largest_place<T: PartialOrd>(values: &[T]) -> usize {
    let mut place = 0;
    for (other, value) in values.iter().enumerate() {
        if *value > values[place] {
            place = other;
        }
    }
    place
}

#[cfg(test)]
mod tests {
    use super::largest_place;

    #[test]
    fn the_first_of_the_largest_is_chosen() {
        assert_eq!(largest_place(&[1, 3, 2, 3]), 1);
        assert_eq!(largest_place(&[-0.0, 0.0]), 0);
        assert_eq!(largest_place(&[1.0, f64::NAN, 2.0, f64::NAN]), 2);
        assert_eq!(largest_place(&[f64::NAN, 2.0]), 0);
        assert_eq!(largest_place::<f32>(&[]), 0);
    }
}
