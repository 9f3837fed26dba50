//! A temporary file without a name, under a key that only this process has: where rows lie that the memory does not hold.
//!
//! ```text
//!   write: block ─▶ keystream(key of this writing, number of the block) ─▶ disk          read: the same backwards, in order
//! ```
//! The file has no name in its folder from the moment it is made (on Windows: the system deletes it when the process ends), so
//! that nothing of it is left when the process ends in any way. It is encrypted with AES-256 in counter mode (FIPS 197, NIST SP
//! 800-38A), for which processors have instructions: every pass decrypts every row. The key comes from the operating system and is nowhere but in memory; every writing of the file has
//! a key of its own, so that no keystream is used twice. There is no authentication: who can change the file of a running
//! process can change its memory.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use aes::Aes256;
use ctr::Ctr32BE;
use ctr::cipher::{KeyIvInit, StreamCipher};
use thiserror::Error;

/// A folder for scratch files, and whether they are encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScratchPlace {
    folder: PathBuf,
    encrypted: bool,
}

/// Rows that could not be laid down or fetched again. Messages name the folder and the system's reason: public facts.
#[derive(Debug, Error)]
pub enum ScratchError {
    /// The folder does not take files.
    #[error("{}: cannot make a scratch file here: {error}; name another folder with --scratch", folder.display())]
    Create {
        /// The folder.
        folder: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// The folder is not on a disk.
    #[error(
        "{}: this folder is kept in memory (tmpfs), which --memory is to spare; name a folder on a disk with --scratch",
        folder.display()
    )]
    InMemory {
        /// The folder.
        folder: PathBuf,
    },
    /// The disk is full or failed.
    #[error("{}: writing the scratch file: {error}; name a folder with more room with --scratch", folder.display())]
    Write {
        /// The folder.
        folder: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// The disk failed.
    #[error("{}: reading the scratch file: {error}", folder.display())]
    Read {
        /// The folder.
        folder: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// The operating system gave no random bits for a key.
    #[error("the operating system gave no randomness for the key of the scratch file: {0}")]
    Entropy(getrandom::Error),
}

impl ScratchPlace {
    /// Encrypted files in a folder.
    #[must_use]
    pub fn encrypted(folder: PathBuf) -> Self {
        Self { folder, encrypted: true }
    }

    /// Files in a folder as they are, for a disk that is encrypted itself.
    #[must_use]
    pub fn unencrypted(folder: PathBuf) -> Self {
        Self { folder, encrypted: false }
    }

    /// The folder where large temporary files belong: `TMPDIR` where it is set, else `/var/tmp` where there is one, because
    /// `/tmp` often lies in memory, else the system's folder of temporary files.
    #[must_use]
    pub fn usual_folder() -> PathBuf {
        let large = Path::new("/var/tmp");
        if cfg!(unix) && std::env::var_os("TMPDIR").is_none() && large.is_dir() {
            return large.to_owned();
        }
        std::env::temp_dir()
    }

    /// Makes an empty file.
    pub(crate) fn create(&self) -> Result<ScratchFile, ScratchError> {
        let failed = |error| ScratchError::Create { folder: self.folder.clone(), error };
        let file = tempfile::tempfile_in(&self.folder).map_err(failed)?;
        if is_in_memory(&file) {
            return Err(ScratchError::InMemory { folder: self.folder.clone() });
        }
        expect_reading_in_order(&file);
        Ok(ScratchFile { place: self.clone(), file: Mutex::new(file) })
    }
}

/// A file without a name, written and read in whole blocks.
pub(crate) struct ScratchFile {
    place: ScratchPlace,
    file: Mutex<File>,
}

/// What turns the bytes of one writing of a file into those on the disk and back. Not `Clone`, no `Debug`: it is a key.
pub(crate) struct Keystream {
    /// `None` for a file that is not encrypted.
    key: Option<[u8; 32]>,
}

impl Keystream {
    /// Turns the bytes of block `number` into those on the disk, or back. A block is written once under one keystream.
    pub(crate) fn apply(&self, number: u64, bytes: &mut [u8]) {
        let Some(key) = &self.key else { return };
        // The last four bytes count: 64 GiB, far above any block.
        let mut first_counter = [0; 16];
        first_counter[..8].copy_from_slice(&number.to_le_bytes());
        Ctr32BE::<Aes256>::new(key.into(), &first_counter.into()).apply_keystream(bytes);
    }
}

impl ScratchFile {
    /// The keystream of a new writing of this file, under a key that was never used.
    pub(crate) fn new_keystream(&self) -> Result<Keystream, ScratchError> {
        if !self.place.encrypted {
            return Ok(Keystream { key: None });
        }
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(ScratchError::Entropy)?;
        Ok(Keystream { key: Some(key) })
    }

    /// Writes bytes at a place, in any order.
    pub(crate) fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), ScratchError> {
        let mut file = self.lock();
        file.seek(SeekFrom::Start(offset)).and_then(|_| file.write_all(bytes)).map_err(|error| self.write_error(error))
    }

    /// Reads bytes at a place.
    pub(crate) fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), ScratchError> {
        let mut file = self.lock();
        file.seek(SeekFrom::Start(offset)).and_then(|_| file.read_exact(bytes)).map_err(|error| self.read_error(error))
    }

    /// Reads the next bytes; [`Self::rewind`] comes first.
    pub(crate) fn read_next(&self, bytes: &mut [u8]) -> Result<(), ScratchError> {
        self.lock().read_exact(bytes).map_err(|error| self.read_error(error))
    }

    /// Goes back to the beginning, to read everything in order.
    pub(crate) fn rewind(&self) -> Result<(), ScratchError> {
        self.lock().rewind().map_err(|error| self.read_error(error))
    }

    /// Takes room on the disk for the first `bytes`, so that writing them later does not find the disk full.
    ///
    /// Where the file system cannot promise room it is filled, with bytes that no compression shortens.
    pub(crate) fn reserve(&self, bytes: u64) -> Result<(), ScratchError> {
        if bytes == 0 {
            return Ok(());
        }
        match allocate(&self.lock(), bytes) {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(error) => return Err(self.write_error(error)),
        }
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(ScratchError::Entropy)?;
        let filling = Keystream { key: Some(key) };
        let mut part = vec![0; FILL_BYTES];
        for number in 0..bytes.div_ceil(FILL_BYTES as u64) {
            let offset = number * FILL_BYTES as u64;
            let length = (bytes - offset).min(FILL_BYTES as u64) as usize;
            filling.apply(number, &mut part);
            self.write_at(offset, &part[..length])?;
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, File> {
        // A panic in between cannot leave more than a position, and every use sets its own.
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_error(&self, error: io::Error) -> ScratchError {
        ScratchError::Write { folder: self.place.folder.clone(), error }
    }

    pub(crate) fn read_error(&self, error: io::Error) -> ScratchError {
        ScratchError::Read { folder: self.place.folder.clone(), error }
    }
}

/// Bytes that are written at once to take room.
const FILL_BYTES: usize = 1 << 20;

/// Whether room was taken; `false` where the file system has no way to.
#[cfg(target_os = "linux")]
fn allocate(file: &File, bytes: u64) -> io::Result<bool> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::Errno;

    loop {
        match fallocate(file, FallocateFlags::empty(), 0, bytes) {
            Ok(()) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn allocate(_file: &File, _bytes: u64) -> io::Result<bool> {
    Ok(false)
}

/// Lets the system read further ahead. It is advice: that it is not taken is no error.
#[cfg(target_os = "linux")]
fn expect_reading_in_order(file: &File) {
    let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::Sequential);
}

#[cfg(not(target_os = "linux"))]
fn expect_reading_in_order(_file: &File) {}

#[cfg(target_os = "linux")]
fn is_in_memory(file: &File) -> bool {
    /// Magic numbers of tmpfs and ramfs: statfs(2).
    const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];
    // The type has another width and sign on other machines; its low 32 bits are the number.
    rustix::fs::fstatfs(file).is_ok_and(|system| IN_MEMORY.contains(&(system.f_type as u64 & 0xffff_ffff)))
}

#[cfg(not(target_os = "linux"))]
fn is_in_memory(_file: &File) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> ScratchPlace {
        // Not the folder of temporary files, which may lie in memory.
        ScratchPlace::encrypted(PathBuf::from(env!("CARGO_MANIFEST_DIR")))
    }

    #[test]
    fn blocks_come_back_in_order_and_are_not_on_the_disk_as_they_are() {
        for (place, hidden) in [(place(), true), (ScratchPlace { encrypted: false, ..place() }, false)] {
            let file = place.create().expect("a folder on a disk");
            let keystream = file.new_keystream().expect("randomness");
            let blocks: Vec<Vec<u8>> = (0..5u8).map(|number| vec![number; 1000]).collect();
            // Out of order, as threads write.
            for number in [3, 0, 4, 1, 2] {
                let mut bytes = blocks[number].clone();
                keystream.apply(number as u64, &mut bytes);
                file.write_at(number as u64 * 1000, &bytes).expect("there is room");
            }
            file.rewind().expect("seekable");
            let mut found = Vec::new();
            for (number, block) in blocks.iter().enumerate() {
                let mut bytes = vec![0; 1000];
                file.read_next(&mut bytes).expect("was written");
                assert_eq!(&bytes != block, hidden);
                found.push(bytes.clone());
                keystream.apply(number as u64, &mut bytes);
                assert!(&bytes == block, "block {number}");
            }
            found.sort();
            found.dedup();
            assert_eq!(found.len(), 5, "equal or not, blocks differ on the disk");
            assert!(matches!(file.read_next(&mut [0]), Err(ScratchError::Read { .. })), "nothing follows");
        }
    }

    /// Two writings under one key would tell the difference of what was written.
    #[test]
    fn every_writing_has_a_key_of_its_own() {
        let file = place().create().expect("a folder on a disk");
        let streams = [file.new_keystream(), file.new_keystream()].map(|stream| {
            let mut bytes = [0; 64];
            stream.expect("randomness").apply(7, &mut bytes);
            bytes
        });
        assert_ne!(streams[0], streams[1]);
    }

    /// Counters 0, 1 and 2 under a key of zeros: `H` of test case 13, and the masks of the tag and of the first block of test case 14,
    /// McGrew, Viega, "The Galois/Counter Mode of Operation", appendix B. With a number of a block: `openssl enc -aes-256-ctr` of
    /// zeros, with key `-K 000102...1f` and counter `-iv efcdab8967452301` followed by zeros.
    #[test]
    fn the_cipher_is_the_published_one() {
        let zeros = Keystream { key: Some([0; 32]) };
        let mut bytes = [0; 48];
        zeros.apply(0, &mut bytes);
        let published = [
            0xdc95_c078_a240_8989_ad48_a214_9284_2087_u128,
            0x530f_8afb_c745_36b9_a963_b4f1_c4cb_738b,
            0xcea7_403d_4d60_6b6e_074e_c5d3_baf3_9d18,
        ];
        assert_eq!(bytes[..], published.map(u128::to_be_bytes).concat());
        let numbered = Keystream { key: Some(std::array::from_fn(|place| place as u8)) };
        let mut bytes = [0; 32];
        numbered.apply(0x0123_4567_89ab_cdef, &mut bytes);
        let by_openssl = [0x99cb_4b61_876d_0a5f_b7f8_969a_516a_da4d_u128, 0x7599_28fb_add1_d69a_2da3_3876_15b4_e4a4];
        assert_eq!(bytes[..], by_openssl.map(u128::to_be_bytes).concat());
    }

    #[test]
    fn room_is_taken_at_once() {
        let file = place().create().expect("a folder on a disk");
        file.reserve(0).expect("nothing");
        file.reserve(3 * FILL_BYTES as u64 + 1).expect("there is room");
        assert_eq!(file.lock().metadata().expect("open").len(), 3 * FILL_BYTES as u64 + 1);
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let folder = PathBuf::from("no").join("such");
        let error = ScratchPlace::encrypted(folder).create().err().expect("not there");
        assert!(error.to_string().starts_with("no/such: cannot make a scratch file here: "), "{error}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_folder_in_memory_is_refused() {
        let folder = PathBuf::from("/dev/shm");
        if folder.is_dir() {
            let error = ScratchPlace::encrypted(folder).create().err().expect("tmpfs");
            assert!(matches!(error, ScratchError::InMemory { .. }), "{error}");
        }
    }
}
