//! Ids of events in the order of a list, each of them once.

use indexmap::IndexSet;

use super::weight_list::WeightListError;

/// Event ids, unique and in order. They are checked one after the other, so that a file that repeats one without end is refused
/// where it does.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct EventIds(IndexSet<Box<[u8]>>);

impl EventIds {
    /// All of them, each checked as by [`Self::push`].
    ///
    /// # Errors
    /// [`WeightListError`] names the first row that is wrong.
    pub fn of<T: AsRef<[u8]>>(ids: impl IntoIterator<Item = T>) -> Result<Self, WeightListError> {
        let mut all = Self::default();
        ids.into_iter().try_for_each(|id| all.push(id.as_ref()))?;
        Ok(all)
    }

    /// The next one.
    ///
    /// # Errors
    /// [`WeightListError`] when it is empty or there already, or when there is no memory for it.
    pub fn push(&mut self, id: &[u8]) -> Result<(), WeightListError> {
        let row = self.0.len() + 1;
        if id.is_empty() {
            return Err(WeightListError::NoId { row });
        }
        let mut own = Vec::new();
        let has_room = own.try_reserve_exact(id.len()).is_ok() && self.0.try_reserve(1).is_ok();
        if !has_room {
            return Err(WeightListError::OutOfMemory);
        }
        own.extend_from_slice(id);
        if self.0.insert(own.into_boxed_slice()) { Ok(()) } else { Err(WeightListError::Repeated { row }) }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// In order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.0.iter().map(|id| &**id)
    }

    /// Place of an id in the order, counted from 0.
    #[must_use]
    pub fn place_of(&self, id: &[u8]) -> Option<usize> {
        self.0.get_index_of(id)
    }
}
