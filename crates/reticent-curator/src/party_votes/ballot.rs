//! What is voted on, and the file that a party votes in: written, blank, and read.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::str::Lines;

use reticent_core::query::{VOTE_STEPS, outputs};
use reticent_core::record::class_finder;
use reticent_core::schema::Class;

use super::VotesError;

/// What is voted on: public, and the same for all parties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ballot {
    classes: Vec<Class>,
    rows: usize,
    auxiliary: String,
}

/// How a party votes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VoteForm {
    /// One class a row.
    Class,
    /// A probability for every class.
    Probabilities,
}

impl Ballot {
    /// `classes` as in the schema, `rows` of the auxiliary file, and its
    /// [`file_fingerprint`](crate::file_fingerprint::file_fingerprint).
    #[must_use]
    pub fn new(classes: &[Class], rows: usize, auxiliary: String) -> Self {
        Self { classes: classes.to_vec(), rows, auxiliary }
    }

    /// Integers a row: 1 for two classes (the vote for the last), else one a class.
    #[must_use]
    pub fn outputs(&self) -> usize {
        outputs(self.classes.len() as u32)
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
    pub(super) fn bytes_max(&self) -> u64 {
        let names: usize = self.classes.iter().map(|class| 2 * class.name.len() + 3).sum();
        let of_row = 32 + names.max(32 * self.classes.len());
        (1024 + names + self.rows.saturating_mul(of_row)) as u64
    }

    /// Reads the votes of one party: integers in `0..=VOTE_STEPS`, output after output of a row.
    pub(super) fn read(&self, party: &str, path: &Path) -> Result<Vec<u16>, VotesError> {
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
    pub(super) fn parse(&self, party: &str, text: &str) -> Result<Vec<u16>, (usize, String)> {
        let mut lines = text.strip_prefix('\u{feff}').unwrap_or(text).lines();
        let columns = self.parse_header(party, &mut lines)?;
        let class_of = class_finder(&self.classes);
        let mut votes = Vec::with_capacity(self.rows * self.outputs());
        for row in 1..=self.rows {
            let shares = self
                .parse_line(&columns, &class_of, row, lines.next())
                .map_err(|problem| (row + HEADER_LINES, problem))?;
            let voted = if self.outputs() == 1 { &shares[1..] } else { &shares[..] };
            // Rounding down keeps the sum of a row within VOTE_STEPS.
            votes.extend(voted.iter().map(|share| (share * f64::from(VOTE_STEPS)).floor() as u16));
        }
        if lines.any(|line| !line.trim().is_empty()) {
            return Err((self.rows + HEADER_LINES + 1, format!("there are only {} rows to vote on", self.rows)));
        }
        Ok(votes)
    }

    /// Checks what the file is, whose, and about which rows; returns its columns.
    fn parse_header(&self, party: &str, lines: &mut Lines<'_>) -> Result<Columns, (usize, String)> {
        let preamble = [
            (FIRST_LINE.to_owned(), "this is no votes file of version 1"),
            (format!("{PARTY}{party}"), "this is not the file of this party"),
            (format!("{AUXILIARY}{}", self.auxiliary), "these votes are about another auxiliary file"),
        ];
        for (line, (expected, problem)) in (1..).zip(preamble) {
            if lines.next().map(str::trim_end) != Some(expected.trim_end()) {
                return Err((line, format!("{problem}: `{expected}` belongs here")));
            }
        }
        let refused = |problem: String| (HEADER_LINES, problem);
        let header = lines.next().and_then(fields);
        let header = header.ok_or_else(|| refused("the names of the columns belong here".to_owned()))?;
        self.columns(&header).ok_or_else(|| {
            let names: Vec<&str> = self.classes.iter().map(|class| class.name.as_str()).collect();
            let names = names.join(", ");
            refused(format!("the columns are `row,class`, or `row` and a column for each of the classes {names}"))
        })
    }

    /// The shares of the classes in the vote on a row, or what is wrong with its line.
    fn parse_line(
        &self,
        columns: &Columns,
        class_of: &impl Fn(&str) -> Option<usize>,
        row: usize,
        line: Option<&str>,
    ) -> Result<Vec<f64>, String> {
        let Some(line) = line.filter(|line| !line.trim().is_empty()) else {
            return Err(format!("the vote on row {row} is missing; there are {} rows", self.rows));
        };
        let cells = fields(line).ok_or("a quotation is not closed")?;
        if cells.len() != columns.count() {
            return Err(format!("{} values belong here, as in the header", columns.count()));
        }
        if cells[0].trim() != row.to_string() {
            return Err(format!("the vote on row {row} belongs here: every row once, in order"));
        }
        let mut shares = vec![0.0; self.classes.len()];
        match columns {
            Columns::Class => {
                shares[class_of(&cells[1]).ok_or("the vote is none of the schema's classes")?] = 1.0;
            }
            Columns::Probabilities(places) => {
                for (cell, class) in cells[1..].iter().zip(places) {
                    let share: f64 = cell.trim().parse().unwrap_or(f64::NAN);
                    // NaN is in no range.
                    if !(0.0..=1.0).contains(&share) {
                        return Err("a probability is a number between 0 and 1".to_owned());
                    }
                    shares[*class] = share;
                }
                let total: f64 = shares.iter().sum();
                if (total - 1.0).abs() > SUM_TOLERANCE {
                    return Err("the probabilities of a row add up to 1".to_owned());
                }
                shares.iter_mut().for_each(|share| *share /= total);
            }
        }
        Ok(shares)
    }

    fn columns(&self, header: &[String]) -> Option<Columns> {
        let (row, names) = header.split_first()?;
        if row.trim() != "row" {
            return None;
        }
        if let [only] = names {
            return (only.trim() == "class").then_some(Columns::Class);
        }
        let place = |name: &String| self.classes.iter().position(|class| class.name == name.trim_ascii());
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

impl Columns {
    /// With that of the rows' numbers.
    fn count(&self) -> usize {
        match self {
            Self::Class => 2,
            Self::Probabilities(places) => 1 + places.len(),
        }
    }
}

/// The fields of one line of CSV; `None` when a quotation is not closed.
pub(super) fn fields(line: &str) -> Option<Vec<String>> {
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

const FIRST_LINE: &str = "# reticent votes 1";
const PARTY: &str = "# party: ";
const AUXILIARY: &str = "# auxiliary: ";
/// Lines before the first vote.
const HEADER_LINES: usize = 4;
/// How far the probabilities of a row may be from adding up to 1.
const SUM_TOLERANCE: f64 = 1e-3;
