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
//! the files, and no part of a release. Whatever passes is an integer between 0 and [`VOTE_STEPS`] a row and class, and
//! `reticent_core` clamps it again when it adds it up: one party moves the sum by no more than its share.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use reticent_core::adjacency::PrivacyUnit;
use reticent_core::engine::{Engine, EngineError};
use reticent_core::public_matrix::{MATRIX_NORM_MAX, PublicMatrix};
use reticent_core::query::{MINIMUM_STEPS, MINIMUM_TOLERANCE, Map, PARTY_STEPS, SumQuery, VOTE_STEPS, VoteRule};
use reticent_core::schema::Class;
use reticent_core::sum::PartialSum;
use reticent_math::soft_label_regression::SoftLabelRegression;
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::running_sum::merged;

const FIRST_LINE: &str = "# reticent votes 1";
const PARTY: &str = "# party: ";
const AUXILIARY: &str = "# auxiliary: ";
/// How far the probabilities of a row may be from adding up to 1.
const SUM_TOLERANCE: f64 = 1e-3;

/// What is voted on: public, and the same for all parties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ballot {
    classes: Vec<Class>,
    rows: usize,
    auxiliary: String,
}

/// The names of all parties, each once: public, and fixed before any vote is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roster(Vec<String>);

/// How a party votes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VoteForm {
    /// One class a row.
    Class,
    /// A probability for every class.
    Probabilities,
}

/// A roster that cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RosterError {
    /// Not a name that a file can have.
    #[error(
        "line {line} of the list of parties is not a name: use 1 to 64 letters, digits, `.`, `_` or `-`, and no `.` in front"
    )]
    Name {
        /// Line, counted from 1.
        line: usize,
    },
    /// The same name twice.
    #[error("line {line} of the list of parties repeats `{party}`: every party votes once")]
    Duplicate {
        /// Line, counted from 1.
        line: usize,
        /// The name.
        party: String,
    },
    /// No names.
    #[error("the list of parties is empty: write one name a line")]
    Empty,
}

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

impl Roster {
    /// Reads one name a line; blank lines and lines that begin with `#` are skipped.
    ///
    /// # Errors
    /// [`RosterError`] when a name cannot be used or comes twice.
    pub fn parse(text: &str) -> Result<Self, RosterError> {
        let mut seen = BTreeSet::new();
        let mut parties = Vec::new();
        for (line, name) in text.lines().enumerate() {
            let (line, name) = (line + 1, name.trim());
            if name.is_empty() || name.starts_with('#') {
                continue;
            }
            if !is_party_name(name) {
                return Err(RosterError::Name { line });
            }
            // Files of the two would be one file where names ignore capitals.
            if !seen.insert(name.to_ascii_lowercase()) {
                return Err(RosterError::Duplicate { line, party: name.to_owned() });
            }
            parties.push(name.to_owned());
        }
        if parties.is_empty() { Err(RosterError::Empty) } else { Ok(Self(parties)) }
    }

    /// The names, in the order of the list.
    #[must_use]
    pub fn parties(&self) -> &[String] {
        &self.0
    }
}

/// Whether a party can have this name: it becomes the name of a file.
#[must_use]
pub fn is_party_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=64).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(allowed)
}

/// SHA-256 of a file's bytes: what `sha256sum` prints.
///
/// # Errors
/// When the file cannot be read.
pub fn file_fingerprint(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let (mut digest, mut block) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        let read = file.read(&mut block)?;
        if read == 0 {
            return Ok(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect());
        }
        digest.update(&block[..read]);
    }
}

impl Ballot {
    /// `classes` as in the schema, `rows` of the auxiliary file, and its [`file_fingerprint`].
    #[must_use]
    pub fn new(classes: &[Class], rows: usize, auxiliary: String) -> Self {
        Self { classes: classes.to_vec(), rows, auxiliary }
    }

    /// Integers a row: 1 for two classes (the vote for the last), else one a class.
    #[must_use]
    pub fn outputs(&self) -> usize {
        if self.classes.len() == 2 { 1 } else { self.classes.len() }
    }

