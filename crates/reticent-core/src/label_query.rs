//! A question that one organisation asks about labels that another one holds: the list of rows, its canonical name and
//! its answer.
//!
//! The asking side has features and is not trusted. It sends a [`WeightList`]: event ids, and one row of integers for each.
//! The answering side joins the ids to its labels and releases `sum_i label_i · row_i` with noise. Everything here is public
//! to both sides; features are not protected.

mod event_ids;
mod release;
mod weight_list;

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use self::event_ids::EventIds;
pub use self::release::{
    LABEL_RELEASE_FORMAT, LABEL_RELEASE_VERSION, LabelRelease, LabelReleaseError, NOT_PROTECTED, ReleasedNumbers,
    UnmatchedLabel,
};
pub use self::weight_list::{WeightList, WeightListError};
use crate::adjacency::Relation;
use crate::contribution::CodedLabel;
use crate::hex::hex;
use crate::ledger::PlannedRelease;
use crate::query::Map;
use crate::units::{MuSquared, NoiseDistribution};

/// Share of `mu²` for each of [`NUMBER_QUESTIONS`]: 1 part in 20.
const NUMBER_QUESTION_SHARE: NonZeroU32 = NonZeroU32::new(20).expect("not zero");

/// What is asked of labels that are numbers before the product: in what part of their bounds they lie, which is where all that follows
/// reads them, and the sum of their squares there.
pub const NUMBER_QUESTIONS: [(&str, Map); 2] =
    [("labels by bin", Map::LabelBins), ("sum of squared labels", Map::LabelSquares)];

/// Parts of a budget: for each of [`NUMBER_QUESTIONS`], and what they leave for the product.
#[must_use]
pub fn number_shares(budget: MuSquared) -> (MuSquared, MuSquared) {
    let share = budget.share_down(NUMBER_QUESTION_SHARE);
    let left = NUMBER_QUESTIONS.iter().try_fold(budget, |left, _| left.checked_sub(share));
    (share, left.expect("shares are less than the whole"))
}

/// What an answer takes: one product, and before it [`NUMBER_QUESTIONS`] for labels that are numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedAnswer {
    /// None for classes.
    pub of_numbers: Vec<PlannedRelease>,
    /// Labels times the rows of the list ([`Map::MatrixProduct`]), with what is left of `mu²`.
    pub product: PlannedRelease,
}

impl PlannedAnswer {
    /// The releases in the order in which they are asked for.
    #[must_use]
    pub fn releases(&self) -> Vec<PlannedRelease> {
        self.of_numbers.iter().chain([&self.product]).cloned().collect()
    }

    /// Price of all of it under a relation; `None` where there is none.
    #[must_use]
    pub fn price_up(&self, relation: &Relation) -> Option<MuSquared> {
        let mut releases = self.of_numbers.iter().chain([&self.product]);
        releases.try_fold(MuSquared::ZERO, |total, planned| total.checked_add(planned.price_up(relation)?))
    }
}

/// Name of a question: SHA-256, as 64 hexadecimal digits, of everything that its answer depends on.
///
/// That is: ids, integers, smallest and largest label, bound on the rows' norm, noise of all answers, the unit and its cap, the fingerprint
/// of the label side's schema, the label of unmatched ids, and `label_set`, the identity of the ledger that all versions of
/// the labels are charged to. Every list and text is preceded by its length, so different questions differ in what is hashed.
/// Only equal questions have equal names: an answer that is kept under the name may be given again without a charge.
///
/// # Panics
/// When the planned release is no matrix product.
#[must_use]
pub fn canonical_name(
    list: &WeightList,
    label_set: &str,
    schema: &str,
    unmatched: CodedLabel,
    relation: &Relation,
    planned: &PlannedAnswer,
) -> String {
    let PlannedAnswer { of_numbers, product } = planned;
    let Map::MatrixProduct { columns, outputs, target: _, label_low, label_high, rows, row_norm_square, eigenvalue: _ } =
        *product.shape.map()
    else {
        panic!("labels are asked for by matrix products")
    };
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    for text in ["reticent label query 2", label_set, schema, &relation.to_string()] {
        part(text.as_bytes());
    }
    let noise = match product.noise {
        NoiseDistribution::RoundedGaussian => 0u64,
        NoiseDistribution::DiscreteLaplace => 1,
    };
    for number in [columns.into(), outputs.into(), rows, row_norm_square, noise, product.noise_scale.get()] {
        part(&number.to_le_bytes());
    }
    for number in [label_low, label_high, unmatched.into()] {
        part(&number.to_le_bytes());
    }
    part(&product.times.to_le_bytes());
    part(&(of_numbers.len() as u64).to_le_bytes());
    of_numbers.iter().for_each(|planned| part(&planned.noise_scale.get().to_le_bytes()));
    for (id, row) in list.ids().iter().zip(list.matrix().values().chunks_exact(list.matrix().columns())) {
        part(id);
        row.iter().for_each(|value| part(&value.to_le_bytes()));
    }
    hex(&hash.finalize())
}

#[cfg(test)]
mod tests;
