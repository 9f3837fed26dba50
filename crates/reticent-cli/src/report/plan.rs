//! A plan as text: what a person wants to know before paying.

use std::fmt::Write;

use reticent_core::schema::Schema;
use reticent_core::units::MuSquared;
use reticent_fit::plan::Plan;

use super::model::weak_claim;
use super::printable;

/// What a fit would ask, pay and expect.
pub(crate) fn plan(plan: &Plan, schema: &Schema) -> String {
    let mut text = String::new();
    let claim = &plan.claim;
    line!(text, "Method: {}", plan.method);
    if let Some(reason) = &plan.reason {
        line!(text, "Chosen because {reason}");
    }
    line!(text, "Privacy: epsilon {} at delta {:e} (mu {:.6})", claim.epsilon, claim.delta.get(), claim.mu);
    text.push_str(&weak_claim(claim.epsilon, claim.delta, schema.privacy().rows));
    if let Some(pure) = plan.pure_epsilon_up().filter(|pure| *pure > 0.0) {
        line!(
            text,
            "All noise is Laplace noise: epsilon {pure:.6} at delta 0. A ledger counts in mu, where that is worth more than the \
             mu above: see `mu of all`"
        );
    }
    line!(text, "Protects: {}", claim.relation);
    line!(text, "Public:");
    for fact in &plan.public {
        line!(text, "  - {}", printable(fact));
    }
    line!(
        text,
        "\n{:<24} {:>6} {:>12} {:>18} {:>12} {:>10}",
        "Question",
        "times",
        "coordinates",
        "noise [lattice]",
        "mu of one",
        "mu of all"
    );
    for release in &plan.releases {
        let all = release.price_up(&claim.relation).unwrap_or(MuSquared::ZERO);
        let one = all.mu_up() / f64::from(release.times).sqrt();
        line!(
            text,
            "{:<24} {:>6} {:>12} {:>18} {:>12.6} {:>10.6}",
            release.purpose,
            release.times,
            release.shape.coordinates(),
            release.noise_scale.get(),
            one,
            all.mu_up()
        );
    }
    if !plan.expectations.is_empty() {
        line!(text, "\nExpect:");
        for expectation in &plan.expectations {
            line!(text, "  {:<34} {:>12.5}   {}", expectation.name, expectation.value, expectation.meaning);
        }
    }
    text
}
