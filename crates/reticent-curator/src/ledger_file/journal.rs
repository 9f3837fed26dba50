//! The journal beside a ledger: whose unfinished work is in it.
//!
//! SQLite writes a page to the journal before it changes the page in the file, and plays the journal back after a crash. If
//! the power goes while the first page is written, the file may no longer look like a ledger, and its journal still does.
//! Format: <https://sqlite.org/fileformat2.html#the_rollback_journal>.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Whether the journal keeps the first page of a database with this `application_id`. Only looks, and never at the database.
pub(super) fn is_of_application(journal: &Path, application_id: i32) -> bool {
    let first_page = || {
        // Not a pipe, which would keep us waiting.
        if journal.metadata()?.is_file() { find_first_page(&mut File::open(journal)?) } else { Ok(None) }
    };
    first_page().is_ok_and(|page: Option<[u8; HEADER]>| {
        page.is_some_and(|page| page.starts_with(DATABASE) && page[68..72] == application_id.to_be_bytes())
    })
}

/// The beginning of the database's first page, where the journal has it. An error where the journal ends before.
fn find_first_page(journal: &mut File) -> io::Result<Option<[u8; HEADER]>> {
    let mut at = 0;
    loop {
        journal.seek(SeekFrom::Start(at))?;
        if read::<8>(journal)? != JOURNAL {
            return Ok(None);
        }
        let mut number = || Ok::<u64, io::Error>(u32::from_be_bytes(read(journal)?).into());
        let (records, _nonce, _pages, sector, page) = (number()?, number()?, number()?, number()?, number()?);
        let legal = |size: u64| size.is_power_of_two() && (32..=65_536).contains(&size);
        if records == 0 || !legal(sector) || !legal(page) || page < 512 {
            return Ok(None);
        }
        at += sector;
        for _ in 0..records {
            journal.seek(SeekFrom::Start(at))?;
            if u32::from_be_bytes(read(journal)?) == 1 {
                return read(journal).map(Some);
            }
            // The number of the page, the page, and a checksum.
            at += 4 + page + 4;
        }
        at = at.next_multiple_of(sector);
    }
}

fn read<const LENGTH: usize>(journal: &mut File) -> io::Result<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    journal.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Length of a database's header.
const HEADER: usize = 100;

/// How a database begins.
const DATABASE: &[u8] = b"SQLite format 3\0";

/// How a part of a journal begins.
const JOURNAL: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A journal with the first page after another one.
    fn journal(records: u32, sector: u32, page: u32) -> Vec<u8> {
        let mut bytes = JOURNAL.to_vec();
        [records, 7, 2, sector, page].iter().for_each(|number| bytes.extend(number.to_be_bytes()));
        bytes.resize(sector as usize, 0);
        for number in [2u32, 1] {
            bytes.extend(number.to_be_bytes());
            let start = bytes.len();
            bytes.extend(DATABASE);
            bytes.resize(start + 68, 0);
            bytes.extend(77i32.to_be_bytes());
            bytes.resize(start + page.max(HEADER as u32) as usize + 4, 0);
        }
        bytes
    }

    #[test]
    fn a_first_page_is_found_where_all_sizes_are_legal() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("ledger-journal");
        let is_found = |bytes: &[u8]| {
            fs::write(&path, bytes).expect("there is room");
            is_of_application(&path, 77)
        };
        for (sector, page) in [(512, 4096), (32, 512), (65_536, 65_536), (4096, 1024)] {
            assert!(is_found(&journal(2, sector, page)), "{sector}, {page}");
            assert!(!is_found(&journal(1, sector, page)), "the second record is beyond those of this part");
            assert!(!is_found(&journal(0, sector, page)));
        }
        for (sector, page) in
            [(0, 4096), (16, 4096), (48, 4096), (1 << 17, 4096), (512, 256), (512, 1000), (512, 1 << 17)]
        {
            assert!(!is_found(&journal(2, sector, page)), "{sector}, {page}");
        }
        let whole = journal(2, 512, 4096);
        assert!(!is_found(&whole[..whole.len() - 4096]), "cut off before its end");
        fs::write(&path, &whole).expect("there is room");
        assert!(!is_of_application(&path, 78));
    }
}
