//! The questions that may be asked of private rows: a closed list, each with its own sensitivity.
//!
//! A [`SumQuery`] is data: what is added up over the rows, with every public value that it needs. Its [`QueryShape`] is the
//! part that fixes size and sensitivity; it is known when a fit is planned, before any row is read or any weight is fitted.

mod sensitivity;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::adjacency::PrivacyUnit;
use crate::coding::{Coding, SlotKind};
use crate::encoding::{Encoding, LATTICE_NORM_MAX};
use crate::minimum::Minimum;
use crate::pass_weights::PassWeights;
use crate::public_matrix::PublicMatrix;
use crate::schema::{ROWS_MAX_LIMIT, Schema};
use crate::target_window::TargetWindow;

/// Steps of a slope: a derivative of the loss in `[-1, 1]` becomes an integer in `[-2048, 2048]`.
///
/// 11 bits, because 32 products with coordinates up to 32767 then fit an i32.
pub const SLOPE_MAX: i32 = 2048;

/// `2048 · 32767`: the largest norm of a slope times a lattice row.
pub const GRADIENT_NORM_MAX: u32 = SLOPE_MAX as u32 * LATTICE_NORM_MAX as u32;

const _: () = assert!(ROWS_MAX_LIMIT as u128 * (GRADIENT_NORM_MAX as u128) < 1 << 63, "the longest sum fits 64 bits");

/// Steps that one counted row adds: counts are kept on a fine lattice so that the noise scale can be fine too.
pub const COUNT_STEP: i64 = 1 << 20;

/// Bins of equal width over the bounds of a numeric target: see [`Map::Marginals`].
pub const TARGET_BINS: u32 = 256;

/// Most models that [`Map::ConfidenceSteps`] and [`Map::ResidualSteps`] compare.
pub const STEP_MODELS_MAX: u32 = 64;

/// Fewest and most bins of equal width over the bounds of a number: see [`Map::NumberBins`].
pub const NUMBER_BINS: (u32, u32) = (2, 256);

/// Steps that one row adds to the bin of its number: three counts. Where a target lies is worth more than what the other marginals lose, which
/// is as much as 18 more numbers would cost them.
pub const BIN_STEP: i64 = 3 * COUNT_STEP;

/// Steps of one unit of log loss.
pub const LOG_LOSS_STEP: i64 = 1 << 20;

/// A row's log loss is capped here, in nats, when it is added up for a private evaluation: 4 for two classes, and for more of them by as
/// many whole nats more as a guess among all of them loses more.
#[must_use]
pub fn log_loss_cap(classes: u32) -> u32 {
    let more = (f64::from(classes.max(2)) / 2.0).ln().ceil();
    4 + more as u32
}

/// Largest multiplier of a block of [`Map::Gram`].
pub const GRAM_MULTIPLIER_MAX: u32 = 4096;

/// Largest label of [`Map::MatrixProduct`] in magnitude.
pub const MATRIX_LABEL_MAX: i32 = 1 << 20;

/// Steps of a whole vote: a party's votes on one auxiliary row add up to at most this.
pub const VOTE_STEPS: i32 = 1 << 12;

/// Steps of one unit of weight in [`Map::PartyVectors`], and of one unit of penalty.
pub const PARTY_STEPS: u32 = 1 << 20;

/// Steps of one unit of weight in [`Map::PartyMinimum`].
pub const MINIMUM_STEPS: u32 = 1 << 24;

/// The gradient of the mean loss at a [`Map::PartyMinimum`] has at most the norm `1 / MINIMUM_TOLERANCE`, rounding included.
pub const MINIMUM_TOLERANCE: u32 = 1 << 24;

/// Most auxiliary rows of [`Map::PartyMinimum`]: rounding errors of the gradient stay far below the tolerance.
pub const MINIMUM_ROWS_MAX: u64 = 1 << 20;

/// How the votes of all parties on a row become its label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VoteRule {
    /// The class with most votes.
    Majority,
    /// The share of the votes of each class.
    Soft,
}

/// Convex losses of a linear score `z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// `ln(1 + e^z) - y z`, slope `sigmoid(z) - y`.
    Logistic,
    /// `e^s` for `s <= 0` and `1 + s` beyond, with `s = z` for class 0 and `-z` for class 1: slope `±min(1, e^s)`.
    ///
    /// The logistic loss with every row weighted by `1 / max(p, 1 - p)`: same minimiser where the model holds, most curvature
    /// for a slope in `[-1, 1]`. Derived in `docs/methods/noisy-gd.md`.
    TwoSidedExponential,
    /// Of a number: `r²/(2c)` for a residual `|r| <= c` and `|r| - c/2` beyond, slope `r/c` within `[-1, 1]` (Huber 1964, eq. 6.1, over
    /// `c`). `r = z - y`, with the target's bounds, or a [`TargetWindow`] in them, as `[-1, 1]`; `c` is [`PassWeights::saturation`].
    Huber,
}

/// What stands for the label in a sum of products.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProductTarget {
    /// A number, the target's bounds, or a [`TargetWindow`] in them, mapped onto the integers `-32767..=32767`.
    Number,
    /// The same divided by the norm of its row where that is above 1: with rows divided by their own norm, the products are
    /// those of a regression in which each row has weight `1/norm²`. In products of rows only, not of a public matrix.
    NumberOverNorm,
    /// Class 0 as -32767 and class 1 as 32767: twice `y - 1/2`.
    Class,
}

