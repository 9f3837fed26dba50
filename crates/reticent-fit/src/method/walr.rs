//! WALR: regression on public features and private labels, from one noisy linear sum of the labels.
//!
//! ```text
//!   t = sum_i y_i q_i + noise     q_i: public integer vectors, one a row, of norm at most 2^20;  y_i: the private label
//! ```
//! For a canonical link the labels enter the loss only through such a sum, so one release pays for any number of steps,
//! solvers and trials. Of labels that are numbers, noisy counts by bin come first: they say in what part of their bounds the sum
//! reads them. `noise-aware` (default) chooses `q_i` for the estimate and fits with the noise taken into account;
//! `full-batch` and `hybrid-minibatch` are gradient descents with `q_i` the features times a constant, as published.
//!
//! [`public_matrix`] and [`estimate`] are pure functions of public values, so that two organisations can run the parts on
//! their own sides. `docs/methods/walr.md` has the guarantee, the departures from the source and their reasons.

use std::num::NonZeroU32;
use std::sync::Arc;

use reticent_core::coding::{CODE_MAX, Coding};
use reticent_core::encoding::{Encoding, LATTICE_NORM_MAX, NormRule};
use reticent_core::label_query::{number_questions, number_shares};
use reticent_core::ledger::PlannedRelease;
use reticent_core::public_features::PublicFeatures;
use reticent_core::public_matrix::{MATRIX_NORM_MAX, PublicMatrix};
use reticent_core::query::{COUNT_STEP, Map, NUMBER_BINS, ProductTarget, QueryShape};
use reticent_core::schema::{Schema, TargetKind};
use reticent_core::target_window::TargetWindow;
use reticent_math::Mat;
use reticent_math::label_search::{LabelCounts, LabelSearch};
use reticent_math::noise_aware_map::{self, Noisy, Prior, ResponseModel, Statistic};
use reticent_math::public_design::{self, Curvature};
use reticent_math::public_rows::PublicRows;
use reticent_math::range_search::BoundsPart;
use reticent_math::released_gradient::{self, Descent, LINEAR_RATE_MAX};
use reticent_math::target_look::Look;
use thiserror::Error;

use super::{FitRequest, Method, start_weights};
use crate::options::{MethodOption, Options};
use crate::plan::{Expectation, Plan, PlanError, plan_release};
use crate::prepared_fit::{Covariance, FitError, Fitted, PreparedFit, Releases};
use crate::public_ranges::{within_held_ranges, within_ranges};
use crate::row_number::expected_rows;

/// Name on the command line and in certificates.
pub const NAME: &str = "walr";

/// Prior standard deviation of a standardised effect that the vectors are chosen for, in log-odds: together effects make scores that vary by
/// no more than [`DESIGN_SCORE`], or little budget would go to effects that it cannot find, and the rates of the classes be lost.
const DESIGN_EFFECT: f64 = 0.5;
const DESIGN_SCORE: f64 = 1.0;
/// The same for numbers, whose labels lie in `[-1, 1]`; and the variance around their mean that is assumed there.
const DESIGN_EFFECT_NUMBER: f64 = 0.15;
const DESIGN_VARIANCE_NUMBER: f64 = 0.05;
/// Coefficients up to which the estimate is made: it solves systems of as many equations over and over.
const COEFFICIENTS_MAX: usize = 4096;
/// Coefficients up to which that takes seconds.
pub(super) const COEFFICIENTS_QUICK: usize = 500;
/// Default number of steps of the published solvers.
const STEPS: u32 = 1_000;
/// Default batch of `hybrid-minibatch`.
const BATCH: u32 = 256;

/// The method.
pub struct Walr;

