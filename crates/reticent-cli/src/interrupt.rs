//! Ctrl-C, a `kill`, or a terminal that goes away: half-written files go, and it is said whether something may have been paid.
//!
//! The ledger itself needs no help: an entry is there whole or not at all, whenever the program ends.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use crate::failure::Failure;
use crate::{report, threads};

/// Ends of a command that are not its own, and how they are called.
const SIGNALS: [(i32, &str); 3] =
    [(SIGINT, "interrupted"), (SIGTERM, "terminated"), (SIGHUP, "the terminal went away")];
/// What a shell expects of a command that a signal has ended: this and the number of the signal.
const EXIT_CODE: i32 = 128;

/// What the command has under way.
struct UnderWay {
    partial: BTreeSet<PathBuf>,
    /// The ledger that may have paid by now.
    ledger: Option<PathBuf>,
    /// The last file that has its name.
    complete: Option<PathBuf>,
}

static UNDER_WAY: Mutex<UnderWay> = Mutex::new(UnderWay { partial: BTreeSet::new(), ledger: None, complete: None });

/// Called once, by the program.
pub(crate) fn listen() -> Result<(), Failure> {
    // A file that grows beyond `ulimit -f` is then an error of that file, as on a full disk: by itself the signal ends the program without a
    // word, perhaps after a charge. The flag is of no use; without the handler a signal ends the program all the same.
    let _ = flag::register(SIGXFSZ, Arc::default());
    let signals = SIGNALS.iter().map(|(signal, _)| *signal).filter(|signal| !is_ignored(*signal));
    // Without a handler a signal ends the program all the same.
    if let Ok(mut signals) = Signals::new(signals) {
        let listener = std::thread::Builder::new().spawn(move || signals.forever().for_each(end));
        listener.map_err(|error| threads::refused(&error))?;
    }
    Ok(())
}

/// Whether the program was started to ignore a signal, which a handler would take away: SIGHUP as `nohup` does, SIGINT as a script does for
/// what it leaves in the background. Where the system does not tell, SIGHUP may have been.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    ignored.map_or(signal == SIGHUP, |ignored| ignored & (1 << (signal - 1)) != 0)
}

fn end(signal: i32) {
    let under_way = under_way();
    for path in &under_way.partial {
        // Nothing is left to be done when it cannot be removed.
        let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    }
    // A demo's ledger and files are in a folder that is gone.
    let left = |path: &Option<PathBuf>| {
        let left = path.as_ref().filter(|path| !under_way.partial.iter().any(|gone| path.starts_with(gone)));
        left.map(|path| report::path_text(path))
    };
    let paid = left(&under_way.ledger).map_or_else(
        || "nothing was paid".to_owned(),
        |ledger| format!("what was paid by then stays paid: `reticent ledger show {ledger}` lists it"),
    );
    let complete = left(&under_way.complete).map_or_else(String::new, |file| format!("; {file} is complete"));
    let (_, ended) = SIGNALS.iter().find(|(known, _)| *known == signal).expect("no other is listened to");
    // A progress bar may stand in this line.
    let new_line = if io::stderr().is_terminal() { "\n" } else { "" };
    // Nothing is left to be done when stderr is closed.
    let _ = writeln!(io::stderr(), "{new_line}error: {ended}; {paid}{complete}");
    std::process::exit(EXIT_CODE + signal);
}

/// Makes a file that is to be removed when it is not completed, or a folder for a while. No interruption falls between the two.
pub(crate) fn begin<T: AsRef<Path>>(make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let mut under_way = under_way();
    let made = make()?;
    under_way.partial.insert(made.as_ref().to_owned());
    Ok(made)
}

/// Gives a complete file its name. No interruption falls between the two.
pub(crate) fn complete<T, E>(partial: &Path, place: &Path, rename: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let mut under_way = under_way();
    // It is kept where it cannot have its name.
    under_way.partial.remove(partial);
    let renamed = rename()?;
    under_way.complete = Some(place.to_owned());
    Ok(renamed)
}

/// From here on this ledger may be charged.
pub(crate) fn may_pay(ledger: &Path) {
    under_way().ledger = Some(ledger.to_owned());
}

fn under_way() -> MutexGuard<'static, UnderWay> {
    // A panic while it was held leaves a set of paths, and no harm.
    UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner)
}
