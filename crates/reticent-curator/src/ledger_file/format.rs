//! The format of a ledger's file: its header, its tables, and the rows that are added to them.

use std::collections::BTreeMap;
use std::path::Path;

use reticent_core::adjacency::Relation;
use reticent_core::ledger::{Budget, Request};
use reticent_core::units::MuSquared;
use rusqlite::{Connection, Transaction, params};

use super::{LedgerFileError, seal};

/// `Retc` in ASCII, in the header of the file.
pub(super) const APPLICATION_ID: i32 = 0x5265_7463;

/// The format that this release reads and writes. 1 and 2 had no seals; no release made them.
pub(super) const FORMAT: i32 = 3;

/// UTC, to the second.
pub(super) const NOW: &str = "strftime('%Y-%m-%dT%H:%M:%SZ', 'now')";

/// Prices are decimal text because SQLite's integers end at 2^63 and a price may have 128 bits. `answer` holds answers to
/// questions of other organisations, by the name of the question: asked again, they cost nothing.
pub(super) const TABLES: &str = "
CREATE TABLE ledger (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    id TEXT NOT NULL CHECK (length(id) = 32),
    made TEXT NOT NULL
) STRICT;
CREATE TABLE budget (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    epsilon REAL NOT NULL,
    delta REAL NOT NULL,
    set_at TEXT NOT NULL,
    seal TEXT NOT NULL CHECK (length(seal) = 64)
) STRICT;
CREATE TABLE promise (
    relation TEXT NOT NULL PRIMARY KEY
) STRICT, WITHOUT ROWID;
CREATE TABLE entry (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    nonce TEXT NOT NULL CHECK (length(nonce) = 32),
    time TEXT NOT NULL,
    request TEXT NOT NULL,
    seal TEXT NOT NULL CHECK (length(seal) = 64)
) STRICT;
CREATE TABLE charge (
    entry INTEGER NOT NULL REFERENCES entry (id),
    relation TEXT NOT NULL REFERENCES promise (relation),
    mu_squared TEXT NOT NULL CHECK (mu_squared <> '' AND mu_squared NOT GLOB '*[^0-9]*'),
    PRIMARY KEY (entry, relation)
) STRICT, WITHOUT ROWID;
CREATE TABLE answer (
    query TEXT NOT NULL PRIMARY KEY CHECK (length(query) = 64),
    entry INTEGER NOT NULL REFERENCES entry (id),
    release TEXT NOT NULL,
    seal TEXT NOT NULL CHECK (length(seal) = 64)
) STRICT, WITHOUT ROWID;
";

pub(super) fn refuse_header(path: &Path, application: i32, format: i32) -> Result<(), LedgerFileError> {
    let path = path.to_owned();
    if application != APPLICATION_ID || format < 1 {
        Err(LedgerFileError::NotALedger { path })
    } else if format < FORMAT {
        Err(LedgerFileError::Older { path, found: format })
    } else if format > FORMAT {
        Err(LedgerFileError::Newer { path, found: format, known: FORMAT })
    } else {
        Ok(())
    }
}

pub(super) fn read_pragma(connection: &Connection, name: &str) -> rusqlite::Result<i32> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}

/// Whether the tables and triggers are those of the format.
pub(super) fn is_of_format(connection: &Connection) -> rusqlite::Result<bool> {
    Ok(read_definitions(connection)? == expected_definitions()?)
}

fn read_definitions(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement =
        connection.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name")?;
    statement.query_map([], |row| row.get(0))?.collect()
}

fn expected_definitions() -> rusqlite::Result<Vec<String>> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(TABLES)?;
    connection.execute_batch(&triggers())?;
    read_definitions(&connection)
}

/// Whether the entries are 1 to n without a gap, none was ever removed, and each is charged in every promised relation.
pub(super) fn is_complete(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row(COMPLETE, [], |row| row.get(0))
}