impl Method for Walr {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "public features, private labels: one noisy sum of labels (numbers, two classes, many classes)"
    }

    fn options(&self) -> &'static [MethodOption] {
        &[
            MethodOption {
                name: "solver",
                value: "SOLVER",
                help: "noise-aware, or as published: full-batch or hybrid-minibatch gradient descent \
                       [default: noise-aware]",
                choices: &["noise-aware", "full-batch", "hybrid-minibatch"],
            },
            MethodOption {
                name: "learning-rate",
                value: "RATE",
                help: "Step length of gradient descent [default: 1 over the largest curvature of the public features]",
                choices: &[],
            },
            MethodOption {
                name: "steps",
                value: "STEPS",
                help: "Steps of gradient descent [default: 1000]",
                choices: &[],
            },
            MethodOption {
                name: "batch",
                value: "ROWS",
                help: "Rows a step for the part of the gradient without labels, hybrid-minibatch [default: 256]",
                choices: &[],
            },
            MethodOption {
                name: "l2",
                value: "L2",
                help: "L2 penalty: adds L2/2 times the squared norm of the encoded weights, intercept excepted, to the \
                       summed loss [default: 0]",
                choices: &[],
            },
        ]
    }

    fn prepare(&self, request: &FitRequest<'_>) -> Result<PreparedFit, PlanError> {
        let checked = Checked::new(request)?;
        let plan = plan(&checked, request)?;
        // No question goes over encoded rows.
        Ok(PreparedFit::new(plan, None, move |releases| run(&checked, releases)))
    }
}

/// How a model is made of the released sum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Settings {
    /// Vectors chosen for the estimate; posterior mean and covariance.
    NoiseAware,
    /// Gradient descent as published; vectors are the features times a constant.
    Descent(Descent),
}

impl Settings {
    /// Reads the method's options.
    ///
    /// # Errors
    /// [`PlanError::Parameter`] names an option out of range, or one that the solver does not have.
    pub fn of(options: &Options) -> Result<Self, PlanError> {
        let solver = options.word("solver").unwrap_or("noise-aware");
        let refuse = |name: &str, solvers: &str| match options.word(name) {
            Some(_) => Err(PlanError::Parameter(format!("--{name} is for --solver {solvers}, not {solver}"))),
            None => Ok(()),
        };
        if solver == "noise-aware" {
            for name in ["learning-rate", "steps", "batch", "l2"] {
                refuse(name, if name == "batch" { "hybrid-minibatch" } else { "full-batch or hybrid-minibatch" })?;
            }
            return Ok(Self::NoiseAware);
        }
        let batch = if solver == "hybrid-minibatch" {
            let batch = options.whole_number("batch", 1..=1 << 24)?.unwrap_or(BATCH);
            Some(batch as usize)
        } else {
            refuse("batch", "hybrid-minibatch")?;
            None
        };
        Ok(Self::Descent(Descent {
            learning_rate: options.number("learning-rate", "a finite number above 0", |rate| rate > 0.0)?,
            steps: options.whole_number("steps", 1..=10_000_000)?.unwrap_or(STEPS),
            batch,
            l2: options.number("l2", "a finite number of at least 0", |l2| l2 >= 0.0)?.unwrap_or(0.0),
        }))
    }
}

/// The model that a schema's target asks for.
#[must_use]
pub fn response_model(schema: &Schema) -> ResponseModel {
    match &schema.target().kind {
        TargetKind::Bounds { .. } => ResponseModel::Linear,
        TargetKind::Classes(classes) if classes.len() == 2 => ResponseModel::Logistic,
        TargetKind::Classes(classes) => ResponseModel::Multinomial { classes: classes.len() },
    }
}

/// Largest integer that stands for a label: a number's `[-1, 1]` in 32767 steps, a class as 0 or 1.
#[must_use]
pub fn label_unit(model: ResponseModel) -> f64 {
    match model {
        ResponseModel::Linear => f64::from(LATTICE_NORM_MAX),
        ResponseModel::Logistic | ResponseModel::Multinomial { .. } => 1.0,
    }
}

