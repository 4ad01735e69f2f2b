//! The faults of nodes: what happens to the server that is struck, and to its group or cluster.

use super::{clocks, groups, replicas, routes};
use crate::engine::nodes;
use crate::engine::nodes::failover::{self, Promotion};
use crate::engine::nodes::replicas::keep;
use crate::engine::nodes::{elections, handover, migration};
use crate::world::World;
use crate::world::client::Counted;
use crate::world::event::Event;
use crate::world::id::{FaultId, Id, NodeId, Seat, first};
use quorlock_sim_plan::fault::{NodeFault, ServerError};
use quorlock_sim_plan::time::{ClockStep, SimTime};

/// Begins a fault of a server of a node: of its primary, or of one of the servers that were replicas when the run began.
/// If such a server has been promoted since, the fault strikes it as the primary.
pub(super) fn begin(
    world: &mut World,
    (seat, replica): (Seat, Option<NodeId>),
    fault: &NodeFault,
    id: FaultId,
    until: u64,
) {
    let primary = world.failovers.primary(seat);
    if replica == Some(primary) {
        elections::strike(world, seat, id, primary);
    }
    let node = replica.unwrap_or(primary);
    let target = Target {
        seat,
        node,
        is_replica: replica.is_some(),
        id,
        until,
    };
    if target.begin(world, fault) {
        world.blame(id);
    }
}

/// The server that a fault strikes. Each method begins a fault, and returns whether it has an effect at once.
#[derive(Clone, Copy)]
struct Target {
    seat: Seat,
    node: NodeId,
    is_replica: bool,
    id: FaultId,
    until: u64,
}

impl Target {
    fn begin(self, world: &mut World, fault: &NodeFault) -> bool {
        match fault {
            NodeFault::Pause => self.pause(world),
            NodeFault::Crash if self.is_replica => {
                replicas::crash(world, self.seat, self.node, self.id, self.until)
            }
            NodeFault::Crash => nodes::crash(world, self.node) && self.goes_down(world),
            NodeFault::PowerLoss { .. } => {
                nodes::lose_power(world, self.node) && self.goes_down(world)
            }
            NodeFault::Flush => self.flush(world),
            NodeFault::Evict { name } => self.evict(world, *name),
            NodeFault::Error { error } => self.refuse(world, *error),
            NodeFault::RevokeKeys { name } => self.revoke(world, *name),
            NodeFault::ForgetScripts => self.forget_scripts(world),
            NodeFault::Rate { rate_ppm } => self.run_clock_at(world, *rate_ppm),
            NodeFault::Step { by } => self.step_clock(world, *by),
            NodeFault::SlowReplication { by, replica } => self.slow_down(world, *by, *replica),
            NodeFault::Failover {
                replica,
                left_behind,
            } => self.fail_over(world, *replica, left_behind),
            NodeFault::Stall { nth } => self.stall(world, *nth),
            NodeFault::FreeBacklog => nodes::free_backlog(world, self.node),
            NodeFault::Misroute { clients, .. } => self.misroute(world, clients),
            NodeFault::IsolatePrimary { clients, sentinels } => {
                groups::isolate(world, self.seat, self.id, (clients, sentinels), self.until);
                true
            }
            NodeFault::StaleSentinel { sentinel } => {
                groups::make_stale(world, self.seat, self.id, *sentinel, self.until);
                true
            }
            NodeFault::CrashSentinel { sentinel } => {
                groups::crash_sentinel(world, self.seat, *sentinel, self.until)
            }
            NodeFault::PauseSentinel { sentinel } => {
                groups::pause_sentinel(world, self.seat, *sentinel, self.until);
                true
            }
            // The last three count as effective if a failover begins, or if they change anything.
            NodeFault::SentinelFailover => {
                elections::order(world, self.seat, self.id);
                false
            }
            NodeFault::MigrateSlot { name, to, .. } => self.migrate(world, *name, *to),
            NodeFault::ClusterFailover { how } => {
                handover::hand_over(world, self.seat, self.id, *how);
                false
            }
        }
    }

    fn migrate(self, world: &mut World, name: u16, to: u16) -> bool {
        let move_of_slot = (name, Seat::new(to));
        migration::begin(world, self.seat, move_of_slot, self.id, self.until);
        false
    }

    fn pause(self, world: &mut World) -> bool {
        if self.is_replica {
            replicas::pause(world, self.node, self.until);
        } else {
            elections::strike(world, self.seat, self.id, self.node);
            nodes::pause(world, self.node, self.until);
        }
        true
    }

    /// The primary is down from now on, and restarts when the fault ends.
    fn goes_down(self, world: &mut World) -> bool {
        elections::strike(world, self.seat, self.id, self.node);
        elections::primary_ended(world, self.seat, self.node);
        world.push(self.until, Event::RestartNode(self.node));
        true
    }

