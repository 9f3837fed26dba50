//! The Functional Mechanism: noise on the coefficients of the loss as a polynomial of the weights, once, then a minimum.
//!
//! ```text
//!   linear     sum (y - x·w)²          = const - 2 t·w + w'G w            t = sum y x,   G = sum x x'
//!   logistic   sum ln(1 + e^(x·w)) - y x·w ≈ const + (w'G w)/8 - (t·w)/2   t = sum (2y - 1) x   (Taylor, degree 2)
//! ```
//! One draw of noise for each unordered monomial; Laplace noise on the L1 sensitivity of all of them together (as published),
//! or Gaussian noise on their L2 sensitivity. A quadratic without a minimum is repaired after the release.
//!
//! Source: Zhang, Zhang, Xiao, Yang, Winslett 2012, VLDB 5(11), Alg. 1 and sections 4 to 6; what is mended and why in
//! `docs/methods/functional.md`.

use std::num::NonZeroU32;
use std::sync::Arc;

use reticent_core::encoding::{Encoding, LATTICE_NORM_MAX};
use reticent_core::pass_weights::PassWeights;
use reticent_core::query::{ProductTarget, QueryShape};
use reticent_core::schema::TargetKind;
use reticent_math::quadratic_repair::{Repair, minimise};

use super::{FitRequest, Method, start_weights_with_intercept};
use crate::column_scaling::{from_bounds, leave_some_rows_whole, unit_cube};
use crate::gram_release::{GramRelease, Multipliers};
use crate::options::MethodOption;
use crate::plan::{Expectation, Plan, PlanError, plan_pure_release, plan_release};
use crate::prepared_fit::{FitError, Fitted, PreparedFit, Releases};

/// Name on the command line and in certificates.
pub const NAME: &str = "functional";

/// Coefficients of the monomials `w_j²`, `w_j w_l`, `w_j` as published, times 1 (linear) and times 8 (logistic).
const LINEAR_AS_PUBLISHED: Multipliers = Multipliers { diagonal: 1, off_diagonal: 2, cross: 2, square: 0 };
const LOGISTIC_AS_PUBLISHED: Multipliers = Multipliers { diagonal: 1, off_diagonal: 2, cross: 4, square: 0 };
/// For Gaussian noise: products need no more noise than squares (`41² < 2 · 29²`).
const LINEAR_GAUSSIAN: Multipliers = Multipliers { diagonal: 29, off_diagonal: 41, cross: 35, square: 0 };
const LOGISTIC_GAUSSIAN: Multipliers = Multipliers { diagonal: 29, off_diagonal: 41, cross: 41, square: 0 };

/// Standard deviations of the noise that regularisation adds to the diagonal: section 6.1 of the paper.
const RIDGE_DEVIATIONS: f64 = 4.0;
/// A symmetric `d x d` matrix of independent noise has a largest eigenvalue of about this times `sqrt(d)` deviations of an
/// entry beside the diagonal (Wigner). A smaller ridge leaves small positive eigenvalues that are noise, and their inverse as weights.
const SPECTRAL_DEVIATIONS: f64 = 2.0;

/// The method.
pub struct Functional;

