//! The answer about labels: what the file of a release holds, and what is checked before it is believed.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{PlannedAnswer, WeightList, canonical_name, number_shares};
use crate::adjacency::{PrivacyUnit, Relation};
use crate::contribution::{CodedLabel, UNUSABLE_LABEL};
use crate::encoding::LATTICE_NORM_MAX;
use crate::ledger::{Budget, PlannedRelease};
use crate::query::{Map, ProductTarget};
use crate::schema::TargetKind;
use crate::target_window::TargetWindow;
use crate::units::{Delta, Epsilon, MuSquared, NoiseScale};

/// The answer, as it is kept in the label holder's ledger and sent to whoever asked: noisy, and so public.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelRelease {
    /// [`LABEL_RELEASE_FORMAT`].
    pub format: String,
    /// [`LABEL_RELEASE_VERSION`].
    pub version: u32,
    /// What is not protected, for whoever opens the file: [`NOT_PROTECTED`]. Programs say it themselves, not as the sender has it.
    pub not_protected: String,
    /// Whose labels are protected.
    pub relation: Relation,
    /// Epsilon at [`Self::delta`], as the label holder granted it.
    pub epsilon: Epsilon,
    /// Delta of the claim.
    pub delta: Delta,
    /// Name of the question: [`canonical_name`].
    pub query: String,
    /// Identity of the label holder's ledger.
    pub label_set: String,
    /// Entry of the ledger.
    pub entry: u64,
    /// Fingerprint of the label holder's schema.
    pub schema: String,
    /// The column of labels, as the label holder's table names it; empty in answers of before it was told.
    #[serde(default)]
    pub target_column: String,
    /// The label holder's classes or bounds.
    pub target: TargetKind,
    /// Label of ids that the label holder does not know, and of labels that cannot be used, in code.
    pub unmatched: CodedLabel,
    /// Questions and noise, as charged.
    pub planned: PlannedAnswer,
    /// What was found of labels that are numbers; none for classes.
    pub numbers: Option<ReleasedNumbers>,
    /// Noisy integers of the product, output after output, as decimal text.
    pub integers: Vec<String>,
}

/// What an answer says of labels that are numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReleasedNumbers {
    /// The part of their bounds in which they were read, found in their bins.
    pub window: TargetWindow,
    /// Noisy sum of their squares there, in steps of `1/32767²` of the square of half its width: an integer as decimal text.
    pub square: String,
}

/// The label of rows that the label holder has no usable label for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum UnmatchedLabel<'a> {
    /// Name of a class.
    Class(&'a str),
    /// A number, in the label holder's own unit: the mean of its labels as far as it was found, if it named none.
    Number(f64),
}

/// What every answer says about features.
pub const NOT_PROTECTED: &str =
    "features, event ids and the number of rows are NOT protected: only labels are, and only against whoever asks";

/// [`LabelRelease::format`].
pub const LABEL_RELEASE_FORMAT: &str = "reticent-label-release";
/// [`LabelRelease::version`] that this software writes and reads.
pub const LABEL_RELEASE_VERSION: u32 = 3;

/// One part of that many of a budget: the sender's machine may have rounded its `mu²` otherwise, by a part in 10^11.
const CLAIM_SLACK: NonZeroU32 = NonZeroU32::new(1_000_000_000).expect("not zero");

/// Standard deviations of noise that are as good as never passed: by the Gaussian with a chance of `e^-2000`, by Laplace's with `e^-90`.
const NOISE_REACH: f64 = 64.0;

/// A release file that cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LabelReleaseError {
    /// Another kind or version of document.
    #[error("this is not a release of labels of version {LABEL_RELEASE_VERSION}; `reticent walr measure` writes one")]
    Format,
    /// Integers that are missing, too many or no integers; noise that is not what the claim asks for.
    #[error("the release contradicts itself: {0}")]
    Inconsistent(&'static str),
    /// A text that could change what a terminal shows.
    #[error("the release has a control character in a name, and `reticent walr measure` writes none; ask for it again")]
    ControlCharacter,
    /// It answers another question.
    #[error(
        "the release answers another question: it does not belong to these weights; use the weights that were measured"
    )]
    OtherWeights,
}