    /// Number of rows voted on.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The text of a party's votes file. `probabilities` has one value a row and class, row after row.
    ///
    /// # Panics
    /// When there is not one probability a row and class: a mistake in the caller's code.
    #[must_use]
    pub fn write(&self, party: &str, form: VoteForm, probabilities: &[f64]) -> String {
        let classes = self.classes.len();
        assert_eq!(probabilities.len(), self.rows * classes, "one probability a row and class");
        let mut text = format!("{FIRST_LINE}\n{PARTY}{party}\n{AUXILIARY}{}\nrow", self.auxiliary);
        let names: Vec<String> = self.classes.iter().map(|class| quoted(&class.name)).collect();
        match form {
            VoteForm::Class => text.push_str(",class"),
            VoteForm::Probabilities => names.iter().for_each(|name| {
                text.push(',');
                text.push_str(name);
            }),
        }
        text.push('\n');
        for (row, probabilities) in probabilities.chunks_exact(classes).enumerate() {
            text.push_str(&(row + 1).to_string());
            match form {
                VoteForm::Class => {
                    let mut best = 0;
                    for (class, probability) in probabilities.iter().enumerate() {
                        if *probability > probabilities[best] {
                            best = class;
                        }
                    }
                    text.push(',');
                    text.push_str(&names[best]);
                }
                VoteForm::Probabilities => {
                    probabilities.iter().for_each(|probability| text.push_str(&format!(",{probability:.6}")));
                }
            }
            text.push('\n');
        }
        text
    }

    /// A votes file with every class still to be filled in, for a party that votes with its own tools.
    #[must_use]
    pub fn blank(&self, party: &str) -> String {
        let mut text = format!("{FIRST_LINE}\n{PARTY}{party}\n{AUXILIARY}{}\nrow,class\n", self.auxiliary);
        (1..=self.rows).for_each(|row| text.push_str(&format!("{row},\n")));
        text
    }

    /// Most bytes that an honest file can have.
    fn bytes_max(&self) -> u64 {
        let names: usize = self.classes.iter().map(|class| 2 * class.name.len() + 3).sum();
        let of_row = 32 + names.max(32 * self.classes.len());
        (1024 + names + self.rows.saturating_mul(of_row)) as u64
    }

