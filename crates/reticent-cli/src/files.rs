//! Files that are written whole or not at all.

use std::fs;
use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::failure::Failure;
use crate::{interrupt, progress};

/// A file under a temporary name in its final folder; it takes its place when it is complete.
///
/// Made before anything is paid, so that an unwritable place costs nothing.
pub(crate) struct OutputFile {
    place: PathBuf,
    temporary: NamedTempFile,
}

impl OutputFile {
    /// Fails when the place is one of `inputs`, there already or yet to be made: a result must not replace what it was
    /// made from, nor the ledger that paid for it.
    pub(crate) fn create_beside(place: &Path, inputs: &[&Path]) -> Result<Self, Failure> {
        if let Some(input) = inputs.iter().find(|input| same(place, input)) {
            return Err(Failure::Usage(format!(
                "--out {} would replace {}, which this command reads or charges; choose another place for the result",
                place.display(),
                input.display()
            )));
        }
        Self::create(place)
    }

    pub(crate) fn create(place: &Path) -> Result<Self, Failure> {
        if is_stdout(place) {
            return Err(Failure::Usage(
                "-: this result is a file, written whole or not at all, and does not go to stdout; choose a name for it (./- if it is to be \
                 called so)"
                    .to_owned(),
            ));
        }
        let failed = |error: io::Error| {
            let message = format!("cannot write here: {error}; choose another place for the result");
            Failure::InputOutput(format!("{}: {message}", place.display()))
        };
        // A link would itself be replaced; /dev/stdout is one.
        if place.is_symlink() && (place.starts_with("/dev") || place.starts_with("/proc")) {
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "it is a link of the system's")));
        }
        let target = match fs::read_link(place) {
            Ok(named) => place
                .canonicalize()
                .map_err(|error| failed(io::Error::other(format!("it is a link to {}: {error}", named.display()))))?,
            Err(_) => place.to_owned(),
        };
        let place = target.as_path();
        if is_side_file(place) {
            return Err(Failure::Usage(format!(
                "{}: a file of such a name belongs to the database beside it, such as a ledger, which would take the result for its journal \
                 and delete it; choose another name",
                place.display()
            )));
        }
        if place.is_dir() {
            return Err(failed(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder")));
        }
        if place.exists() && !place.is_file() {
            return Err(failed(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is a pipe or a device, and would be replaced",
            )));
        }
        let mut magic = [0; SQLITE_MAGIC.len()];
        let is_database = fs::File::open(place).and_then(|mut file| file.read_exact(&mut magic)).is_ok();
        if is_database && magic == *SQLITE_MAGIC {
            let message = "is a database, perhaps a ledger, and is not replaced; choose another place for the result";
            return Err(Failure::Usage(format!("{} {message}", place.display())));
        }
        let folder = folder_of(place);
        let mut builder = tempfile::Builder::new();
        builder.prefix(".reticent-").suffix(".partial");
        let of_replaced = permissions_of_replaced(place);
        builder.permissions(of_replaced.clone().unwrap_or_else(usual_permissions));
        if !folder.is_dir() {
            let message =
                format!("cannot write here: there is no folder {}; make it first, or mend the name", folder.display());
            return Err(Failure::InputOutput(format!("{}: {message}", place.display())));
        }
        // The error itself names the temporary file, which nobody has asked for.
        let made = interrupt::begin(|| builder.tempfile_in(folder));
        let temporary = made.map_err(|error| failed(error.kind().into()))?;
        if let Some(permissions) = of_replaced {
            // Those that the umask took. Where they cannot be given, as on a file system without them, there are fewer.
            let _ = temporary.as_file().set_permissions(permissions);
            keep_from_another_group(temporary.as_file(), place).map_err(failed)?;
        }
        Ok(Self { place: place.to_owned(), temporary })
    }

    pub(crate) fn writer(&mut self) -> &mut fs::File {
        self.temporary.as_file_mut()
    }

    /// Makes the contents durable and gives the file its name.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::input_output("writing the result", &self.place, &error);
        self.temporary.as_file().sync_all().map_err(failed)?;
        let partial = self.temporary.path().to_owned();
        match interrupt::complete(&partial, &self.place, || self.temporary.persist(&self.place)) {
            // The name must be as durable as the contents.
            Ok(_) => sync_folder(&self.place)
                .map_err(|error| Failure::input_output("making the result durable", &self.place, &error)),
            Err(error) => {
                // The contents are complete and may be paid for: keep them under their temporary name.
                let kept = error.file.keep().map_or_else(
                    |_| String::new(),
                    |(_, path)| format!("; the complete result is in {}", path.display()),
                );
                let message = format!("{}: writing the result: {}{kept}", self.place.display(), error.error);
                Err(Failure::InputOutput(message))
            }
        }
    }

    pub(crate) fn write_and_finish(mut self, text: &str) -> Result<(), Failure> {
        let written = self.writer().write_all(text.as_bytes());
        written.map_err(|error| Failure::input_output("writing the result", &self.place, &error))?;
        self.finish()
    }
}

