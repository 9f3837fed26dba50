//! The Python baselines, in an environment of pinned versions that this chore makes.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::clock::Times;
use crate::{root, say};

/// Versions besides those of `xtask/bench/requirements.txt`, for those who ask for them.
pub(super) const JAX: &str = "jax==0.7.2";
/// PyTorch and Opacus.
pub(super) const OPACUS: &str = "opacus==1.5.4";

pub(super) struct Python {
    folder: PathBuf,
}

/// One line of a script.
pub(super) struct Baseline {
    pub(super) what: String,
    pub(super) times: Times,
    /// Bytes of the table that was passed over.
    pub(super) bytes: Option<f64>,
    pub(super) peak_mib: Option<f64>,
}

impl Python {
    /// Makes the environment unless it is there with these versions.
    pub(super) fn new() -> Result<Self, String> {
        let folder = root().join("target/bench");
        let python = Self { folder };
        let wanted = read(&root().join("xtask/bench/requirements.txt"))?;
        let stamp = python.folder.join("venv/requirements.txt");
        if std::fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
            return Ok(python);
        }
        say("making a Python environment in target/bench/venv");
        std::fs::create_dir_all(&python.folder).map_err(|error| error.to_string())?;
        let made = Command::new("python3").args(["-m", "venv", "--clear", "venv"]).current_dir(&python.folder).status();
        made.map_err(|error| format!("python3: {error}"))?;
        python.install(&["--requirement", &root().join("xtask/bench/requirements.txt").display().to_string()])?;
        std::fs::write(&stamp, wanted).map_err(|error| error.to_string())?;
        Ok(python)
    }

    /// A folder for generated tables.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn install(&self, packages: &[&str]) -> Result<(), String> {
        let status = Command::new(self.program()).args(["-m", "pip", "install", "--quiet"]).args(packages).status();
        let status = status.map_err(|error| error.to_string())?;
        if status.success() { Ok(()) } else { Err(format!("pip install {} failed", packages.join(" "))) }
    }

    pub(super) fn program(&self) -> PathBuf {
        self.folder.join("venv/bin/python")
    }

    /// Runs a script of `xtask/bench` on so many threads: what it measured.
    pub(super) fn run(&self, script: &str, threads: usize, arguments: &[String]) -> Result<Vec<Baseline>, String> {
        let mut command = Command::new(self.program());
        command.arg(root().join("xtask/bench").join(script)).args(arguments);
        for name in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS", "RAYON_NUM_THREADS"] {
            command.env(name, threads.to_string());
        }
        if threads == 1 {
            command.env("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false");
        }
        let output = command.output().map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(format!("{script}: {}", String::from_utf8_lossy(&output.stderr)));
        }
        String::from_utf8_lossy(&output.stdout).lines().map(parse).collect()
    }
}

fn parse(line: &str) -> Result<Baseline, String> {
    let found: Value = serde_json::from_str(line).map_err(|error| format!("{line}: {error}"))?;
    let seconds =
        |name: &str| -> Vec<f64> { found[name].as_array().into_iter().flatten().filter_map(Value::as_f64).collect() };
    Ok(Baseline {
        what: found["what"].as_str().unwrap_or_default().to_owned(),
        times: Times { wall: seconds("wall"), processor: seconds("processor") },
        bytes: found["bytes"].as_f64(),
        peak_mib: found["peak_mib"].as_f64(),
    })
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
