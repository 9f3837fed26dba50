//! The golden file of exact probabilities and critical values, as numbers.

use serde_json::Value;

/// Cells of one distribution at one scale, with what a sample of it must meet.
pub(crate) struct CellTable {
    /// Scale in lattice units.
    pub(crate) scale: u64,
    /// Cells for the goodness of fit.
    pub(crate) cells: Cells,
    /// Largest chi-square of the cells, at the file's significance.
    pub(crate) chi_square_limit: f64,
    /// Largest chi-square of mirror-image cells against each other.
    pub(crate) mirror_limit: f64,
    /// Coarse cells for pairs of neighbouring draws.
    pub(crate) pair_cells: Cells,
    /// Largest chi-square of the pairs.
    pub(crate) pair_limit: f64,
    /// `E K²`, lattice units squared.
    pub(crate) second_moment: f64,
    /// `E K⁴`, lattice units to the fourth.
    pub(crate) fourth_moment: f64,
    /// Events that are counted one by one.
    pub(crate) counted: Vec<CountedEvent>,
    /// Smallest relative error of the scale that the chi-square of `CI_COUNT` draws meets in 99 % of samples.
    pub(crate) scale_error_met: f64,
}

/// A partition of the integers into runs, with the exact probability of each.
pub(crate) struct Cells {
    highest: Vec<i128>,
    /// Probability of each cell, in order.
    pub(crate) probabilities: Vec<f64>,
}

impl Cells {
    /// Number of the cell that holds the value.
    pub(crate) fn cell_of(&self, value: i128) -> usize {
        self.highest.partition_point(|&highest| highest < value)
    }
}

/// Zero (`beyond` is none) or the two tails past `beyond`.
pub(crate) struct CountedEvent {
    /// Largest magnitude outside the tails.
    pub(crate) beyond: Option<i128>,
    limits: Value,
}

impl CountedEvent {
    /// Fewest and most occurrences in a sample of this size, at the file's significance on each side.
    pub(crate) fn limits(&self, count: usize) -> (u64, u64) {
        let limits = &self.limits[count.to_string()];
        (whole(&limits[0]), whole(&limits[1]))
    }
}

/// All tables of a distribution.
pub(crate) fn tables(distribution: &str) -> Vec<CellTable> {
    file()[distribution].as_array().expect("a list of tables").iter().map(table).collect()
}

/// The table of a distribution at a scale.
pub(crate) fn table_at(distribution: &str, scale: u64) -> CellTable {
    tables(distribution).into_iter().find(|table| table.scale == scale).expect("the golden file has this scale")
}

/// Largest chi-square of 256 cells that are equally likely.
pub(crate) fn low_bits_limit() -> f64 {
    number(&file()["low_bits_limit"])
}

fn file() -> Value {
    serde_json::from_str(include_str!("../../../../testdata/golden/noise/cells.json")).expect("the file is JSON")
}

fn table(entry: &Value) -> CellTable {
    let cells = |highest: &str, probabilities: &str| {
        let cells = Cells {
            highest: list(&entry[highest]).iter().map(|edge| i128::from(edge.as_i64().expect("an edge"))).collect(),
            probabilities: list(&entry[probabilities]).iter().map(number).collect(),
        };
        assert_eq!(cells.highest.len() + 1, cells.probabilities.len());
        cells
    };
    let counted = entry["counted"].as_object().expect("events by name");
    CellTable {
        scale: whole(&entry["scale"]),
        cells: cells("highest_in_cell", "probabilities"),
        chi_square_limit: number(&entry["chi_square_limit"]),
        mirror_limit: number(&entry["mirror_limit"]),
        pair_cells: cells("pair_highest_in_cell", "pair_probabilities"),
        pair_limit: number(&entry["pair_limit"]),
        second_moment: number(&entry["second_moment"]),
        fourth_moment: number(&entry["fourth_moment"]),
        counted: counted
            .values()
            .map(|event| CountedEvent {
                beyond: event["beyond"].as_i64().map(i128::from),
                limits: event["limits"].clone(),
            })
            .collect(),
        scale_error_met: number(&entry["scale_error_met"]),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

fn whole(value: &Value) -> u64 {
    value.as_u64().expect("a whole number")
}
