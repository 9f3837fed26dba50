//! What kind of file this is, by its first line, and the stream of bytes inside it.
//!
//! Only the first line decides, which is a header; where a table has none and that line is a row, only bytes with which no text
//! begins decide: what is said about a file must not depend on its rows.
//!
//! The name is not trusted: `adult.csv` may be gzip. Decompression is streamed, so a small file that unpacks to
//! terabytes costs time and not memory.

use std::fs::{File, Metadata};
use std::io::{self, BufReader, Cursor, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use thiserror::Error;

use super::SourceError;

/// A file whose kind is known.
pub(crate) enum Opened {
    /// Delimited text, perhaps compressed.
    Text(ByteStream),
    /// A Parquet file, complete at both ends.
    Parquet(File),
}

/// Opens a file and finds out its kind. Also returns its size in bytes, 0 for a pipe. `is_header`: whether the first line of a text is
/// one.
pub(crate) fn open(path: &Path, is_header: bool) -> Result<(Opened, u64), SourceError> {
    let failed = |source: io::Error| {
        let path = path.to_owned();
        if source.kind() == ErrorKind::NotFound {
            SourceError::NotFound { path }
        } else {
            SourceError::Io { path, source }
        }
    };
    let mut file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if metadata.is_dir() {
        return Err(SourceError::Directory { path: path.to_owned() });
    }
    let bytes_total = metadata.len();
    let mut first = Vec::with_capacity(FIRST_BYTES);
    Read::by_ref(&mut file).take(FIRST_BYTES as u64).read_to_end(&mut first).map_err(failed)?;
    let beginning = Beginning::of(&first, is_header);
    if beginning.is_of_letters(b"PAR1") || beginning.is_of_letters(b"PARE") {
        // Its footer is read first.
        if file.stream_position().is_err() {
            return Err(SourceError::Unsupported {
                path: path.to_owned(),
                found: "a Parquet file through a pipe",
                remedy: "name the file itself, or write what comes through the pipe to one",
            });
        }
        refuse_partial_parquet(&file, &first, path)?;
        return Ok((Opened::Parquet(file), bytes_total));
    }
    refuse_other_kinds(beginning, path)?;
    let packing = Packing::of(&first);
    let bytes_read = Arc::new(AtomicU64::new(0));
    let file = WatchedFile { file, opened: stamp_of(&metadata) };
    let raw = CountingReader { inner: Cursor::new(first).chain(file), bytes_read: Arc::clone(&bytes_read) };
    let mut stream = ByteStream::new(path.to_owned(), packing, raw, bytes_read)?;
    if packing.is_some() {
        let inside = stream.peek(FIRST_BYTES)?;
        let beginning = Beginning::of(inside, is_header);
        refuse_other_kinds(beginning, path)?;
        if Packing::of(inside).is_some() {
            return Err(SourceError::Unsupported {
                path: path.to_owned(),
                found: "compressed more than once",
                remedy: "decompress it once",
            });
        }
        if beginning.is_of_letters(b"PAR1") {
            return Err(SourceError::Unsupported {
                path: path.to_owned(),
                found: "a compressed Parquet file",
                remedy: "decompress it: Parquet compresses its columns itself",
            });
        }
    }
    Ok((Opened::Text(stream), bytes_total))
}

/// The bytes of a text table, decompressed, in blocks of a fixed size.
pub(crate) struct ByteStream {
    path: PathBuf,
    packing: Option<Packing>,
    reader: Box<dyn Read + Send>,
    bytes_read: Arc<AtomicU64>,
    block: Vec<u8>,
    start: usize,
    end: usize,
}

impl ByteStream {
    fn new(
        path: PathBuf,
        packing: Option<Packing>,
        raw: impl Read + Send + 'static,
        bytes_read: Arc<AtomicU64>,
    ) -> Result<Self, SourceError> {
        let reader: Box<dyn Read + Send> = match packing {
            None => Box::new(raw),
            Some(Packing::Gzip) => {
                Box::new(flate2::bufread::MultiGzDecoder::new(BufReader::with_capacity(BLOCK_BYTES, raw)))
            }
            Some(Packing::Xz) => {
                let decoder = liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY_MAX, liblzma::stream::CONCATENATED)
                    .map_err(|error| SourceError::Io { path: path.clone(), source: error.into() })?;
                let raw = BufReader::with_capacity(BLOCK_BYTES, raw);
                Box::new(liblzma::bufread::XzDecoder::new_stream(raw, decoder))
            }
            Some(Packing::Zstd) => {
                let raw = BufReader::with_capacity(BLOCK_BYTES, raw);
                let decoder = zstd::stream::read::Decoder::with_buffer(raw)
                    .map_err(|source| SourceError::Io { path: path.clone(), source })?;
                Box::new(decoder)
            }
        };
        Ok(Self { path, packing, reader, bytes_read, block: vec![0; BLOCK_BYTES], start: 0, end: 0 })
    }

    /// The unread bytes in hand, more of them being read only when there are none; empty at the end of the file.
    pub(crate) fn fill(&mut self) -> Result<&[u8], SourceError> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            self.end = self.read_into_block()?;
        }
        Ok(&self.block[self.start..self.end])
    }

    /// Reads some bytes into a buffer, without a copy on the way when none are in hand; 0 at the end of the file.
    pub(crate) fn read_into(&mut self, buffer: &mut [u8]) -> Result<usize, SourceError> {
        let in_hand = (self.end - self.start).min(buffer.len());
        if in_hand > 0 {
            buffer[..in_hand].copy_from_slice(&self.block[self.start..self.start + in_hand]);
            self.start += in_hand;
            return Ok(in_hand);
        }
        read_uninterrupted(&mut self.reader, buffer).map_err(|error| self.failure(error))
    }

    /// Marks bytes that [`Self::fill`] returned as read.
    pub(crate) fn consume(&mut self, bytes: usize) {
        self.start += bytes;
        debug_assert!(self.start <= self.end, "no more can be consumed than was there");
    }

    /// The first bytes, as many as there are up to `wanted`, left unread. Only before anything is consumed.
    pub(crate) fn peek(&mut self, wanted: usize) -> Result<&[u8], SourceError> {
        assert!(self.start == 0 && wanted <= self.block.len(), "a peek is at the start and within a block");
        while self.end < wanted {
            let count = self.read_into_block()?;
            if count == 0 {
                break;
            }
            self.end += count;
        }
        Ok(&self.block[..self.end])
    }

    /// Bytes of the file consumed so far, before decompression.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    fn read_into_block(&mut self) -> Result<usize, SourceError> {
        read_uninterrupted(&mut self.reader, &mut self.block[self.end..]).map_err(|error| self.failure(error))
    }

    /// Tells a failing disk from a file that its decoder refuses. The decoders' own words name no content.
    fn failure(&self, source: io::Error) -> SourceError {
        let path = self.path.clone();
        if source.get_ref().is_some_and(|inner| inner.is::<ChangedWhileRead>()) {
            return SourceError::Changed { path };
        }
        match self.packing {
            Some(packing) if source.raw_os_error().is_none() => {
                let format = packing.name();
                if source.kind() == ErrorKind::UnexpectedEof {
                    SourceError::Truncated { path, format }
                } else if packing == Packing::Zstd && source.to_string() == ZSTD_WINDOW {
                    let remedy = "it is not damaged: pack it anew without --long, or with --long=27";
                    SourceError::Unsupported { path, found: "zstd with a window of more than 128 MiB", remedy }
                } else {
                    SourceError::Damaged { path, format, reason: Some(source.to_string()) }
                }
            }
            None | Some(_) => SourceError::Io { path, source },
        }
    }
}

