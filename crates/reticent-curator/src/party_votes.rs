//! Votes of parties on public auxiliary rows: read, checked, and added up as one exact sum.
//!
//! ```text
//!   # reticent votes 1                      one file a party, named <party>.csv
//!   # party: north-clinic
//!   # auxiliary: 64 hexadecimal digits      SHA-256 of the auxiliary file's bytes
//!   row,class                               or: row,<class 1>,<class 2>,...   with a probability in every cell
//!   1,healthy
//! ```
//! A votes file is text that somebody else wrote: nothing in it is run, and no model crosses. A file that is missing, not
//! the party's own, about other rows or malformed is refused by name before anything is paid; the refusal is for whoever holds
//! the files, and no part of a release. Votes are integers from 0 on that count only up to [`VOTE_STEPS`] in all classes of a row together, also
//! where they do not come from a file: one party moves an answer by no more than its share. Sums of votes times rows `reticent_core` cuts again; what is
//! charged for a minimum rests on [`PartyVotes::new`] alone.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use reticent_core::adjacency::PrivacyUnit;
use reticent_core::engine::{Engine, EngineError};
use reticent_core::largest_place::largest_place;
use reticent_core::public_matrix::{MATRIX_NORM_MAX, PublicMatrix};
use reticent_core::query::{MINIMUM_STEPS, MINIMUM_TOLERANCE, Map, PARTY_STEPS, SumQuery, VOTE_STEPS, VoteRule};
use reticent_core::schema::Schema;
use reticent_core::sum::PartialSum;
use reticent_math::soft_label_regression::SoftLabelRegression;
use thiserror::Error;

use crate::running_sum::merged;

mod ballot;
mod roster;

pub use ballot::{Ballot, VoteForm};
pub use roster::{Roster, RosterError, is_party_name};

/// A votes file that is refused. Messages name the party and the line, and quote nothing that the file holds.
#[derive(Debug, Error)]
pub enum VotesError {
    /// There is no file of a party.
    #[error("party {party}: there is no file {}; every party of the list votes, or the list is changed before anybody does", path.display())]
    Missing {
        /// Party.
        party: String,
        /// Where its file should be.
        path: PathBuf,
    },
    /// A folder or a device in its place.
    #[error("party {party}: {} is no ordinary file; votes are a CSV file", path.display())]
    NoFile {
        /// Party.
        party: String,
        /// Where its file should be.
        path: PathBuf,
    },
    /// A file of nobody on the list.
    #[error("{}: no party of the list has this file; a votes file is named after its party, with .csv", path.display())]
    Stranger {
        /// The file.
        path: PathBuf,
    },
    /// The disk failed.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What went wrong.
        source: std::io::Error,
    },
    /// The file is no votes file, or not about this question.
    #[error("party {party}: {}: line {line}: {problem}", path.display())]
    Malformed {
        /// Party.
        party: String,
        /// Its file.
        path: PathBuf,
        /// Line, counted from 1.
        line: usize,
        /// What is wrong, and what belongs there.
        problem: String,
    },
}

/// The votes of all parties: private. No `Debug`, no access outside this crate.
pub struct PartyVotes {
    schema: String,
    unit: PrivacyUnit,
    outputs: usize,
    rows: usize,
    /// One list a party: a vote a row and output, output after output of a row.
    votes: Vec<Vec<u16>>,
}

