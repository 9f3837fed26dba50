//! The state in which products of matrices leave the vector registers, and the instruction that mends it.
//!
//! The AVX-512 code of the products returns with something in the upper halves of the registers. On many machines each instruction of the
//! older kind (SSE) then takes care to keep that, and the exponentials of the C library are of that kind: they take many times as long until
//! the halves are empty again.

#![allow(unsafe_code)]

/// Empties the upper halves of the vector registers, where the machine has them: values that the program holds are as they were.
#[inline]
pub(crate) fn empty_upper_halves() {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx") {
        // SAFETY: the machine has AVX, as it was asked in the line above, and the instruction reads and writes no memory. The compiler knows
        // that it changes the upper halves, and keeps no value there across it.
        unsafe { std::arch::x86_64::_mm256_zeroupper() }
    }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    #[test]
    fn values_stay_as_they_were() {
        let values: Vec<f64> = (0..1000).map(f64::from).collect();
        let scalar = black_box(0.1f64);
        let expected: f64 = values.iter().map(|value| value * scalar).sum();
        let total: f64 = values
            .iter()
            .map(|value| {
                empty_upper_halves();
                value * scalar
            })
            .sum();
        assert_eq!(total.to_bits(), expected.to_bits());
    }
}
