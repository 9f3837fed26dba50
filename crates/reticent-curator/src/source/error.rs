//! Why a table could not be read: public facts only.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use crate::out_of_memory::OutOfMemory;

/// A table that cannot be read.
///
/// Every case is a fact about the file as a whole (its header, its metadata, its compression, the disk), never about a
/// row: the messages hold no value, no row number and no count, and no case arises from the value of a cell.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The coded rows do not fit.
    #[error("not enough memory for the table; use a machine with more memory, or list fewer features")]
    OutOfMemory,
    /// There is no such file.
    #[error(
        "there is no file {}; {}",
        path.display(),
        if path.as_os_str() == "-" { "a table from a pipe is /dev/stdin" } else { "check the spelling and the folder" }
    )]
    NotFound {
        /// What was to be read.
        path: PathBuf,
    },
    /// The path leads to a folder.
    #[error("{} is a folder; name one CSV, libsvm or Parquet file", path.display())]
    Directory {
        /// What was to be read.
        path: PathBuf,
    },
    /// A typed table under a schema for rows that list their values.
    #[error(
        "{} is a Parquet file, whose rows have every value in its place, but the schema says that rows list those that are not \
         0; write nonzeros_max = 0 under [table] in the schema, or give the table as libsvm text",
        path.display()
    )]
    RowsWithoutLists {
        /// What was to be read.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error("cannot read {}: {source}; check that the file can be read and that its disk is in order", path.display())]
    Io {
        /// What was being read.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file without even a header.
    #[error(
        "{} is empty, but a header line is expected; give the complete file, or write header = false and columns = \
         [..] under [table] in the schema if it has no header",
        path.display()
    )]
    Empty {
        /// What was read.
        path: PathBuf,
    },
    /// The first line cannot be a header.
    #[error(
        "the first line of {} is too long for a header; check that this is a CSV or Parquet file and that the quotes \
         in its first line are closed",
        path.display()
    )]
    HeaderTooLong {
        /// What was read.
        path: PathBuf,
    },
    /// A quotation of the first line goes on in the next, which may be a row: nothing of it is quoted or counted.
    #[error(
        "a quote in the first line of {} is not closed there, and a header is one line; close it, or write the file anew with \
         names that hold no line break",
        path.display()
    )]
    HeaderNotClosed {
        /// What was read.
        path: PathBuf,
    },
    /// None of the wanted columns is in the first line, which may be a row: it is not quoted.
    #[error(
        "none of the schema's columns is in the first line of {}; {}",
        path.display(),
        delimiter_advice(*delimiter, *likely_delimiter)
            .or_else(|| capitals_advice(in_other_capitals.as_deref()))
            .unwrap_or_else(|| {
                "either the schema belongs to another table, or the file has no header: then write header = false and \
                 columns = [..] under [table] in the schema, or format = \"libsvm\" if it is one of libsvm".to_owned()
            })
    )]
    NotTheHeader {
        /// What was read.
        path: PathBuf,
        /// The delimiter that the schema declares.
        delimiter: u8,
        /// Another delimiter that occurs in a first line where the declared one does not.
        likely_delimiter: Option<u8>,
        /// A column of the schema whose name is there but for capitals.
        in_other_capitals: Option<String>,
    },
    /// A line that some programs write above the header, and in which is none of the wanted columns. It is not quoted.
    #[error("the first line of {} is {found}, and no header; remove that line from the file", path.display())]
    LineAboveHeader {
        /// What was read.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// Labels that are blank lines, which are not rows.
    #[error(
        "{} has the column {column:?} alone, and the schema spells a class of it \"\": such a row would be a blank line, which is not a row; \
         spell that class in another way in the file, or write it with a second column",
        path.display()
    )]
    BlankLabels {
        /// What was read.
        path: PathBuf,
        /// The target.
        column: String,
    },
    /// A column of the schema is not in the file.
    #[error(
        "{} has no column {column:?}, which {needed_by}{}{}; mend the name {named_in} or give the right file",
        path.display(),
        nearest.as_ref().map_or_else(String::new, |name| format!("; did you mean {name:?}?")),
        listed_columns(columns)
    )]
    MissingColumn {
        /// What was read.
        path: PathBuf,
        /// The column that is missing.
        column: String,
        /// What needs it, for example `the schema lists as a feature`.
        needed_by: &'static str,
        /// Where its name was given.
        named_in: NamedIn,
        /// The most similar column of the file.
        nearest: Option<String>,
        /// The file's columns; empty when its first line may be a row.
        columns: Vec<String>,
    },
    /// A column of the schema is twice in the file.
    #[error(
        "{} has more than one column {column:?}, which {needed_by}; rename or remove all but one of them in the file",
        path.display()
    )]
    DuplicateColumn {
        /// What was read.
        path: PathBuf,
        /// The column that is there more than once.
        column: String,
        /// What needs it.
        needed_by: &'static str,
    },
    /// The header is not the one that the schema declares.
    #[error(
        "column {position} of {} is not {declared:?} as table.columns in the schema says; mend table.columns, or leave \
         it out to use the file's header",
        path.display()
    )]
    HeaderDiffers {
        /// What was read.
        path: PathBuf,
        /// Place of the first difference, from 1.
        position: usize,
        /// The name that the schema declares there.
        declared: String,
    },
    /// The header has another number of columns than the schema declares.
    #[error(
        "the header of {} has {found} columns, but table.columns in the schema has {declared}; mend table.columns, or \
         leave it out to use the file's header",
        path.display()
    )]
    HeaderLength {
        /// What was read.
        path: PathBuf,
        /// Columns of the header.
        found: usize,
        /// Columns that the schema declares.
        declared: usize,
    },
    /// The file stops before its end.
    #[error("{} is cut short: its {format} data stop before their end, or something else follows them; copy or download it again", path.display())]
    Truncated {
        /// What was read.
        path: PathBuf,
        /// How the file is packed.
        format: &'static str,
    },
    /// The file was written to while it was read.
    #[error("{} has another size or time of change than when reading it began; wait until it is written, or copy it and read the copy", path.display())]
    Changed {
        /// What was read.
        path: PathBuf,
    },
    /// The file breaks the rules of its own format.
    #[error(
        "{} is damaged{}: its {format} data cannot be decoded; copy it again or write it anew",
        path.display(),
        reason.as_ref().map_or_else(String::new, |reason| format!(" ({reason})"))
    )]
    Damaged {
        /// What was read.
        path: PathBuf,
        /// How the file is packed.
        format: &'static str,
        /// What the decoder of a compression said; none for Parquet, whose decoder could tell of rows.
        reason: Option<String>,
    },
    /// A file of a kind that is not read.
    #[error("{} is {found}, which is not read; {remedy}", path.display())]
    Unsupported {
        /// What was read.
        path: PathBuf,
        /// What it is.
        found: &'static str,
        /// What to do about it.
        remedy: &'static str,
    },
    /// A Parquet column of a type that the schema's declaration cannot mean.
    #[error(
        "column {column:?} of {} has the Parquet type {found}; a column that {needed_by} should be {expected}: {} or \
         convert the column",
        path.display(),
        named_in.remedy()
    )]
    ColumnType {
        /// What was read.
        path: PathBuf,
        /// The column.
        column: String,
        /// Its type in the file.
        found: String,
        /// What needs it.
        needed_by: &'static str,
        /// What would do.
        expected: &'static str,
        /// Where its name was given.
        named_in: NamedIn,
    },
    /// A Parquet column whose type has no value that is spelt as the schema's list.
    #[error(
        "column {column:?} of {} has the Parquet type {found}, and {lacking} in the schema can be a value of that type: \
         write {remedy}, or turn the column into text",
        path.display()
    )]
    NeverFound {
        /// What was read.
        path: PathBuf,
        /// The column.
        column: String,
        /// Its type in the file.
        found: String,
        /// What cannot be found in it.
        lacking: &'static str,
        /// How the list would have to be spelt.
        remedy: &'static str,
    },
    /// A Parquet column packed in a way that is not read.
    #[error(
        "column {column:?} of {} is packed with {codec}, which is not read; write the file anew with zstd or snappy",
        path.display()
    )]
    Codec {
        /// What was read.
        path: PathBuf,
        /// The column.
        column: String,
        /// The packing.
        codec: String,
    },
    /// A schema cannot be drafted from a first line that may be a row.
    #[error(
        "the first line of {} does not look like a header: {reason}; give --no-header if it is a row of data, or --header if \
         it is a header all the same",
        path.display()
    )]
    HeaderDoubtful {
        /// What was read.
        path: PathBuf,
        /// What is unlike a header.
        reason: &'static str,
    },
}

