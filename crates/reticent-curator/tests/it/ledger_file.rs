//! The ledger on disk under what the world does to it: bad files, several processes, a kill at any moment.
//!
//! Tests that need another process run this very binary again, as the one test [`child_process`] in a role.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use reticent_core::adjacency::{Adjacency, PrivacyUnit, Relation};
use reticent_core::ledger::{Budget, LedgerError, LedgerStore, PlannedRelease, Refusal, Request};
use reticent_core::query::{Loss, Map, QueryShape};
use reticent_core::units::{Delta, Epsilon, MuSquared, NoiseDistribution, NoiseScale};
use reticent_curator::ledger_file::{LedgerFile, LedgerFileError};
use reticent_math::fixed_sequence::FixedSequence;
use rusqlite::Connection;
use tempfile::TempDir;

// What is written is read.

#[test]
fn a_ledger_reads_back_as_written() {
    let home = Home::new();
    let promised = BTreeSet::from([row(Adjacency::AddRemove), row(Adjacency::Replace)]);
    let mut ledger = LedgerFile::create(&home.ledger, &promised, Some(budget(3.0))).expect("a new name");
    assert_eq!(ledger.last_entry(), None);
    let requests = [count_request("first \"quoted\" é", 1 << 24), gradient_request("second", 1 << 31)];
    for request in &requests {
        ledger.charge(request).expect("affordable");
    }
    assert_eq!(ledger.last_entry().map(|last| last.entry), Some(2));
    let id = ledger.id().to_owned();
    drop(ledger);

    let ledger = LedgerFile::open(&home.ledger).expect("sound");
    assert_eq!(ledger.id(), id);
    assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
    let account = ledger.account().expect("sound");
    assert_eq!(account.budget, Some(budget(3.0)), "bit for bit");
    let entries = ledger.entries().expect("sound");
    assert_eq!(entries.iter().map(|entry| entry.id).collect::<Vec<_>>(), [1, 2]);
    for (entry, request) in entries.iter().zip(&requests) {
        assert_eq!(&entry.request, request);
        let time = entry.time.as_bytes();
        assert!(
            time.len() == 20 && time[10] == b'T' && time[19] == b'Z' && entry.time.as_str() > "2024",
            "{}",
            entry.time
        );
        for relation in &promised {
            assert_eq!(entry.charged[relation], request.price_up(relation).expect("finite"), "{relation}");
        }
    }
    for relation in &promised {
        let total = entries.iter().fold(0, |total, entry| total + entry.charged[relation].steps());
        assert_eq!(account.spent[relation].steps(), total);
    }
    assert!(account.spent[&row(Adjacency::Replace)] > account.spent[&row(Adjacency::AddRemove)]);
    assert_eq!(home.names(), ["ledger"], "no draft and no journal is left");
}

/// SQLite finds the journal of a crash by the ledger's name: under a second name it would not be played back, and under the first one
/// it would undo what was charged since.
#[cfg(unix)]
#[test]
fn a_ledger_with_two_names_is_not_opened() {
    let home = Home::new();
    drop(LedgerFile::create(&home.ledger, &add_remove(), None).expect("a new name"));
    let second = home.path("second");
    fs::hard_link(&home.ledger, &second).expect("a second name");
    for name in [&home.ledger, &second] {
        let error = LedgerFile::open(name).expect_err("two names");
        assert!(matches!(error, LedgerFileError::Linked { .. }), "{error}");
        let error = LedgerFile::open_or_create(name, &add_remove()).expect_err("two names");
        assert!(error.to_string().contains("point to the ledger with a symbolic link"), "{error}");
    }
    fs::remove_file(&second).expect("it was there");
    std::os::unix::fs::symlink(&home.ledger, &second).expect("a link");
    let mut ledger = LedgerFile::open(&second).expect("one name");
    ledger.charge(&count_request("counted", 1 << 24)).expect("no limit");
    assert_eq!(LedgerFile::open(&home.ledger).expect("the same").entries().expect("sound").len(), 1);
}

#[test]
fn two_ledgers_have_two_ids() {
    let home = Home::new();
    let first = LedgerFile::create(&home.ledger, &add_remove(), None).expect("a new name");
    let second = LedgerFile::create(&home.path("other"), &add_remove(), None).expect("a new name");
    assert_ne!(first.id(), second.id());
}

#[test]
fn a_ledger_is_made_once() {
    let home = Home::new();
    drop(LedgerFile::create(&home.ledger, &add_remove(), None).expect("a new name"));
    let before = fs::read(&home.ledger).expect("there");
    let error = LedgerFile::create(&home.ledger, &add_remove(), Some(budget(9.0))).expect_err("taken");
    assert!(matches!(error, LedgerFileError::Exists { .. }), "{error}");
    let both = BTreeSet::from([row(Adjacency::AddRemove), row(Adjacency::Replace)]);
    let opened = LedgerFile::open_or_create(&home.ledger, &both).expect("sound");
    assert_eq!(opened.account().expect("sound").spent.len(), 1, "an existing ledger keeps its promises");
    assert_eq!(fs::read(&home.ledger).expect("there"), before);
}

