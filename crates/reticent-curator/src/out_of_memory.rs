//! Memory that is asked for in a way that can be refused.

/// The table does not fit. An aborting allocation would print its size, and with it the number of rows.
#[derive(Debug, thiserror::Error)]
#[error(
    "not enough memory for the encoded table; use a machine with more memory, or list fewer features or categories"
)]
pub struct OutOfMemory;

/// Bytes of a row in a box of their own, or the error: their length is as private as they are.
pub(crate) fn boxed(bytes: &[u8]) -> Result<Box<[u8]>, OutOfMemory> {
    let mut own = Vec::new();
    own.try_reserve_exact(bytes.len()).map_err(|_| OutOfMemory)?;
    own.extend_from_slice(bytes);
    Ok(own.into_boxed_slice())
}

/// Room for so many in all, or the error: how many depends on private rows.
pub(crate) fn make_room<T>(room: &mut Vec<T>, length: usize) -> Result<(), OutOfMemory> {
    room.try_reserve(length.saturating_sub(room.len())).map_err(|_| OutOfMemory)
}

/// So many zeros, or the error: memory that depends on private rows is asked for here.
pub(crate) fn zeros<T: Default + Clone>(length: usize) -> Result<Vec<T>, OutOfMemory> {
    let mut zeros = Vec::new();
    zeros.try_reserve_exact(length).map_err(|_| OutOfMemory)?;
    zeros.resize(length, T::default());
    Ok(zeros)
}
