//! A Parquet file, as it is.

use crate::table::{draft, file, read_in_every_way, schemas};

/// First byte: the schema, or from 240 on that one is drafted. The rest: the file.
pub(crate) fn run(input: &[u8]) {
    let Some((choice, rest)) = input.split_first() else { return };
    let schemas = schemas();
    let file = file(rest);
    match choice {
        // A draft does not ask for columns.
        240.. => draft(file.path()),
        _ => read_in_every_way(file.path(), &schemas[usize::from(*choice) % schemas.len()], "person"),
    }
}
