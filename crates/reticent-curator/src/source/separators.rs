//! Where fields end: the places of delimiters and line ends in a block of text, quotations excepted.
//!
//! All places are found first and fields are read between them, so that reading one field does not wait for the end of
//! the one before. Comparisons of 64 bytes at once are left to the compiler, which has vector instructions for them.

/// Places are found in whole groups of this many bytes.
pub(super) const GROUP_BYTES: usize = 64;

/// The longest that `places` become for so much text: with room for it, finding takes no memory.
pub(super) fn places_max(text: usize) -> usize {
    2 * (text + GROUP_BYTES).max(16 * GROUP_BYTES)
}

/// Puts the places of all separators of `text`, the delimiter and the ends of lines, at the beginning of `places`; returns
/// their number. The length of `text` is a multiple of [`GROUP_BYTES`].
pub(super) fn find_separators(text: &[u8], delimiter: u8, places: &mut Vec<u32>) -> usize {
    find(text, places, |byte| (byte == delimiter) | (byte == b'\n') | (byte == b'\r'))
}

/// The same of quotation marks.
pub(super) fn find_marks(text: &[u8], places: &mut Vec<u32>) -> usize {
    find(text, places, |byte| byte == b'"')
}

#[inline]
fn find(text: &[u8], places: &mut Vec<u32>, is_wanted: impl Fn(u8) -> bool) -> usize {
    let (groups, rest) = text.as_chunks::<GROUP_BYTES>();
    assert!(rest.is_empty(), "whole groups");
    let mut found = 0;
    for (group, bytes) in groups.iter().enumerate() {
        let mut hits = [0u8; GROUP_BYTES];
        for (hit, byte) in hits.iter_mut().zip(bytes) {
            *hit = u8::from(is_wanted(*byte));
        }
        let mut mask = 0;
        for (eight, hits) in hits.as_chunks::<8>().0.iter().enumerate() {
            // Bit 8i of the word reaches bit 56 + i of the product, and no other sum of its bits reaches that far.
            let bits = u64::from_le_bytes(*hits).wrapping_mul(0x0102_0408_1020_4080) >> 56;
            mask |= bits << (8 * eight);
        }
        // Eight places are written at a time, needed or not: how many there are is hard to predict.
        if places.len() < found + GROUP_BYTES {
            places.resize((2 * places.len()).max(16 * GROUP_BYTES), 0);
        }
        let count = mask.count_ones() as usize;
        let first = (group * GROUP_BYTES) as u32;
        let mut written = found;
        loop {
            for place in &mut places[written..written + 8] {
                *place = first + mask.trailing_zeros();
                mask &= mask.wrapping_sub(1);
            }
            if mask == 0 {
                break;
            }
            written += 8;
        }
        found += count;
    }
    found
}

/// Turns places of quotation marks into quotations: the places of the first and of the last mark of each.
/// A quotation opens at the start of a field and closes at a mark that is not doubled; one that does not close ends at `end`, the end of the text. Other marks are text.
///
/// `text` starts at the start of a record. Says whether the last quotation is open.
pub(super) fn find_quotations(text: &[u8], delimiter: u8, marks: &[u32], quotations: &mut Vec<(u32, u32)>) -> bool {
    quotations.clear();
    let mut marks = marks.iter().copied().peekable();
    while let Some(open) = marks.next() {
        let starts_field = match (open as usize).checked_sub(1) {
            None => true,
            Some(before) => text[before] == delimiter || text[before] == b'\n' || text[before] == b'\r',
        };
        if !starts_field {
            continue;
        }
        loop {
            let Some(mark) = marks.next() else {
                quotations.push((open, text.len() as u32));
                return true;
            };
            if marks.next_if_eq(&(mark + 1)).is_none() {
                quotations.push((open, mark));
                break;
            }
        }
    }
    false
}

/// Keeps the places that are not within quotations, in order, at the beginning; returns their number.
pub(super) fn keep_unquoted(places: &mut [u32], quotations: &[(u32, u32)]) -> usize {
    let mut quotations = quotations.iter().peekable();
    let mut kept = 0;
    for index in 0..places.len() {
        let place = places[index];
        while quotations.next_if(|(_, close)| *close < place).is_some() {}
        if quotations.peek().is_none_or(|(open, _)| place < *open) {
            places[kept] = place;
            kept += 1;
        }
    }
    kept
}