impl LabelRelease {
    /// The noisy integers as numbers, after checking that they answer the question of this list.
    ///
    /// # Errors
    /// [`LabelReleaseError`].
    pub fn values_for(&self, list: &WeightList) -> Result<Vec<f64>, LabelReleaseError> {
        if self.format != LABEL_RELEASE_FORMAT || self.version != LABEL_RELEASE_VERSION {
            return Err(LabelReleaseError::Format);
        }
        if self.names().any(|name| name.chars().any(char::is_control)) {
            return Err(LabelReleaseError::ControlCharacter);
        }
        let PlannedAnswer { of_numbers, product } = &self.planned;
        let Map::MatrixProduct { target, outputs, .. } = *product.shape.map() else {
            return Err(LabelReleaseError::Inconsistent("its question is not one about labels"));
        };
        let maps: Vec<&Map> = of_numbers.iter().map(|planned| planned.shape.map()).collect();
        let is_number = target == ProductTarget::Number;
        // How many bins tell most is the answering side's to say.
        let is_asked = match maps[..] {
            [] => !is_number,
            [Map::LabelsByBin { .. }, Map::LabelsByBin { .. }, Map::LabelSquares] => is_number,
            _ => false,
        };
        if !is_asked || self.numbers.is_some() != is_number {
            return Err(LabelReleaseError::Inconsistent(
                "what is asked of numbers alone belongs to a target with bounds",
            ));
        }
        let is_of_target = match &self.target {
            TargetKind::Bounds { .. } => (target, outputs) == (ProductTarget::Number, 1),
            TargetKind::Classes(classes) => {
                let classes = classes.len() as u32;
                target == ProductTarget::Class && classes > 1 && outputs == if classes == 2 { 1 } else { classes }
            }
        };
        if !is_of_target {
            return Err(LabelReleaseError::Inconsistent("its question is not one about its target"));
        }
        self.unmatched_label()?;
        if of_numbers.iter().chain([product]).any(|planned| planned.times != 1) {
            return Err(LabelReleaseError::Inconsistent("its question was not answered once"));
        }
        if self.planned.price_up(&self.relation).is_none() {
            return Err(LabelReleaseError::Inconsistent("its question has no finite price under its relation"));
        }
        if !self.noise_is_as_claimed(list.matrix().rows()) {
            return Err(LabelReleaseError::Inconsistent("its noise is not that of its epsilon and delta"));
        }
        let name = canonical_name(list, &self.label_set, &self.schema, self.unmatched, &self.relation, &self.planned);
        if name != self.query {
            return Err(LabelReleaseError::OtherWeights);
        }
        if self.integers.len() != product.shape.coordinates() as usize {
            return Err(LabelReleaseError::Inconsistent("it does not have one number for each question"));
        }
        let sums: Vec<f64> = self.integers.iter().map(|text| number_of(text)).collect::<Result<_, _>>()?;
        self.check_within_reach(&sums, list)?;
        Ok(sums)
    }

    /// Refuses numbers that no labels give, whatever the noise.
    fn check_within_reach(&self, sums: &[f64], list: &WeightList) -> Result<(), LabelReleaseError> {
        let Map::MatrixProduct { outputs, label_low, label_high, .. } = *self.planned.product.shape.map() else {
            unreachable!("it was found to be one")
        };
        // One output a class adds `label_high` or nothing.
        let low = if outputs > 1 { 0.0 } else { f64::from(label_low) };
        let high = f64::from(label_high);
        let columns = list.matrix().columns();
        let mut range = vec![(0.0, 0.0); columns];
        for row in list.matrix().values().chunks_exact(columns) {
            for ((least, most), weight) in range.iter_mut().zip(row) {
                let ends = [low * f64::from(*weight), high * f64::from(*weight)];
                *least += ends[0].min(ends[1]);
                *most += ends[0].max(ends[1]);
            }
        }
        let noise = NOISE_REACH * self.noise_standard_deviation();
        let is_reached = |(sum, (least, most)): (&f64, &(f64, f64))| (least - noise..=most + noise).contains(sum);
        let mut squares = self.square()?.into_iter();
        let squares_most = list.ids().len() as f64 * high.powi(2);
        let square_is_reached =
            squares.all(|(sum, noise)| (-NOISE_REACH * noise..=squares_most + NOISE_REACH * noise).contains(&sum));
        if square_is_reached && sums.iter().zip(range.iter().cycle()).all(is_reached) {
            return Ok(());
        }
        Err(LabelReleaseError::Inconsistent("one of its numbers is larger than labels and noise can make it"))
    }

    /// The part of their bounds in which labels were read: all of them for classes.
    #[must_use]
    pub fn window(&self) -> TargetWindow {
        self.numbers.as_ref().map_or(TargetWindow::BOUNDS, |numbers| numbers.window)
    }