    fn flush(self, world: &mut World) -> bool {
        world.node(self.node).begin_life();
        let had_any = nodes::flush(world, self.node);
        keep(world, self.node);
        had_any
    }

    fn evict(self, world: &mut World, name: u16) -> bool {
        let had_any = nodes::evict(world, self.node, name);
        keep(world, self.node);
        had_any
    }

    /// Counts as effective when a request encounters it, as do the next two.
    fn refuse(self, world: &mut World, error: ServerError) -> bool {
        elections::strike(world, self.seat, self.id, self.node);
        world.node(self.node).begin_error(error, self.id);
        world.servers.server(self.node).refuse(Some(error));
        world.push(self.until, Event::Ends(self.id));
        false
    }

    fn revoke(self, world: &mut World, name: u16) -> bool {
        elections::strike(world, self.seat, self.id, self.node);
        world.node(self.node).revoke(name, self.id);
        world.push(self.until, Event::Ends(self.id));
        false
    }

    fn forget_scripts(self, world: &mut World) -> bool {
        world.servers.server(self.node).forget_scripts();
        for client in first(world.plan.clients) {
            world.link(client, self.node).forget_scripts(self.id);
        }
        false
    }

    fn run_clock_at(self, world: &mut World, rate_ppm: i32) -> bool {
        let now = world.now();
        world.node(self.node).clock_mut().run_at(now, rate_ppm);
        true
    }

    fn step_clock(self, world: &mut World, by: ClockStep) -> bool {
        let now = world.now();
        match now == 0 && !self.is_replica {
            true => clocks::set_nodes(world, self.seat, by.as_nanos()),
            false => world.node(self.node).clock_mut().step(now, by.as_nanos()),
        }
        true
    }

    fn slow_down(self, world: &mut World, by: SimTime, replica: Option<u16>) -> bool {
        elections::strike(world, self.seat, self.id, self.node);
        let slow = slow_end(world, self.seat, self.node, replica);
        world.node(slow).begin_replication_delay(by.as_nanos());
        world.push(self.until, Event::Ends(self.id));
        true
    }

    fn fail_over(self, world: &mut World, replica: u16, left_behind: &[u16]) -> bool {
        let promotion = Promotion {
            by: self.id,
            seat: self.seat,
            replica,
            left_behind,
            rejoins: self.until,
        };
        failover::promote(world, promotion);
        world.push(self.until, Event::Ends(self.id));
        true
    }

    /// Counts as effective when a request encounters it, as does the next one.
    fn stall(self, world: &mut World, nth: u32) -> bool {
        let counted = Counted::new(nth, self.until - world.now(), self.id);
        world.node(self.node).stall(counted);
        false
    }

    fn misroute(self, world: &mut World, clients: &[u16]) -> bool {
        routes::begin(world, self.seat, clients, self.id, self.until);
        world.push(self.until, Event::Ends(self.id));
        false
    }
}

/// Returns the node whose replication is slow: the primary, or a replica of a node of the plan.
fn slow_end(world: &World, seat: Seat, primary: NodeId, replica: Option<u16>) -> NodeId {
    let slow = replica.and_then(|replica| world.replicas_of(seat).nth(replica.into()));
    slow.unwrap_or(primary)
}

/// Ends a fault of the primary of a node.
pub(super) fn end(world: &mut World, seat: Seat, fault: &NodeFault, id: FaultId) {
    let node = elections::struck(world, seat, id);
    match fault {
        NodeFault::Error { .. } => {
            let was_its_own = world.node(node).end_error(id);
            if was_its_own {
                world.servers.server(node).refuse(None);
            }
        }
        NodeFault::RevokeKeys { .. } => world.node(node).grant_again(id),
        NodeFault::SlowReplication { by, replica } => {
            let slow = slow_end(world, seat, node, *replica);
            world.node(slow).end_replication_delay(by.as_nanos());
        }
        NodeFault::Failover { .. } => failover::rejoin(world, id),
        NodeFault::Misroute { clients, .. } => routes::end(world, seat, clients, id),
        NodeFault::IsolatePrimary { .. } | NodeFault::StaleSentinel { .. } => {
            groups::end(world, seat, id);
        }
        // These faults happen once, or end by an event of their own.
        NodeFault::Pause
        | NodeFault::Crash
        | NodeFault::PowerLoss { .. }
        | NodeFault::Flush
        | NodeFault::Evict { .. }
        | NodeFault::ForgetScripts
        | NodeFault::Rate { .. }
        | NodeFault::Step { .. }
        | NodeFault::SentinelFailover
        | NodeFault::CrashSentinel { .. }
        | NodeFault::PauseSentinel { .. }
        | NodeFault::Stall { .. }
        | NodeFault::FreeBacklog
        | NodeFault::MigrateSlot { .. }
        | NodeFault::ClusterFailover { .. } => {}
    }
}
