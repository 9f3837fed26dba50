//! Memory that is asked for in a way that can be refused.

/// The table does not fit. An aborting allocation would print its size, and with it the number of rows.
#[derive(Debug, thiserror::Error)]
#[error(
    "not enough memory for the encoded table; use a machine with more memory, or list fewer features or categories"
)]
pub struct OutOfMemory;

/// So many zeros, or the error: memory that depends on private rows is asked for here.
pub(crate) fn zeros<T: Default + Clone>(length: usize) -> Result<Vec<T>, OutOfMemory> {
    let mut zeros = Vec::new();
    zeros.try_reserve_exact(length).map_err(|_| OutOfMemory)?;
    zeros.resize(length, T::default());
    Ok(zeros)
}
