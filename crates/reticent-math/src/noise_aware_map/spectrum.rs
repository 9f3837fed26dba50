//! The posteriors of a linear release under all scales of the prior, by one decomposition.
//!
//! ```text
//!   H   = I + m m^T/s² + G/tau² = B + delta G      I: information,  m: mean row, and s the deviation of its score,  G: the columns' precisions
//!   B   = I + m m^T/s² + G/t²,   delta = 1/tau² - 1/t²,   t: the largest scale
//!   B   = L L^T,   L^-1 G L^-T = Q M Q^T,   W = L^-T Q
//!   H^-1 = W (1 + delta M)^-1 W^T,   |H| = |B| |1 + delta M|
//! ```
//! Columns of very unequal sizes cost no digits: a Cholesky factor does not feel them, and no value of `M` is above `t²`.

use std::rc::Rc;

use faer::{Mat, MatRef, Scale};

use super::algebra::{dot, log_determinant, mirror_lower_half};
use super::effect_sizes::Effects;
use super::information::Information;
use super::mixture::{Choice, Component, Mixture, Precision, TAU_STEPS, tau};
use super::{MapError, Prior, ResponseModel};
use crate::product::{add_lower_half, product};
use crate::symmetric_factors::{cholesky, eigen};

/// Directions in which a posterior is independent, whatever the prior's scale.
pub(super) struct Spectrum {
    /// `W`, column after column.
    directions: Mat<f64>,
    /// `M`.
    of_prior: Vec<f64>,
    /// What the release pulls each direction by.
    pull: Mat<f64>,
    /// The information's constant, and half the log determinant of `B`.
    constant: f64,
}

impl Spectrum {
    /// Of one linear output.
    pub(super) fn of(information: &Information, prior: &Prior, effects: Effects) -> Result<Self, MapError> {
        let widest = prior.precision_of_all(tau(TAU_STEPS - 1), effects, ResponseModel::Linear);
        let factor = cholesky(&(&information.information + &widest.matrix)).ok_or(MapError::Scale)?;
        let columns = prior.column_precisions(effects);
        let size = columns.len();
        let mut inverse = Mat::<f64>::identity(size, size);
        factor.L().solve_lower_triangular_in_place(inverse.as_mut());
        let scaled = Mat::from_fn(size, size, |row, column| inverse[(row, column)] * columns[column].sqrt());
        let mut of_prior = Mat::zeros(size, size);
        add_lower_half(of_prior.as_mut(), scaled.as_ref(), scaled.transpose());
        let eigen = eigen(of_prior.as_ref()).ok_or(MapError::Scale)?;
        let directions = product(inverse.transpose(), eigen.U());
        Ok(Self {
            pull: directions.transpose() * &information.pull,
            directions,
            // Rounding may leave a little less than nothing.
            of_prior: eigen.S().column_vector().iter().map(|value| value.max(0.0)).collect(),
            constant: information.constant + log_determinant(factor.L()),
        })
    }

    /// The posterior under one scale; its weight is the marginal likelihood.
    pub(super) fn posterior(self: &Rc<Self>, prior: &Prior, choice: Choice) -> Component<OfSpectrum> {
        let delta = choice.tau.powi(-2) - tau(TAU_STEPS - 1).powi(-2);
        let longer = |of_prior: &f64| 1.0 + delta * of_prior;
        let variances: Vec<f64> = self.of_prior.iter().map(|of_prior| 1.0 / longer(of_prior)).collect();
        let drawn = Mat::from_fn(variances.len(), 1, |place, _| self.pull[(place, 0)] * variances[place]);
        let half_log_determinant: f64 = self.of_prior.iter().map(|of_prior| longer(of_prior).ln() / 2.0).sum();
        let log_weight = choice.log_prior + dot(&self.pull, &drawn) / 2.0 - self.constant - half_log_determinant
            + prior.half_log_determinant(choice.tau, choice.effects);
        let mean = &self.directions * drawn;
        Component { log_weight, choice, mean, precision: OfSpectrum { spectrum: Rc::clone(self), variances } }
    }

    /// `w^T A w` of every direction `w`, of a symmetric matrix.
    pub(super) fn forms(&self, matrix: &Mat<f64>) -> Vec<f64> {
        let image = product(matrix, &self.directions);
        let form = |place: usize| {
            self.directions.col(place).iter().zip(image.col(place).iter()).map(|(value, image)| value * image).sum()
        };
        (0..image.ncols()).map(form).collect()
    }
}

/// A posterior by the directions of a spectrum.
pub(super) struct OfSpectrum {
    spectrum: Rc<Spectrum>,
    /// Of the directions: `(1 + delta M)^-1`.
    variances: Vec<f64>,
}

impl OfSpectrum {
    /// Trace of the covariance times a matrix that has these [forms](Spectrum::forms).
    pub(super) fn trace(&self, forms: &[f64]) -> f64 {
        forms.iter().zip(&self.variances).map(|(form, variance)| form * variance).sum()
    }
}

