//! A Parquet footer looked over before it is decoded: no more things are declared than there are bytes for, and nothing is
//! nested deeper than a table is.
//!
//! The decoder makes room for as many groups of rows and columns as a footer declares, and follows nesting by recursion.
//! What goes wrong there, in a file of a few bytes, ends the process and is no error that could be told.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// Fields of Parquet's `FileMetaData` and `SchemaElement`.
const SCHEMA: i64 = 2;
const ROW_GROUPS: i64 = 4;
const ENCRYPTION_ALGORITHM: i64 = 8;
const NUM_CHILDREN: i64 = 5;
/// Structures and lists within each other. A sound footer has six.
const DEPTH_MAX: u32 = 32;
/// Groups of columns within each other.
const SCHEMA_DEPTH_MAX: usize = 64;
/// Groups of rows, of which a reader keeps some hundred bytes each. The format's own numbers of them end at 32,767, but are optional, and writers
/// go on without.
const ROW_GROUPS_MAX: u64 = 1 << 20;

/// Whether the footer of a file can be handed to the decoder. A file that is no Parquet file is for the decoder to refuse.
pub(super) fn is_plausible(file: &File) -> io::Result<bool> {
    Ok(read(file)?.is_none_or(|footer| Walk { rest: &footer }.metadata().is_some()))
}

/// Whether columns are encrypted behind a footer that is not.
pub(super) fn has_encrypted_columns(file: &File) -> io::Result<bool> {
    let mut is_encrypted = false;
    let mut look = |walk: &mut Walk<'_>, field: Field| {
        is_encrypted |= field.number == ENCRYPTION_ALGORITHM;
        walk.value(field.code, 1)
    };
    if let Some(footer) = read(file)? {
        // What comes behind a field that does not fit is not looked at.
        let _ = Walk { rest: &footer }.fields(&mut look);
    }
    Ok(is_encrypted)
}

/// The footer's bytes; none where the file has no place for it.
fn read(mut file: &File) -> io::Result<Option<Vec<u8>>> {
    let size = file.seek(SeekFrom::End(0))?;
    if size < 8 {
        return Ok(None);
    }
    let mut last = [0; 8];
    file.seek(SeekFrom::Start(size - 8))?;
    file.read_exact(&mut last)?;
    let length = u64::from(u32::from_le_bytes([last[0], last[1], last[2], last[3]]));
    if length > size - 8 {
        return Ok(None);
    }
    file.seek(SeekFrom::Start(size - 8 - length))?;
    let mut footer = Vec::new();
    file.take(length).read_to_end(&mut footer)?;
    Ok(Some(footer))
}

/// A walk over Thrift's compact protocol, which ends with nothing where a declared size does not fit.
struct Walk<'a> {
    rest: &'a [u8],
}

/// A field or an element: its number in its structure, and the protocol's code of its type.
#[derive(Clone, Copy)]
struct Field {
    number: i64,
    code: u8,
}

