//! A question that one organisation asks about labels that another one holds: the list of rows, its canonical name and
//! its answer.
//!
//! The asking side has features and is not trusted. It sends a [`WeightList`]: event ids, and one row of integers for each.
//! The answering side joins the ids to its labels and releases `sum_i label_i · row_i` with noise. Everything here is public
//! to both sides; features are not protected.

use std::collections::HashSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::adjacency::Relation;
use crate::contribution::CodedLabel;
use crate::ledger::PlannedRelease;
use crate::public_matrix::PublicMatrix;
use crate::query::Map;
use crate::schema::TargetKind;
use crate::units::{Delta, Epsilon, NoiseDistribution};

/// Event ids with one row of integers each, in the order of whoever made the list: public, and checked when it is made.
pub struct WeightList {
    ids: Vec<Box<[u8]>>,
    matrix: Arc<PublicMatrix>,
}

/// A list that is refused: the reasons are facts of the list alone.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum WeightListError {
    /// Rows and ids do not belong together.
    #[error("there are {ids} ids for {rows} rows")]
    Length {
        /// Ids.
        ids: usize,
        /// Rows of the matrix.
        rows: usize,
    },
    /// No row at all.
    #[error("there is no row; a list names at least one event")]
    Empty,
    /// A row that belongs to nothing.
    #[error("row {row} has no id")]
    NoId {
        /// Its place, counted from 1.
        row: usize,
    },
    /// One label under several rows would be worth more than its price.
    #[error(
        "row {row} has the id of an earlier row; each event may be listed once: add up its rows before they are sent"
    )]
    Repeated {
        /// The later place, counted from 1.
        row: usize,
    },
}

impl WeightList {
    /// Takes ids and rows; each id may be there once, so that one label moves one row of the sum.
    ///
    /// # Errors
    /// [`WeightListError`] names the first row that is wrong.
    pub fn new(ids: Vec<Box<[u8]>>, matrix: PublicMatrix) -> Result<Self, WeightListError> {
        if ids.len() != matrix.rows() {
            return Err(WeightListError::Length { ids: ids.len(), rows: matrix.rows() });
        }
        if ids.is_empty() {
            return Err(WeightListError::Empty);
        }
        let mut seen: HashSet<&[u8]> = HashSet::with_capacity(ids.len());
        for (row, id) in ids.iter().enumerate() {
            if id.is_empty() {
                return Err(WeightListError::NoId { row: row + 1 });
            }
            if !seen.insert(id) {
                return Err(WeightListError::Repeated { row: row + 1 });
            }
        }
        Ok(Self { ids, matrix: Arc::new(matrix) })
    }

    /// Ids in the order of the rows.
    #[must_use]
    pub fn ids(&self) -> &[Box<[u8]>] {
        &self.ids
    }

    /// The integers.
    #[must_use]
    pub fn matrix(&self) -> &Arc<PublicMatrix> {
        &self.matrix
    }

    /// Whether no sum of these rows times labels of at most `label_max` can reach `2^62`: `rows · max |q| · label_max < 2^62`.
    ///
    /// Sums are kept in 128 bits, so nothing could overflow here; the bound keeps answers within what 64-bit tools read.
    #[must_use]
    pub fn fits_62_bits(&self, label_max: u32) -> bool {
        let largest = self.matrix.values().iter().map(|value| value.unsigned_abs()).max().unwrap_or(0);
        product_fits_62_bits(self.ids.len() as u64, largest, label_max)
    }
}

/// `rows · coordinate_max · label_max < 2^62`.
fn product_fits_62_bits(rows: u64, coordinate_max: u32, label_max: u32) -> bool {
    u128::from(rows) * u128::from(coordinate_max) * u128::from(label_max) < 1 << 62
}

