//! Names of locks, their keys, and the slots and tags of clusters.

use std::sync::LazyLock;

use quorlock_core::message::Channel;
use quorlock_core::name::Name;
use quorlock_core::owner::{ClientId, OwnerId};
use quorlock_core::slot::UnfitName;
use redis::ToRedisArgs as _;

use super::text;
use crate::tag::Tag;
use crate::{key, keyslot, reserved};

/// Uses the bytes as a name, and as an owner.
///
/// # Panics
/// If a key of a name is a valid name, if the keys of a name are in different slots, or if the replacement that an error
/// suggests is refused, too.
pub fn names(data: &[u8]) {
    let text = text(data);
    if let Some(text) = text
        && let Ok(owner) = text.parse::<OwnerId>()
    {
        assert_eq!(owner.to_string(), text);
    }
    let name = match Name::new(data) {
        Ok(name) => name,
        Err(error) => {
            // The name may be long and arbitrary, so errors do not quote it.
            assert!(error.to_string().len() < 200, "{error}");
            return;
        }
    };
    assert_eq!((name.as_bytes(), name.to_str()), (data, text));
    if text.is_some() {
        assert_eq!(Name::new(name.to_string()).as_ref(), Ok(&name));
    }
    let owner = OwnerId {
        client: ClientId::from_random(7),
        number: 1,
    };
    for key in keys(&name, owner) {
        // A key that is too long for a name is none.
        if let Ok(key) = Name::new(key) {
            assert!(reserved::kept_under(&key).is_some(), "{key:?} is a name");
        }
    }
    match keyslot::of_name(&name) {
        Ok(slot) => {
            assert!(slot.0 < keyslot::SLOTS);
            let all = keys(&name, owner).into_iter().chain(channels(&name, owner));
            for key in all {
                assert_eq!(keyslot::of_key(&key), slot, "{key:?}");
            }
        }
        Err(unfit) => follow(&unfit, |name| keyslot::of_name(name).map(drop)),
    }
    let tag = &*TAG;
    match tag.name(&name) {
        Ok(tagged) => {
            assert!(tagged.as_bytes().ends_with(data));
            let all = keys(&tagged, owner)
                .into_iter()
                .chain(channels(&tagged, owner));
            for key in all {
                assert_eq!(keyslot::of_key(&key), tag.slot(), "{key:?}");
            }
        }
        Err(unfit) => follow(&unfit, |name| tag.check(name)),
    }
}

/// The tag of a member of a majority in a cluster. Finding it takes a while.
static TAG: LazyLock<Tag> = LazyLock::new(|| Tag::of_shard(1, 3));

/// Returns the keys that are reserved for a name.
fn keys(name: &Name, owner: OwnerId) -> Vec<Vec<u8>> {
    let keys = [
        key::token(name),
        key::queue(name),
        key::timeouts(name),
        key::alive(name),
    ];
    let mut all = vec![[&*key::own_leases(name, owner), b"1"].concat()];
    for key in keys {
        let bytes = key.to_bytes();
        assert_eq!(key.to_redis_args(), [&*bytes]);
        all.push(bytes);
    }
    all
}

/// Returns the channels of a name.
fn channels(name: &Name, owner: OwnerId) -> Vec<Vec<u8>> {
    let channels = [
        Channel::Lock(name.clone()),
        Channel::Waiter(name.clone(), owner),
        Channel::ReadWrite(name.clone()),
    ];
    channels.iter().map(key::channel_of).collect()
}

/// Follows the suggestion of an error.
fn follow(unfit: &UnfitName, check: impl Fn(&Name) -> Result<(), UnfitName>) {
    if let Some(instead) = &unfit.instead {
        let name = Name::new(instead).unwrap_or_else(|error| panic!("{unfit}: {error}"));
        assert_eq!(reserved::kept_under(&name), None, "{unfit}");
        if let Err(error) = check(&name) {
            panic!("{unfit}: {error}");
        }
    }
}