/// What is added up, without the public values that do not change the sensitivity.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Map {
    /// Rows by class, in steps of [`COUNT_STEP`]: one coordinate a class.
    ClassCount {
        /// Declared classes, at least 2.
        classes: u32,
    },
    /// Rows by class, rows by category of every categorical slot, and two moments of every numeric slot, in steps of
    /// [`COUNT_STEP`]: `u - 1/2` and `(2u - 1)² - 1/2` with `u` in `[0, 1]`. Class counts come first, then slot by slot, then the
    /// same moments of the size of a row's list, where rows have one. [`Map::marginals`] makes it.
    Marginals {
        /// Declared classes. 0 for a numeric target, which in their place has the count of usable rows and then, in steps of
        /// [`BIN_STEP`], the rows in each of [`TARGET_BINS`] bins of its bounds.
        classes: u32,
        /// Numeric slots of the coding, and the list: two coordinates each.
        numeric: u32,
        /// Categorical slots of the coding.
        categorical: u32,
        /// Categories of all categorical slots together, "other" included.
        categories: u32,
    },
    /// Rows by the bin of every numeric slot, among some of equal width over its bounds, slot after slot, in steps of
    /// [`COUNT_STEP`]. Rows without a usable label are not counted.
    NumberBins {
        /// Numeric slots of the coding.
        numeric: u32,
        /// Bins of each: a power of two, 2 to 256.
        bins: u32,
    },
    /// The numbers of the target, its bounds or a [`TargetWindow`] in them mapped onto `-32767..=32767`: one coordinate.
    TargetSum,
    /// Slope of the loss times the lattice row: one coordinate a column.
    Gradient {
        /// The loss.
        loss: Loss,
        /// Encoded columns, the intercept among them.
        columns: u32,
    },
    /// Logistic slope times the lattice row, with the slope brought toward zero until the product is no longer than `clip`:
    /// the gradient of *each row* is clipped, in integers. One coordinate a column.
    ClippedGradient {
        /// Encoded columns, the intercept among them.
        columns: u32,
        /// Bound on the norm of a row's product, in lattice units: 1 to `2048 · 32767`, where nothing is clipped.
        clip: u32,
    },
    /// Softmax probabilities minus the class indicator, times the lattice row: `classes · columns` coordinates, class after
    /// class.
    SoftmaxGradient {
        /// Classes, at least 2.
        classes: u32,
        /// Encoded columns, the intercept among them.
        columns: u32,
    },
    /// The same slopes divided by the largest norm that they could have with another class, or by a share of it
    /// ([`PassWeights::saturation`]) if that is at least their own, so that a row's contribution has norm at most 1 whatever its
    /// scores: `classes · columns` coordinates, class after class.
    BoundedSoftmaxGradient {
        /// Classes, at least 2.
        classes: u32,
        /// Encoded columns, the intercept among them.
        columns: u32,
    },
    /// Products of the lattice row with itself and with the label, each block times its own multiplier.
    ///
    /// Coordinates: the packed upper triangle, row after row, diagonal entries times `diagonal` and the others times
    /// `off_diagonal`; then label times row, times `cross` (absent when 0); then the squared label, times `square` (absent
    /// when 0). Rows without a usable label add nothing.
    Gram {
        /// Encoded columns, the intercept among them.
        columns: u32,
        /// What stands for the label.
        target: ProductTarget,
        /// Multiplier of `q_j²`.
        diagonal: u32,
        /// Multiplier of `q_j q_l`, `j < l`.
        off_diagonal: u32,
        /// Multiplier of `y q_j`.
        cross: u32,
        /// Multiplier of `y²`.
        square: u32,
    },
    /// Private integer labels times the rows of a public matrix: `sum_i label_i · matrix_i`, `outputs` times over.
    ///
    /// With one output the label is a number or, for two classes, `label_low` or `label_high`; an unusable label is 0. With
    /// more outputs, class `k` adds `label_high` times the row to output `k` and nothing to the others. Under party adjacency
    /// a label is the sum of the parties' votes, each of them between `label_low` and `label_high`.
    MatrixProduct {
        /// Columns of the matrix.
        columns: u32,
        /// 1 for a number or two classes, else one a class.
        outputs: u32,
        /// What a label is.
        target: ProductTarget,
        /// Smallest label, at most 0.
        label_low: i32,
        /// Largest label, at least 0.
        label_high: i32,
        /// Rows of the matrix; 0 while it is not known, which leaves no bound under party adjacency.
        rows: u64,
        /// Bound on the square of the L2 norm of every row of the matrix.
        row_norm_square: u64,
        /// Of votes, a bound on the largest eigenvalue of `matrixᵀ matrix`, which prices a party; 0 where each row has a label of its own,
        /// which has a price under label adjacency alone.
        eigenvalue: u64,
    },
    /// Rows of a public matrix by the bin of their label, a number, among [`TARGET_BINS`] of equal width over its bounds, in steps of
    /// [`COUNT_STEP`]. The matrix says which rows are meant, and nothing else.
    LabelBins,
    /// Squares of the labels of a public matrix's rows, numbers with their bounds or a [`TargetWindow`] in them as `[-1, 1]`: one
    /// coordinate, in steps of `1/32767²`.
    LabelSquares,
    /// One vector of weights a party, fitted to its votes on the rows of a public matrix and shortened to a bound.
    PartyVectors {
        /// Columns of the matrix, whose rows are features in steps of `2^-20`.
        columns: u32,
        /// 1 for two classes, else one a class.
        outputs: u32,
        /// Penalty of the fit in [`PARTY_STEPS`]; changes no sensitivity.
        penalty: u32,
        /// Bound on the L2 norm of a party's vector, in [`PARTY_STEPS`].
        norm: u32,
    },
    /// The one minimum of logistic or softmax loss plus `penalty/2 ||w||²` on the rows of a public matrix, labelled by the
    /// votes of all parties together; weights in [`MINIMUM_STEPS`].
    PartyMinimum {
        /// Columns of the matrix, whose rows are features in steps of `2^-20` of norm at most 1.
        columns: u32,
        /// 1 for two classes, else one a class.
        outputs: u32,
        /// How votes become labels.
        rule: VoteRule,
        /// Penalty on the mean loss in [`PARTY_STEPS`], at least 1.
        penalty: u32,
        /// Number of parties: public.
        parties: u64,
    },
    /// Usable rows, and those whose class the model gets right: two coordinates in steps of [`COUNT_STEP`].
    CorrectCount {
        /// Classes: two have one score, more have one each.
        classes: u32,
    },
    /// How often a second model is right beyond what a first one expects: two coordinates in steps of [`COUNT_STEP`]. With `h` the class
    /// whose score rises most from the first model to the second and `p`, `q` the probabilities by both: `[y = h] - p_h`, and half
    /// of `q_h - p_h`.
    ExcessHits {
        /// Classes: two have one score a model, more have one each.
        classes: u32,
    },
    /// How often the class whose score a change raises most is the right one, beyond what some models expect: `models` coordinates in
    /// steps of [`COUNT_STEP`]. With `h` that class and `p_1`, `p_2`, .. its probabilities by the models: `[y = h] - p_1`, `p_2 - p_1`,
    /// `p_3 - p_2` and so on, times a weight that looks at the features alone. The weight is how far the change raises the score of `h`
    /// above the mean of all classes, at most 1, and so small that no label makes the contribution longer than 1. The
    /// weights of the change come first, then those of the models.
    ConfidenceSteps {
        /// Classes: two have one score a model, more have one each.
        classes: u32,
        /// Models besides the change, between 1 and [`STEP_MODELS_MAX`].
        models: u32,
    },
    /// How far a number lies on the side that a change of its score points to, beyond what some models say: `models` coordinates in steps
    /// of [`COUNT_STEP`]. With `r_1`, `r_2`, .. the residuals `y - score` by the models over `c`, brought into [-1, 1], and `s` the sign of the
    /// change: `s r_1`, `s (r_1 - r_2)`, `s (r_2 - r_3)` and so on, times a weight that looks at the features alone. The weight is the size of the
    /// change, at most 1, and so small that no number makes the contribution longer than 1. `c` is the
    /// [saturation](PassWeights::saturation). The weights of the change come first, then those of the models.
    ResidualSteps {
        /// Models besides the change, between 1 and [`STEP_MODELS_MAX`].
        models: u32,
    },
    /// Log loss capped at [`log_loss_cap`], in steps of [`LOG_LOSS_STEP`]: one coordinate.
    LogLoss {
        /// Classes: two have one score, more have one each.
        classes: u32,
    },
    /// Rows by predicted probability and class: `2 · buckets` coordinates, class 0 first.
    ScoreHistogram {
        /// Equal-width buckets of the probability of class 1.
        buckets: u32,
    },
    /// Not a sum: the minimiser of a convex loss over the rows, asked with a [`crate::minimum::MinimumQuery`].
    Minimum(Minimum),
    /// Usable rows, a quarter of the squared error, the label and its square, in steps of [`COUNT_STEP`]; label and
    /// prediction are on the scale that maps the target's bounds onto `[-1, 1]`, the prediction clamped to it.
    SquaredError,
}