/// Where somebody gave the name of a column, and can mend it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedIn {
    /// In the schema.
    Schema,
    /// As the column of event ids.
    IdFlag,
    /// As the target of a schema that is drafted.
    TargetFlag,
}

impl NamedIn {
    /// What to do there about a column of the wrong type.
    fn remedy(self) -> &'static str {
        match self {
            Self::Schema => "mend the schema",
            Self::IdFlag => "name another column after --id",
            Self::TargetFlag => "name another column after --target",
        }
    }
}

impl fmt::Display for NamedIn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Schema => "in the schema",
            Self::IdFlag => "after --id",
            Self::TargetFlag => "after --target",
        })
    }
}

impl From<OutOfMemory> for SourceError {
    fn from(_: OutOfMemory) -> Self {
        Self::OutOfMemory
    }
}

impl SourceError {
    pub(super) fn encrypted_parquet(path: &Path) -> Self {
        Self::Unsupported {
            path: path.to_owned(),
            found: "an encrypted Parquet file",
            remedy: "write it anew without encryption, in a place where that is safe",
        }
    }

    /// Whether the disk or the system is at fault rather than the file: the two have different exit codes.
    #[must_use]
    pub fn is_io(&self) -> bool {
        match self {
            Self::NotFound { .. } | Self::Directory { .. } | Self::Io { .. } | Self::OutOfMemory => true,
            Self::Empty { .. }
            | Self::RowsWithoutLists { .. }
            | Self::HeaderTooLong { .. }
            | Self::HeaderNotClosed { .. }
            | Self::NotTheHeader { .. }
            | Self::LineAboveHeader { .. }
            | Self::BlankLabels { .. }
            | Self::MissingColumn { .. }
            | Self::DuplicateColumn { .. }
            | Self::HeaderDiffers { .. }
            | Self::HeaderLength { .. }
            | Self::Truncated { .. }
            | Self::Changed { .. }
            | Self::Damaged { .. }
            | Self::Unsupported { .. }
            | Self::ColumnType { .. }
            | Self::NeverFound { .. }
            | Self::Codec { .. }
            | Self::HeaderDoubtful { .. } => false,
        }
    }
}

