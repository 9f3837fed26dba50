//! Generated schemas and rows, adversarial ones among them.

use proptest::prelude::*;
use reticent_core::record::{Cell, Label};
use reticent_core::schema::{FeatureKind, Schema};

/// A schema with `numeric` features in `[0, 10]`, `categorical` ones of three categories, two classes, and the given privacy
/// section.
///
/// # Panics
/// When the privacy section is not legal TOML for a schema.
#[must_use]
pub fn schema(numeric: usize, categorical: usize, privacy: &str) -> Schema {
    let mut text = format!("[privacy]\n{privacy}\n[target]\ncolumn = \"y\"\nclasses = [\"no\", \"yes\"]\n[features]\n");
    for feature in 0..numeric {
        text.push_str(&format!("x{feature} = {{ bounds = [0, 10] }}\n"));
    }
    for feature in 0..categorical {
        text.push_str(&format!("k{feature} = {{ categories = [\"a\", \"b\", \"c\"] }}\n"));
    }
    Schema::from_text(&text).expect("the generated schema is legal")
}

/// A row as plain values, so that tests can clone and print it: generated rows are nobody's.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratedRow {
    /// One value a feature: a number, or the index of a category.
    pub values: Vec<f64>,
    /// Class 0 or 1; `None` for an unusable label.
    pub class: Option<u16>,
}

impl GeneratedRow {
    /// The row's cells under a schema.
    #[must_use]
    pub fn cells(&self, schema: &Schema) -> Vec<Cell> {
        let cell = |(value, feature): (&f64, &reticent_core::schema::Feature)| match feature.kind {
            FeatureKind::Numeric { low, high, .. } => Cell::Number(value.clamp(low, high)),
            FeatureKind::Categorical { .. } | FeatureKind::Hashed { .. } => Cell::Category(*value as u32),
        };
        self.values.iter().zip(schema.features()).map(cell).collect()
    }

    /// The row's label.
    #[must_use]
    pub fn label(&self) -> Label {
        self.class.map_or(Label::Unusable, Label::Class)
    }
}

/// Rows for [`schema`]: corners of the bounds are as likely as their inside, and labels may be unusable.
pub fn rows(
    numeric: usize,
    categorical: usize,
    count: std::ops::Range<usize>,
) -> impl Strategy<Value = Vec<GeneratedRow>> {
    let number = prop_oneof![Just(0.0), Just(10.0), 0.0..10.0f64];
    let category = (0..4u32).prop_map(f64::from);
    let values = (prop::collection::vec(number, numeric), prop::collection::vec(category, categorical));
    let class = prop_oneof![Just(Some(0)), Just(Some(1)), Just(None)];
    let row = (values, class).prop_map(|((mut values, categories), class)| {
        values.extend(categories);
        GeneratedRow { values, class }
    });
    prop::collection::vec(row, count)
}
