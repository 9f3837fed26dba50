//! Sensitivities: how far one unit can move a sum. Pure integer functions of the query's shape; nobody types one.

use super::{
    COUNT_STEP, GRADIENT_NORM_MAX, LOG_LOSS_STEP, Loss, MINIMUM_STEPS, MINIMUM_TOLERANCE, Map, PARTY_STEPS, QueryShape,
    VoteRule, log_loss_cap,
};
use crate::adjacency::{Adjacency, Relation};
use crate::ceil_sqrt::ceil_sqrt;
use crate::encoding::LATTICE_NORM_MAX;
use crate::units::{L1Sensitivity, MuSquared, SensitivitySquared};

/// The square of the longest slope times row.
const SLOPE_ROW_SQUARE: u128 = (GRADIENT_NORM_MAX as u128).pow(2);
const COUNT_SQUARE: u128 = (COUNT_STEP as u128).pow(2);
const NORM: u128 = LATTICE_NORM_MAX as u128;

/// The share of what the votes of a party can reach that its products are shortened to.
const PARTY_REACH: (u128, u128) = (17, 20);

/// Maps that [`QueryShape::sensitivity`] bounds apart, not by one row's contribution.
macro_rules! of_its_own {
    () => {
        Map::MatrixProduct { .. }
            | Map::LabelsByBin { .. }
            | Map::LabelBins
            | Map::LabelSquares
            | Map::PartyVectors { .. }
            | Map::PartyMinimum { .. }
            | Map::Minimum(_)
    };
}

impl QueryShape {
    /// Square of the L2 sensitivity under a relation, in lattice units; `None` when there is no finite bound.
    ///
    /// ```text
    ///   one row:   ||(rows, correct)||² <= 2 · 2^40      |loss| <= (4 + ceil ln(K/2)) 2^20      ||counts by cell|| <= 2^20
    ///              ||excess hits||² <= 5/4 · 2^40, replaced 17/4 · 2^40      ||confidence steps|| <= 2^20
    ///              ||marginals||² <= 2^40 (1 + K + P/2), K categorical and P numeric slots; 1 for the class, or for a number the row
    ///              ||bins of P numbers||² <= 2^40 P         |number| <= 32767
    ///              ||slope · row|| <= 2048 · 32767, or <= clip       ||softmax slope · row||² <= 2 (2048 · 32767)²
    ///              Gram: see [`gram`]
    ///   a unit of m rows, with one row's norm at most b, and |b - b'| the most that one row can move:
    ///     add-remove  m b        replace  m |b - b'|        label  m |b - b'| over labels only        party  none
    ///   matrix product:
    ///     label  m (high - low) max ||row||, sqrt(2) m high max ||row|| with an output a class;   add-remove, replace  none
    ///     party  twice [`Self::party_radius`]; with an output a class  sqrt(2) (high - low) sqrt(rows · lambda)
    ///   bins of labels:   label  m sqrt(2) counts;   squares of labels:   label  m 32767²      other relations  none
    ///   vectors of parties:   party  2 norm                                                          other relations  none
    ///   minimum of parties:   party  see [`party_minimum`]
    /// ```
    /// Guarantee: for tables that differ in one unit of `relation`, the exact sums differ by at most this, in L2.
    /// Source: derived at row F1 of `docs/formulas.md`.
    /// Edges: a unit other than the query's own has no bound here (`None`), nor has a whole party, except in what parties add.
    #[must_use]
    pub fn sensitivity(&self, relation: &Relation) -> Option<SensitivitySquared> {
        if relation.unit != self.unit {
            return None;
        }
        if let Map::Minimum(minimum) = self.map {
            let sensitivity = minimum.answer_sensitivity(relation.adjacency, self.unit.rows_max(), self.rows_max)?;
            return sensitivity.checked_mul(sensitivity).map(SensitivitySquared::new);
        }
        if let Map::MatrixProduct { .. } = self.map {
            return self.matrix_product_square(relation.adjacency).map(SensitivitySquared::new);
        }
        if let Map::LabelsByBin { .. } | Map::LabelBins | Map::LabelSquares = self.map {
            return self.label_statistic_square(relation.adjacency).map(SensitivitySquared::new);
        }
        if let Map::PartyVectors { .. } | Map::PartyMinimum { .. } = self.map {
            return self.party_square(relation.adjacency).map(SensitivitySquared::new);
        }
        let row_square = match relation.adjacency {
            Adjacency::AddRemove => self.row_norm_square(),
            Adjacency::Replace => self.row_change_square(),
            Adjacency::Label => self.label_change_square(),
            Adjacency::Party => return None,
        };
        let rows = u128::from(self.unit.rows_max());
        (rows * rows).checked_mul(row_square).map(SensitivitySquared::new)
    }

