//! Bytes as text: how fingerprints, seals and identities of ledgers are written.

/// Two lower-case hexadecimal digits a byte.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
