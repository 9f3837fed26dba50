//! Tables for the reader, and every time of every run for the record.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use serde_json::json;

use super::clock::Times;
use super::python::Baseline;
use crate::print;
use crate::study::revision;

/// One piece of work that was measured.
pub(super) struct Measure {
    pub(super) part: &'static str,
    pub(super) what: String,
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) threads: usize,
    pub(super) times: Times,
    /// Bytes of the table that was passed over.
    pub(super) bytes: Option<f64>,
    pub(super) peak_mib: Option<f64>,
}

impl Measure {
    pub(super) fn of_baseline(
        part: &'static str,
        (rows, columns): (usize, usize),
        threads: usize,
        found: Baseline,
    ) -> Self {
        let Baseline { what, times, bytes, peak_mib } = found;
        Self { part, what, rows, columns, threads, times, bytes, peak_mib }
    }

    pub(super) fn least(&self) -> f64 {
        self.times.least(self.threads)
    }
}

pub(super) struct Record {
    file: Option<(File, String)>,
    read_bandwidth: [f64; 2],
}

impl Record {
    pub(super) fn new(folder: Option<&Path>) -> Result<Self, String> {
        let file = match folder {
            None => None,
            Some(folder) => {
                std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
                let path = folder.join("bench.jsonl");
                let file = OpenOptions::new().create(true).append(true).open(&path);
                Some((file.map_err(|error| format!("{}: {error}", path.display()))?, revision()))
            }
        };
        Ok(Self { file, read_bandwidth: [f64::NAN; 2] })
    }

    /// Processor, threads, and how fast memory is read.
    pub(super) fn describe_machine(&mut self, read_bandwidth: [f64; 2]) -> Result<(), String> {
        self.read_bandwidth = read_bandwidth;
        let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = processors.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let model = model.map_or("unknown processor", |(_, model)| model);
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load = load.split_whitespace().next().unwrap_or("unknown");
        let [one, two] = read_bandwidth.map(|bytes| bytes / 1e9);
        print(&format!(
            "{model}, {threads} threads, load {load} at the start; memory is read at {one:.1} GB/s by one thread and \
             {two:.1} GB/s by two.\n"
        ));
        self.line(&json!({
            "part": "machine", "model": model, "threads": threads, "load": load, "read_bytes_per_second": read_bandwidth,
        }))
    }

    pub(super) fn line(&mut self, value: &serde_json::Value) -> Result<(), String> {
        let Some((file, revision)) = &mut self.file else { return Ok(()) };
        let mut value = value.clone();
        value["revision"] = json!(revision);
        writeln!(file, "{value}").map_err(|error| error.to_string())
    }

    /// Prints measures as a table and keeps them. Each gets the ratio to the first of ours of its shape and threads.
    pub(super) fn table(&mut self, measures: &[Measure]) -> Result<(), String> {
        print("| rows x columns | threads | what | least | median | GB/s | of memory's | times ours | peak MiB |");
        print("|---|---|---|---|---|---|---|---|---|");
        for measure in measures {
            let ours = measures.iter().find(|other| {
                (other.rows, other.columns, other.threads) == (measure.rows, measure.columns, measure.threads)
                    && other.what.starts_with("reticent")
            });
            let times_ours = ours.map(|ours| measure.least() / ours.least());
            let speed = measure.bytes.map(|bytes| bytes / measure.least());
            let limit = self.read_bandwidth[usize::from(measure.threads > 1)];
            let cell = |value: Option<String>| value.unwrap_or_default();
            print(&format!(
                "| {} x {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                measure.rows,
                measure.columns,
                measure.threads,
                measure.what,
                seconds(measure.least()),
                seconds(measure.times.median(measure.threads)),
                cell(speed.map(|speed| format!("{:.1}", speed / 1e9))),
                cell(speed.map(|speed| format!("{:.0} %", 100.0 * speed / limit))),
                cell(times_ours.map(|times| format!("{times:.2}"))),
                cell(measure.peak_mib.map(|mib| format!("{mib:.0}"))),
            ));
        }
        print("");
        self.keep(measures)
    }

    /// Keeps measures that are printed in a table of their own.
    pub(super) fn keep(&mut self, measures: &[Measure]) -> Result<(), String> {
        for measure in measures {
            self.line(&json!({
                "part": measure.part, "what": measure.what, "rows": measure.rows, "columns": measure.columns,
                "threads": measure.threads, "wall": measure.times.wall, "processor": measure.times.processor,
                "bytes": measure.bytes, "peak_mib": measure.peak_mib,
            }))?;
        }
        Ok(())
    }
}

/// A time with three digits and its unit.
pub(super) fn seconds(time: f64) -> String {
    let (value, unit) = match time {
        time if time < 1e-3 => (time * 1e6, "µs"),
        time if time < 1.0 => (time * 1e3, "ms"),
        time => (time, "s"),
    };
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_a_unit() {
        assert_eq!([5.3e-6, 0.0123, 0.456, 12.34].map(seconds), ["5.30 µs", "12.3 ms", "456 ms", "12.3 s"]);
    }

    #[test]
    fn one_thread_is_timed_by_the_processor_and_two_by_the_clock() {
        let times = Times { wall: vec![3.0, 1.0, 2.0], processor: vec![0.3, 0.2, 0.1] };
        assert!((times.least(1) - 0.1).abs() < 1e-12 && (times.median(1) - 0.2).abs() < 1e-12);
        assert!((times.least(2) - 1.0).abs() < 1e-12 && (times.median(2) - 2.0).abs() < 1e-12);
    }
}
