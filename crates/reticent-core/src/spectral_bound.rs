//! A certain upper bound on the largest eigenvalue of `matrixᵀ matrix` for a matrix of integers.
//!
//! The sensitivity of party votes rests on this number, so an estimate from below (a Rayleigh quotient, a power iteration that
//! stopped early) would be a privacy error. Here an estimate only *proposes* a number `s`; what *certifies* it is a Cholesky
//! factorisation of `s I - G` that runs to its end, with every rounding error accounted for:
//!
//! ```text
//!   G exact integers (d x d), s an integer of at most 53 bits, u = 2^-53, A = fl(s I - fl(G)), R Rᵀ = A + D
//!   entries:     |A - (s I - G)| <= u |G_ij| off the diagonal, <= u (s + u s) on it      norm <= u tr G + 2 u s
//!   Cholesky:    |D_ij| <= g ||r_i|| ||r_j||, g = (d+1) u / (1 - (d+1) u)                (Higham 2002, Lemma 8.4)
//!                ||r_i||² = A_ii + D_ii <= A_ii + g ||r_i||², so ||r_i||² <= A_ii / (1 - g)
//!                ||D|| <= g sum_i ||r_i||² <= g / (1 - g) tr A <= g / (1 - g) d s (1 + u)
//!   R Rᵀ >= 0:   s I - G >= -(||D|| + u tr G + 2 u s) I, and tr G <= d s because every A_ii > 0
//!   together:    lambda_max(G) <= s + s u (d (d+1) (1 + 2^-39) + d + 2) <= s (1 + (d+2)² 2^-53)          for d <= 2048
//!   underflow:   less than 2^-900 in all; the integer bound adds 1
//! ```
//! The same idea as Rump 2006 (BIT 46, "Verification of positive definiteness"); the constant is derived here anew.

/// Above this size of the smaller side the bound is the trace: a factorisation would take seconds.
const SIZE_MAX: usize = 2048;
/// Rows whose products, at most `2^40` each, fit an i64 together.
const BLOCK_ROWS: usize = 1 << 20;
/// How close, relatively, the bound is brought to the largest number that could not be certified.
const CLOSENESS: f64 = 1e-7;

/// An integer that is certainly at least the largest eigenvalue of `matrixᵀ matrix`, and at least 1.
///
/// `values` are the rows of the matrix one after the other, `columns` each, with entries of at most `2^20` in magnitude; the sum of
/// all squares, `trace`, fits a u64 and is never exceeded. Relative excess: about `1e-7` up to size 2048, beyond it the trace.
///
/// Guarantee: for every matrix, whatever its spectrum; the derivation heads this file (row F90 of `docs/formulas.md`).
pub(crate) fn largest_eigenvalue_bound(columns: usize, values: &[i32], trace: u64) -> u64 {
    let rows = values.len() / columns.max(1);
    let size = columns.min(rows);
    if size > SIZE_MAX || trace <= 1 {
        return trace.max(1);
    }
    let gram = if columns <= rows { gram_of_columns(columns, values) } else { gram_of_rows(columns, values) };
    // The largest sum of absolute values of a row bounds every eigenvalue (Gershgorin).
    let row_sum = (0..size).map(|row| (0..size).map(|column| gram[row * size + column].unsigned_abs()).sum::<u128>());
    let simple = u64::try_from(row_sum.max().unwrap_or(0)).map_or(trace, |row_sum| row_sum.min(trace)).max(1);
    let gram: Vec<f64> = gram.into_iter().map(|entry| entry as f64).collect();
    search(size, &gram, simple)
}

/// The least certified number that a few factorisations find, at most `simple`.
fn search(size: usize, gram: &[f64], simple: u64) -> u64 {
    let estimate = estimate(size, gram);
    let mut failed = estimate;
    let mut gap = 1e-9;
    let mut best = loop {
        let proposed = estimate * (1.0 + gap);
        if proposed >= simple as f64 {
            break simple;
        }
        if let Some(bound) = certify(size, gram, proposed) {
            break bound.min(simple);
        }
        (failed, gap) = (proposed, gap * 8.0);
    };
    // After a good estimate there is nothing left to gain.
    while (best as f64 - failed) > CLOSENESS * failed + 2.0 {
        let middle = failed + (best as f64 - failed) / 2.0;
        match certify(size, gram, middle) {
            Some(bound) if bound < best => best = bound,
            Some(_) => break,
            None => failed = middle,
        }
    }
    best
}

