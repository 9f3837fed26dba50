//! One run: a ledger, one or more processes that use it one after another, a fault in each, and the verdict.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use reticent_core::ledger::{LedgerError, LedgerStore, Refusal};
use tempfile::TempDir;

use crate::disk::{Disk, Loss};
use crate::fault::{Fault, Kind, Plan};
use crate::known::Known;
use crate::life::{self, Script, Setting};
use crate::machine::Machine;
use crate::random::Random;
use crate::tracee::Tracee;

/// A ledger and its processes.
pub(crate) struct Run {
    home: TempDir,
    pub(crate) disk: Disk,
    setting: Setting,
    pub(crate) known: Known,
    random: Random,
    /// The clock of the processes shows anything.
    pub(crate) wild_clock: bool,
}

/// What came of a life.
pub(crate) struct Ended {
    /// The kind of each call that concerned the ledger.
    pub(crate) kinds: Vec<Kind>,
    /// The faults that struck, and what call each struck first.
    pub(crate) struck: Vec<(Fault, Kind)>,
}

/// Sums over many runs.
#[derive(Default)]
pub(crate) struct Figures {
    runs: usize,
    lives: usize,
    calls: BTreeMap<Kind, usize>,
    released: usize,
    refused: usize,
    failed: usize,
    power_losses: usize,
    struck: BTreeMap<(String, Kind), usize>,
}

impl Run {
    /// A new, empty place.
    pub(crate) fn new(seed: u64, script: Script) -> Self {
        let setting = script.setting();
        let home = in_memory();
        let folder = home.path().join("ledgers");
        fs::create_dir(&folder).expect("room for a folder");
        let known = Known::new(setting.budget);
        let disk = Disk::new(&folder);
        Self { home, disk, setting, known, random: Random::new(seed), wild_clock: false }
    }

    /// Everything as the seed says: up to three lives, with up to two faults in each, and at the end perhaps no power.
    pub(crate) fn of_seed(seed: u64, figures: &mut Figures) -> Result<(), String> {
        let mut run = Self::new(seed, Script::Seeded { seed, life: 0 });
        run.wild_clock = run.random.one_in(8);
        figures.runs += 1;
        for life in 0..1 + run.random.below(3) as u64 {
            let faults = run.random.pick(&[0, 1, 1, 1, 1, 2, 2]);
            let plans: Vec<Plan> = (0..faults).map(|_| Plan::any(&mut run.random)).collect();
            run.live(&plans, Script::Seeded { seed, life }, figures)?;
        }
        if run.random.one_in(2) {
            let loss = run.random.pick(&[Loss::All, Loss::Names, Loss::Some]);
            run.lose_power(loss, figures);
        }
        run.finish(figures)
    }

    /// One life, with a fault or without, and what is then true of the file.
    pub(crate) fn live(&mut self, plans: &[Plan], script: Script, figures: &mut Figures) -> Result<Ended, String> {
        let program = std::env::current_exe().expect("running");
        let variables =
            [(crate::SCRIPT, OsString::from(script.word())), (crate::LEDGER, self.ledger().into_os_string())];
        let clock = self.wild_clock.then(|| Random::new(self.random.next()));
        let tracee = Tracee::start(&program, &crate::CHILD, &variables, self.wild_clock);
        let noise = Random::new(self.random.next());
        let mut machine = Machine::new(&mut self.disk, plans, clock, noise);
        let said = tracee.run(&mut machine);
        let ended = Ended { kinds: std::mem::take(&mut machine.kinds), struck: std::mem::take(&mut machine.struck) };
        figures.lives += 1;
        for kind in &ended.kinds {
            *figures.calls.entry(*kind).or_default() += 1;
        }
        let mut lost = None;
        for (fault, kind) in &ended.struck {
            *figures.struck.entry((name(*fault), *kind)).or_default() += 1;
            if let Fault::PowerLoss(_, loss) = fault {
                lost = Some(*loss);
            }
        }
        let account = match lost {
            Some(loss) => {
                self.lose_power(loss, figures);
                Ok(())
            }
            None => self.disk.check(),
        };
        let verdict = account
            .and_then(|()| self.known.learn(&script.actions(), &life::heard(&said)))
            .and_then(|()| self.check_copy());
        verdict
            .map_err(|finding| format!("{finding}, after {script:?} where {:?} of {plans:?} struck", ended.struck))?;
        Ok(ended)
    }

    /// The power goes while nobody is at work.
    pub(crate) fn lose_power(&mut self, loss: Loss, figures: &mut Figures) {
        figures.power_losses += 1;
        self.disk.lose_power(loss, &mut self.random);
    }

