//! What is repeated and averaged: a method on a table, under an adjacency and a budget.

use std::collections::BTreeMap;

/// Figures of one run by name, as the record has them.
pub(super) type Figures = BTreeMap<&'static str, f64>;

/// Name of the fit without privacy.
pub(super) const NON_PRIVATE: &str = "non-private";

#[derive(Clone, PartialEq)]
pub(super) struct Case {
    pub(super) table: String,
    /// The method and its options as they are typed after `--method`.
    pub(super) method: String,
    /// None: without privacy.
    pub(super) privacy: Option<Privacy>,
}

#[derive(Clone, PartialEq)]
pub(super) struct Privacy {
    pub(super) adjacency: String,
    pub(super) epsilon: f64,
    pub(super) delta: f64,
}

impl Case {
    pub(super) fn private(table: &str, method: &str, adjacency: &str, epsilon: f64, delta: f64) -> Self {
        let privacy = Privacy { adjacency: adjacency.to_owned(), epsilon, delta };
        Self { table: table.to_owned(), method: method.to_owned(), privacy: Some(privacy) }
    }

    /// Without privacy, or a figure from elsewhere to stand beside the others.
    pub(super) fn open(table: &str, name: &str) -> Self {
        Self { table: table.to_owned(), method: name.to_owned(), privacy: None }
    }
}

/// Every method under every adjacency at every epsilon.
pub(super) fn cases(table: &str, methods: &[&str], adjacencies: &[String], epsilons: &[f64], delta: f64) -> Vec<Case> {
    let mut cases = Vec::new();
    for method in methods {
        for adjacency in adjacencies {
            for epsilon in epsilons {
                cases.push(Case::private(table, method, adjacency, *epsilon, delta));
            }
        }
    }
    cases
}