/// The question: labels times the rows of a matrix with so many columns and rows of norm up to `2^20`.
#[must_use]
pub fn product_map(model: ResponseModel, columns: u32) -> Map {
    let norm = u64::from(MATRIX_NORM_MAX.unsigned_abs());
    let (target, label_low, label_high) = match model {
        ResponseModel::Linear => (ProductTarget::Number, -i32::from(LATTICE_NORM_MAX), i32::from(LATTICE_NORM_MAX)),
        ResponseModel::Logistic | ResponseModel::Multinomial { .. } => (ProductTarget::Class, 0, 1),
    };
    Map::MatrixProduct {
        columns,
        outputs: model.outputs() as u32,
        target,
        label_low,
        label_high,
        rows: 0,
        row_norm_square: norm * norm,
        eigenvalue: 0,
    }
}

/// Planned noise of a coordinate of that answer, in labels of size 1 times vectors of norm 1.
fn product_noise(product: &PlannedRelease, model: ResponseModel) -> f64 {
    product.noise_scale.get() as f64 / (f64::from(MATRIX_NORM_MAX) * label_unit(model))
}

/// Features that no vectors can be made of, and why.
#[derive(Debug, Error)]
#[error("the public features do not allow this fit: {0}")]
pub struct UnfitFeatures(String);

/// A release that no model could be computed of, and why.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct NoEstimate(String);

/// The public integer vectors of the rows: one column a feature column, those that are not needed zero; every row's norm is
/// at most `2^20`.
///
/// `noise_scale` is the planned noise of one released integer: the vectors that are best depend on it. Any value is valid.
/// A pure function of public values: privacy needs only the norms, which [`PublicMatrix`] checks.
///
/// # Errors
/// [`UnfitFeatures`] when the features are empty, not finite or too badly scaled.
pub fn public_matrix(
    features: &PublicFeatures,
    model: ResponseModel,
    settings: &Settings,
    noise_scale: f64,
) -> Result<PublicMatrix, UnfitFeatures> {
    let rows = rows_of(features);
    let integers = match settings {
        Settings::NoiseAware => {
            let of_classes = DESIGN_EFFECT.min(DESIGN_SCORE / (features.columns as f64 - 1.0).max(1.0).sqrt());
            let (curvature, effect) = match model {
                ResponseModel::Linear => (Curvature::linear(DESIGN_VARIANCE_NUMBER), DESIGN_EFFECT_NUMBER),
                ResponseModel::Logistic => (Curvature::logistic(0.5), of_classes),
                ResponseModel::Multinomial { classes } => (Curvature::multinomial(classes), of_classes),
            };
            let noise = noise_scale / (f64::from(MATRIX_NORM_MAX) * label_unit(model));
            let precision = Prior::new(rows, model, None).precision(effect);
            let map = public_design::fit(rows, curvature, noise, precision.as_ref()).map_err(unfit)?;
            map.integer_rows(rows, features.columns)
        }
        Settings::Descent(_) => public_design::integer_multiples(rows, 1.0 / rows.longest_row()),
    };
    PublicMatrix::new(features.columns, integers).map_err(unfit)
}

/// What was released about the labels.
#[derive(Clone, Copy, Debug)]
pub struct Released<'a> {
    /// The matrix that the labels were multiplied with, one row for each row of the features, in their order.
    pub matrix: &'a PublicMatrix,
    /// Released integers: one a column of the matrix, output after output.
    pub sums: &'a [f64],
    /// Standard deviation of the noise of one of them.
    pub noise: f64,
    /// Numeric target: the part of its bounds that was read as `[-1, 1]`.
    pub window: TargetWindow,
    /// Numeric target: the sum of squared labels in that window, if it was released.
    pub square: Option<Noisy>,
}

