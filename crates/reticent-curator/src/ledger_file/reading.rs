//! One transaction on a ledger's file: what is read in it, and how it ends.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use reticent_core::adjacency::{Relation, RelationSyntax};
use reticent_core::ledger::{Account, Budget, Request};
use reticent_core::units::{Delta, Epsilon, MuSquared, UnitError};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

use super::format::{APPLICATION_ID, is_complete, is_of_format, ledger_seal, read_pragma, refuse_header};
use super::{Entry, LedgerFileError, failed, make_name_durable, seal};

/// A transaction, with what its errors say about the file.
pub(super) struct Reading<'t> {
    transaction: Transaction<'t>,
    path: &'t Path,
    /// How long it waits for others.
    wait: Duration,
}

impl<'t> Reading<'t> {
    /// One state of the file, whatever others write meanwhile.
    pub(super) fn shared(connection: &'t Connection, path: &'t Path, wait: Duration) -> Result<Self, LedgerFileError> {
        Self::of(connection.unchecked_transaction(), path, wait)
    }

    /// The only one that may write until it ends. Dropped before it is committed, it has written nothing.
    pub(super) fn alone(
        connection: &'t mut Connection,
        path: &'t Path,
        wait: Duration,
    ) -> Result<Self, LedgerFileError> {
        Self::of(connection.transaction_with_behavior(TransactionBehavior::Immediate), path, wait)
    }

    fn of(
        transaction: rusqlite::Result<Transaction<'t>>,
        path: &'t Path,
        wait: Duration,
    ) -> Result<Self, LedgerFileError> {
        let transaction = transaction.map_err(|source| LedgerFileError::from_database(path, wait, source))?;
        Ok(Self { transaction, path, wait })
    }

