//! The one door: pay, then ask, then get a noisy answer.
//!
//! ```text
//!   pay(request) ──▶ ledger charged on disk ──▶ grants ──▶ release(grant, query) ──▶ exact sum + noise ──▶ Release
//! ```
//! A [`Grant`] can only come out of [`Session::pay`], is consumed by the release it pays for, and fits one shape of query.

use std::sync::atomic::{AtomicU64, Ordering};

use thiserror::Error;

use crate::adjacency::{Adjacency, PrivacyUnit, Relation};
use crate::engine::{Disclosure, Engine, EngineError};
use crate::ledger::{LedgerError, LedgerReference, LedgerStore, PlannedRelease, Request};
use crate::minimum::{MinimumQuery, PERTURBATION_CUT};
use crate::noise::entropy::EntropyError;
use crate::noise::source::NoiseSource;
use crate::public_features::{PublicFeatures, TooManyNumbers};
use crate::query::{QueryShape, SumQuery};
use crate::sum::Release;
use crate::units::{NoiseDistribution, NoiseScale};

/// Access to private rows against payment.
pub struct Session<'a> {
    engine: &'a dyn Engine,
    ledger: &'a mut dyn LedgerStore,
    noise: NoiseSource,
    claimed: Relation,
    /// All that the ledger promises.
    promised: Vec<Relation>,
    /// Number of this session in the process: a grant of another one is worth nothing here.
    number: u64,
}

/// The right to one release: paid for, not yet used.
#[must_use = "a grant is paid for"]
pub struct Grant {
    session: u64,
    shape: QueryShape,
    noise_scale: NoiseScale,
    noise: NoiseDistribution,
}

/// A release that did not happen.
#[derive(Debug, Error)]
pub enum SessionError {
    /// The ledger refused, or its file could not be written: nothing was granted. Whether an entry stands all the same is in the
    /// message.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The rows could not be read: what was charged stays charged.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The operating system gave no randomness: what was charged stays charged.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
    /// The query is not the one that was paid for: a mistake in a method's code.
    #[error("a grant for {granted:?} does not pay for {asked:?}")]
    WrongGrant {
        /// What was paid for.
        granted: Box<QueryShape>,
        /// What was asked.
        asked: Box<QueryShape>,
    },
    /// The grant was paid for in another session, perhaps to another ledger: a mistake in a method's code.
    #[error("a grant is worth nothing outside the session that paid for it")]
    ForeignGrant,
    /// Rows were capped for another unit than the claim is about.
    #[error("the rows were read with privacy unit {read}, and the claim is about {claimed}; read them with one schema")]
    WrongUnit {
        /// Unit of the engine.
        read: PrivacyUnit,
        /// Unit of the claim.
        claimed: PrivacyUnit,
    },
    /// Rows were read by another schema than the request is planned with.
    #[error(
        "the rows were read by another schema than this request was made with; read them, plan and ask with one schema"
    )]
    WrongSchema,
    /// Features were to be shown, and the ledger promises something that they are private under.
    #[error(
        "the features of all rows would be public, and the ledger also promises {promised}, under which they are not; use a ledger \
         that promises label adjacency alone"
    )]
    PrivateFeatures {
        /// What is promised besides.
        promised: Relation,
    },
    /// Features were to be shown, and are too many to be held.
    #[error(transparent)]
    TooManyFeatures(#[from] TooManyNumbers),
    /// A planned release is about another unit than the claim: a mistake in a method's code.
    #[error(
        "a release was planned for privacy unit {planned}, and the claim is about {claimed}; plan it with the schema of the rows"
    )]
    WrongPlan {
        /// Unit of the planned release.
        planned: PrivacyUnit,
        /// Unit of the claim.
        claimed: PrivacyUnit,
    },
}

impl<'a> Session<'a> {
    /// Opens the door to an engine's rows, with fresh noise from the operating system.
    ///
    /// `claimed` is the relation that the certificate will speak of; the ledger must promise it.
    ///
    /// # Errors
    /// [`SessionError`] when the claim fits neither the rows nor the ledger, or there is no randomness.
    pub fn open(
        engine: &'a dyn Engine,
        ledger: &'a mut dyn LedgerStore,
        claimed: Relation,
    ) -> Result<Self, SessionError> {
        Self::open_with(engine, ledger, claimed, NoiseSource::from_operating_system()?)
    }

    pub(crate) fn open_with(
        engine: &'a dyn Engine,
        ledger: &'a mut dyn LedgerStore,
        claimed: Relation,
        noise: NoiseSource,
    ) -> Result<Self, SessionError> {
        if engine.unit() != &claimed.unit {
            return Err(SessionError::WrongUnit { read: engine.unit().clone(), claimed: claimed.unit });
        }
        let account = ledger.account()?;
        account.check_promised(&claimed).map_err(LedgerError::from)?;
        let promised = account.spent.into_keys().collect();
        static SESSIONS: AtomicU64 = AtomicU64::new(0);
        let number = SESSIONS.fetch_add(1, Ordering::Relaxed);
        Ok(Self { engine, ledger, noise, claimed, promised, number })
    }

