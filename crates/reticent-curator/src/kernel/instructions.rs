//! Which instructions the machine has, found when the program runs: with `tile_unit.rs` the only place of this crate with `unsafe`.
//!
//! A kernel is compiled once for each set. Code compiled for instructions that the machine lacks must never run: that, and
//! nothing else, is what the `unsafe` blocks of `Instructions` assert. An [`Instructions`] is the proof: its field is private,
//! and the only functions that make one have asked the machine before.

#![allow(unsafe_code)]

use super::clip::{self, ClipPass};
use super::decimal_codes::{self, DecimalPass};
use super::encode::{self, EncodePass, LatticeRowsMut};
use super::gradient::{self, GradientPass};
use super::lanes::Coordinate;
use super::marginals::{self, MarginalPass};
use super::minimum::{self, RowPass};
use super::number_codes::{self, NumberPass};
use super::products::{self, ProductPass};
use super::scores::{self, ScorePass};
use super::softmax::{self, SoftmaxPass};
#[cfg(target_arch = "x86_64")]
use super::{tile_products, tile_unit::TileUnit};

/// A set of instructions that this machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instructions(Set);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    /// What the compiler may assume of every machine of the target.
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Some processors with these have a tile unit, too.
    #[cfg(target_arch = "x86_64")]
    Avx512(Option<TileUnit>),
}

impl Instructions {
    /// The portable set, which every machine has.
    pub const PORTABLE: Self = Self(Set::Portable);

    /// All sets that this machine has, the fastest last.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let mut available = vec![Self::PORTABLE];
        #[cfg(target_arch = "x86_64")]
        {
            available.extend(Self::avx2());
            available.extend(Self::avx512());
            available.extend(Self::amx());
        }
        available
    }

    /// The fastest set that this machine has.
    #[must_use]
    pub fn best() -> Self {
        // The standard library asks the machine once and remembers.
        #[cfg(target_arch = "x86_64")]
        if let Some(found) = Self::amx().or_else(Self::avx512).or_else(Self::avx2) {
            return found;
        }
        Self::PORTABLE
    }

    /// Its name, for reports of speed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Set::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Set::Avx512(None) => "avx512",
            #[cfg(target_arch = "x86_64")]
            Set::Avx512(Some(_)) => "amx",
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn avx2() -> Option<Self> {
        std::arch::is_x86_feature_detected!("avx2").then_some(Self(Set::Avx2))
    }

    #[cfg(target_arch = "x86_64")]
    fn avx512() -> Option<Self> {
        // The same list as in the attributes of the functions called below.
        let found = std::arch::is_x86_feature_detected!("avx512f")
            && std::arch::is_x86_feature_detected!("avx512bw")
            && std::arch::is_x86_feature_detected!("avx512dq")
            && std::arch::is_x86_feature_detected!("avx512vl")
            && std::arch::is_x86_feature_detected!("avx512vnni");
        found.then_some(Self(Set::Avx512(None)))
    }

    #[cfg(target_arch = "x86_64")]
    fn amx() -> Option<Self> {
        Self::avx512().and(TileUnit::found()).map(|unit| Self(Set::Avx512(Some(unit))))
    }

    pub(super) fn decimals(self, pass: DecimalPass<'_>, codes: &mut [u16]) -> bool {
        match self.0 {
            Set::Portable => decimal_codes::portable(pass, codes),
            // SAFETY: as in `gradient`.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { decimal_codes::avx2(pass, codes) },
            // SAFETY: as in `gradient`.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512(_) => unsafe { decimal_codes::avx512(pass, codes) },
        }
    }

    pub(super) fn numbers(self, pass: &NumberPass<'_>, codes: &mut [u16]) {
        match self.0 {
            Set::Portable => number_codes::portable(pass, codes),
            // SAFETY: as in `gradient`.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { number_codes::avx2(pass, codes) },
            // SAFETY: as in `gradient`.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512(_) => unsafe { number_codes::avx512(pass, codes) },
        }
    }

    pub(super) fn encode(self, pass: &EncodePass<'_>, into: LatticeRowsMut<'_>) {
        match self.0 {
            Set::Portable => encode::portable(pass, into),
            // SAFETY: as in `gradient`.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { encode::avx2(pass, into) },
            // SAFETY: as in `gradient`.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512(_) => unsafe { encode::avx512(pass, into) },
        }
    }

    pub(super) fn gradient<T: Coordinate>(self, pass: &GradientPass<'_, T>, totals: &mut [i64]) {
        match self.0 {
            Set::Portable => gradient::portable(pass, totals),
            // SAFETY: the function asks for AVX2 alone, and this value exists only where `avx2` found it.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { gradient::avx2(pass, totals) },
            // SAFETY: the function asks for the features that `avx512` lists, and this value exists only where it found them.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512(_) => unsafe { gradient::avx512(pass, totals) },
        }
    }

    pub(super) fn clip<T: Coordinate>(self, pass: &ClipPass<'_, T>, largest: &mut [i16]) {
        match self.0 {
            Set::Portable => clip::portable(pass, largest),
            // SAFETY: as in `gradient`.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { clip::avx2(pass, largest) },
            // SAFETY: as in `gradient`.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512(_) => unsafe { clip::avx512(pass, largest) },
        }
    }

    pub(super) fn softmax<T: Coordinate>(self, pass: &SoftmaxPass<'_, T>, totals: &mut [i64]) {
        match self.0 {
            Set::Portable => softmax::portable(pass, totals),
            // SAFETY: as in `gradient`.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { softmax::avx2(pass, totals) },
            // SAFETY: as in `gradient`.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512(_) => unsafe { softmax::avx512(pass, totals) },
        }
    }

    pub(super) fn scores(self, pass: &ScorePass<'_>, products: &mut [i32]) {
        match self.0 {
            Set::Portable => scores::portable(pass, products),
            // SAFETY: as in `gradient`.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { scores::avx2(pass, products) },
            // SAFETY: as in `gradient`.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512(_) => unsafe { scores::avx512(pass, products) },
        }
    }

    pub(super) fn products(self, pass: &ProductPass<'_>, products: &mut [i64]) {
        match self.0 {
            Set::Portable => products::portable(pass, products),
            // SAFETY: as in `gradient`.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { products::avx2(pass, products) },
            // SAFETY: as in `gradient`.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512(None) => unsafe { products::avx512(pass, products) },
            // SAFETY: as in `gradient`.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512(Some(unit)) => unsafe { tile_products::tile_unit(unit, pass, products) },
        }
    }

    pub(super) fn minimum(self, pass: &impl RowPass, totals: &mut [i128]) {
        match self.0 {
            Set::Portable => minimum::portable(pass, totals),
            // SAFETY: as in `gradient`.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { minimum::avx2(pass, totals) },
            // SAFETY: as in `gradient`.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512(_) => unsafe { minimum::avx512(pass, totals) },
        }
    }

    pub(super) fn marginals(self, pass: &MarginalPass<'_>, totals: &mut [i64]) {
        match self.0 {
            Set::Portable => marginals::portable(pass, totals),
            // SAFETY: as in `gradient`.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { marginals::avx2(pass, totals) },
            // SAFETY: as in `gradient`.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512(_) => unsafe { marginals::avx512(pass, totals) },
        }
    }
}