/// What zstd says of a frame whose window is larger than a decoder keeps unless told.
const ZSTD_WINDOW: &str = "Frame requires too much memory for decoding";

/// Reads again where a signal came between.
fn read_uninterrupted(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match reader.read(buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Packing {
    Gzip,
    Xz,
    Zstd,
}

impl Packing {
    fn of(first: &[u8]) -> Option<Self> {
        match first {
            [0x1F, 0x8B, 0x08, ..] => Some(Self::Gzip),
            [0xFD, b'7', b'z', b'X', b'Z', 0x00, ..] => Some(Self::Xz),
            // A frame, or a skippable frame before it as parallel compressors write.
            [0x28, 0xB5, 0x2F, 0xFD, ..] | [0x50..=0x5F, 0x2A, 0x4D, 0x18, ..] => Some(Self::Zstd),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Xz => "xz",
            Self::Zstd => "zstd",
        }
    }
}

/// Counts the bytes that pass, for the progress display.
struct CountingReader<R> {
    inner: R,
    bytes_read: Arc<AtomicU64>,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.bytes_read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Size and time of the last change.
type Stamp = (u64, Option<SystemTime>);

fn stamp_of(metadata: &Metadata) -> Option<Stamp> {
    // Of what is no file on a disk neither means anything.
    (metadata.is_file() && metadata.len() > 0).then(|| (metadata.len(), metadata.modified().ok()))
}

/// A file that must be at its end what it was when it was opened. A table that was still being written, or was cut off meanwhile, would
/// else be paid for and fitted as far as it was read.
struct WatchedFile {
    file: File,
    opened: Option<Stamp>,
}

impl Read for WatchedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        let is_at_end = count == 0 && !buffer.is_empty();
        if is_at_end && self.opened.is_some() && stamp_of(&self.file.metadata()?) != self.opened {
            return Err(io::Error::other(ChangedWhileRead));
        }
        Ok(count)
    }
}

#[derive(Debug, Error)]
#[error("the file changed while it was read")]
struct ChangedWhileRead;

/// Refuses a file that begins as Parquet and does not end so.
fn refuse_partial_parquet(mut file: &File, first: &[u8], path: &Path) -> Result<(), SourceError> {
    let failed = |source| SourceError::Io { path: path.to_owned(), source };
    let mut last = [0; 4];
    if file.seek(SeekFrom::End(0)).map_err(failed)? >= 12 {
        file.seek(SeekFrom::End(-4)).map_err(failed)?;
        file.read_exact(&mut last).map_err(failed)?;
    }
    if !first.starts_with(&last) {
        return Err(SourceError::Truncated { path: path.to_owned(), format: "Parquet" });
    }
    if &last == b"PARE" {
        return Err(SourceError::encrypted_parquet(path));
    }
    Ok(())
}

/// The first line of a file, or as much of it as was read.
#[derive(Clone, Copy)]
struct Beginning<'a> {
    /// With the lines behind it, for those who read past blank lines to a header.
    bytes: &'a [u8],
    line: &'a [u8],
    is_header: bool,
}

