//! A collection with one entry for each id.

use std::marker::PhantomData;

use crate::world::id::Id;

/// One entry for each id, in the order of ids.
#[derive(Debug)]
pub(crate) struct ById<I, T> {
    entries: Vec<T>,
    of: PhantomData<fn(I)>,
}

impl<I, T> Default for ById<I, T> {
    fn default() -> Self {
        ById {
            entries: Vec::new(),
            of: PhantomData,
        }
    }
}

impl<I, T> FromIterator<T> for ById<I, T> {
    fn from_iter<A: IntoIterator<Item = T>>(entries: A) -> Self {
        ById {
            entries: entries.into_iter().collect(),
            of: PhantomData,
        }
    }
}

impl<I: Id, T> ById<I, T> {
    /// Adds an entry and returns its id.
    pub(crate) fn push(&mut self, entry: T) -> I {
        let id = I::new(self.count());
        self.entries.push(entry);
        id
    }

    #[inline]
    pub(crate) fn get(&self, id: I) -> Option<&T> {
        self.entries.get(id.index())
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: I) -> Option<&mut T> {
        self.entries.get_mut(id.index())
    }

    /// Returns the entries of two ids, unless the ids are equal.
    pub(crate) fn pair_mut(&mut self, a: I, b: I) -> Option<[&mut T; 2]> {
        let pair = self.entries.get_disjoint_mut([a.index(), b.index()]);
        pair.ok()
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the number of entries.
    pub(crate) fn count(&self) -> u16 {
        u16::try_from(self.entries.len()).unwrap_or(u16::MAX)
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = I> + use<I, T> {
        (0..self.count()).map(I::new)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        self.ids().zip(&self.entries)
    }
}
