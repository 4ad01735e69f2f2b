//! What a node has written comes to its disk and to its replicas.

use crate::plan::Persistence;
use crate::world::World;
use crate::world::event::What;
use crate::world::node::{EVERY_SECOND, Role};

/// Sees to it that a write comes to the disk, if the disk is ever different from the memory.
pub(crate) fn persist(world: &mut World, id: u16) {
    if world.plan.nodes.persistence != Persistence::EverySecond {
        return;
    }
    let at = world.now + EVERY_SECOND;
    let node = world.node(id);
    if !node.saves {
        node.saves = true;
        world.push(at, What::Save(id));
    }
}

pub(crate) fn save(world: &mut World, id: u16) {
    let node = world.node(id);
    if node.is_up {
        node.saves = false;
        world.servers.server(id).save();
    }
}

/// What a server has written comes to its disk and to its replicas.
pub(crate) fn keep(world: &mut World, id: u16) {
    if world.servers.server(id).has_written() {
        persist(world, id);
        replicate(world, id);
    }
}

pub(crate) fn replicate(world: &mut World, id: u16) {
    let usually = world.now + world.plan.nodes.replication_lag.as_nanos();
    let node = world.node(id);
    let delay = node.replication_delay;
    let mut replicas = std::mem::take(&mut node.replicas);
    for (to, last) in &mut replicas {
        *last = (*last).max(usually + delay + world.node(*to).replication_delay);
    }
    world.servers.replicate(id, &replicas);
    world.node(id).replicas = replicas;
}

/// A node takes over what has come from its primary by now. To be called before anything is read from a replica,
/// and before anything about a node changes that decides whether it takes over.
pub(crate) fn catch_up(world: &mut World, id: u16) {
    let now = world.now;
    let node = world.node(id);
    let primary = match node.role {
        Role::ReplicaOf(primary) if node.is_up => Some(primary),
        _ => None,
    };
    world.servers.server(id).catch_up(now, primary);
}

/// A replica begins with all that its primary has.
pub(crate) fn follow(world: &mut World, replica: u16, primary: u16) {
    world.node(replica).lives += 1;
    world.servers.follow(replica, primary);
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::plan::Plan;
    use crate::world::node::NodeState;
    use crate::world::specification::server::Specification;

    #[test]
    fn a_write_comes_to_a_replica_after_the_delays_of_both() {
        let plan = Rc::new(Plan::default());
        let lag = plan.nodes.replication_lag.as_nanos();
        let mut world = World {
            servers: Box::new(Specification::new(&plan, 2)),
            plan,
            now: 1_000,
            nodes: vec![
                NodeState::new(Role::Primary),
                NodeState::new(Role::ReplicaOf(0)),
            ],
            ..World::default()
        };
        world.node(0).replicas = vec![(1, 0)];
        world.node(0).replication_delay = 30;
        world.node(1).replication_delay = 4;
        replicate(&mut world, 0);
        assert_eq!(world.node(0).replicas, [(1, 1_034 + lag)]);
        // What is written later does not overtake it.
        world.node(1).replication_delay = 0;
        replicate(&mut world, 0);
        assert_eq!(world.node(0).replicas, [(1, 1_034 + lag)]);
    }
}