    /// Reads the votes of one party: integers in `0..=VOTE_STEPS`, output after output of a row.
    fn read(&self, party: &str, path: &Path) -> Result<Vec<u16>, VotesError> {
        let failed = |source| VotesError::Read { path: path.to_owned(), source };
        let malformed = |line: usize, problem: &str| {
            let (party, path, problem) = (party.to_owned(), path.to_owned(), problem.to_owned());
            VotesError::Malformed { party, path, line, problem }
        };
        let file = File::open(path).map_err(failed)?;
        let mut bytes = Vec::new();
        let limit = self.bytes_max();
        file.take(limit + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > limit {
            return Err(malformed(1, "the file is far longer than votes on these rows can be"));
        }
        let Ok(text) = String::from_utf8(bytes) else {
            return Err(malformed(1, "the file is not UTF-8 text"));
        };
        self.parse(party, &text).map_err(|(line, problem)| malformed(line, &problem))
    }

    /// The same from text; an error is a line, counted from 1, and what is wrong with it.
    fn parse(&self, party: &str, text: &str) -> Result<Vec<u16>, (usize, String)> {
        let mut lines = text.strip_prefix('\u{feff}').unwrap_or(text).lines();
        let mut preamble = |line: usize, expected: String, problem: &str| match lines.next() {
            Some(found) if found.trim_end() == expected.trim_end() => Ok(()),
            Some(_) | None => Err((line, format!("{problem}: `{expected}` belongs here"))),
        };
        preamble(1, FIRST_LINE.to_owned(), "this is no votes file of version 1")?;
        preamble(2, format!("{PARTY}{party}"), "this is not the file of this party")?;
        preamble(3, format!("{AUXILIARY}{}", self.auxiliary), "these votes are about another auxiliary file")?;

        let header = lines.next().and_then(fields).ok_or((4, "the names of the columns belong here".to_owned()))?;
        let columns = self.columns(&header).ok_or_else(|| {
            let names: Vec<&str> = self.classes.iter().map(|class| class.name.as_str()).collect();
            (
                4,
                format!(
                    "the columns are `row,class`, or `row` and a column for each of the classes {}",
                    names.join(", ")
                ),
            )
        })?;
        let mut votes = Vec::with_capacity(self.rows * self.outputs());
        let mut shares = vec![0.0; self.classes.len()];
        for row in 1..=self.rows {
            let line = row + 4;
            let refused = |problem: String| (line, problem);
            let Some(text) = lines.next().filter(|text| !text.trim().is_empty()) else {
                return Err(refused(format!("the vote on row {row} is missing; there are {} rows", self.rows)));
            };
            let cells = fields(text).ok_or_else(|| refused("a quotation is not closed".to_owned()))?;
            if cells.len() != header.len() {
                return Err(refused(format!("{} values belong here, as in the header", header.len())));
            }
            if cells[0].trim() != row.to_string() {
                return Err(refused(format!("the vote on row {row} belongs here: every row once, in order")));
            }
            match &columns {
                Columns::Class => {
                    let chosen = cells[1].trim();
                    let is_chosen =
                        |class: &Class| class.name == chosen || class.spellings.iter().any(|one| one == chosen);
                    let Some(class) = self.classes.iter().position(is_chosen) else {
                        return Err(refused("the vote is none of the schema's classes".to_owned()));
                    };
                    shares.fill(0.0);
                    shares[class] = 1.0;
                }
                Columns::Probabilities(places) => {
                    for (cell, class) in cells[1..].iter().zip(places) {
                        let share: f64 = cell.trim().parse().unwrap_or(f64::NAN);
                        // NaN is in no range.
                        if !(0.0..=1.0).contains(&share) {
                            return Err(refused("a probability is a number between 0 and 1".to_owned()));
                        }
                        shares[*class] = share;
                    }
                    let total: f64 = shares.iter().sum();
                    if (total - 1.0).abs() > SUM_TOLERANCE {
                        return Err(refused("the probabilities of a row add up to 1".to_owned()));
                    }
                    shares.iter_mut().for_each(|share| *share /= total);
                }
            }
            let voted = if self.outputs() == 1 { &shares[1..] } else { &shares[..] };
            // Rounding down keeps the sum of a row within VOTE_STEPS.
            votes.extend(voted.iter().map(|share| (share * f64::from(VOTE_STEPS)).floor() as u16));
        }
        if lines.any(|line| !line.trim().is_empty()) {
            return Err((self.rows + 5, format!("there are only {} rows to vote on", self.rows)));
        }
        Ok(votes)
    }

    fn columns(&self, header: &[String]) -> Option<Columns> {
        let (row, names) = header.split_first()?;
        if row.trim() != "row" {
            return None;
        }
        if let [only] = names {
            return (only.trim() == "class").then_some(Columns::Class);
        }
        let place = |name: &String| self.classes.iter().position(|class| class.name == name.trim());
        let places: Vec<usize> = names.iter().map(place).collect::<Option<_>>()?;
        let distinct: BTreeSet<usize> = places.iter().copied().collect();
        (distinct.len() == names.len() && names.len() == self.classes.len()).then_some(Columns::Probabilities(places))
    }
}

enum Columns {
    Class,
    /// Class of each column after the first.
    Probabilities(Vec<usize>),
}

/// The fields of one line of CSV; `None` when a quotation is not closed.
fn fields(line: &str) -> Option<Vec<String>> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut characters = line.trim_end_matches('\r').chars().peekable();
    while let Some(character) = characters.next() {
        let field = fields.last_mut().expect("never empty");
        match (quoted, character) {
            (true, '"') if characters.peek() == Some(&'"') => field.extend(characters.next()),
            (true, '"') => quoted = false,
            (false, '"') if field.is_empty() => quoted = true,
            (false, ',') => fields.push(String::new()),
            (true | false, other) => field.push(other),
        }
    }
    (!quoted).then_some(fields)
}

fn quoted(name: &str) -> String {
    if name.contains([',', '"', '#']) { format!("\"{}\"", name.replace('"', "\"\"")) } else { name.to_owned() }
}

/// The votes of all parties: private. No `Debug`, no access outside this crate.
pub struct PartyVotes {
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
    pub fn read(folder: &Path, roster: &Roster, ballot: &Ballot, unit: PrivacyUnit) -> Result<Self, VotesError> {
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
            if !path.is_file() {
                return Err(VotesError::Missing { party: party.clone(), path });
            }
            ballot.read(party, &path)
        };
        let votes = roster.parties().iter().map(read).collect::<Result<_, _>>()?;
        Ok(Self { unit, outputs: ballot.outputs(), rows: ballot.rows, votes })
    }

    /// The same from votes in memory: one list a party, a vote a row and output, output after output of a row. Larger votes
    /// than [`VOTE_STEPS`] count as that.
    ///
    /// # Panics
    /// When a party does not have one vote a row and output: a mistake in the caller's code.
    #[must_use]
    pub fn new(unit: PrivacyUnit, outputs: usize, rows: usize, mut votes: Vec<Vec<u16>>) -> Self {
        for of_party in &mut votes {
            assert_eq!(of_party.len(), rows * outputs, "one vote a row and output");
            of_party.iter_mut().for_each(|vote| *vote = (*vote).min(VOTE_STEPS as u16));
        }
        Self { unit, outputs, rows, votes }
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

impl PartyVotes {
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
                    of_classes => first_largest(of_classes),
                };
                preferred[row * classes + class] += 1;
            }
        }
        let mut labels = vec![0.0; self.rows * self.outputs];
        for (labels, preferred) in labels.chunks_exact_mut(self.outputs).zip(preferred.chunks_exact(classes)) {
            let class = first_largest(preferred);
            match labels {
                [of_last] => *of_last = class as f64,
                of_classes => of_classes[class] = 1.0,
            }
        }
        labels
    }
}

