//! Regression on labels that another organisation holds: weights out, a noisy release back, a model from it.
//!
//! The same design and the same estimate as method `walr` in one process; only the release happens elsewhere, under the label
//! holder's own ledger. Nothing here is private: features are the fitter's own, and the release is noisy.

use std::sync::Arc;

use reticent_core::adjacency::Adjacency;
use reticent_core::coding::Coding;
use reticent_core::encoding::{Encoding, NormRule};
use reticent_core::label_query::{LabelRelease, LabelReleaseError, NOT_PROTECTED, UnmatchedLabel, WeightList};
use reticent_core::label_use::LabelUse;
use reticent_core::ledger::{LedgerReference, Request};
use reticent_core::public_features::PublicFeatures;
use reticent_core::public_matrix::PublicMatrix;
use reticent_core::query::QueryShape;
use reticent_core::schema::{Schema, TargetKind};
use reticent_core::units::NoiseScale;
use reticent_math::noise_aware_map::Noisy;
use thiserror::Error;

use crate::certificate::Certificate;
use crate::method::walr::{self, Walr};
use crate::method::{Method, start_weights};
use crate::model::Model;
use crate::options::Options;
use crate::plan::{
    Plan, PlanError, PrivacyClaim, USABLE_LABELS_PUBLIC, no_sensitivity, public_of_schema, public_of_start,
};
use crate::prepared_fit::{Covariance, Fitted};

/// Weights that cannot be made, or a release that no model can be made of.
#[derive(Debug, Error)]
pub enum ElsewhereError {
    /// The feature side's schema speaks of another adjacency.
    #[error(
        "the schema says {0}, and a regression on another organisation's labels protects labels only: write \
         adjacency = \"label\" under [privacy]"
    )]
    Adjacency(Adjacency),
    /// A flag, the schema or the start model.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The release does not belong to the weights, or is no release.
    #[error(transparent)]
    Release(#[from] LabelReleaseError),
    /// The two sides do not mean the same target.
    #[error(
        "the release is about {found} and the schema's target is {expected}; agree on the target with the label holder"
    )]
    Target {
        /// Target of the release.
        found: String,
        /// Target of the schema.
        expected: String,
    },
    /// A descent splits the gradient into features and the released sum, which holds for the features' own vectors alone.
    #[error(
        "the weights were not made for a published solver; fit with --solver noise-aware, the default, or make new ones with \
         `walr prepare --solver full-batch` or `hybrid-minibatch`, which both take, and have them measured"
    )]
    Solver,
    /// The features.
    #[error(transparent)]
    Features(#[from] walr::UnfitFeatures),
    /// The computation failed.
    #[error(
        "no model could be computed of the release: {0}. It stays good, and nothing more is charged for another try"
    )]
    Estimate(#[from] walr::NoEstimate),
}

/// Chooses one row of integers for every row of features, for about the noise that `claim` will bring.
///
/// The claim is a wish: it shapes the weights and binds nobody. Any noise gives a valid model. Of `options`, those of method `walr`, the solver
/// alone matters here: the published ones take the features times a constant.
///
/// # Errors
/// [`ElsewhereError`].
pub fn weights(
    schema: &Schema,
    features: PublicFeatures,
    claim: &PrivacyClaim,
    options: &Options,
) -> Result<PublicMatrix, ElsewhereError> {
    let settings = settings(schema, options)?;
    walr::check_estimate(schema, &settings)?;
    let columns = Coding::of(schema).columns().len() as u32;
    let model = walr::response_model(schema);
    let (features, _) = walr::read_features(features, &plain(schema), model, &settings);
    let map = walr::product_map(model, columns);
    let shape = QueryShape::of_schema(map, schema).map_err(PlanError::from)?;
    let sensitivity =
        shape.sensitivity(&claim.relation).ok_or_else(|| no_sensitivity(walr::NAME, &shape, &claim.relation))?;
    let scale = NoiseScale::smallest_within(sensitivity, claim.mu_squared).ok_or(PlanError::TooSmall {
        unit: "mu",
        budget: claim.mu,
        releases: 1,
    })?;
    Ok(walr::public_matrix(&features, model, &settings, scale.get() as f64)?)
}

