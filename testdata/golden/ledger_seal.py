"""Seals of ledger rows (crates/reticent-curator/src/ledger_file/seal.rs), by hashlib and struct alone."""
import hashlib
import struct


def seal(*parts):
    text = b"".join(struct.pack(">Q", len(part.encode())) + part.encode() for part in parts)
    return hashlib.sha256(text).hexdigest()


def bits(value):
    return struct.pack(">d", value).hex()


ledger = seal("ledger", "00ff", "2026-01-02T03:04:05Z", "row:add-remove")
print("LEDGER", ledger)
print("ENTRY ", seal("entry", ledger, "1", "5a", "2026-01-02T03:04:06Z", "{}", "row:add-remove", "12"))
print("BUDGET", seal("budget", ledger, bits(1.5), bits(1e-6), "2026-01-02T03:04:07Z"))
print("ANSWER", seal("answer", ledger, "ab", "1", "{}"))