    /// The number of rows, where it is public: see [`Relation::has_public_row_number`]. What is public under the claim may be private under
    /// another promise of the ledger's: it has to be public under all of them.
    ///
    /// It is for the request that will be paid once it is planned with that number, so it is told only where the ledger would admit the
    /// request as it is planned so far. Under label adjacency the number is of the rows whose label is among the request's: told to a request
    /// about other labels than earlier ones, it would count those labels, and what is planned with it may fail before anything is paid.
    ///
    /// `None` under every other relation, and of an engine that does not tell.
    ///
    /// # Errors
    /// [`SessionError::Ledger`] when the ledger would not admit the request.
    pub fn public_row_number(&self, request: &Request) -> Result<Option<u64>, SessionError> {
        if !self.promised.iter().all(|promised| self.claimed.reads_public_row_number_of(promised)) {
            return Ok(None);
        }
        self.check_admitted(request)?;
        Ok(self.engine.row_number(&Disclosure::of_what_is_public()))
    }

    /// Whether no row has a usable label, where which rows have one is public under every promise; else `false`, as of an engine that does not tell.
    /// It is for the request that will be paid.
    ///
    /// # Errors
    /// [`SessionError::Ledger`] when the ledger would not admit the request, as one about other labels than earlier ones.
    pub fn is_without_labels(&self, request: &Request) -> Result<bool, SessionError> {
        if !self.promised.iter().chain([&self.claimed]).all(|promised| promised.adjacency == Adjacency::Label) {
            return Ok(false);
        }
        self.check_admitted(request)?;
        Ok(self.engine.row_number(&Disclosure::of_what_is_public()) == Some(0))
    }

    /// The features of the rows with a usable label, where the claim is about labels alone and features are public to the fitter; they
    /// are for the request that will be paid. They have so many columns each.
    ///
    /// `None` under every other adjacency.
    ///
    /// # Errors
    /// [`SessionError::Ledger`] when the ledger would not admit the request, as one about other labels than earlier ones,
    /// [`SessionError::PrivateFeatures`] when it promises more than labels, [`SessionError::TooManyFeatures`] before
    /// memory is asked for, [`SessionError::Engine`] when the rows cannot be reached.
    pub fn public_features(&self, request: &Request, columns: usize) -> Result<Option<PublicFeatures>, SessionError> {
        match self.claimed.adjacency {
            Adjacency::Label => {
                if let Some(promised) = self.promised.iter().find(|promised| promised.adjacency != Adjacency::Label) {
                    return Err(SessionError::PrivateFeatures { promised: promised.clone() });
                }
                self.check_admitted(request)?;
                let disclosure = Disclosure::of_what_is_public();
                if let Some(rows) = self.engine.row_number(&disclosure) {
                    PublicFeatures::check_size(rows, columns)?;
                }
                Ok(self.engine.public_features(&disclosure)?)
            }
            Adjacency::AddRemove | Adjacency::Replace | Adjacency::Party => Ok(None),
        }
    }

    /// The relation that the claim is about.
    #[must_use]
    pub fn claimed(&self) -> &Relation {
        &self.claimed
    }

    /// The entry of the last payment, for a certificate: see [`LedgerStore::last_entry`].
    #[must_use]
    pub fn last_entry(&self) -> Option<LedgerReference> {
        self.ledger.last_entry()
    }

    /// Charges the ledger for everything in the request and hands out one grant a release, in order.
    ///
    /// The charge is on disk when this returns: a crash from here on counts as spent.
    ///
    /// # Errors
    /// [`SessionError`]; nothing was granted then. Whether an entry stands all the same is in the message of
    /// [`SessionError::Ledger`].
    pub fn pay(&mut self, request: &Request) -> Result<Vec<Grant>, SessionError> {
        if let Some(other) = request.releases.iter().find(|release| release.shape.unit() != &self.claimed.unit) {
            let (planned, claimed) = (other.shape.unit().clone(), self.claimed.unit.clone());
            return Err(SessionError::WrongPlan { planned, claimed });
        }
        self.check_schema(request)?;
        self.ledger.charge(request)?;
        let session = self.number;
        let grants = |release: &PlannedRelease| {
            let PlannedRelease { shape, noise_scale, noise, times, .. } = release.clone();
            (0..times).map(move |_| Grant { session, shape: shape.clone(), noise_scale, noise })
        };
        Ok(request.releases.iter().flat_map(grants).collect())
    }

    /// Writes down, for nothing, which labels the request is about, where labels are all that is promised and so which rows have a usable one
    /// is public: what follows from that alone, `why`, may then be told, as no later request can ask it of other classes.
    ///
    /// # Errors
    /// [`SessionError::Ledger`] when the ledger would not admit the request, or its file could not be written.
    pub fn hold_to_labels(&mut self, request: &Request, why: &str) -> Result<(), SessionError> {
        self.check_schema(request)?;
        let purpose = format!("{}: {why}", request.purpose);
        self.ledger.charge(&Request { purpose, releases: Vec::new(), ..request.clone() })?;
        Ok(())
    }