fn capitals_advice(name: Option<&str>) -> Option<String> {
    name.map(|name| {
        format!(
            "it has {name:?} in other capitals: write the names in the schema as the file has them, or the other way round"
        )
    })
}

fn delimiter_advice(declared: u8, likely: Option<u8>) -> Option<String> {
    let likely = char::from(likely?);
    let declared = char::from(declared);
    Some(format!(
        "it has no {declared:?}, but it has {likely:?}: probably the schema needs delimiter = {:?} under [table]",
        likely.to_string()
    ))
}

/// Names enough columns for a person to find the right one, and not a page.
fn listed_columns(columns: &[String]) -> String {
    const LISTED_MAX: usize = 40;
    if columns.is_empty() {
        return String::new();
    }
    let mut list = "; its columns are ".to_owned();
    for (place, name) in columns.iter().take(LISTED_MAX).enumerate() {
        let separator = if place == 0 { "" } else { ", " };
        write!(list, "{separator}{name:?}").expect("writing to a string cannot fail");
    }
    if columns.len() > LISTED_MAX {
        write!(list, " and {} more", columns.len() - LISTED_MAX).expect("writing to a string cannot fail");
    }
    if columns.iter().any(|name| name.contains(char::REPLACEMENT_CHARACTER)) {
        list.push_str(" (\u{fffd} stands for letters that are not UTF-8: save the table as UTF-8)");
    }
    list
}