#[test]
fn promises_that_nobody_could_keep_are_refused() {
    let home = Home::new();
    let error = LedgerFile::create(&home.ledger, &BTreeSet::new(), None).expect_err("protects nobody");
    assert!(matches!(error, LedgerFileError::NothingPromised { .. }), "{error}");
    for (column, rows_max) in [("", 1), ("patient", 0)] {
        let unit = PrivacyUnit::Column { column: column.to_owned(), rows_max };
        let promised = BTreeSet::from([Relation { unit, adjacency: Adjacency::Replace }]);
        let error = LedgerFile::create(&home.ledger, &promised, None).expect_err("would not read back");
        assert!(matches!(error, LedgerFileError::IllegalRelation { .. }), "{error}");
    }
    assert!(home.names().is_empty());
}

#[test]
fn a_name_that_sqlite_would_read_otherwise_is_a_name() {
    let home = Home::new();
    for name in ["a?mode=memory", "100%25 # ledger.db", ":memory:", "é 'x'"] {
        let path = home.path(name);
        LedgerFile::create(&path, &add_remove(), None).expect("a new name").charge(&tick("x")).expect("no limit");
        assert_eq!(LedgerFile::open(&path).expect("sound").entries().expect("sound").len(), 1, "{name}");
        assert!(path.is_file(), "{name}");
    }
}

// The rules, on disk.

#[test]
fn a_refusal_leaves_the_file_as_it_was() {
    let home = Home::new();
    let mut ledger = LedgerFile::create(&home.ledger, &add_remove(), Some(budget(1.0))).expect("a new name");
    ledger.charge(&count_request("affordable", 1 << 24)).expect("affordable");
    let before = fs::read(&home.ledger).expect("there");
    let refused = ledger.charge(&count_request("too much", 1 << 12)).expect_err("mu above 100");
    assert!(matches!(refused, LedgerError::Refused(Refusal::Exhausted(_))), "{refused}");
    assert_eq!(fs::read(&home.ledger).expect("there"), before);
    assert_eq!(ledger.last_entry().map(|last| last.entry), Some(1));
}

#[test]
fn the_budget_is_exact_to_one_step() {
    let price = tick("x").price_up(&row(Adjacency::AddRemove)).expect("finite");
    let limit = budget(1.0).mu_squared_down();
    for (over, fits) in [(0, true), (1, false)] {
        let home = Home::new();
        let mut ledger = LedgerFile::create(&home.ledger, &add_remove(), Some(budget(1.0))).expect("a new name");
        // An earlier spend that leaves exactly the price, or one step of 2^-96 less.
        let earlier = MuSquared::from_steps(limit.steps() - price.steps() + over);
        home.insert_entry(&tick("earlier"), &BTreeMap::from([(row(Adjacency::AddRemove), earlier)]));
        assert_eq!(ledger.charge(&tick("last")).is_ok(), fits, "{over} steps too many");
        let spent = ledger.account().expect("sound").spent[&row(Adjacency::AddRemove)];
        assert_eq!(spent, if fits { limit } else { earlier });
        assert!(ledger.charge(&tick("none left")).is_err());
    }
}

#[test]
fn two_relations_are_charged_together_or_not_at_all() {
    let home = Home::new();
    let promised = BTreeSet::from([row(Adjacency::AddRemove), row(Adjacency::Replace)]);
    let mut ledger = LedgerFile::create(&home.ledger, &promised, Some(budget(1.0))).expect("a new name");
    // A gradient costs four times as much under replace: choose the noise so that it fits under add-remove only.
    let limit = budget(1.0).mu_squared_down();
    let request = (20..45)
        .map(|power| gradient_request("between", 1 << power))
        .find(|request| request.price_up(&row(Adjacency::AddRemove)).is_some_and(|price| price <= limit))
        .expect("some noise is enough");
    assert!(request.price_up(&row(Adjacency::Replace)).expect("finite") > limit);
    let refused = ledger.charge(&request).expect_err("too much under replace");
    assert!(matches!(refused, LedgerError::Refused(Refusal::Exhausted(it)) if it.relation == row(Adjacency::Replace)));
    assert!(ledger.account().expect("sound").spent.values().all(|spent| *spent == MuSquared::ZERO));
    ledger.charge(&gradient_request("small", 1 << 36)).expect("affordable under both");
    let spent = ledger.account().expect("sound").spent;
    let one = gradient_request("small", 1 << 36);
    assert!(promised.iter().all(|relation| spent[relation] == one.price_up(relation).expect("finite")));
}

#[test]
fn a_limit_is_set_once_and_counts_what_was_spent_before() {
    let home = Home::new();
    let mut ledger = LedgerFile::open_or_create(&home.ledger, &add_remove()).expect("a new name");
    let mut other = LedgerFile::open(&home.ledger).expect("sound");
    for _ in 0..3 {
        ledger.charge(&tick("before")).expect("no limit");
    }
    assert_eq!(ledger.set_budget(budget(1.0)).expect("none yet"), []);
    let refused = other.set_budget(budget(100.0)).expect_err("set by another handle");
    assert!(matches!(refused, LedgerFileError::BudgetIsSet { budget: found, .. } if found == budget(1.0)), "{refused}");
    assert!(refused.to_string().contains("epsilon 1 at delta 1e-5"), "{refused}");
    let left = spend_all(&mut other, "after");
    assert_eq!(left + 3, ticks_in(1.0), "what was spent before the limit counts");
}

