//! The beginning of a run.

use std::rc::Rc;

use crate::engine::nodes::{clusters, elections};
use crate::engine::{faults, nodes};
use crate::history::Idle;
use crate::world::World;
use crate::world::by_id::ById;
use crate::world::client::ClientState;
use crate::world::election_group::ElectionGroup;
use crate::world::event::Event;
use crate::world::id::{Seat, first};
use crate::world::links::Links;
use crate::world::medium::Medium;
use crate::world::node::{NodeState, Role};
use crate::world::task::forget_ready;
use quorlock_sim_plan::Plan;
use quorlock_sim_plan::fault::{Fault, FaultKind, Kind};
use quorlock_sim_plan::time::SimTime;

/// Replaces the state of the previous run with the initial state of this one.
pub(super) fn begin(world: &mut World, plan: &Rc<Plan>, medium: &dyn Medium) {
    forget_ready();
    world.begin(plan);
    let clients = 0..plan.clients;
    world.clients = clients
        .map(|client| ClientState::new(plan.seed, client))
        .collect();
    build_nodes(world, plan);
    world.links = Links::new(plan, world.nodes.len());
    world.history.healed = plan.heals_at().as_nanos();
    world.history.progress_due = plan.heals_at().plus(plan.progress_bound()).as_nanos();
    let idle = |bound: SimTime| Idle {
        bound: bound.as_nanos(),
        until: plan.duration.as_nanos(),
    };
    world.history.idle_within = plan.idle_within.map(idle);
    world.history.free_within = plan.free_within.map(idle);
    faults::schedule(world);
    let stop = if plan.faults.is_empty() {
        plan.duration
    } else {
        plan.duration
            .max(SimTime::nanos(world.history.progress_due))
    };
    // In a run that ends earlier, a lack of progress does not show.
    world.history.demands_progress = world.history.progress_due <= stop.as_nanos();
    world.push(stop.as_nanos(), Event::Stop);
    world.servers = medium.servers(plan, world.nodes.len());
    // A branch at the first instant differs in everything that the clients draw when they start.
    world.branch_off();
    clusters::begin(world);
    nodes::confirm(world);
}

/// Adds the primaries, and then the replicas of each primary.
fn build_nodes(world: &mut World, plan: &Plan) {
    world.nodes = ById::default();
    let seats = first::<Seat>(plan.nodes.count);
    for _ in seats.clone() {
        world.nodes.push(NodeState::new(Role::Primary));
    }
    // The data of a replica is not observable unless it is promoted or recorded.
    let is_seen = |fault: &Fault| {
        let is_of_replica = matches!(
            fault.what,
            FaultKind::Node {
                replica: Some(_),
                ..
            }
        );
        fault.kind() == Kind::Failover || is_of_replica
    };
    let are_replicas_seen = world.recording.is_some()
        || plan.nodes.wait.is_some()
        || plan.nodes.min_replicas.is_some()
        || plan.nodes.are_groups()
        || plan.faults.iter().any(is_seen);
    for primary in seats.map(Seat::first_node) {
        for _ in 0..plan.nodes.replicas {
            let replica = world.nodes.push(NodeState::new(Role::ReplicaOf(primary)));
            if are_replicas_seen {
                world.node(primary).add_replica(replica, 0);
            }
        }
    }
    build_groups(world, plan);
}

/// Adds the sentinels of each node, if nodes are groups.
fn build_groups(world: &mut World, plan: &Plan) {
    world.groups = ById::default();
    world.shards = None;
    if let Some(cluster) = &plan.nodes.cluster {
        clusters::build(world, plan, cluster);
        elections::begin(world);
        return;
    }
    let Some(rules) = &plan.nodes.sentinels else {
        return;
    };
    for seat in first::<Seat>(plan.nodes.count) {
        let replicas = world.replicas_of(seat);
        let servers = std::iter::once(seat.first_node()).chain(replicas).collect();
        let sentinels = (0..rules.count).map(|_| world.nodes.push(NodeState::new(Role::Sentinel)));
        let sentinels = sentinels.collect();
        world
            .groups
            .push(ElectionGroup::new(rules, servers, sentinels));
    }
    elections::begin(world);
}
