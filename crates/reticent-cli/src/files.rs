//! Files that are written whole or not at all.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::failure::Failure;

/// A file under a temporary name in its final folder; it takes its place when it is complete.
///
/// Made before anything is paid, so that an unwritable place costs nothing.
pub(crate) struct OutputFile {
    place: PathBuf,
    temporary: NamedTempFile,
}

impl OutputFile {
    /// Fails when the place is one of `inputs`: a result must not replace what it was made from.
    pub(crate) fn create_beside(place: &Path, inputs: &[&Path]) -> Result<Self, Failure> {
        let same = |input: &&&Path| match (place.canonicalize(), input.canonicalize()) {
            (Ok(place), Ok(input)) => place == input,
            (Err(_), _) | (_, Err(_)) => false,
        };
        if let Some(input) = inputs.iter().find(same) {
            return Err(Failure::Usage(format!(
                "--out {} would replace the input {}; choose another place for the result",
                place.display(),
                input.display()
            )));
        }
        Self::create(place)
    }

    pub(crate) fn create(place: &Path) -> Result<Self, Failure> {
        let failed = |error: io::Error| {
            let message = format!("cannot write here: {error}; choose another place for the result");
            Failure::InputOutput(format!("{}: {message}", place.display()))
        };
        if place.is_dir() {
            return Err(failed(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder")));
        }
        let folder = match place.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            Some(_) | None => Path::new("."),
        };
        let mut builder = tempfile::Builder::new();
        builder.prefix(".reticent-").suffix(".partial");
        // A result is as readable as any file that the person makes, subject to the umask.
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        let temporary = builder.tempfile_in(folder).map_err(failed)?;
        Ok(Self { place: place.to_owned(), temporary })
    }

    pub(crate) fn writer(&mut self) -> &mut fs::File {
        self.temporary.as_file_mut()
    }

    /// Makes the contents durable and gives the file its name.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::input_output("writing the result", &self.place, &error);
        self.temporary.as_file().sync_all().map_err(failed)?;
        let place = self.place.clone();
        self.temporary
            .persist(&place)
            .map(drop)
            .map_err(|error| Failure::input_output("writing the result", &place, &error.error))
    }

    pub(crate) fn write_and_finish(mut self, text: &str) -> Result<(), Failure> {
        let written = self.writer().write_all(text.as_bytes());
        written.map_err(|error| Failure::input_output("writing the result", &self.place, &error))?;
        self.finish()
    }
}

/// Reads a text that somebody wrote by hand or with this program.
pub(crate) fn read_text(path: &Path, what: &str) -> Result<String, Failure> {
    const BYTES_MAX: u64 = 64 << 20;
    let failed = |error: io::Error| Failure::input_output(&format!("reading the {what}"), path, &error);
    let size = fs::metadata(path).map_err(failed)?.len();
    if size > BYTES_MAX {
        return Err(Failure::Usage(format!("{}: {size} bytes are too many for a {what}", path.display())));
    }
    let bytes = fs::read(path).map_err(failed)?;
    String::from_utf8(bytes)
        .map_err(|_| Failure::Usage(format!("{}: not a {what}: it is not UTF-8 text", path.display())))
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