/// Name of a question: SHA-256, as 64 hexadecimal digits, of everything that its answer depends on.
///
/// That is: ids, integers, smallest and largest label, bound on the rows' norm, noise, the unit and its cap, the fingerprint
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
    planned: &PlannedRelease,
) -> String {
    let Map::MatrixProduct { columns, outputs, target: _, label_low, label_high, rows, row_norm_square, eigenvalue: _ } =
        *planned.shape.map()
    else {
        panic!("labels are asked for by matrix products")
    };
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    for text in ["reticent label query 1", label_set, schema, &relation.to_string()] {
        part(text.as_bytes());
    }
    let noise = match planned.noise {
        NoiseDistribution::RoundedGaussian => 0u64,
        NoiseDistribution::DiscreteLaplace => 1,
    };
    for number in [columns.into(), outputs.into(), rows, row_norm_square, noise, planned.noise_scale.get()] {
        part(&number.to_le_bytes());
    }
    for number in [label_low, label_high, unmatched.into()] {
        part(&number.to_le_bytes());
    }
    part(&planned.times.to_le_bytes());
    for (id, row) in list.ids.iter().zip(list.matrix.values().chunks_exact(list.matrix.columns())) {
        part(id);
        row.iter().for_each(|value| part(&value.to_le_bytes()));
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The answer, as it is kept in the label holder's ledger and sent to whoever asked: noisy, and so public.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelRelease {
    /// [`LABEL_RELEASE_FORMAT`].
    pub format: String,
    /// [`LABEL_RELEASE_VERSION`].
    pub version: u32,
    /// What is not protected, for whoever reads the file.
    pub not_protected: String,
    /// Whose labels are protected.
    pub relation: Relation,
    /// Epsilon at [`Self::delta`], as the label holder granted it.
    pub epsilon: Epsilon,
    /// Delta of the claim.
    pub delta: Delta,
    /// Name of the question: [`canonical_name`].
    pub query: String,
    /// Identity of the label holder's ledger.
    pub label_set: String,
    /// Entry of the ledger.
    pub entry: u64,
    /// Fingerprint of the label holder's schema.
    pub schema: String,
    /// The label holder's classes or bounds.
    pub target: TargetKind,
    /// Label of ids that the label holder does not know, and of labels that cannot be used, in code.
    pub unmatched: CodedLabel,
    /// Question and noise, as charged.
    pub planned: PlannedRelease,
    /// Noisy integers, output after output, as decimal text.
    pub integers: Vec<String>,
}

/// [`LabelRelease::format`].
pub const LABEL_RELEASE_FORMAT: &str = "reticent-label-release";
/// [`LabelRelease::version`] that this software writes and reads.
pub const LABEL_RELEASE_VERSION: u32 = 1;

/// A release file that cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LabelReleaseError {
    /// Another kind or version of document.
    #[error("this is not a release of labels of version {LABEL_RELEASE_VERSION}; `reticent walr measure` writes one")]
    Format,
    /// Integers that are missing, too many or no integers.
    #[error("the release contradicts itself: {0}")]
    Inconsistent(&'static str),
    /// It answers another question.
    #[error(
        "the release answers another question: it does not belong to these weights; use the weights that were measured"
    )]
    OtherWeights,
}

impl LabelRelease {
    /// The noisy integers as numbers, after checking that they answer the question of this list.
    ///
    /// # Errors
    /// [`LabelReleaseError`].
    pub fn values_for(&self, list: &WeightList) -> Result<Vec<f64>, LabelReleaseError> {
        if self.format != LABEL_RELEASE_FORMAT || self.version != LABEL_RELEASE_VERSION {
            return Err(LabelReleaseError::Format);
        }
        let Map::MatrixProduct { .. } = self.planned.shape.map() else {
            return Err(LabelReleaseError::Inconsistent("its question is not one about labels"));
        };
        if self.planned.times != 1 {
            return Err(LabelReleaseError::Inconsistent("its question was not answered once"));
        }
        if self.planned.price_up(&self.relation).is_none() {
            return Err(LabelReleaseError::Inconsistent("its question has no finite price under its relation"));
        }
        let name = canonical_name(list, &self.label_set, &self.schema, self.unmatched, &self.relation, &self.planned);
        if name != self.query {
            return Err(LabelReleaseError::OtherWeights);
        }
        if self.integers.len() != self.planned.shape.coordinates() as usize {
            return Err(LabelReleaseError::Inconsistent("it does not have one number for each question"));
        }
        let number = |text: &String| text.parse::<i128>().map(|integer| integer as f64);
        let values = self.integers.iter().map(number).collect::<Result<Vec<f64>, _>>();
        values.map_err(|_| LabelReleaseError::Inconsistent("one of its numbers is not an integer"))
    }

