//! Why a command stopped: one message on stderr, one exit code.

use std::io::Write;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use reticent_core::engine::EngineError;
use reticent_core::ledger::{LedgerError, Refusal};
use reticent_core::session::SessionError;
use reticent_curator::label_measure::MeasureError;
use reticent_curator::ledger_file::LedgerFileError;
use reticent_curator::memory_engine::OutOfMemory;
use reticent_curator::scratch_file::ScratchError;
use reticent_curator::source::SourceError;
use reticent_curator::spilled_table::SpillError;
use reticent_fit::labels_elsewhere::ElsewhereError;
use reticent_fit::prepared_fit::FitError;

use crate::report::printable_lines;

/// A failure by who can mend it. Messages hold public facts only.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Flags, schema or model file.
    #[error("{0}")]
    Usage(String),
    /// The data file.
    #[error("{0}")]
    Data(String),
    /// The ledger's rules.
    #[error("{0}")]
    Refused(String),
    /// Reading or writing.
    #[error("{0}")]
    InputOutput(String),
    /// The program does not do what it says.
    #[error("{0}")]
    Defect(String),
}

impl Failure {
    pub(crate) fn usage(error: impl ToString) -> Self {
        Self::Usage(error.to_string())
    }

    pub(crate) fn input_output(action: &str, path: &Path, error: &std::io::Error) -> Self {
        Self::InputOutput(format!("{}: {action}: {error}", path.display()))
    }

    /// What to do about it, or what is left all the same: the rest of the message.
    pub(crate) fn with_remedy(self, remedy: &str) -> Self {
        match self {
            Self::InputOutput(message) => Self::InputOutput(format!("{message}; {remedy}")),
            other @ (Self::Usage(_) | Self::Data(_) | Self::Refused(_) | Self::Defect(_)) => other,
        }
    }

    /// What does not fit a table where the schema is in a model file, and so is not what can be changed.
    pub(crate) fn of_a_models_table(error: SourceError) -> Self {
        let is_of_schema = matches!(
            error,
            SourceError::MissingColumn { .. }
                | SourceError::NotTheHeader { .. }
                | SourceError::ColumnType { .. }
                | SourceError::NeverFound { .. }
        );
        match Self::from(error) {
            Self::Data(message) if is_of_schema => {
                Self::Data(format!("{message}; the schema is the model's here: change the table or its header"))
            }
            other @ (Self::Usage(_) | Self::Data(_) | Self::Refused(_) | Self::InputOutput(_) | Self::Defect(_)) => {
                other
            }
        }
    }

    /// Prints the message and gives the exit code that `reticent --help` documents.
    pub(crate) fn report(self) -> ExitCode {
        // Nothing is left to be done when stderr is closed.
        let _ = writeln!(std::io::stderr(), "error: {}", printable_lines(&self.to_string()));
        ExitCode::from(match self {
            Self::Usage(_) => 2,
            Self::Data(_) => 3,
            Self::Refused(_) => 4,
            Self::InputOutput(_) => 5,
            Self::Defect(_) => 70,
        })
    }
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Self {
        if error.is_io() { Self::InputOutput(error.to_string()) } else { Self::Data(error.to_string()) }
    }
}

impl From<OutOfMemory> for Failure {
    fn from(error: OutOfMemory) -> Self {
        Self::InputOutput(error.to_string())
    }
}

/// Scratch files are made and filled before anything is paid; what fails later comes out of a session.
impl From<ScratchError> for Failure {
    fn from(error: ScratchError) -> Self {
        Self::InputOutput(format!("{error}; nothing was paid"))
    }
}

impl From<SpillError> for Failure {
    fn from(error: SpillError) -> Self {
        match error {
            SpillError::Source(error) => error.into(),
            SpillError::Scratch(error) => error.into(),
        }
    }
}

impl From<LedgerFileError> for Failure {
    fn from(error: LedgerFileError) -> Self {
        if matches!(error, LedgerFileError::NothingPromised { .. } | LedgerFileError::IllegalRelation { .. }) {
            Self::usage(error)
        } else {
            Self::InputOutput(error.to_string())
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal.to_string())
    }
}