impl PartyVotes {
    /// Reads `<folder>/<party>.csv` for every party of the roster, and nothing else may be in the folder.
    ///
    /// # Errors
    /// [`VotesError`] names the party whose file is missing or wrong, or the file that is nobody's.
    pub fn read(folder: &Path, roster: &Roster, ballot: &Ballot, schema: &Schema) -> Result<Self, VotesError> {
        let failed = |source| VotesError::Read { path: folder.to_owned(), source };
        let expected: BTreeSet<String> = roster.parties().iter().map(|party| format!("{party}.csv")).collect();
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if !expected.contains(&name) && !name.starts_with('.') {
                return Err(VotesError::Stranger { path: entry.path() });
            }
        }
        let read = |party: &String| {
            let path = folder.join(format!("{party}.csv"));
            if !path.exists() {
                return Err(VotesError::Missing { party: party.clone(), path });
            }
            if !path.is_file() {
                return Err(VotesError::NoFile { party: party.clone(), path });
            }
            ballot.read(party, &path)
        };
        let votes = roster.parties().iter().map(read).collect::<Result<_, _>>()?;
        Ok(Self::new(schema, ballot.outputs(), ballot.rows(), votes))
    }

    /// The same from votes in memory: one list a party, a vote a row and output, output after output of a row. The votes of a row count only
    /// up to [`VOTE_STEPS`] together, from the first output on: what is charged for soft labels rests on it.
    ///
    /// # Panics
    /// Without an output, or when a party does not have one vote a row and output: a mistake in the caller's code.
    #[must_use]
    pub fn new(schema: &Schema, outputs: usize, rows: usize, mut votes: Vec<Vec<u16>>) -> Self {
        for of_party in &mut votes {
            assert_eq!(of_party.len(), rows * outputs, "one vote a row and output");
            for of_row in of_party.chunks_exact_mut(outputs) {
                let mut left = VOTE_STEPS as u16;
                for vote in of_row {
                    *vote = left.min(*vote);
                    left -= *vote;
                }
            }
        }
        let (schema, unit) = (schema.fingerprint(), schema.privacy().unit.clone());
        Self { schema, unit, outputs, rows, votes }
    }

    /// Number of parties: public.
    #[must_use]
    pub fn parties(&self) -> usize {
        self.votes.len()
    }
}

/// A question that votes do not answer: a mistake in a method's code.
#[derive(Debug, Error)]
enum Unanswered {
    #[error("votes of parties answer questions about their own auxiliary rows, classes and parties only")]
    OtherQuestion,
    #[error("the auxiliary rows or the penalty do not make a problem with one minimum")]
    NoMinimum,
}

/// Steps of a party's own fit in [`Map::PartyVectors`]: the same for every party. Any number is private; more is closer.
const VECTOR_STEPS: usize = 60;

fn refused(reason: Unanswered) -> EngineError {
    EngineError(Box::new(reason))
}

impl PartyVotes {
    /// What `add` adds for every party, on all threads.
    fn sum_parties(&self, query: &SumQuery, add: impl Fn(&mut PartialSum, &[u16]) + Sync) -> PartialSum {
        let zero = || PartialSum::zero(query);
        let with = |mut sum: PartialSum, votes: &Vec<u16>| {
            add(&mut sum, votes);
            sum
        };
        self.votes.par_iter().fold(zero, with).reduce(zero, merged)
    }

    /// The regression of votes on the auxiliary rows, with a penalty in its steps.
    fn regression<'f>(
        &self,
        features: &'f [f64],
        columns: u32,
        penalty: u32,
    ) -> Result<SoftLabelRegression<'f>, EngineError> {
        let penalty = f64::from(penalty) / f64::from(PARTY_STEPS);
        SoftLabelRegression::new(features, columns as usize, self.outputs, penalty)
            .map_err(|_| refused(Unanswered::NoMinimum))
    }

    /// Shares of the votes of all parties, a value a row and output.
    fn soft_labels(&self) -> Vec<f64> {
        let whole = f64::from(VOTE_STEPS) * self.votes.len() as f64;
        let mut totals = vec![0u64; self.rows * self.outputs];
        for votes in &self.votes {
            totals.iter_mut().zip(votes).for_each(|(total, vote)| *total += u64::from(*vote));
        }
        totals.into_iter().map(|total| total as f64 / whole).collect()
    }

    /// 1 for the class that most parties prefer, else 0; the first of equals.
    fn majority_labels(&self) -> Vec<f64> {
        let classes = self.outputs.max(2);
        let mut preferred = vec![0u64; self.rows * classes];
        for votes in &self.votes {
            for (row, votes) in votes.chunks_exact(self.outputs).enumerate() {
                let class = match votes {
                    [of_last] => usize::from(2 * i32::from(*of_last) > VOTE_STEPS),
                    of_classes => largest_place(of_classes),
                };
                preferred[row * classes + class] += 1;
            }
        }
        let mut labels = vec![0.0; self.rows * self.outputs];
        for (labels, preferred) in labels.chunks_exact_mut(self.outputs).zip(preferred.chunks_exact(classes)) {
            let class = largest_place(preferred);
            match labels {
                [of_last] => *of_last = class as f64,
                of_classes => of_classes[class] = 1.0,
            }
        }
        labels
    }
}

