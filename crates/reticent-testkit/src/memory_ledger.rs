//! A ledger that lives as long as the test.

use reticent_core::adjacency::Relation;
use reticent_core::ledger::{Account, Budget, LedgerError, LedgerReference, LedgerStore, Request};

/// Follows the ledger's rules in memory and remembers every request.
pub struct MemoryLedger {
    account: Account,
    /// Requests that were charged, in order.
    pub charged: Vec<Request>,
}

impl MemoryLedger {
    /// A ledger that promises one relation, without a limit or with one.
    #[must_use]
    pub fn promising(relation: Relation, budget: Option<Budget>) -> Self {
        Self::promising_all([relation], budget)
    }

    /// A ledger that promises several relations.
    #[must_use]
    pub fn promising_all(relations: impl IntoIterator<Item = Relation>, budget: Option<Budget>) -> Self {
        Self { account: Account::promising(relations, budget), charged: Vec::new() }
    }
}

impl LedgerStore for MemoryLedger {
    fn account(&self) -> Result<Account, LedgerError> {
        Ok(self.account.clone())
    }

    fn charge(&mut self, request: &Request) -> Result<(), LedgerError> {
        self.account.book(request)?;
        self.charged.push(request.clone());
        Ok(())
    }

    fn last_entry(&self) -> Option<LedgerReference> {
        let entry = self.charged.len() as u64;
        (entry > 0).then(|| LedgerReference { id: "memory".to_owned(), entry, seal: None })
    }
}
