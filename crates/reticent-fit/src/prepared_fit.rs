//! A fit that is planned and can be paid for: the plan, and a function from its releases to a model.

use std::sync::Arc;

use reticent_core::coding::CODE_MAX;
use reticent_core::encoding::Encoding;
use reticent_core::ledger::{PlannedRelease, Request};
use reticent_core::minimum::MinimumQuery;
use reticent_core::pass_weights::PassWeights;
use reticent_core::public_features::{PublicFeatures, TooManyNumbers};
use reticent_core::public_matrix::PublicMatrix;
use reticent_core::query::SumQuery;
use reticent_core::schema::Schema;
use reticent_core::session::{Grant, Session, SessionError};
use reticent_core::sum::Release;
use reticent_core::target_window::TargetWindow;
use thiserror::Error;

use crate::certificate::Certificate;
use crate::model::Model;
use crate::plan::Plan;
use crate::usable_rows::UsableRows;

/// A fit that is planned and can be paid for.
pub struct PreparedFit {
    plan: Plan,
    encoding: Option<Arc<Encoding>>,
    compute: Box<Compute>,
}

/// From the releases of a plan to a model. It sees nothing else of the rows.
type Compute = dyn Fn(&mut Releases<'_, '_>) -> Result<Fitted, FitError> + Send + Sync;

/// A fit that did not come to an end.
#[derive(Debug, Error)]
pub enum FitError {
    /// The payment or a release failed.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The computation on released values failed.
    #[error("the releases were charged, but no model could be computed: {0}")]
    Numeric(String),
    /// There is nothing to fit, which was found before anything was paid. That is itself told of the declared classes alone: the ledger holds
    /// to them now.
    #[error(
        "no row has a usable label; compare the spellings of the target's values with the schema (a number is written 12.5, not 12,5 or \
         12 kg). Nothing was charged, but the ledger holds to the classes or bounds of this schema from now on, as others would tell labels \
         unpaid: for others make another ledger with `reticent ledger init`, or remove this one if nothing was paid through it"
    )]
    NoLabels,
    /// Under label adjacency: more rows with a usable label than can be held with all their columns.
    #[error(
        "{0}; in `fit`, --method noisy-gd keeps rows by what is not 0 in them. Nothing was charged, but the ledger holds to the classes or bounds of \
         this schema from now on, as with others the number of rows would tell labels unpaid"
    )]
    TooManyFeatures(TooManyNumbers),
}

/// What a method hands back: weights of the encoded columns, and the encoding that they belong to.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// Public map from rows to columns.
    pub encoding: Arc<Encoding>,
    /// One weight a column, the intercept first; output after output: one for a number or two classes, else one a class.
    /// A score of a number is on the scale that maps the target's bounds onto `[-1, 1]`.
    pub weights: Vec<f64>,
    /// Covariance of the weights, where the method knows it.
    pub covariance: Option<Covariance>,
}

/// What is not known of weights, and of which columns they are.
#[derive(Clone, Debug, PartialEq)]
pub struct Covariance {
    /// Covariances of the weights, row after row.
    pub values: Vec<f64>,
    /// About the mean of each encoded column before it is centred, up to one factor: of a category the share of the rows.
    pub column_means: Vec<f64>,
}

impl Covariance {
    /// Of weights for these public rows.
    #[must_use]
    pub fn beside_rows(values: Vec<f64>, features: &PublicFeatures) -> Self {
        let mut sums = vec![0u64; features.columns];
        for row in features.codes.chunks_exact(features.columns) {
            sums.iter_mut().zip(row).for_each(|(sum, code)| *sum += u64::from(*code));
        }
        let whole = features.rows().max(1) as f64 * f64::from(CODE_MAX);
        Self { values, column_means: sums.into_iter().map(|sum| sum as f64 / whole).collect() }
    }
}

impl PreparedFit {
    /// A fit by `compute`, which asks for the releases of the plan in their order.
    ///
    /// `encoding` is the map from rows to columns of the first question that needs one, if it is known before anything is
    /// released: an engine can try it out before payment.
    pub fn new(
        plan: Plan,
        encoding: Option<Arc<Encoding>>,
        compute: impl Fn(&mut Releases<'_, '_>) -> Result<Fitted, FitError> + Send + Sync + 'static,
    ) -> Self {
        Self { plan, encoding, compute: Box::new(compute) }
    }

    /// The same, with the reason for which its method was chosen.
    #[must_use]
    pub fn because(mut self, reason: Option<String>) -> Self {
        self.plan.reason = reason;
        self
    }

    /// What will be asked.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The map from rows to columns of the first question that needs one, if it is known before anything is released.
    #[must_use]
    pub fn encoding(&self) -> Option<&Arc<Encoding>> {
        self.encoding.as_ref()
    }