fn first_largest<T: PartialOrd>(values: &[T]) -> usize {
    let mut best = 0;
    for (place, value) in values.iter().enumerate() {
        if *value > values[best] {
            best = place;
        }
    }
    best
}

/// Rows of the matrix as features of norm at most 1.
fn unit_features(matrix: &PublicMatrix) -> Vec<f64> {
    matrix.values().iter().map(|value| f64::from(*value) / f64::from(MATRIX_NORM_MAX)).collect()
}

impl Engine for PartyVotes {
    fn unit(&self) -> &PrivacyUnit {
        &self.unit
    }

    fn exact_sum(&self, query: &SumQuery) -> Result<PartialSum, EngineError> {
        let refused = |reason: Unanswered| EngineError(Box::new(reason));
        let other = || refused(Unanswered::OtherQuestion);
        let matrix = query.matrix().filter(|matrix| matrix.rows() == self.rows).ok_or_else(other)?;
        let fits = |outputs: u32| if outputs as usize == self.outputs { Ok(()) } else { Err(other()) };
        match *query.shape().map() {
            Map::MatrixProduct { outputs, .. } => {
                fits(outputs)?;
                let add = |mut sum: PartialSum, votes: &Vec<u16>| {
                    let votes: Vec<i32> = votes.iter().map(|vote| i32::from(*vote)).collect();
                    sum.add_party(query, &votes);
                    sum
                };
                Ok(self
                    .votes
                    .par_iter()
                    .fold(|| PartialSum::zero(query), add)
                    .reduce(|| PartialSum::zero(query), merged))
            }
            Map::PartyVectors { columns, outputs, penalty, .. } => {
                fits(outputs)?;
                let (features, penalty) = (unit_features(matrix), f64::from(penalty) / f64::from(PARTY_STEPS));
                let problem = SoftLabelRegression::new(&features, columns as usize, self.outputs, penalty)
                    .map_err(|_| refused(Unanswered::NoMinimum))?;
                let add = |mut sum: PartialSum, votes: &Vec<u16>| {
                    let labels: Vec<f64> = votes.iter().map(|vote| f64::from(*vote) / f64::from(VOTE_STEPS)).collect();
                    let weights = problem.approach(&labels, VECTOR_STEPS);
                    sum.add_party_vector(query, &lattice(&weights, PARTY_STEPS));
                    sum
                };
                Ok(self
                    .votes
                    .par_iter()
                    .fold(|| PartialSum::zero(query), add)
                    .reduce(|| PartialSum::zero(query), merged))
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
                let (features, penalty) = (unit_features(matrix), f64::from(penalty) / f64::from(PARTY_STEPS));
                let problem = SoftLabelRegression::new(&features, columns as usize, self.outputs, penalty)
                    .map_err(|_| refused(Unanswered::NoMinimum))?;
                // Half the tolerance: the other half is for rounding. The sum of n terms of norm at most 2, over n, is off
                // by less than (n + 100) 2^-52 a coordinate, with n <= 2^20.
                let weights = problem.minimise(&labels, 0.5 / f64::from(MINIMUM_TOLERANCE));
                let mut sum = PartialSum::zero(query);
                sum.set_party_minimum(query, &lattice(&weights, MINIMUM_STEPS));
                Ok(sum)
            }
            Map::ClassCount { .. }
            | Map::Marginals { .. }
            | Map::Gradient { .. }
            | Map::ClippedGradient { .. }
            | Map::SoftmaxGradient { .. }
            | Map::BoundedSoftmaxGradient { .. }
            | Map::Gram { .. }
            | Map::Minimum(_)
            | Map::CorrectCount { .. }
            | Map::ExcessHits { .. }
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