/// Rows of the matrix as features of norm at most 1.
fn unit_features(matrix: &PublicMatrix) -> Vec<f64> {
    matrix.values().iter().map(|value| f64::from(*value) / f64::from(MATRIX_NORM_MAX)).collect()
}

impl Engine for PartyVotes {
    fn unit(&self) -> &PrivacyUnit {
        &self.unit
    }

    fn schema(&self) -> &str {
        &self.schema
    }

    fn exact_sum(&self, query: &SumQuery) -> Result<PartialSum, EngineError> {
        let other = || refused(Unanswered::OtherQuestion);
        let matrix = query.matrix().filter(|matrix| matrix.rows() == self.rows).ok_or_else(other)?;
        let fits = |outputs: u32| if outputs as usize == self.outputs { Ok(()) } else { Err(other()) };
        match *query.shape().map() {
            Map::MatrixProduct { outputs, .. } => {
                fits(outputs)?;
                if outputs == 1 && query.shape().party_radius().is_none() {
                    return Err(other());
                }
                Ok(self.sum_parties(query, |sum, votes| {
                    let votes: Vec<i32> = votes.iter().map(|vote| i32::from(*vote)).collect();
                    sum.add_party(query, &votes);
                }))
            }
            Map::PartyVectors { columns, outputs, penalty, .. } => {
                fits(outputs)?;
                let features = unit_features(matrix);
                let problem = self.regression(&features, columns, penalty)?;
                Ok(self.sum_parties(query, |sum, votes| {
                    let labels: Vec<f64> = votes.iter().map(|vote| f64::from(*vote) / f64::from(VOTE_STEPS)).collect();
                    let weights = problem.approach(&labels, VECTOR_STEPS);
                    sum.add_party_vector(query, &lattice(&weights, PARTY_STEPS));
                }))
            }
            Map::PartyMinimum { columns, outputs, rule, penalty, parties } => {
                fits(outputs)?;
                if parties != self.votes.len() as u64 {
                    return Err(other());
                }
                let labels = match rule {
                    VoteRule::Majority => self.majority_labels(),
                    VoteRule::Soft => self.soft_labels(),
                };
                let features = unit_features(matrix);
                let problem = self.regression(&features, columns, penalty)?;
                // Half the tolerance: the other half is for rounding. The sum of n terms of norm at most 2, over n, is off
                // by less than (n + 100) 2^-52 a coordinate, with n <= 2^20.
                let weights = problem.minimise(&labels, 0.5 / f64::from(MINIMUM_TOLERANCE));
                let mut sum = PartialSum::zero(query);
                sum.set_party_minimum(query, &lattice(&weights, MINIMUM_STEPS));
                Ok(sum)
            }
            Map::ClassCount { .. }
            | Map::TargetSum
            | Map::TargetBins { .. }
            | Map::LabelsByBin { .. }
            | Map::LabelBins
            | Map::LabelSquares
            | Map::Marginals { .. }
            | Map::NumberBins { .. }
            | Map::Gradient { .. }
            | Map::ClippedGradient { .. }
            | Map::SoftmaxGradient { .. }
            | Map::BoundedSoftmaxGradient { .. }
            | Map::Gram { .. }
            | Map::Minimum(_)
            | Map::CorrectCount { .. }
            | Map::ExcessHits { .. }
            | Map::ConfidenceSteps { .. }
            | Map::ResidualSteps { .. }
            | Map::LogLoss { .. }
            | Map::ScoreHistogram { .. }
            | Map::SquaredError => Err(other()),
        }
    }
}

/// Weights rounded to the lattice.
fn lattice(weights: &[f64], steps: u32) -> Vec<i64> {
    weights.iter().map(|weight| (weight * f64::from(steps)).round() as i64).collect()
}

#[cfg(test)]
mod tests;