    /// L1 sensitivity under a relation, in lattice units; `None` where none was derived.
    ///
    /// ```text
    ///   a row of norm at most M has sum_j |q_j| <= sqrt(d) M =: s and sum_{j<l} |q_j q_l| <= (s² - ||q||²)/2
    ///   add-remove:  b = max(diagonal M² + off_diagonal (d M² - M²)/2, ...) + cross M s + square M²;   replace  2 b
    ///   label:       2 cross M s + square M²; to an unusable label, as add-remove
    ///   counts by cell:  2^20 add-remove, 2 · 2^20 replace and label;   a number:  M, 2 M;   a minimum:  sqrt(d) times its L2 bound
    ///   a unit of m rows:  m times that, but for a minimum, whose L2 bound has them
    /// ```
    /// Guarantee: as [`Self::sensitivity`], in L1. Source: Zhang et al. 2012, Section 4, with the norm bounded in L2 and one
    /// coordinate an unordered monomial; row F1 of `docs/formulas.md`.
    #[must_use]
    pub fn l1_sensitivity(&self, relation: &Relation) -> Option<L1Sensitivity> {
        if relation.unit != self.unit {
            return None;
        }
        let rows = u128::from(self.unit.rows_max());
        let row = match self.map {
            Map::Gram { .. } => self.gram_l1(relation.adjacency)?,
            Map::ClassCount { .. } | Map::ScoreHistogram { .. } | Map::TargetBins { .. } => match relation.adjacency {
                Adjacency::AddRemove => COUNT_STEP as u128,
                Adjacency::Replace | Adjacency::Label => 2 * COUNT_STEP as u128,
                Adjacency::Party => return None,
            },
            Map::TargetSum => match relation.adjacency {
                Adjacency::AddRemove => NORM,
                Adjacency::Replace | Adjacency::Label => 2 * NORM,
                Adjacency::Party => return None,
            },
            // ||v||_1 <= sqrt(d) ||v||_2, with the rows of the unit in the L2 bound already.
            Map::Minimum(minimum) => {
                let length = minimum.answer_sensitivity(relation.adjacency, self.unit.rows_max(), self.rows_max)?;
                let taxicab = length.checked_mul(ceil_sqrt(u128::from(self.coordinates())))?;
                return Some(L1Sensitivity::new(taxicab));
            }
            Map::Marginals { .. }
            | Map::NumberBins { .. }
            | Map::Gradient { .. }
            | Map::ClippedGradient { .. }
            | Map::SoftmaxGradient { .. }
            | Map::BoundedSoftmaxGradient { .. }
            | Map::MatrixProduct { .. }
            | Map::LabelsByBin { .. }
            | Map::LabelBins
            | Map::LabelSquares
            | Map::PartyVectors { .. }
            | Map::PartyMinimum { .. }
            | Map::CorrectCount { .. }
            | Map::ExcessHits { .. }
            | Map::ConfidenceSteps { .. }
            | Map::ResidualSteps { .. }
            | Map::LogLoss { .. }
            | Map::SquaredError => return None,
        };
        rows.checked_mul(row).map(L1Sensitivity::new)
    }

