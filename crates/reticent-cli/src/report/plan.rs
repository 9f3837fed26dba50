//! A plan as text: what a person wants to know before paying.

use std::fmt::Write;

use reticent_core::ledger::six_decimals_up;
use reticent_core::schema::Schema;
use reticent_core::units::MuSquared;
use reticent_fit::plan::{Plan, PrivacyClaim};

use super::Claim;

/// What a fit would ask, pay and expect.
pub(crate) fn plan(plan: &Plan, schema: &Schema) -> String {
    let mut text = String::new();
    let claim = &plan.claim;
    line!(text, "Method: {}", plan.method);
    if let Some(reason) = &plan.reason {
        line!(text, "Chosen because {reason}");
    }
    let pure = plan.pure_epsilon_up().filter(|pure| *pure > 0.0).map(|pure| {
        format!(
            "All noise is Laplace noise: epsilon {:.6} at delta 0. A ledger counts in mu, where that is worth more than the mu \
             above: see `mu of all`",
            six_decimals_up(pure)
        )
    });
    let PrivacyClaim { relation, epsilon, delta, mu, .. } = claim;
    let (rows, public) = (schema.privacy().rows, &plan.public);
    let claim = Claim { relation, epsilon: *epsilon, delta: *delta, mu: *mu, pure, rows, public };
    text.push_str(&claim.text());
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
        let all = release.price_up(relation).unwrap_or(MuSquared::ZERO);
        let one = all.mu_up() / f64::from(release.times).sqrt();
        line!(
            text,
            "{:<24} {:>6} {:>12} {:>18} {:>12.6} {:>10.6}",
            release.purpose,
            release.times,
            release.shape.coordinates(),
            release.noise_scale.get(),
            six_decimals_up(one),
            six_decimals_up(all.mu_up())
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
