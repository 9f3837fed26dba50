//! The curvature of an objective, by which the steps toward its minimum are turned.

use rayon::prelude::*;
use reticent_core::contribution::CodedLabel;
use reticent_core::engine::EngineError;
use reticent_core::minimum::{Minimum, ROW_BITS};

use super::{Problem, dot, probabilities, to_float};
use crate::kernel::{Instructions, add_products, float_dot};
use crate::out_of_memory::{OutOfMemory, zeros};
use crate::whole_rows::{WholeRows, bytes_at_once_max};

/// Pairs of steps and gradient changes that are remembered.
pub(super) const MEMORY: usize = 40;
/// Columns, and squares of them over all outputs, up to which products of columns are worth their time and memory.
const COLUMNS_MAX: u64 = 1 << 11;
const PRODUCTS_MAX: u64 = 1 << 26;
/// Smallest weight of a row in a curvature: one far from the boundary still counts a little.
const CURVATURE_MIN: f64 = 1.0 / 2048.0;

/// What is known of the curvature. No answer depends on it, only how soon it is found: so where there is no room for the products of all
/// columns, or they would take longer than they save, squares of columns stand for them, and steps and gradients tell of the rest.
pub(super) struct Curvature {
    columns: usize,
    /// Cholesky factors of `sum_i w_i u_i u_i^T + lambda` for every output, `w_i = p (1 - p)`; none where there is no room.
    factors: Vec<Vec<f64>>,
    /// Whether the factors are of rows.
    is_factorised: bool,
    /// The diagonals of the same, output after output, where there are no factors; empty before they are of rows.
    diagonals: Vec<f64>,
    /// The largest curvature that there can be.
    steepest: f64,
    /// The least.
    ridge: f64,
    /// Steps, and how the gradient changed along them.
    memory: Vec<(Vec<f64>, Vec<f64>)>,
}

/// Bytes of the factors, and in each thread of the products and of the rows that are multiplied by the roots of their weights; or those of the
/// squares.
pub(super) fn bytes_max(minimum: &Minimum, threads: u64) -> u64 {
    let (outputs, columns) = (u64::from(minimum.outputs()), u64::from(minimum.columns));
    if !has_products(minimum) {
        return outputs * columns * size_of::<i64>() as u64 * (1 + threads);
    }
    let factors = outputs * columns * columns * size_of::<f64>() as u64;
    let sums = outputs * (columns * (columns + 1) / 2 + columns + 1) * size_of::<i64>() as u64;
    // Rows times the roots of their weights, and those roots: 4 bytes an output for 2 a column.
    let rows = bytes_at_once_max(columns as usize) as u64 * (1 + 2 * outputs.div_ceil(columns));
    factors + threads * (sums + rows)
}

fn has_products(minimum: &Minimum) -> bool {
    let (outputs, columns) = (u64::from(minimum.outputs()), u64::from(minimum.columns));
    columns <= COLUMNS_MAX && outputs * columns * columns <= PRODUCTS_MAX
}

impl Curvature {
    pub(super) fn new(minimum: &Minimum, steepest: f64) -> Self {
        let columns = minimum.columns as usize;
        let factors = if has_products(minimum) { 0..minimum.outputs() } else { 0..0 };
        let factors = factors.map(|_| zeros(columns * columns)).collect::<Result<_, _>>().unwrap_or_default();
        let (diagonals, ridge, memory) = (Vec::new(), minimum.ridge(), Vec::new());
        Self { columns, factors, is_factorised: false, diagonals, steepest, ridge, memory }
    }

    /// Whether [`Self::direction`] can be asked.
    pub(super) fn is_known(&self) -> bool {
        self.is_factorised || !self.diagonals.is_empty()
    }