impl Map {
    /// [`Map::Marginals`] of all that a coding has; 0 classes for a numeric target.
    #[must_use]
    pub fn marginals(classes: u32, coding: &Coding) -> Self {
        let [numeric, categorical, categories] = marginal_counts(coding);
        Self::Marginals { classes, numeric, categorical, categories }
    }

    /// [`Map::NumberBins`] of all numeric slots of a coding.
    #[must_use]
    pub fn number_bins(coding: &Coding, bins: u32) -> Self {
        Self::NumberBins { numeric: number_slots(coding), bins }
    }

    /// Number of weights that score a row: none for plain sums.
    fn weights(&self, encoded: usize) -> usize {
        match *self {
            Self::ClassCount { .. }
            | Self::Marginals { .. }
            | Self::NumberBins { .. }
            | Self::TargetSum
            | Self::Gram { .. }
            | Self::MatrixProduct { .. }
            | Self::LabelBins
            | Self::LabelSquares
            | Self::PartyVectors { .. }
            | Self::PartyMinimum { .. }
            | Self::Minimum(_) => 0,
            Self::Gradient { columns, .. } | Self::ClippedGradient { columns, .. } => columns as usize,
            Self::SoftmaxGradient { classes, columns } | Self::BoundedSoftmaxGradient { classes, columns } => {
                classes as usize * columns as usize
            }
            Self::ScoreHistogram { .. } | Self::SquaredError => encoded,
            Self::CorrectCount { classes } | Self::LogLoss { classes } => outputs(classes) * encoded,
            Self::ExcessHits { classes } => 2 * outputs(classes) * encoded,
            Self::ConfidenceSteps { classes, models } => (1 + models as usize) * outputs(classes) * encoded,
            Self::ResidualSteps { models } => (1 + models as usize) * encoded,
        }
    }
}

/// Linear scores of a model: one for two classes, else one a class.
#[must_use]
pub const fn outputs(classes: u32) -> usize {
    if classes <= 2 { 1 } else { classes as usize }
}

/// Size and sensitivity of a query, and all that the ledger has to know of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "ShapeDocument", into = "ShapeDocument")]
pub struct QueryShape {
    map: Map,
    unit: PrivacyUnit,
    rows_max: u64,
}