/// Fits a model to a release about the rows of a list; `features` are in the list's order. `options` are those of method `walr`.
///
/// # Errors
/// [`ElsewhereError`].
pub fn fit(
    schema: &Schema,
    features: PublicFeatures,
    list: &WeightList,
    release: &LabelRelease,
    init: Option<&Model>,
    options: &Options,
) -> Result<Model, ElsewhereError> {
    let settings = settings(schema, options)?;
    walr::check_estimate(schema, &settings)?;
    let sums = release.values_for(list)?;
    check_target(schema, release)?;
    let model = walr::response_model(schema);
    let (features, encoding) = walr::read_features(features, &plain(schema), model, &settings);
    let is_published = matches!(settings, walr::Settings::Descent(_));
    if is_published && *list.matrix().as_ref() != walr::public_matrix(&features, model, &settings, 0.0)? {
        return Err(ElsewhereError::Solver);
    }
    let start = init.map(|init| start_weights(init, schema, &encoding)).transpose()?;
    let unit = walr::label_unit(model).powi(2);
    let square = release.square()?.map(|(value, noise)| Noisy { value: value / unit, noise: noise / unit });
    let released = walr::Released {
        matrix: list.matrix(),
        sums: &sums,
        noise: release.noise_standard_deviation(),
        window: release.window(),
        square,
    };
    let (weights, covariance) = walr::estimate(&features, &released, model, &settings, start.as_deref())?;
    let covariance = covariance.map(|values| Covariance::beside_rows(values, &features));
    let fitted = Fitted { encoding: Arc::new(encoding), weights, covariance };
    Ok(Model::from_weights(schema, &fitted, Some(certificate(schema, release, init)?)))
}

fn plain(schema: &Schema) -> Encoding {
    Encoding::plain(Coding::of(schema), NormRule::OwnNorm)
}

fn settings(schema: &Schema, options: &Options) -> Result<walr::Settings, ElsewhereError> {
    match schema.privacy().adjacency {
        Adjacency::Label => {
            options.check(walr::NAME, Walr.options())?;
            Ok(walr::Settings::of(options)?)
        }
        other @ (Adjacency::AddRemove | Adjacency::Replace | Adjacency::Party) => Err(ElsewhereError::Adjacency(other)),
    }
}

/// Refuses a release about another target: what it counts is one class of several in their order, or a number within its bounds. How each
/// side names the column and spells a class is its own affair.
///
/// # Errors
/// [`ElsewhereError::Target`].
pub fn check_target(schema: &Schema, release: &LabelRelease) -> Result<(), ElsewhereError> {
    let own = &schema.target().kind;
    let same = match (own, &release.target) {
        (TargetKind::Classes(own), TargetKind::Classes(other)) => {
            own.iter().map(|class| &class.name).eq(other.iter().map(|class| &class.name))
        }
        (own @ TargetKind::Bounds { .. }, other @ TargetKind::Bounds { .. }) => own == other,
        (TargetKind::Classes(_), TargetKind::Bounds { .. }) | (TargetKind::Bounds { .. }, TargetKind::Classes(_)) => {
            false
        }
    };
    if same {
        return Ok(());
    }
    Err(ElsewhereError::Target { found: described(&release.target), expected: described(own) })
}

fn described(target: &TargetKind) -> String {
    match target {
        TargetKind::Classes(classes) => {
            // Those of another organisation, too: a name may hold what a terminal obeys.
            let names: Vec<String> = classes.iter().map(|class| class.name.escape_debug().to_string()).collect();
            format!("the classes {}", names.join(", "))
        }
        TargetKind::Bounds { low, high } => format!("a number in [{low}, {high}]"),
    }
}

/// The label holder's claim, with its ledger.
fn certificate(
    schema: &Schema,
    release: &LabelRelease,
    init: Option<&Model>,
) -> Result<Certificate, LabelReleaseError> {
    let claim = PrivacyClaim::new(release.relation.clone(), release.epsilon, release.delta);
    let mut public = public_of_schema(schema);
    // Which labels can be used is known to their holder alone.
    public.retain(|line| line != USABLE_LABELS_PUBLIC);
    public.push(NOT_PROTECTED.to_owned());
    if !release.target_column.is_empty() {
        public.push(format!("the label holder's target column `{}`", release.target_column));
    }
    public.push(match release.unmatched_label()? {
        UnmatchedLabel::Class(name) => format!("rows without a usable label count as class `{}`", name.escape_debug()),
        UnmatchedLabel::Number(number) => format!("rows without a usable label count as {number}"),
    });
    public.push(format!(
        "the label holder's ledger {}: all its releases together bound what is learnt",
        release.label_set
    ));
    if let Some(init) = init {
        public.extend(public_of_start(init));
    }
    let releases = release.planned.releases();
    let request = Request {
        purpose: "walr measure".to_owned(),
        data: String::new(),
        schema: release.schema.clone(),
        labels: Some(LabelUse::of_labels_alone(schema)),
        table: None,
        releases: releases.clone(),
    };
    let plan = Plan::of_schema(walr::NAME, schema, claim, releases, public);
    let reference = LedgerReference { id: release.label_set.clone(), entry: release.entry, seal: None };
    Ok(Certificate::of(&plan, &request, reference))
}
