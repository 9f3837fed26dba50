//! What every method keeps to, on every kind of target and under every adjacency: a new one is held to it by its line in `method::ALL`.

use std::collections::BTreeSet;

use reticent_core::adjacency::Adjacency;
use reticent_core::query::Map;
use reticent_core::record::{Cell, Label};
use reticent_core::schema::Schema;
use reticent_curator::memory_engine::MemoryEngine;
use reticent_curator::table::CodedTable;
use reticent_fit::method::{self, Method};
use reticent_fit::options::Options;
use reticent_fit::plan::{Plan, PlanError};
use reticent_fit::prepared_fit::{FitError, PreparedFit};

use super::table::{Asked, claim, pay_and_fit, rows};

/// A million declared rows, so that shares of a budget hardly depend on how much noise there is.
const ROWS_DECLARED: &str = "rows = 1000000\nrows_max = 10000000";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    TwoClasses,
    ThreeClasses,
    Number,
}

const TARGETS: [Target; 3] = [Target::TwoClasses, Target::ThreeClasses, Target::Number];

/// What a schema says beside its features.
#[derive(Clone, Copy, Debug)]
struct Case {
    target: Target,
    adjacency: Adjacency,
    /// Most rows of a unit; a row is the unit where it is 1.
    unit_rows: u32,
    is_declared: bool,
}

impl Case {
    /// Rows as units, and their number declared.
    fn usual(target: Target, adjacency: Adjacency) -> Self {
        Self { target, adjacency, unit_rows: 1, is_declared: true }
    }

    fn all() -> impl Iterator<Item = Self> {
        TARGETS.into_iter().flat_map(|target| {
            Adjacency::ALL.into_iter().flat_map(move |adjacency| {
                [(1, true), (1, false), (4, true)].map(|(unit_rows, is_declared)| Self {
                    target,
                    adjacency,
                    unit_rows,
                    is_declared,
                })
            })
        })
    }

    fn schema(self) -> Schema {
        let unit = match self.unit_rows {
            1 => "\"row\"".to_owned(),
            rows => format!("{{ column = \"id\", rows_max = {rows} }}"),
        };
        let target = match self.target {
            Target::TwoClasses => "classes = [\"no\", \"yes\"]",
            Target::ThreeClasses => "classes = [\"a\", \"b\", \"c\"]",
            Target::Number => "bounds = [-10, 20]",
        };
        let declared = if self.is_declared { ROWS_DECLARED } else { "" };
        Schema::from_text(&format!(
            "[privacy]\nunit = {unit}\nadjacency = \"{}\"\n{declared}\n[target]\ncolumn = \"y\"\n{target}\n[features]\n\
             x0 = {{ bounds = [0, 10] }}\nx1 = {{ bounds = [0, 10] }}\nk0 = {{ categories = [\"a\", \"b\", \"c\"] }}\n",
            self.adjacency
        ))
        .expect("legal")
    }

    /// So many generated rows, with labels that depend on the first number.
    fn engine(self, count: usize) -> MemoryEngine {
        let mut table = CodedTable::empty(&self.schema());
        for (place, ([x0, x1], category, class)) in rows(count).into_iter().enumerate() {
            let label = match self.target {
                Target::TwoClasses => Label::Class(u16::from(class)),
                Target::ThreeClasses => Label::Class((x0 / 4.0) as u16),
                Target::Number => Label::Value(x0),
            };
            let key = (place / self.unit_rows as usize).to_string();
            table.push_of_unit(key.as_bytes(), &[Cell::Number(x0), Cell::Number(x1), Cell::Category(category)], label);
        }
        MemoryEngine::new(table)
    }
}

/// The usual request, and each word of each option alone.
fn settings(method: &dyn Method) -> Vec<Asked<'static>> {
    let usual = || Asked::of(method.name());
    let words = method.options().iter().flat_map(|option| option.choices.iter().map(move |word| (option.name, word)));
    std::iter::once(usual()).chain(words.map(|(option, word)| usual().with(option, word))).collect()
}

fn is_usual(asked: &Asked<'_>) -> bool {
    asked.options == Options::default()
}

fn prepare(asked: &Asked<'_>, case: Case, epsilon: f64) -> Result<PreparedFit, PlanError> {
    let schema = case.schema();
    asked.prepare(&schema, &claim(schema.relation(), epsilon))
}

fn plan(asked: &Asked<'_>, case: Case, epsilon: f64) -> Result<Plan, PlanError> {
    prepare(asked, case, epsilon).map(|prepared| prepared.plan().clone())
}