    /// Nothing goes wrong any more: the ledger is there, holds all that is known, and sells what is left and no more.
    pub(crate) fn finish(&mut self, figures: &mut Figures) -> Result<(), String> {
        figures.released += self.known.released();
        figures.refused += self.known.refused;
        figures.failed += self.known.failed;
        let path = self.ledger();
        self.known.check(&path)?;
        let (_, mut ledger) = life::make_or_open(&path, &self.setting).map_err(|error| error.to_string())?;
        let account = ledger.account().map_err(|error| error.to_string())?;
        let limit = match account.budget {
            Some(limit) => limit,
            None => {
                let limit = life::budget(2.0);
                ledger.set_budget(limit).map_err(|error| error.to_string())?;
                self.known.limit(limit, ledger.entries().map_err(|error| error.to_string())?.len());
                limit
            }
        };
        for number in 0..1000 {
            let mut request = life::last_request();
            request.purpose = format!("last {number}");
            match ledger.charge(&request) {
                Ok(()) => self.known.add(&ledger, request.purpose),
                Err(LedgerError::Refused(Refusal::Exhausted(_))) => break,
                Err(error) => return Err(format!("it cannot be charged any more: {error}")),
            }
        }
        let account = ledger.account().map_err(|error| error.to_string())?;
        let full = account.spent.iter().any(|(relation, spent)| {
            let price = life::last_request().price_up(relation).expect("it has a price");
            spent.checked_add(price).is_none_or(|total| total > limit.mu_squared_down())
        });
        drop(ledger);
        if !full {
            return Err("it refuses what fits".to_owned());
        }
        self.known.check(&path)
    }

    /// On a copy, because opening undoes what was half written.
    fn check_copy(&self) -> Result<(), String> {
        let copy = self.home.path().join("copy");
        fs::create_dir(&copy).expect("room for a folder");
        for entry in fs::read_dir(self.disk.folder()).expect("there") {
            let entry = entry.expect("there");
            fs::copy(entry.path(), copy.join(entry.file_name())).expect("room for a copy");
        }
        let verdict = self.known.check(&copy.join("ledger"));
        fs::remove_dir_all(&copy).expect("it is ours");
        verdict
    }

    pub(crate) fn ledger(&self) -> PathBuf {
        self.disk.folder().join("ledger")
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            formatter,
            "{} runs, {} processes; charges: {} returned, {} refused, {} failed; power lost {} times",
            self.runs, self.lives, self.released, self.refused, self.failed, self.power_losses
        )?;
        let counts = |kinds: &mut dyn Iterator<Item = (&Kind, &usize)>| {
            let counts: Vec<String> = kinds.map(|(kind, count)| format!("{kind:?} {count}")).collect();
            counts.join(", ").to_lowercase()
        };
        writeln!(
            formatter,
            "calls on ledgers: {}: {}",
            self.calls.values().sum::<usize>(),
            counts(&mut self.calls.iter())
        )?;
        let mut by_fault: BTreeMap<&str, BTreeMap<Kind, usize>> = BTreeMap::new();
        for ((fault, kind), count) in &self.struck {
            by_fault.entry(fault).or_default().insert(*kind, *count);
        }
        writeln!(formatter, "faults that struck: {}", self.struck())?;
        for (fault, kinds) in by_fault {
            writeln!(formatter, "| {fault} | {} | {} |", kinds.values().sum::<usize>(), counts(&mut kinds.iter()))?;
        }
        Ok(())
    }
}

impl Figures {
    /// One more ledger.
    pub(crate) fn count_run(&mut self) {
        self.runs += 1;
    }

    /// How many faults struck.
    pub(crate) fn struck(&self) -> usize {
        self.struck.values().sum()
    }

    /// How many charges returned, were refused, and failed.
    pub(crate) fn charges(&self) -> [usize; 3] {
        [self.released, self.refused, self.failed]
    }
}

/// Memory that looks like a disk, where there is some: its syncs are quick, and what they cover is kept count of here.
fn in_memory() -> TempDir {
    let shared = Path::new("/dev/shm");
    let made = if shared.is_dir() { tempfile::tempdir_in(shared) } else { tempfile::tempdir() };
    let home = made.or_else(|_| tempfile::tempdir()).expect("room for a folder");
    assert!(home.path().canonicalize().expect("there") == home.path(), "calls name the folder as it is");
    home
}

fn name(fault: Fault) -> String {
    match fault {
        Fault::Kill(_) => "kill",
        Fault::PowerLoss(..) => "power loss",
        Fault::Error(_) => "I/O error, once",
        Fault::Broken => "I/O error from then on",
        Fault::Full => "disk full from then on",
        Fault::ShortWrite => "short write, then disk full",
        Fault::ShortRead => "short read",
        Fault::Forbidden => "permission denied",
        Fault::NoDescriptors => "no descriptors from then on",
        Fault::LockError => "lock: I/O error",
        Fault::NoLocks => "lock: no locks from then on",
        Fault::Locked => "lock: held by another from then on",
    }
    .to_owned()
}
