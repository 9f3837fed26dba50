//! A ledger file; and the texts that one keeps, with whatever seals: who can write the file can seal it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use reticent_core::adjacency::{Adjacency, PrivacyUnit, Relation};
use reticent_core::ledger::{Account, LedgerStore, PlannedRelease, Request, affordable_epsilon_down, epsilon_of};
use reticent_core::query::{Map, QueryShape};
use reticent_core::units::{Delta, MuSquared, NoiseDistribution, NoiseScale};
use reticent_curator::ledger_file::LedgerFile;

/// A file that begins like an SQLite database is a ledger; everything else is text: of a request, or of a relation.
pub(crate) fn run(input: &[u8]) {
    if input.starts_with(b"SQLite format 3\0") {
        file(input);
    } else if let Ok(text) = std::str::from_utf8(input) {
        texts(text);
    }
}

fn file(input: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = folder.path().join("l.ledger");
    fs::write(&path, input).expect("room for a temporary file");
    let opened = LedgerFile::open(&path);
    let Ok(mut ledger) = opened else {
        assert!(fs::read(&path).expect("it is there") == input, "what is no sound ledger is left as it was");
        return;
    };
    let entries = ledger.entries().expect("all of it was checked");
    let account = ledger.account().expect("all of it was checked");
    figures(&account);
    let _ = ledger.kept_answer("0000").expect("all of it was checked");
    if ledger.charge(&request()).is_ok() {
        let after = ledger.account().expect("it was written");
        assert!(account.spent.iter().all(|(relation, spent)| after.spent[relation] > *spent), "a charge is spent");
        assert_eq!(ledger.entries().expect("it was written").len(), entries.len() + 1, "one entry more");
        drop(ledger);
        LedgerFile::open(&path).expect("it is a sound ledger again");
    }
}

fn texts(text: &str) {
    if let Ok(relation) = text.parse::<Relation>() {
        assert_eq!(relation.to_string().parse().as_ref(), Ok(&relation), "a relation reads back");
    }
    if let Ok(price) = serde_json::from_str::<MuSquared>(text) {
        let spent = BTreeMap::from([(row(Adjacency::AddRemove), price)]);
        figures(&Account { budget: None, spent, labels: Vec::new(), tables: Vec::new() });
    }
    let Ok(request) = serde_json::from_str::<Request>(text) else { return };
    let again = serde_json::to_string(&request).expect("a request is text and integers");
    assert_eq!(serde_json::from_str::<Request>(&again).ok().as_ref(), Some(&request), "a request reads back: {again}");
    let units: BTreeSet<PrivacyUnit> = request.releases.iter().map(|release| release.shape.unit().clone()).collect();
    for unit in units {
        for adjacency in Adjacency::ALL {
            let relation = Relation { unit: unit.clone(), adjacency };
            let mut account = Account::promising([relation.clone()], None);
            for release in &request.releases {
                let _ = (release.price_up(&relation), release.pure_epsilon_up(&relation));
            }
            if account.book(&request).is_ok() {
                assert_eq!(request.price_up(&relation), Some(account.spent[&relation]), "what is booked is the price");
                figures(&account);
            }
        }
    }
}

/// What `reticent ledger show` computes.
fn figures(account: &Account) {
    let delta = account.budget.map_or(Delta::new(1e-6).expect("between 0 and 1"), |budget| budget.delta);
    for spent in account.spent.values() {
        assert!(spent.mu_up().is_finite(), "mu");
        assert!(!epsilon_of(*spent, delta).is_nan(), "epsilon");
        if let Some(budget) = account.budget {
            let left = budget.mu_squared_down().checked_sub(*spent).unwrap_or(MuSquared::ZERO);
            assert!(!affordable_epsilon_down(left, budget.delta).is_nan(), "what is left");
        }
    }
}

fn row(adjacency: Adjacency) -> Relation {
    Relation { unit: PrivacyUnit::Row, adjacency }
}

/// Something that a ledger of rows can be charged for.
fn request() -> Request {
    let shape = QueryShape::new(Map::ClassCount { classes: 2 }, PrivacyUnit::Row, 1000).expect("a small question");
    let noise_scale = NoiseScale::new(1000).expect("a legal scale");
    let noise = NoiseDistribution::RoundedGaussian;
    Request {
        purpose: "a question".to_owned(),
        data: "table.csv".to_owned(),
        schema: String::new(),
        labels: None,
        table: None,
        releases: vec![PlannedRelease { purpose: "counts".to_owned(), shape, noise_scale, noise, times: 1 }],
    }
}
