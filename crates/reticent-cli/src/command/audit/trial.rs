//! Repeated fits of one pair of neighbours, and a test that tells them apart.

use rayon::prelude::*;
use reticent_core::engine::Engine;
use reticent_core::ledger::{Account, LedgerError, LedgerReference, LedgerStore, Request};
use reticent_core::schema::Schema;
use reticent_core::session::Session;
use reticent_fit::audit::TestErrors;
use reticent_fit::prepared_fit::{FitError, PreparedFit};
use reticent_math::discriminant::{direction, separation_square};

use super::Audit;
use crate::args::TrialArguments;
use crate::failure::Failure;
use crate::progress;

/// Fits of each neighbour of a candidate pair in the first round of the pilot.
const PILOT_RUNS: u64 = 100;
/// From one round of the pilot to the next: that many times the fits, of that part of the pairs.
const PILOT_FACTOR: usize = 4;
/// Sums that the answers of one repeated release are put together in: a test of every single answer would drown in the noise of
/// its own weights.
const GROUPS: usize = 4;

/// What is fitted.
pub(super) type Neighbour = Box<dyn Engine + Sync>;

/// A fit, and two neighbours to fit.
pub(super) struct Trial<'a> {
    pub(super) description: String,
    pub(super) prepared: &'a PreparedFit,
    /// Makes them: those of all trials together may be large.
    pub(super) neighbours: Box<dyn Fn() -> [Neighbour; 2] + 'a>,
}

impl Trial<'_> {
    /// What `runs` fits of each neighbour release.
    fn releases(&self, schema: &Schema, runs: u64, done: &(dyn Fn() + Sync)) -> Result<[Vec<Vec<f64>>; 2], Failure> {
        let of_neighbour = |engine: &(dyn Engine + Sync)| {
            let one = |_| {
                done();
                releases_of_one_fit(engine, schema, self.prepared)
            };
            (0..runs).into_par_iter().map(one).collect::<Result<Vec<_>, Failure>>()
        };
        let [first, second] = (self.neighbours)();
        Ok([of_neighbour(&*first)?, of_neighbour(&*second)?])
    }
}

/// Finds the trial that shows most, in rounds of more fits of fewer trials, and judges it.
pub(super) fn judge<'a>(arguments: &TrialArguments, schema: &Schema, trials: Vec<Trial<'a>>) -> Result<Audit, Failure> {
    let rounds: Vec<(usize, u64)> = pilot(trials.len()).collect();
    let pilot_fits: u64 = rounds.iter().map(|(trials, runs)| *trials as u64 * runs).sum();
    let bar = progress::fits(2 * (pilot_fits + 2 * arguments.runs));
    let releases = |trial: &Trial<'_>, runs: u64| trial.releases(schema, runs, &|| bar.inc(1));

    let mut left = trials;
    for (count, runs) in rounds {
        let apart = |trial: Trial<'a>| {
            let [first, second] = releases(&trial, runs)?;
            Ok((separation_square(&first, &second), trial))
        };
        let mut found = left.into_iter().take(count).map(apart).collect::<Result<Vec<_>, Failure>>()?;
        found.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        left = found.into_iter().map(|(_, trial)| trial).collect();
    }
    let trial = left.first().expect("every adjacency has candidates");

    let [first, second] = releases(trial, arguments.runs)?;
    let weights = direction(&first, &second);
    let score = |one: &Vec<f64>| one.iter().zip(&weights).map(|(value, weight)| value * weight).sum::<f64>();
    let mean = |sample: &[Vec<f64>]| sample.iter().map(score).sum::<f64>() / sample.len() as f64;
    let threshold = 0.5 * (mean(&first) + mean(&second));

    let [first, second] = releases(trial, arguments.runs)?;
    bar.finish_and_clear();
    let scores = [first, second].map(|sample| sample.iter().map(score).collect::<Vec<f64>>());
    let errors = TestErrors {
        false_alarms: scores[0].iter().filter(|score| **score > threshold).count() as u64,
        misses: scores[1].iter().filter(|score| **score <= threshold).count() as u64,
        runs: arguments.runs,
    };
    let plan = trial.prepared.plan();
    let claim = plan.claim.clone();
    let price = plan.request("synthetic", schema).price_up(&claim.relation).expect("the fits were admitted");
    Ok(Audit {
        method: plan.method,
        claim,
        mu: price.mu_up(),
        pair: trial.description.clone(),
        errors,
        bounds: errors.lower_bounds(arguments.confidence, arguments.delta.get()),
        scores,
    })
}

/// How many trials take part in each round of a pilot of this many, and with how many fits of each neighbour.
fn pilot(trials: usize) -> impl Iterator<Item = (usize, u64)> {
    let first = (trials > 1).then_some((trials, PILOT_RUNS));
    std::iter::successors(first, |(trials, runs)| {
        let next = trials.div_ceil(PILOT_FACTOR);
        (next > 1).then_some((next, runs * PILOT_FACTOR as u64))
    })
}

/// All that one fit releases, the answers of a repeated release added up in a few groups.
fn releases_of_one_fit(engine: &dyn Engine, schema: &Schema, prepared: &PreparedFit) -> Result<Vec<f64>, Failure> {
    let mut ledger = SyntheticLedger::new(schema);
    let mut session = Session::open(engine, &mut ledger, schema.relation())?;
    // The planned release and the group that each answer belongs to.
    let mut places = prepared.plan().releases.iter().enumerate().flat_map(|(release, planned)| {
        (0..planned.times as usize).map(move |time| (release, time * GROUPS / planned.times as usize))
    });
    let mut sums: Vec<((usize, usize), Vec<f64>)> = Vec::new();
    let fitted = prepared.fit(&mut session, "synthetic", schema, &mut |released| {
        let place = places.next().expect("the plan has each release");
        let values = released.values();
        match sums.last_mut() {
            Some((last, sum)) if *last == place => {
                sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
            }
            _ => sums.push((place, values)),
        }
    });
    match fitted {
        // A model that cannot be computed from its releases changes nothing about what was released.
        Ok(_) | Err(FitError::Numeric(_)) => {}
        Err(error @ (FitError::Session(_) | FitError::NoLabels | FitError::TooManyFeatures(_))) => {
            return Err(error.into());
        }
    }
    Ok(sums.into_iter().flat_map(|(_, sum)| sum).collect())
}

/// The account of neighbours that nobody is in: it follows the rules and forgets.
struct SyntheticLedger(Account);

impl SyntheticLedger {
    fn new(schema: &Schema) -> Self {
        Self(Account::promising([schema.relation()], None))
    }
}

impl LedgerStore for SyntheticLedger {
    fn account(&self) -> Result<Account, LedgerError> {
        Ok(self.0.clone())
    }

    fn charge(&mut self, request: &Request) -> Result<(), LedgerError> {
        Ok(self.0.book(request)?)
    }

    fn last_entry(&self) -> Option<LedgerReference> {
        Some(LedgerReference { id: "synthetic".to_owned(), entry: 1, seal: None })
    }
}