/// A query that cannot be built.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum QueryError {
    /// The declared maximum of rows does not exclude overflow.
    #[error("rows_max must be between 1 and {ROWS_MAX_LIMIT}, not {0}: a larger table could overflow a 64-bit sum")]
    RowsMax(u64),
    /// A privacy unit that contributes no row, or so many that the square of the sensitivity does not fit.
    #[error("rows_max of the privacy unit must be between 1 and 1048576, not {0}")]
    UnitRows(u32),
    /// Fewer classes than a label can have.
    #[error("a query by class needs at least 2 classes, not {0}")]
    Classes(u32),
    /// A query with nothing to add up, or too much.
    #[error("a query needs between 1 and 1048576 coordinates, not {0}; list fewer features or categories")]
    Coordinates(u64),
    /// A multiplier or label outside the range in which sensitivities fit 128 bits.
    #[error("{0} is outside the range that a query supports")]
    Range(&'static str),
    /// Public values that do not fit the shape.
    #[error("the public values have {found} columns where the query has {expected}")]
    Columns {
        /// Columns of the shape.
        expected: usize,
        /// Columns of the public values.
        found: usize,
    },
    /// A public matrix that is not within the bounds of the shape: its sensitivity would be larger than what was paid.
    #[error("the public matrix is not within the bounds that were planned for it")]
    Matrix,
}

impl QueryShape {
    /// Checks that no table within `rows_max` overflows.
    ///
    /// # Errors
    /// [`QueryError`] says which public figure is out of range.
    pub fn new(map: Map, unit: PrivacyUnit, rows_max: u64) -> Result<Self, QueryError> {
        if !(1..=ROWS_MAX_LIMIT).contains(&rows_max) {
            return Err(QueryError::RowsMax(rows_max));
        }
        if !(1..=1 << 20).contains(&unit.rows_max()) {
            return Err(QueryError::UnitRows(unit.rows_max()));
        }
        check_ranges(&map)?;
        let coordinates = count_coordinates(&map);
        if !(1..=1 << 20).contains(&coordinates) {
            return Err(QueryError::Coordinates(coordinates));
        }
        Ok(Self { map, unit, rows_max })
    }

    /// A query of a table: unit and largest number of rows are those of its schema.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn of_schema(map: Map, schema: &Schema) -> Result<Self, QueryError> {
        let privacy = schema.privacy();
        Self::new(map, privacy.unit.clone(), privacy.rows_max)
    }

    /// What is added up.
    #[must_use]
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// Whose rows are bounded together.
    #[must_use]
    pub fn unit(&self) -> &PrivacyUnit {
        &self.unit
    }

    /// Declared maximum of the number of rows.
    #[must_use]
    pub fn rows_max(&self) -> u64 {
        self.rows_max
    }

    /// Number of integers that the sum has.
    #[must_use]
    pub fn coordinates(&self) -> u32 {
        u32::try_from(count_coordinates(&self.map)).expect("checked when the shape was made")
    }
}

fn check_ranges(map: &Map) -> Result<(), QueryError> {
    let range = |fits: bool, what| if fits { Ok(()) } else { Err(QueryError::Range(what)) };
    match *map {
        Map::ClassCount { classes }
        | Map::SoftmaxGradient { classes, .. }
        | Map::BoundedSoftmaxGradient { classes, .. }
        | Map::CorrectCount { classes }
        | Map::ExcessHits { classes }
        | Map::ConfidenceSteps { classes, .. }
        | Map::LogLoss { classes }
            if classes < 2 =>
        {
            Err(QueryError::Classes(classes))
        }
        Map::Marginals { classes: 1, .. } => Err(QueryError::Classes(1)),
        Map::NumberBins { numeric, bins } => {
            range(numeric > 0, "the number of numeric columns")?;
            let is_legal = bins.is_power_of_two() && (NUMBER_BINS.0..=NUMBER_BINS.1).contains(&bins);
            range(is_legal, "the number of bins")
        }
        Map::ConfidenceSteps { models, .. } | Map::ResidualSteps { models } => {
            range((1..=STEP_MODELS_MAX).contains(&models), "the number of models")
        }
        Map::ClippedGradient { clip, .. } => {
            range((1..=GRADIENT_NORM_MAX).contains(&clip), "the bound on a row's gradient")
        }
        Map::Gram { columns, diagonal, off_diagonal, cross, square, .. } => {
            range(columns > 0, "the number of columns")?;
            let multipliers = [diagonal, off_diagonal, cross, square];
            range(multipliers.into_iter().all(|one| one <= GRAM_MULTIPLIER_MAX), "a multiplier of a Gram query")
        }
        Map::MatrixProduct { outputs, target, label_low, label_high, row_norm_square, rows, .. } => {
            range(outputs > 0, "the number of outputs")?;
            range(target != ProductTarget::NumberOverNorm, "the target of a matrix product")?;
            range(
                (-MATRIX_LABEL_MAX..=0).contains(&label_low) && (0..=MATRIX_LABEL_MAX).contains(&label_high),
                "a label of a matrix product",
            )?;
            range(rows <= ROWS_MAX_LIMIT && row_norm_square <= 1 << 48, "the size of a public matrix")
        }
        Map::PartyVectors { norm, penalty, .. } => {
            range((1..=1 << 30).contains(&norm) && penalty > 0, "the norm or the penalty of a party's vector")
        }
        Map::PartyMinimum { penalty, parties, .. } => {
            range(penalty > 0 && (1..=ROWS_MAX_LIMIT).contains(&parties), "the penalty or the number of parties")
        }
        Map::Minimum(minimum) => minimum.check(),
        Map::ClassCount { .. }
        | Map::Marginals { .. }
        | Map::TargetSum
        | Map::LabelBins
        | Map::LabelSquares
        | Map::Gradient { .. }
        | Map::SoftmaxGradient { .. }
        | Map::BoundedSoftmaxGradient { .. }
        | Map::CorrectCount { .. }
        | Map::ExcessHits { .. }
        | Map::LogLoss { .. }
        | Map::ScoreHistogram { .. }
        | Map::SquaredError => Ok(()),
    }
}

