//! The methods, one file each, behind one trait; [`ALL`] is their registration.

pub mod functional;
pub mod gram;
pub mod noisy_gd;
pub mod noisy_gd_lecture;
pub mod noisy_gd_slides;
pub mod objective_perturbation;
pub mod output_perturbation;
pub mod walr;

use std::collections::{HashMap, HashSet};

use reticent_core::adjacency::Adjacency;
use reticent_core::coding::Coding;
use reticent_core::encoding::Encoding;
use reticent_core::query;
use reticent_core::schema::{Feature, Schema, TargetKind};
use thiserror::Error;

use crate::model::{Model, check_size};
use crate::options::{MethodOption, Options};
use crate::plan::{PlanError, PrivacyClaim};
use crate::prepared_fit::PreparedFit;

/// Every method, in the order in which help texts list them.
pub const ALL: [&dyn Method; 8] = [
    &noisy_gd::NoisyGd,
    &gram::Gram,
    &walr::Walr,
    &objective_perturbation::ObjectivePerturbation,
    &output_perturbation::OutputPerturbation,
    &functional::Functional,
    &noisy_gd_lecture::NoisyGdLecture,
    &noisy_gd_slides::NoisyGdSlides,
];

/// A way to fit a model: its name, its options, and how a request becomes a prepared fit.
pub trait Method: Sync {
    /// Name on the command line, in ledgers and in certificates.
    fn name(&self) -> &'static str;

    /// One line for a help text.
    fn summary(&self) -> &'static str;

    /// What may be chosen.
    fn options(&self) -> &'static [MethodOption];

    /// Checks a request and plans it, from public values alone.
    ///
    /// # Errors
    /// [`PlanError`] names the flag or the part of the schema to change.
    fn prepare(&self, request: &FitRequest<'_>) -> Result<PreparedFit, PlanError>;
}

/// What somebody wants fitted. Everything here is public.
#[derive(Clone, Copy, Debug)]
pub struct FitRequest<'a> {
    /// Bounds of the table, target and adjacency.
    pub schema: &'a Schema,
    /// What may be spent.
    pub claim: &'a PrivacyClaim,
    /// A model that is declared public: start, prior mean or centre of a penalty.
    pub init: Option<&'a Model>,
    /// Values of the method's options.
    pub options: &'a Options,
}

impl FitRequest<'_> {
    /// A claim is about what the schema protects.
    pub(crate) fn check_claim(&self) -> Result<(), PlanError> {
        let (claimed, protected) = (self.claim.relation.clone(), self.schema.relation());
        if claimed == protected { Ok(()) } else { Err(PlanError::Claim { claimed, protected }) }
    }
}

/// A name that no method has.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("there is no method {name:?}; use one of {}", ALL.map(Method::name).join(", "))]
pub struct UnknownMethod {
    /// What was asked for.
    pub name: String,
}

/// Looks a method up by its name.
///
/// # Errors
/// [`UnknownMethod`] names those that there are. No method at all leaves the choice to public figures: see [`prepare`].
pub fn by_name(name: &str) -> Result<&'static dyn Method, UnknownMethod> {
    ALL.into_iter().find(|method| method.name() == name).ok_or_else(|| UnknownMethod { name: name.to_owned() })
}

/// The method of a fit, and why, where nobody named it.
pub struct Chosen {
    method: &'static dyn Method,
    reason: Option<String>,
}

/// The named method, or the one that public figures choose.
///
/// # Errors
/// [`PlanError`] names the part of the schema to change.
pub fn choose(named: Option<&'static dyn Method>, request: &FitRequest<'_>) -> Result<Chosen, PlanError> {
    match named {
        Some(method) => Ok(Chosen { method, reason: None }),
        None => automatic(request).map(|(method, reason)| Chosen { method, reason: Some(reason) }),
    }
}

impl Chosen {
    /// Prepares a fit.
    ///
    /// # Errors
    /// [`PlanError`] names the flag or the part of the schema to change.
    pub fn prepare(&self, request: &FitRequest<'_>) -> Result<PreparedFit, PlanError> {
        request.check_claim()?;
        request.options.check(self.method.name(), self.method.options())?;
        // What is paid for must be readable.
        check_size(request.schema).map_err(|error| PlanError::Parameter(error.to_string()))?;
        Ok(self.method.prepare(request)?.because(self.reason.clone()))
    }
}

