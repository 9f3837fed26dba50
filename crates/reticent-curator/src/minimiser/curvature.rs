//! The curvature of an objective, by which the steps toward its minimum are turned.

use rayon::prelude::*;
use reticent_core::contribution::CodedLabel;
use reticent_core::engine::EngineError;
use reticent_core::minimum::{Minimum, ROW_BITS};

use super::{Problem, dot, probabilities, to_float};
use crate::kernel::{Instructions, add_products, float_dot};
use crate::out_of_memory::{OutOfMemory, zeros};
use crate::whole_rows::WholeRows;

/// Cholesky factors of `sum_i w_i u_i u_i^T + lambda` for every output, `w_i = p (1 - p)`.
pub(super) struct Curvature {
    columns: usize,
    pub(super) computed: bool,
    factors: Vec<Vec<f64>>,
}

impl Curvature {
    pub(super) fn new(minimum: &Minimum) -> Result<Self, OutOfMemory> {
        let columns = minimum.columns as usize;
        let square = columns.checked_mul(columns).ok_or(OutOfMemory)?;
        let factors = (0..minimum.outputs()).map(|_| zeros(square)).collect::<Result<_, _>>()?;
        Ok(Self { columns, computed: false, factors })
    }

    /// A row counts by `trunc(sqrt(w_i) u_i)`: no answer depends on the curvature, only how soon it is found.
    pub(super) fn refresh(
        &mut self,
        problem: &Problem<'_, impl WholeRows>,
        weights: &[i128],
    ) -> Result<(), EngineError> {
        let weights: Vec<f64> = weights.iter().map(|weight| to_float(*weight)).collect();
        let columns = self.columns;
        let sums = problem.rows.fold(
            || WeightedProducts::zero(columns, problem.outputs(), problem.rows.at_once_max()),
            |sums, features, labels| sums.add(problem, &weights, features, labels),
        )?;
        let unit = 2f64.powi(-2 * ROW_BITS as i32);
        for (output, factor) in self.factors.iter_mut().enumerate() {
            let mut place = 0;
            for row in 0..columns {
                for column in row..columns {
                    let product: i64 = sums.iter().map(|sums| sums.products[output][place]).sum();
                    let ridge = if column == row { problem.minimum.ridge() } else { 0.0 };
                    factor[column * columns + row] = product as f64 * unit + ridge;
                    place += 1;
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

/// Sums of `w_i u_i u_i^T` of a thread, and room for the rows that are added: all of it as large for every table.
struct WeightedProducts {
    /// Of each output the packed triangle, and the places of a label that is 0.
    products: Vec<Vec<i64>>,
    /// `sqrt(p (1 - p))` of every row, output after output; 0 of a row that does not count.
    roots: Vec<f32>,
    scaled: Vec<i16>,
    labels: Vec<CodedLabel>,
}

impl WeightedProducts {
    fn zero(columns: usize, outputs: usize, rows_max: usize) -> Result<Self, OutOfMemory> {
        let triangle = columns * (columns + 1) / 2;
        Ok(Self {
            products: (0..outputs).map(|_| zeros(triangle + columns + 1)).collect::<Result<_, _>>()?,
            roots: zeros(rows_max * outputs)?,
            scaled: zeros(rows_max * columns)?,
            labels: zeros(rows_max)?,
        })
    }

    fn add(&mut self, problem: &Problem<'_, impl WholeRows>, weights: &[f64], features: &[i16], labels: &[CodedLabel]) {
        let (columns, rows) = (problem.columns(), labels.len());
        self.find_roots(problem, weights, features, labels);
        let Self { products, roots, scaled, labels } = self;
        for (products, roots) in products.iter_mut().zip(roots.chunks_exact(rows)) {
            let scaled = &mut scaled[..features.len()];
            let of_rows = scaled.chunks_exact_mut(columns).zip(features.chunks_exact(columns));
            for ((scaled, row), root) in of_rows.zip(roots) {
                for (scaled, one) in scaled.iter_mut().zip(row) {
                    *scaled = (root * f32::from(*one)) as i16;
                }
            }
            add_products(Instructions::best(), columns, scaled, &labels[..rows], products);
        }
    }

    fn find_roots(
        &mut self,
        problem: &Problem<'_, impl WholeRows>,
        weights: &[f64],
        features: &[i16],
        labels: &[CodedLabel],
    ) {
        let (columns, rows) = (problem.columns(), labels.len());
        let mut dots = vec![0.0; problem.outputs()];
        for (place, (row, label)) in features.chunks_exact(columns).zip(labels).enumerate() {
            for (dot, weights) in dots.iter_mut().zip(weights.chunks_exact(columns)) {
                *dot = float_dot(weights, row);
            }
            probabilities(&mut dots);
            let counts = problem.class(*label).is_some();
            for (roots, p) in self.roots.chunks_exact_mut(rows).zip(&dots) {
                let root = (*p * (1.0 - *p)).max(CURVATURE_MIN).sqrt() as f32;
                roots[place] = if counts { root } else { 0.0 };
            }
        }
    }
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
