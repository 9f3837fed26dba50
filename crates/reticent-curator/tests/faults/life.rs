//! One life of a process that uses a ledger: what it does, decided by a seed, and what it says of it.
//!
//! It speaks of a success only after the ledger has returned it, as an answer would be released only then. Its parent knows
//! from the seed what it would try.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

use nix::sys::signal::raise;
use reticent_core::adjacency::{Adjacency, PrivacyUnit, Relation};
use reticent_core::ledger::{Budget, LedgerError, LedgerReference, LedgerStore, PlannedRelease, Request};
use reticent_core::query::{Loss, Map, QueryShape};
use reticent_core::units::{Delta, Epsilon, NoiseDistribution, NoiseScale};
use reticent_curator::ledger_file::{LedgerFile, LedgerFileError};

use crate::random::Random;
use crate::tracee::START;

/// What is decided once for all lives of a ledger.
pub(crate) struct Setting {
    /// What the ledger promises.
    pub(crate) promised: BTreeSet<Relation>,
    /// The limit it is made with.
    pub(crate) budget: Option<Budget>,
}

/// Something done with a ledger.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Charge(Box<Request>),
    SetBudget(Budget),
    /// Keeps an answer that the last entry paid for, if there is one.
    KeepAnswer {
        query: String,
        answer: String,
    },
    ReadAccount,
    Reopen,
}

/// What a process is to do, as a word that it can be told.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Script {
    /// Always the same, for tests that go through its calls one by one: first everything once, then one charge.
    Fixed { life: u64 },
    /// The `life`th of a ledger, as a seed says.
    Seeded { seed: u64, life: u64 },
}

impl Script {
    pub(crate) fn word(self) -> String {
        match self {
            Self::Fixed { life } => format!("{FIXED}-{life}"),
            Self::Seeded { seed, life } => format!("{seed}-{life}"),
        }
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        let (seed, life) = word.split_once('-')?;
        let life = life.parse().ok()?;
        if seed == FIXED {
            return Some(Self::Fixed { life });
        }
        Some(Self::Seeded { seed: seed.parse().ok()?, life })
    }

    pub(crate) fn setting(self) -> Setting {
        let row = |adjacency| Relation { unit: PrivacyUnit::Row, adjacency };
        let mut promised = BTreeSet::from([row(Adjacency::AddRemove)]);
        let Self::Seeded { seed, .. } = self else { return Setting { promised, budget: Some(budget(1.0)) } };
        let mut random = Random::new(seed ^ 0x5E77);
        if random.one_in(2) {
            promised.insert(row(Adjacency::Replace));
        }
        let budget = (!random.one_in(3)).then(|| budget(random.pick(&[0.5, 1.0, 1.5])));
        Setting { promised, budget }
    }

    pub(crate) fn actions(self) -> Vec<Action> {
        let mut random = Random::new(1);
        match self {
            Self::Fixed { life: 0 } => vec![
                Action::Charge(request("first", &mut random)),
                Action::KeepAnswer { query: "a".repeat(64), answer: "an answer".to_owned() },
                Action::Reopen,
                Action::Charge(request(&"long ".repeat(1000), &mut random)),
                Action::Charge(request("last", &mut random)),
            ],
            Self::Fixed { life } => vec![Action::Charge(request(&format!("again {life}"), &mut random))],
            Self::Seeded { seed, life } => {
                let mut random = Random::new(seed.rotate_left(32) ^ life);
                random.next();
                (0..2 + random.below(7)).map(|place| any_action(&format!("{life}-{place}"), &mut random)).collect()
            }
        }
    }
}

fn any_action(name: &str, random: &mut Random) -> Action {
    match random.below(10) {
        0 => Action::SetBudget(budget(random.pick(&[1.0, 2.0]))),
        1 => Action::KeepAnswer {
            query: format!("{:064x}", random.below(3)),
            answer: format!("answer {name} {}", "and more ".repeat(random.below(60))),
        },
        2 => Action::ReadAccount,
        3 => Action::Reopen,
        _ => {
            let padding = "x".repeat(if random.one_in(4) { random.below(9000) } else { random.below(60) });
            Action::Charge(request(&format!("{name} {padding}"), random))
        }
    }
}