/// Checks that a request was refused for a reason that is true: with what the message asks for it is planned.
fn assert_true_reason(asked: &Asked<'_>, case: Case, error: &PlanError) {
    let what = format!("{} {:?} on {case:?}: {error}", asked.method, asked.options);
    let is_planned = |case: Case| plan(asked, case, 1.0).is_ok();
    match error {
        PlanError::Target { method, .. } => {
            assert_eq!(*method, asked.method, "{what}");
            for adjacency in Adjacency::ALL {
                assert!(
                    !is_planned(Case { adjacency, is_declared: true, ..case }),
                    "{what}, but not under {adjacency}"
                );
            }
        }
        PlanError::Adjacency { method, relation, possible } => {
            assert_eq!((*method, relation), (asked.method, &case.schema().relation()), "{what}");
            assert!(!possible.contains(&case.adjacency), "{what}");
            for adjacency in Adjacency::ALL {
                let found = is_planned(Case { adjacency, is_declared: true, ..case });
                assert_eq!(found, possible.contains(&adjacency), "{what}, under {adjacency}");
            }
        }
        PlanError::Parameter(reason) => {
            if is_usual(asked) || !reason.starts_with("--") {
                assert!(!case.is_declared && reason.contains("`rows`"), "{what}");
                let declared = Case { is_declared: true, ..case };
                if let Err(error) = plan(asked, declared, 1.0) {
                    assert_true_reason(asked, declared, &error);
                }
            }
        }
        PlanError::TooSmall { .. }
        | PlanError::TooLarge { .. }
        | PlanError::Ridge { .. }
        | PlanError::Query(_)
        | PlanError::Claim { .. }
        | PlanError::Init(_) => panic!("{what}"),
    }
}

/// What of a table is public goes by its schema, and what is claimed must be about the same.
#[test]
fn a_claim_about_another_relation_than_the_schema_is_refused() {
    for method in method::ALL {
        for target in TARGETS {
            let schema = Case::usual(target, Adjacency::AddRemove).schema();
            for adjacency in [Adjacency::Replace, Adjacency::Label, Adjacency::Party] {
                let other = Case::usual(target, adjacency).schema().relation();
                let refused = Asked::of(method.name()).prepare(&schema, &claim(other, 1.0)).err();
                assert!(matches!(refused, Some(PlanError::Claim { .. })), "{}: {refused:?}", method.name());
            }
        }
    }
}

