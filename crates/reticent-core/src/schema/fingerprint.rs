//! The fingerprint of a schema: one hash of all that it says, whoever wrote it and however.

use sha2::{Digest, Sha256};

use super::{Feature, FeatureKind, Privacy, Schema, TableFormat, Target, TargetKind, TextFormat};
use crate::adjacency::PrivacyUnit;
use crate::hex::hex;

impl Schema {
    /// SHA-256 of a canonical serialisation, as 64 lower-case hexadecimal digits.
    ///
    /// Equal schemas have equal fingerprints, however their texts were written. The serialisation starts with its
    /// version, and every list and text with its length, so that different schemas serialise differently.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let mut canonical = Canonical(Sha256::new());
        canonical.text("reticent schema 1");
        canonical.privacy(&self.0.privacy);
        canonical.table(&self.0.table);
        canonical.target(&self.0.target);
        canonical.count(self.0.features.len());
        for feature in &self.0.features {
            canonical.feature(feature);
        }
        hex(&canonical.0.finalize())
    }

    /// The same of all but the declared number of units ([`Privacy::rows`]), on which no value of a row depends.
    #[must_use]
    pub fn fingerprint_without_rows(&self) -> String {
        let mut parts = self.0.clone();
        parts.privacy.rows = None;
        Self(parts).fingerprint()
    }
}

/// Writes a schema for the fingerprint: numbers in eight bytes, least first; texts and lists after their length; a byte
/// for each choice.
struct Canonical(Sha256);

impl Canonical {
    fn privacy(&mut self, privacy: &Privacy) {
        match &privacy.unit {
            PrivacyUnit::Row => self.choice(0),
            PrivacyUnit::Column { column, rows_max } => {
                self.choice(1);
                self.text(column);
                self.integer(u64::from(*rows_max));
            }
        }
        self.text(privacy.adjacency.name());
        self.optional(privacy.rows, Self::integer);
        self.integer(privacy.rows_max);
        self.optional(privacy.row_norm, Self::number);
    }

    fn table(&mut self, table: &TableFormat) {
        match table.format {
            TextFormat::Delimited => self.choice(u8::from(table.header)),
            TextFormat::Libsvm => self.choice(2),
        }
        self.optional(table.columns.as_deref(), Self::texts);
        self.choice(table.delimiter);
        self.texts(&table.missing);
        // After the list and before the target's name, whose length never has this first byte: schemas without it keep their
        // fingerprints.
        if let Some(most) = table.nonzeros_max {
            self.integer(u64::MAX);
            self.integer(u64::from(most));
        }
    }

    fn target(&mut self, target: &Target) {
        self.text(&target.column);
        match &target.kind {
            TargetKind::Classes(classes) => {
                self.choice(0);
                self.count(classes.len());
                classes.iter().for_each(|class| self.texts(&class.spellings));
            }
            TargetKind::Bounds { low, high } => {
                self.choice(1);
                self.number(*low);
                self.number(*high);
            }
        }
    }

    fn feature(&mut self, feature: &Feature) {
        self.text(&feature.name);
        match &feature.kind {
            FeatureKind::Numeric { low, high, missing, log } => {
                self.choice(0);
                [*low, *high, *missing].into_iter().for_each(|number| self.number(number));
                self.choice(u8::from(*log));
            }
            FeatureKind::Categorical { categories, missing } => {
                self.choice(1);
                self.texts(categories);
                self.count(*missing);
            }
            FeatureKind::Hashed { buckets } => {
                self.choice(2);
                self.count(*buckets);
            }
        }
    }

    fn choice(&mut self, choice: u8) {
        self.0.update([choice]);
    }

    fn integer(&mut self, integer: u64) {
        self.0.update(integer.to_le_bytes());
    }

    fn count(&mut self, count: usize) {
        self.integer(count as u64);
    }

    fn number(&mut self, number: f64) {
        self.integer(number.to_bits());
    }

    fn text(&mut self, text: &str) {
        self.count(text.len());
        self.0.update(text.as_bytes());
    }

    fn texts(&mut self, texts: &[String]) {
        self.count(texts.len());
        texts.iter().for_each(|text| self.text(text));
    }

    fn optional<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.choice(u8::from(value.is_some()));
        if let Some(value) = value {
            write(self, value);
        }
    }
}