/// Prepares a fit by the named method, or by one that public figures choose.
///
/// # Errors
/// [`PlanError`] names the flag or the part of the schema to change.
pub fn prepare(named: Option<&'static dyn Method>, request: &FitRequest<'_>) -> Result<PreparedFit, PlanError> {
    choose(named, request)?.prepare(request)
}

/// Products of a row with itself that `walr` can work through in reasonable time: `rows · columns²`.
const WALR_PRODUCTS_MAX: f64 = 1e11;

/// Columns up to which `gram` releases all products; beyond it the matrix has more than 2^20 entries.
const GRAM_COLUMNS_MAX: usize = 1400;

/// Signal `n mu` a column, from which on `gram` loses little beside a descent: `docs/methods/gram.md`.
const GRAM_SIGNAL: f64 = 1000.0;

/// Signal `n mu` below which `walr` predicts a number worse than a descent, whose noise is that of clipped residuals: `docs/methods/walr.md`.
const WALR_SIGNAL: f64 = 150.0;

/// Rows that stand for undeclared ones there: a descent loses little on a larger table, and the others much on a smaller one.
const FEW_ROWS: f64 = 3600.0;

/// The method that public figures choose, and why: adjacency, target, declared rows, columns and mu.
///
/// # Errors
/// [`PlanError::Parameter`] where the relation is that of parties.
fn automatic(request: &FitRequest<'_>) -> Result<(&'static dyn Method, String), PlanError> {
    let FitRequest { schema, claim, .. } = request;
    let columns = Coding::of(schema).columns().len();
    let rows = schema.privacy().rows.map(|rows| rows as f64);
    let size = rows.map_or_else(
        || "an undeclared number of rows".to_owned(),
        |rows| format!("about {rows} rows (n mu = {:.0})", rows * claim.mu),
    );
    let choose = |method: &'static dyn Method, reason: &str| {
        Ok((method, format!("{reason}; {columns} encoded columns, {size}, mu {:.4}", claim.mu)))
    };
    let is_number = matches!(schema.target().kind, TargetKind::Bounds { .. });
    match schema.privacy().adjacency {
        Adjacency::Party => Err(PlanError::Parameter(
            "the schema protects whole parties: one table has no finite sensitivity; let each party vote and combine the \
             votes with `reticent party fit`"
                .to_owned(),
        )),
        Adjacency::Label => {
            let products = rows.unwrap_or(0.0) * (columns * columns) as f64;
            if is_number && rows.unwrap_or(FEW_ROWS) * claim.mu < WALR_SIGNAL {
                choose(&noisy_gd::NoisyGd, "only labels are protected, the target is a number, and noise would hide much of what walr asks")
            } else if products <= WALR_PRODUCTS_MAX && walr::coefficients(schema) <= walr::COEFFICIENTS_QUICK {
                choose(&walr::Walr, "only labels are protected: one noisy sum of labels tells all that the fit needs")
            } else if is_number && columns <= GRAM_COLUMNS_MAX {
                choose(&gram::Gram, "only labels are protected, and walr would take too long")
            } else if is_number {
                choose(&walr::Walr, "only labels are protected, the target is a number, and gram takes fewer columns")
            } else {
                choose(&noisy_gd::NoisyGd, "only labels are protected, and walr would take too long")
            }
        }
        Adjacency::AddRemove | Adjacency::Replace if is_number => {
            let signal = rows.unwrap_or(FEW_ROWS) * claim.mu;
            if columns <= GRAM_COLUMNS_MAX && schema.privacy().row_norm.is_some() {
                choose(&gram::Gram, "the target is a number, and rows are declared to be short: one noisy matrix of products by bounds")
            } else if columns <= GRAM_COLUMNS_MAX && signal >= GRAM_SIGNAL * columns as f64 {
                choose(&gram::Gram, "the target is a number, and noise hides little of a matrix of all products, which gives standard errors")
            } else {
                choose(&noisy_gd::NoisyGd, "the target is a number, and noise would hide much of a matrix of all products, as gram has it")
            }
        }
        Adjacency::AddRemove | Adjacency::Replace => {
            choose(&noisy_gd::NoisyGd, "features are private and the target has classes")
        }
    }
}

/// Number of outputs of a model: one for a number or two classes, else one a class.
#[must_use]
pub fn outputs(schema: &Schema) -> usize {
    match &schema.target().kind {
        TargetKind::Classes(classes) => query::outputs(classes.len() as u32),
        TargetKind::Bounds { .. } => 1,
    }
}