/// Every plan that a method makes, by setting and case; all that it refuses is refused for a reason that is true, and something is planned.
fn for_each_plan(method: &dyn Method, epsilon: f64, mut check: impl FnMut(&Asked<'static>, Case, &PreparedFit)) {
    let mut planned = BTreeSet::new();
    for (place, asked) in settings(method).iter().enumerate() {
        for case in Case::all() {
            match prepare(asked, case, epsilon) {
                Ok(prepared) => {
                    planned.insert(place);
                    check(asked, case, &prepared);
                }
                Err(error) => assert_true_reason(asked, case, &error),
            }
        }
    }
    assert!(planned.contains(&0), "{} plans nothing", method.name());
}

#[test]
fn what_is_refused_is_refused_for_a_reason_that_is_true() {
    for method in method::ALL {
        let mut fitted = BTreeSet::new();
        for_each_plan(method, 1.0, |_, case, _| {
            fitted.insert(case.adjacency.to_string());
        });
        assert!(
            !fitted.contains(&Adjacency::Party.to_string()),
            "{}: a party has no bound in one table",
            method.name()
        );
        assert!(fitted.contains(&Adjacency::Label.to_string()) || fitted.len() >= 2, "{}: {fitted:?}", method.name());
    }
}

#[test]
fn party_adjacency_is_refused_when_planned() {
    for method in method::ALL {
        let refused = |target: &Target| {
            let error = plan(&Asked::of(method.name()), Case::usual(*target, Adjacency::Party), 1.0);
            matches!(error.expect_err("no finite bound"), PlanError::Adjacency { .. })
        };
        assert!(TARGETS.iter().any(refused), "{}", method.name());
    }
}

#[test]
fn illegal_parameters_are_refused_by_name() {
    for method in method::ALL {
        for option in method.options() {
            for value in ["nan", "-1", "many"] {
                let mut reasons = BTreeSet::new();
                for asked in settings(method) {
                    let is_planned = |case: &Case| case.is_declared && plan(&asked, *case, 1.0).is_ok();
                    let Some(case) = Case::all().find(is_planned) else { continue };
                    let error = plan(&asked.clone().with(option.name, value), case, 1.0).expect_err("illegal");
                    assert!(matches!(error, PlanError::Parameter(_)), "{}: {error}", method.name());
                    reasons.insert(error.to_string());
                }
                let name = format!("--{} ", option.name);
                assert!(!reasons.is_empty() && reasons.iter().all(|reason| reason.starts_with(&name)), "{reasons:?}");
                assert!(reasons.iter().any(|reason| reason.starts_with(&format!("{name}must be"))), "{reasons:?}");
            }
        }
        let case = Case::usual(Target::TwoClasses, Adjacency::Label);
        let error = plan(&Asked::of(method.name()).with("wings", 2), case, 1.0).expect_err("no such option");
        let expected = format!("method {} has no option --wings", method.name());
        assert!(error.to_string().starts_with(&expected), "{error}");
    }
}

#[test]
fn a_fit_spends_at_most_its_claim_and_nearly_all_of_it() {
    for method in method::ALL {
        for epsilon in [0.01, 1.0, 10.0] {
            for_each_plan(method, epsilon, |asked, case, prepared| {
                let what = format!("{} {:?} on {case:?}, epsilon {epsilon}", asked.method, asked.options);
                let (schema, plan) = (case.schema(), prepared.plan());
                let request = plan.request("table", &schema);
                assert!(
                    request.releases.iter().all(|release| release.price_up(&schema.relation()).is_some()),
                    "{what}"
                );
                // A minimum leaves a little more.
                let is_minimum = plan.releases.iter().any(|release| matches!(release.shape.map(), Map::Minimum(_)));
                let nearly_all = if is_minimum { 0.998 } else { 0.999 };
                // Laplace noise keeps epsilon with delta 0, which costs more mu.
                if let Some(pure) = plan.pure_epsilon_up() {
                    assert!(pure <= epsilon && pure > nearly_all * epsilon, "{what}: {pure}");
                } else {
                    let price = request.price_up(&schema.relation()).expect("finite");
                    assert!(price <= plan.claim.mu_squared, "{what}");
                    assert!(
                        price.mu_up() > nearly_all * plan.claim.mu,
                        "{what}: {} of {}",
                        price.mu_up(),
                        plan.claim.mu
                    );
                }
            });
        }
    }
}

#[test]
fn a_unit_of_several_rows_pays_in_noise_or_by_a_ridge() {
    for method in method::ALL {
        for_each_plan(method, 1.0, |asked, case, grouped| {
            if case.unit_rows == 1 {
                return;
            }
            let what = format!("{} {:?} on {case:?}", asked.method, asked.options);
            let single = plan(asked, Case { unit_rows: 1, ..case }, 1.0).expect("a row alone has a bound, too");
            let purposes = |plan: &Plan| -> Vec<String> {
                plan.releases.iter().map(|release| format!("{} {}", release.purpose, release.times)).collect()
            };
            assert_eq!(purposes(grouped.plan()), purposes(&single), "{what}");
            for (grouped, single) in grouped.plan().releases.iter().zip(&single.releases) {
                // A minimum pays by its ridge, too, with which it moves less: less noise is needed.
                if let (Map::Minimum(grouped), Map::Minimum(single)) = (grouped.shape.map(), single.shape.map()) {
                    assert!(grouped.l2 > 2 * single.l2, "{what}: {} and {}", grouped.l2, single.l2);
                    continue;
                }
                let ratio = grouped.noise_scale.get() as f64 / single.noise_scale.get() as f64;
                assert!((ratio / f64::from(case.unit_rows) - 1.0).abs() < 1e-3, "{what}, {}: {ratio}", single.purpose);
            }
        });
    }
}

/// An empty table is refused before anything is paid where the number of rows is public with all else but labels, and gives a model otherwise.
#[test]
fn an_empty_table_gives_a_model_or_is_refused_unpaid() {
    for method in method::ALL {
        for_each_plan(method, 1.0, |asked, case, prepared| {
            let (schema, engine) = (case.schema(), case.engine(0));
            match pay_and_fit(&schema, &engine, prepared, 3) {
                Ok(model) if case.adjacency != Adjacency::Label => {
                    assert!(model.outputs.iter().all(|output| output.intercept.is_finite()));
                }
                Ok(_) => panic!("{} {:?} on {case:?} paid for nothing", asked.method, asked.options),
                Err(FitError::NoLabels) if case.adjacency == Adjacency::Label => {}
                Err(error) => panic!("{} {:?} on {case:?}: {error}", asked.method, asked.options),
            }
        });
    }
}

#[test]
fn whatever_is_planned_is_fitted() {
    for method in method::ALL {
        let mut fitted = 0;
        for_each_plan(method, 1.0, |asked, case, prepared| {
            // Tables of each kind are fitted with each word of each option in `tests/replay`.
            if !is_usual(asked) {
                return;
            }
            let model = pay_and_fit(&case.schema(), &case.engine(300), prepared, 3).expect("can be fitted");
            fitted += 1;
            assert!(model.outputs.iter().all(|output| output.intercept.is_finite()), "{} on {case:?}", asked.method);
        });
        assert!(fitted > 0, "{}", method.name());
    }
}
