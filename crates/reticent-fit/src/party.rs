//! Models from the votes of parties on public auxiliary rows, under party adjacency: everything that one party holds may
//! be replaced.
//!
//! ```text
//!   votes ──▶ noisy statistic  Xᵀ a     ──▶ noise-aware estimate       (default)
//!        ├──▶ soft labels      minimum of the loss on a, plus noise    (Hamm et al. 2016, Algorithm 2)
//!        ├──▶ majority         the same on the majority's classes      (Algorithm 1)
//!        └──▶ averaging        mean of one model a party, plus noise   (Pathak et al. 2010)
//! ```
//! `docs/methods/party.md` compares them, says what was mended and how to run each as published.

mod auxiliary;
mod averaging;
pub mod local;
mod minimum;
mod statistic;

use reticent_core::ledger::PlannedRelease;
use reticent_core::query::{PARTY_STEPS, VoteRule};
use reticent_core::schema::TargetKind;

pub use self::auxiliary::{Auxiliary, AuxiliaryError};
use crate::method::FitRequest;
use crate::options::MethodOption;
use crate::plan::{Expectation, Plan, PlanError};
use crate::prepared_fit::PreparedFit;

/// How votes become a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combiner {
    /// One noisy linear statistic of the votes, then public estimation.
    NoisyStatistic,
    /// Output perturbation of the model fitted to the shares of votes.
    SoftLabels,
    /// Output perturbation of the model fitted to the majority's classes.
    Majority,
    /// The mean of one model a party, with noise.
    Averaging,
}

/// A fit to be, with what is public about its parties.
#[derive(Clone, Copy)]
pub struct PartyRequest<'a> {
    /// Schema, claim and options.
    pub fit: FitRequest<'a>,
    /// The rows that were voted on.
    pub auxiliary: &'a Auxiliary,
    /// Number of parties on the list.
    pub parties: u64,
}

impl Combiner {
    /// All of them, the default first.
    pub const ALL: [Self; 4] = [Self::NoisyStatistic, Self::SoftLabels, Self::Majority, Self::Averaging];

    /// Name on the command line, in ledgers and in certificates.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoisyStatistic => "party-statistic",
            Self::SoftLabels => "party-soft-labels",
            Self::Majority => "party-majority",
            Self::Averaging => "party-averaging",
        }
    }

    /// One line for a help text.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        match self {
            Self::NoisyStatistic => "one noisy linear statistic of the votes, then a noise-aware estimate (default)",
            Self::SoftLabels => "output perturbation on the shares of votes (Hamm et al. 2016, Algorithm 2)",
            Self::Majority => "output perturbation on the majority's classes (Hamm et al. 2016, Algorithm 1)",
            Self::Averaging => "noisy mean of one model a party (Pathak et al. 2010)",
        }
    }

    /// What may be chosen.
    #[must_use]
    pub const fn options(self) -> &'static [MethodOption] {
        match self {
            Self::NoisyStatistic => &[],
            Self::SoftLabels | Self::Majority => &[PENALTY],
            Self::Averaging => &[PENALTY, NORM],
        }
    }
}

const PENALTY: MethodOption = MethodOption {
    name: "penalty",
    value: "LAMBDA",
    help: "Ridge on the mean loss, lambda in the paper: more means less noise and more bias [default: 0.1]",
    choices: &[],
};

const NORM: MethodOption = MethodOption {
    name: "norm",
    value: "B",
    help: "Bound on the norm of one party's model, for rows of norm at most 1 [default: 1/LAMBDA; of two classes no model is longer than sqrt(1.4/LAMBDA) or 1/(2 LAMBDA)]",
    choices: &[],
};