/// A life: tells its parent that it begins, then acts and says what came of it.
pub(crate) fn live(path: &Path, script: Script) {
    let setting = script.setting();
    raise(START).expect("to itself");
    let mut ledger = None;
    for action in &script.actions() {
        if ledger.is_none() {
            match make_or_open(path, &setting) {
                Ok((word, opened)) => {
                    say(&[word, opened.id()]);
                    ledger = Some(opened);
                }
                Err(error) => {
                    say(&["not opened", &error.to_string()]);
                    continue;
                }
            }
        }
        let Some(open) = &mut ledger else { continue };
        match action {
            Action::Charge(request) => match open.charge(request) {
                Ok(()) => {
                    let LedgerReference { entry, seal, .. } = open.last_entry().expect("just charged");
                    say(&["charged", &entry.to_string(), &seal.expect("of a file"), &request.purpose]);
                }
                Err(LedgerError::Refused(refused)) => say(&["refused", &request.purpose, &refused.to_string()]),
                Err(LedgerError::Store(error)) => say(&["failed", &request.purpose, &error.to_string()]),
            },
            Action::SetBudget(budget) => match open.set_budget(*budget) {
                Ok(_) => say(&["limited", &budget.epsilon.get().to_string()]),
                Err(error) => say(&["not limited", &error.to_string()]),
            },
            Action::KeepAnswer { query, answer } => {
                let Some(entry) = open.last_entry().map(|last| last.entry) else { continue };
                match open.keep_answer(query, entry, answer) {
                    Ok(kept) => say(&["kept", query, &kept]),
                    Err(error) => say(&["not kept", &error.to_string()]),
                }
            }
            Action::ReadAccount => match open.account() {
                Ok(account) => {
                    let spent: Vec<String> = account.spent.values().map(|spent| spent.steps().to_string()).collect();
                    say(&["account", &spent.join(" ")]);
                }
                Err(error) => say(&["no account", &error.to_string()]),
            },
            Action::Reopen => ledger = None,
        }
    }
}

/// As the command line does it; with a word for what was done.
pub(crate) fn make_or_open(path: &Path, setting: &Setting) -> Result<(&'static str, LedgerFile), LedgerFileError> {
    match LedgerFile::open(path) {
        Err(LedgerFileError::Missing { .. }) => {
            LedgerFile::create(path, &setting.promised, setting.budget).map(|ledger| ("made", ledger))
        }
        opened => opened.map(|ledger| ("opened", ledger)),
    }
}

/// Past the test harness, which would hold lines back, and in one write.
fn say(words: &[&str]) {
    let mut output = std::io::stdout().lock();
    output.write_all(format!("\n{MARK}{}\n", words.join(SEPARATOR)).as_bytes()).expect("the parent listens");
    output.flush().expect("the parent listens");
}

/// What a life said, as words; a line that was cut off was not said.
pub(crate) fn heard(output: &str) -> Vec<Vec<String>> {
    let whole = output.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')?.strip_prefix(MARK));
    whole.map(|line| line.split(SEPARATOR).map(str::to_owned).collect()).collect()
}

/// One of a few requests of different price and shape.
fn request(purpose: &str, random: &mut Random) -> Box<Request> {
    let map = match random.one_in(3) {
        true => Map::Gradient { loss: Loss::Logistic, columns: 3 },
        false => Map::ClassCount { classes: 2 },
    };
    // So that a budget pays for about a dozen.
    let power = if matches!(map, Map::ClassCount { .. }) { 21 } else { 32 };
    let noise_scale = NoiseScale::new(random.pick(&[3, 4, 7]) << power).expect("in range");
    let shape = QueryShape::new(map, PrivacyUnit::Row, 1 << 20).expect("small");
    let noise = NoiseDistribution::RoundedGaussian;
    let release = PlannedRelease { purpose: "one answer".to_owned(), shape, noise_scale, noise, times: 1 };
    let (data, schema) = ("table.csv".to_owned(), "0123456789abcdef".to_owned());
    Box::new(Request { purpose: purpose.to_owned(), data, schema, labels: None, table: None, releases: vec![release] })
}

/// A cheap request, for spending all that is left.
pub(crate) fn last_request() -> Request {
    *request("left", &mut Random::new(2))
}

pub(crate) fn budget(epsilon: f64) -> Budget {
    Budget { epsilon: Epsilon::new(epsilon).expect("above 0"), delta: Delta::new(1e-5).expect("between 0 and 1") }
}

const FIXED: &str = "fixed";
const MARK: &str = "life: ";
const SEPARATOR: &str = "\t";