#[test]
fn a_limit_below_what_was_spent_refuses_everything_more() {
    let home = Home::new();
    let mut ledger = LedgerFile::create(&home.ledger, &add_remove(), None).expect("a new name");
    ledger.charge(&count_request("large", 1 << 18)).expect("no limit");
    assert_eq!(ledger.set_budget(budget(0.1)).expect("none yet"), [row(Adjacency::AddRemove)]);
    assert!(matches!(ledger.charge(&tick("more")), Err(LedgerError::Refused(Refusal::Exhausted(_)))));
    assert_eq!(ledger.account().expect("sound").budget, Some(budget(0.1)));
}

// Files that are no ledger, or no longer one.

#[test]
fn what_is_no_ledger_is_named_and_left_alone() {
    let home = Home::new();
    let open = |path: &Path| LedgerFile::open(path).expect_err("not a ledger");
    assert!(matches!(open(&home.path("absent")), LedgerFileError::Missing { .. }));
    assert!(matches!(open(&home.path("no/such/folder")), LedgerFileError::MissingFolder { .. }));
    assert!(matches!(open(home.folder.path()), LedgerFileError::NotAFile { .. }));
    let create = |path: &Path| LedgerFile::create(path, &add_remove(), None).expect_err("cannot be made");
    assert!(matches!(create(&home.path("no/such/folder")), LedgerFileError::MissingFolder { .. }));
    assert!(matches!(create(home.folder.path()), LedgerFileError::Exists { .. }));

    let database = home.path("database");
    let other = Connection::open(&database).expect("a new name");
    // A version of its own, as a ledger has.
    other.execute_batch("PRAGMA user_version = 5; CREATE TABLE entry (id INTEGER)").expect("legal SQL");
    drop(other);
    let text = b"age,income\n39,77516\n".repeat(500);
    let files: [(&str, &[u8]); 4] = [("empty", b""), ("short", b"x"), ("text", &text), ("zeros", &[0; 8192])];
    for (name, content) in files {
        fs::write(home.path(name), content).expect("a new name");
    }
    for name in ["empty", "short", "text", "zeros", "database"] {
        let before = fs::read(home.path(name)).expect("there");
        for error in [
            open(&home.path(name)),
            LedgerFile::open_or_create(&home.path(name), &add_remove()).expect_err("not a ledger"),
        ] {
            match name {
                "empty" => assert!(matches!(error, LedgerFileError::Empty { .. }), "{error}"),
                _ => assert!(matches!(error, LedgerFileError::NotALedger { .. }), "{name}: {error}"),
            }
            assert!(error.to_string().contains(name), "the message names the file: {error}");
        }
        assert_eq!(fs::read(home.path(name)).expect("there"), before, "{name}");
    }
    assert_eq!(home.names(), ["database", "empty", "short", "text", "zeros"]);
}

#[test]
fn the_unfinished_work_of_another_database_is_left_alone() {
    let home = Home::new();
    let database = home.path("database");
    let mut child = spawn("leave-foreign-journal", &database);
    assert_eq!(child.line().as_deref(), Some("ready"));
    child.kill();
    let journal = home.path("database-journal");
    let before = (fs::read(&database).expect("there"), fs::read(&journal).expect("half way"));
    let refused = |before: &(Vec<u8>, Vec<u8>)| {
        let error = LedgerFile::open(&database).expect_err("not a ledger");
        assert!(matches!(error, LedgerFileError::NotALedger { .. }), "{error}");
        assert_eq!((&fs::read(&database).expect("there"), &fs::read(&journal).expect("kept")), (&before.0, &before.1));
    };
    refused(&before);
    // Nor when its first page is torn and its journal is not, nor beside a journal that is none.
    let mut torn = before;
    torn.0[..512].fill(0x17);
    fs::write(&database, &torn.0).expect("writable");
    refused(&torn);
    for length in [0, 7, 8, 12, 28, 100, 512, 600] {
        let cut = (torn.0.clone(), torn.1[..length].to_vec());
        fs::write(&journal, &cut.1).expect("writable");
        refused(&cut);
    }
}

#[test]
fn a_ledger_of_a_later_format_is_left_alone() {
    let home = Home::with_entries(2);
    let other = Connection::open(&home.ledger).expect("a database");
    let mut open_before = LedgerFile::open(&home.ledger).expect("still known");
    other.pragma_update(None, "user_version", 4).expect("a setting");
    drop(other);
    let before = fs::read(&home.ledger).expect("there");
    let error = LedgerFile::open(&home.ledger).expect_err("later format");
    assert!(matches!(error, LedgerFileError::Newer { found: 4, known: 3, .. }), "{error}");
    let error = open_before.charge(&tick("x")).expect_err("changed under its feet");
    assert!(error.to_string().contains("format 4"), "{error}");
    assert_eq!(fs::read(&home.ledger).expect("there"), before);
}

#[test]
fn a_truncated_ledger_is_refused_at_every_length() {
    let home = Home::with_entries(40);
    let whole = fs::read(&home.ledger).expect("there");
    assert!(whole.len() >= 8 * 4096, "several pages");
    let cuts =
        (1..whole.len()).step_by(1021).chain([1, 15, 16, 99, 100, 4095, 4096, whole.len() - 4096, whole.len() - 1]);
    for length in cuts {
        fs::write(&home.ledger, &whole[..length]).expect("writable");
        let error = LedgerFile::open(&home.ledger).expect_err("cut off");
        let named = matches!(error, LedgerFileError::Damaged { .. } | LedgerFileError::NotALedger { .. });
        assert!(named, "{length}: {error}");
        assert_eq!(fs::read(&home.ledger).expect("there"), &whole[..length]);
        assert_eq!(home.names(), ["ledger"]);
    }
}