/// Prepares a fit, from public values alone.
///
/// # Errors
/// [`PlanError`] names the flag or the part of the schema to change.
pub fn prepare(combiner: Combiner, request: &PartyRequest<'_>) -> Result<PreparedFit, PlanError> {
    if let TargetKind::Bounds { .. } = request.fit.schema.target().kind {
        let found = "bounds; parties vote on classes".to_owned();
        return Err(PlanError::Target { method: combiner.name(), fits: "two or more classes", found });
    }
    if request.fit.init.is_some() {
        return Err(PlanError::Parameter(
            "combining votes takes no --init: give parties the public model to vote with".to_owned(),
        ));
    }
    let (rows, columns) = (request.auxiliary.rows(), request.auxiliary.columns());
    if rows.saturating_mul(columns) > AUXILIARY_NUMBERS_MAX {
        return Err(PlanError::Parameter(format!(
            "{rows} auxiliary rows of {columns} encoded columns are more than the {AUXILIARY_NUMBERS_MAX} numbers that are held in memory \
             several times to combine votes; take fewer auxiliary rows, or list fewer categories or hash buckets"
        )));
    }
    request.fit.check_claim()?;
    request.fit.options.check(combiner.name(), combiner.options())?;
    match combiner {
        Combiner::NoisyStatistic => statistic::prepare(request),
        Combiner::SoftLabels => minimum::prepare(request, VoteRule::Soft),
        Combiner::Majority => minimum::prepare(request, VoteRule::Majority),
        Combiner::Averaging => averaging::prepare(request),
    }
}

/// Numbers of all columns of all auxiliary rows, zeros among them: 1 GiB each time.
const AUXILIARY_NUMBERS_MAX: usize = 1 << 27;

/// The penalty in steps of `1 / PARTY_STEPS`.
fn penalty_steps(request: &PartyRequest<'_>) -> Result<u32, PlanError> {
    const DEFAULT: f64 = 0.1;
    let allowed = |penalty: f64| (1e-5..=1e3).contains(&penalty);
    let penalty = request.fit.options.number("penalty", "between 0.00001 and 1000", allowed)?.unwrap_or(DEFAULT);
    Ok((penalty * f64::from(PARTY_STEPS)).round() as u32)
}

/// No weights of a minimum of the mean loss are longer: rows have norm at most 1, `penalty` is the ridge.
/// ```text
///   loss(w) + penalty/2 |w|² <= loss(0) = ln K;    penalty |w|² <= -grad(w)·w <= -grad(0)·w,  |grad(0)| <= sqrt(1 - 1/K),  1/2 of two classes
/// ```
fn longest_minimum(classes: u32, penalty: f64) -> f64 {
    let classes_f64 = f64::from(classes);
    let slope = if classes == 2 { 0.5 } else { (1.0 - 1.0 / classes_f64).sqrt() };
    (2.0 * classes_f64.ln() / penalty).sqrt().min(slope / penalty)
}

/// What noise does to a model of so many weights, whose norm is at most `largest` whatever the votes, and what would make that less.
fn noise_expectations(noise: f64, weights: usize, largest: f64, remedy: &str) -> [Expectation; 2] {
    let share = noise * (weights as f64).sqrt() / largest;
    let advice = if share < MOSTLY_NOISE {
        String::new()
    } else {
        format!(": the model will be mostly noise; take {remedy}, or party-statistic")
    };
    [
        Expectation {
            name: "noise of a weight",
            value: noise,
            meaning: "standard deviation, for rows of norm at most 1, whose scores it moves by as much".to_owned(),
        },
        Expectation {
            name: "noise over model",
            value: share,
            meaning: format!("length of all noise over the largest length that the votes can give the model{advice}"),
        },
    ]
}

/// Noise over model from which on a plan says so: models are seldom as long as they can be.
const MOSTLY_NOISE: f64 = 0.5;

/// The plan of a combiner with its one release: the auxiliary rows and the list of parties are public, too.
fn plan(
    combiner: Combiner,
    request: &PartyRequest<'_>,
    release: PlannedRelease,
    expectations: Vec<Expectation>,
) -> Plan {
    let mut plan = Plan::of(combiner.name(), &request.fit, vec![release], expectations);
    plan.public.push(format!(
        "{} auxiliary rows (sha256 {}): NOT protected, whoever they are about",
        request.auxiliary.rows(),
        request.auxiliary.fingerprint()
    ));
    plan.public.push(format!("the names of the {} parties, and that each of them voted", request.parties));
    plan
}