    /// The sum of squared labels, in steps, and the standard deviation of its noise; none for classes.
    ///
    /// # Errors
    /// [`LabelReleaseError::Inconsistent`] when it is no integer.
    pub fn square(&self) -> Result<Option<(f64, f64)>, LabelReleaseError> {
        let (Some(numbers), Some(planned)) = (&self.numbers, self.planned.of_numbers.last()) else { return Ok(None) };
        Ok(Some((number_of(&numbers.square)?, planned.noise.standard_deviation(planned.noise_scale))))
    }

    /// The texts that the reader's certificate repeats.
    fn names(&self) -> impl Iterator<Item = &str> {
        let unit = match &self.relation.unit {
            PrivacyUnit::Row => None,
            PrivacyUnit::Column { column, rows_max: _ } => Some(column.as_str()),
        };
        let PlannedAnswer { of_numbers, product } = &self.planned;
        let purposes = of_numbers.iter().chain([product]).map(|planned| planned.purpose.as_str());
        [self.label_set.as_str(), &self.schema, &self.target_column].into_iter().chain(purposes).chain(unit)
    }

    /// Whether each noise is the least whose price epsilon and delta allow for a list of so many rows, up to [`CLAIM_SLACK`].
    fn noise_is_as_claimed(&self, rows: usize) -> bool {
        let budget = Budget { epsilon: self.epsilon, delta: self.delta }.mu_squared_down();
        let PlannedAnswer { of_numbers, product } = &self.planned;
        if of_numbers.is_empty() {
            return self.is_least_noise(product, budget);
        }
        let (shares, left) = number_shares(budget, rows as f64, &self.relation.unit);
        let mut of_shares = of_numbers.iter().zip(shares);
        of_shares.all(|(planned, share)| self.is_least_noise(planned, share)) && self.is_least_noise(product, left)
    }

    fn is_least_noise(&self, planned: &PlannedRelease, budget: MuSquared) -> bool {
        let slack = budget.fraction_down(1, CLAIM_SLACK);
        let is_within = |scale: u64, budget: MuSquared| {
            let planned = NoiseScale::new(scale).map(|noise_scale| PlannedRelease { noise_scale, ..planned.clone() });
            planned.ok().and_then(|planned| planned.price_up(&self.relation)).is_some_and(|price| price <= budget)
        };
        let scale = planned.noise_scale.get();
        let (most, least) = (budget.checked_add(slack).unwrap_or(MuSquared::MAX), budget.checked_sub(slack));
        is_within(scale, most) && !least.is_some_and(|least| is_within(scale - 1, least))
    }

    /// Where in its bounds a number was read, in the label holder's own unit; none for classes, or where it is all of the bounds.
    #[must_use]
    pub fn read_range(&self) -> Option<(f64, f64)> {
        let TargetKind::Bounds { low, high } = self.target else { return None };
        let window = self.window();
        let at = |share: f64| within(low, high, share);
        let (centre, half) = (window.centre(), window.half());
        (window != TargetWindow::BOUNDS).then(|| (at(centre - half), at(centre + half)))
    }

    /// What rows count as that the label holder has no usable label for.
    ///
    /// # Errors
    /// [`LabelReleaseError::Inconsistent`] when it is no label of the target.
    pub fn unmatched_label(&self) -> Result<UnmatchedLabel<'_>, LabelReleaseError> {
        match &self.target {
            TargetKind::Classes(classes) => {
                let class = usize::try_from(self.unmatched).ok().and_then(|place| classes.get(place));
                class
                    .map(|class| UnmatchedLabel::Class(&class.name))
                    .ok_or(LabelReleaseError::Inconsistent("the label of unmatched ids is none of its classes"))
            }
            TargetKind::Bounds { low, high } => {
                let window = self.window();
                let share = match self.unmatched {
                    UNUSABLE_LABEL => window.missing(),
                    label => f64::from(label) / f64::from(LATTICE_NORM_MAX),
                };
                Ok(UnmatchedLabel::Number(within(*low, *high, share)))
            }
        }
    }

    /// Standard deviation of the noise of one integer of the product.
    #[must_use]
    pub fn noise_standard_deviation(&self) -> f64 {
        let product = &self.planned.product;
        product.noise.standard_deviation(product.noise_scale)
    }
}

/// The number at a place of its bounds, where these are -1 and 1.
fn within(low: f64, high: f64, share: f64) -> f64 {
    low + (high - low) * (share + 1.0) / 2.0
}

fn number_of(text: &str) -> Result<f64, LabelReleaseError> {
    let integer = text.parse::<i128>();
    integer
        .map(|integer| integer as f64)
        .map_err(|_| LabelReleaseError::Inconsistent("one of its numbers is not an integer of at most 38 digits"))
}
