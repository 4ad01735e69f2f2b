//! What an adapter that is wrong on purpose does not get to hear. The adapter is the product's: its connections carry other
//! words than the servers say.

use crate::plan::variant::{Flaw, Variant};

/// Words that are others of the same length at the other end of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Swaps {
    outgoing: Vec<Swap>,
    incoming: Vec<Swap>,
}

/// A word, and what it becomes.
type Swap = (&'static [u8], &'static [u8]);

/// The channels of sentinels, and channels on which nothing is published.
const CHANNELS: [Swap; 2] = [
    (b"+switch-master", b"-switch-master"),
    (b"+promoted-slave", b"-promoted-slave"),
];

/// What a replica says to a write, and an error by which an adapter thinks no worse of its connection.
const READ_ONLY: Swap = (b"-READONLY ", b"-ERR READ ");

/// What a node says whose slot another one has, and an error that says nothing of slots.
const MOVED: Swap = (b"-MOVED ", b"-ERRMV ");

impl Swaps {
    /// What is wrong with the connections of a variant: nothing with those of the product.
    pub(super) fn of(variant: Variant) -> Self {
        let mut swaps = Swaps::default();
        if variant.has(Flaw::SwitchUnheard) {
            swaps.outgoing.extend(CHANNELS);
            let back = CHANNELS.map(|(channel, silent)| (silent, channel));
            swaps.incoming.extend(back);
        }
        if variant.has(Flaw::ReadOnlyStays) {
            swaps.incoming.push(READ_ONLY);
        }
        if variant.has(Flaw::MovedUnheard) {
            swaps.incoming.push(MOVED);
        }
        swaps
    }

    /// What a client says, as the server hears it; nothing if that is the same.
    pub(super) fn outgoing(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let is_same = self.outgoing.is_empty();
        (!is_same).then(|| {
            let mut bytes = bytes.to_vec();
            swap(&self.outgoing, &mut bytes);
            bytes
        })
    }

    /// Makes of what a server said what the client hears.
    pub(super) fn incoming(&self, bytes: &mut [u8]) {
        swap(&self.incoming, bytes);
    }
}

/// Words that are cut in two by a packet are as they were: requests and answers of a simulation are sent whole.
fn swap(swaps: &[Swap], bytes: &mut [u8]) {
    for (word, other) in swaps {
        let mut at = 0;
        while let Some(rest) = bytes.get_mut(at..) {
            let found = rest.windows(word.len()).position(|part| part == *word);
            let Some(found) = found else { break };
            if let Some(place) = rest.get_mut(found..found + word.len()) {
                place.copy_from_slice(other);
            }
            at += found + word.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_swapped_wherever_they_stand_and_nothing_else() {
        let deaf = Swaps::of(Variant::DeafClients);
        let asked = deaf.outgoing(b"SUBSCRIBE +switch-master a +switch-master\r\n");
        let heard = b"SUBSCRIBE -switch-master a -switch-master\r\n";
        assert_eq!(asked.as_deref(), Some(&heard[..]));
        let mut said = b"+OK\r\n-READONLY You can't".to_vec();
        deaf.incoming(&mut said);
        assert_eq!(said, b"+OK\r\n-ERR READ You can't");
        let product = Swaps::of(Variant::Product);
        assert_eq!(product.outgoing(b"+switch-master"), None);
    }
}
