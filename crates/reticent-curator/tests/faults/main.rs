//! The ledger under fire: at every call that its process makes, the process, the disk or the machine may fail.
//!
//! ```text
//!   seed ─▶ life (what a process does) ─▶ tracee (each of its system calls) ─▶ machine (one fault) ─▶ disk (what is left)
//!                                           └─ what it says ─▶ known (what returned) ─▶ the file must hold all of it
//! ```
//! `RETICENT_FAULT_RUNS` sets the number of random runs, and prints figures; from 1000 on every call is struck in every way.
//! `RETICENT_FAULT_SEED` repeats the run that a failure names. Linux on x86-64 only: the program under test is stopped by the kernel, so that it needs no hook.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod disk;
mod fault;
mod known;
mod life;
mod machine;
mod random;
mod run;
mod tracee;

use std::path::PathBuf;

use disk::{Lie, Loss};
use fault::{Fault, Kind, Plan, When};
use life::Script;
use reticent_curator::ledger_file::LedgerFile;
use run::{Figures, Run};

#[test]
fn whatever_fails_no_charge_that_returned_is_lost_and_no_budget_is_exceeded() {
    let mut figures = Figures::default();
    let seeds = match number(SEED) {
        Some(seed) => seed..seed + 1,
        None => 0..number(RUNS).unwrap_or(120),
    };
    let runs = seeds.end - seeds.start;
    for seed in seeds {
        if let Err(finding) = Run::of_seed(seed, &mut figures) {
            panic!("{finding}; again with {SEED}={seed}");
        }
    }
    print("random runs", &figures);
    if runs >= 100 {
        assert!(figures.struck() as u64 > runs, "{figures}");
        assert!(figures.charges().into_iter().all(|count| count > 20), "{figures}");
    }
}

#[test]
fn every_call_of_a_life_may_fail_in_every_way() {
    sweep("every call of a life in every way", None, 12);
}

/// A process that was killed while it made the file longer leaves work to the next, which may fail in turn.
#[test]
fn every_call_of_a_recovery_may_fail_in_every_way() {
    let killed_at = |at| Plan { fault: Fault::Kill(When::After), only: Some(Kind::Write), at };
    let undoes = |plan: &Plan| {
        let calls = fixed_run(Some(*plan), &[], &mut Figures::default()).expect("nothing else goes wrong");
        calls.contains(&Kind::Resize)
    };
    let killed = (0..).map(killed_at).find(undoes).expect("a charge makes the file longer");
    sweep("every call of a recovery in every way", Some(killed), 30);
}

/// Where the folder cannot be opened it cannot be synced, and SQLite goes on as if it had been: then the journal may have no
/// name that lasts, and nothing that needs it may be written.
#[test]
fn a_journal_without_a_lasting_name_is_not_relied_upon() {
    let mut figures = Figures::default();
    let calls = fixed_run(None, &[], &mut figures).expect("nothing goes wrong");
    let places = |calls: &[Kind], kind: Kind| -> Vec<usize> {
        calls.iter().enumerate().filter(|(_, found)| **found == kind).map(|(place, _)| place).collect()
    };
    for (at, open) in places(&calls, Kind::Open).into_iter().enumerate() {
        let shut = Plan { fault: Fault::NoDescriptors, only: None, at };
        let calls = fixed_run(None, &[shut], &mut figures).expect("one fault is survived");
        let syncs = places(&calls, Kind::Sync).into_iter().enumerate();
        for (at, _) in syncs.filter(|(_, sync)| *sync > open) {
            let plans = [shut, Plan { fault: Fault::PowerLoss(When::Before, Loss::Some), only: Some(Kind::Sync), at }];
            if let Err(finding) = fixed_run(None, &plans, &mut figures) {
                panic!("{plans:?}: {finding}");
            }
        }
    }
    print("no descriptors, then no power", &figures);
}

/// Goes through the calls of a fixed life, after an earlier one that ended so, and lets each of them fail in each way. Then the
/// power goes, with all that was not synced. In a short run, one in `stride` of what is not an error of a name or a sync.
fn sweep(what: &str, before: Option<Plan>, stride: usize) {
    let mut figures = Figures::default();
    let calls = fixed_run(before, &[], &mut figures).expect("nothing goes wrong");
    let mut findings = Vec::new();
    let mut turn = 0;
    for fault in Fault::ALL {
        for (at, kind) in calls.iter().filter(|kind| fault.strikes(**kind)).enumerate() {
            turn += 1;
            let of_name_or_sync = match kind {
                Kind::Open | Kind::Sync | Kind::Remove | Kind::Rename | Kind::Resize => fault.errno() != 0,
                Kind::Read | Kind::Write | Kind::Lock | Kind::Look | Kind::Close => false,
            };
            if of_name_or_sync || turn % stride == 0 || number(RUNS).is_some_and(|runs| runs >= LONG) {
                let plan = Plan { fault, only: None, at };
                let verdict = fixed_run(before, &[plan], &mut figures);
                findings.extend(verdict.err().map(|finding| format!("{plan:?}: {finding}")));
            }
        }
    }
    print(what, &figures);
    assert!(findings.is_empty(), "{findings:#?}");
    assert!(figures.struck() > 100, "{figures}");
}

