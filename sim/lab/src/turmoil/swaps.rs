//! The connections of a deliberately flawed adapter. The adapter is the product's, but its connections replace some
//! words that it exchanges with the servers.

use quorlock_sim_plan::variant::{Flaw, Variant};

/// Replacements of words by others of the same length.
#[derive(Clone, Debug, Default)]
pub(super) struct Swaps {
    outgoing: Vec<Swap>,
    incoming: Vec<Swap>,
}

/// A word and its replacement.
type Swap = (&'static [u8], &'static [u8]);

/// The channels of sentinels, replaced by channels on which nothing is published.
const CHANNELS: [Swap; 2] = [
    (b"+switch-master", b"-switch-master"),
    (b"+promoted-slave", b"-promoted-slave"),
];

/// The error of a replica that receives a write. It is replaced by an error after which an adapter keeps its
/// connection.
const READ_ONLY: Swap = (b"-READONLY ", b"-ERR READ ");

/// The error of a node whose slot has moved. It is replaced by an error that does not mention slots.
const MOVED: Swap = (b"-MOVED ", b"-ERRMV ");

impl Swaps {
    /// Returns the replacements of a variant. The product has none.
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

    /// Returns the bytes that the server receives instead of these bytes, or `None` if they are the same.
    pub(super) fn outgoing(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let is_same = self.outgoing.is_empty();
        (!is_same).then(|| {
            let mut bytes = bytes.to_vec();
            swap(&self.outgoing, &mut bytes);
            bytes
        })
    }

    /// Replaces words in bytes that a client receives.
    pub(super) fn incoming(&self, bytes: &mut [u8]) {
        swap(&self.incoming, bytes);
    }
}

/// Replaces whole words. A word that is split over two packets would stay, but a simulation sends requests and answers
/// whole.
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
