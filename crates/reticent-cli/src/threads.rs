//! The program's threads, started before anything is paid: where the system allows none, that is an error and not a defect after a charge.

use std::fmt::Display;
use std::num::NonZero;

use rayon::ThreadPoolBuilder;

use crate::failure::Failure;

/// Starts the threads of all passes.
pub(crate) fn start() -> Result<(), Failure> {
    let given = std::env::var("RAYON_NUM_THREADS").ok();
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    let threads = number(given.as_deref(), processors);
    ThreadPoolBuilder::new().num_threads(threads).build_global().map_err(|error| refused(&error))
}

/// A thread that the system did not give.
pub(crate) fn refused(error: &impl Display) -> Failure {
    Failure::InputOutput(format!(
        "no thread could be started: {error}; raise the limit on processes (`ulimit -u`, a container's limit on pids), or set \
         RAYON_NUM_THREADS to a small number; nothing was paid"
    ))
}

/// Threads by `RAYON_NUM_THREADS`, where it says a number that can be meant; 0 leaves the choice to rayon. Results are the same with any.
fn number(given: Option<&str>, processors: usize) -> usize {
    let given: usize = given.and_then(|given| given.parse().ok()).unwrap_or(0);
    given.min(THREADS_MAX.max(4 * processors))
}

/// Threads that are started even where they are far more than processors.
const THREADS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn a_slip_does_not_ask_for_a_million_threads() {
        assert_eq!([None, Some("0"), Some("many"), Some("3")].map(|given| number(given, 2)), [0, 0, 0, 3]);
        assert_eq!([2, 100].map(|processors| number(Some("1000000"), processors)), [256, 400]);
    }
}
