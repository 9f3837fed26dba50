//! What only the inside can arrange: a short wait for a lock, a disk with a last page, the database's settings.

use super::format::triggers;
use super::*;

use reticent_core::adjacency::{Adjacency, PrivacyUnit};
use reticent_core::ledger::PlannedRelease;
use reticent_core::query::{Map, QueryShape};
use reticent_core::units::{NoiseDistribution, NoiseScale};
use rusqlite::TransactionBehavior;

fn request() -> Request {
    let shape = QueryShape::new(Map::ClassCount { classes: 2 }, PrivacyUnit::Row, 1000).expect("small");
    let noise_scale = NoiseScale::new(1 << 21).expect("in range");
    let release = PlannedRelease {
        purpose: "row count".to_owned(),
        shape,
        noise_scale,
        noise: NoiseDistribution::RoundedGaussian,
        times: 1,
    };
    let (data, schema) = ("table.csv".to_owned(), "0123".to_owned());
    Request { purpose: "count".to_owned(), data, schema, labels: None, table: None, releases: vec![release] }
}

fn new_ledger(folder: &tempfile::TempDir) -> LedgerFile {
    let promised = BTreeSet::from([Relation { unit: PrivacyUnit::Row, adjacency: Adjacency::AddRemove }]);
    LedgerFile::create(&folder.path().join("ledger"), &promised, None).expect("a new folder")
}

fn store_error(refused: LedgerError) -> LedgerFileError {
    match refused {
        LedgerError::Store(error) => *error.downcast().expect("this store has one kind of error"),
        LedgerError::Refused(refusal) => panic!("no rule was broken: {refusal}"),
    }
}

#[test]
fn a_commit_is_as_durable_as_sqlite_can_make_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let ledger = new_ledger(&folder);
    assert_eq!(read_pragma(&ledger.connection, "synchronous"), Ok(3), "EXTRA: the folder is written too");
    let mode: String = ledger.connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).expect("a setting");
    assert_eq!(mode, "delete");
    assert_eq!(read_pragma(&ledger.connection, "foreign_keys"), Ok(1));
}

#[test]
fn a_ledger_locked_by_another_is_an_error_after_the_wait() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut first = new_ledger(&folder);
    let wait = Duration::from_millis(50);
    let mut second = LedgerFile::open_waiting(&first.path, wait).expect("free");
    let lock = first.connection.transaction_with_behavior(TransactionBehavior::Exclusive).expect("free");
    for error in [
        store_error(second.charge(&request()).expect_err("locked")),
        store_error(second.account().expect_err("locked")),
        LedgerFile::open_waiting(&second.path, wait).expect_err("locked"),
    ] {
        assert!(matches!(error, LedgerFileError::Locked { waited, .. } if waited == wait), "{error}");
    }
    drop(lock);
    second.charge(&request()).expect("free again");
    assert_eq!(second.entries().expect("sound").len(), 1);
}

/// POSIX drops a process's locks on a file when any descriptor of it is closed: opening must not do that to a charge.
#[test]
fn opening_in_one_thread_keeps_the_lock_of_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut first = new_ledger(&folder);
    let path = first.path.clone();
    let locks = || fs::read_to_string("/proc/locks").unwrap_or_default();
    let inode = {
        #[cfg(unix)]
        {
            format!(":{} ", std::os::unix::fs::MetadataExt::ino(&fs::metadata(&path).expect("there")))
        }
        #[cfg(not(unix))]
        {
            String::new()
        }
    };
    let lock = first.connection.transaction_with_behavior(TransactionBehavior::Immediate).expect("free");
    if !cfg!(target_os = "linux") || !locks().contains(&inode) {
        return; // The kernel does not show its locks here, so there is nothing to look at.
    }
    let held = |text: String| text.lines().filter(|line| line.contains(&inode) && line.contains("WRITE")).count();
    let before = held(locks());
    assert!(before > 0, "an immediate transaction holds a write lock");
    drop(LedgerFile::open(&path).expect("readers are let in"));
    refuse_foreign(&path, LOCK_WAIT).expect("a ledger");
    assert_eq!(held(locks()), before);
    drop(lock);
}