/// The bound that follows when `s I - G` has a Cholesky factor, `s` being `proposed` rounded up to an integer.
fn certify(size: usize, gram: &[f64], proposed: f64) -> Option<u64> {
    // A double is an integer of at most 53 bits from here on, exactly.
    let s = proposed.ceil().max(1.0);
    // Lower triangle, row after row; row i holds i + 1 entries.
    let mut factor: Vec<f64> = Vec::with_capacity(size * (size + 1) / 2);
    for row in 0..size {
        let start = factor.len();
        for column in 0..=row {
            let of_column = column * (column + 1) / 2;
            let entry = if column == row { s - gram[row * size + row] } else { -gram[row * size + column] };
            let mut left = entry;
            for k in 0..column {
                left -= factor[start + k] * factor[of_column + k];
            }
            if column < row {
                factor.push(left / factor[of_column + column]);
            } else if left > 0.0 && entry > 0.0 {
                factor.push(left.sqrt());
            } else {
                // Not positive, or not a number.
                return None;
            }
        }
    }
    let s = s as u128;
    let margin = (s * (size as u128 + 2).pow(2)) >> 53;
    u64::try_from(s + margin + 2).ok()
}

/// A guess, from below: power iteration from a start that no symmetry makes orthogonal to the answer.
fn estimate(size: usize, gram: &[f64]) -> f64 {
    const STEPS: usize = 300;
    let mut vector: Vec<f64> = (0..size).map(|place| 1.0 + 0.1 * ((place * place + 3 * place) % 7) as f64).collect();
    let mut quotient = 0.0;
    for _ in 0..STEPS {
        let norm = vector.iter().map(|value| value * value).sum::<f64>().sqrt();
        if norm > 0.0 {
            vector.iter_mut().for_each(|value| *value /= norm);
        }
        let product: Vec<f64> = gram
            .chunks_exact(size)
            .map(|row| row.iter().zip(&vector).map(|(entry, value)| entry * value).sum())
            .collect();
        let next: f64 = product.iter().zip(&vector).map(|(product, value)| product * value).sum();
        let settled = (next - quotient).abs() <= 1e-13 * next;
        quotient = next;
        vector = product;
        if settled {
            break;
        }
    }
    quotient.max(1.0)
}

/// `matrixᵀ matrix`, both triangles.
fn gram_of_columns(columns: usize, values: &[i32]) -> Vec<i128> {
    let mut gram = vec![0i128; columns * columns];
    let mut block = vec![0i64; columns * columns];
    for rows in values.chunks(columns * BLOCK_ROWS) {
        block.fill(0);
        for row in rows.chunks_exact(columns) {
            for (first, value) in row.iter().enumerate() {
                let totals = &mut block[first * columns + first..(first + 1) * columns];
                for (total, other) in totals.iter_mut().zip(&row[first..]) {
                    *total += i64::from(*value) * i64::from(*other);
                }
            }
        }
        for first in 0..columns {
            for second in first..columns {
                gram[first * columns + second] += i128::from(block[first * columns + second]);
            }
        }
    }
    mirror(columns, &mut gram);
    gram
}

/// `matrix matrixᵀ`, which has the same largest eigenvalue, for a matrix with fewer rows than columns.
fn gram_of_rows(columns: usize, values: &[i32]) -> Vec<i128> {
    let rows = values.len() / columns;
    let mut gram = vec![0i128; rows * rows];
    for (first, one) in values.chunks_exact(columns).enumerate() {
        for (second, other) in values.chunks_exact(columns).enumerate().skip(first) {
            let products = one.iter().zip(other).map(|(one, other)| i128::from(*one) * i128::from(*other));
            gram[first * rows + second] = products.sum();
        }
    }
    mirror(rows, &mut gram);
    gram
}