#[test]
fn a_ledger_with_an_overwritten_page_is_refused() {
    let home = Home::with_entries(40);
    let whole = fs::read(&home.ledger).expect("there");
    for page in (0..whole.len()).step_by(4096) {
        for filling in [0x00, 0xA5, 0xFF] {
            let mut damaged = whole.clone();
            damaged[page..page + 4096].fill(filling);
            fs::write(&home.ledger, &damaged).expect("writable");
            let error = LedgerFile::open(&home.ledger).expect_err("a page is gone");
            let named = matches!(error, LedgerFileError::Damaged { .. } | LedgerFileError::NotALedger { .. });
            assert!(named, "page at {page}, {filling}: {error}");
            assert_eq!(fs::read(&home.ledger).expect("there"), damaged);
        }
    }
}

/// SQLite keeps no checksum of contents, so a byte outside of any row may change unnoticed; but no flipped byte crashes the
/// reader, makes it write, or changes what it reads.
#[test]
fn a_flipped_byte_never_loses_an_entry_in_silence() {
    let home = Home::with_entries(12);
    let sound = LedgerFile::open(&home.ledger).and_then(|ledger| ledger.entries()).expect("sound");
    let whole = fs::read(&home.ledger).expect("there");
    let mut refused = 0;
    let mut random = FixedSequence::new(7);
    let places: Vec<usize> = (0..100).chain((0..900).map(|_| random.next_below(whole.len() as u64) as usize)).collect();
    for place in &places {
        let mut damaged = whole.clone();
        damaged[*place] ^= 1 << random.next_below(8);
        fs::write(&home.ledger, &damaged).expect("writable");
        match LedgerFile::open(&home.ledger) {
            Ok(ledger) => {
                let entries = ledger.entries().expect("was sound a moment ago");
                assert_eq!(entries, sound, "byte {place}");
            }
            Err(_) => refused += 1,
        }
        assert!(fs::read(&home.ledger).expect("there") == damaged, "byte {place} was flipped and the file written");
    }
    assert!(refused > 50, "{refused} of {}: headers and structure are checked", places.len());
}

/// Whoever may write the file can take the triggers away; the chain shows what was changed all the same.
#[test]
fn every_later_edit_is_noticed() {
    let home = Home::new();
    let mut ledger = LedgerFile::create(&home.ledger, &add_remove(), Some(budget(3.0))).expect("a new name");
    for purpose in ["first", "second", "third"] {
        ledger.charge(&tick(purpose)).expect("affordable");
    }
    ledger.keep_answer(&"a".repeat(64), 2, "an answer").expect("sound");
    let seals: Vec<String> = ledger.entries().expect("sound").into_iter().map(|entry| entry.seal).collect();
    let last = ledger.last_entry().expect("just charged");
    assert_eq!((last.id.as_str(), last.entry, last.seal.as_deref()), (ledger.id(), 3, Some(seals[2].as_str())));
    drop(ledger);
    let whole = fs::read(&home.ledger).expect("there");
    for edit in [
        "UPDATE entry SET time = '2020-01-01T00:00:00Z' WHERE id = 2",
        "UPDATE entry SET request = replace(request, 'second', 'sekond')",
        "UPDATE charge SET mu_squared = '1' WHERE entry = 1",
        "DELETE FROM charge WHERE entry = 3; DELETE FROM entry WHERE id = 3; UPDATE sqlite_sequence SET seq = 2; \
         UPDATE entry SET seal = (SELECT seal FROM entry WHERE id = 1) WHERE id = 2",
        "UPDATE budget SET epsilon = 30",
        "UPDATE ledger SET id = '00000000000000000000000000000000'",
        "UPDATE answer SET release = 'another answer'",
    ] {
        fs::write(&home.ledger, &whole).expect("writable");
        let connection = Connection::open(&home.ledger).expect("a database");
        let kept: Vec<(String, String)> = {
            let mut triggers =
                connection.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").expect("SQL");
            let rows = triggers.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("rows");
            rows.collect::<Result<_, _>>().expect("text")
        };
        kept.iter().for_each(|(name, _)| connection.execute_batch(&format!("DROP TRIGGER {name}")).expect("SQL"));
        connection.execute_batch(edit).expect("legal SQL");
        kept.iter().for_each(|(_, sql)| connection.execute_batch(sql).expect("SQL"));
        drop(connection);
        let error = LedgerFile::open(&home.ledger).expect_err(edit);
        assert!(error.to_string().contains("was changed after it was written"), "{edit}: {error}");
    }
    fs::write(&home.ledger, &whole).expect("writable");
    LedgerFile::open(&home.ledger).expect("as it was");
}

#[test]
fn a_ledger_of_before_the_seals_is_named_and_left_alone() {
    let home = Home::with_entries(2);
    let other = Connection::open(&home.ledger).expect("a database");
    other.pragma_update(None, "user_version", 1).expect("a setting");
    drop(other);
    let error = LedgerFile::open(&home.ledger).expect_err("an old format");
    assert!(matches!(error, LedgerFileError::Older { found: 1, .. }), "{error}");
}

#[test]
fn the_journal_of_a_lost_ledger_is_not_played_into_a_new_one() {
    let home = Home::new();
    fs::write(home.path("ledger-journal"), b"left over").expect("a new name");
    for error in [
        LedgerFile::create(&home.ledger, &add_remove(), None).expect_err("a journal is in the way"),
        LedgerFile::open_or_create(&home.ledger, &add_remove()).expect_err("a journal is in the way"),
    ] {
        assert!(matches!(error, LedgerFileError::StrayJournal { .. }), "{error}");
    }
    assert_eq!(home.names(), ["ledger-journal"]);
}

