//! A schema that was checked, as text.

use std::fmt::Write;

use reticent_core::coding::Coding;
use reticent_core::encoding::Encoding;
use reticent_core::schema::{Schema, TargetKind};

use super::printable;

/// What a schema that is complete says.
pub(crate) fn schema(schema: &Schema) -> String {
    let coding = Coding::of(schema);
    let columns = coding.columns().len();
    let norm = Encoding::largest_norm(&coding, &vec![0.0; columns], &vec![1.0; columns]);
    let mut text = String::new();
    line!(text, "The schema is complete.");
    line!(text, "Protects: {}", printable(&schema.relation().to_string()));
    let target = match &schema.target().kind {
        TargetKind::Classes(classes) => {
            classes.iter().map(|class| printable(&class.name)).collect::<Vec<_>>().join(" / ")
        }
        TargetKind::Bounds { low, high } => format!("a number in [{low}, {high}]"),
    };
    line!(text, "Target: {} ({target})", printable(&schema.target().column));
    let shortened = match schema.privacy().row_norm {
        Some(declared) if declared < norm => format!("; longer than row_norm, {declared}, some methods shorten them"),
        Some(_) | None => String::new(),
    };
    line!(
        text,
        "Features: {} ({columns} encoded columns with the intercept, row norm at most {norm:.4}{shortened})",
        schema.features().len()
    );
    match schema.privacy().rows {
        Some(rows) => line!(text, "Rows: about {rows}, declared public"),
        None if schema.relation().has_public_row_number() => {
            line!(text, "Rows: not declared; public under this adjacency, so a fit counts them");
        }
        None => line!(text, "Rows: not declared; a fit that needs their number buys it with some of its budget"),
    }
    line!(text, "Fingerprint: {}", schema.fingerprint());
    text
}