/// The model that the release suggests: weights of the plain encoded columns, output after output, and their covariance
/// where the solver knows it.
///
/// `start` is a public model's weights in the same order: prior mean, or first iterate. A pure function of public values.
///
/// # Errors
/// [`NoEstimate`] when sizes contradict each other, values are not finite, or a descent grows without bound.
pub fn estimate(
    features: &PublicFeatures,
    released: &Released<'_>,
    model: ResponseModel,
    settings: &Settings,
    start: Option<&[f64]>,
) -> Result<(Vec<f64>, Option<Vec<f64>>), NoEstimate> {
    let (columns, outputs) = (features.columns, model.outputs());
    let matrix = released.matrix;
    if released.sums.len() != outputs * matrix.columns() || matrix.rows() != features.rows() {
        return Err(NoEstimate(format!(
            "{} released numbers and {} vectors do not belong to {} rows with {columns} columns and {outputs} outputs",
            released.sums.len(),
            matrix.rows(),
            features.rows(),
        )));
    }
    let norm = f64::from(MATRIX_NORM_MAX);
    // What was released of a column of zeros is nothing but noise.
    let mut has_values = vec![false; matrix.columns()];
    for row in matrix.values().chunks_exact(matrix.columns()) {
        has_values.iter_mut().zip(row).for_each(|(has, value)| *has |= *value != 0);
    }
    // The published solvers have a weight for every column.
    let is_taken = |column: &usize| has_values[*column] || *settings != Settings::NoiseAware;
    let taken: Vec<usize> = (0..matrix.columns()).filter(is_taken).collect();
    let unit = norm * label_unit(model);
    let sums = Mat::from_fn(taken.len(), outputs, |column, output| {
        let column = taken[column];
        if has_values[column] { released.sums[output * matrix.columns() + column] / unit } else { 0.0 }
    });
    let rows = rows_of(features);
    let statistic = Statistic {
        features: rows,
        rows: PublicRows::of_integers(matrix.values(), matrix.columns(), &taken, 1.0 / norm),
        released: sums.as_ref(),
        noise: released.noise / unit,
        labels_per_row: 1.0,
        square: released.square,
    };
    // From the bounds of the target to its window; from there back below. The intercept, the first column, is 1 in every row.
    let (centre, half) = (released.window.centre(), released.window.half());
    let centre = |column: usize| if column == 0 { centre } else { 0.0 };
    let start = start.map(|start| {
        Mat::from_fn(columns, outputs, |column, output| (start[output * columns + column] - centre(column)) / half)
    });
    let start = start.as_ref().map(|start| start.as_ref());
    let (weights, covariance) = match settings {
        Settings::NoiseAware => {
            let prior = Prior::new(rows, model, start);
            let estimate = noise_aware_map::fit(&statistic, model, &prior).map_err(no_estimate)?;
            (estimate.weights, Some(estimate.covariance))
        }
        Settings::Descent(descent) => {
            let weights = released_gradient::descend(&statistic, model, rows.longest_row(), descent, start);
            (weights.map_err(no_estimate)?, None)
        }
    };
    let weight = |column: usize, output: usize| weights[(column, output)] * half + centre(column);
    let listed = (0..outputs * columns).map(|place| weight(place % columns, place / columns)).collect();
    // What a second constant column does the intercept does: nothing is known of it, and the prior that draws it to nothing is no knowledge.
    let is_told = |column: usize| {
        let first = features.codes[column];
        let of_column = || features.codes.iter().skip(column).step_by(columns);
        column == 0 || first == 0 || of_column().any(|code| *code != first)
    };
    let told: Vec<f64> = (0..columns).map(|column| if is_told(column) { half } else { 0.0 }).collect();
    let covariance = covariance.map(|covariance| {
        let size = covariance.nrows();
        let of_place =
            |(row, column): (usize, usize)| covariance[(row, column)] * told[row % columns] * told[column % columns];
        (0..size * size).map(|place| of_place((place / size, place % size))).collect()
    });
    Ok((listed, covariance))
}

/// The features as they are fitted, and the encoding that says so: the default reads numbers [where they are found](crate::public_ranges), and by the
/// published solvers features are taken as they come.
pub(crate) fn read_features(
    features: PublicFeatures,
    encoding: &Encoding,
    model: ResponseModel,
    settings: &Settings,
) -> (PublicFeatures, Encoding) {
    match (model, settings) {
        (ResponseModel::Logistic | ResponseModel::Multinomial { .. }, Settings::NoiseAware) => {
            let (features, ranges) = within_ranges(features, encoding.coding());
            (features, encoding.clone().within(ranges))
        }
        (ResponseModel::Linear, Settings::NoiseAware) => {
            let (features, ranges) = within_held_ranges(features, encoding.coding());
            (features, encoding.clone().within(ranges))
        }
        (_, Settings::Descent(_)) => (features, encoding.clone()),
    }
}

