//! How much memory a command may take, as a person says it: `1GiB`.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A number of bytes above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemoryCeiling(u64);

/// Not a size.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("a size is a number above 0 and its unit, KiB, MiB, GiB, TiB, kB, MB, GB or TB; for example 512MiB or 1.5GiB")]
pub struct NotASize;

/// Units, the ones that are read first when a size is written.
const UNITS: [(&str, u64); 8] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
];

impl MemoryCeiling {
    /// A ceiling of so many bytes.
    ///
    /// # Errors
    /// [`NotASize`] for zero.
    pub fn of_bytes(bytes: u64) -> Result<Self, NotASize> {
        if bytes == 0 { Err(NotASize) } else { Ok(Self(bytes)) }
    }

    /// Bytes.
    #[must_use]
    pub fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for MemoryCeiling {
    type Err = NotASize;

    /// A decimal number, then a unit, in any case; spaces in between are allowed. A number alone is not taken: nobody means
    /// bytes.
    fn from_str(text: &str) -> Result<Self, NotASize> {
        let text = text.trim();
        let end = text.find(|letter: char| !(letter.is_ascii_digit() || letter == '.')).ok_or(NotASize)?;
        let (number, unit) = (&text[..end], text[end..].trim_start());
        let number: f64 = number.parse().map_err(|_| NotASize)?;
        let (_, size) = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).ok_or(NotASize)?;
        // `as` saturates; no machine has so much.
        Self::of_bytes((number * *size as f64) as u64)
    }
}

impl fmt::Display for MemoryCeiling {
    /// In gibibytes where it is a whole number of them, else rounded up to a mebibyte, and what is less to a kibibyte.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (gibibyte, mebibyte, kibibyte) = (1 << 30, 1 << 20, 1 << 10);
        if self.0.is_multiple_of(gibibyte) {
            return write!(formatter, "{}GiB", self.0 / gibibyte);
        }
        if self.0 < mebibyte {
            return write!(formatter, "{}KiB", self.0.div_ceil(kibibyte));
        }
        write!(formatter, "{}MiB", self.0.div_ceil(mebibyte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_a_number_and_a_unit() {
        let read = |text: &str| text.parse::<MemoryCeiling>().map(MemoryCeiling::bytes);
        assert_eq!(read("1GiB"), Ok(1 << 30));
        assert_eq!(read(" 1.5 gib "), Ok(3 << 29));
        assert_eq!(read("512MiB"), Ok(512 << 20));
        assert_eq!(read("4GB"), Ok(4_000_000_000));
        assert_eq!(read("4kb"), Ok(4000));
        for text in ["", "1", "GiB", "1G", "1 GiB x", "-1GiB", "1e3MiB", "0GiB", "1.2.3GiB", ".MiB", "inf GiB", "1024"]
        {
            assert_eq!(read(text), Err(NotASize), "{text:?}");
        }
    }

    #[test]
    fn sizes_are_written_rounded_up() {
        let written = |bytes| MemoryCeiling::of_bytes(bytes).expect("above zero").to_string();
        assert_eq!(written(2 << 30), "2GiB");
        assert_eq!(written(100 << 20), "100MiB");
        assert_eq!(written((100 << 20) + 1), "101MiB");
        assert_eq!(written(1 << 10), "1KiB");
        assert_eq!(written(1), "1KiB");
    }
}