    /// Answers one query with noise.
    ///
    /// Guarantee: under every promised relation the answer is `mu`-GDP with the `mu` that was charged, jointly over all
    /// coordinates and adaptively over all releases: integer sum of sensitivity `B`, plus `round(S Z)`, is a
    /// post-processing of the Gaussian mechanism with `mu = B/S`. With discrete Laplace noise of scale `S` it is
    /// `B_1/S`-DP, `B_1` the L1 sensitivity, and so `mu`-GDP with the `mu` that was charged.
    /// Source: Dong, Roth, Su 2022 (arXiv:1905.02383), Thm 2.7 and Cor 3.3; row F3 of `docs/formulas.md`.
    ///
    /// # Errors
    /// [`SessionError`]; the grant is used up in every case.
    pub fn release(&mut self, grant: Grant, query: &SumQuery) -> Result<Release, SessionError> {
        let grant = self.accept(grant, query.shape())?;
        // All noise is drawn before any row is touched, so that its timing cannot depend on the rows.
        let noise = self.noise.draw(grant.noise, grant.noise_scale, query.shape().coordinates(), self.engine)?;
        let exact = self.engine.exact_sum(query)?;
        #[cfg(feature = "danger")]
        let exact = self.noise.witness_sum(query, exact);
        let step = query.sum_step();
        let noise_standard_deviation = grant.noise.standard_deviation(grant.noise_scale) * step;
        let release = Release { integers: exact.add_noise(noise), step, noise_standard_deviation };
        #[cfg(feature = "danger")]
        self.noise.witness_release(&release);
        Ok(release)
    }

    /// Answers a question for a minimum with noise.
    ///
    /// Guarantee: as [`Self::release`]. The linear term and the noise of the answer are drawn before any row is touched. The
    /// exact minimum of the objective perturbed by the *continuous* term is a first, virtual release at the price of
    /// [`crate::account::objective`]; what the engine answers lies within a certified distance of it, and noise for that
    /// distance is the second. Without a linear term the exact minimum's own sensitivity is part of the second.
    /// Source: `docs/methods/objective-perturbation.md`, `docs/methods/output-perturbation.md`.
    ///
    /// # Errors
    /// [`SessionError`]; the grant is used up in every case.
    pub fn release_minimum(&mut self, grant: Grant, query: &MinimumQuery) -> Result<Release, SessionError> {
        let grant = self.accept(grant, query.shape())?;
        let coordinates = query.shape().coordinates();
        let perturbation = match NoiseScale::new(query.minimum().perturbation) {
            Ok(scale) => {
                let mut term = self.noise.draw(NoiseDistribution::RoundedGaussian, scale, coordinates, self.engine)?;
                let cut = PERTURBATION_CUT * i128::from(scale.get());
                term.iter_mut().for_each(|one| *one = (*one).clamp(-cut, cut));
                term
            }
            // Scale 0: output perturbation has no linear term.
            Err(_) => vec![0; coordinates as usize],
        };
        let noise = self.noise.draw(grant.noise, grant.noise_scale, coordinates, self.engine)?;
        #[cfg(feature = "danger")]
        let perturbation = self.noise.witness_linear_term(perturbation);
        let minimum = self.engine.exact_minimum(query, &perturbation)?;
        #[cfg(feature = "danger")]
        let minimum = self.noise.witness_minimum(query, perturbation, minimum);
        let step = query.answer_step();
        let noise_standard_deviation = grant.noise.standard_deviation(grant.noise_scale) * step;
        let release = Release { integers: minimum.add_noise(noise), step, noise_standard_deviation };
        #[cfg(feature = "danger")]
        self.noise.witness_release(&release);
        Ok(release)
    }

    /// Refuses a request that speaks of the rows in other words than they were read in.
    fn check_schema(&self, request: &Request) -> Result<(), SessionError> {
        if request.schema == self.engine.schema() { Ok(()) } else { Err(SessionError::WrongSchema) }
    }

    /// Refuses what a payment would be refused for as the ledger stands.
    fn check_admitted(&self, request: &Request) -> Result<(), SessionError> {
        self.check_schema(request)?;
        self.ledger.account()?.admit(request).map_err(LedgerError::from)?;
        Ok(())
    }

    /// Takes a grant that was paid for here and for this shape.
    fn accept(&self, grant: Grant, asked: &QueryShape) -> Result<Grant, SessionError> {
        if grant.session != self.number {
            return Err(SessionError::ForeignGrant);
        }
        if &grant.shape != asked {
            let (granted, asked) = (Box::new(grant.shape), Box::new(asked.clone()));
            return Err(SessionError::WrongGrant { granted, asked });
        }
        Ok(grant)
    }
}