#[cfg(unix)]
#[test]
fn a_ledger_moved_while_open_is_not_charged() {
    let home = Home::with_entries(1);
    let mut ledger = LedgerFile::open(&home.ledger).expect("sound");
    fs::rename(&home.ledger, home.path("elsewhere")).expect("allowed");
    let error = ledger.charge(&tick("x")).expect_err("the name is gone");
    assert!(error.to_string().contains("moved, deleted or replaced"), "{error}");
    fs::copy(home.path("elsewhere"), &home.ledger).expect("allowed");
    let error = ledger.charge(&tick("x")).expect_err("the name is another file's");
    assert!(error.to_string().contains("moved, deleted or replaced"), "{error}");
    assert_eq!(LedgerFile::open(&home.path("elsewhere")).expect("sound").entries().expect("sound").len(), 1);
}

/// The system's administrator may write everywhere, so the child runs as another user where this process is that.
#[cfg(unix)]
#[test]
fn a_ledger_that_may_not_be_written_is_shown_and_not_charged() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let home = Home::with_entries(2);
    let administrator = fs::metadata(home.folder.path()).expect("there").uid() == 0;
    let allow = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("our own");
    let program = home.folder.path().join("program");
    // Another process copies: a child that another test starts meanwhile would hold a copy of ours open for writing until it runs, and what is
    // open for writing is not run.
    let copied = Command::new("cp").arg(std::env::current_exe().expect("running")).arg(&program).status();
    assert!(copied.expect("cp is everywhere").success());
    allow(&program, 0o755);
    // File and folder: readable only; folder not writable, so that no journal can be made; unreadable.
    for (file, folder, expected) in [
        (0o444, 0o755, ["entries 2", "charge refused NotPermitted"]),
        (0o666, 0o555, ["entries 2", "charge refused NotPermitted"]),
        (0o000, 0o755, ["open refused NotPermitted", "end"]),
    ] {
        allow(&home.ledger, file);
        allow(home.folder.path(), folder);
        let before = fs::read(&home.ledger).ok();
        let mut command = child_command(&program, "show-and-charge", &home.ledger);
        if administrator {
            std::os::unix::process::CommandExt::uid(&mut command, 65_534);
            std::os::unix::process::CommandExt::gid(&mut command, 65_534);
        }
        let mut child = Running::start(command);
        assert_eq!([child.line(), child.line()].map(Option::unwrap_or_default), expected, "{file:o} in {folder:o}");
        child.wait();
        assert_eq!(fs::read(&home.ledger).ok(), before);
        allow(home.folder.path(), 0o755);
        assert_eq!(home.names(), ["ledger", "program"]);
    }
}

/// A limit on the size of files stands for a full disk at every point of a charge: journal, table, growth of the file.
#[cfg(unix)]
#[test]
fn a_write_that_fails_half_way_spends_nothing_that_was_reported() {
    let (mut failed, mut kept) = (0, 0);
    for blocks in (1..=24).map(|step| step * 8) {
        let home = Home::with_entries(3);
        // In blocks of 512 bytes; the signal is ignored, so that the write fails instead of ending the process.
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
        let program = std::env::current_exe().expect("running");
        let mut command = Command::new("sh");
        command.arg("-c").arg(script).arg(&program).args(child_arguments());
        set_role(&mut command, "charge-until-error", &home.ledger);
        let mut child = Running::start(command);
        let mut reported = Vec::new();
        let mut ended = false;
        while let Some(line) = child.line() {
            match line.strip_prefix("charged ") {
                Some(id) => reported.push(id.parse::<u64>().expect("a number")),
                None => ended |= line.starts_with("error"),
            }
        }
        child.wait();
        assert!(ended || reported.len() == 100, "{blocks}: the child says how it ended");
        failed += usize::from(ended);
        kept += reported.len();
        let entries = LedgerFile::open(&home.ledger).expect("sound").entries().expect("sound");
        assert!(reported.iter().all(|id| entries.iter().any(|entry| entry.id == *id)), "{blocks}");
    }
    assert!(failed >= 5 && kept >= 5, "{failed} failures after {kept} charges: the limits were met on the way");
}

// Several at once.

#[test]
fn threads_never_spend_more_than_the_budget() {
    let home = Home::new();
    drop(LedgerFile::create(&home.ledger, &add_remove(), Some(budget(1.0))).expect("a new name"));
    let bought: u64 = std::thread::scope(|scope| {
        let spend = || spend_all(&mut LedgerFile::open(&home.ledger).expect("sound"), "thread");
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(spend)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    });
    home.assert_spent_to_the_last_step(bought);
}

#[test]
fn processes_never_spend_more_than_the_budget() {
    let home = Home::new();
    drop(LedgerFile::create(&home.ledger, &add_remove(), Some(budget(1.0))).expect("a new name"));
    let mut children: Vec<Running> = (0..16).map(|_| spawn("charge-until-refused", &home.ledger)).collect();
    let mut bought = 0;
    for child in &mut children {
        let lines: Vec<String> = std::iter::from_fn(|| child.line()).collect();
        assert_eq!(lines.last().map(String::as_str), Some("refused"), "{lines:?}");
        bought += lines.iter().filter(|line| line.starts_with("charged ")).count() as u64;
        child.wait();
    }
    home.assert_spent_to_the_last_step(bought);
}

