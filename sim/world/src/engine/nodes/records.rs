//! Execution of reads and writes of records by stores.

use quorlock::Name;
use quorlock::transport::{Channel, Wake};

use crate::engine::network::{calls, subscriptions};
use crate::engine::nodes::{dead_claims, replicas};
use crate::history::Process;
use crate::world::World;
use crate::world::call::{Answer, Call, Returned};
use crate::world::id::{ClientId, Id, NodeId};
use crate::world::record_call::{Found, RecordCall};
use crate::world::records::Told;
use crate::world::slab::Key;
use crate::world::specification::server::Specification;
use quorlock_store::Written;

/// Executes a call of a client at a store, and answers it.
pub(super) fn execute(
    world: &mut World,
    key: Key<Call>,
    (id, client): (NodeId, ClientId),
    by: Process,
    call: &RecordCall,
) {
    let now = world.now();
    let wall = world.node(id).wall(now);
    let server = Specification::of(&mut *world.servers).records_at(id);
    let (found, told) = server.execute(wall, call);
    world.note(digest(&found) ^ u64::from(id.get()) << 56);
    replicas::keep(world, id);
    let seat = world.seat_of(id);
    dead_claims::write(world, seat, by);
    if told == Told::Changed
        && let Ok(name) = Name::new(call.key().as_bytes())
    {
        // The driver tells its client that something has changed, whatever kind of lock it is about.
        subscriptions::publish(world, id, &Channel::Lock(name), Wake::Unlocked, client);
    }
    let answer: Answer = Ok(Returned::Found(found));
    calls::reply(world, key, answer);
}

/// Returns a number for the trace that depends on what was found.
fn digest(found: &Found) -> u64 {
    let number = |version: &quorlock_store::Version| version.to_number().unwrap_or_default();
    match found {
        Found::Snapshot(snapshot) => {
            let stored = snapshot.stored.as_ref();
            stored.map_or(20, |stored| number(&stored.version) << 8 | 21)
        }
        Found::Written(Written::Stored { version, .. }) => number(version) << 8 | 22,
        Found::Written(Written::Conflict) => 23,
        Found::Committed(committed) => 24 + u64::from(committed.is_ok()),
    }
}
