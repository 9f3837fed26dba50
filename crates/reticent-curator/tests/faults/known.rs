//! What the outside world has seen of a ledger, against which the file is held.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use reticent_core::ledger::{Budget, LedgerStore};
use reticent_core::units::MuSquared;
use reticent_curator::ledger_file::{Entry, LedgerFile, LedgerFileError};

use crate::life::{Action, budget};

/// Everything that was said and tried over all lives.
#[derive(Default)]
pub(crate) struct Known {
    /// Name of the ledger, once anybody has opened it.
    id: Option<String>,
    /// Making it, or something written to it, has returned. What a failed attempt to make one has left may vanish.
    lasting: bool,
    /// Purposes of charges that were tried.
    tried: BTreeSet<String>,
    /// Purposes of charges of which the program said that nothing was spent.
    unspent: BTreeSet<String>,
    /// Charges that returned: something may have been released for them. Number of the entry, with seal and purpose.
    released: BTreeMap<u64, (String, String)>,
    /// Answers that are kept, by question.
    kept: BTreeMap<String, String>,
    /// The limit, once it is in force, and how many entries there may have been before.
    limit: Option<(Budget, u64)>,
    /// Charges of which something was heard, and lives that were learnt of: each may have ended within one more.
    asked: u64,
    lives: u64,
    /// How often charges were refused for want of budget.
    pub(crate) refused: usize,
    /// How often they failed.
    pub(crate) failed: usize,
}

impl Known {
    /// A ledger that is made with a limit, or without one.
    pub(crate) fn new(budget: Option<Budget>) -> Self {
        Self { limit: budget.map(|budget| (budget, 0)), ..Self::default() }
    }

    /// How many charges returned.
    pub(crate) fn released(&self) -> usize {
        self.released.len()
    }

    /// Takes in what a life did and said.
    pub(crate) fn learn(&mut self, actions: &[Action], heard: &[Vec<String>]) -> Result<(), String> {
        let purposes = actions.iter().filter_map(|action| match action {
            Action::Charge(request) => Some(request.purpose.clone()),
            Action::SetBudget(_) | Action::KeepAnswer { .. } | Action::ReadAccount | Action::Reopen => None,
        });
        self.tried.extend(purposes);
        for words in heard {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            self.lasting |= matches!(words[0], "charged" | "limited" | "kept");
            match words.as_slice() {
                [word @ ("made" | "opened"), id] => {
                    let earlier = self.id.replace((*id).to_owned());
                    if let Some(earlier) = earlier.filter(|earlier| self.lasting && earlier != id) {
                        return Err(format!("ledger {earlier} was replaced by {id}"));
                    }
                    self.lasting |= *word == "made";
                }
                ["charged", entry, seal, purpose] => {
                    self.asked += 1;
                    let entry = entry.parse().map_err(|_| format!("{entry} is no number"))?;
                    if let Some(earlier) = self.released.insert(entry, ((*seal).to_owned(), (*purpose).to_owned())) {
                        return Err(format!("entry {entry} was sold twice, first for {}", earlier.1));
                    }
                }
                ["refused", purpose, _] => {
                    self.refused += 1;
                    self.unspent.insert((*purpose).to_owned());
                }
                ["failed", purpose, message] => {
                    self.asked += 1;
                    self.failed += 1;
                    if message.contains("nothing was spent") {
                        self.unspent.insert((*purpose).to_owned());
                    }
                }
                ["limited", epsilon] => {
                    let epsilon = epsilon.parse().map_err(|_| format!("{epsilon} is no number"))?;
                    self.limit.get_or_insert((budget(epsilon), self.asked + self.lives));
                }
                ["kept", query, answer] => {
                    let known = self.kept.entry((*query).to_owned()).or_insert_with(|| (*answer).to_owned());
                    if known != answer {
                        return Err(format!("the kept answer {known:?} became {answer:?}"));
                    }
                }
                ["not opened" | "not limited" | "not kept" | "no account" | "account", _] => {}
                other => return Err(format!("said {other:?}")),
            }
        }
        self.lives += 1;
        Ok(())
    }

    /// Holds a ledger against what is known: nothing that returned is missing, nothing is there twice or unasked, and the
    /// limit is kept to the last step.
    pub(crate) fn check(&self, path: &Path) -> Result<(), String> {
        let ledger = match LedgerFile::open(path) {
            Ok(ledger) => ledger,
            Err(LedgerFileError::Missing { .. }) if !self.lasting => return Ok(()),
            Err(error) => return Err(format!("it does not open: {error}")),
        };
        if let Some(id) = self.id.as_deref().filter(|id| self.lasting && *id != ledger.id()) {
            return Err(format!("ledger {id} was replaced by {}", ledger.id()));
        }
        let entries = ledger.entries().map_err(|error| error.to_string())?;
        for (number, (seal, purpose)) in &self.released {
            let found = entries.iter().find(|entry| entry.id == *number);
            if found.is_none_or(|entry| entry.seal != *seal || entry.request.purpose != *purpose) {
                return Err(format!("a charge that returned is not in the ledger: entry {number}, {}", short(purpose)));
            }
        }
        let mut seen = BTreeSet::new();
        for entry in &entries {
            let purpose = entry.request.purpose.as_str();
            if !seen.insert(purpose) {
                return Err(format!("charged twice: {}", short(purpose)));
            } else if !self.tried.contains(purpose) {
                return Err(format!("nobody asked for {}", short(purpose)));
            } else if self.unspent.contains(purpose) {
                return Err(format!("nothing was spent, it said, and it was: {}", short(purpose)));
            }
        }
        self.check_prices(&ledger, &entries)?;
        for (query, answer) in &self.kept {
            if ledger.kept_answer(query).map_err(|error| error.to_string())?.as_ref() != Some(answer) {
                return Err(format!("a kept answer is lost: {}", short(answer)));
            }
        }
        Ok(())
    }

    fn check_prices(&self, ledger: &LedgerFile, entries: &[Entry]) -> Result<(), String> {
        let account = ledger.account().map_err(|error| error.to_string())?;
        if let Some((limit, _)) = self.limit
            && account.budget != Some(limit)
        {
            return Err(format!("the limit is {:?} and was {limit:?}", account.budget));
        }
        for (relation, recorded) in &account.spent {
            let mut spent = MuSquared::ZERO;
            for entry in entries {
                let price = entry.request.price_up(relation).ok_or("a request without a price")?;
                spent = spent.checked_add(price).ok_or("more than a ledger can hold")?;
                if entry.charged.get(relation) != Some(&price) {
                    return Err(format!("entry {} is charged at another price", entry.id));
                }
                if let Some((limit, before)) = self.limit
                    && entry.id > before
                    && spent > limit.mu_squared_down()
                {
                    return Err(format!("entry {} goes beyond the limit under {relation}", entry.id));
                }
            }
            if spent != *recorded {
                return Err(format!("the account under {relation} is not the sum of its entries"));
            }
        }
        Ok(())
    }

    /// Knows of a limit that was set when there were so many entries.
    pub(crate) fn limit(&mut self, limit: Budget, entries: usize) {
        self.limit.get_or_insert((limit, entries as u64));
    }

    /// Knows of a charge that this very process made.
    pub(crate) fn add(&mut self, ledger: &LedgerFile, purpose: String) {
        let last = ledger.last_entry().expect("just charged");
        self.tried.insert(purpose.clone());
        self.released.insert(last.entry, (last.seal.expect("of a file"), purpose));
    }
}

/// The beginning of a text that may be long.
fn short(text: &str) -> String {
    text.chars().take(30).collect()
}