    /// Does something in the transaction.
    pub(super) fn within<T>(
        &self,
        act: impl FnOnce(&Transaction<'t>) -> rusqlite::Result<T>,
    ) -> Result<T, LedgerFileError> {
        self.named(act(&self.transaction))
    }

    /// Ends the transaction so that what it wrote survives a crash of the machine.
    ///
    /// SQLite syncs the folder too, when it has made the journal and when it has removed it; but it goes on in silence where
    /// the folder cannot be opened, and the journal may then be lost while it is needed, or come back and undo the entry.
    pub(super) fn commit(self, folder: &Path) -> Result<(), LedgerFileError> {
        let Self { transaction, path, wait } = self;
        make_name_durable(folder).map_err(failed(path, "written"))?;
        transaction.commit().map_err(|source| LedgerFileError::from_database(path, wait, source))?;
        make_name_durable(folder).map_err(|source| LedgerFileError::Unsynced { path: path.to_owned(), source })
    }

    /// Checks everything that can be checked, and returns the ledger's id.
    pub(super) fn sound_id(&self) -> Result<String, LedgerFileError> {
        let header = |name: &str| self.named(read_pragma(&self.transaction, name));
        refuse_header(self.path, header("application_id")?, header("user_version")?)?;
        let finding: String = self.named(self.transaction.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)))?;
        if finding != "ok" {
            // The first line, if there are two, names the database: there is one.
            return Err(self.damaged(finding.lines().next_back().unwrap_or_default()));
        }
        if !self.named(is_of_format(&self.transaction))? {
            return Err(self.damaged("its tables are not those of the format"));
        }
        self.account()?;
        self.entries()?;
        self.check_other_seals()?;
        self.named(self.transaction.query_row("SELECT id FROM ledger", [], |row| row.get(0)))
    }

    /// What was promised, spent and allowed.
    pub(super) fn account(&self) -> Result<Account, LedgerFileError> {
        // A newer release may have changed the format since the file was opened.
        refuse_header(self.path, APPLICATION_ID, self.named(read_pragma(&self.transaction, "user_version"))?)?;
        if !self.named(is_complete(&self.transaction))? {
            return Err(self.damaged("entries or their charges are missing"));
        }
        let mut spent = self.promises()?;
        let mut statement = self.named(self.transaction.prepare_cached("SELECT relation, mu_squared FROM charge"))?;
        let mut rows = self.named(statement.query([]))?;
        let mut by_text: BTreeMap<String, Vec<MuSquared>> = BTreeMap::new();
        while let Some(row) = self.named(rows.next())? {
            let price = self.price(&self.named(row.get::<_, String>(1))?)?;
            by_text.entry(self.named(row.get(0))?).or_default().push(price);
        }
        for (text, prices) in by_text {
            let total = spent.get_mut(&self.relation(&text)?).ok_or_else(|| self.damaged("a charge for no promise"))?;
            *total = prices
                .into_iter()
                .try_fold(*total, MuSquared::checked_add)
                .ok_or_else(|| self.damaged("the charges add up to more than a ledger can hold"))?;
        }
        let mut account = Account { budget: self.budget()?, spent, labels: Vec::new(), tables: Vec::new() };
        self.remember_requests(&mut account)?;
        Ok(account)
    }

    /// Reads what later requests are held against.
    fn remember_requests(&self, account: &mut Account) -> Result<(), LedgerFileError> {
        let mut statement = self.named(self.transaction.prepare_cached("SELECT request FROM entry ORDER BY id"))?;
        let mut rows = self.named(statement.query([]))?;
        while let Some(row) = self.named(rows.next())? {
            let request: String = self.named(row.get(0))?;
            let request: Request = serde_json::from_str(&request)
                .map_err(|error| self.damaged(format!("a request cannot be read: {error}")))?;
            account.remember(&request);
        }
        Ok(())
    }

    fn promises(&self) -> Result<BTreeMap<Relation, MuSquared>, LedgerFileError> {
        let mut statement = self.named(self.transaction.prepare_cached("SELECT relation FROM promise"))?;
        let texts: rusqlite::Result<Vec<String>> =
            statement.query_map([], |row| row.get(0)).and_then(Iterator::collect);
        self.named(texts)?.iter().map(|text| Ok((self.relation(text)?, MuSquared::ZERO))).collect()
    }

    fn budget(&self) -> Result<Option<Budget>, LedgerFileError> {
        let mut statement = self.named(self.transaction.prepare_cached("SELECT epsilon, delta FROM budget"))?;
        let found = statement.query_row([], |row| Ok((row.get(0)?, row.get(1)?)));
        let Some((epsilon, delta)) = self.named(found.optional())? else { return Ok(None) };
        let budget = || Ok(Budget { epsilon: Epsilon::new(epsilon)?, delta: Delta::new(delta)? });
        budget().map(Some).map_err(|error: UnitError| self.damaged(error.to_string()))
    }

    /// Every charge, oldest first, each sealed as it was written. The account is read before.
    pub(super) fn entries(&self) -> Result<Vec<Entry>, LedgerFileError> {
        let mut charges = self.named(
            self.transaction
                .prepare_cached("SELECT relation, mu_squared FROM charge WHERE entry = ?1 ORDER BY relation"),
        )?;
        let mut statement = self
            .named(self.transaction.prepare_cached("SELECT id, nonce, time, request, seal FROM entry ORDER BY id"))?;
        let mut rows = self.named(statement.query([]))?;
        let mut entries = Vec::new();
        let mut previous = self.named(ledger_seal(&self.transaction))?;
        while let Some(row) = self.named(rows.next())? {
            let id: i64 = self.named(row.get(0))?;
            let text = |place: usize| self.named(row.get::<_, String>(place));
            let (nonce, time, request, seal) = (text(1)?, text(2)?, text(3)?, text(4)?);
            let prices = charges.query_map([id], |row| Ok((row.get(0)?, row.get(1)?)));
            let prices: rusqlite::Result<Vec<(String, String)>> = prices.and_then(Iterator::collect);
            let prices = self.named(prices)?;
            if seal != seal::of_entry(&previous, id, &nonce, &time, &request, &prices) {
                let finding = format!("entry {id} or something before it was changed after it was written");
                return Err(self.damaged(finding));
            }
            previous.clone_from(&seal);
            let request = serde_json::from_str(&request)
                .map_err(|error| self.damaged(format!("the request of entry {id} cannot be read: {error}")))?;
            let charged = prices
                .iter()
                .map(|(relation, price)| Ok((self.relation(relation)?, self.price(price)?)))
                .collect::<Result<BTreeMap<_, _>, LedgerFileError>>()?;
            let id = u64::try_from(id).expect("entries are numbered from 1: the account was read before");
            entries.push(Entry { id, time, request, charged, seal });
        }
        Ok(entries)
    }

    /// The answer that is kept under the name of a question, if there is one.
    pub(super) fn answer(&self, query: &str) -> Result<Option<String>, LedgerFileError> {
        let mut statement =
            self.named(self.transaction.prepare_cached("SELECT release FROM answer WHERE query = ?1"))?;
        self.named(statement.query_row([query], |row| row.get(0)).optional())
    }

    /// Seals of the limit and of kept answers.
    fn check_other_seals(&self) -> Result<(), LedgerFileError> {
        let changed = |what: &str| self.damaged(format!("{what} was changed after it was written"));
        let ledger = self.named(ledger_seal(&self.transaction))?;
        let mut budgets = self.named(self.transaction.prepare("SELECT epsilon, delta, set_at, seal FROM budget"))?;
        let mut rows = self.named(budgets.query([]))?;
        while let Some(row) = self.named(rows.next())? {
            let seal = || {
                let set_at: String = row.get(2)?;
                Ok((seal::of_budget(&ledger, row.get(0)?, row.get(1)?, &set_at), row.get::<_, String>(3)?))
            };
            let (expected, found) = self.named(seal())?;
            if expected != found {
                return Err(changed("the limit"));
            }
        }
        let mut answers = self.named(self.transaction.prepare("SELECT query, entry, release, seal FROM answer"))?;
        let mut rows = self.named(answers.query([]))?;
        while let Some(row) = self.named(rows.next())? {
            let seal = || {
                let (query, release): (String, String) = (row.get(0)?, row.get(2)?);
                Ok((seal::of_answer(&ledger, &query, row.get(1)?, &release), row.get::<_, String>(3)?))
            };
            let (expected, found) = self.named(seal())?;
            if expected != found {
                return Err(changed("a kept answer"));
            }
        }
        Ok(())
    }

    fn relation(&self, text: &str) -> Result<Relation, LedgerFileError> {
        text.parse().map_err(|error: RelationSyntax| self.damaged(error.to_string()))
    }

    fn price(&self, text: &str) -> Result<MuSquared, LedgerFileError> {
        text.parse().map(MuSquared::from_steps).map_err(|_| self.damaged(format!("{text:?} is no price")))
    }

    /// The same, with a failure that names the file.
    fn named<T>(&self, result: rusqlite::Result<T>) -> Result<T, LedgerFileError> {
        result.map_err(|source| LedgerFileError::from_database(self.path, self.wait, source))
    }

    fn damaged(&self, finding: impl Into<String>) -> LedgerFileError {
        LedgerFileError::Damaged { path: self.path.to_owned(), finding: finding.into() }
    }
}