#[test]
fn processes_that_make_one_ledger_share_it() {
    for _ in 0..5 {
        let home = Home::new();
        let mut children: Vec<Running> = (0..6).map(|_| spawn("make-and-charge", &home.ledger)).collect();
        let ids: BTreeSet<String> = children.iter_mut().map(|child| child.line().expect("an id")).collect();
        children.iter_mut().for_each(Running::wait);
        assert_eq!(ids.len(), 1, "{ids:?}");
        let entries = LedgerFile::open(&home.ledger).expect("sound").entries().expect("sound");
        assert_eq!(entries.len(), 6, "nobody charged a ledger that another one replaced");
        assert_eq!(home.names(), ["ledger"]);
    }
}

// A kill at any moment.

/// The child says `charged` only after `charge` has returned, as a release would be seen only then. Whenever it is
/// killed, every charge it spoke of is in the file.
#[test]
fn a_kill_at_any_moment_never_loses_a_charge_that_was_reported() {
    let mut random = FixedSequence::new(20_261_121);
    let (mut unreported, mut journals) = (0, 0);
    for kill in 0..60 {
        // Every other ledger is killed twice, so that recovery is killed as well.
        let home = Home::new();
        let mut reported = Vec::new();
        for round in 0..2 {
            let mut child = spawn("charge-for-ever", &home.ledger);
            for _ in 0..kill % 4 {
                reported.push(child.line().expect("it charges for ever"));
            }
            // From the start of the process or from a report, swept over a few charges and jittered within each.
            std::thread::sleep(Duration::from_micros(kill * 250 + random.next_below(2_000)));
            child.kill();
            reported.extend(std::iter::from_fn(|| child.line()));
            journals += usize::from(home.path("ledger-journal").exists());
            if round == 1 || kill % 2 == 0 {
                break;
            }
        }
        if !home.ledger.exists() {
            assert!(reported.is_empty());
            continue;
        }
        let ledger = LedgerFile::open(&home.ledger).expect("a kill leaves a sound file");
        let entries = ledger.entries().expect("sound");
        let kept: BTreeSet<String> =
            entries.iter().map(|entry| format!("charged {} {}", entry.id, entry.request.purpose)).collect();
        for line in &reported {
            assert!(kept.contains(line), "kill {kill}: {line:?} was released and is not in the ledger");
        }
        let price = tick("x").price_up(&row(Adjacency::AddRemove)).expect("finite");
        let spent = ledger.account().expect("sound").spent[&row(Adjacency::AddRemove)];
        assert_eq!(Some(spent), price.checked_mul(u32::try_from(entries.len()).expect("few")));
        // Each round may leave one charge that was written and not yet reported.
        assert!(entries.len() <= reported.len() + 2, "kill {kill}: {} entries", entries.len());
        unreported += entries.len() - reported.len();
    }
    assert!(unreported + journals > 0, "no kill fell between the first write and the report: the sweep shows nothing");
}

/// Some of 16 processes are killed: the others play back their journals and go on.
#[test]
fn the_others_go_on_when_some_are_killed() {
    let mut random = FixedSequence::new(3);
    for killed in [1, 2, 5, 11] {
        let home = Home::new();
        drop(LedgerFile::create(&home.ledger, &add_remove(), Some(budget(1.0))).expect("a new name"));
        let mut children: Vec<Running> = (0..16).map(|_| spawn("charge-until-refused", &home.ledger)).collect();
        let mut reported: Vec<String> = Vec::from_iter(children[0].line());
        for child in &mut children[..killed] {
            std::thread::sleep(Duration::from_micros(random.next_below(4_000)));
            child.kill();
        }
        for child in &mut children {
            reported.extend(std::iter::from_fn(|| child.line()));
            child.wait();
        }
        reported.retain(|line| line != "refused");
        let entries = LedgerFile::open(&home.ledger).expect("sound").entries().expect("sound");
        let kept: BTreeSet<String> = entries.iter().map(|entry| format!("charged {}", entry.id)).collect();
        assert!(reported.iter().all(|line| kept.contains(line)), "{killed} killed: what was reported is kept");
        assert_eq!(BTreeSet::from_iter(&reported).len(), reported.len(), "{killed} killed: nothing was sold twice");
        assert_eq!(entries.len() as u64, ticks_in(1.0), "the survivors spend all of it and no step more");
        assert!(entries.len() - reported.len() <= killed, "{killed} killed: {} reported", reported.len());
    }
}

#[test]
fn a_charge_that_was_half_written_is_undone() {
    let home = Home::with_entries(5);
    let before = fs::read(&home.ledger).expect("there");
    let mut child = spawn("leave-journal", &home.ledger);
    assert_eq!(child.line().as_deref(), Some("ready"));
    child.kill();
    assert!(home.path("ledger-journal").metadata().expect("a hot journal").len() > 512);
    assert!(fs::read(&home.ledger).expect("there") != before, "the file was changed and not committed");
    let ledger = LedgerFile::open(&home.ledger).expect("played back");
    assert_eq!(ledger.entries().expect("sound").len(), 5);
    drop(ledger);
    assert_eq!(home.names(), ["ledger"]);
    assert!(fs::read(&home.ledger).expect("there") == before);
}