    /// Price of the random linear term of a minimum under a relation, rounded up: zero for every sum; `None` where it has no
    /// finite price.
    #[must_use]
    pub fn perturbation_price_up(&self, relation: &Relation) -> Option<MuSquared> {
        match self.map {
            Map::Minimum(minimum) if relation.unit == self.unit => {
                minimum.perturbation_price_up(relation.adjacency, self.unit.rows_max())
            }
            Map::Minimum(_) => None,
            Map::ClassCount { .. }
            | Map::Marginals { .. }
            | Map::NumberBins { .. }
            | Map::TargetSum
            | Map::TargetBins { .. }
            | Map::Gradient { .. }
            | Map::SoftmaxGradient { .. }
            | Map::BoundedSoftmaxGradient { .. }
            | Map::Gram { .. }
            | Map::ClippedGradient { .. }
            | Map::PartyVectors { .. }
            | Map::PartyMinimum { .. }
            | Map::MatrixProduct { .. }
            | Map::LabelsByBin { .. }
            | Map::LabelBins
            | Map::LabelSquares
            | Map::CorrectCount { .. }
            | Map::ExcessHits { .. }
            | Map::ConfidenceSteps { .. }
            | Map::ResidualSteps { .. }
            | Map::LogLoss { .. }
            | Map::ScoreHistogram { .. }
            | Map::SquaredError => Some(MuSquared::ZERO),
        }
    }

    /// Square of the largest norm of one row's contribution.
    fn row_norm_square(&self) -> u128 {
        match self.map {
            Map::ClassCount { .. } | Map::ScoreHistogram { .. } | Map::TargetBins { .. } => COUNT_SQUARE,
            Map::TargetSum => NORM.pow(2),
            Map::CorrectCount { .. } => 2 * COUNT_SQUARE,
            // At most (1 - p, (1 - p)/2) or (-p, (1 - p)/2).
            Map::ExcessHits { .. } => COUNT_SQUARE / 4 * 5,
            // Divided by the longest that it is with any label, where that is more than one step.
            Map::ConfidenceSteps { .. } | Map::ResidualSteps { .. } => COUNT_SQUARE,
            Map::LogLoss { classes } => (LOG_LOSS_STEP as u128 * u128::from(log_loss_cap(classes))).pow(2),
            // Count, quarter error, |label|, squared label: each at most one step.
            Map::SquaredError => 4 * COUNT_SQUARE,
            // Moments of a number: |u - 1/2|² + |(2u-1)² - 1/2|² <= 1/4 + 1/4.
            Map::Marginals { numeric, categorical, .. } => {
                COUNT_SQUARE * (1 + u128::from(categorical)) + COUNT_SQUARE / 2 * u128::from(numeric)
            }
            // One bin of every number.
            Map::NumberBins { numeric, .. } => COUNT_SQUARE * u128::from(numeric),
            Map::Gradient { .. } | Map::BoundedSoftmaxGradient { .. } => SLOPE_ROW_SQUARE,
            Map::ClippedGradient { clip, .. } => u128::from(clip).pow(2),
            Map::SoftmaxGradient { .. } => 2 * SLOPE_ROW_SQUARE,
            Map::Gram { .. } => self.gram(Adjacency::AddRemove),
            of_its_own!() => unreachable!("has its own bound"),
        }
    }

    /// Square of the most that the contribution of one row moves when the row is replaced by any other.
    fn row_change_square(&self) -> u128 {
        match self.map {
            // All contributions lie in the positive orthant with coordinates up to the step: a row with an unusable
            // label counts nothing, so a replaced row can still move a count by one.
            Map::CorrectCount { .. } | Map::LogLoss { .. } => self.row_norm_square(),
            // From (1, 1/2) to (-1, 0).
            Map::ExcessHits { .. } => COUNT_SQUARE / 4 * 17,
            // From a right class that no model expects, (1, 0, ..), to a wrong one that all are sure of, (-1, 0, ..).
            Map::ConfidenceSteps { .. } => 4 * self.row_norm_square(),
            // From a number far above all models to one far below.
            Map::ResidualSteps { .. } => 4 * self.row_norm_square(),
            // Three coordinates move by at most one step, the label by two.
            Map::SquaredError => 7 * COUNT_SQUARE,
            // From one cell to another.
            Map::ClassCount { .. } | Map::ScoreHistogram { .. } | Map::NumberBins { .. } | Map::TargetBins { .. } => {
                2 * self.row_norm_square()
            }
            // From one cell to another in each block of counts. Moments with c = 2u-1 move from (c/2, c²-1/2) to
            // (c'/2, c'²-1/2): with a = |c - c'| <= 2 and |c + c'| <= 2 - a the square is at most a² (1/4 + (2-a)²), whose
            // maximum over a is 1.2862; 13/10 leaves room for the rounding of both moments.
            Map::Marginals { classes, numeric, categorical, .. } => {
                let cells = u128::from(classes > 0) + u128::from(categorical);
                let counts = 2 * COUNT_SQUARE * cells;
                let usable = counts + COUNT_SQUARE * 13 / 10 * u128::from(numeric);
                // A row whose number becomes unusable leaves the count, and all else with it.
                usable.max(self.row_norm_square())
            }
            // From one end to the other.
            Map::TargetSum => 4 * self.row_norm_square(),
            // From c·x to -c·x.
            Map::Gradient { .. }
            | Map::ClippedGradient { .. }
            | Map::SoftmaxGradient { .. }
            | Map::BoundedSoftmaxGradient { .. } => 4 * self.row_norm_square(),
            Map::Gram { .. } => self.gram(Adjacency::Replace),
            of_its_own!() => unreachable!("has its own bound"),
        }
    }