/// One ledger in the hands of one process, perhaps after another that came to an end; then the power goes. Returns the kinds
/// of the last one's calls.
fn fixed_run(before: Option<Plan>, plans: &[Plan], figures: &mut Figures) -> Result<Vec<Kind>, String> {
    let seed = plans.iter().fold(1, |seed, plan| seed * 1000 + plan.at as u64);
    let mut run = Run::new(seed, Script::Fixed { life: 0 });
    figures.count_run();
    if let Some(before) = before {
        run.live(&[before], Script::Fixed { life: 0 }, figures)?;
    }
    let ended = run.live(plans, Script::Fixed { life: before.is_some().into() }, figures)?;
    assert_eq!(ended.struck.is_empty(), plans.is_empty(), "{plans:?}: every call is met");
    run.lose_power(Loss::All, figures);
    run.finish(figures)?;
    Ok(ended.kinds)
}

/// A disk that says it has synced and has not: what it then loses must be noticed, or these tests would notice nothing.
#[test]
fn a_disk_that_lies_is_found_out() {
    let lost = "a charge that returned is not in the ledger";
    for (lie, loss, expected) in [
        (Lie::Content, Loss::All, lost),
        (Lie::Content, Loss::Some, "it does not open"),
        (Lie::Names, Loss::Some, lost),
    ] {
        let findings: Vec<String> = (0..20).filter_map(|seed| run_on_a_liar(seed, lie, loss).err()).collect();
        let found = findings.iter().filter(|finding| finding.contains(expected)).count();
        assert!(found >= 3, "{lie:?}, {loss:?}: {findings:#?}");
    }
}

fn run_on_a_liar(seed: u64, lie: Lie, loss: Loss) -> Result<(), String> {
    let mut figures = Figures::default();
    let mut run = Run::new(seed, Script::Fixed { life: 0 });
    run.live(&[], Script::Fixed { life: 0 }, &mut figures)?;
    run.disk.begin_to_lie(lie);
    run.live(&[], Script::Seeded { seed, life: 1 }, &mut figures)?;
    run.lose_power(loss, &mut figures);
    run.finish(&mut figures)
}

#[test]
fn no_rule_depends_on_the_clock() {
    let mut backwards = 0;
    for seed in 0..10 {
        let mut run = Run::new(seed, Script::Fixed { life: 0 });
        run.wild_clock = true;
        run.live(&[], Script::Fixed { life: 0 }, &mut Figures::default()).expect("nothing goes wrong");
        let entries = LedgerFile::open(&run.ledger()).and_then(|ledger| ledger.entries()).expect("sound");
        backwards += entries.windows(2).filter(|pair| pair[1].time < pair[0].time).count();
        run.finish(&mut Figures::default()).expect("times are for people");
    }
    assert!(backwards > 3, "{backwards} entries are older than the one before: the clock was wild");
}

/// Runs in another process, told by the environment what to be; by itself it has nothing to do.
#[test]
#[ignore = "the other tests start it as their child process"]
fn child_process() {
    let (Some(path), Ok(word)) = (std::env::var_os(LEDGER), std::env::var(SCRIPT)) else { return };
    life::live(&PathBuf::from(path), Script::from_word(&word).expect("the parent's word"));
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// In a long run alone.
fn print(what: &str, figures: &Figures) {
    if std::env::var_os(RUNS).is_some() {
        use std::io::Write;
        // Past the test harness, which would hold it back.
        std::io::stderr().write_all(format!("{what}: {figures}").as_bytes()).expect("somebody reads");
    }
}

const RUNS: &str = "RETICENT_FAULT_RUNS";
/// From so many random runs on, the runs that are not random are all made, too.
const LONG: u64 = 1000;
const SEED: &str = "RETICENT_FAULT_SEED";
const SCRIPT: &str = "RETICENT_TEST_FAULT_SCRIPT";
const LEDGER: &str = "RETICENT_TEST_FAULT_LEDGER";

/// How this program is told to be [`child_process`], in its first thread.
const CHILD: [&str; 5] = ["child_process", "--exact", "--ignored", "--nocapture", "--test-threads=1"];
