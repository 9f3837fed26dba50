//! The columns that are looked for in a file, and where they are found.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use reticent_core::adjacency::PrivacyUnit;
use reticent_core::schema::{Feature, FeatureKind, Schema, TargetKind, nearest_name};

use super::csv::CsvTable;
use super::{NamedIn, Need, SourceError};

/// What a column is read for, which decides the types it may have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A numeric feature, or a target with bounds.
    Number,
    /// A categorical feature, or a target with classes.
    Word,
    /// The privacy unit, or the event id.
    Key,
}

impl Role {
    pub(crate) fn expected(self) -> &'static str {
        match self {
            Self::Number => "a number, a boolean, a date or a time",
            Self::Word => "text, a boolean or a number",
            Self::Key => "text or a whole number",
        }
    }
}

/// A column that is looked for in the file.
pub(crate) struct WantedColumn<'s> {
    pub(crate) name: &'s str,
    pub(crate) role: Role,
    pub(crate) needed_by: &'static str,
    pub(crate) named_in: NamedIn,
}

/// The columns of a file, to find others among.
pub(crate) struct ColumnNames<'a> {
    pub(crate) path: &'a Path,
    pub(crate) names: &'a [String],
    /// Whether these are names for certain: a first line that is really a row must not be quoted.
    pub(crate) may_be_quoted: bool,
}

impl ColumnNames<'_> {
    /// Place of each wanted column in the file.
    pub(crate) fn resolve(&self, wanted: &[WantedColumn<'_>]) -> Result<Vec<usize>, SourceError> {
        let mut places: HashMap<&str, (usize, bool)> = HashMap::with_capacity(self.names.len());
        for (place, name) in self.names.iter().enumerate() {
            places.entry(name).and_modify(|(_, repeated)| *repeated = true).or_insert((place, false));
        }
        let resolve = |wanted: &WantedColumn<'_>| match places.get(wanted.name.trim_ascii()) {
            Some((place, false)) => Ok(*place),
            Some((_, true)) => Err(SourceError::DuplicateColumn {
                path: self.path.to_owned(),
                column: wanted.name.to_owned(),
                needed_by: wanted.needed_by,
            }),
            None => Err(self.missing(wanted)),
        };
        wanted.iter().map(resolve).collect()
    }

    fn missing(&self, wanted: &WantedColumn<'_>) -> SourceError {
        let names = if self.may_be_quoted { self.names } else { &[] };
        SourceError::MissingColumn {
            path: self.path.to_owned(),
            column: wanted.name.to_owned(),
            needed_by: wanted.needed_by,
            named_in: wanted.named_in,
            nearest: nearest_name(wanted.name, names.iter().map(String::as_str)).map(str::to_owned),
            columns: names.to_vec(),
        }
    }
}

/// The features that are read.
pub(super) fn needed_features(schema: &Schema, need: Need) -> &[Feature] {
    if need == Need::Target { &[] } else { schema.features() }
}

/// Features in order, then the target, then the unit's column: the slots of a row.
pub(super) fn wanted_columns(schema: &Schema, need: Need) -> Vec<WantedColumn<'_>> {
    let named_in = NamedIn::Schema;
    let features = needed_features(schema, need);
    let mut wanted = Vec::with_capacity(features.len() + 2);
    for feature in features {
        let (role, needed_by) = match &feature.kind {
            FeatureKind::Numeric { .. } => (Role::Number, "the schema lists as a feature with bounds"),
            FeatureKind::Categorical { .. } => (Role::Word, "the schema lists as a feature with categories"),
            FeatureKind::Hashed { .. } => (Role::Word, "the schema lists as a hashed feature"),
        };
        wanted.push(WantedColumn { name: &feature.name, role, needed_by, named_in });
    }
    if need != Need::Features {
        let (role, needed_by) = match &schema.target().kind {
            TargetKind::Classes(_) => (Role::Word, "the schema names as the target with classes"),
            TargetKind::Bounds { .. } => (Role::Number, "the schema names as the target with bounds"),
        };
        wanted.push(WantedColumn { name: &schema.target().column, role, needed_by, named_in });
        if let (Need::FeaturesAndTarget | Need::Target, PrivacyUnit::Column { column, .. }) =
            (need, &schema.privacy().unit)
        {
            let needed_by = "the schema names as the privacy unit";
            wanted.push(WantedColumn { name: column, role: Role::Key, needed_by, named_in });
        }
    }
    wanted
}

