//! The fast form of one pass over lattice rows: equal to `reticent_core::contribution`, integer for integer.
//!
//! ```text
//!   32 rows ─▶ dots (i32, exact) ─▶ slopes (core's function, row by row of the lanes) ─▶ 32-bit lanes ─▶ 64-bit totals
//! ```
//! Every pass is compiled for each set of [`Instructions`]; all give the same integers, because all but the slope is integer
//! arithmetic without overflow, and the slope is single IEEE-754 operations in a fixed order.

mod chosen;
mod clip;
mod column_order;
mod decimal;
mod decimal_codes;
mod encode;
mod gradient;
mod instructions;
mod lanes;
mod marginals;
mod minimum;
mod number_codes;
mod products;
mod scores;
mod slopes;
mod softmax;
#[cfg(target_arch = "x86_64")]
mod tile_products;
#[cfg(target_arch = "x86_64")]
mod tile_unit;

use reticent_core::contribution::CodedLabel;
#[cfg(doc)]
use reticent_core::contribution::UNUSABLE_LABEL;
use reticent_core::encoding::Encoding;
use reticent_core::pass_weights::PassWeights;

pub use instructions::Instructions;

use crate::lattice::CompactBlock;
use clip::ClipPass;
pub use column_order::ColumnOrder;
pub(crate) use decimal::Decimal;
pub(crate) use decimal_codes::DecimalFields;
use decimal_codes::DecimalPass;
use encode::EncodePass;
pub use encode::LatticeRowsMut;
use gradient::GradientPass;
pub use gradient::GradientRule;
pub use lanes::Coordinate;
use marginals::MarginalPass;
pub use marginals::MarginalPlaces;
use minimum::RowPass;
pub(crate) use minimum::{ExactWeights, MinimumPass, float_dot};
pub(crate) use number_codes::NumberMaps;
use number_codes::NumberPass;
use products::ProductPass;
use scores::ScorePass;
use softmax::SoftmaxPass;
pub use softmax::SoftmaxSlopes;

/// Rows between two flushes of the 32-bit accumulators into 64 bits.
///
/// One product of a slope and a coordinate is at most `2048 · 32767` in magnitude, and `32 · 2048 · 32767 < 2^31`;
/// 33 of them could pass it. The bound is public: it holds for every row that the lattice admits.
pub const FLUSH_ROWS: usize = 32;

/// Adds `slope · row` of every row to `totals`: dot product, slope and accumulation while the row is in cache.
///
/// Rows whose label is not 0 or 1 add nothing.
///
/// # Panics
/// When the parts of the block or the bounds of slopes are not of the same rows, or totals and weights do not have its
/// columns.
pub fn add_gradient<T: Coordinate>(
    instructions: Instructions,
    rule: GradientRule<'_>,
    weights: &PassWeights,
    block: &CompactBlock<'_, T>,
    totals: &mut [i64],
) {
    block.assert_whole();
    let columns = block.layout.columns();
    assert_eq!((weights.weights().len(), totals.len()), (columns, columns), "one place a column");
    assert!(rule.largest.is_none_or(|largest| largest.len() == block.rows()), "one bound a row");
    instructions.gradient(&GradientPass { rule, weights, block: *block }, totals);
}

/// Finds the largest slope of each row whose product with the row is no longer than `clip`:
/// [`reticent_core::contribution::largest_slope`].
///
/// # Panics
/// When the parts of the block are not of the same rows, or there is not one place a row.
pub fn find_largest_slopes<T: Coordinate>(
    instructions: Instructions,
    clip: u32,
    block: &CompactBlock<'_, T>,
    largest: &mut [i16],
) {
    block.assert_whole();
    assert_eq!(largest.len(), block.rows(), "one place a row");
    instructions.clip(&ClipPass { clip, block: *block }, largest);
}

/// Adds slopes times row to `totals`, class after class, with one place a column each: see [`add_gradient`].
///
/// # Panics
/// When the parts of the block are not of the same rows, or totals and weights do not have its columns once a class.
pub fn add_softmax_gradient<T: Coordinate>(
    instructions: Instructions,
    slopes: SoftmaxSlopes,
    weights: &PassWeights,
    block: &CompactBlock<'_, T>,
    totals: &mut [i64],
) {
    block.assert_whole();
    let columns = block.layout.columns();
    assert!(totals.len().is_multiple_of(columns), "one place a column and class");
    assert_eq!(weights.weights().len(), totals.len(), "one weight a place");
    let classes = totals.len() / columns;
    instructions.softmax(&SoftmaxPass { classes, slopes, weights, block: *block }, totals);
}