/// Coordinates of [`Map::Marginals`] that count rows by their target: classes, or the count of usable rows and its bins.
#[must_use]
pub const fn target_counts(classes: u32) -> u32 {
    if classes > 0 { classes } else { 1 + TARGET_BINS }
}

/// Numbers, blocks of categories and categories that marginals are asked of.
fn marginal_counts(coding: &Coding) -> [u32; 3] {
    let mut counts = [0; 3];
    for kind in coding.marginal_kinds() {
        match kind {
            SlotKind::Numeric => counts[0] += 1,
            SlotKind::Categories(categories) => {
                counts[1] += 1;
                counts[2] += u32::try_from(categories).expect("a schema caps its columns");
            }
        }
    }
    counts
}

/// Numeric slots of a coding.
fn number_slots(coding: &Coding) -> u32 {
    let numbers = coding.slot_kinds().filter(|kind| matches!(kind, SlotKind::Numeric)).count();
    u32::try_from(numbers).expect("a schema caps its columns")
}

fn count_coordinates(map: &Map) -> u64 {
    match *map {
        Map::LogLoss { .. } | Map::TargetSum | Map::LabelSquares => 1,
        Map::LabelBins => u64::from(TARGET_BINS),
        Map::NumberBins { numeric, bins } => u64::from(bins) * u64::from(numeric),
        Map::CorrectCount { .. } | Map::ExcessHits { .. } => 2,
        Map::ConfidenceSteps { models, .. } | Map::ResidualSteps { models } => u64::from(models),
        Map::SquaredError => 4,
        Map::ClassCount { classes } => u64::from(classes),
        Map::Marginals { classes, numeric, categories, .. } => {
            u64::from(target_counts(classes)) + u64::from(categories) + 2 * u64::from(numeric)
        }
        Map::Gradient { columns, .. } | Map::ClippedGradient { columns, .. } => u64::from(columns),
        Map::SoftmaxGradient { classes, columns } | Map::BoundedSoftmaxGradient { classes, columns } => {
            u64::from(classes) * u64::from(columns)
        }
        Map::Gram { columns, cross, square, .. } => {
            let columns = u64::from(columns);
            columns * (columns + 1) / 2 + if cross > 0 { columns } else { 0 } + u64::from(square > 0)
        }
        Map::MatrixProduct { columns, outputs, .. }
        | Map::PartyVectors { columns, outputs, .. }
        | Map::PartyMinimum { columns, outputs, .. } => u64::from(outputs) * u64::from(columns),
        Map::Minimum(minimum) => minimum.coordinates(),
        Map::ScoreHistogram { buckets } => 2 * u64::from(buckets),
    }
}

#[derive(Serialize, Deserialize)]
struct ShapeDocument {
    map: Map,
    unit: PrivacyUnit,
    rows_max: u64,
}

impl TryFrom<ShapeDocument> for QueryShape {
    type Error = QueryError;
    fn try_from(document: ShapeDocument) -> Result<Self, QueryError> {
        Self::new(document.map, document.unit, document.rows_max)
    }
}

impl From<QueryShape> for ShapeDocument {
    fn from(shape: QueryShape) -> Self {
        Self { map: shape.map, unit: shape.unit, rows_max: shape.rows_max }
    }
}

/// What a query is asked of.
#[derive(Clone, Debug)]
enum Asked {
    /// A table: how its codes become columns.
    Table(Arc<Encoding>),
    /// Labels or votes: a matrix with one row for each.
    Matrix(Arc<PublicMatrix>),
}

/// One question: what is added up over the rows.
#[derive(Clone, Debug)]
pub struct SumQuery {
    shape: QueryShape,
    asked: Asked,
    weights: PassWeights,
}

/// A window is for numbers alone.
fn check_window(weights: &PassWeights, has_number: bool) -> Result<(), QueryError> {
    if has_number || weights.target_window() == TargetWindow::BOUNDS {
        Ok(())
    } else {
        Err(QueryError::Range("a window of the target"))
    }
}

impl SumQuery {
    /// A question to a table with its public values: how codes become columns, and the weights of the scores
    /// ([`PassWeights::none`] for a plain sum), score after score.
    ///
    /// # Errors
    /// [`QueryError::Columns`] when encoding or weights do not have the shape's columns.
    pub fn new(shape: QueryShape, encoding: Arc<Encoding>, weights: PassWeights) -> Result<Self, QueryError> {
        let encoded = encoding.coding().columns().len();
        let columns = match *shape.map() {
            Map::Gradient { columns, .. }
            | Map::ClippedGradient { columns, .. }
            | Map::SoftmaxGradient { columns, .. }
            | Map::BoundedSoftmaxGradient { columns, .. }
            | Map::Gram { columns, .. } => columns as usize,
            Map::Marginals { numeric, categorical, categories, .. } => {
                let asked = [numeric, categorical, categories];
                for (expected, found) in asked.into_iter().zip(marginal_counts(encoding.coding())) {
                    if expected != found {
                        return Err(QueryError::Columns { expected: expected as usize, found: found as usize });
                    }
                }
                encoded
            }
            Map::NumberBins { numeric, .. } => {
                let found = number_slots(encoding.coding());
                if numeric != found {
                    return Err(QueryError::Columns { expected: numeric as usize, found: found as usize });
                }
                encoded
            }
            Map::MatrixProduct { .. }
            | Map::LabelBins
            | Map::LabelSquares
            | Map::PartyVectors { .. }
            | Map::PartyMinimum { .. } => return Err(QueryError::Matrix),
            Map::Minimum(_) => return Err(QueryError::Range("a sum")),
            Map::ClassCount { .. }
            | Map::TargetSum
            | Map::CorrectCount { .. }
            | Map::ExcessHits { .. }
            | Map::ConfidenceSteps { .. }
            | Map::ResidualSteps { .. }
            | Map::LogLoss { .. }
            | Map::ScoreHistogram { .. }
            | Map::SquaredError => encoded,
        };
        for (expected, found) in [(columns, encoded), (shape.map.weights(encoded), weights.weights().len())] {
            if expected != found {
                return Err(QueryError::Columns { expected, found });
            }
        }
        let has_number = matches!(
            *shape.map(),
            Map::TargetSum
                | Map::ResidualSteps { .. }
                | Map::Gradient { loss: Loss::Huber, .. }
                | Map::Gram { target: ProductTarget::Number | ProductTarget::NumberOverNorm, .. }
        );
        check_window(&weights, has_number)?;
        Ok(Self { shape, asked: Asked::Table(encoding), weights })
    }

