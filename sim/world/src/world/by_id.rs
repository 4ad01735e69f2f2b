//! A collection with one entry for each id.

use std::marker::PhantomData;

use crate::world::id::Id;

/// One entry for each id, in the order of ids.
#[derive(Debug)]
pub struct ById<I, T> {
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
    pub fn push(&mut self, entry: T) -> I {
        let id = I::new(self.count());
        self.entries.push(entry);
        id
    }

    /// Returns the value of an id, if there is one.
    #[inline]
    pub fn get(&self, id: I) -> Option<&T> {
        self.entries.get(id.index())
    }

    /// Returns the value of an id, if there is one.
    #[inline]
    pub fn get_mut(&mut self, id: I) -> Option<&mut T> {
        self.entries.get_mut(id.index())
    }

    /// Returns the entries of two ids, unless the ids are equal.
    pub fn pair_mut(&mut self, a: I, b: I) -> Option<[&mut T; 2]> {
        let pair = self.entries.get_disjoint_mut([a.index(), b.index()]);
        pair.ok()
    }

    /// Returns all values, in the order of their ids.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the number of entries.
    pub fn count(&self) -> u16 {
        u16::try_from(self.entries.len()).unwrap_or(u16::MAX)
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = I> + use<I, T> {
        (0..self.count()).map(I::new)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        self.ids().zip(&self.entries)
    }
}