/// The power may go while the first page is written, which says what the file is: its journal says it too.
#[test]
fn a_ledger_whose_first_page_was_torn_is_brought_back() {
    for noise in [0x00, 0x17, 0xFF] {
        let home = Home::with_entries(5);
        let before = fs::read(&home.ledger).expect("there");
        let mut child = spawn("leave-journal", &home.ledger);
        assert_eq!(child.line().as_deref(), Some("ready"));
        child.kill();
        let mut torn = fs::read(&home.ledger).expect("there");
        torn[..512].fill(noise);
        fs::write(&home.ledger, &torn).expect("writable");
        let ledger = LedgerFile::open(&home.ledger).expect("played back");
        assert_eq!(ledger.entries().expect("sound").len(), 5);
        drop(ledger);
        assert!(fs::read(&home.ledger).expect("there") == before);
        // The same file without its journal is no ledger any more.
        fs::write(&home.ledger, &torn).expect("writable");
        let error = LedgerFile::open(&home.ledger).expect_err("nothing undoes it");
        assert!(matches!(error, LedgerFileError::NotALedger { .. }), "{error}");
    }
}

/// Runs in another process, told by the environment what to be; by itself it has nothing to do.
#[test]
#[ignore = "the other tests start it as their child process"]
fn child_process() {
    let (Ok(role), Some(path)) = (std::env::var(ROLE), std::env::var_os(LEDGER)) else { return };
    let path = PathBuf::from(path);
    match role.as_str() {
        "charge-for-ever" => {
            let mut ledger = LedgerFile::open_or_create(&path, &add_remove()).expect("sound");
            for number in 0_u64.. {
                let purpose = format!("{}-{number}", std::process::id());
                ledger.charge(&tick(&purpose)).expect("no limit");
                say(&format!("charged {} {purpose}", ledger.last_entry().expect("just charged").entry));
            }
        }
        "charge-until-refused" => {
            let mut ledger = LedgerFile::open(&path).expect("sound");
            while charge_if_allowed(&mut ledger, "child") {
                say(&format!("charged {}", ledger.last_entry().expect("just charged").entry));
            }
            say("refused");
        }
        "charge-until-error" => {
            let mut ledger = LedgerFile::open(&path).expect("sound");
            for _ in 0..100 {
                match ledger.charge(&tick(&"long ".repeat(200))) {
                    Ok(()) => say(&format!("charged {}", ledger.last_entry().expect("just charged").entry)),
                    Err(error) => return say(&format!("error {error}")),
                }
            }
        }
        "make-and-charge" => {
            let mut ledger = LedgerFile::open_or_create(&path, &add_remove()).expect("made by one of us");
            ledger.charge(&tick("shared")).expect("no limit");
            say(ledger.id());
        }
        "show-and-charge" => match LedgerFile::open(&path) {
            Ok(mut ledger) => {
                say(&format!("entries {}", ledger.entries().expect("readable").len()));
                match ledger.charge(&tick("x")) {
                    Err(LedgerError::Store(error)) => say(&format!("charge refused {}", variant(&*error))),
                    charged => say(&format!("{charged:?}")),
                }
            }
            Err(error) => {
                say(&format!("open refused {}", variant(&error)));
                say("end");
            }
        },
        "leave-journal" => leave_journal(
            &path,
            "INSERT INTO entry (nonce, time, request, seal) VALUES (hex(zeroblob(16)), '', hex(zeroblob(3000)), hex(zeroblob(32)))",
        ),
        "leave-foreign-journal" => {
            let connection = Connection::open(&path).expect("a new name");
            connection.execute_batch("CREATE TABLE thing (content BLOB)").expect("legal SQL");
            drop(connection);
            leave_journal(&path, "INSERT INTO thing VALUES (zeroblob(3000))");
        }
        unknown => panic!("no such role: {unknown}"),
    }
}

/// Changes the file inside a transaction, with a cache too small to hold it back, and waits for the end.
fn leave_journal(path: &Path, insert: &str) {
    let connection = Connection::open(path).expect("a database");
    connection.execute_batch("PRAGMA cache_size = 2; PRAGMA cache_spill = 1; BEGIN IMMEDIATE").expect("legal SQL");
    for _ in 0..100 {
        connection.execute(insert, []).expect("legal SQL");
    }
    say("ready");
    std::thread::sleep(Duration::from_secs(60));
}

