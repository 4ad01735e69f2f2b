//! The slot map: which server owns which slot.

use quorlock_core::slot::Slot;

use crate::keyslot::SLOTS;

/// The owner of each slot, as far as it is known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct SlotMap<T> {
    owners: Vec<T>,
    /// For each slot, the index of its owner in `owners`.
    places: Vec<Option<u16>>,
}

impl<T: Clone + PartialEq> SlotMap<T> {
    /// Returns a map in which no slot has an owner.
    pub(super) fn new() -> Self {
        SlotMap {
            owners: Vec::new(),
            places: vec![None; usize::from(SLOTS)],
        }
    }

    /// Returns the owner of a slot, if it is known.
    pub(super) fn owner(&self, slot: Slot) -> Option<&T> {
        let place = self.places.get(usize::from(slot.0)).copied().flatten()?;
        self.owners.get(usize::from(place))
    }

    /// Assigns the slots from `first` to `last` (inclusive) to an owner.
    pub(super) fn assign(&mut self, first: u16, last: u16, owner: &T) {
        let known = self.owners.iter().position(|known| known == owner);
        let place = known.unwrap_or_else(|| {
            self.owners.push(owner.clone());
            self.owners.len() - 1
        });
        let place = u16::try_from(place).ok();
        let slots = self.places.get_mut(usize::from(first)..=usize::from(last));
        slots.into_iter().flatten().for_each(|slot| *slot = place);
    }

    /// Returns the owners of at least one slot, in the order in which they were first named.
    pub(super) fn owners(&self) -> impl Iterator<Item = &T> {
        let mut counts = vec![0_u32; self.owners.len()];
        for place in self.places.iter().flatten() {
            if let Some(count) = counts.get_mut(usize::from(*place)) {
                *count += 1;
            }
        }
        let owners = self.owners.iter().zip(counts);
        owners.filter_map(|(owner, count)| (0 < count).then_some(owner))
    }

    /// Whether every slot has the same owner in both maps.
    pub(super) fn is_like(&self, other: &SlotMap<T>) -> bool {
        let mut slots = (0..SLOTS).map(Slot);
        slots.all(|slot| self.owner(slot) == other.owner(slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_slot_has_the_owner_that_it_was_given_last() {
        let mut map = SlotMap::new();
        assert_eq!(map.owner(Slot(0)), None);
        map.assign(0, 9, &"a");
        map.assign(5, 16_383, &"b");
        map.assign(7, 7, &"a");
        let owner = |slot| map.owner(Slot(slot)).copied();
        assert_eq!(
            [0, 4, 5, 6, 7, 8, 16_383]
                .map(owner)
                .map(Option::unwrap)
                .concat(),
            "aabbabb"
        );
        assert_eq!(map.owners().copied().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(map.owner(Slot(16_384)), None);
        // Out of range, and with the last slot before the first.
        map.assign(16_000, 16_384, &"c");
        map.assign(9, 3, &"c");
        assert!(map.owners().all(|owner| *owner != "c"));
    }

    #[test]
    fn maps_are_alike_in_whatever_order_owners_were_named() {
        let of = |shares: [(u16, u16, &'static str); 2]| {
            let mut map = SlotMap::new();
            for (first, last, owner) in shares {
                map.assign(first, last, &owner);
            }
            map
        };
        let one = of([(0, 1, "a"), (2, 16_383, "b")]);
        assert!(one.is_like(&of([(2, 16_383, "b"), (0, 1, "a")])));
        assert!(!one.is_like(&of([(0, 2, "a"), (3, 16_383, "b")])));
        assert!(!one.is_like(&SlotMap::new()));
    }
}