    /// A question to labels or votes that belong to the rows of a public matrix.
    ///
    /// # Errors
    /// [`QueryError::Matrix`] when the matrix is not within the bounds of the shape, [`QueryError::Columns`] when it has
    /// other columns.
    pub fn of_matrix(shape: QueryShape, matrix: Arc<PublicMatrix>) -> Result<Self, QueryError> {
        Self::of_matrix_in(shape, matrix, TargetWindow::BOUNDS)
    }

    /// The same question with labels, numbers, read in a part of their bounds.
    ///
    /// # Errors
    /// As [`Self::of_matrix`]; [`QueryError::Range`] for a window where no numbers are added up.
    pub fn of_matrix_in(
        shape: QueryShape,
        matrix: Arc<PublicMatrix>,
        window: TargetWindow,
    ) -> Result<Self, QueryError> {
        let rows_found = matrix.rows() as u64;
        let (columns, within) = match *shape.map() {
            Map::MatrixProduct { columns, rows, row_norm_square, eigenvalue, .. } => {
                let within = matrix.row_norm_square() <= row_norm_square
                    && (rows == 0 || rows == rows_found)
                    && (eigenvalue == 0 || matrix.eigenvalue_bound() <= eigenvalue);
                (columns, within)
            }
            Map::LabelBins | Map::LabelSquares => (matrix.columns() as u32, true),
            Map::PartyVectors { columns, .. } => (columns, rows_found > 0),
            // Every row of a public matrix has a norm of at most 2^20, which stands for 1.
            Map::PartyMinimum { columns, .. } => (columns, (1..=MINIMUM_ROWS_MAX).contains(&rows_found)),
            Map::ClassCount { .. }
            | Map::Marginals { .. }
            | Map::NumberBins { .. }
            | Map::TargetSum
            | Map::Gradient { .. }
            | Map::ClippedGradient { .. }
            | Map::SoftmaxGradient { .. }
            | Map::BoundedSoftmaxGradient { .. }
            | Map::Gram { .. }
            | Map::CorrectCount { .. }
            | Map::ExcessHits { .. }
            | Map::ConfidenceSteps { .. }
            | Map::ResidualSteps { .. }
            | Map::LogLoss { .. }
            | Map::ScoreHistogram { .. }
            | Map::Minimum(_)
            | Map::SquaredError => return Err(QueryError::Matrix),
        };
        if columns as usize != matrix.columns() {
            return Err(QueryError::Columns { expected: columns as usize, found: matrix.columns() });
        }
        if !within || rows_found > shape.rows_max {
            return Err(QueryError::Matrix);
        }
        let has_number =
            matches!(*shape.map(), Map::MatrixProduct { target: ProductTarget::Number, .. } | Map::LabelSquares);
        let weights = PassWeights::of_target(window);
        check_window(&weights, has_number)?;
        Ok(Self { shape, asked: Asked::Matrix(matrix), weights })
    }

    /// Size and sensitivity.
    #[must_use]
    pub fn shape(&self) -> &QueryShape {
        &self.shape
    }

    /// How codes become columns; shared by all passes of a fit. `None` for a question to labels or votes.
    #[must_use]
    pub fn encoding(&self) -> Option<&Arc<Encoding>> {
        match &self.asked {
            Asked::Table(encoding) => Some(encoding),
            Asked::Matrix(_) => None,
        }
    }

    /// The matrix of a question to labels or votes.
    #[must_use]
    pub fn matrix(&self) -> Option<&Arc<PublicMatrix>> {
        match &self.asked {
            Asked::Table(_) => None,
            Asked::Matrix(matrix) => Some(matrix),
        }
    }

    /// Weights of the scores; empty where no row is scored.
    #[must_use]
    pub fn weights(&self) -> &PassWeights {
        &self.weights
    }