    /// Square of the most that the contribution of one row moves when only its label changes.
    fn label_change_square(&self) -> u128 {
        match self.map {
            // The label may become unusable, and then the row leaves the sum. Else excess hits move by 1.
            Map::CorrectCount { .. } | Map::ExcessHits { .. } | Map::LogLoss { .. } | Map::NumberBins { .. } => {
                self.row_norm_square()
            }
            // The first coordinate alone looks at the label, and moves by the weight.
            Map::ConfidenceSteps { .. } => self.row_norm_square(),
            Map::SquaredError | Map::TargetSum | Map::ResidualSteps { .. } => self.row_change_square(),
            // From one class to another, or, unusable, out of the sum.
            Map::Marginals { classes, .. } => (2 * COUNT_SQUARE * u128::from(classes > 0)).max(self.row_norm_square()),
            Map::ClassCount { .. } | Map::ScoreHistogram { .. } | Map::TargetBins { .. } => 2 * self.row_norm_square(),
            // s·x to (s - 2048)·x with 0 <= s <= 2048; to 0 when the label becomes unusable.
            Map::Gradient { loss: Loss::Logistic, .. } => self.row_norm_square(),
            // min(s, t)·x to -min(2048 - s, t)·x with t ||x|| <= clip: together at most 2048 and at most 2t.
            Map::ClippedGradient { .. } => SLOPE_ROW_SQUARE.min(4 * self.row_norm_square()),
            // min(1, e^z) to -min(1, e^-z): at z = 0 from 1 to -1.
            Map::Gradient { loss: Loss::TwoSidedExponential, .. } | Map::BoundedSoftmaxGradient { .. } => {
                4 * self.row_norm_square()
            }
            // The residual of a number from above c to below -c.
            Map::Gradient { loss: Loss::Huber, .. } => 4 * self.row_norm_square(),
            // s - 2048 e_y to s - 2048 e_y' with the same s; to 0 from a square of at most 2 · 2048².
            Map::SoftmaxGradient { .. } => self.row_norm_square(),
            Map::Gram { .. } => self.gram(Adjacency::Label),
            of_its_own!() => unreachable!("has its own bound"),
        }
    }

    /// Square of what one row moves the blocks `(a q q^T, b y q, c y²)`, `||q|| <= M`, `|y| <= M`.
    ///
    /// ```text
    ///   a² = max(diagonal², off_diagonal²/2): then sum_j diagonal² q_j⁴ + sum_{j<l} off_diagonal² q_j² q_l² <= a² ||q||⁴
    ///   add-remove:  (a² + b² + c²) M⁴
    ///   replace:     (xx and xy) 4 b² M⁴ if b² >= 2 a², else (2 a² + 2 b² + b⁴/(2 a²)) M⁴;  plus c² M⁴ for y²
    ///   label:       4 b² M⁴ + c² M⁴; to an unusable label, as add-remove
    /// ```
    /// Derived in `docs/methods/gram.md`; row F1 of `docs/formulas.md`. The terms are bounded apart and added, which is valid
    /// and exact where `square` is 0.
    fn gram(&self, adjacency: Adjacency) -> u128 {
        let Map::Gram { diagonal, off_diagonal, cross, square, .. } = self.map else {
            unreachable!("called for a Gram query only")
        };
        let square_of = |value: u32| u128::from(value).pow(2);
        // Twice a², so that off_diagonal²/2 stays an integer.
        let twice_a = (2 * square_of(diagonal)).max(square_of(off_diagonal));
        let (b, c) = (square_of(cross), square_of(square));
        // Twice the bound in units of M⁴, rounded up.
        let with_row = twice_a + 2 * b + 2 * c;
        let twice = match adjacency {
            Adjacency::AddRemove => with_row,
            Adjacency::Replace => {
                let products =
                    if b >= twice_a { 8 * b } else { 2 * twice_a + 4 * b + (2 * b * b).div_ceil(twice_a.max(1)) };
                (products + 2 * c).max(with_row)
            }
            Adjacency::Label => (8 * b + 2 * c).max(with_row),
            Adjacency::Party => unreachable!("refused before"),
        };
        twice.div_ceil(2) * NORM.pow(4)
    }