impl Method for Functional {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "noise on the coefficients of a quadratic loss, once: Functional Mechanism (a number or two classes; pure epsilon)"
    }

    fn options(&self) -> &'static [MethodOption] {
        &[
            MethodOption {
                name: "noise",
                value: "KIND",
                help: "Noise: laplace (pure epsilon) or gaussian [default: laplace]",
                choices: &["laplace", "gaussian"],
            },
            MethodOption {
                name: "repair",
                value: "HOW",
                help: "What to do with a quadratic that has no minimum: a ridge as large as the noise's largest eigenvalue \
                       (spectral), of 4 standard deviations of one entry as published (regularise), or trim; rerun is \
                       refused, because it costs up to twice epsilon [default: spectral]",
                choices: &["spectral", "regularise", "trim", "rerun"],
            },
            MethodOption {
                name: "columns",
                value: "HOW",
                help: "Encode numbers centred with an intercept, or as published: in [0, 1] without one [default: centred]",
                choices: &["centred", "published"],
            },
            MethodOption {
                name: "intercept",
                value: "WHETHER",
                help: "Fit an intercept [default: yes, no with --columns published]",
                choices: &["yes", "no"],
            },
        ]
    }

    fn prepare(&self, request: &FitRequest<'_>) -> Result<PreparedFit, PlanError> {
        let (schema, options) = (request.schema, request.options);
        let logistic = match &schema.target().kind {
            TargetKind::Bounds { .. } => false,
            TargetKind::Classes(classes) if classes.len() == 2 => true,
            TargetKind::Classes(classes) => {
                let found = format!("{} classes", classes.len());
                return Err(PlanError::Target { method: NAME, fits: "a number (bounds) or two classes", found });
            }
        };
        if options.word("repair") == Some("rerun") {
            return Err(PlanError::Parameter(
                "--repair rerun is refused: drawing the noise again until the quadratic has a minimum makes the release \
                 depend on a condition whose probability differs between neighbouring tables; the result is private to twice \
                 epsilon only, and to no delta with gaussian noise. Use spectral, regularise or trim, which cost nothing"
                    .to_owned(),
            ));
        }
        let gaussian = options.word("noise") == Some("gaussian");
        let published = options.word("columns") == Some("published");
        if published && options.word("intercept") == Some("yes") {
            return Err(PlanError::Parameter("--columns published has no intercept; leave one of them out".to_owned()));
        }
        let intercept = !published && options.word("intercept") != Some("no");
        let (encoding, norm_bound) = if published { unit_cube(schema) } else { from_bounds(schema, intercept) };
        if !logistic {
            leave_some_rows_whole(schema, &encoding)?;
        }
        let start = match request.init {
            Some(init) => start_weights_with_intercept(init, schema, &encoding, intercept)?,
            None => vec![0.0; encoding.coding().columns().len()],
        };
        let multipliers = match (logistic, gaussian) {
            (false, false) => LINEAR_AS_PUBLISHED,
            (true, false) => LOGISTIC_AS_PUBLISHED,
            (false, true) => LINEAR_GAUSSIAN,
            (true, true) => LOGISTIC_GAUSSIAN,
        };
        let target = if logistic { ProductTarget::Class } else { ProductTarget::Number };
        let columns = encoding.coding().columns().len() as u32;
        let shape = QueryShape::of_schema(multipliers.map(columns, target), schema)?;
        let claim = request.claim;
        let purpose = "coefficients of the loss";
        let release = if gaussian {
            plan_release(NAME, purpose, shape, NonZeroU32::MIN, claim.mu_squared, &claim.relation)?
        } else {
            plan_pure_release(NAME, purpose, shape, claim.epsilon, &claim.relation)?
        };
        let unit = f64::from(LATTICE_NORM_MAX).powi(2) * f64::from(multipliers.diagonal);
        let expectations = vec![
            Expectation {
                name: "norm bound of a row",
                value: norm_bound,
                meaning: "L2, over encoded columns; products are in units of its square".to_owned(),
            },
            Expectation {
                name: "noise of a squared column",
                value: release.noise.standard_deviation(release.noise_scale) / unit,
                meaning:
                    "standard deviation of the sum over all rows, in rows of norm 1; regularisation adds four of it"
                        .to_owned(),
            },
        ];
        let plan = Plan::of(NAME, request, vec![release], expectations);
        let repair = match options.word("repair") {
            Some("trim") => RepairRule::Trim,
            Some("regularise") => RepairRule::AsPublished,
            Some(_) | None => RepairRule::Spectral,
        };
        let encoding = Arc::new(encoding);
        let fit = Fit { encoding: encoding.clone(), norm_bound, start, logistic, repair };
        Ok(PreparedFit::new(plan, Some(encoding), move |releases| fit.run(releases)))
    }
}

/// What is done with a quadratic that may have no minimum.
#[derive(Clone, Copy)]
enum RepairRule {
    Spectral,
    AsPublished,
    Trim,
}

struct Fit {
    encoding: Arc<Encoding>,
    norm_bound: f64,
    start: Vec<f64>,
    logistic: bool,
    repair: RepairRule,
}

impl Fit {
    fn run(&self, releases: &mut Releases<'_, '_>) -> Result<Fitted, FitError> {
        let released = releases.sum(0, &self.encoding, PassWeights::none())?;
        let gram = GramRelease::of(&released, &releases.planned(0).shape, &self.encoding);

        // w'G w - 2 t·w for numbers; eight times the logistic quadratic is w'G w - 2 (2 t)·w.
        let times = if self.logistic { 2.0 } else { 1.0 };
        let linear: Vec<f64> = gram.cross.iter().map(|value| times * value).collect();
        let centre: Vec<f64> = gram.columns.iter().map(|column| self.start[*column] * self.norm_bound).collect();
        let [diagonal, off_diagonal, ..] = gram.noise;
        let as_published = RIDGE_DEVIATIONS * diagonal;
        let largest_eigenvalue = SPECTRAL_DEVIATIONS * (gram.columns.len() as f64).sqrt() * off_diagonal;
        let repair = match self.repair {
            RepairRule::Trim => Repair::Trim { floor: 0.0 },
            RepairRule::AsPublished => Repair::Regularise(as_published),
            RepairRule::Spectral => Repair::Regularise(largest_eigenvalue.max(as_published)),
        };
        let minimum =
            minimise(&gram.upper, &linear, &centre, repair).map_err(|error| FitError::Numeric(error.to_string()))?;
        let weights: Vec<f64> = minimum.weights.iter().map(|weight| weight / self.norm_bound).collect();
        let all = self.encoding.coding().columns().len();
        Ok(Fitted { encoding: self.encoding.clone(), weights: gram.spread(&weights, all), covariance: None })
    }
}