impl<'a> Beginning<'a> {
    fn of(first: &'a [u8], is_header: bool) -> Self {
        let length = first.iter().position(|byte| b"\r\n".contains(byte)).unwrap_or(first.len());
        Self { bytes: first, line: &first[..length], is_header }
    }

    /// Whether these are the letters of a format and no text: no format that is told by letters goes on in text. Some go on with what a
    /// text would read as a line end, and no table has a header of these letters alone.
    fn is_of_letters(self, letters: &[u8]) -> bool {
        let is_control = |byte: &u8| *byte < b' ' && *byte != b'\t';
        match self.line.strip_prefix(letters) {
            Some([]) => self.is_header,
            Some(rest) => rest.iter().any(is_control),
            None => false,
        }
    }

    /// Whether names are expected, and the first line that is not blank begins as JSON or JSON Lines do. What were taken for names would
    /// be a record. A name may stand in square brackets, as some databases write it.
    fn is_json(self) -> bool {
        let text = self.bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(self.bytes).trim_ascii_start();
        let begins_a_name = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_' || !byte.is_ascii();
        let is_json = match text {
            [b'{', ..] => true,
            [b'[', inside @ ..] => {
                let words: [&[u8]; 3] = [b"true", b"false", b"null"];
                let has_word = words.iter().any(|word| inside.starts_with(word));
                has_word || !inside.first().copied().is_some_and(begins_a_name)
            }
            _ => false,
        };
        self.is_header && is_json
    }
}

