//! The names and owners in generated sequences.

use quorlock_core::message::Channel;
use quorlock_core::name::Name;
use quorlock_core::owner::{ClientId, OwnerId};

/// Returns the names in the sequences. The first and the last are twins.
///
/// # Panics
/// Never panics: they are well-formed.
#[must_use]
pub fn names() -> Vec<Name> {
    named(["orders/42", "{tag}:stock 7", "a}b{c", "заказ/🔒", TWIN])
}

/// The twin of `orders/42`: the name has the same counter, queue and channels.
pub(super) const TWIN: &str = "{orders/42}";

pub(super) fn named<const N: usize>(names: [&str; N]) -> Vec<Name> {
    let name = |name| Name::new(name).expect("a well-formed name");
    names.map(name).to_vec()
}

/// Returns more names, because the callers of one process may use many. Some are twins.
///
/// # Panics
/// Never panics: they are well-formed.
#[must_use]
pub fn many_names() -> Vec<Name> {
    let more = (0..8).map(|number| format!("jobs/{number}"));
    let twins = (0..2).map(|number| format!("{{jobs/{number}}}"));
    let more = more.chain(twins);
    let more = more.map(|name| Name::new(name).expect("a well-formed name"));
    names().into_iter().chain(more).collect()
}

/// Returns every channel of a name on which something may be published in the sequences.
pub(super) fn channels(name: &Name) -> Vec<Channel> {
    let waiters = OWNERS.map(|owner| Channel::Waiter(name.clone(), owner_of(owner)));
    let both = [
        Channel::Lock(name.clone()),
        Channel::ReadWrite(name.clone()),
    ];
    waiters.into_iter().chain(both).collect()
}

/// Returns the owners in the sequences.
#[must_use]
pub fn owners() -> [OwnerId; 3] {
    OWNERS.map(owner_of)
}

pub(super) const OWNERS: [(u128, u64); 3] = [(1, 1), (1, 2), (2, (1 << 63) - 1)];

pub(super) fn owner_of((client, number): (u128, u64)) -> OwnerId {
    OwnerId {
        client: ClientId::from_random(client),
        number,
    }
}