fn rows_of(features: &PublicFeatures) -> PublicRows<'_> {
    PublicRows::of_codes(&features.codes, features.columns, 1.0 / f64::from(CODE_MAX))
}

fn unfit(error: impl std::fmt::Display) -> UnfitFeatures {
    UnfitFeatures(error.to_string())
}

fn no_estimate(error: impl std::fmt::Display) -> NoEstimate {
    NoEstimate(error.to_string())
}

fn numeric(error: impl std::fmt::Display) -> FitError {
    FitError::Numeric(error.to_string())
}

/// Parameters that fit the schema.
struct Checked {
    encoding: Encoding,
    model: ResponseModel,
    settings: Settings,
    start: Option<Vec<f64>>,
}

/// Number of coefficients of a schema's model.
pub(super) fn coefficients(schema: &Schema) -> usize {
    super::outputs(schema) * Coding::of(schema).columns().len()
}

/// Refuses a model that the estimate could not be made of, before anything is paid: for its size, or for steps that are too long for any features.
///
/// By the schema alone: until a fit is paid, which rows have a usable label is nobody's to know, and so are their features. How many there
/// are is looked at when the features are asked for, which is before the payment, too.
///
/// # Errors
/// [`PlanError::Parameter`].
pub fn check_estimate(schema: &Schema, settings: &Settings) -> Result<(), PlanError> {
    if *settings == Settings::NoiseAware {
        let instead = "take a published solver, --solver full-batch; in `fit`, --method noisy-gd takes more";
        check_coefficients(NAME, coefficients(schema), instead)?;
    }
    if let Settings::Descent(Descent { learning_rate: Some(rate), .. }) = settings
        && response_model(schema) == ResponseModel::Linear
        && *rate > LINEAR_RATE_MAX
    {
        return Err(PlanError::Parameter(format!(
            "--learning-rate must be at most {LINEAR_RATE_MAX} for a number: with longer steps the weights grow without bound; leave it out, and \
             it fits the features"
        )));
    }
    Ok(())
}

/// Refuses more coefficients than the noise-aware estimate takes; `instead` is what does.
pub(crate) fn check_coefficients(method: &str, found: usize, instead: &str) -> Result<(), PlanError> {
    if found <= COEFFICIENTS_MAX {
        return Ok(());
    }
    Err(PlanError::Parameter(format!(
        "{method} estimates at most {COEFFICIENTS_MAX} coefficients, columns times classes, and this schema has {found}; list fewer features, \
         categories or hash buckets, or {instead}"
    )))
}

impl Checked {
    fn new(request: &FitRequest<'_>) -> Result<Self, PlanError> {
        let settings = Settings::of(request.options)?;
        check_estimate(request.schema, &settings)?;
        let coding = Coding::of(request.schema);
        let columns = coding.columns().len();
        let longest = Encoding::largest_norm(&coding, &vec![0.0; columns], &vec![1.0; columns]);
        let encoding = Encoding::plain(coding, NormRule::Clip(longest));
        Ok(Self {
            start: request.init.map(|model| start_weights(model, request.schema, &encoding)).transpose()?,
            model: response_model(request.schema),
            settings,
            encoding,
        })
    }
}

