//! Neighbouring synthetic votes: one party votes one way or the other.

use reticent_core::coding::Coding;
use reticent_core::query::VOTE_STEPS;
use reticent_core::record::Cell;
use reticent_core::schema::Schema;
use reticent_curator::party_votes::PartyVotes;
use reticent_fit::method::outputs;
use reticent_fit::party::Auxiliary;
use reticent_fit::prepared_fit::PreparedFit;
use reticent_fit::raw_columns::RawColumns;
use reticent_fit::unit_rows::UnitRows;

use super::tables::{TWO_CLASSES, small_schema};
use super::trial::{Neighbour, Trial};

/// A whole vote.
const WHOLE: u16 = VOTE_STEPS as u16;
/// Auxiliary rows that are made up.
const ROWS: u32 = 64;
/// Most columns along which a party's votes are tried.
const COLUMNS_MAX: usize = 16;

/// A schema of two numbers, a category and two classes, and public rows that have a spread in every column.
pub(super) fn small_question() -> (Schema, Auxiliary) {
    let schema = small_schema("adjacency = \"party\"", TWO_CLASSES);
    let coding = Coding::of(&schema);
    let mut columns = RawColumns::new(&coding);
    let mut rows = UnitRows::new(&schema);
    for row in 0..ROWS {
        let (a, b) = (f64::from(row % 8) / 7.0, f64::from(row / 8) / 7.0);
        columns.set(&[Cell::Number(a), Cell::Number(b), Cell::Category(1 + row / 3 % 2)], None);
        rows.add(&columns);
    }
    let auxiliary = Auxiliary::new(&schema, rows, "made up".to_owned()).expect("enough rows");
    (schema, auxiliary)
}

/// Pairs to try: one party votes for a class where a column is above its mean and for another below, or the other way round;
/// the intercept is above everywhere. Of the other parties half vote for the first class and half for the last, or all alike.
pub(super) fn trials<'a>(
    schema: &'a Schema,
    auxiliary: &'a Auxiliary,
    others: usize,
    prepared: &'a PreparedFit,
) -> Vec<Trial<'a>> {
    // Places in `[first, last]`, by turns.
    let surroundings: &[(&str, [usize; 2])] = &[
        ("half vote for the first class and half for the last", [0, 1]),
        ("all vote for the first class", [0, 0]),
        ("all vote for the last class", [1, 1]),
    ];
    // Alone, there are no others to differ.
    let surroundings = if others == 0 { &surroundings[..1] } else { surroundings };
    let names = auxiliary.encoding().coding().column_names();
    let mut trials = Vec::new();
    for (others_vote, by_turns) in surroundings {
        for (column, column_name) in names.iter().enumerate().take(COLUMNS_MAX) {
            let neighbour = move |is_turned: bool| -> Neighbour {
                let own = votes(schema, auxiliary, &|row| (row[column] > 0.0) != is_turned);
                let ends = [false, true].map(|is_last| votes(schema, auxiliary, &|_| is_last));
                let others = by_turns.iter().cycle().take(others).map(|end| ends[*end].clone());
                let all = std::iter::once(own).chain(others).collect();
                Box::new(PartyVotes::new(schema, outputs(schema), auxiliary.rows(), all))
            };
            trials.push(Trial {
                description: format!(
                    "one party votes for the last class where {column_name} is above its mean and for the first elsewhere, \
                     or the other way round; of {others} others {others_vote}"
                ),
                prepared,
                neighbours: Box::new(move || [neighbour(false), neighbour(true)]),
            });
        }
    }
    trials
}

/// Votes for the last class on rows of which this is true and for the first elsewhere: a vote a row and output.
fn votes(schema: &Schema, auxiliary: &Auxiliary, is_last: &dyn Fn(&[f64]) -> bool) -> Vec<u16> {
    let outputs = outputs(schema);
    let of_row = |row: &[f64]| {
        let mut votes = vec![0; outputs];
        match (outputs, is_last(row)) {
            (1, is_last) => votes[0] = if is_last { WHOLE } else { 0 },
            (_, true) => votes[outputs - 1] = WHOLE,
            (_, false) => votes[0] = WHOLE,
        }
        votes
    };
    auxiliary.features().chunks_exact(auxiliary.columns()).flat_map(of_row).collect()
}