    /// Pays for the whole plan before its first release, and fits the model, with the certificate of what was paid. `data` is the owner's name
    /// of the data; `progress` is shown each release as it comes.
    ///
    /// The schema has to be the one that the plan was made with and the rows were read by, but that the plan may be for a counted number of rows.
    ///
    /// # Errors
    /// [`FitError`]; what was charged stays charged. Nothing is where schemas differ.
    pub fn fit(
        &self,
        session: &mut Session<'_>,
        data: &str,
        schema: &Schema,
        progress: &mut dyn FnMut(&Release),
    ) -> Result<Model, FitError> {
        if !self.plan.is_of(schema) {
            return Err(SessionError::WrongSchema.into());
        }
        let request = self.plan.request(data, schema);
        let mut usable = UsableRows::of(&self.plan);
        let mut observe = |release: &Release| {
            usable.observe(release);
            progress(release);
        };
        let mut releases =
            Releases { plan: &self.plan, request: &request, session, grants: None, progress: &mut observe };
        releases.refuse_without_labels()?;
        let fitted = (self.compute)(&mut releases)?;
        if !fitted.weights.iter().all(|weight| weight.is_finite()) {
            return Err(FitError::Numeric("a coefficient is not a finite number".to_owned()));
        }
        let entry = session.last_entry().expect("the releases were paid in this session");
        let certificate = Certificate::of(&self.plan, &request, entry);
        Ok(Model::from_weights(schema, &fitted, Some(certificate)).remarked(usable.remark(schema)))
    }
}

/// The releases of one plan, to be asked for in its order. The first one pays for all, if that was not done before.
pub struct Releases<'a, 's> {
    plan: &'a Plan,
    request: &'a Request,
    session: &'a mut Session<'s>,
    /// `None` before payment: what a method does until then costs nothing when it fails.
    grants: Option<std::vec::IntoIter<Grant>>,
    progress: &'a mut dyn FnMut(&Release),
}

impl Releases<'_, '_> {
    /// The planned release number `place`.
    #[must_use]
    pub fn planned(&self, place: usize) -> &PlannedRelease {
        &self.plan.releases[place]
    }

    /// Number of planned releases, each counted once however often it is repeated.
    #[must_use]
    pub fn count(&self) -> usize {
        self.plan.releases.len()
    }

    /// The features of the rows, so many columns each, where the claim is about labels alone: see [`Session::public_features`].
    ///
    /// # Errors
    /// [`FitError::TooManyFeatures`], [`FitError::Session`] when the rows cannot be reached.
    pub fn public_features(&mut self, columns: usize) -> Result<PublicFeatures, FitError> {
        match self.session.public_features(self.request, columns) {
            // How many rows have a usable label follows from which have: as where none has.
            Err(SessionError::TooManyFeatures(error)) => {
                self.session.hold_to_labels(self.request, "too many features")?;
                Err(FitError::TooManyFeatures(error))
            }
            features => Ok(features?.expect("planned for label adjacency, where features are public")),
        }
    }

    /// Pays for all releases now: for a method that goes on from what labels decide, and what they decide must not come out in an error,
    /// or in the time until one, that nobody paid for.
    ///
    /// # Errors
    /// [`FitError::Session`] when the payment fails.
    pub fn pay(&mut self) -> Result<(), FitError> {
        if self.grants.is_none() {
            self.grants = Some(self.session.pay(self.request)?.into_iter());
        }
        Ok(())
    }

    /// Refuses a table without usable labels, where which rows have one is public: before payment, and after the ledger holds to the labels that
    /// it is about.
    fn refuse_without_labels(&mut self) -> Result<(), FitError> {
        if !self.session.is_without_labels(self.request)? {
            return Ok(());
        }
        self.session.hold_to_labels(self.request, "no row has a usable label")?;
        Err(FitError::NoLabels)
    }

    /// The noisy sum over the encoded rows that is planned at `place`.
    ///
    /// # Errors
    /// [`FitError::Session`] when the payment or the release fails.
    pub fn sum(&mut self, place: usize, encoding: &Arc<Encoding>, weights: PassWeights) -> Result<Release, FitError> {
        let shape = self.planned(place).shape.clone();
        let query = SumQuery::new(shape, encoding.clone(), weights).expect("the plan was made with these columns");
        self.release(|session, grant| session.release(grant, &query))
    }

    /// The noisy answer about labels or votes on the rows of a public matrix that is planned at `place`; a product with numbers reads
    /// them in `window`.
    ///
    /// # Errors
    /// [`FitError::Session`] when the payment or the release fails.
    pub fn of_matrix(
        &mut self,
        place: usize,
        matrix: &Arc<PublicMatrix>,
        window: TargetWindow,
    ) -> Result<Release, FitError> {
        let shape = self.planned(place).shape.clone();
        let query = SumQuery::of_matrix_in(shape, matrix.clone(), window).expect("the plan was made for such a matrix");
        self.release(|session, grant| session.release(grant, &query))
    }

    /// The noisy minimum that is planned at `place`, penalised around `centre`.
    ///
    /// # Errors
    /// [`FitError::Session`] when the payment or the release fails.
    pub fn minimum(&mut self, place: usize, encoding: &Arc<Encoding>, centre: &[f64]) -> Result<Release, FitError> {
        let shape = self.planned(place).shape.clone();
        let query = MinimumQuery::new(shape, encoding.clone(), centre).expect("the plan was made with these columns");
        self.release(|session, grant| session.release_minimum(grant, &query))
    }

    fn release(
        &mut self,
        ask: impl FnOnce(&mut Session<'_>, Grant) -> Result<Release, SessionError>,
    ) -> Result<Release, FitError> {
        self.pay()?;
        let grant = self.grants.as_mut().and_then(Iterator::next);
        let released = ask(self.session, grant.expect("the plan pays for each release"))?;
        (self.progress)(&released);
        Ok(released)
    }
}