impl Walk<'_> {
    /// Over a whole `FileMetaData`.
    fn metadata(&mut self) -> Option<()> {
        self.fields(|walk, field| match (field.number, field.code) {
            (SCHEMA, LIST) => walk.schema(),
            (ROW_GROUPS, LIST) => {
                let (groups, code) = walk.list()?;
                if groups > ROW_GROUPS_MAX {
                    return None;
                }
                (0..groups).try_for_each(|_| walk.element(code, 1))
            }
            _ => walk.value(field.code, 1),
        })
    }

    /// Over the columns, which stand in the order of a walk through their groups.
    fn schema(&mut self) -> Option<()> {
        let (elements, code) = self.list()?;
        // Columns that groups still have to come, outermost first.
        let mut open: Vec<u64> = Vec::new();
        for element in 0..elements {
            let mut children = 0;
            if code == STRUCT {
                self.fields(|walk, field| {
                    if (field.number, field.code) == (NUM_CHILDREN, I32) {
                        children = u64::try_from(walk.integer()?).ok()?;
                        return Some(());
                    }
                    walk.value(field.code, 2)
                })?;
            } else {
                self.element(code, 1)?;
            }
            if children > elements - element - 1 {
                return None;
            }
            if let Some(last) = open.last_mut() {
                *last -= 1;
            }
            if children > 0 {
                open.push(children);
            }
            while open.last() == Some(&0) {
                open.pop();
            }
            if open.len() > SCHEMA_DEPTH_MAX {
                return None;
            }
        }
        Some(())
    }

    /// Over the fields of a structure; `visit` goes over the value of each.
    fn fields(&mut self, mut visit: impl FnMut(&mut Self, Field) -> Option<()>) -> Option<()> {
        let mut number = 0i64;
        loop {
            let header = self.byte()?;
            if header == 0 {
                return Some(());
            }
            let (delta, code) = (header >> 4, header & 15);
            number = if delta == 0 { self.integer()? } else { number.checked_add(i64::from(delta))? };
            visit(self, Field { number, code })?;
        }
    }

    /// Over the value of a field, of which a boolean has its value in its type.
    fn value(&mut self, code: u8, depth: u32) -> Option<()> {
        if code == TRUE || code == FALSE { Some(()) } else { self.element(code, depth) }
    }

    /// Over the element of a list.
    fn element(&mut self, code: u8, depth: u32) -> Option<()> {
        if depth > DEPTH_MAX {
            return None;
        }
        match code {
            TRUE | FALSE | BYTE => self.skip(1),
            I16 | I32 | I64 => self.integer().map(drop),
            DOUBLE => self.skip(8),
            BINARY => {
                let length = self.count()?;
                self.skip(length)
            }
            LIST | SET => {
                let (size, code) = self.list()?;
                (0..size).try_for_each(|_| self.element(code, depth + 1))
            }
            MAP => {
                let size = self.count()?;
                if size == 0 {
                    return Some(());
                }
                let codes = self.byte()?;
                (0..size).try_for_each(|_| {
                    self.element(codes >> 4, depth + 1)?;
                    self.element(codes & 15, depth + 1)
                })
            }
            STRUCT => self.fields(|walk, field| walk.value(field.code, depth + 1)),
            _ => None,
        }
    }

    /// Size and type of a list's elements, each of which takes a byte at least.
    fn list(&mut self) -> Option<(u64, u8)> {
        let header = self.byte()?;
        let size = if header >> 4 == 15 { self.count()? } else { u64::from(header >> 4) };
        (size <= self.rest.len() as u64).then_some((size, header & 15))
    }

    fn count(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for place in 0..10 {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F).checked_shl(7 * place)?;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn integer(&mut self) -> Option<i64> {
        let value = self.count()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn skip(&mut self, bytes: u64) -> Option<()> {
        self.rest = self.rest.get(usize::try_from(bytes).ok()?..)?;
        Some(())
    }
}

const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;

/// What the header of a page declares, by its first bytes; nothing where it declares nothing, or later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DeclaredPage {
    /// Size of the page once it is unpacked.
    pub(super) bytes: i64,
    /// Entries of a dictionary, for which the decoder makes room at once. Each takes a byte at least.
    pub(super) dictionary_entries: i64,
    /// Whether a text is written as what it adds to the one before: each may be as long as the whole page.
    pub(super) shares_beginnings: bool,
}

impl DeclaredPage {
    pub(super) fn of(header: &[u8]) -> Self {
        const UNCOMPRESSED_PAGE_SIZE: i64 = 2;
        const DICTIONARY_PAGE_HEADER: i64 = 7;
        const NUM_VALUES: i64 = 1;
        // The headers of a data page in both versions, and the encoding in each.
        const DATA_PAGES: [(i64, i64); 2] = [(5, 2), (8, 4)];
        const DELTA_BYTE_ARRAY: i64 = 7;
        let mut page = Self::default();
        // What comes after the header is no header, and the walk breaks off somewhere.
        let _ = Walk { rest: header }.fields(|walk, field| match (field.number, field.code) {
            (UNCOMPRESSED_PAGE_SIZE, I32) => {
                page.bytes = walk.integer()?;
                Some(())
            }
            (DICTIONARY_PAGE_HEADER, STRUCT) => walk.fields(|walk, field| {
                if (field.number, field.code) == (NUM_VALUES, I32) {
                    page.dictionary_entries = walk.integer()?;
                    return Some(());
                }
                walk.value(field.code, 2)
            }),
            (number, STRUCT) if let Some((_, encoding)) = DATA_PAGES.iter().find(|(page, _)| *page == number) => walk
                .fields(|walk, field| {
                    if (field.number, field.code) == (*encoding, I32) {
                        page.shares_beginnings = walk.integer()? == DELTA_BYTE_ARRAY;
                        return Some(());
                    }
                    walk.value(field.code, 2)
                }),
            _ => walk.value(field.code, 1),
        });
        page
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn is_sound(footer: &[u8]) -> bool {
        Walk { rest: footer }.metadata().is_some()
    }

    /// Version 1, a schema of these numbers of children, and a list of row groups that begins with `groups`.
    fn footer(children: &[u8], groups: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x15, 2, 0x19, 0xFC, children.len() as u8];
        for count in children {
            // Field 5 is an integer, in zigzag form.
            bytes.extend([0x55, 2 * count, 0]);
        }
        // Field 3, the number of rows, and field 4.
        bytes.extend([0x16, 8, 0x19]);
        bytes.extend(groups);
        bytes.push(0);
        bytes
    }