    /// L1 norm of what one row moves the blocks of a Gram query.
    fn gram_l1(&self, adjacency: Adjacency) -> Option<u128> {
        let Map::Gram { columns, diagonal, off_diagonal, cross, square, .. } = self.map else { return None };
        let columns = u128::from(columns);
        // sum |q_j| <= sqrt(d) M, rounded up.
        let taxicab = ceil_sqrt(columns * NORM * NORM);
        // diagonal sum q_j² + off_diagonal sum_{j<l} |q_j q_l|; with s = sum |q_j| the second sum is (s² - ||q||²)/2, so the
        // whole is (diagonal - off/2) ||q||² + off/2 s², largest at s² = d M² and ||q|| = M, or at ||q|| = M alone.
        let (diagonal, off_diagonal) = (u128::from(diagonal), u128::from(off_diagonal));
        let products = (NORM * NORM * (2 * diagonal + off_diagonal * (columns - 1))).div_ceil(2);
        let (cross, square) = (u128::from(cross) * NORM * taxicab, u128::from(square) * NORM * NORM);
        let with_row = products + cross + square;
        match adjacency {
            Adjacency::AddRemove => Some(with_row),
            Adjacency::Replace => Some(2 * with_row),
            Adjacency::Label => Some((2 * cross + square).max(with_row)),
            Adjacency::Party => None,
        }
    }

    fn party_square(&self, adjacency: Adjacency) -> Option<u128> {
        match adjacency {
            Adjacency::Party => {}
            Adjacency::AddRemove | Adjacency::Replace | Adjacency::Label => return None,
        }
        let steps = match self.map {
            Map::PartyVectors { norm, .. } => 2 * u128::from(norm),
            Map::PartyMinimum { .. } => self.party_minimum(),
            Map::ClassCount { .. }
            | Map::Marginals { .. }
            | Map::NumberBins { .. }
            | Map::TargetSum
            | Map::TargetBins { .. }
            | Map::Gradient { .. }
            | Map::ClippedGradient { .. }
            | Map::SoftmaxGradient { .. }
            | Map::BoundedSoftmaxGradient { .. }
            | Map::Gram { .. }
            | Map::MatrixProduct { .. }
            | Map::LabelsByBin { .. }
            | Map::LabelBins
            | Map::LabelSquares
            | Map::CorrectCount { .. }
            | Map::ExcessHits { .. }
            | Map::ConfidenceSteps { .. }
            | Map::ResidualSteps { .. }
            | Map::LogLoss { .. }
            | Map::ScoreHistogram { .. }
            | Map::Minimum(_)
            | Map::SquaredError => return None,
        };
        steps.checked_mul(steps)
    }