#[test]
fn a_full_disk_is_an_error_and_spends_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut ledger = new_ledger(&folder);
    let pages = read_pragma(&ledger.connection, "page_count").expect("a number");
    let mut large = request();
    large.purpose = "x".repeat(20_000);
    ledger.connection.pragma_update(None, "max_page_count", pages).expect("a setting");
    let before = fs::read(&ledger.path).expect("there");
    let error = store_error(ledger.charge(&large).expect_err("needs five more pages"));
    assert!(matches!(error, LedgerFileError::DiskFull { .. }), "{error}");
    assert_eq!(fs::read(&ledger.path).expect("there"), before);
    assert_eq!(ledger.last_entry(), None);
    ledger.connection.pragma_update(None, "max_page_count", pages + 100).expect("a setting");
    ledger.charge(&large).expect("room again");
    assert_eq!(ledger.entries().expect("sound")[0].request, large);
}

#[test]
fn a_write_ahead_log_is_put_away_when_the_ledger_is_opened() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = new_ledger(&folder).path;
    let other = Connection::open(&path).expect("a database");
    other.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())).expect("no other user");
    drop(other);
    let mut ledger = LedgerFile::open(&path).expect("still a ledger");
    ledger.charge(&request()).expect("no limit");
    assert!(!with_suffix(&path, "-wal").exists());
    assert_eq!(fs::read(&path).expect("there")[18..20], [1, 1], "header: rollback journal for reading and writing");
}

#[test]
fn entries_cannot_be_changed_or_removed_by_a_slip() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut ledger = new_ledger(&folder);
    ledger.charge(&request()).expect("no limit");
    for slip in [
        "DELETE FROM charge",
        "DELETE FROM entry",
        "UPDATE charge SET mu_squared = '0'",
        "UPDATE entry SET id = 2",
        "INSERT INTO promise VALUES ('row:label')",
        "INSERT INTO charge VALUES (7, 'row:add-remove', '1')",
        "INSERT INTO charge VALUES (1, 'row:replace', '1')",
    ] {
        assert!(ledger.connection.execute_batch(slip).is_err(), "{slip}");
    }
    assert_eq!(ledger.entries().expect("sound").len(), 1);
}

#[test]
fn an_entry_that_was_cut_out_is_noticed() {
    for cut in
        ["DELETE FROM charge WHERE entry = 2", "DELETE FROM charge WHERE entry = 2; DELETE FROM entry WHERE id = 2"]
    {
        let folder = tempfile::tempdir().expect("a folder");
        let mut ledger = new_ledger(&folder);
        ledger.charge(&request()).expect("no limit");
        ledger.charge(&request()).expect("no limit");
        let script =
            format!("DROP TRIGGER entry_no_DELETE; DROP TRIGGER charge_no_DELETE; {cut}; {}", triggers_again());
        ledger.connection.execute_batch(&script).expect("legal SQL");
        let error = LedgerFile::open(&ledger.path).expect_err("a gap");
        assert!(matches!(&error, LedgerFileError::Damaged { finding, .. } if finding.contains("missing")), "{error}");
        let error = store_error(ledger.charge(&request()).expect_err("a gap"));
        assert!(matches!(error, LedgerFileError::Damaged { .. }), "{error}");
    }
}

#[test]
fn a_ledger_without_its_triggers_is_noticed() {
    let folder = tempfile::tempdir().expect("a folder");
    let ledger = new_ledger(&folder);
    ledger.connection.execute_batch("DROP TRIGGER entry_no_DELETE").expect("legal SQL");
    let error = LedgerFile::open(&ledger.path).expect_err("another definition");
    assert!(matches!(error, LedgerFileError::Damaged { .. }), "{error}");
}

/// The two triggers that a test has dropped, as they were.
fn triggers_again() -> String {
    let dropped = ["TRIGGER entry_no_DELETE", "TRIGGER charge_no_DELETE"];
    let all = triggers();
    all.split_inclusive("END;").filter(|trigger| dropped.iter().any(|name| trigger.contains(name))).collect()
}
