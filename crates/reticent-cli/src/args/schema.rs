//! The words of schemas.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Subcommand)]
pub(crate) enum SchemaCommand {
    /// Write a schema to complete, from column names and types; values are read only from a file declared public
    #[command(after_help = "\
Examples:
  reticent schema draft patients.csv > patients.toml
  reticent schema draft patients.csv --target died \\
      --public-data published-sample.csv > patients.toml")]
    Draft {
        /// Table; only its column names (and types, for Parquet) are read, and nothing of it with --public-data
        data: PathBuf,
        /// Target column
        #[arg(long)]
        target: Option<String>,
        /// Another file, declared public, to draft from instead: bounds, categories and classes are filled in from its values
        #[arg(long, value_name = "FILE")]
        public_data: Option<PathBuf>,
        /// The first line of the CSV file is a header, even if it looks like a row
        #[arg(long, conflicts_with = "no_header")]
        header: bool,
        /// The CSV file has no header line
        #[arg(long)]
        no_header: bool,
        /// Character between two values of a CSV file [default: the usual one that occurs most often in the first line]
        #[arg(long, value_parser = ascii_character)]
        delimiter: Option<char>,
    },
    /// List every problem of a schema with its line
    Check {
        /// Schema file
        schema: PathBuf,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
}

fn ascii_character(text: &str) -> Result<char, String> {
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (Some(character), None) if character.is_ascii() => Ok(character),
        (Some('\\'), Some('t')) => Ok('\t'),
        _ => Err("a delimiter is one ASCII character".to_owned()),
    }
}