    /// The most that the minimum on the lattice moves when one party's votes are replaced, in lattice steps.
    ///
    /// ```text
    ///   F_a(w) = mean_i loss(w; x_i, a_i) + penalty/2 ||w||², ||x_i|| <= 1:  grad F_a - grad F_a' = mean_i (a'_i - a_i) x_iᵀ
    ///   strong convexity:  ||w* - w*'|| <= max_i ||a_i - a'_i|| / penalty
    ///     majority  ||a_i - a'_i|| <= sqrt(2) <= 2      soft  at most sqrt(2)/M <= 2/M      (2: as Hamm et al. state it)
    ///   a computed minimum has a gradient of norm at most tau: it lies within tau/penalty of w*, on both sides
    ///   rounding to the lattice:  |round s - round t| <= |s - t| + 1 in each of d coordinates
    ///   in steps:  2 steps / (penalty M) + 2 tau steps / penalty + sqrt(d), each term rounded up
    /// ```
    /// Source: Hamm, Cao, Belkin 2016, Thm 1 and 3; the last two terms derived; row F92 of `docs/formulas.md`.
    fn party_minimum(&self) -> u128 {
        let Map::PartyMinimum { columns, outputs, rule, penalty, parties } = self.map else {
            unreachable!("called for a minimum of parties only")
        };
        let sharing = match rule {
            VoteRule::Majority => 1,
            VoteRule::Soft => u128::from(parties),
        };
        let per_penalty = 2 * u128::from(MINIMUM_STEPS) * u128::from(PARTY_STEPS);
        let penalty = u128::from(penalty);
        per_penalty.div_ceil(penalty * sharing)
            + per_penalty.div_ceil(penalty * u128::from(MINIMUM_TOLERANCE))
            + ceil_sqrt(u128::from(columns) * u128::from(outputs))
    }

    /// A label moves from one bin to another, or leaves one; or its square moves from 0 to the largest.
    fn label_statistic_square(&self, adjacency: Adjacency) -> Option<u128> {
        let row_square = if let Map::LabelSquares = self.map { NORM.pow(4) } else { 2 * COUNT_SQUARE };
        let unit_rows = u128::from(self.unit.rows_max());
        match adjacency {
            Adjacency::Label => (unit_rows * unit_rows).checked_mul(row_square),
            // Which rows there are is public, and votes are no numbers.
            Adjacency::Party | Adjacency::AddRemove | Adjacency::Replace => None,
        }
    }

    /// How far the products of one party's votes may lie from those of votes in the middle of the range, in a matrix product with one output:
    /// `17/20` of `(high - low)/2 · sqrt(rows · lambda)`, rounded down. `None` for any other query, and where no party has a price.
    ///
    /// Without the `17/20` it would shorten nothing, as `||matrix^T delta||² <= lambda ||delta||²`. Votes by the sign of a normal score that is linear
    /// in the rows reach `sqrt(2/pi) = 0.80` of that: see `docs/methods/party.md`.
    #[must_use]
    pub fn party_radius(&self) -> Option<i128> {
        let Map::MatrixProduct { outputs: 1, label_low, label_high, rows, eigenvalue, .. } = self.map else {
            return None;
        };
        if rows == 0 || eigenvalue == 0 {
            return None;
        }
        let (numerator, denominator) = PARTY_REACH;
        let span = (i128::from(label_high) - i128::from(label_low)).unsigned_abs();
        let square = (numerator * span).pow(2).checked_mul(rows.into())?.checked_mul(eigenvalue.into())?;
        // The root of the whole part is the whole part of the root.
        i128::try_from((square / (2 * denominator).pow(2)).isqrt()).ok()
    }

    fn matrix_product_square(&self, adjacency: Adjacency) -> Option<u128> {
        let Map::MatrixProduct { outputs, label_low, label_high, rows, row_norm_square, eigenvalue, .. } = self.map
        else {
            unreachable!("called for a matrix product only")
        };
        let span = (i128::from(label_high) - i128::from(label_low)).unsigned_abs();
        // With an output a class, one label moves two outputs by at most the span each.
        let span_square = span * span * if outputs > 1 { 2 } else { 1 };
        let unit_rows = u128::from(self.unit.rows_max());
        match adjacency {
            // A private label may move what a party votes on every row: votes have no price here.
            Adjacency::Label if eigenvalue == 0 => {
                (unit_rows * unit_rows).checked_mul(span_square.checked_mul(row_norm_square.into())?)
            }
            // From one side of the ball that a party's products are shortened to, to the other.
            Adjacency::Party if outputs == 1 => {
                let radius = self.party_radius()?.unsigned_abs();
                (2 * radius).checked_mul(2 * radius)
            }
            // ||matrix^T delta||² <= lambda ||delta||², and ||delta||² <= rows · span².
            Adjacency::Party if rows > 0 && eigenvalue > 0 => {
                span_square.checked_mul(rows.into())?.checked_mul(eigenvalue.into())
            }
            // A row of the matrix is public: there is no bound on what its presence changes.
            Adjacency::Label | Adjacency::Party | Adjacency::AddRemove | Adjacency::Replace => None,
        }
    }
}
