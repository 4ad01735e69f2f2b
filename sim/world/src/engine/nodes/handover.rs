//! Handovers: a replica is ordered to replace the primary of a shard of a cluster.

use crate::engine::nodes::clusters::{refresh, seen};
use crate::engine::nodes::{elections, replicas};
use crate::world::World;
use crate::world::election_group::View as _;
use crate::world::id::{FaultId, NodeId, Seat};
use crate::world::node::{NodeState, Role};
use quorlock_sim_plan::fault::Handover;

/// Orders a replica of a shard to replace its primary.
pub fn hand_over(world: &mut World, seat: Seat, by: FaultId, how: Handover) {
    let primary = world.failovers.primary(seat);
    let servers = world.groups.get(seat).map(|group| group.servers().to_vec());
    let is_ready = |server: &NodeId| {
        let state = world.nodes.get(*server);
        let role = state.map(NodeState::role);
        let is_replica = role == Some(Role::ReplicaOf(primary));
        is_replica && seen(world).is_awake(*server)
    };
    let ready: Vec<NodeId> = servers.into_iter().flatten().filter(is_ready).collect();
    let Some(leader) = ready.first().copied() else {
        return;
    };
    if how == Handover::Manual {
        let is_apart = world
            .groups
            .get(seat)
            .is_some_and(|group| group.is_apart(leader, primary));
        if !seen(world).is_awake(primary) || is_apart {
            return;
        }
        for replica in ready {
            replicas::catch_up_entirely(world, replica);
        }
    }
    elections::strike(world, seat, by, primary);
    elections::promote(world, seat, leader, primary);
    world.blame(by);
    refresh(world);
}