impl From<LedgerError> for Failure {
    fn from(error: LedgerError) -> Self {
        match error {
            LedgerError::Refused(refusal) => refusal.into(),
            LedgerError::Store(error) => Self::InputOutput(error.to_string()),
        }
    }
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Ledger(error) => error.into(),
            SessionError::Engine(error @ EngineError(_)) => Self::InputOutput(error.to_string()),
            SessionError::Entropy(error) => Self::InputOutput(error.to_string()),
            SessionError::TooManyFeatures(error) => Self::Data(error.to_string()),
            error @ SessionError::PrivateFeatures { .. } => Self::Refused(error.to_string()),
            error @ (SessionError::WrongGrant { .. }
            | SessionError::WrongUnit { .. }
            | SessionError::WrongPlan { .. }
            | SessionError::WrongSchema
            | SessionError::ForeignGrant) => Self::Usage(error.to_string()),
        }
    }
}

impl From<FitError> for Failure {
    fn from(error: FitError) -> Self {
        match error {
            FitError::Session(error) => error.into(),
            FitError::Numeric(_) | FitError::NoLabels | FitError::TooManyFeatures(_) => Self::Data(error.to_string()),
        }
    }
}

impl From<MeasureError> for Failure {
    fn from(error: MeasureError) -> Self {
        match error {
            MeasureError::Source(error) => error.into(),
            MeasureError::LedgerFile(error) => error.into(),
            MeasureError::Session(error) => error.into(),
            MeasureError::Adjacency(_)
            | MeasureError::Unmatched(_)
            | MeasureError::Rows { .. }
            | MeasureError::Overflow
            | MeasureError::TooSmall
            | MeasureError::Query(_) => Self::Usage(error.to_string()),
        }
    }
}

impl From<ElsewhereError> for Failure {
    fn from(error: ElsewhereError) -> Self {
        match error {
            ElsewhereError::Release(_) | ElsewhereError::Features(_) | ElsewhereError::Estimate(_) => {
                Self::Data(error.to_string())
            }
            ElsewhereError::Adjacency(_)
            | ElsewhereError::Plan(_)
            | ElsewhereError::Target { .. }
            | ElsewhereError::Solver => Self::Usage(error.to_string()),
        }
    }
}

/// Runs a command so that a panic, a defect of ours, prints its place and never its message, which may quote a value.
///
/// Panics that a decoder's caller catches print nothing.
pub(crate) fn without_panic_contents(command: impl FnOnce() -> Result<(), Failure>) -> ExitCode {
    static PLACE: Mutex<String> = Mutex::new(String::new());
    let place = || PLACE.lock().unwrap_or_else(PoisonError::into_inner);
    std::panic::set_hook(Box::new(move |panic| {
        *place() = panic.location().map_or_else(String::new, |at| format!(" at {}:{}", at.file(), at.line()));
    }));
    match std::panic::catch_unwind(AssertUnwindSafe(command)) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(failure)) => failure.report(),
        Err(_) => {
            let place = place();
            // Nothing is left to be done when stderr is closed.
            let _ = writeln!(
                std::io::stderr(),
                "error: a defect in reticent{place}; what the ledger was charged stays charged. Please report this line"
            );
            ExitCode::from(70)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const SECRET: &str = "a value of a row";

    /// Not a test: what the test below runs in a process of its own, because the handler of panics is the process's.
    #[test]
    #[ignore = "run by the next test"]
    fn panics_about_a_row() {
        let code = without_panic_contents(|| panic!("{SECRET}"));
        assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::from(70)));
    }

    #[test]
    fn a_panic_tells_its_place_and_not_its_message() {
        let program = std::env::current_exe().expect("a test runs");
        let output = Command::new(program)
            .args(["--exact", "--ignored", "--nocapture", "failure::tests::panics_about_a_row"])
            .output()
            .expect("it runs once more");
        let told = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{told}");
        assert!(told.contains("a defect in reticent at crates/reticent-cli/src/failure.rs:"), "{told}");
        assert!(!told.contains(SECRET), "{told}");
    }
}
