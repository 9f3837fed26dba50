//! Exact sums of contributions: opaque until noise is added.
//!
//! A [`PartialSum`] can be added to and merged, in any order and any grouping, always with the same result. It has no
//! `Debug`, `Display`, `Clone` or serialisation, and no way to read it: it becomes a [`Release`] in
//! [`crate::session::Session::release`] or it is dropped.

use crate::contribution::{
    CodedLabel, add_contribution, add_label_bin, add_label_square, add_marginals, add_matrix_label, add_number_bins,
    add_party_vector, add_party_votes, add_scored, set_party_minimum,
};
use crate::encoding::{LatticeRow, norm_square, shrink_to_norm};
use crate::minimum::MinimumQuery;
use crate::query::{Map, SumQuery};

/// The exact sum over some of the rows, in 128 bits: one contribution is below `2^45`, so no table that could ever exist
/// overflows it.
#[must_use]
pub struct PartialSum {
    totals: Vec<i128>,
}

impl PartialSum {
    /// The sum over no rows.
    pub fn zero(query: &SumQuery) -> Self {
        Self { totals: vec![0; query.shape().coordinates() as usize] }
    }

    /// Not a sum: a minimum on the lattice of answers, to which noise is added in the same way.
    ///
    /// # Panics
    /// When it does not have the query's coordinates: a mistake of the engine's code.
    pub fn of_minimum(query: &MinimumQuery, answer: Vec<i128>) -> Self {
        assert_eq!(answer.len(), query.shape().coordinates() as usize, "an engine answers the query it was given");
        Self { totals: answer }
    }

    /// Adds one row by the scalar reference. A row longer than the lattice's bound is shortened to it first.
    pub fn add_row(&mut self, query: &SumQuery, row: LatticeRow<'_>, label: CodedLabel) {
        if norm_square(row.features) <= norm_square(&[crate::encoding::LATTICE_NORM_MAX]) {
            add_contribution(query, row, label, &mut self.totals);
        } else {
            let mut features = row.features.to_vec();
            shrink_to_norm([&mut features]);
            add_contribution(query, LatticeRow { features: &features, step: row.step }, label, &mut self.totals);
        }
    }

    /// Adds one row to a query that looks at label and scores alone: [`add_scored`].
    pub fn add_scored(&mut self, query: &SumQuery, dots: &[i64], row_step: f32, label: CodedLabel) {
        add_scored(query, dots, row_step, label, &mut self.totals);
    }

    /// Adds the marginals of one row or the bins of its numbers, from its codes, by the scalar reference.
    pub fn add_codes(&mut self, query: &SumQuery, codes: &[u16], label: CodedLabel) {
        if let Map::NumberBins { .. } = query.shape().map() {
            add_number_bins(query, codes, label, &mut self.totals);
        } else {
            add_marginals(query, codes, label, &mut self.totals);
        }
    }

    /// Adds the private label of row `row` of the query's public matrix: times that row, to its bin, or its square.
    pub fn add_label(&mut self, query: &SumQuery, row: usize, label: CodedLabel) {
        if let Map::LabelsByBin { .. } = query.shape().map() {
            add_label_bin(query, label, &mut self.totals);
        } else if let Map::LabelSquares = query.shape().map() {
            add_label_square(query, label, &mut self.totals);
        } else {
            add_matrix_label(query, row, label, &mut self.totals);
        }
    }

    /// Adds the votes of one party: one a row of the query's public matrix and output, output after output of a row.
    pub fn add_party(&mut self, query: &SumQuery, votes: &[i32]) {
        add_party_votes(query, votes, &mut self.totals);
    }

    /// Adds the weights of one party, shortened to the query's bound.
    pub fn add_party_vector(&mut self, query: &SumQuery, weights: &[i64]) {
        add_party_vector(query, weights, &mut self.totals);
    }

    /// The minimum that all parties' votes determine. The caller answers for its distance from the exact minimum: the
    /// gradient there has at most the norm that [`crate::query::MINIMUM_TOLERANCE`] says, for all votes.
    pub fn set_party_minimum(&mut self, query: &SumQuery, weights: &[i64]) {
        set_party_minimum(query, weights, &mut self.totals);
    }

    /// Adds the totals of one block that a kernel computed, of at most `2^36` rows. The kernel must equal [`add_contribution`] on every row.
    ///
    /// # Panics
    /// When the length is not the query's: a mistake of the kernel's code.
    pub fn add_kernel_totals(&mut self, totals: &[i64]) {
        assert_eq!(self.totals.len(), totals.len(), "a kernel answers the query it was given");
        for (total, more) in self.totals.iter_mut().zip(totals) {
            *total += i128::from(*more);
        }
    }

    /// Joins the sums over two disjoint sets of rows.
    pub fn merge(&mut self, other: Self) {
        for (total, more) in self.totals.iter_mut().zip(other.totals) {
            *total += more;
        }
    }

    /// Adds the noise, one integer a coordinate, and gives up the exact value.
    pub(crate) fn add_noise(self, noise: Vec<i128>) -> Vec<i128> {
        assert_eq!(self.totals.len(), noise.len(), "one draw a coordinate");
        noise.into_iter().zip(self.totals).map(|(noise, total)| noise + total).collect()
    }

    #[cfg(feature = "danger")]
    pub(crate) fn into_totals(self) -> Vec<i128> {
        self.totals
    }

    #[cfg(feature = "danger")]
    pub(crate) fn of_totals(totals: Vec<i128>) -> Self {
        Self { totals }
    }
}

/// A noisy sum: public, and so is everything that is computed from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Release {
    /// Noisy integers, one a coordinate of the query.
    pub integers: Vec<i128>,
    /// What one integer is worth.
    pub step: f64,
    /// Standard deviation of the noise of one coordinate, in the units of [`Self::values`].
    pub noise_standard_deviation: f64,
}

impl Release {
    /// The noisy sum in real units.
    #[must_use]
    pub fn values(&self) -> Vec<f64> {
        self.integers.iter().map(|integer| *integer as f64 * self.step).collect()
    }
}