fn mirror(size: usize, gram: &mut [i128]) {
    for row in 1..size {
        for column in 0..row {
            gram[row * size + column] = gram[column * size + row];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Matrices with the least integer that bounds their largest eigenvalue, from integer arithmetic in another language.
    const GOLDEN: &str = include_str!("../../../testdata/golden/spectral_bound.json");

    fn bound(columns: usize, values: &[i32]) -> u64 {
        let trace = values.iter().map(|value| u64::from(value.unsigned_abs()).pow(2)).sum();
        largest_eigenvalue_bound(columns, values, trace)
    }

    struct Case {
        name: String,
        columns: usize,
        values: Vec<i32>,
        least: u64,
    }

    fn cases() -> Vec<Case> {
        let golden: serde_json::Value = serde_json::from_str(GOLDEN).expect("JSON");
        let whole = |value: &serde_json::Value| value.as_i64().expect("a whole number");
        let case = |case: &serde_json::Value| Case {
            name: case["name"].to_string(),
            columns: whole(&case["columns"]) as usize,
            values: case["values"].as_array().expect("a list").iter().map(|value| whole(value) as i32).collect(),
            least: case["least"].as_u64().expect("a number"),
        };
        golden["cases"].as_array().expect("a list").iter().map(case).collect()
    }

    #[test]
    fn the_bound_is_above_the_exact_eigenvalue_and_close_to_it() {
        assert!(cases().len() >= 20);
        for Case { name, columns, values, least } in cases() {
            let bound = bound(columns, &values);
            assert!(bound >= least, "{name}: {bound} does not bound {least}");
            assert!(bound as f64 <= least as f64 * (1.0 + 1e-6) + 5.0, "{name}: {bound} is loose against {least}");
        }
    }

    #[test]
    fn a_number_below_the_eigenvalue_is_never_certified() {
        for Case { name, columns, values, least } in cases() {
            let gram: Vec<f64> = gram_of_columns(columns, &values).into_iter().map(|entry| entry as f64).collect();
            for shortfall in [1e-3, 1e-6, 1e-9, 1e-12, 1e-15, 0.0, -1e-15, -1e-14, -1e-12] {
                let proposed = least as f64 * (1.0 - shortfall);
                if let Some(bound) = certify(columns, &gram, proposed) {
                    assert!(bound >= least, "{name}: {bound} certified from {proposed}, {least} is exact");
                }
            }
        }
    }

    /// Three eigenvalues so near each other that 300 power steps stay far below the largest: `49 a²` of the orthogonal rows `a h`,
    /// `h` those of `7 I - v vᵀ`, `v = (1, 2, 3)`.
    #[test]
    fn a_bad_estimate_is_brought_close_by_bisection() {
        let reflection = [[6, -2, -3], [-2, 3, -6], [-3, -6, -2]];
        let lengths = [71_000, 70_990, 70_980];
        let values: Vec<i32> = reflection.iter().zip(lengths).flat_map(|(row, a)| row.map(|entry| entry * a)).collect();
        let gram: Vec<f64> = gram_of_columns(3, &values).into_iter().map(|entry| entry as f64).collect();
        let largest = 49.0 * 71_000.0 * 71_000.0;
        assert!(estimate(3, &gram) < largest * (1.0 - 1e-5), "otherwise nothing is tried here");
        let row_sum = (0..3).map(|row| gram[3 * row..3 * row + 3].iter().map(|entry| entry.abs()).sum::<f64>());
        assert!(row_sum.fold(0.0, f64::max) > largest * (1.0 + 1e-5), "otherwise Gershgorin's bound is close");
        let found = bound(3, &values) as f64;
        assert!((largest..=largest * (1.0 + 2e-7)).contains(&found), "{found} {largest}");
    }

    /// Products are added up in blocks of rows: none is lost between two.
    #[test]
    fn every_row_of_a_long_matrix_counts() {
        let rows = BLOCK_ROWS / 3 + 7;
        assert!(bound(3, &vec![1; 3 * rows]) >= 3 * rows as u64);
        let rows = BLOCK_ROWS + 7;
        assert!(bound(3, &vec![1; 3 * rows]) >= 3 * rows as u64);
    }

    /// `s + s (d + 2)² 2^-53`, and 2 for rounding it down and for underflow.
    #[test]
    fn a_certificate_leaves_room_for_every_rounding() {
        for (size, proposed, room) in
            [(3, 1u64 << 50, 3 + 2), (3, 1 << 40, 2), (30, 1 << 50, 128 + 2), (1, 1 << 53, 9 + 2)]
        {
            let certified = certify(size, &vec![0.0; size * size], proposed as f64);
            assert_eq!(certified, Some(proposed + room), "{size}");
        }
    }

    #[test]
    fn empty_and_wide_matrices_have_bounds() {
        assert_eq!(bound(3, &[]), 1);
        assert_eq!(bound(3, &[0; 9]), 1);
        // One row: its square, exactly the trace.
        assert_eq!(bound(4, &[3, 4, 0, -12]), 169);
        // Two orthogonal rows of five columns.
        assert!((100..=104).contains(&bound(5, &[10, 0, 0, 0, 0, 0, 7, 0, 0, 0])));
        // The smaller side counts: a few rows of many columns are brought close, many rows of many columns have the trace.
        let mut wide = vec![0; 2 * 3000];
        (wide[0], wide[5999]) = (10, 7);
        assert!((100..=104).contains(&bound(3000, &wide)));
        let side = SIZE_MAX + 1;
        let mut large = vec![0; side * side];
        large.iter_mut().step_by(side + 1).for_each(|entry| *entry = 1);
        assert_eq!(bound(side, &large), side as u64);
    }
}
