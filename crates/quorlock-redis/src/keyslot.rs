//! The cluster slot of a key, and whether all keys of a name are in one slot.

use crc::{CRC_16_XMODEM, Crc};
use quorlock_core::name::Name;
use quorlock_core::slot::{Slot, UnfitName};

use crate::{reserved, unfit_names};

/// Number of slots of a cluster.
pub(crate) const SLOTS: u16 = 16_384;

/// The checksum with which a cluster computes the slot of a key.
const CRC: Crc<u16> = Crc::<u16>::new(&CRC_16_XMODEM);

/// Returns the slot of a key or of a shard channel.
pub(crate) fn of_key(key: impl AsRef<[u8]>) -> Slot {
    let key = key.as_ref();
    Slot(CRC.checksum(tag(key).unwrap_or(key)) % SLOTS)
}

/// Returns the hash tag of a key: the bytes between the first `{` and the next `}`, unless there are none.
pub(crate) fn tag(key: &[u8]) -> Option<&[u8]> {
    let begin = key.iter().position(|byte| *byte == b'{')?;
    let behind = key.get(begin + 1..)?;
    let end = behind.iter().position(|byte| *byte == b'}')?;
    behind.get(..end).filter(|tag| !tag.is_empty())
}

/// Returns the slot of all keys of a name.
///
/// The other keys of a name are `prefix:{name}`, or `prefix:name` if the name has a `{`. So `a}b` has the tag `a` in
/// those keys only, and each key of `a{b` is hashed as a whole.
///
/// # Errors
/// [`UnfitName`] if the keys of the name may be in different slots. (They could be in one slot by chance, but this rule
/// can be checked by reading the name.)
pub(crate) fn of_name(name: &Name) -> Result<Slot, UnfitName> {
    let bytes = name.as_bytes();
    let is_together = tag(bytes).is_some() || !bytes.iter().any(|byte| matches!(byte, b'{' | b'}'));
    if is_together {
        return Ok(of_key(bytes));
    }
    let (namespace, text) = name.split();
    let text = readable(text);
    // The replacement is the same for all clients, so that two of them lock the same name.
    let mut tag = text.replace(['{', '}'], "");
    if tag.is_empty() {
        tag.push_str("lock");
    }
    let tagged = format!("{{{tag}}}:{text}");
    // With its tag, a name may be too long or reserved. Without braces it needs no tag.
    let may_be = Name::within(namespace, &tagged);
    let instead = match may_be {
        Ok(name) if reserved::kept_under(&name).is_none() => tagged,
        _ => tag,
    };
    Err(unfit_names::scattered(name, instead))
}

/// Returns the parts of a name that are valid text. The suggested replacement can therefore be typed, and is no longer
/// than the name.
pub(crate) fn readable(name: &[u8]) -> String {
    let chunks = name.utf8_chunks();
    chunks.map(|chunk| chunk.valid()).collect()
}

#[cfg(test)]
mod tests {
    use quorlock_core::message::Channel;
    use quorlock_core::owner::{ClientId, OwnerId};

    use super::*;
    use crate::key;

    /// The answers of `CLUSTER KEYSLOT` on redis-server 7.0.15.
    #[test]
    fn slots_are_those_of_redis() {
        for (key, slot) in [
            ("123456789", 12_739),
            ("foo", 12_182),
            ("{foo}", 12_182),
            ("a{foo}b", 12_182),
            ("foo{}{bar}", 8_363),
            ("foo{{bar}}zap", 4_015),
            ("foo{bar}{zap}", 5_061),
            ("", 0),
        ] {
            assert_eq!(of_key(key), Slot(slot), "{key}");
        }
    }

    fn keys(name: &Name) -> Vec<String> {
        let text = name.to_str().unwrap();
        let owner = OwnerId {
            client: ClientId::from_random(7),
            number: 1,
        };
        let channels = [
            Channel::Lock(name.clone()),
            Channel::Waiter(name.clone(), owner),
            Channel::ReadWrite(name.clone()),
        ];
        let keys = [
            key::token(name),
            key::queue(name),
            key::timeouts(name),
            key::alive(name),
        ];
        let mut all = vec![
            text.to_owned(),
            String::from_utf8(key::own_leases(name, owner)).unwrap() + "1",
        ];
        all.extend(keys.iter().map(ToString::to_string));
        all.extend(
            channels
                .iter()
                .map(|channel| String::from_utf8(key::channel_of(channel)).unwrap()),
        );
        all
    }

    fn instead(unfit: &UnfitName) -> &str {
        unfit.instead.as_deref().expect("a name to lock instead")
    }

    /// All names of up to five of these letters. If a name is accepted, all its keys and channels are in its slot. If it
    /// is refused, some keys are in other slots.
    #[test]
    fn a_name_is_taken_when_its_keys_lie_together() {
        let mut texts = vec![String::new()];
        let (mut taken, mut refused) = (0, 0);
        for _ in 0..5 {
            texts = texts
                .iter()
                .flat_map(|text| ['a', 'b', '{', '}'].map(|c| format!("{text}{c}")))
                .collect();
            for text in &texts {
                let name = Name::new(text).unwrap();
                match of_name(&name) {
                    Ok(slot) => {
                        taken += 1;
                        assert!(keys(&name).iter().all(|key| of_key(key) == slot), "{text}");
                    }
                    Err(unfit) => {
                        refused += 1;
                        let slots = keys(&name);
                        let mut slots = slots.iter().map(of_key);
                        let first = slots.next().unwrap();
                        assert!(slots.any(|slot| slot != first), "{text}");
                        let instead = Name::new(instead(&unfit)).unwrap();
                        assert!(of_name(&instead).is_ok(), "{text}");
                    }
                }
            }
        }
        assert_eq!((taken, refused), (296, 1068));
    }

    #[test]
    fn a_name_that_is_refused_is_told_with_the_tag_to_use() {
        for (name, instead) in [
            ("a}b", "{ab}:a}b"),
            ("orders{42", "{orders42}:orders{42"),
            ("{}x", "{x}:{}x"),
            ("}{", "{lock}:}{"),
            // With its tag in front, the name would be the lease key of another name's reader.
            ("x}:1:rwlock_timeout:1", "x:1:rwlock_timeout:1"),
        ] {
            let unfit = of_name(&Name::new(name).unwrap()).unwrap_err();
            assert_eq!(self::instead(&unfit), instead);
            let text = unfit.to_string();
            assert!(text.contains(name) && text.contains(instead), "{text}");
        }
        // There is no room for a tag.
        for (name, instead) in [
            ("x".repeat(511) + "}", "x".repeat(511)),
            ("}".repeat(512), "lock".to_owned()),
        ] {
            let unfit = of_name(&Name::new(name).unwrap()).unwrap_err();
            assert_eq!(self::instead(&unfit), instead);
            assert!(unfit.to_string().contains("which has none"), "{unfit}");
        }
    }
}