/// Plans the fit: the sum of labels times vectors, after what `noise-aware` asks of numbers.
fn plan(checked: &Checked, request: &FitRequest<'_>) -> Result<Plan, PlanError> {
    let (schema, claim) = (request.schema, request.claim);
    let columns = checked.encoding.coding().columns().len() as u32;
    let release = |purpose: &str, map, share| {
        plan_release(NAME, purpose, QueryShape::of_schema(map, schema)?, NonZeroU32::MIN, share, &claim.relation)
    };
    let mut left = claim.mu_squared;
    let mut releases = Vec::new();
    if checked.model == ResponseModel::Linear && checked.settings == Settings::NoiseAware {
        let (shares, rest) = number_shares(left, expected_rows(schema), &claim.relation.unit);
        left = rest;
        let bins = |look: Look| -> Result<u32, PlanError> {
            // What one label moves is the same with few bins and with many.
            let map = Map::LabelsByBin { bins: NUMBER_BINS.0 };
            let noise_scale = release("labels by bin", map, look.of([shares[0], shares[1]]))?.noise_scale;
            let noise = noise_scale.get() as f64 / COUNT_STEP as f64 / expected_rows(schema);
            Ok(look.bins(noise, schema.privacy().rows.is_some()))
        };
        let questions = number_questions([bins(Look::OverBounds)?, bins(Look::InPart)?]);
        for ((purpose, map), share) in questions.into_iter().zip(shares) {
            releases.push(release(purpose, map, share)?);
        }
    }
    releases.push(release("labels times public vectors", product_map(checked.model, columns), left)?);
    let noise = product_noise(releases.last().expect("just planned"), checked.model);
    let mut expectations = vec![Expectation {
        name: "noise of a coordinate",
        value: noise,
        meaning: if releases.len() > 1 {
            "standard deviation, in vectors of norm 1 times labels with the part of their bounds where they are found as -1 to 1"
        } else {
            "standard deviation, in labels of size 1 times vectors of norm 1"
        }
        .to_owned(),
    }];
    if let Some(rows) = schema.privacy().rows {
        let variance = match checked.model {
            ResponseModel::Linear => DESIGN_VARIANCE_NUMBER,
            ResponseModel::Logistic => 0.25,
            ResponseModel::Multinomial { classes } => 1.0 / classes as f64,
        };
        expectations.push(Expectation {
            name: "noise against sampling error",
            value: noise / (variance * rows as f64 / f64::from(columns)).sqrt(),
            meaning: "below 1 privacy costs little; if all vectors had norm 1".to_owned(),
        });
    }
    Ok(Plan::of(NAME, request, releases, expectations))
}

/// Vectors of the public features, then the releases, then the estimate.
fn run(checked: &Checked, releases: &mut Releases<'_, '_>) -> Result<Fitted, FitError> {
    let features = releases.public_features(checked.encoding.coding().columns().len())?;
    // How many rows there are depends on which labels are usable: from here on their classes are the ones that were paid for.
    releases.pay()?;
    let last = releases.count() - 1;
    let (features, encoding) = read_features(features, &checked.encoding, checked.model, &checked.settings);
    let planned = releases.planned(last);
    let (noise_scale, noise) = (planned.noise_scale.get() as f64, product_noise(planned, checked.model));
    let matrix = public_matrix(&features, checked.model, &checked.settings, noise_scale).map_err(numeric)?;
    let matrix = Arc::new(matrix);
    let (mut window, mut square) = (TargetWindow::BOUNDS, None);
    if last > 0 {
        let column_squares = matrix.column_squares();
        let search = LabelSearch { rows: matrix.rows(), column_squares: &column_squares, product_noise: noise };
        let found = search.find(|look, BoundsPart { centre, half }| {
            let window = TargetWindow::new(centre, half);
            let counted = releases.of_matrix(look.of([0, 1]), &matrix, window)?;
            let part = BoundsPart { centre: window.centre(), half: window.half() };
            Ok::<_, FitError>(LabelCounts { part, bins: counted.values(), noise: counted.noise_standard_deviation })
        })?;
        window = TargetWindow::new(found.part.centre, found.part.half);
        let released = releases.of_matrix(last - 1, &matrix, window)?;
        square = Some(Noisy { value: released.values()[0], noise: released.noise_standard_deviation });
    }
    let sums = releases.of_matrix(last, &matrix, window)?;
    let values = sums.values();
    let released = Released { matrix: &matrix, sums: &values, noise: sums.noise_standard_deviation, window, square };
    let (weights, covariance) =
        estimate(&features, &released, checked.model, &checked.settings, checked.start.as_deref()).map_err(numeric)?;
    let covariance = covariance.map(|values| Covariance::beside_rows(values, &features));
    Ok(Fitted { encoding: Arc::new(encoding), weights, covariance })
}