impl Precision for OfSpectrum {
    fn solved(&self, right: MatRef<'_, f64>) -> Mat<f64> {
        let directions = &self.spectrum.directions;
        let mut along = product(directions.transpose(), right);
        for column in along.col_iter_mut() {
            column.iter_mut().zip(&self.variances).for_each(|(value, variance)| *value *= variance);
        }
        product(directions, along)
    }
}

impl Mixture<OfSpectrum> {
    /// Second moments about a point; all posteriors of one spectrum take the time of one.
    pub(super) fn second_moments(&self, point: &Mat<f64>) -> Mat<f64> {
        let size = point.nrows();
        let mut sum = Mat::zeros(size, size);
        let mut of_spectra: Vec<(&Rc<Spectrum>, Vec<f64>)> = Vec::new();
        for (share, component) in self.weighted() {
            let apart = &component.mean - point;
            add_lower_half(sum.as_mut(), (&apart * Scale(share)).as_ref(), apart.transpose());
            let OfSpectrum { spectrum, variances } = &component.precision;
            if !of_spectra.last().is_some_and(|(last, _)| Rc::ptr_eq(last, spectrum)) {
                of_spectra.push((spectrum, vec![0.0; size]));
            }
            let (_, total) = of_spectra.last_mut().expect("one was added");
            total.iter_mut().zip(variances).for_each(|(total, variance)| *total += share * variance);
        }
        for (spectrum, variances) in of_spectra {
            let directions = &spectrum.directions;
            let scaled = Mat::from_fn(size, size, |row, place| directions[(row, place)] * variances[place]);
            add_lower_half(sum.as_mut(), scaled.as_ref(), directions.transpose());
        }
        mirror_lower_half(sum.as_mut());
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::super::algebra::{NormalPart, second_moments};
    use super::super::linearised::Linearised;
    use super::*;
    use crate::fixed_sequence::FixedSequence;

    /// Twelve columns of sizes from one to a million, two that are the same, one of a rare flag; a release of fewer numbers than columns.
    #[test]
    fn posteriors_are_those_of_one_factor_for_each_scale() {
        let mut sequence = FixedSequence::new(3);
        let mut features = Mat::from_fn(300, 12, |row, column| match column {
            0 => 1.0,
            1 => f64::from(u8::from(row == 7)),
            _ => 10f64.powi(column as i32 % 7) * sequence.next_uniform(),
        });
        (0..300).for_each(|row| features[(row, 3)] = features[(row, 2)]);
        let mut prior = Prior::new(features.as_ref(), ResponseModel::Linear, None);
        prior.effect_sizes = (0..12).map(|place| 0.5 + f64::from(place)).collect();
        let point = Linearised {
            parameters: Mat::zeros(12, 1),
            residual: Mat::from_fn(8, 1, |_, _| 9.0 * sequence.next_normal()),
            jacobian: features.subrows(0, 8).to_owned(),
            covariance: Mat::new(),
        };
        let information = Information::new(
            &point,
            &cholesky(&Mat::from_fn(8, 8, |row, column| 0.3 + f64::from(u8::from(row == column)))).expect("definite"),
        );
        for effects in [Effects::OfOneSize, Effects::OfOwnSizes] {
            let spectrum = Rc::new(Spectrum::of(&information, &prior, effects).expect("definite"));
            let (mut of_factors, mut of_spectrum) = (Mixture::default(), Mixture::default());
            for step in 0..TAU_STEPS {
                let choice = Choice::of_scale(step, effects, 1.0, &prior);
                let precision = prior.precision_of_all(choice.tau, effects, ResponseModel::Linear);
                let expected = information.posterior(&precision, choice).expect("definite");
                let found = spectrum.posterior(&prior, choice);
                assert!((found.log_weight - expected.log_weight).abs() < 1e-8, "{step}");
                assert!((&found.mean - &expected.mean).norm_max() < 1e-8 * expected.mean.norm_max(), "{step}");
                let (found_solved, solved) =
                    (found.precision.solved(features.transpose()), expected.precision.solved(features.transpose()));
                assert!((&found_solved - &solved).norm_max() < 1e-8 * solved.norm_max(), "{step}");
                of_factors.push(expected);
                of_spectrum.push(found);
            }
            let centre = of_spectrum.mean();
            let expected = second_moments(&centre, of_factors.parts().collect::<Vec<NormalPart<'_>>>());
            let found = of_spectrum.second_moments(&centre);
            assert!((&found - &expected).norm_max() < 1e-8 * expected.norm_max());
            let gram = features.transpose() * &features;
            let likeliest = of_spectrum.likeliest();
            let trace = likeliest.precision.trace(&spectrum.forms(&gram));
            let solved = likeliest.precision.solved(gram.as_ref());
            let expected: f64 = (0..12).map(|place| solved[(place, place)]).sum();
            assert!((trace - expected).abs() < 1e-8 * expected);
        }
    }
}
