//! A claim as text: what is promised to whom, whether that is much, and what is taken as public.

use std::fmt::Write;

use reticent_core::adjacency::Relation;
use reticent_core::ledger::six_decimals_up;
use reticent_core::units::{Delta, Epsilon};
use reticent_fit::certificate::Certificate;

use super::printable;

/// What every plan, certificate and report opens or ends with.
pub(crate) struct Claim<'a> {
    pub(crate) relation: &'a Relation,
    pub(crate) epsilon: Epsilon,
    pub(crate) delta: Delta,
    pub(crate) mu: f64,
    /// A line for noise that has an epsilon at delta 0.
    pub(crate) pure: Option<String>,
    /// Declared number of rows.
    pub(crate) rows: Option<u64>,
    /// Facts that the claim does not protect.
    pub(crate) public: &'a [String],
}

impl<'a> Claim<'a> {
    pub(crate) fn of_certificate(certificate: &'a Certificate, rows: Option<u64>) -> Self {
        let pure = |pure: f64| {
            let epsilon = six_decimals_up(pure);
            format!(
                "All noise is Laplace noise: epsilon {epsilon:.6} at delta 0, as one release; a ledger charges the mu above"
            )
        };
        Self {
            relation: &certificate.relation,
            epsilon: certificate.epsilon,
            delta: certificate.delta,
            mu: certificate.mu,
            pure: certificate.pure_epsilon.map(pure),
            rows,
            public: &certificate.public,
        }
    }

    pub(crate) fn text(&self) -> String {
        let Self { relation, epsilon, delta, mu, pure, rows, public } = self;
        let mut text = String::new();
        line!(text, "Privacy: epsilon {epsilon} at delta {:e} (mu {:.6})", delta.get(), six_decimals_up(*mu));
        text.push_str(&weak_claim(*epsilon, *delta, *rows));
        if let Some(pure) = pure {
            line!(text, "{pure}");
        }
        line!(text, "Protects: {}", printable(&relation.to_string()));
        line!(text, "Public:");
        for fact in *public {
            line!(text, "  - {}", printable(fact));
        }
        text
    }
}

/// Whether a failure probability protects little: a release that shows one of a thousand rows whole keeps a promise with delta 1/1000.
pub(crate) fn is_large(delta: Delta) -> bool {
    delta.get() >= 1e-3
}

/// Epsilon from which on a claim says little: at delta 1e-6 a test that errs once in twenty rows then finds nineteen in twenty.
const LARGE_EPSILON: f64 = 20.0;

/// What a large epsilon, or a large failure probability for the declared number of rows, means; nothing where both are usual.
pub(crate) fn weak_claim(epsilon: Epsilon, delta: Delta, rows: Option<u64>) -> String {
    let mut text = String::new();
    if epsilon.get() >= LARGE_EPSILON {
        line!(
            text,
            "Epsilon {epsilon} is large: somebody who knows all other rows could infer what is protected of the last one almost with \
             certainty; usual values are 0.1 to 10"
        );
    }
    if is_large(delta) || rows.is_some_and(|rows| delta.get() * rows as f64 > 1.0) {
        line!(
            text,
            "Delta {delta} is large: it allows all of a row to be shown with that probability; choose it below 1 / (number of rows)"
        );
    }
    text
}