/// Number of classes of the target, or why a method for classes does not fit it.
///
/// # Errors
/// [`PlanError::Target`].
pub(crate) fn classes_of(method: &'static str, schema: &Schema) -> Result<u32, PlanError> {
    match &schema.target().kind {
        TargetKind::Classes(classes) => Ok(classes.len() as u32),
        TargetKind::Bounds { .. } => {
            Err(PlanError::Target { method, fits: "classes", found: "bounds, as for a linear regression".to_owned() })
        }
    }
}

/// Weights of a public start model in an encoding, or why it does not fit.
///
/// # Errors
/// [`PlanError::Init`].
pub(crate) fn start_weights(init: &Model, schema: &Schema, encoding: &Encoding) -> Result<Vec<f64>, PlanError> {
    if let Some(difference) = difference(&init.schema, schema) {
        return Err(PlanError::Init(difference));
    }
    let weights = init.weights(encoding);
    // Ranges and scales that are released later may make them larger, and no float must pass its end after the charge. NaN is not below.
    if weights.iter().all(|weight| weight.abs() < START_WEIGHT_MAX) {
        Ok(weights)
    } else {
        Err(PlanError::Init("its coefficients are too large for the schema's bounds".to_owned()))
    }
}

/// [`start_weights`] for a method that can leave the intercept out.
///
/// # Errors
/// [`PlanError::Parameter`] where it does, else [`PlanError::Init`].
pub(crate) fn start_weights_with_intercept(
    init: &Model,
    schema: &Schema,
    encoding: &Encoding,
    intercept: bool,
) -> Result<Vec<f64>, PlanError> {
    if intercept {
        return start_weights(init, schema, encoding);
    }
    Err(PlanError::Parameter(
        "a model without an intercept cannot keep that of a start model; leave --init out, or fit an intercept"
            .to_owned(),
    ))
}

/// Larger than any coefficient of a model that says something, and far from the largest float.
const START_WEIGHT_MAX: f64 = 1e100;

