//! What can be asked: a closed list.

use serde::{Deserialize, Serialize};

#[cfg(doc)]
use super::{COUNT_STEP, LOG_LOSS_STEP, MINIMUM_STEPS, PARTY_STEPS, STEP_MODELS_MAX, log_loss_cap};
use crate::coding::{Coding, SlotKind};
use crate::minimum::Minimum;
#[cfg(doc)]
use crate::pass_weights::PassWeights;
#[cfg(doc)]
use crate::target_window::TargetWindow;

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
        /// Declared classes. 0 for a numeric target, which in their place has the count of usable rows.
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
    /// Rows by the bin of their target, a number, among some of equal width over its bounds or a [`TargetWindow`] in them, in steps of
    /// [`COUNT_STEP`]: one coordinate a bin. What lies beyond the window is in its first or last bin.
    TargetBins {
        /// Bins: a power of two, 2 to 256.
        bins: u32,
    },
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
    /// Rows of a public matrix by the bin of their label, a number, among some of equal width over its bounds or a [`TargetWindow`] in them,
    /// in steps of [`COUNT_STEP`]: one coordinate a bin. What lies beyond the window is in its first or last bin. The matrix says which rows
    /// are meant, and nothing else.
    LabelsByBin {
        /// Bins: a power of two, 2 to 256.
        bins: u32,
    },
    /// [`Map::LabelsByBin`] with 256 bins over all of the bounds. No longer asked: ledgers that were charged for it have it.
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

/// How the votes of all parties on a row become its label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VoteRule {
    /// The class with most votes.
    Majority,
    /// The share of the votes of each class.
    Soft,
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

    /// Number of weights that score a row of so many encoded columns: none for plain sums.
    #[must_use]
    pub fn weights(&self, encoded: usize) -> usize {
        match *self {
            Self::ClassCount { .. }
            | Self::Marginals { .. }
            | Self::NumberBins { .. }
            | Self::TargetSum
            | Self::TargetBins { .. }
            | Self::Gram { .. }
            | Self::MatrixProduct { .. }
            | Self::LabelsByBin { .. }
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

/// Coordinates of [`Map::Marginals`] that count rows by their target: classes, or the count of usable rows.
#[must_use]
pub const fn target_counts(classes: u32) -> u32 {
    if classes > 0 { classes } else { 1 }
}

/// Numbers, blocks of categories and categories that marginals are asked of.
pub(super) fn marginal_counts(coding: &Coding) -> [u32; 3] {
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
pub(super) fn number_slots(coding: &Coding) -> u32 {
    let numbers = coding.slot_kinds().filter(|kind| matches!(kind, SlotKind::Numeric)).count();
    u32::try_from(numbers).expect("a schema caps its columns")
}