/// Bytes of a document, but for models.
pub(crate) const DOCUMENT_BYTES_MAX: u64 = 64 << 20;

/// Reads a text that somebody wrote by hand or with this program, of at most `bytes_max` bytes.
pub(crate) fn read_text(path: &Path, what: &str, bytes_max: u64) -> Result<String, Failure> {
    let failed = |error: io::Error| Failure::input_output(&format!("reading the {what}"), path, &error);
    let mut bytes = Vec::new();
    // What has no size, such as a pipe, may have no end either.
    fs::File::open(path).and_then(|file| file.take(bytes_max + 1).read_to_end(&mut bytes)).map_err(failed)?;
    if bytes.len() as u64 > bytes_max {
        let mebibytes = bytes_max >> 20;
        return Err(Failure::Usage(format!("{}: more than {mebibytes} MiB are too many for a {what}", path.display())));
    }
    String::from_utf8(bytes)
        .map_err(|_| Failure::Usage(format!("{}: not a {what}: it is not UTF-8 text", path.display())))
}

/// Where rows go that are written one after another: a file, or stdout, where part of them may be out when a command stops.
pub(crate) enum RowOutput {
    /// Whole or not at all.
    File(OutputFile),
    /// For the next command of a pipe.
    Stdout(PipedStdout),
}

impl RowOutput {
    /// Stdout if the place is `-`, else as [`OutputFile::create_beside`].
    pub(crate) fn create_beside(place: &Path, inputs: &[&Path]) -> Result<Self, Failure> {
        if is_stdout(place) {
            let stdout = io::stdout();
            if stdout.is_terminal() {
                progress::give_way_to_rows();
            }
            return Ok(Self::Stdout(PipedStdout { stdout, is_closed: false }));
        }
        OutputFile::create_beside(place, inputs).map(Self::File)
    }

    pub(crate) fn writer(&mut self) -> &mut (dyn Write + Send) {
        match self {
            Self::File(file) => file.writer(),
            Self::Stdout(stdout) => stdout,
        }
    }

    pub(crate) fn finish(self) -> Result<(), Failure> {
        match self {
            Self::File(file) => file.finish(),
            Self::Stdout(mut stdout) => {
                stdout.flush().map_err(|error| Failure::InputOutput(format!("writing to stdout: {error}")))
            }
        }
    }
}

/// Stdout until its reader closes it, which is the reader's choice and no error: what comes after that is dropped.
pub(crate) struct PipedStdout {
    stdout: io::Stdout,
    is_closed: bool,
}

impl PipedStdout {
    /// What was done, or as if it had been done where nobody reads any more.
    fn or_closed<T>(&mut self, outcome: io::Result<T>, done: T) -> io::Result<T> {
        match outcome {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_closed = true;
                Ok(done)
            }
            outcome => outcome,
        }
    }
}

impl Write for PipedStdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_closed {
            return Ok(bytes.len());
        }
        let outcome = self.stdout.write(bytes);
        self.or_closed(outcome, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.is_closed {
            return Ok(());
        }
        let outcome = self.stdout.flush();
        self.or_closed(outcome, ())
    }
}

/// A result is as readable as any file that the person makes, subject to the umask.
fn usual_permissions() -> fs::Permissions {
    fs::Permissions::from_mode(0o666)
}

