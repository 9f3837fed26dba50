//! The writer of the schema's text: what equals its default is left out.

use std::fmt::Write as _;

use crate::adjacency::PrivacyUnit;
use crate::schema::toml_spelling::{grouped, spelling_writer};
use crate::schema::{
    FeatureKind, MISSING_DEFAULT, Privacy, ROWS_MAX_DEFAULT, TableFormat, Target, TargetKind, TextFormat,
    number_spelling, toml_key, toml_list, toml_string,
};

pub(super) fn write_privacy(text: &mut String, privacy: &Privacy) {
    text.push_str("[privacy]\n");
    match &privacy.unit {
        PrivacyUnit::Row => text.push_str("unit = \"row\"\n"),
        PrivacyUnit::Column { column, rows_max } => {
            push_line(text, format_args!("unit = {{ column = {}, rows_max = {rows_max} }}", toml_string(column)));
        }
    }
    push_line(text, format_args!("adjacency = {}", toml_string(privacy.adjacency.name())));
    if let Some(rows) = privacy.rows {
        push_line(text, format_args!("rows = {}", grouped(rows)));
    }
    if privacy.rows_max != ROWS_MAX_DEFAULT {
        push_line(text, format_args!("rows_max = {}", grouped(privacy.rows_max)));
    }
    if let Some(norm) = privacy.row_norm {
        push_line(text, format_args!("row_norm = {}", number_spelling(norm)));
    }
}

pub(super) fn write_table(text: &mut String, table: &TableFormat) {
    if *table == TableFormat::default() {
        return;
    }
    text.push_str("\n[table]\n");
    if table.format != TextFormat::default() {
        push_line(text, format_args!("format = {}", toml_string(table.format.name())));
    }
    if let Some(most) = table.nonzeros_max {
        push_line(text, format_args!("nonzeros_max = {most}"));
    }
    if !table.header {
        text.push_str("header = false\n");
    }
    if let Some(columns) = &table.columns {
        let columns: Vec<String> = columns.iter().map(|column| toml_string(column)).collect();
        push_line(text, format_args!("columns = {}", toml_list(&columns, "columns = ".len())));
    }
    if table.delimiter != b',' {
        let delimiter = char::from(table.delimiter).to_string();
        push_line(text, format_args!("delimiter = {}", toml_string(&delimiter)));
    }
    if table.missing != MISSING_DEFAULT {
        let missing: Vec<String> = table.missing.iter().map(|spelling| toml_string(spelling)).collect();
        push_line(text, format_args!("missing = {}", toml_list(&missing, "missing = ".len())));
    }
}

pub(super) fn write_target(text: &mut String, target: &Target) {
    push_line(text, format_args!("\n[target]\ncolumn = {}", toml_string(&target.column)));
    match &target.kind {
        TargetKind::Bounds { low, high } => {
            push_line(text, format_args!("bounds = [{}, {}]", number_spelling(*low), number_spelling(*high)));
        }
        TargetKind::Classes(classes) => {
            let every = classes.iter().flat_map(|class| &class.spellings);
            let write = spelling_writer(every);
            let classes: Vec<String> = classes
                .iter()
                .map(|class| {
                    let spellings: Vec<String> = class.spellings.iter().map(|spelling| write(spelling)).collect();
                    match &spellings[..] {
                        [only] => only.clone(),
                        several => format!("[{}]", several.join(", ")),
                    }
                })
                .collect();
            push_line(text, format_args!("classes = {}", toml_list(&classes, "classes = ".len())));
        }
    }
}

pub(super) fn write_feature(text: &mut String, name: &str, kind: &FeatureKind) {
    let key = toml_key(name);
    match kind {
        FeatureKind::Numeric { low, high, missing, log } => {
            let mut line = format!("{key} = {{ bounds = [{}, {}]", number_spelling(*low), number_spelling(*high));
            // Compared by bits: a default is left out only when reading makes the very same number again.
            if missing.to_bits() != FeatureKind::missing_default(*low, *high).to_bits() {
                line.push_str(&format!(", missing = {}", number_spelling(*missing)));
            }
            if *log != FeatureKind::log_default(*low, *high) {
                line.push_str(&format!(", log = {log}"));
            }
            push_line(text, format_args!("{line} }}"));
        }
        FeatureKind::Categorical { categories, missing } => {
            let write = spelling_writer(categories.iter());
            let written: Vec<String> = categories.iter().map(|category| write(category)).collect();
            let start = format!("{key} = {{ categories = ");
            let mut line = format!("{start}{}", toml_list(&written, start.len()));
            if let Some(category) = missing.checked_sub(1).and_then(|index| written.get(index)) {
                line.push_str(&format!(", missing = {category}"));
            }
            push_line(text, format_args!("{line} }}"));
        }
        FeatureKind::Hashed { buckets } => {
            push_line(text, format_args!("{key} = {{ hash_buckets = {buckets} }}"));
        }
    }
}

fn push_line(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("writing to a String cannot fail");
}