/// Finds the exact product of each row with the weights of each score, row after row: [`reticent_core::contribution::dot`].
///
/// # Panics
/// When the parts of the block are not of the same rows, weights are not of whole scores, or there is not one place a row and
/// score.
pub fn find_score_products(
    instructions: Instructions,
    weights: &[i16],
    block: &CompactBlock<'_>,
    products: &mut [i32],
) {
    block.assert_whole();
    let columns = block.layout.columns();
    assert!(weights.len() >= columns && weights.len().is_multiple_of(columns), "one weight a column and score");
    assert_eq!(products.len(), block.rows() * (weights.len() / columns), "one place a row and score");
    instructions.scores(&ScorePass { weights, block: *block }, products);
}

/// Adds the upper triangle of `row rowᵀ` and `label · row` of every row to 64-bit totals, without multipliers.
///
/// `labels` has one in `-32767..=32767` a row; rows with [`UNUSABLE_LABEL`] add nothing. `products` has the packed triangle,
/// then the products with the label, then the label's square. At most `2^30` a product: `2^33` rows fit.
///
/// # Panics
/// When the features are not of whole rows, one a label, or the products are not as many.
pub fn add_products(
    instructions: Instructions,
    columns: usize,
    features: &[i16],
    labels: &[i16],
    products: &mut [i64],
) {
    assert_eq!(features.len(), columns * labels.len(), "one row a label");
    assert_eq!(products.len(), columns * (columns + 1) / 2 + columns + 1, "one place a product");
    instructions.products(&ProductPass { columns, features, labels }, products);
}

/// Adds class, categories and moments of every row to 64-bit totals. Rows without a usable label add nothing.
///
/// # Panics
/// When the codes are not of whole rows, one a label, or the totals are not as many as the places.
pub fn add_marginals(
    instructions: Instructions,
    places: &MarginalPlaces,
    codes: &[u16],
    labels: &[CodedLabel],
    totals: &mut [i64],
) {
    assert_eq!(codes.len(), places.codes() * labels.len(), "one row a label");
    assert_eq!(totals.len(), places.totals(), "one total a place");
    instructions.marginals(&MarginalPass { places, codes, labels }, totals);
}

/// Adds slope times row of every row to totals of 128 bits, output after output: one step of the search for a minimum.
///
/// # Panics
/// When the totals are not of whole outputs, or the rows are more than [`BLOCK_ROWS_MAX`](crate::lattice::BLOCK_ROWS_MAX).
pub(crate) fn add_minimum<W, S>(instructions: Instructions, pass: &MinimumPass<'_, W, S>, totals: &mut [i128])
where
    for<'a> MinimumPass<'a, W, S>: RowPass,
{
    pass.assert_fits(totals);
    instructions.minimum(pass, totals);
}

/// Puts rows of codes on the lattice: [`Encoding::encode_compact`], bit for bit in all instructions.
///
/// # Panics
/// When the parts are not of the same rows, or an own step is missing or too many.
pub fn encode_rows(instructions: Instructions, encoding: &Encoding, codes: &[u16], into: LatticeRowsMut<'_>) {
    let layout = encoding.layout();
    let rows = into.packed.len() / layout.packed().len();
    assert_eq!(into.packed.len(), rows * layout.packed().len(), "whole rows");
    assert_eq!(codes.len(), rows * encoding.coding().codes(), "one code a slot");
    let chosen = rows * layout.chosen();
    assert_eq!((into.chosen_columns.len(), into.chosen.len()), (chosen, chosen), "one place a chosen coordinate");
    let own_steps = if encoding.common_step().is_some() { 0 } else { rows };
    assert_eq!(into.own_steps.len(), own_steps, "one step a row, or none");
    instructions.encode(&EncodePass { encoding, codes }, into);
}

/// Finds the codes of the decimals of a row, field by field in the text of a block. Says whether some fields are no short
/// decimals: [`DecimalFields::odd_slots`], whose codes are not found.
///
/// # Panics
/// When there is not one code a place of the maps.
pub(crate) fn code_decimals(
    instructions: Instructions,
    maps: &NumberMaps,
    bytes: &[u8],
    fields: &mut DecimalFields,
    codes: &mut [u16],
) -> bool {
    assert_eq!(codes.len(), maps.places(), "one code a place");
    instructions.decimals(DecimalPass { maps, bytes, fields }, codes)
}

/// Finds the codes of numbers of one slot, row after row: [`NumberMaps::code`], with `missing` for what is not a number.
///
/// # Panics
/// When there is not one code a number.
pub(crate) fn code_numbers(
    instructions: Instructions,
    maps: &NumberMaps,
    slot: usize,
    missing: f64,
    numbers: &[f64],
    codes: &mut [u16],
) {
    assert_eq!(codes.len(), numbers.len(), "one code a number");
    instructions.numbers(&NumberPass { maps, slot, missing, numbers }, codes);
}
