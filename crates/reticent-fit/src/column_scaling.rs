//! Centre and scale of columns by the schema's bounds.

use reticent_core::coding::{Coding, Column, SlotKind};
use reticent_core::compact_row::WIDE_BLOCK_CATEGORIES;
use reticent_core::encoding::{Encoding, NormRule};
use reticent_core::schema::Schema;

use crate::plan::PlanError;

/// Columns by the schema's bounds alone, and the bound on a row's norm.
///
/// ```text
///   number 2 (u - 1/2), in [-1, 1]      category 1 - 1/K or -1/K      listed number u      intercept 1, or 0 without one
///                                       of 64 or more: 1 or 0
/// ```
/// A wide block is not centred, so that a row is kept by the one column of it that is not 0: its length changes by less than one part in 128.
/// Rows longer than the schema's `row_norm` are shortened to it; without one the bound is the longest row that the bounds
/// allow.
#[must_use]
pub fn from_bounds(schema: &Schema, intercept: bool) -> (Encoding, f64) {
    let coding = Coding::of(schema);
    let (mut centre, mut scale) = (vec![0.0], vec![if intercept { 1.0 } else { 0.0 }]);
    for kind in coding.slot_kinds() {
        match kind {
            SlotKind::Numeric => {
                centre.push(0.5);
                scale.push(2.0);
            }
            SlotKind::Categories(categories) => {
                let is_centred = categories < WIDE_BLOCK_CATEGORIES;
                let at = if is_centred { 1.0 / categories as f64 } else { 0.0 };
                centre.extend(std::iter::repeat_n(at, categories));
                scale.extend(std::iter::repeat_n(1.0, categories));
            }
        }
    }
    centre.resize(coding.columns().len(), 0.0);
    scale.resize(coding.columns().len(), 1.0);
    clipped(schema, coding, centre, scale)
}

/// Columns as Zhang et al. 2012 have them: numbers in `[0, 1]`, indicators, no intercept; with the bound on a row's norm.
pub(crate) fn unit_cube(schema: &Schema) -> (Encoding, f64) {
    let coding = Coding::of(schema);
    let scale = coding.columns().iter().map(|column| if *column == Column::Intercept { 0.0 } else { 1.0 }).collect();
    let centre = vec![0.0; coding.columns().len()];
    clipped(schema, coding, centre, scale)
}

/// Refuses a declared `row_norm` by which every row of a number would be shortened: its target would not be, so that the model could
/// only be wrong, by the more the shorter the norm, whatever the budget.
pub(crate) fn leave_some_rows_whole(schema: &Schema, encoding: &Encoding) -> Result<(), PlanError> {
    let shortest = Encoding::shortest_norm(encoding.coding(), encoding.centre(), encoding.scale());
    match schema.privacy().row_norm {
        Some(declared) if declared < shortest * (1.0 - 1e-9) => Err(PlanError::Parameter(format!(
            "row_norm = {declared} in the schema is below the length of every encoded row, the intercept among its columns: at least \
             {shortest:.4}; rows would be shortened and their target would not. Declare what rows do not exceed, or leave row_norm out"
        ))),
        Some(_) | None => Ok(()),
    }
}

fn clipped(schema: &Schema, coding: Coding, centre: Vec<f64>, scale: Vec<f64>) -> (Encoding, f64) {
    let largest = Encoding::largest_norm(&coding, &centre, &scale);
    // A schema without features has no norm; any positive bound does.
    let largest = if largest > 0.0 { largest } else { 1.0 };
    let bound = schema.privacy().row_norm.map_or(largest, |declared| declared.min(largest));
    (Encoding::new(coding, centre, scale, NormRule::Clip(bound)), bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(extra: &str) -> Schema {
        Schema::from_text(&format!(
            "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n{extra}[target]\ncolumn = \"y\"\nbounds = [0, 1]\n\
             [features]\nx = {{ bounds = [0, 10] }}\nk = {{ categories = [\"a\"] }}\n"
        ))
        .expect("legal")
    }

    /// A row of 64 categories, "other" among them, is kept by one column; of 63 by all of them, centred.
    #[test]
    fn wide_blocks_are_not_centred() {
        for (named, at, chosen) in [(WIDE_BLOCK_CATEGORIES - 1, 0.0, 1), (WIDE_BLOCK_CATEGORIES - 2, 1.0 / 63.0, 0)] {
            let names: Vec<String> = (0..named).map(|name| format!("\"c{name}\"")).collect();
            let text = format!(
                "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nbounds = [0, 1]\n[features]\n\
                 k = {{ categories = [{}] }}\n",
                names.join(", ")
            );
            let (encoding, bound) = from_bounds(&Schema::from_text(&text).expect("legal"), true);
            assert!(encoding.centre()[1..].iter().all(|centre| (centre - at).abs() < 1e-12), "{named}");
            assert_eq!(encoding.layout().chosen(), chosen, "{named}");
            // The intercept, and a category: 1, or (1 - 1/K)² + (K - 1)/K².
            assert!((bound - (2.0 - at).sqrt()).abs() < 1e-12, "{named}: {bound}");
        }
    }

    #[test]
    fn bounds_give_columns_of_size_one() {
        let (encoding, bound) = from_bounds(&schema(""), true);
        assert_eq!(encoding.centre(), [0.0, 0.5, 0.5, 0.5]);
        assert_eq!(encoding.scale(), [1.0, 2.0, 1.0, 1.0]);
        assert!((bound - 2.5f64.sqrt()).abs() < 1e-12, "1 + 1 + 1/4 + 1/4");
        let (_, declared) = from_bounds(&schema("row_norm = 1.2\n"), true);
        assert!((declared - 1.2).abs() < 1e-12);
        let (cube, bound) = unit_cube(&schema(""));
        // 1 of the intercept and 1/2 of the two categories; without an intercept 1/2; of plain indicators 1.
        for (norm, has_intercept, is_whole) in
            [(1.22, true, false), (1.23, true, true), (0.7, false, false), (0.71, false, true)]
        {
            let schema = schema(&format!("row_norm = {norm}\n"));
            let (encoding, _) = from_bounds(&schema, has_intercept);
            assert_eq!(leave_some_rows_whole(&schema, &encoding).is_ok(), is_whole, "{norm}");
        }
        let short = schema("row_norm = 0.9\n");
        assert!(leave_some_rows_whole(&short, &unit_cube(&short).0).is_err());
        assert_eq!(cube.scale(), [0.0, 1.0, 1.0, 1.0]);
        assert!((bound - 2f64.sqrt()).abs() < 1e-12);
    }
}
