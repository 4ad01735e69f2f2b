//! Records the state after each event, for reports.

pub(crate) mod message;

use quorlock::{Name, OwnerId};
use quorlock_core::message::Ttl;

use crate::engine::nodes::replicas;
use crate::history::NameId;
use crate::history::recording::{
    Claim, ClockId, Expiry, FIRST_ACQUIRED, ProcessPlace, Recording, Status,
};
use crate::world::World;
use crate::world::clock::right_wall_clock;
use crate::world::id::{Id, NodeId};
use crate::world::node::{NodeState, Role};

/// Records the state of all nodes and clients after an event.
pub(crate) fn everything(world: &mut World) {
    let Some(mut recording) = world.recording.take() else {
        return;
    };
    for name in world.history.names.iter().skip(recording.names.len()) {
        if let Ok(name) = Name::new(name) {
            recording.names.push(name);
        }
    }
    for node in world.nodes.ids() {
        replicas::catch_up(world, node);
    }
    nodes(world, &mut recording);
    clients(world, &mut recording);
    world.recording = Some(recording);
}

fn nodes(world: &World, recording: &mut Recording) {
    let now = world.now();
    let right = right_wall_clock().read(now);
    for (id, node) in world.nodes.iter() {
        let status = match node.role() {
            _ if !node.is_up() => Some(Status::Down),
            _ if now < node.paused_until() => Some(Status::Paused),
            Role::ReplicaOf(_) => Some(Status::Replica),
            Role::Primary | Role::Sentinel => None,
        };
        recording.state(ProcessPlace::Node(id.get()), status, now);
        recording.clock(ClockId::Node(id.get()), now, right, node.clock().read(now));
        let known = recording.names.iter().cloned().zip(0u16..);
        let known = known.filter(|(name, _)| !recording.acquired.contains(name));
        let acquired = recording.acquired.iter().cloned().zip(FIRST_ACQUIRED..);
        let names: Vec<_> = known.chain(acquired).collect();
        for (name, index) in names {
            let standing = standing(world, id, node, &name);
            claims(world, recording, (id.get(), NameId(index)), &standing);
        }
    }
}

/// Returns the owners with a claim under a name of a node, each with the true time of its expiry if the clock keeps
/// its current rate.
fn standing(
    world: &World,
    id: NodeId,
    node: &NodeState,
    name: &Name,
) -> Vec<(Option<OwnerId>, u64)> {
    let now = world.now();
    let wall = node.wall(now);
    let expires = |ttl| match ttl {
        // A key exists until the end of its last millisecond.
        Ttl::Millis(millis) => {
            let last = wall.0.saturating_add(millis);
            let next = last.saturating_add(1).saturating_mul(1_000_000);
            node.clock().when(now, next)
        }
        Ttl::Unbounded => u64::MAX,
    };
    let claims = world.servers.claims(id, node.micros(now), name).into_iter();
    claims.map(|(owner, ttl)| (owner, expires(ttl))).collect()
}

fn claims(
    world: &World,
    recording: &mut Recording,
    place: (u16, NameId),
    standing: &[(Option<OwnerId>, u64)],
) {
    let now = world.now();
    recording.end_claims(place, now, standing);
    for (identity, expires) in standing.iter().copied() {
        let open = recording.open_claims.entry(place).or_default();
        let known = open.iter().copied().find(|index| {
            let claim = recording.claims.get(*index);
            claim.is_some_and(|claim| claim.identity == identity)
        });
        if let Some(claim) = known.and_then(|index| recording.claims.get_mut(index)) {
            claim.expire(now, expires);
            continue;
        }
        open.push(recording.claims.len());
        let owner = identity.and_then(|owner| recording.owners.get(&owner).copied());
        recording.claims.push(Claim {
            node: place.0,
            name: place.1,
            owner,
            from: now,
            until: u64::MAX,
            identity,
            expiries: vec![Expiry {
                since: now,
                expires,
            }],
        });
    }
}

fn clients(world: &World, recording: &mut Recording) {
    let now = world.now();
    let right = right_wall_clock().read(now);
    for (id, client) in world.clients.iter() {
        let id = id.get();
        let status = if !client.is_up() {
            Some(Status::Down)
        } else if now < client.paused_until() {
            Some(Status::Paused)
        } else {
            None
        };
        recording.state(ProcessPlace::Client(id), status, now);
        recording.clock(ClockId::Wall(id), now, right, client.wall().read(now));
        let shown = client.monotonic().read(now);
        if recording.uptimes.len() == usize::from(id) {
            recording.uptimes.push(shown.saturating_sub(now));
        }
        let uptime = recording.uptimes.get(usize::from(id)).copied().unwrap_or(0);
        recording.clock(ClockId::Monotonic(id), now, uptime + now, shown);
    }
}
