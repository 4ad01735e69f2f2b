//! Persistence and replication: how the writes of a node reach its disk and its replicas.

use crate::world::World;
use crate::world::event::Event;
use crate::world::id::NodeId;
use crate::world::node::EVERY_SECOND;
use quorlock_sim_plan::Persistence;

/// Schedules a write to the disk, if the disk can differ from the memory.
pub(super) fn persist(world: &mut World, id: NodeId) {
    if world.plan.nodes.persistence != Persistence::EverySecond {
        return;
    }
    let at = world.now() + EVERY_SECOND;
    if world.node(id).begin_save() {
        world.push(at, Event::Save(id));
    }
}

/// Writes the disk of a node, if the node is up.
pub fn save(world: &mut World, id: NodeId) {
    if world.node(id).end_save() {
        world.servers.server(id).save();
    }
}

/// Persists and replicates what a server has written.
pub fn keep(world: &mut World, id: NodeId) {
    if world.servers.server(id).has_written() {
        persist(world, id);
        replicate(world, id);
    }
}

pub(super) fn replicate(world: &mut World, id: NodeId) {
    let usually = world.now() + world.plan.nodes.replication_lag.as_nanos();
    let node = world.node(id);
    let delay = node.replication_delay();
    let mut replicas = node.take_replicas();
    for (to, last) in &mut replicas {
        let to = world.node(*to);
        let comes = usually + delay + to.replication_delay();
        *last = (*last).max(comes).max(to.stream_held_until());
    }
    world.servers.replicate(id, &replicas);
    world.node(id).set_replicas(replicas);
}

/// Applies what has arrived from a node's primary. Must be called before a replica's keys are read, and before any
/// change that affects whether the node applies writes.
pub fn catch_up(world: &mut World, id: NodeId) {
    let now = world.now();
    let node = world.node(id);
    if now < node.stream_held_until() {
        return;
    }
    let primary = node.follows();
    world.servers.server(id).catch_up(now, primary);
}

/// Applies everything in flight from a node's primary. The primary writes nothing until the node has it.
pub(crate) fn catch_up_entirely(world: &mut World, id: NodeId) {
    let primary = world.node(id).follows();
    world.servers.server(id).catch_up(u64::MAX, primary);
}

/// Makes a replica start over with a full copy of its primary's data.
pub(super) fn follow(world: &mut World, replica: NodeId, primary: NodeId) {
    world.node(replica).begin_life();
    world.servers.follow(replica, primary);
}

/// Gives the replicas of a restarted node a full copy of its data.
pub(super) fn follow_anew(world: &mut World, primary: NodeId) {
    let replicas = world.node(primary).replicas().to_vec();
    for (replica, _) in replicas {
        if world.node(replica).follows() == Some(primary) {
            follow(world, replica, primary);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::world::id::Id;
    use crate::world::node::{NodeState, Role};
    use crate::world::specification::server::Specification;
    use quorlock_sim_plan::Plan;

    #[test]
    fn a_write_comes_to_a_replica_after_the_delays_of_both() {
        let plan = Rc::new(Plan::default());
        let lag = plan.nodes.replication_lag.as_nanos();
        let mut world = World::default();
        world.begin(&plan);
        world.advance(1_000);
        world.servers = Box::new(Specification::new(&plan, 2));
        let primary = world.nodes.push(NodeState::new(Role::Primary));
        let replica = world.nodes.push(NodeState::new(Role::ReplicaOf(primary)));
        assert_eq!((primary, replica), (NodeId::new(0), NodeId::new(1)));
        world.node(primary).add_replica(replica, 0);
        world.node(primary).begin_replication_delay(30);
        world.node(replica).begin_replication_delay(4);
        replicate(&mut world, primary);
        assert_eq!(world.node(primary).replicas(), [(replica, 1_034 + lag)]);
        // A later write does not overtake an earlier one.
        world.node(replica).end_replication_delay(4);
        replicate(&mut world, primary);
        assert_eq!(world.node(primary).replicas(), [(replica, 1_034 + lag)]);
    }
}
