//! The curvature of an objective, by which the steps toward its minimum are turned.

use rayon::prelude::*;
use reticent_core::minimum::ROW_BITS;

use super::{Problem, blocks, dot, probabilities, to_float};
use crate::kernel::{Instructions, add_products, float_dot};
use crate::out_of_memory::{OutOfMemory, zeros};

/// Cholesky factors of `sum_i w_i u_i u_i^T + lambda` for every output, `w_i = p (1 - p)`.
pub(super) struct Curvature {
    columns: usize,
    pub(super) computed: bool,
    factors: Vec<Vec<f64>>,
}

impl Curvature {
    pub(super) fn new(problem: &Problem<'_>) -> Result<Self, OutOfMemory> {
        let columns = problem.rows.columns;
        let square = columns.checked_mul(columns).ok_or(OutOfMemory)?;
        let factors = (0..problem.outputs()).map(|_| zeros(square)).collect::<Result<_, _>>()?;
        Ok(Self { columns, computed: false, factors })
    }

    /// A row counts by `trunc(sqrt(w_i) u_i)`: no answer depends on the curvature, only how soon it is found.
    pub(super) fn refresh(&mut self, problem: &Problem<'_>, weights: &[i128]) -> Result<(), OutOfMemory> {
        let weights: Vec<f64> = weights.iter().map(|weight| to_float(*weight)).collect();
        let (columns, rows) = (self.columns, problem.row_count());
        let triangle = columns * (columns + 1) / 2;
        let roots = roots_of_weights(problem, &weights)?;
        for (output, factor) in self.factors.iter_mut().enumerate() {
            let zero = || zeros::<i64>(triangle + columns + 1);
            let sums = blocks(rows, CURVATURE_ROWS)
                .fold(zero, |sums, rows| {
                    let (mut sums, mut scaled, labels) = (sums?, zeros(rows.len() * columns)?, zeros(rows.len())?);
                    let features =
                        problem.rows.features[rows.start * columns..rows.end * columns].chunks_exact(columns);
                    for ((scaled, row), place) in scaled.chunks_exact_mut(columns).zip(features).zip(rows.clone()) {
                        let root = roots[place * problem.outputs() + output];
                        for (scaled, one) in scaled.iter_mut().zip(row) {
                            *scaled = (root * f32::from(*one)) as i16;
                        }
                    }
                    add_products(Instructions::best(), columns, &scaled, &labels, &mut sums);
                    Ok(sums)
                })
                .reduce(zero, |left, right| {
                    let mut left = left?;
                    left.iter_mut().zip(right?).for_each(|(left, right)| *left += right);
                    Ok(left)
                })?;
            let unit = 2f64.powi(-2 * ROW_BITS as i32);
            let mut products = sums.iter();
            for row in 0..columns {
                for (column, product) in (row..columns).zip(&mut products) {
                    let ridge = if column == row { problem.minimum.ridge() } else { 0.0 };
                    factor[column * columns + row] = *product as f64 * unit + ridge;
                }
            }
        }
        self.factors.par_iter_mut().for_each(|factor| cholesky(factor, columns));
        self.computed = true;
        Ok(())
    }

    /// `-B^-1 g` with the remembered corrections (Nocedal and Wright 2006, Algorithm 7.4).
    pub(super) fn direction(&self, gradient: &[f64], memory: &[(Vec<f64>, Vec<f64>)]) -> Vec<f64> {
        let mut direction: Vec<f64> = gradient.iter().map(|one| -one).collect();
        let mut factors = Vec::with_capacity(memory.len());
        for (moved, turned) in memory.iter().rev() {
            let factor = dot(moved, &direction) / dot(moved, turned);
            direction.iter_mut().zip(turned).for_each(|(one, turned)| *one -= factor * turned);
            factors.push(factor);
        }
        for (part, factor) in direction.chunks_exact_mut(self.columns).zip(&self.factors) {
            solve(factor, part);
        }
        for ((moved, turned), factor) in memory.iter().zip(factors.into_iter().rev()) {
            let correction = factor - dot(turned, &direction) / dot(moved, turned);
            direction.iter_mut().zip(moved).for_each(|(one, moved)| *one += correction * moved);
        }
        direction
    }
}

/// `sqrt(p (1 - p))` of every row and output, 0 of a row that does not count.
fn roots_of_weights(problem: &Problem<'_>, weights: &[f64]) -> Result<Vec<f32>, OutOfMemory> {
    let (outputs, columns) = (problem.outputs(), problem.rows.columns);
    let mut roots = zeros::<f32>(problem.row_count() * outputs)?;
    let rows = roots.par_chunks_mut(outputs).zip(problem.rows.features.par_chunks(columns)).enumerate();
    rows.filter(|(row, _)| problem.class(*row).is_some()).for_each_init(
        || vec![0.0; outputs],
        |dots, (_, (roots, row))| {
            for (dot, weights) in dots.iter_mut().zip(weights.chunks_exact(columns)) {
                *dot = float_dot(weights, row);
            }
            probabilities(dots);
            for (root, p) in roots.iter_mut().zip(dots) {
                *root = (*p * (1.0 - *p)).max(CURVATURE_MIN).sqrt() as f32;
            }
        },
    );
    Ok(roots)
}

/// Lower Cholesky factor in place; a pivot that rounding made too small is raised, which costs speed, not correctness.
fn cholesky(matrix: &mut [f64], columns: usize) {
    for j in 0..columns {
        let (before, from) = matrix.split_at_mut(j * columns);
        let row_j = &mut from[..columns];
        for k in 0..j {
            let row_k = &before[k * columns..k * columns + k + 1];
            let value = (row_j[k] - dot(&row_j[..k], &row_k[..k])) / row_k[k];
            row_j[k] = value;
        }
        let pivot = row_j[j] - dot(&row_j[..j], &row_j[..j]);
        row_j[j] = pivot.max(1e-12 * row_j[j].abs()).max(f64::MIN_POSITIVE).sqrt();
    }
}

/// Solves `L L^T x = right`, in place.
fn solve(factor: &[f64], right: &mut [f64]) {
    let columns = right.len();
    for j in 0..columns {
        let row = &factor[j * columns..j * columns + j + 1];
        right[j] = (right[j] - dot(&row[..j], &right[..j])) / row[j];
    }
    for j in (0..columns).rev() {
        let row = &factor[j * columns..j * columns + j + 1];
        right[j] /= row[j];
        let value = right[j];
        right[..j].iter_mut().zip(row).for_each(|(one, factor)| *one -= value * factor);
    }
}

/// Smallest weight of a row in a curvature: one far from the boundary still counts a little.
const CURVATURE_MIN: f64 = 1.0 / 2048.0;
/// Rows that one task adds up.
const CURVATURE_ROWS: usize = 4096;