/// The name of an error's variant.
fn variant(error: &(dyn std::error::Error + Send + Sync + 'static)) -> String {
    format!("{error:?}").split([' ', '(']).next().unwrap_or_default().to_owned()
}

/// Past the test harness, which would hold lines back, and in one write.
fn say(line: &str) {
    let mut output = std::io::stdout().lock();
    output.write_all(format!("\n{MARK}{line}\n").as_bytes()).expect("the parent listens");
    output.flush().expect("the parent listens");
}

const ROLE: &str = "RETICENT_TEST_LEDGER_ROLE";
const LEDGER: &str = "RETICENT_TEST_LEDGER_PATH";
const MARK: &str = "child: ";

/// A child process and what it says.
struct Running {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Running {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().expect("this binary runs");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        Self { child, output }
    }

    /// The next whole line that it said; `None` at the end. A line cut off by a kill was not said.
    fn line(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            let length = self.output.read_line(&mut line).expect("text");
            if length == 0 {
                return None;
            }
            if let Some(said) = line.strip_prefix(MARK).and_then(|line| line.strip_suffix('\n')) {
                return Some(said.to_owned());
            }
        }
    }

    fn kill(&mut self) {
        self.child.kill().expect("a child can be killed");
        self.wait();
    }

    fn wait(&mut self) {
        self.child.wait().expect("a child ends");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Only matters when a test has failed; an ended child cannot be killed again.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(role: &str, ledger: &Path) -> Running {
    Running::start(child_command(&std::env::current_exe().expect("running"), role, ledger))
}

fn child_command(program: &Path, role: &str, ledger: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(child_arguments());
    set_role(&mut command, role, ledger);
    command
}

fn child_arguments() -> [String; 3] {
    let module = module_path!().split_once("::").map_or("", |(_, module)| module);
    [format!("{module}::child_process"), "--exact".to_owned(), "--ignored".to_owned()]
}

fn set_role(command: &mut Command, role: &str, ledger: &Path) {
    command.env(ROLE, role).env(LEDGER, ledger);
}

/// A folder with a place for a ledger.
struct Home {
    folder: TempDir,
    ledger: PathBuf,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("room for a folder");
        let ledger = folder.path().join("ledger");
        Self { folder, ledger }
    }

    fn with_entries(count: usize) -> Self {
        let home = Self::new();
        let mut ledger = LedgerFile::create(&home.ledger, &add_remove(), None).expect("a new name");
        for number in 0..count {
            ledger.charge(&tick(&format!("entry {number} {}", "and so on ".repeat(30)))).expect("no limit");
        }
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn names(&self) -> Vec<String> {
        let names = fs::read_dir(self.folder.path()).expect("there");
        let mut names: Vec<String> =
            names.map(|entry| entry.expect("there").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// As `docs/reference/ledger.md` describes the format, but for the seal: good for as long as the ledger stays open.
    fn insert_entry(&self, request: &Request, charged: &BTreeMap<Relation, MuSquared>) {
        let mut connection = Connection::open(&self.ledger).expect("a database");
        let transaction = connection.transaction().expect("free");
        let request = serde_json::to_string(request).expect("plain data");
        transaction
            .execute(
                "INSERT INTO entry (nonce, time, request, seal) \
                 VALUES (hex(zeroblob(16)), '2026-01-01T00:00:00Z', ?1, hex(zeroblob(32)))",
                [request],
            )
            .expect("an entry");
        for (relation, price) in charged {
            let texts = [relation.to_string(), price.steps().to_string()];
            transaction.execute("INSERT INTO charge VALUES (last_insert_rowid(), ?1, ?2)", texts).expect("a charge");
        }
        transaction.commit().expect("free");
    }

    fn assert_spent_to_the_last_step(&self, bought: u64) {
        assert_eq!(bought, ticks_in(1.0));
        let ledger = LedgerFile::open(&self.ledger).expect("sound");
        assert_eq!(ledger.entries().expect("sound").len() as u64, bought);
        let spent = ledger.account().expect("sound").spent[&row(Adjacency::AddRemove)];
        assert!(spent <= budget(1.0).mu_squared_down());
    }
}

/// Charges until the ledger refuses; how often it did not.
fn spend_all(ledger: &mut LedgerFile, purpose: &str) -> u64 {
    (0..).take_while(|_: &u64| charge_if_allowed(ledger, purpose)).count() as u64
}

fn charge_if_allowed(ledger: &mut LedgerFile, purpose: &str) -> bool {
    match ledger.charge(&tick(purpose)) {
        Ok(()) => true,
        Err(LedgerError::Refused(Refusal::Exhausted(_))) => false,
        Err(error) => panic!("{error}"),
    }
}

/// How many [`tick`]s a budget pays for.
fn ticks_in(epsilon: f64) -> u64 {
    let price = tick("x").price_up(&row(Adjacency::AddRemove)).expect("finite");
    let count = budget(epsilon).mu_squared_down().steps() / price.steps();
    assert!((20..1000).contains(&count), "{count}: enough to race for and soon spent");
    count as u64
}

/// A small request.
fn tick(purpose: &str) -> Request {
    count_request(purpose, 30 << 20)
}

fn count_request(purpose: &str, noise_scale: u64) -> Request {
    request(purpose, Map::ClassCount { classes: 2 }, noise_scale)
}

fn gradient_request(purpose: &str, noise_scale: u64) -> Request {
    request(purpose, Map::Gradient { loss: Loss::Logistic, columns: 14 }, noise_scale)
}

fn request(purpose: &str, map: Map, noise_scale: u64) -> Request {
    let shape = QueryShape::new(map, PrivacyUnit::Row, 1 << 20).expect("small");
    let noise_scale = NoiseScale::new(noise_scale).expect("in range");
    let release = PlannedRelease {
        purpose: "one answer".to_owned(),
        shape,
        noise_scale,
        noise: NoiseDistribution::RoundedGaussian,
        times: 1,
    };
    let (data, schema) = ("table.csv".to_owned(), "0123456789abcdef".to_owned());
    Request { purpose: purpose.to_owned(), data, schema, labels: None, table: None, releases: vec![release] }
}

fn budget(epsilon: f64) -> Budget {
    Budget { epsilon: Epsilon::new(epsilon).expect("above 0"), delta: Delta::new(1e-5).expect("between 0 and 1") }
}

fn add_remove() -> BTreeSet<Relation> {
    BTreeSet::from([row(Adjacency::AddRemove)])
}

fn row(adjacency: Adjacency) -> Relation {
    Relation { unit: PrivacyUnit::Row, adjacency }
}