/// Finds the wanted columns by the header, or by the schema's own list when there is none.
pub(super) fn resolve_text_columns(
    path: &Path,
    table: &mut CsvTable,
    schema: &Schema,
    wanted: &[WantedColumn<'_>],
) -> Result<Vec<usize>, SourceError> {
    let declared = schema.table().columns.as_deref();
    if !schema.table().header {
        let names = declared.expect("a schema without a header names its columns");
        refuse_blank_labels(path, names, schema)?;
        return ColumnNames { path, names, may_be_quoted: true }.resolve(wanted);
    }
    let names = table.read_header()?.ok_or_else(|| SourceError::Empty { path: path.to_owned() })?;
    let is_wanted = |name: &String| wanted.iter().any(|wanted| wanted.name.trim_ascii() == name);
    let has_wanted = names.iter().any(is_wanted);
    if !has_wanted {
        refuse_line_above_header(path, &names)?;
    }
    if let Some(declared) = declared {
        check_declared_header(path, &names, declared)?;
    }
    refuse_blank_labels(path, &names, schema)?;
    if !has_wanted {
        let delimiter = schema.table().delimiter;
        return Err(SourceError::NotTheHeader {
            path: path.to_owned(),
            delimiter,
            likely_delimiter: likely_delimiter(&names, delimiter),
            in_other_capitals: wanted
                .iter()
                .map(|wanted| wanted.name.trim_ascii())
                .find(|wanted| names.iter().any(|name| name.eq_ignore_ascii_case(wanted)))
                .map(str::to_owned),
        });
    }
    // With a known name in it and no number this is a header and no row.
    let may_be_quoted = !names.iter().any(|name| !is_wanted(name) && is_number(name));
    ColumnNames { path, names: &names, may_be_quoted }.resolve(wanted)
}

/// A line without a known name that some programs write above the header. It is not passed over: what is read by one command and not by
/// another would be two tables.
fn refuse_line_above_header(path: &Path, names: &[String]) -> Result<(), SourceError> {
    refuse_delimiter_note(path, names)?;
    if names.first().is_some_and(|name| name.starts_with('#')) {
        let found = "a comment, which begins with #";
        return Err(SourceError::LineAboveHeader { path: path.to_owned(), found });
    }
    Ok(())
}

/// Refuses `sep=;`, which a spreadsheet reads as the delimiter of the lines below it, and writes there itself.
pub(crate) fn refuse_delimiter_note(path: &Path, names: &[String]) -> Result<(), SourceError> {
    // The delimiter itself ends the first name, or is the rest of it.
    let is_note =
        |name: &String| name.len() <= 5 && name.get(..4).is_some_and(|word| word.eq_ignore_ascii_case("sep="));
    if names.first().is_some_and(is_note) {
        let found = "a note of the delimiter for a spreadsheet (sep=)";
        return Err(SourceError::LineAboveHeader { path: path.to_owned(), found });
    }
    Ok(())
}

fn check_declared_header(path: &Path, names: &[String], declared: &[String]) -> Result<(), SourceError> {
    let path = || -> PathBuf { path.to_owned() };
    if names.len() != declared.len() {
        return Err(SourceError::HeaderLength { path: path(), found: names.len(), declared: declared.len() });
    }
    let differs = |(name, declared): (&String, &String)| name != declared.trim_ascii();
    match names.iter().zip(declared).position(differs) {
        None => Ok(()),
        Some(place) => {
            Err(SourceError::HeaderDiffers { path: path(), position: place + 1, declared: declared[place].clone() })
        }
    }
}

/// A line without a byte is not a row. In a table of labels alone it would be one whose label is spelt so; and where only labels are
/// private, the number of rows is public, and would tell how many have it.
fn refuse_blank_labels(path: &Path, names: &[String], schema: &Schema) -> Result<(), SourceError> {
    let target = schema.target();
    let is_blank = match &target.kind {
        TargetKind::Classes(classes) => classes.iter().flat_map(|class| &class.spellings).any(String::is_empty),
        TargetKind::Bounds { .. } => false,
    };
    match names {
        [only] if is_blank && only.trim_ascii() == target.column.trim_ascii() => {
            Err(SourceError::BlankLabels { path: path.to_owned(), column: target.column.clone() })
        }
        _ => Ok(()),
    }
}

/// A usual delimiter that occurs in the only field of the first line.
fn likely_delimiter(names: &[String], declared: u8) -> Option<u8> {
    let [only] = names else { return None };
    let occurs = |delimiter: &u8| *delimiter != declared && only.as_bytes().contains(delimiter);
    USUAL_DELIMITERS.into_iter().find(occurs)
}

/// The delimiters that tables usually have, the usual first.
pub(crate) const USUAL_DELIMITERS: [u8; 4] = *b",;\t|";

/// Whether a name is a number, which makes the line it stands in suspect of being a row.
pub(crate) fn is_number(name: &str) -> bool {
    name.parse::<f64>().is_ok_and(|number| !number.is_nan())
}
