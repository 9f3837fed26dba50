//! The noisy statistic: one release of `sum_i a_i d_i`, the votes times public vectors, then a noise-aware estimate.
//!
//! ```text
//!   sensitivity in shares of votes:  ||sum_i delta_i d_i|| <= sqrt(n lambda_max(DᵀD)) / M for |delta_i| <= 1   (sqrt(2) with classes)
//!   of two classes a party's sum is shortened to 17/20 of what that allows it
//!   vectors:  d_i = S^-1/2 x_i, S = XᵀX/n:  then lambda_max(DᵀD) = n, and the noise in Xᵀ a has covariance n² S / (M mu)²
//! ```
//! Among all linear maps this covariance is the least, in every direction at once: a bound of `n²` on the largest
//! eigenvalue of `n A XᵀX Aᵀ` says `(AᵀA)⁻¹ >= S` up to scale. So, unlike for single labels, there is nothing to trade off.
//!
//! Source: Hamm, Cao, Belkin 2016 for the setting; the statistic, its spectral bound and the whitening are derived in
//! `docs/methods/party.md`, rows F91 and F93 of `docs/formulas.md`.

use std::num::NonZeroU32;
use std::sync::Arc;

use reticent_core::public_matrix::{MATRIX_NORM_MAX, PublicMatrix};
use reticent_core::query::{Map, ProductTarget, QueryShape, VOTE_STEPS};
use reticent_core::target_window::TargetWindow;
use reticent_math::noise_aware_map::{self, Prior, ResponseModel, Statistic};
use reticent_math::public_rows::PublicRows;
use reticent_math::{Mat, MatRef, whitening};

use super::auxiliary::integer_rows;
use super::{Auxiliary, Combiner, PartyRequest, plan};
use crate::method::outputs;
use crate::method::walr::check_coefficients;
use crate::plan::{Expectation, PlanError, plan_release};
use crate::prepared_fit::{Covariance, FitError, Fitted, PreparedFit, Releases};

const NAME: &str = Combiner::NoisyStatistic.name();

/// Noise of a mean vote from which on a plan says so: `M mu` is some 10 there.
const MOSTLY_NOISE: f64 = 0.1;

struct Fit {
    auxiliary: Auxiliary,
    matrix: Arc<PublicMatrix>,
    parties: f64,
    outputs: usize,
}

/// Plans the one release.
pub(super) fn prepare(request: &PartyRequest<'_>) -> Result<PreparedFit, PlanError> {
    let (schema, claim, auxiliary) = (request.fit.schema, request.fit.claim, request.auxiliary);
    let outputs = outputs(schema);
    check_coefficients(NAME, outputs * auxiliary.columns(), "take --combiner party-soft-labels")?;
    let matrix = Arc::new(whitened_rows(auxiliary)?);
    let eigenvalue = matrix.eigenvalue_bound().map_err(|error| PlanError::Parameter(error.to_string()))?;
    let map = Map::MatrixProduct {
        columns: matrix.columns() as u32,
        outputs: outputs as u32,
        target: ProductTarget::Class,
        label_low: 0,
        label_high: VOTE_STEPS,
        rows: matrix.rows() as u64,
        row_norm_square: matrix.row_norm_square(),
        eigenvalue,
    };
    let shape = QueryShape::new(map, schema.privacy().unit.clone(), matrix.rows() as u64)?;
    let purpose = "votes times auxiliary rows";
    let release = plan_release(NAME, purpose, shape, NonZeroU32::MIN, claim.mu_squared, &claim.relation)?;
    let parties = request.parties as f64;
    let root = (eigenvalue as f64 * matrix.rows() as f64).sqrt();
    let noise = release.noise_scale.get() as f64 / (f64::from(VOTE_STEPS) * parties * root);
    let advice = if noise < MOSTLY_NOISE {
        ""
    } else {
        ": the model will be little more than the base rate or noise; take more parties or a larger epsilon"
    };
    let expectations = vec![Expectation {
        name: "noise of a mean vote",
        value: noise,
        meaning: format!(
            "standard deviation along every direction of the auxiliary rows, in shares of the votes{advice}"
        ),
    }];
    let plan = plan(Combiner::NoisyStatistic, request, release, expectations);
    let fit = Fit { auxiliary: auxiliary.clone(), matrix, parties, outputs };
    Ok(PreparedFit::new(plan, None, move |releases| fit.run(releases)))
}

/// `S^-1/2 x_i` in the basis of S, over the largest norm, as integers.
fn whitened_rows(auxiliary: &Auxiliary) -> Result<PublicMatrix, PlanError> {
    let (rows, columns) = (auxiliary.rows(), auxiliary.columns());
    let features = auxiliary.features();
    let whitened = whitening::whitened(MatRef::from_row_major_slice(&features, rows, columns))
        .ok_or_else(|| PlanError::Parameter("the auxiliary rows are too badly scaled; check the bounds".to_owned()))?;
    let by_row: Vec<f64> = (0..rows).flat_map(|row| whitened.row(row).iter().copied().collect::<Vec<_>>()).collect();
    Ok(integer_rows(whitened.ncols(), &by_row))
}

impl Fit {
    fn run(&self, releases: &mut Releases<'_, '_>) -> Result<Fitted, FitError> {
        let released = releases.of_matrix(0, &self.matrix, TargetWindow::BOUNDS)?;
        let (rows, columns) = (self.matrix.rows(), self.matrix.columns());
        let (step, whole) = (1.0 / f64::from(MATRIX_NORM_MAX), f64::from(VOTE_STEPS) * self.parties);
        let sums = released.values();
        let all: Vec<usize> = (0..columns).collect();
        let shares =
            Mat::from_fn(columns, self.outputs, |column, output| sums[output * columns + column] * step / whole);
        let model = match self.outputs {
            1 => ResponseModel::Logistic,
            classes => ResponseModel::Multinomial { classes },
        };
        let features = self.auxiliary.features();
        let features = MatRef::from_row_major_slice(&features, rows, self.auxiliary.columns());
        let statistic = Statistic {
            features: features.into(),
            rows: PublicRows::of_integers(self.matrix.values(), columns, &all, step),
            released: shares.as_ref(),
            noise: released.noise_standard_deviation * step / whole,
            labels_per_row: self.parties,
            square: None,
        };
        let prior = Prior::new(features, model, None);
        let estimate =
            noise_aware_map::fit(&statistic, model, &prior).map_err(|error| FitError::Numeric(error.to_string()))?;
        let weights =
            (0..self.outputs).flat_map(|output| estimate.weights.col(output).iter().copied().collect::<Vec<_>>());
        let size = estimate.covariance.nrows();
        let values = (0..size * size).map(|place| estimate.covariance[(place / size, place % size)]).collect();
        Ok(Fitted {
            encoding: self.auxiliary.encoding().clone(),
            weights: weights.collect(),
            covariance: Some(Covariance { values, column_means: self.auxiliary.encoding().centre().to_vec() }),
        })
    }
}
