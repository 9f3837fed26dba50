//! Seals of a ledger's rows: each entry's contains the one before, so that a later change of any row shows.
//!
//! ```text
//!   seal_0 = H("ledger", id, made, promises)        seal_n = H("entry", seal_{n-1}, n, nonce, time, request, prices)
//!   limit: H("budget", seal_0, epsilon, delta, set_at)       answer: H("answer", seal_0, query, entry, release)
//! ```
//! `H` is SHA-256 over the parts, each with its length before it. Who may write the file can compute all seals anew, so that
//! only a seal that is kept elsewhere, as every certificate keeps that of its entry, proves that nothing before it changed.

use reticent_core::hex::hex;
use sha2::{Digest, Sha256};

/// 64 hexadecimal digits.
pub(super) type Seal = String;

/// Of the ledger itself; `promises` in the order of their texts.
pub(super) fn of_ledger(id: &str, made: &str, promises: &[String]) -> Seal {
    let mut parts = vec!["ledger", id, made];
    parts.extend(promises.iter().map(String::as_str));
    hash(&parts)
}

/// Of an entry. The nonce is random: two histories that bought the same in the same second have different seals. `prices` are (relation, price) in the order of the relations' texts.
pub(super) fn of_entry(
    previous: &str,
    number: i64,
    nonce: &str,
    time: &str,
    request: &str,
    prices: &[(String, String)],
) -> Seal {
    let number = number.to_string();
    let mut parts = vec!["entry", previous, &number, nonce, time, request];
    parts.extend(prices.iter().flat_map(|(relation, price)| [relation.as_str(), price.as_str()]));
    hash(&parts)
}

/// Of the limit.
pub(super) fn of_budget(ledger: &str, epsilon: f64, delta: f64, set_at: &str) -> Seal {
    let bits = |value: f64| format!("{:016x}", value.to_bits());
    hash(&["budget", ledger, &bits(epsilon), &bits(delta), set_at])
}

/// Of an answer that is kept.
pub(super) fn of_answer(ledger: &str, query: &str, entry: i64, release: &str) -> Seal {
    hash(&["answer", ledger, query, &entry.to_string(), release])
}

fn hash(parts: &[&str]) -> Seal {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    hex(&hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `testdata/golden/ledger_seal.py`.
    #[test]
    fn seals_are_those_of_the_independent_implementation() {
        let ledger = of_ledger("00ff", "2026-01-02T03:04:05Z", &["row:add-remove".to_owned()]);
        assert_eq!(ledger, LEDGER);
        let prices = [("row:add-remove".to_owned(), "12".to_owned())];
        assert_eq!(of_entry(&ledger, 1, "5a", "2026-01-02T03:04:06Z", "{}", &prices), ENTRY);
        assert_eq!(of_budget(&ledger, 1.5, 1e-6, "2026-01-02T03:04:07Z"), BUDGET);
        assert_eq!(of_answer(&ledger, "ab", 1, "{}"), ANSWER);
    }

    #[test]
    fn parts_cannot_be_shifted_into_each_other() {
        let one = of_entry("s", 1, "n", "t", "ab", &[("c".to_owned(), "1".to_owned())]);
        for other in [
            of_entry("s", 1, "n", "t", "a", &[("bc".to_owned(), "1".to_owned())]),
            of_entry("s", 1, "n", "t", "abc", &[(String::new(), "1".to_owned())]),
            of_entry("s", 11, "n", "t", "ab", &[("c".to_owned(), "1".to_owned())]),
            of_entry("s", 1, "n", "t", "ab", &[]),
        ] {
            assert_ne!(one, other);
        }
    }

    const LEDGER: &str = "90e108597cbec552b8d1a73484c06018c30ccb7c17a3b68f636ebdc74c67e7e0";
    const ENTRY: &str = "6f8efb77b8e271e22ca3eb9df4688bbdfa6d491ad1aa85f5b0626830b261a16a";
    const BUDGET: &str = "01a625030c189c365c9d4b6202363abf4f1d2a8f3588205c1543b9fb55c22c47";
    const ANSWER: &str = "a4fdc12612f548fa3a38ed80c7f241fb07cd4ab4b52ea13b144e4263db71be57";
}
