//! A text table, packed as the input says.

use std::io::Write as _;

use flate2::write::GzEncoder;
use liblzma::write::XzEncoder;

use crate::table::{compare, draft, file, read_in_every_way, schemas};

/// First byte: the schema, by its remainder by 6, and what is done with the rest.
///
/// | the first byte | the rest |
/// |---|---|
/// | below 250: its quotient by 6, by 5, is 0 | is the file, which may be packed; read in every way |
/// | 1 | is the file; schemas are drafted of it |
/// | 2, 3, 4 | is packed with gzip, xz, zstd |
/// | from 250 on | is repeated to more than a block, which is coded on several threads |
pub(crate) fn run(input: &[u8]) {
    let Some((choice, rest)) = input.split_first() else { return };
    let schemas = schemas();
    let choice = usize::from(*choice);
    let schema = &schemas[choice % schemas.len()];
    let whole = |bytes: &[u8]| compare(file(bytes).path(), schema);
    match (choice, choice / schemas.len() % 5) {
        (250.., _) if !rest.is_empty() => whole(&rest.repeat(BLOCK_BYTES / rest.len() + 1)),
        (_, 0) => read_in_every_way(file(rest).path(), schema, "person"),
        (_, 1) => draft(file(rest).path()),
        (_, way) => whole(&packed(way - 1, rest)),
    }
}

/// Not packed, or with gzip, xz or zstd.
pub(crate) fn packed(way: usize, bytes: &[u8]) -> Vec<u8> {
    match way % 4 {
        0 => bytes.to_vec(),
        1 => gzip(bytes),
        2 => xz(bytes),
        _ => zstd::encode_all(bytes, 1).expect("memory is written"),
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes).and_then(|()| packed.finish()).expect("memory is written")
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut packed = XzEncoder::new(Vec::new(), 0);
    packed.write_all(bytes).and_then(|()| packed.finish()).expect("memory is written")
}

/// More than the reader of blocks takes at once.
const BLOCK_BYTES: usize = 600 * 1024;