/// Writes one entry with its price in every promised relation; returns its number and its seal.
pub(super) fn insert_entry(
    transaction: &Transaction<'_>,
    nonce: &str,
    request: &Request,
    prices: &BTreeMap<Relation, MuSquared>,
) -> rusqlite::Result<(u64, String)> {
    let request = serde_json::to_string(request).expect("a request is text and whole numbers, which JSON can say");
    let mut prices: Vec<(String, String)> =
        prices.iter().map(|(relation, price)| (relation.to_string(), price.steps().to_string())).collect();
    // As the database sorts texts.
    prices.sort();
    let last = transaction.query_row("SELECT id, seal FROM entry ORDER BY id DESC LIMIT 1", [], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
    });
    let (last, previous) = match last {
        Ok(last) => last,
        Err(rusqlite::Error::QueryReturnedNoRows) => (0, ledger_seal(transaction)?),
        Err(error) => return Err(error),
    };
    let (id, time) = (last + 1, now(transaction)?);
    let seal = seal::of_entry(&previous, id, nonce, &time, &request, &prices);
    let mut entry = transaction.prepare_cached("INSERT INTO entry VALUES (?1, ?2, ?3, ?4, ?5)")?;
    entry.execute(params![id, nonce, time, request, seal])?;
    let mut charge = transaction.prepare_cached("INSERT INTO charge VALUES (?1, ?2, ?3)")?;
    for (relation, price) in prices {
        charge.execute(params![id, relation, price])?;
    }
    Ok((u64::try_from(id).expect("entries are numbered from 1"), seal))
}

pub(super) fn insert_budget(transaction: &Transaction<'_>, budget: Budget) -> rusqlite::Result<()> {
    let (epsilon, delta, set_at) = (budget.epsilon.get(), budget.delta.get(), now(transaction)?);
    let seal = seal::of_budget(&ledger_seal(transaction)?, epsilon, delta, &set_at);
    transaction.execute("INSERT INTO budget VALUES (1, ?1, ?2, ?3, ?4)", params![epsilon, delta, set_at, seal])?;
    Ok(())
}

/// Keeps the answer to a question, which entry `entry` paid for.
pub(super) fn insert_answer(
    transaction: &Transaction<'_>,
    query: &str,
    entry: u64,
    answer: &str,
) -> rusqlite::Result<()> {
    let entry = i64::try_from(entry).expect("entries are numbered from 1");
    let seal = seal::of_answer(&ledger_seal(transaction)?, query, entry, answer);
    transaction.execute("INSERT INTO answer VALUES (?1, ?2, ?3, ?4)", params![query, entry, answer, seal])?;
    Ok(())
}

/// The first link of the chain.
pub(super) fn ledger_seal(transaction: &Transaction<'_>) -> rusqlite::Result<String> {
    let (id, made): (String, String) =
        transaction.query_row("SELECT id, made FROM ledger", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut promises = transaction.prepare_cached("SELECT relation FROM promise ORDER BY relation")?;
    let promises = promises.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
    Ok(seal::of_ledger(&id, &made, &promises))
}

fn now(transaction: &Transaction<'_>) -> rusqlite::Result<String> {
    transaction.query_row(&format!("SELECT {NOW}"), [], |row| row.get(0))
}

const COMPLETE: &str = "
SELECT (SELECT count(*) FROM ledger) = 1
   AND (SELECT count(*) FROM promise) >= 1
   AND (SELECT count(*) FROM entry) = (SELECT coalesce(max(id), 0) FROM entry)
   AND (SELECT count(*) FROM entry) = (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'entry')
   AND (SELECT count(*) FROM charge) = (SELECT count(*) FROM entry) * (SELECT count(*) FROM promise)
";

/// A ledger only grows. This stops a slip in somebody's SQL, not an enemy: who can write the file can drop a trigger.
pub(super) fn triggers() -> String {
    let kept = ["ledger", "budget", "promise", "entry", "charge", "answer"];
    let changes = kept.iter().flat_map(|table| ["UPDATE", "DELETE"].map(|action| refusing(table, action)));
    // What is promised is fixed when the ledger is made: a later promise would not cover earlier entries.
    let additions = ["ledger", "promise"].map(|table| refusing(table, "INSERT"));
    changes.chain(additions).collect()
}

fn refusing(table: &str, action: &str) -> String {
    format!(
        "CREATE TRIGGER {table}_no_{action} BEFORE {action} ON {table} \
         BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END;"
    )
}
