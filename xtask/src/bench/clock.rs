//! Times of repeated work: wall clock and processor time of each run.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Seconds, run after run.
#[derive(Clone)]
pub(super) struct Times {
    pub(super) wall: Vec<f64>,
    pub(super) processor: Vec<f64>,
}

impl Times {
    /// Does the work once to warm up, then `repeats` times.
    pub(super) fn of(repeats: usize, mut work: impl FnMut()) -> Self {
        work();
        let mut times = Self { wall: Vec::new(), processor: Vec::new() };
        for _ in 0..repeats {
            let (wall, processor) = (Instant::now(), processor_time());
            work();
            times.wall.push(wall.elapsed().as_secs_f64());
            times.processor.push((processor_time() - processor).as_secs_f64());
        }
        times
    }

    /// Processor time with one thread, else wall clock.
    fn chosen(&self, threads: usize) -> Vec<f64> {
        let mut chosen = if threads == 1 { self.processor.clone() } else { self.wall.clone() };
        chosen.sort_by(f64::total_cmp);
        chosen
    }

    pub(super) fn least(&self, threads: usize) -> f64 {
        self.chosen(threads).first().copied().unwrap_or(f64::NAN)
    }

    pub(super) fn median(&self, threads: usize) -> f64 {
        let chosen = self.chosen(threads);
        chosen.get(chosen.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

/// Time that all threads of this process have had a processor.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// Runs `work` on so many threads.
pub(super) fn on_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a few threads can be had");
    pool.install(work)
}
