//! Values behind small ids, so that a reference to them is `Send` and cheap to copy.

use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU32;

/// Refers to an entry of a [`Slab`]. When the entry is removed, the key no longer refers to anything.
pub struct Key<T> {
    index: u32,
    generation: NonZeroU32,
    of: PhantomData<fn() -> T>,
}

impl<T> Key<T> {
    /// A key that never refers to an entry.
    pub const NONE: Key<T> = Key {
        index: u32::MAX,
        generation: NonZeroU32::MAX,
        of: PhantomData,
    };
}

impl<T> Clone for Key<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Key<T> {}

impl<T> PartialEq for Key<T> {
    fn eq(&self, other: &Self) -> bool {
        self.index == other.index && self.generation == other.generation
    }
}

impl<T> Eq for Key<T> {}

impl<T> fmt::Debug for Key<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}.{}", self.index, self.generation)
    }
}

/// Entries that keep their index until they are removed. A free index is reused with a new generation.
#[derive(Debug)]
pub struct Slab<T> {
    entries: Vec<Entry<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Entry<T> {
    generation: NonZeroU32,
    value: Option<T>,
}

impl<T> Entry<T> {
    /// Begins a new generation, so that keys of the removed value no longer refer to anything.
    fn begin_another(&mut self) {
        self.generation = self.generation.checked_add(1).unwrap_or(NonZeroU32::MIN);
    }
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab {
            entries: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    /// Adds a value, and returns its key.
    pub fn insert(&mut self, value: T) -> Key<T> {
        if let Some(index) = self.free.pop()
            && let Some(entry) = self.entries.get_mut(index as usize)
        {
            entry.value = Some(value);
            return Key {
                index,
                generation: entry.generation,
                of: PhantomData,
            };
        }
        let index = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        self.entries.push(Entry {
            generation: NonZeroU32::MIN,
            value: Some(value),
        });
        Key {
            index,
            generation: NonZeroU32::MIN,
            of: PhantomData,
        }
    }

    pub(crate) fn get(&self, key: Key<T>) -> Option<&T> {
        let entry = self.entries.get(key.index as usize)?;
        if entry.generation == key.generation {
            entry.value.as_ref()
        } else {
            None
        }
    }

    /// Returns the value of a key, unless it was removed.
    pub fn get_mut(&mut self, key: Key<T>) -> Option<&mut T> {
        let entry = self.entries.get_mut(key.index as usize)?;
        if entry.generation == key.generation {
            entry.value.as_mut()
        } else {
            None
        }
    }

    /// Removes the value of a key, unless it was removed before.
    pub fn remove(&mut self, key: Key<T>) -> Option<T> {
        let entry = self.entries.get_mut(key.index as usize)?;
        if entry.generation != key.generation {
            return None;
        }
        let value = entry.value.take()?;
        entry.begin_another();
        self.free.push(key.index);
        Some(value)
    }

    /// Removes an entry and drops its value in place.
    pub fn discard(&mut self, key: Key<T>) {
        if let Some(entry) = self.entries.get_mut(key.index as usize)
            && entry.generation == key.generation
            && entry.value.is_some()
        {
            entry.value = None;
            entry.begin_another();
            self.free.push(key.index);
        }
    }

    /// Returns every entry, in the order of indices.
    pub fn iter(&self) -> impl Iterator<Item = (Key<T>, &T)> {
        self.entries
            .iter()
            .zip(0u32..)
            .filter_map(|(entry, index)| {
                let key = Key {
                    index,
                    generation: entry.generation,
                    of: PhantomData,
                };
                Some((key, entry.value.as_ref()?))
            })
    }

    /// Returns the keys of the entries for which `is_wanted` holds.
    pub fn keys(&self, is_wanted: impl Fn(&T) -> bool) -> Vec<Key<T>> {
        let wanted = self.iter().filter(|(_, value)| is_wanted(value));
        wanted.map(|(key, _)| key).collect()
    }

    /// Takes every entry out. Indices are then assigned from the first one again, as in a new slab, so that the order
    /// of entries does not depend on earlier entries.
    pub fn drain(&mut self) -> Vec<T> {
        let keys = self.keys(|_| true);
        let values = keys.into_iter().filter_map(|key| self.remove(key));
        let values = values.collect();
        let len = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        self.free.clear();
        self.free.extend((0..len).rev());
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_entry_is_found_by_no_key_of_before() {
        let mut slab = Slab::default();
        let first = slab.insert("a");
        assert_eq!(slab.get(first), Some(&"a"));
        assert_eq!(slab.remove(first), Some("a"));
        let second = slab.insert("b");
        assert_eq!(slab.get(first), None);
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.get(second), Some(&"b"));
        assert_eq!(slab.get(Key::NONE), None);
    }

    #[test]
    fn a_drained_slab_hands_out_places_like_a_new_one() {
        let mut slab = Slab::default();
        let keys: Vec<_> = (0..5).map(|n| slab.insert(n)).collect();
        for key in [3, 0, 4] {
            slab.remove(keys[key]);
        }
        assert_eq!(slab.drain(), [1, 2]);
        for n in 0..7 {
            slab.insert(n);
        }
        let order: Vec<_> = slab.iter().map(|(_, n)| *n).collect();
        assert_eq!(order, [0, 1, 2, 3, 4, 5, 6]);
    }
}
