//! A released Gram query in real units: the form in which methods of sufficient statistics read it.

use reticent_core::encoding::{Encoding, LATTICE_NORM_MAX};
use reticent_core::query::{Map, ProductTarget, QueryShape};
use reticent_core::sum::Release;

/// Multipliers of the blocks of a Gram query: see [`Map::Gram`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Multipliers {
    /// Of the squares `q_j²`.
    pub diagonal: u32,
    /// Of the products `q_j q_l`.
    pub off_diagonal: u32,
    /// Of the products with the target.
    pub cross: u32,
    /// Of the target's square; 0 leaves it out.
    pub square: u32,
}

impl Multipliers {
    /// The query that they belong to.
    #[must_use]
    pub fn map(self, columns: u32, target: ProductTarget) -> Map {
        let Self { diagonal, off_diagonal, cross, square } = self;
        Map::Gram { columns, target, diagonal, off_diagonal, cross, square }
    }
}

/// Noisy sums over rows of norm at most 1 and targets in `[-1, 1]`, for the columns whose scale is not zero.
#[derive(Clone, Debug, PartialEq)]
pub struct GramRelease {
    /// Places of the columns that take part, among those of the encoding.
    pub columns: Vec<usize>,
    /// Upper triangle of the sum of `q qᵀ`, row after row.
    pub upper: Vec<f64>,
    /// Sum of `y q`.
    pub cross: Vec<f64>,
    /// Sum of `y²`, where it was asked for.
    pub square: Option<f64>,
    /// Standard deviation of the noise of a squared coordinate, a product, a product with the target, and the target's
    /// square (infinite where not asked for).
    pub noise: [f64; 4],
}

impl GramRelease {
    /// Reads the release of a Gram query.
    ///
    /// # Panics
    /// When the release is not one of that shape: a mistake in a method's code.
    #[must_use]
    pub fn of(release: &Release, shape: &QueryShape, encoding: &Encoding) -> Self {
        let Map::Gram { columns, diagonal, off_diagonal, cross, square, .. } = *shape.map() else {
            panic!("a Gram query was released")
        };
        let all = columns as usize;
        let unit = f64::from(LATTICE_NORM_MAX).powi(2);
        let taken: Vec<usize> = (0..all).filter(|column| encoding.scale()[*column].abs() > 0.0).collect();
        let values = release.values();
        let mut values = values.into_iter();
        let mut upper = Vec::with_capacity(taken.len() * (taken.len() + 1) / 2);
        for row in 0..all {
            for column in row..all {
                let value = values.next().expect("one value a pair");
                let multiplier = if row == column { diagonal } else { off_diagonal };
                if taken.contains(&row) && taken.contains(&column) {
                    upper.push(value / (f64::from(multiplier) * unit));
                }
            }
        }
        let with_target: Vec<f64> = values.by_ref().take(all).collect();
        Self {
            cross: taken.iter().map(|column| with_target[*column] / (f64::from(cross) * unit)).collect(),
            square: values.next().map(|value| value / (f64::from(square) * unit)),
            noise: [diagonal, off_diagonal, cross, square]
                .map(|multiplier| release.noise_standard_deviation / (f64::from(multiplier) * unit)),
            columns: taken,
            upper,
        }
    }

    /// Values of the columns that take part, put back among all columns, zero elsewhere.
    #[must_use]
    pub fn spread(&self, values: &[f64], all: usize) -> Vec<f64> {
        let mut spread = vec![0.0; all];
        for (column, value) in self.columns.iter().zip(values) {
            spread[*column] = *value;
        }
        spread
    }

    /// The same for a square matrix, row after row.
    #[must_use]
    pub fn spread_matrix(&self, values: &[f64], all: usize) -> Vec<f64> {
        let taken = self.columns.len();
        let mut spread = vec![0.0; all * all];
        for (at, value) in values.iter().enumerate() {
            spread[self.columns[at / taken] * all + self.columns[at % taken]] = *value;
        }
        spread
    }
}

#[cfg(test)]
mod tests {
    use reticent_core::adjacency::PrivacyUnit;
    use reticent_core::coding::Coding;
    use reticent_core::encoding::NormRule;
    use reticent_core::schema::Schema;

    use super::*;

    #[test]
    fn blocks_come_out_in_their_own_units_without_columns_of_scale_zero() {
        let schema = Schema::from_text(
            "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nbounds = [0, 1]\n\
             [features]\na = { bounds = [0, 1] }\nb = { bounds = [0, 1] }\n",
        )
        .expect("legal");
        let encoding = Encoding::new(Coding::of(&schema), vec![0.0; 3], vec![0.0, 1.0, 1.0], NormRule::Clip(1.0));
        let multipliers = Multipliers { diagonal: 2, off_diagonal: 3, cross: 5, square: 7 };
        let shape = QueryShape::new(multipliers.map(3, ProductTarget::Number), PrivacyUnit::Row, 10).expect("small");
        let unit = 32767i128 * 32767;
        // (0,0) (0,1) (0,2) (1,1) (1,2) (2,2), then three with the target, then its square.
        let integers = [9, 9, 9, 2 * 11, 3 * 12, 2 * 13, 9, 5 * 14, 5 * 15, 7 * 16].map(|value: i128| value * unit);
        let release = Release { integers: integers.to_vec(), step: 1.0, noise_standard_deviation: 210.0 * unit as f64 };
        let read = GramRelease::of(&release, &shape, &encoding);
        assert_eq!(read.columns, [1, 2]);
        assert_eq!(read.upper, [11.0, 12.0, 13.0]);
        assert_eq!(read.cross, [14.0, 15.0]);
        assert_eq!(read.square, Some(16.0));
        assert_eq!(read.noise.to_vec(), [105.0, 70.0, 42.0, 30.0]);
        assert_eq!(read.spread(&[1.0, 2.0], 3), [0.0, 1.0, 2.0]);
        assert_eq!(read.spread_matrix(&[1.0, 2.0, 3.0, 4.0], 3), [0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 0.0, 3.0, 4.0]);
    }
}
