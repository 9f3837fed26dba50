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
use crate::adjacency::{PrivacyUnit, Relation};
use crate::contribution::CodedLabel;
use crate::hex::hex;
use crate::ledger::PlannedRelease;
use crate::query::Map;
use crate::units::{MuSquared, NoiseDistribution};

/// `mu²` is shared out in so many parts.
const PARTS: NonZeroU32 = NonZeroU32::new(400).expect("not zero");
/// Parts for each of [`number_questions`] in any case, and on top of these where the signal is weak.
const NUMBER_PARTS: [(f64, f64); 3] = [(15.0, 46.0), (15.0, 26.0), (10.0, 10.0)];
/// The signal at which half of the parts for a weak one are given: where labels lie in their bounds is then worth more than what little can be
/// learnt of slopes.
const WEAK_SIGNAL: f64 = 300.0;
/// Bytes of a question's parts that are hashed together.
const SHORT_PARTS: usize = 4096;

/// What is asked of labels that are numbers before the product: in what part of their bounds they lie, by so many bins over these and then by
/// so many in the part that the first say; and the sum of their squares in the part that is found, which is where the product reads them.
#[must_use]
pub fn number_questions(bins: [u32; 2]) -> [(&'static str, Map); 3] {
    let [over_bounds, in_part] = bins.map(|bins| Map::LabelsByBin { bins });
    [
        ("labels by bin over their bounds", over_bounds),
        ("labels by bin", in_part),
        ("sum of squared labels", Map::LabelSquares),
    ]
}

/// Shares of a budget: for each of [`number_questions`] about so many rows, and what they leave for the product.
/// ```text
///   parts in 400:  15 + 46 w, 15 + 26 w, 10 + 10 w,     w = 1 / (1 + (n mu / (300 m))²),  m: rows of a unit
/// ```
#[must_use]
pub fn number_shares(budget: MuSquared, rows: f64, unit: &PrivacyUnit) -> ([MuSquared; 3], MuSquared) {
    let signal = rows * budget.mu_up() / f64::from(unit.rows_max());
    let weakness = 1.0 / (1.0 + (signal / WEAK_SIGNAL).powi(2));
    let shares =
        NUMBER_PARTS.map(|(always, weak)| budget.fraction_down((always + weakness * weak).round() as u32, PARTS));
    let left = shares.iter().try_fold(budget, |left, share| left.checked_sub(*share));
    (shares, left.expect("shares are less than the whole"))
}

/// What an answer takes: one product, and before it [`number_questions`] for labels that are numbers.
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
    // Millions of parts are a few bytes long: they are hashed many at a time.
    let (mut hash, mut short) = (Sha256::new(), Vec::with_capacity(SHORT_PARTS));
    let mut part = |bytes: &[u8]| {
        short.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        if short.len() + bytes.len() > SHORT_PARTS {
            hash.update(&short);
            short.clear();
            hash.update(bytes);
        } else {
            short.extend_from_slice(bytes);
        }
    };
    for text in ["reticent label query 3", label_set, schema, &relation.to_string()] {
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
    for planned in of_numbers {
        part(&u64::from(planned.shape.coordinates()).to_le_bytes());
        part(&planned.noise_scale.get().to_le_bytes());
    }
    for (id, row) in list.ids().iter().zip(list.matrix().values().chunks_exact(list.matrix().columns())) {
        part(id);
        row.iter().for_each(|value| part(&value.to_le_bytes()));
    }
    hash.update(&short);
    hex(&hash.finalize())
}

#[cfg(test)]
mod tests;