/// Who may read and write a file that is about to be replaced: whoever has kept predictions from others does so once.
fn permissions_of_replaced(place: &Path) -> Option<fs::Permissions> {
    let replaced = fs::metadata(place).ok()?;
    Some(fs::Permissions::from_mode(replaced.permissions().mode() & 0o777))
}

/// A new file has the group of who makes it: where the replaced one had another, what that group might do this one must not.
fn keep_from_another_group(made: &fs::File, replaced: &Path) -> io::Result<()> {
    let made_as = made.metadata()?;
    let is_the_same = fs::metadata(replaced).is_ok_and(|replaced| replaced.gid() == made_as.gid());
    if is_the_same { Ok(()) } else { made.set_permissions(fs::Permissions::from_mode(made_as.mode() & 0o707)) }
}

/// Whether a place is the usual word for stdout.
fn is_stdout(place: &Path) -> bool {
    place == Path::new("-")
}

/// Refuses a name that promises a compressed file, which nobody writes here.
pub(crate) fn refuse_other_format(place: &Path, contents: &str, endings: &[&str]) -> Result<(), Failure> {
    const COMPRESSED: [&str; 4] = ["gz", "xz", "zst", "zstd"];
    let has_ending = |ends: &[&str]| {
        place.extension().is_some_and(|extension| ends.iter().any(|end| extension.eq_ignore_ascii_case(end)))
    };
    let lacking = if has_ending(&COMPRESSED) {
        "compressed"
    } else if has_ending(&["parquet"]) && !endings.contains(&".parquet") {
        "written as Parquet"
    } else {
        return Ok(());
    };
    Err(Failure::Usage(format!(
        "--out {}: {contents} are not {lacking}; choose a name that ends in {}",
        place.display(),
        endings.join(" or ")
    )))
}

/// Writes a result that was paid for to stdout, or to stderr when stdout does not take it.
pub(crate) fn print_or_rescue(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(|error| {
        // Nothing is left to be done when stderr is closed too.
        let _ = io::stderr().write_all(text.as_bytes());
        Failure::InputOutput(format!("writing to stdout: {error}; the result is above"))
    })
}

/// Whether two paths lead to one file: by the same name, by links, or by names of one inode.
pub(crate) fn is_one_file(one: &Path, other: &Path) -> bool {
    #[cfg(unix)]
    if let (Ok(one), Ok(other)) = (one.metadata(), other.metadata()) {
        use std::os::unix::fs::MetadataExt;
        return (one.dev(), one.ino()) == (other.dev(), other.ino());
    }
    same(one, other)
}

/// Whether a file lies, or would lie, in a folder or below it: by its own name, or by where a link leads.
pub(crate) fn is_in_folder(file: &Path, folder: &Path) -> bool {
    resolve(file).starts_with(resolve(folder))
}

/// Whether a name is one that SQLite keeps for a file beside a database: to undo or to redo what a crash stopped, it reads what is there.
fn is_side_file(place: &Path) -> bool {
    // Some file systems know no case.
    let name = place.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    ["-journal", "-wal", "-shm"].iter().any(|suffix| name.ends_with(suffix))
}

/// Whether two paths are one place, in which one file would replace the other.
fn same(one: &Path, other: &Path) -> bool {
    resolve(one) == resolve(other)
}

/// A path that can be compared with another: of the file itself, or of its place when there is no file yet.
fn resolve(path: &Path) -> PathBuf {
    let in_folder = || Some(folder_of(path).canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(in_folder).unwrap_or_else(|| path.to_owned())
}

fn sync_folder(place: &Path) -> io::Result<()> {
    fs::File::open(folder_of(place))?.sync_all()
}

/// The folder that a file is in.
fn folder_of(place: &Path) -> &Path {
    place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The first bytes of every SQLite database.
const SQLITE_MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Writes a document to stdout: a result for a machine.
pub(crate) fn print_json(document: &serde_json::Value) -> Result<(), Failure> {
    print(&format!("{document:#}\n"))
}

/// Writes a result to stdout. A closed pipe is the reader's choice, not an error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::InputOutput(format!("writing to stdout: {error}")))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}
