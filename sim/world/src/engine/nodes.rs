//! The life of nodes: pauses, crashes and restarts.

mod answers;
pub mod arrivals;
pub mod clusters;
pub(crate) mod dead_claims;
pub mod elections;
pub mod execution;
pub mod failover;
pub mod handover;
pub mod migration;
mod records;
pub mod replicas;
pub(crate) mod statements;
mod thefts;
mod view;
pub mod wait;

use quorlock_core::marker::Nonce;

use crate::engine::network::{connections, subscriptions};
use crate::world::World;
use crate::world::client::Counted;
use crate::world::event::Event;
use crate::world::id::{Id, NodeId, first};
use crate::world::node::Role;
use quorlock_sim_plan::Persistence;

/// Pauses a node until this time.
pub fn pause(world: &mut World, id: NodeId, until: u64) {
    if let Some(pause) = world.node(id).pause(until) {
        world.push(until, Event::ResumeNode(id, pause));
    }
}

pub(crate) fn resume(world: &mut World, id: NodeId, pause: u32) {
    for key in world.node(id).resume(pause) {
        arrivals::execute_held_up(world, key);
    }
}

/// Crashes a node. Connected clients learn of it over the network. Returns whether the node was up.
pub fn crash(world: &mut World, id: NodeId) -> bool {
    end(world, id, world.plan.nodes.persistence)
}

/// Begins the period before a power loss: what the node writes from now on is lost.
pub(crate) fn write_in_vain(world: &mut World, id: NodeId) {
    replicas::catch_up(world, id);
    world.node(id).write_in_vain();
    world.servers.server(id).save();
}

/// Ends a node by a power loss. The node keeps only what it had before that period. Returns whether the node was up.
pub fn lose_power(world: &mut World, id: NodeId) -> bool {
    match world.plan.nodes.persistence {
        Persistence::Memory => end(world, id, Persistence::Memory),
        Persistence::EverySecond | Persistence::EveryWrite => {
            end(world, id, Persistence::EverySecond)
        }
    }
}

fn end(world: &mut World, id: NodeId, disk: Persistence) -> bool {
    replicas::catch_up(world, id);
    let Some(held_up) = world.node(id).crash(disk) else {
        return false;
    };
    for key in held_up {
        arrivals::forget(world, key);
    }
    world.servers.hang_up(id);
    if let Some(shards) = &mut world.shards {
        shards.end_process(id);
    }
    world.servers.server(id).crash(disk);
    let replicas = world.node(id).replicas().len();
    world.servers.server(id).set_replicas(replicas);
    for client in first(world.plan.clients) {
        connections::lose(world, client, id);
    }
    true
}

pub(crate) fn restart(world: &mut World, id: NodeId) {
    replicas::catch_up(world, id);
    world.servers.server(id).restart();
    let node = world.node(id);
    node.restart();
    let error = node.error().map(|(error, _)| error);
    // A replica starts over with a full copy of its primary's data.
    if let Some(primary) = node.follows() {
        replicas::follow(world, id, primary);
    }
    // The replicas of this node request a full copy, and lose the keys that the copy does not have.
    if world.node(id).role() == Role::Primary {
        replicas::follow_anew(world, id);
    }
    // It is a new process, but the error that the plan demands for this node is still in effect.
    world.servers.server(id).refuse(error);
    world.servers.listen(id);
}

/// Deletes all keys of a node. Returns whether there was a claim.
pub(crate) fn flush(world: &mut World, id: NodeId) -> bool {
    let now = world.micros(id);
    let names = &world.history.names;
    let had_any = world.servers.server(id).flush(now, names);
    subscriptions::tell_losses(world, id);
    had_any
}

/// Evicts the keys of a name from a node. Returns whether there were any.
pub(crate) fn evict(world: &mut World, id: NodeId, name: u16) -> bool {
    let now = world.micros(id);
    let name = world.history.names.get(usize::from(name));
    let had_any = name.is_some_and(|name| world.servers.server(id).evict(now, name));
    subscriptions::tell_losses(world, id);
    had_any
}

/// Simulates a backup: a replica connects, reads everything and leaves. Returns whether the node's identity has
/// changed.
pub fn back_up(world: &mut World, id: NodeId) -> bool {
    // Only a first replica makes the node begin a new history. A node with replicas has a backlog, and keeps it for an
    // hour after the last replica has left. Runs are shorter than that.
    if !world.node(id).is_up() || 0 < world.plan.nodes.replicas {
        return false;
    }
    world.servers.server(id).back_up();
    true
}

/// Frees the backlog of a node without replicas. Returns whether the node's identity has changed.
pub fn free_backlog(world: &mut World, id: NodeId) -> bool {
    let node = world.node(id);
    if !node.is_up() || !node.replicas().is_empty() {
        return false;
    }
    // The effect is the same as that of a backup.
    world.servers.server(id).back_up();
    true
}

/// Pauses a node after the request that it is executing. The node's messages leave after the pause.
pub(crate) fn stall(world: &mut World, id: NodeId, due: Counted) {
    let until = world.now() + due.lasts();
    world.blame(due.fault());
    world.heals_later(until);
    pause(world, id, until);
    for client in first(world.plan.clients) {
        world.link(client, id).say_nothing_until(until);
    }
}

/// Gives every node a marker at the beginning of the run, as if it had been watched for longer than the longest lease.
pub fn confirm(world: &mut World) {
    for id in world.nodes.ids() {
        let longest = world.plan.longest_lease_on(id.get());
        let longest_millis = longest.as_nanos().div_ceil(1_000_000);
        let now = world.micros(id);
        let node = world.node(id);
        match node.role() {
            Role::Primary => {}
            Role::ReplicaOf(primary) => {
                replicas::follow(world, id, primary);
                continue;
            }
            Role::Sentinel => continue,
        }
        let replicas = node.replicas().len();
        let server = world.servers.server(id);
        server.set_replicas(replicas);
        server.mark(now, Nonce::new(u64::from(id.get())), longest_millis);
        server.save();
        replicas::keep(world, id);
    }
}