    #[test]
    fn a_usual_footer_is_plausible() {
        assert!(is_sound(&footer(&[2, 0, 0], &[0x0C])));
        assert!(is_sound(&footer(&[2, 1, 0, 0], &[0x1C, 0])));
    }

    #[test]
    fn more_than_there_are_bytes_for_is_not() {
        // 2^31 groups of rows, and minus one of them.
        assert!(!is_sound(&footer(&[1, 0], &[0xFC, 0x80, 0x80, 0x80, 0x80, 0x08])));
        assert!(!is_sound(&footer(&[1, 0], &[0xFC, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1])));
        // Groups that are there: more than the format numbers, and more than anybody writes.
        let groups = |size: &[u8], count: usize| [&[0xFC], size, &vec![0; count]].concat();
        assert!(is_sound(&footer(&[1, 0], &groups(&[0x80, 0x80, 0x02], 1 << 15))));
        assert!(!is_sound(&footer(&[1, 0], &groups(&[0x81, 0x80, 0x40], (1 << 20) + 1))));
        // A group of more columns than follow it.
        assert!(!is_sound(&footer(&[3, 0, 0], &[0x0C])));
        // A text that is longer than the footer.
        assert!(!is_sound(&[0x68, 0xFF, 0xFF, 0x03, b'x', 0]));
    }

    #[test]
    fn a_footer_tells_of_encrypted_columns() {
        let is_told = |fields: &[u8]| {
            let mut bytes = footer(&[1, 0], &[0x0C]);
            bytes.pop();
            bytes.extend(fields);
            bytes.push(0);
            let length = (bytes.len() as u32).to_le_bytes();
            let mut file = tempfile::tempfile().expect("a file");
            file.write_all(&[b"PAR1", &bytes[..], &length, b"PAR1"].concat()).expect("is written");
            has_encrypted_columns(&file).expect("is read")
        };
        // Behind field 4, the writer's name; then field 8, a union of structures.
        assert!(!is_told(&[0x28, 1, b'x']));
        assert!(is_told(&[0x28, 1, b'x', 0x2C, 0x1C, 0, 0]));
    }

    #[test]
    fn deep_nesting_is_not() {
        let deep = |groups: usize| footer(&[vec![1; groups], vec![0]].concat(), &[0x0C]);
        assert!(is_sound(&deep(SCHEMA_DEPTH_MAX)));
        assert!(!is_sound(&deep(SCHEMA_DEPTH_MAX + 1)));
        // An unknown field with lists of lists.
        let lists = |count: usize| [&[0x15, 2, 0x89][..], &vec![0x19; count], &[0x03, 0]].concat();
        assert!(is_sound(&lists(3)));
        assert!(!is_sound(&lists(1000)));
    }

    #[test]
    fn the_size_of_a_page_is_read_from_its_header() {
        // Type 0, then 300 bytes.
        let page = |bytes, dictionary_entries| DeclaredPage { bytes, dictionary_entries, shares_beginnings: false };
        assert_eq!(DeclaredPage::of(&[0x15, 0, 0x15, 0xD8, 4, 0x15, 20]), page(300, 0));
        assert_eq!(DeclaredPage::of(&[0x15, 4, 0x15, 20, 0x15, 20, 0x4C, 0x15, 8, 0x15, 0, 0, 0]), page(10, 4));
        assert_eq!(DeclaredPage::of(&[0x15, 0]), page(0, 0));
        assert_eq!(DeclaredPage::of(&[0]), page(0, 0));
    }

    #[test]
    fn texts_that_share_their_beginnings_are_seen() {
        // Type, size, packed size; then a header of version 1 or 2: values, encoding 7 or 6.
        let first = |encoding| [0x15, 0, 0x15, 20, 0x15, 20, 0x2C, 0x15, 8, 0x15, encoding, 0, 0];
        assert!(DeclaredPage::of(&first(14)).shares_beginnings);
        assert!(!DeclaredPage::of(&first(12)).shares_beginnings);
        let second = |encoding| [0x15, 6, 0x15, 20, 0x15, 20, 0x5C, 0x15, 8, 0x15, 0, 0x15, 8, 0x15, encoding, 0, 0];
        assert!(DeclaredPage::of(&second(14)).shares_beginnings);
        assert!(!DeclaredPage::of(&second(12)).shares_beginnings);
    }
}