fn refuse_other_kinds(beginning: Beginning<'_>, path: &Path) -> Result<(), SourceError> {
    let zip_or_office = "unpack it, or save the sheet as CSV";
    let save_as_csv = "save the table as CSV or Parquet";
    let decompress = "decompress it, or use gzip, xz or zstd";
    let save_as_utf8 = "save it as UTF-8";
    // Each with a byte that no text begins with.
    let kinds: [(&[u8], &str, &str); 12] = [
        (b"PK\x03\x04", "a zip archive or an office document", zip_or_office),
        (b"PK\x05\x06", "an empty zip archive", zip_or_office),
        (b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", "an old office document", save_as_csv),
        (b"\x04\x22\x4D\x18", "an lz4 file", decompress),
        (b"7z\xBC\xAF\x27\x1C", "a 7z archive", decompress),
        (b"Rar!\x1A\x07", "a rar archive", decompress),
        (b"ARROW1\0\0", "an Arrow file", save_as_csv),
        (b"\x89HDF", "an HDF5 file", save_as_csv),
        (b"SQLite format 3\0", "an SQLite database", save_as_csv),
        (b"Obj\x01", "an Avro file", save_as_csv),
        (b"\xFF\xFE", "text in UTF-16", save_as_utf8),
        (b"\xFE\xFF", "text in UTF-16", save_as_utf8),
    ];
    let letters: [(&[u8], &str, &str); 2] =
        [(b"BZh91AY&SY", "a bzip2 file", decompress), (b"ORC", "an ORC file", save_as_csv)];
    let line = beginning.line;
    let found = kinds.iter().find(|(magic, ..)| line.starts_with(magic));
    let found = found.or_else(|| letters.iter().find(|(letters, ..)| beginning.is_of_letters(letters)));
    let mut found = found.map(|(_, found, remedy)| (*found, *remedy));
    // The name of the first file in it is filled up with zeros.
    if line.get(257..262) == Some(b"ustar") && line.contains(&0) {
        found = Some(("a tar archive", "unpack it"));
    }
    if beginning.is_json() {
        found = Some(("JSON", "convert it to CSV or Parquet"));
    }
    found.map_or(Ok(()), |(found, remedy)| Err(SourceError::Unsupported { path: path.to_owned(), found, remedy }))
}

/// How a text may begin without its being part of the first value.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Enough for every magic number; tar's is the furthest in.
const FIRST_BYTES: usize = 512;
/// Read from the disk, and decompressed, at a time.
const BLOCK_BYTES: usize = 256 * 1024;
/// The strongest usual setting of xz needs 65 MiB; a file may ask for 4 GiB.
const XZ_MEMORY_MAX: u64 = 512 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// All bytes of a file that something happens to after it is opened.
    fn read_after(happens: impl FnOnce(&Path)) -> Result<usize, SourceError> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("table.csv");
        std::fs::write(&path, vec![b'1'; 3 * BLOCK_BYTES]).expect("writes");
        let (Opened::Text(mut stream), _) = open(&path, true)? else { panic!("text") };
        happens(&path);
        let mut read = 0;
        loop {
            match stream.fill()?.len() {
                0 => return Ok(read),
                count => {
                    read += count;
                    stream.consume(count);
                }
            }
        }
    }

    #[test]
    fn a_file_that_changes_while_it_is_read_is_refused() {
        assert_eq!(read_after(|_| ()).expect("is read"), 3 * BLOCK_BYTES);
        let append = |path: &Path| {
            let file = File::options().append(true).open(path);
            file.and_then(|mut file| file.write_all(b"2\n")).expect("appends");
        };
        let cut = |path: &Path| File::options().write(true).open(path).and_then(|file| file.set_len(9)).expect("cuts");
        for refused in [read_after(append), read_after(cut)] {
            assert!(matches!(refused, Err(SourceError::Changed { .. })));
        }
        // Another file in its place is not the one that is read.
        let replaced = |path: &Path| {
            let other = path.with_extension("new");
            std::fs::write(&other, "3\n").and_then(|()| std::fs::rename(&other, path)).expect("replaces");
        };
        assert_eq!(read_after(replaced).expect("is read"), 3 * BLOCK_BYTES);
    }
}