    /// A row counts by `trunc(sqrt(w_i) u_i)`.
    pub(super) fn refresh(&mut self, problem: &Problem<'_, impl WholeRows>, weights: &[i128]) {
        self.forget();
        // Rows that cannot be read are found out by the next gradient.
        if !self.factors.is_empty() {
            match self.weighted_products(problem, weights) {
                Ok(sums) => return self.factorise(&sums),
                Err(_) => self.factors.clear(),
            }
        }
        self.diagonals = match self.weighted_squares(problem, weights) {
            Ok(squares) => squares,
            Err(_) => vec![self.steepest; weights.len()],
        };
    }

    /// `sum_i trunc(sqrt(w_i) u_ij)^2 + lambda`, output after output.
    fn weighted_squares(
        &self,
        problem: &Problem<'_, impl WholeRows>,
        weights: &[i128],
    ) -> Result<Vec<f64>, EngineError> {
        let (columns, outputs) = (self.columns, problem.outputs());
        let weights: Vec<f64> = weights.iter().map(|weight| to_float(*weight)).collect();
        let sums = problem.rows.fold(
            || zeros::<i64>(outputs * columns),
            |sums, features, labels| {
                let mut dots = vec![0.0; outputs];
                for (row, label) in features.chunks_exact(columns).zip(labels) {
                    if !find_roots(problem, &weights, row, *label, &mut dots) {
                        continue;
                    }
                    for (sums, root) in sums.chunks_exact_mut(columns).zip(&dots) {
                        for (sum, one) in sums.iter_mut().zip(row).filter(|(_, one)| **one != 0) {
                            *sum += i64::from((*root as f32 * f32::from(*one)) as i16).pow(2);
                        }
                    }
                }
            },
        )?;
        let unit = 2f64.powi(-2 * ROW_BITS as i32);
        let of_place = |place: usize| {
            let square: i64 = sums.iter().map(|sums| sums[place]).sum();
            square as f64 * unit + self.ridge
        };
        Ok((0..weights.len()).map(of_place).collect())
    }

    fn weighted_products(
        &self,
        problem: &Problem<'_, impl WholeRows>,
        weights: &[i128],
    ) -> Result<Vec<WeightedProducts>, EngineError> {
        let weights: Vec<f64> = weights.iter().map(|weight| to_float(*weight)).collect();
        problem.rows.fold(
            || WeightedProducts::zero(self.columns, problem.outputs(), problem.rows.at_once_max()),
            |sums, features, labels| sums.add(problem, &weights, features, labels),
        )
    }

    fn factorise(&mut self, sums: &[WeightedProducts]) {
        let (columns, ridge) = (self.columns, self.ridge);
        let unit = 2f64.powi(-2 * ROW_BITS as i32);
        self.factors.par_iter_mut().enumerate().for_each(|(output, factor)| {
            let mut place = 0;
            for row in 0..columns {
                for column in row..columns {
                    let product: i64 = sums.iter().map(|sums| sums.products[output][place]).sum();
                    factor[column * columns + row] = product as f64 * unit + if column == row { ridge } else { 0.0 };
                    place += 1;
                }
            }
            cholesky(factor, columns);
        });
        self.is_factorised = true;
    }

    /// Keeps a step and how the gradient changed along it, of the last ones.
    pub(super) fn remember(&mut self, moved: Vec<f64>, turned: Vec<f64>) {
        if dot(&moved, &turned) > 0.0 {
            self.memory.push((moved, turned));
            if self.memory.len() > MEMORY {
                self.memory.remove(0);
            }
        }
    }

    /// Forgets all steps.
    pub(super) fn forget(&mut self) {
        self.memory.clear();
    }

    /// `-B^-1 g` with the remembered corrections (Nocedal and Wright 2006, Algorithm 7.4).
    pub(super) fn direction(&self, gradient: &[f64]) -> Vec<f64> {
        let mut direction: Vec<f64> = gradient.iter().map(|one| -one).collect();
        let mut factors = Vec::with_capacity(self.memory.len());
        for (moved, turned) in self.memory.iter().rev() {
            let factor = dot(moved, &direction) / dot(moved, turned);
            direction.iter_mut().zip(turned).for_each(|(one, turned)| *one -= factor * turned);
            factors.push(factor);
        }
        self.precondition(&mut direction);
        for ((moved, turned), factor) in self.memory.iter().zip(factors.into_iter().rev()) {
            let correction = factor - dot(turned, &direction) / dot(moved, turned);
            direction.iter_mut().zip(moved).for_each(|(one, moved)| *one += correction * moved);
        }
        direction
    }

