//! The schema's text: TOML to [`Schema`] with every problem and its line, and back.

mod reader;
mod section;
mod writer;

use toml::de::DeTable;

use self::reader::TextReader;
use self::writer::{write_feature, write_privacy, write_table, write_target};
use super::feature_runs::follows;
use super::{Schema, SchemaProblem, SchemaProblems, TextFormat};

impl Schema {
    /// Reads the TOML that a person writes; `docs/reference/schema.md` describes it.
    ///
    /// # Errors
    /// [`SchemaProblems`] lists everything that is wrong, each with its line. Text that is not TOML is one problem.
    pub fn from_text(text: &str) -> Result<Self, SchemaProblems> {
        let mut reader = TextReader::new(text);
        let root = match DeTable::parse(text) {
            Ok(root) => root,
            Err(error) => {
                let line = error.span().map(|span| reader.line_of(&span));
                let message = format!("this is not TOML: {}", error.message());
                return Err(SchemaProblems(vec![SchemaProblem { line, place: String::new(), message }]));
            }
        };
        let parts = reader.parts(root.get_ref());
        reader.finish(parts)
    }

    /// Writes the schema as TOML that reads back as the same schema; what equals its default is left out.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        write_privacy(&mut text, self.privacy());
        write_table(&mut text, self.table());
        write_target(&mut text, self.target());
        text.push_str("\n[features]\n");
        for features in
            self.features().chunk_by(|one, next| self.table().format == TextFormat::Libsvm && follows(one, next))
        {
            let (Some(first), Some(last)) = (features.first(), features.last()) else { continue };
            let name = if first == last { first.name.clone() } else { format!("{}..{}", first.name, last.name) };
            write_feature(&mut text, &name, &first.kind);
        }
        text
    }
}