    /// What one integer of the sum is worth: counts in rows, losses in nats, gradients in the units of a contribution.
    ///
    /// Gram queries and matrix products stay in integers: the step is 1.
    #[must_use]
    pub fn sum_step(&self) -> f64 {
        match self.shape.map {
            Map::ClassCount { .. }
            | Map::Marginals { .. }
            | Map::NumberBins { .. }
            | Map::LabelBins
            | Map::CorrectCount { .. }
            | Map::ExcessHits { .. }
            | Map::ConfidenceSteps { .. }
            | Map::ResidualSteps { .. }
            | Map::ScoreHistogram { .. }
            | Map::SquaredError => 1.0 / COUNT_STEP as f64,
            Map::TargetSum => 1.0 / f64::from(LATTICE_NORM_MAX),
            Map::LabelSquares => f64::from(LATTICE_NORM_MAX).powi(-2),
            Map::LogLoss { .. } => 1.0 / LOG_LOSS_STEP as f64,
            Map::Gradient { .. }
            | Map::ClippedGradient { .. }
            | Map::SoftmaxGradient { .. }
            | Map::BoundedSoftmaxGradient { .. } => {
                let encoding = self.encoding().expect("a gradient is asked of a table");
                encoding.contribution_step() / f64::from(SLOPE_MAX)
            }
            Map::Gram { .. } | Map::MatrixProduct { .. } | Map::Minimum(_) => 1.0,
            Map::PartyVectors { .. } => 1.0 / f64::from(PARTY_STEPS),
            Map::PartyMinimum { .. } => 1.0 / f64::from(MINIMUM_STEPS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adjacency::{Adjacency, Relation};
    use crate::units::SensitivitySquared;

    fn shape(map: Map) -> QueryShape {
        QueryShape::new(map, PrivacyUnit::Row, 1000).expect("small")
    }

    fn under(shape: &QueryShape, adjacency: Adjacency) -> Option<u128> {
        let relation = Relation { unit: shape.unit().clone(), adjacency };
        shape.sensitivity(&relation).map(SensitivitySquared::get)
    }

    #[test]
    fn the_cap_of_the_log_loss_grows_with_the_classes() {
        assert_eq!([2, 3, 5, 6, 10, 21, 1000].map(log_loss_cap), [4, 5, 5, 6, 6, 7, 11]);
    }

    #[test]
    fn gradient_sensitivity_follows_the_table() {
        let gradient = shape(Map::Gradient { loss: Loss::Logistic, columns: 5 });
        let once = (2048u128 * 32767).pow(2);
        assert_eq!(under(&gradient, Adjacency::AddRemove), Some(once));
        assert_eq!(under(&gradient, Adjacency::Replace), Some(4 * once));
        assert_eq!(under(&gradient, Adjacency::Label), Some(once));
        assert_eq!(under(&gradient, Adjacency::Party), None);
    }

    #[test]
    fn a_unit_of_rows_multiplies_the_sensitivity() {
        let unit = PrivacyUnit::Column { column: "patient".to_owned(), rows_max: 4 };
        let grouped = QueryShape::new(Map::ClassCount { classes: 2 }, unit, 1000).expect("small");
        assert_eq!(under(&grouped, Adjacency::AddRemove), Some(16 * (1 << 40)));
        let by_row = Relation { unit: PrivacyUnit::Row, adjacency: Adjacency::AddRemove };
        assert_eq!(grouped.sensitivity(&by_row), None, "another unit than the query's own has no bound");
    }

    #[test]
    fn shapes_that_could_overflow_are_refused() {
        let build = |rows_max| QueryShape::new(Map::LogLoss { classes: 2 }, PrivacyUnit::Row, rows_max);
        assert_eq!(build(0), Err(QueryError::RowsMax(0)));
        assert!(build(ROWS_MAX_LIMIT).is_ok());
        assert_eq!(build(ROWS_MAX_LIMIT + 1), Err(QueryError::RowsMax(ROWS_MAX_LIMIT + 1)));
        assert_eq!(
            QueryShape::new(Map::ClassCount { classes: 1 }, PrivacyUnit::Row, 1),
            Err(QueryError::Classes(1)),
            "a row of class 1 would have no place"
        );
        let document = r#"{"map":{"log-loss":{"classes":2}},"unit":"row","rows_max":0}"#;
        assert!(serde_json::from_str::<QueryShape>(document).is_err(), "serde goes through the constructor");
    }

    const PRODUCT: Map = Map::MatrixProduct {
        columns: 2,
        outputs: 1,
        target: ProductTarget::Class,
        label_low: 0,
        label_high: 1,
        rows: 0,
        row_norm_square: 25,
        eigenvalue: 0,
    };
    const VECTORS: Map = Map::PartyVectors { columns: 2, outputs: 1, penalty: 1, norm: 1 };
    const MINIMUM: Map = Map::PartyMinimum { columns: 2, outputs: 1, rule: VoteRule::Soft, penalty: 1, parties: 5 };
    const GRAM: Map =
        Map::Gram { columns: 3, target: ProductTarget::Class, diagonal: 1, off_diagonal: 1, cross: 1, square: 1 };

    /// The map with some figures replaced: each is the name of a field and a number.
    fn with(map: &Map, figures: &[(&str, i64)]) -> Map {
        let mut document = serde_json::to_value(map).expect("a map is a document");
        let fields = document.as_object_mut().and_then(|kinds| kinds.values_mut().next()).expect("one kind");
        for (name, number) in figures {
            *fields.get_mut(*name).expect("a field of the map") = (*number).into();
        }
        serde_json::from_value(document).expect("the same fields")
    }

    #[test]
    fn every_figure_of_a_shape_has_its_range() {
        let build = |map: &Map, figures: &[(&str, i64)]| QueryShape::new(with(map, figures), PrivacyUnit::Row, 1000);
        let rows_most = ROWS_MAX_LIMIT as i64;
        for (map, name, legal, illegal) in [
            (&GRAM, "columns", vec![1], vec![0]),
            (&GRAM, "diagonal", vec![0, 4096], vec![4097]),
            (&GRAM, "square", vec![0, 4096], vec![4097]),
            (&PRODUCT, "outputs", vec![1], vec![0]),
            (&PRODUCT, "label_low", vec![-(1 << 20), 0], vec![-(1 << 20) - 1, 1]),
            (&PRODUCT, "label_high", vec![0, 1 << 20], vec![-1, (1 << 20) + 1]),
            (&PRODUCT, "rows", vec![0, rows_most], vec![rows_most + 1]),
            (&PRODUCT, "row_norm_square", vec![0, 1 << 48], vec![(1 << 48) + 1]),
            (&VECTORS, "norm", vec![1, 1 << 30], vec![0, (1 << 30) + 1]),
            (&VECTORS, "penalty", vec![1], vec![0]),
            (&MINIMUM, "penalty", vec![1], vec![0]),
            (&MINIMUM, "parties", vec![1, rows_most], vec![0, rows_most + 1]),
        ] {
            for number in legal {
                assert!(build(map, &[(name, number)]).is_ok(), "{name} {number}");
            }
            for number in illegal {
                assert!(matches!(build(map, &[(name, number)]), Err(QueryError::Range(_))), "{name} {number}");
            }
        }
        assert_eq!(shape(GRAM).rows_max(), 1000);
    }

    #[test]
    fn coordinates_are_counted() {
        for (map, coordinates) in [
            (GRAM, 6 + 3 + 1),
            (with(&PRODUCT, &[("columns", 3), ("outputs", 4)]), 12),
            (with(&VECTORS, &[("columns", 5), ("outputs", 4)]), 20),
            (Map::ScoreHistogram { buckets: 5 }, 10),
            (Map::ConfidenceSteps { classes: 3, models: 6 }, 6),
            (Map::ResidualSteps { models: 5 }, 5),
            (Map::SoftmaxGradient { classes: 3, columns: 7 }, 21),
            (Map::Marginals { classes: 3, numeric: 4, categorical: 1, categories: 6 }, 3 + 6 + 8),
            (Map::SquaredError, 4),
        ] {
            assert_eq!(shape(map).coordinates(), coordinates);
        }
    }

    #[test]
    #[allow(clippy::float_cmp, reason = "powers of two")]
    fn steps_of_sums_are_those_of_what_is_added_up() {
        let matrix = Arc::new(PublicMatrix::new(2, vec![3, 4]).expect("short rows"));
        let of_matrix = |map| SumQuery::of_matrix(shape(map), matrix.clone()).expect("within the bounds").sum_step();
        let steps = [of_matrix(PRODUCT), of_matrix(VECTORS), of_matrix(MINIMUM)];
        assert_eq!(steps, [1.0, 2f64.powi(-20), 2f64.powi(-24)]);

        let schema = "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nclasses = [0, 1]\n\
                      [features]\na = { bounds = [0, 1] }\n";
        let schema = Schema::from_text(schema).expect("legal");
        let planned = QueryShape::of_schema(Map::SquaredError, &schema);
        assert_eq!(planned, QueryShape::new(Map::SquaredError, PrivacyUnit::Row, schema.privacy().rows_max));
        let coding = Coding::of(&schema);
        // Rows within norm 3: one lattice step is 3 / 32767, and a slope has 2048 steps.
        let encoding = Arc::new(Encoding::plain(coding, crate::encoding::NormRule::Clip(3.0)));
        let of_table = |map: Map| {
            let weights = map.weights(2);
            let weights = if weights == 0 { PassWeights::none() } else { PassWeights::quantise(&vec![1.0; weights]) };
            SumQuery::new(shape(map), encoding.clone(), weights).expect("two columns").sum_step()
        };
        let gradient = of_table(Map::Gradient { loss: Loss::Logistic, columns: 2 });
        assert!((gradient * 2048.0 * 32767.0 / 3.0 - 1.0).abs() < 1e-3, "{gradient}");
        assert_eq!(of_table(Map::ClassCount { classes: 2 }), 2f64.powi(-20));
        assert_eq!(of_table(Map::LogLoss { classes: 2 }), 2f64.powi(-20));
        assert_eq!(of_table(with(&GRAM, &[("columns", 2)])), 1.0);
    }

    #[test]
    fn a_public_matrix_keeps_to_what_was_planned_for_it() {
        let matrix = Arc::new(PublicMatrix::new(2, vec![3, 4, 0, 5]).expect("short rows"));
        let eigenvalue = matrix.eigenvalue_bound() as i64;
        let build = |map: &Map, figures: &[(&str, i64)]| SumQuery::of_matrix(shape(with(map, figures)), matrix.clone());
        for legal in [
            &[("row_norm_square", 25)][..],
            &[("rows", 2)],
            &[("eigenvalue", eigenvalue)],
            &[("rows", 2), ("eigenvalue", eigenvalue + 1)],
        ] {
            assert!(build(&PRODUCT, legal).is_ok(), "{legal:?}");
        }
        for illegal in [
            &[("row_norm_square", 24)][..],
            &[("rows", 1)],
            &[("rows", 3)],
            &[("eigenvalue", eigenvalue - 1)],
            &[("rows", 3), ("eigenvalue", eigenvalue)],
            &[("row_norm_square", 24), ("rows", 2)],
        ] {
            assert!(matches!(build(&PRODUCT, illegal), Err(QueryError::Matrix)), "{illegal:?}");
        }
        assert!(build(&VECTORS, &[]).is_ok() && build(&MINIMUM, &[]).is_ok());
        let empty = Arc::new(PublicMatrix::new(2, Vec::new()).expect("no row is too long"));
        for map in [VECTORS, MINIMUM] {
            assert!(matches!(SumQuery::of_matrix(shape(map), empty.clone()), Err(QueryError::Matrix)), "no rows");
        }
        let other = build(&PRODUCT, &[("columns", 3)]);
        assert!(matches!(other, Err(QueryError::Columns { expected: 3, found: 2 })));
        let one_row = QueryShape::new(PRODUCT, PrivacyUnit::Row, 1).expect("small");
        assert!(
            matches!(SumQuery::of_matrix(one_row, matrix.clone()), Err(QueryError::Matrix)),
            "more rows than declared"
        );
        assert!(matches!(SumQuery::of_matrix(shape(GRAM), matrix), Err(QueryError::Matrix)), "a question to a table");
    }
}