    /// Standard deviation of the noise of one integer.
    #[must_use]
    pub fn noise_standard_deviation(&self) -> f64 {
        self.planned.noise.standard_deviation(self.planned.noise_scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adjacency::{Adjacency, PrivacyUnit};
    use crate::query::{ProductTarget, QueryShape};
    use crate::units::NoiseScale;

    fn list(ids: &[&str], values: &[i32]) -> Result<WeightList, WeightListError> {
        let ids = ids.iter().map(|id| id.as_bytes().into()).collect();
        WeightList::new(ids, PublicMatrix::new(1, values.to_vec()).expect("short rows"))
    }

    fn planned(label_high: i32, row_norm_square: u64, noise_scale: u64, cap: u32) -> PlannedRelease {
        let unit = PrivacyUnit::Column { column: "user".to_owned(), rows_max: cap };
        let map = Map::MatrixProduct {
            columns: 1,
            outputs: 1,
            target: ProductTarget::Class,
            label_low: 0,
            label_high,
            rows: 2,
            row_norm_square,
            eigenvalue: 0,
        };
        PlannedRelease {
            purpose: "labels".to_owned(),
            shape: QueryShape::new(map, unit, 100).expect("small"),
            noise_scale: NoiseScale::new(noise_scale).expect("legal"),
            noise: NoiseDistribution::RoundedGaussian,
            times: 1,
        }
    }

    fn name(list: &WeightList, label_set: &str, schema: &str, unmatched: i16, planned: &PlannedRelease) -> String {
        let relation = Relation { unit: planned.shape.unit().clone(), adjacency: Adjacency::Label };
        canonical_name(list, label_set, schema, unmatched, &relation, planned)
    }

    #[test]
    fn an_id_may_be_listed_once() {
        assert!(list(&["a", "b"], &[1, 2]).is_ok());
        assert_eq!(list(&["a", "b", "a"], &[1, 2, 3]).err(), Some(WeightListError::Repeated { row: 3 }));
        assert_eq!(list(&["a", ""], &[1, 2]).err(), Some(WeightListError::NoId { row: 2 }));
        assert_eq!(list(&["a"], &[1, 2]).err(), Some(WeightListError::Length { ids: 1, rows: 2 }));
        assert_eq!(list(&[], &[]).err(), Some(WeightListError::Empty));
    }

    #[test]
    fn sums_that_could_pass_62_bits_are_noticed() {
        assert!(product_fits_62_bits((1 << 27) - 1, 1 << 20, 1 << 15));
        assert!(!product_fits_62_bits(1 << 27, 1 << 20, 1 << 15));
        assert!(!product_fits_62_bits(u64::MAX, u32::MAX, u32::MAX));
        let of_rows = |rows: u32| {
            let ids = (0..rows).map(|row| row.to_string().into_bytes().into()).collect();
            WeightList::new(ids, PublicMatrix::new(1, vec![1 << 20; rows as usize]).expect("short rows"))
        };
        assert!(of_rows(1024).expect("unique").fits_62_bits(u32::MAX));
        assert!(!of_rows(1025).expect("unique").fits_62_bits(u32::MAX));
    }

    #[test]
    fn a_list_keeps_its_ids_and_integers() {
        let list = list(&["a", "b"], &[7, -9]).expect("unique");
        assert_eq!(list.ids(), [Box::from(*b"a"), Box::from(*b"b")]);
        assert_eq!(**list.matrix(), PublicMatrix::new(1, vec![7, -9]).expect("short rows"));
    }

    fn release(list: &WeightList, planned: PlannedRelease, integers: &[&str]) -> LabelRelease {
        let relation = Relation { unit: planned.shape.unit().clone(), adjacency: Adjacency::Label };
        LabelRelease {
            format: LABEL_RELEASE_FORMAT.to_owned(),
            version: LABEL_RELEASE_VERSION,
            not_protected: String::new(),
            epsilon: Epsilon::new(1.0).expect("legal"),
            delta: Delta::new(1e-6).expect("legal"),
            query: canonical_name(list, "set", "schema", 0, &relation, &planned),
            relation,
            label_set: "set".to_owned(),
            entry: 1,
            schema: "schema".to_owned(),
            target: TargetKind::Bounds { low: 0.0, high: 1.0 },
            unmatched: 0,
            planned,
            integers: integers.iter().map(|integer| (*integer).to_owned()).collect(),
        }
    }

    #[test]
    fn a_release_is_read_for_its_own_weights_alone() {
        let list = list(&["a", "b"], &[3, 4]).expect("unique");
        let released = release(&list, planned(1, 16, 7, 2), &["-12"]);
        assert_eq!(released.values_for(&list), Ok(vec![-12.0]));
        assert!((released.noise_standard_deviation().powi(2) - 49.0 - 1.0 / 12.0).abs() < 1e-12);

        let others = super::tests::list(&["a", "c"], &[3, 4]).expect("unique");
        assert_eq!(released.values_for(&others), Err(LabelReleaseError::OtherWeights));
        let with = |change: &dyn Fn(&mut LabelRelease)| {
            let mut release = released.clone();
            change(&mut release);
            release.values_for(&list).expect_err("refused")
        };
        assert_eq!(with(&|release| release.format.push('x')), LabelReleaseError::Format);
        assert_eq!(with(&|release| release.version += 1), LabelReleaseError::Format);
        assert!(matches!(with(&|release| release.planned.times = 2), LabelReleaseError::Inconsistent(_)));
        assert!(matches!(with(&|release| release.integers.clear()), LabelReleaseError::Inconsistent(_)));
        assert!(matches!(with(&|release| release.integers.push("1".to_owned())), LabelReleaseError::Inconsistent(_)));
        assert!(matches!(with(&|release| release.integers[0].push('.')), LabelReleaseError::Inconsistent(_)));
        let of_table = QueryShape::new(Map::ClassCount { classes: 2 }, released.planned.shape.unit().clone(), 100);
        let of_table = of_table.expect("small");
        assert!(matches!(
            with(&|release| release.planned.shape = of_table.clone()),
            LabelReleaseError::Inconsistent(_)
        ));
    }

    #[test]
    fn every_part_of_a_question_is_in_its_name() {
        let usual = list(&["a", "b"], &[1, 2]).expect("unique");
        let plan = planned(1, 4, 7, 2);
        let reference = name(&usual, "set", "schema", 0, &plan);
        assert_eq!(reference, name(&list(&["a", "b"], &[1, 2]).expect("unique"), "set", "schema", 0, &plan));
        let others = [
            name(&list(&["a", "c"], &[1, 2]).expect("unique"), "set", "schema", 0, &plan),
            name(&list(&["b", "a"], &[1, 2]).expect("unique"), "set", "schema", 0, &plan),
            name(&list(&["a", "b"], &[1, -2]).expect("unique"), "set", "schema", 0, &plan),
            name(&usual, "tes", "schema", 0, &plan),
            name(&usual, "set", "schemb", 0, &plan),
            name(&usual, "sets", "chema", 0, &plan),
            name(&usual, "set", "schema", 1, &plan),
            name(&usual, "set", "schema", 0, &planned(2, 4, 7, 2)),
            name(&usual, "set", "schema", 0, &planned(1, 5, 7, 2)),
            name(&usual, "set", "schema", 0, &planned(1, 4, 8, 2)),
            name(&usual, "set", "schema", 0, &planned(1, 4, 7, 3)),
        ];
        for (place, other) in others.iter().enumerate() {
            assert_ne!(*other, reference, "case {place}");
            assert!(!others[..place].contains(other), "case {place}");
        }
    }
}