    /// `B^-1 v`. Along what all classes have in common the loss of more than two does not change, and the ridge is all the curvature there
    /// is; the factors, each of one class, do not know of it.
    fn precondition(&self, vector: &mut [f64]) {
        let is_of_classes = vector.len() > self.columns;
        let common = if is_of_classes { take_mean_off(vector, self.columns) } else { Vec::new() };
        if self.factors.is_empty() {
            vector.iter_mut().zip(&self.diagonals).for_each(|(one, diagonal)| *one /= diagonal);
        }
        for (part, factor) in vector.chunks_exact_mut(self.columns).zip(&self.factors) {
            solve(factor, part);
        }
        if is_of_classes {
            take_mean_off(vector, self.columns);
            for part in vector.chunks_exact_mut(self.columns) {
                part.iter_mut().zip(&common).for_each(|(one, common)| *one += common / self.ridge);
            }
        }
    }
}

/// Takes off every class what all have in common, and returns that.
fn take_mean_off(vector: &mut [f64], columns: usize) -> Vec<f64> {
    let parts = (vector.len() / columns) as f64;
    let mut mean = vec![0.0; columns];
    for part in vector.chunks_exact(columns) {
        mean.iter_mut().zip(part).for_each(|(mean, one)| *mean += one / parts);
    }
    for part in vector.chunks_exact_mut(columns) {
        part.iter_mut().zip(&mean).for_each(|(one, mean)| *one -= mean);
    }
    mean
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
            let counts = find_roots(problem, weights, row, *label, &mut dots);
            for (roots, root) in self.roots.chunks_exact_mut(rows).zip(&dots) {
                roots[place] = if counts { *root as f32 } else { 0.0 };
            }
        }
    }
}

/// The root of the row's weight in each output; `false` of a row that does not count.
fn find_roots(
    problem: &Problem<'_, impl WholeRows>,
    weights: &[f64],
    row: &[i16],
    label: CodedLabel,
    roots: &mut [f64],
) -> bool {
    for (dot, weights) in roots.iter_mut().zip(weights.chunks_exact(problem.columns())) {
        *dot = float_dot(weights, row);
    }
    probabilities(roots);
    roots.iter_mut().for_each(|p| *p = (*p * (1.0 - *p)).max(CURVATURE_MIN).sqrt());
    problem.class(label).is_some()
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

#[cfg(test)]
mod tests {
    use super::super::tests::{cases, problem, rows};
    use super::*;

    /// The diagonal of `L L^T` is that of the products.
    #[test]
    fn squares_of_columns_are_the_diagonal_of_their_products() {
        for case in &cases() {
            let rows = rows(case, &case.labels, 3);
            let problem = problem(case, &rows);
            let of = |has_room: bool| {
                let mut curvature = Curvature::new(&case.minimum, problem.steepest());
                if !has_room {
                    curvature.factors.clear();
                }
                curvature.refresh(&problem, &case.centre);
                assert!(curvature.is_known() && curvature.is_factorised == has_room);
                curvature
            };
            let (with, without) = (of(true), of(false));
            let squares = with.factors.iter().flat_map(|factor| {
                factor
                    .chunks_exact(with.columns)
                    .enumerate()
                    .map(|(row, entries)| dot(&entries[..=row], &entries[..=row]))
            });
            let squares: Vec<f64> = squares.collect();
            assert_eq!(squares.len(), without.diagonals.len());
            for (square, found) in squares.iter().zip(&without.diagonals) {
                assert!(*found > 0.0 && (square / found - 1.0).abs() < 1e-9, "{square} {found}");
            }
        }
    }
}