/// The first thing by which the schema of a start model has other columns than a schema.
fn difference(start: &Schema, schema: &Schema) -> Option<String> {
    if start.target().kind != schema.target().kind {
        return Some("its target has other classes or other bounds; declare them alike".to_owned());
    }
    let (found, expected) = (start.features(), schema.features());
    if found == expected {
        return None;
    }
    let named: HashMap<&str, &Feature> = found.iter().map(|feature| (feature.name.as_str(), feature)).collect();
    for feature in expected {
        match named.get(feature.name.as_str()) {
            None => return Some(format!("it has no feature {:?}", feature.name)),
            Some(other) if other.kind != feature.kind => {
                return Some(format!(
                    "its feature {:?} has other bounds, categories or `missing`; declare them alike",
                    feature.name
                ));
            }
            Some(_) => {}
        }
    }
    let expected: HashSet<&str> = expected.iter().map(|feature| feature.name.as_str()).collect();
    let other = found.iter().find(|feature| !expected.contains(feature.name.as_str()));
    Some(other.map_or_else(
        || "its features are in another order".to_owned(),
        |other| format!("it has a feature {:?}, and the schema has none of that name", other.name),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_of_other_columns_is_refused_with_the_first_of_them() {
        let schema = |target: &str, features: &str| {
            Schema::from_text(&format!(
                "[privacy]\nunit = \"row\"\nadjacency = \"label\"\n[target]\ncolumn = \"y\"\n{target}\n[features]\n{features}"
            ))
            .expect("legal")
        };
        let (a, b) = ("a = { bounds = [0, 1] }\n", "b = { bounds = [0, 1] }\n");
        let target = "classes = [0, 1]";
        let own = schema(target, &format!("{a}{b}"));
        let found = |start: Schema| difference(&start, &own);
        assert_eq!(found(own.clone()), None);
        for (start, word) in [
            (schema("classes = [0, 2]", &format!("{a}{b}")), "target"),
            (schema(target, a), "no feature \"b\""),
            (schema(target, &format!("{a}b = {{ bounds = [0, 2] }}\n")), "feature \"b\" has other bounds"),
            (schema(target, &format!("{a}{b}c = {{ bounds = [0, 2] }}\n")), "a feature \"c\""),
            (schema(target, &format!("{b}{a}")), "another order"),
        ] {
            let difference = found(start).expect("they differ");
            assert!(difference.contains(word), "{difference}");
        }
    }

    /// With labels alone private, what is chosen for a target and so many categories of one feature at epsilon 1.
    fn chosen(target: &str, categories: usize) -> &'static str {
        chosen_for_rows("", target, categories)
    }

    fn chosen_for_rows(rows: &str, target: &str, categories: usize) -> &'static str {
        let names: Vec<String> = (0..categories).map(|name| format!("\"{name}\"")).collect();
        let schema = Schema::from_text(&format!(
            "[privacy]\nunit = \"row\"\nadjacency = \"label\"\n{rows}\n[target]\ncolumn = \"y\"\n{target}\n[features]\n\
             k = {{ categories = [{}] }}\n",
            names.join(", ")
        ))
        .expect("legal");
        let units = (reticent_core::units::Epsilon::new(1.0), reticent_core::units::Delta::new(1e-6));
        let claim = PrivacyClaim::new(schema.relation(), units.0.expect("legal"), units.1.expect("legal"));
        let options = Options::default();
        let request = FitRequest { schema: &schema, claim: &claim, init: None, options: &options };
        automatic(&request).expect("a method").0.name()
    }

    #[test]
    fn walr_is_chosen_where_it_takes_seconds() {
        let (two, ten) = (
            "classes = [\"a\", \"b\"]",
            "classes = [\"0\", \"1\", \"2\", \"3\", \"4\", \"5\", \"6\", \"7\", \"8\", \"9\"]",
        );
        assert_eq!(chosen(two, 400), walr::NAME);
        assert_eq!(chosen(two, 600), noisy_gd::NAME);
        assert_eq!(chosen(ten, 30), walr::NAME);
        assert_eq!(chosen(ten, 100), noisy_gd::NAME);
        assert_eq!(chosen("bounds = [0, 1]", 600), gram::NAME);
        // At epsilon 1 mu is .2367: n mu of 150 takes 634 rows.
        assert_eq!(chosen("bounds = [0, 1]", 30), walr::NAME);
        for (rows, expected) in [("rows = 600", noisy_gd::NAME), ("rows = 650", walr::NAME)] {
            assert_eq!(chosen_for_rows(rows, "bounds = [0, 1]", 30), expected);
            assert_eq!(chosen_for_rows(rows, two, 30), walr::NAME);
        }
    }

    #[test]
    fn numbers_get_a_matrix_where_noise_hides_little_of_it() {
        let chosen = |rows: &str, columns: usize, epsilon: f64| {
            let features: String =
                (0..columns - 1).map(|place| format!("x{place} = {{ bounds = [0, 1] }}\n")).collect();
            let schema = Schema::from_text(&format!(
                "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n{rows}\n[target]\ncolumn = \"y\"\nbounds = [0, 1]\n\
                 [features]\n{features}"
            ))
            .expect("legal");
            let units = (reticent_core::units::Epsilon::new(epsilon), reticent_core::units::Delta::new(1e-6));
            let claim = PrivacyClaim::new(schema.relation(), units.0.expect("legal"), units.1.expect("legal"));
            let options = Options::default();
            let request = FitRequest { schema: &schema, claim: &claim, init: None, options: &options };
            automatic(&request).expect("a method").0.name()
        };
        // At epsilon 1 mu is .2367: n mu of 4000 takes 16,900 rows.
        assert_eq!(chosen("rows = 16800", 4, 1.0), noisy_gd::NAME);
        assert_eq!(chosen("rows = 17000", 4, 1.0), gram::NAME);
        assert_eq!(chosen("rows = 17000", 5, 1.0), noisy_gd::NAME);
        assert_eq!((chosen("rows = 84000", 20, 1.0), chosen("rows = 85000", 20, 1.0)), (noisy_gd::NAME, gram::NAME));
        assert_eq!((chosen("", 4, 1.0), chosen("", 4, 10.0)), (noisy_gd::NAME, gram::NAME));
        assert_eq!(chosen("rows = 10000000", 1401, 1.0), noisy_gd::NAME);
        assert_eq!(chosen("row_norm = 1.0", 4, 1.0), gram::NAME);
    }

    #[test]
    fn names_of_methods_and_of_their_options_are_unique() {
        for method in ALL {
            assert_eq!(ALL.iter().filter(|other| other.name() == method.name()).count(), 1, "{}", method.name());
            let options = method.options();
            for option in options {
                assert_eq!(options.iter().filter(|other| other.name == option.name).count(), 1, "{}", option.name);
            }
        }
    }
}
