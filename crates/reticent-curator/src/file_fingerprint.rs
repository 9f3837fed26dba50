//! The fingerprint of a file that is public: which rows were voted on, which a fit started from.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use reticent_core::hex::hex;
use sha2::{Digest, Sha256};

/// SHA-256 of a file's bytes: what `sha256sum` prints.
///
/// # Errors
/// When the file cannot be read.
pub fn file_fingerprint(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let (mut digest, mut block) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        let read = file.read(&mut block)?;
        if read == 0 {
            return Ok(hex(&digest.finalize()));
        }
        digest.update(&block[..read]);
    }
}
