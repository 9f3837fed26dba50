//! The tile unit of some x86 processors (AMX): products of matrices of bytes, exact in 32 bits.
//!
//! The Linux kernel lets a program use it that has asked; a [`TileUnit`] is the proof that this one has. The instructions are
//! written out, as the language has no stable names for them.

#![allow(unsafe_code)]

use std::arch::asm;
use std::arch::x86_64::__cpuid_count;
use std::sync::LazyLock;

use super::products::PANEL;

/// Rows of the table that a tile holds.
pub(super) const TILE_ROWS: usize = 64;

/// A tile: 16 lines of 16 words, one a column of the panel, each of the bytes of four rows; or the other way round.
pub(super) type Words = [[u32; PANEL]; TILE_ROWS / 4];

/// High and low bytes of the coordinates of one panel: `256 high + low`, `high` with a sign, `low` without.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct SplitTile {
    pub(super) high: Words,
    pub(super) low: Words,
}

impl SplitTile {
    pub(super) const ZERO: Self = Self { high: [[0; PANEL]; PANEL], low: [[0; PANEL]; PANEL] };
}

/// Sums of products of two panels: high by high, high by low, low by high and low by low.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct SplitSums {
    pub(super) parts: [[[i32; PANEL]; PANEL]; 4],
}

impl SplitSums {
    pub(super) const ZERO: Self = Self { parts: [[[0; PANEL]; PANEL]; 4] };
}

/// Rows whose products surely fit the sums, whatever the bytes: `2^15 · 255² < 2^31`, and the other parts are smaller.
pub(super) const SUM_ROWS: usize = 1 << 15;

/// A processor with a tile unit, which this process may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TileUnit(());

/// What `ldtilecfg` reads: palette 1, and eight tiles of 16 lines of 64 bytes.
#[repr(C, align(64))]
struct Shape([u8; 64]);

static SHAPE: Shape = {
    let mut bytes = [0; 64];
    bytes[0] = 1;
    let mut tile = 0;
    while tile < 8 {
        bytes[16 + 2 * tile] = 64;
        bytes[48 + tile] = 16;
        tile += 1;
    }
    Shape(bytes)
};

impl TileUnit {
    /// The unit, if the processor has one and the kernel admits this process to it. Asks once.
    pub(super) fn found() -> Option<Self> {
        static FOUND: LazyLock<bool> = LazyLock::new(|| !cfg!(miri) && processor_has_one() && is_admitted());
        FOUND.then_some(Self(()))
    }

    /// Adds products of panels. `others` are the tiles of one panel, whose lines are fours of rows; `ones` have for each place of
    /// `sums` as many tiles of another, whose lines are columns, at distances of `stride` tiles.
    ///
    /// # Panics
    /// When there are too few of `ones`, or more of `others` than the stride.
    pub(super) fn add_products(self, ones: &[SplitTile], stride: usize, others: &[SplitTile], sums: &mut [SplitSums]) {
        assert!(others.len() <= stride && ones.len() == sums.len() * stride, "whole panels");
        if others.is_empty() || sums.is_empty() {
            return;
        }
        // SAFETY: the unit is there and admitted, as this value exists. A step of the inner loop reads 2048 bytes of both: two tiles of
        // 16 lines, 64 bytes apart. It is done `others.len()` times, at least once, for each of `sums`, at least one, of which
        // four such tiles, 4096 bytes, are read and written; after each, `ones` goes on by what is missing to the stride, so that
        // it ends where the slice does. All tile registers are left as they were found, unconfigured.
        unsafe {
            asm!(
                "ldtilecfg [{shape}]",
                "2:",
                "tileloadd tmm0, [{sums} + {line}]",
                "tileloadd tmm1, [{sums} + {line} + 1024]",
                "tileloadd tmm2, [{sums} + {line} + 2048]",
                "tileloadd tmm3, [{sums} + {line} + 3072]",
                "mov {other}, {others}",
                "mov {left}, {count}",
                "3:",
                "tileloadd tmm4, [{ones} + {line}]",
                "tileloadd tmm6, [{other} + {line}]",
                "tdpbssd tmm0, tmm4, tmm6",
                "tileloadd tmm7, [{other} + {line} + 1024]",
                "tdpbsud tmm1, tmm4, tmm7",
                "tileloadd tmm5, [{ones} + {line} + 1024]",
                "tdpbusd tmm2, tmm5, tmm6",
                "tdpbuud tmm3, tmm5, tmm7",
                "add {ones}, 2048",
                "add {other}, 2048",
                "dec {left}",
                "jnz 3b",
                "tilestored [{sums} + {line}], tmm0",
                "tilestored [{sums} + {line} + 1024], tmm1",
                "tilestored [{sums} + {line} + 2048], tmm2",
                "tilestored [{sums} + {line} + 3072], tmm3",
                "add {sums}, 4096",
                "add {ones}, {skipped}",
                "dec {pairs}",
                "jnz 2b",
                "tilerelease",
                shape = in(reg) &raw const SHAPE,
                line = in(reg) 64usize,
                ones = inout(reg) ones.as_ptr() => _,
                others = in(reg) others.as_ptr(),
                other = out(reg) _,
                sums = inout(reg) sums.as_mut_ptr() => _,
                pairs = inout(reg) sums.len() => _,
                count = in(reg) others.len(),
                left = out(reg) _,
                skipped = in(reg) (stride - others.len()) * size_of::<SplitTile>(),
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack),
            );
        }
    }
}

/// Bits 24 (AMX-TILE) and 25 (AMX-INT8) of what the processor says in leaf 7.
fn processor_has_one() -> bool {
    let leaves = __cpuid_count(0, 0).eax;
    leaves >= 7 && __cpuid_count(7, 0).edx >> 24 & 3 == 3
}

/// Elsewhere nobody is asked.
#[cfg(not(target_os = "linux"))]
fn is_admitted() -> bool {
    false
}

/// Asks the kernel for the state of the tile registers, which is not every process's.
#[cfg(target_os = "linux")]
fn is_admitted() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
    const XFEATURE_XTILEDATA: libc::c_long = 18;
    // SAFETY: the call takes two numbers and changes what the kernel keeps of this process; it touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 }
}
