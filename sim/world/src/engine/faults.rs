//! Faults, and how they take effect.

mod clocks;
mod groups;
mod links;
mod replicas;
mod routes;

use std::rc::Rc;

use crate::engine::nodes::failover::{self, Promotion};
use crate::engine::nodes::replicas::keep;
use crate::engine::nodes::{dead_claims, elections, handover, migration};
use crate::engine::{clients, nodes};
use crate::history::{Began, Process};
use crate::world::World;
use crate::world::client::Counted;
use crate::world::event::Event;
use crate::world::id::{ClientId, FaultId, Id, NodeId, Seat, first};
use crate::world::stop::Stop;
use crate::world::task::Task;
use quorlock_sim_plan::fault::{ClientFault, Fault, FaultKind, NodeFault, NodesFault, Trigger};
use quorlock_sim_plan::time::SimTime;

/// Work that must be done while the world is not borrowed.
#[derive(Debug)]
pub(crate) enum Deferred {
    Nothing,
    /// Tasks of a process that has ended, to be dropped.
    Drop(Vec<Task>),
}

/// Schedules every fault of the plan.
pub(crate) fn schedule(world: &mut World) {
    let plan = Rc::clone(&world.plan);
    for (fault, id) in plan.faults.iter().zip(0..) {
        let id = FaultId::new(id);
        if let Trigger::After(after) = fault.when {
            world.triggers.await_message(id, after);
        }
        for at in fault.when.times().map(SimTime::as_nanos) {
            if let FaultKind::Node {
                fault: NodeFault::PowerLoss { loses },
                ..
            } = fault.what
            {
                world.push(at.saturating_sub(loses.as_nanos()), Event::Vain(id));
            }
            world.push(at, Event::Begins(id));
        }
    }
}

/// Marks what the node of a power loss writes from now on as lost when the fault begins.
pub(crate) fn write_in_vain(world: &mut World, id: FaultId) {
    let plan = Rc::clone(&world.plan);
    for seat in plan.faults.get(id.index()).map_or(&[][..], Fault::nodes) {
        let node = world.failovers.primary(Seat::new(*seat));
        nodes::write_in_vain(world, node);
    }
}

pub(crate) fn begin(world: &mut World, id: FaultId) -> Deferred {
    let plan = Rc::clone(&world.plan);
    let Some(fault) = plan.faults.get(id.index()) else {
        return Deferred::Nothing;
    };
    let until = world.now() + fault.lasts.as_nanos();
    // For a fixed fault, the check of the plan has compared its end with the length of the run.
    if !fault.is_fixed() && plan.duration.as_nanos() < until {
        return Deferred::Nothing;
    }
    let client = match fault.what {
        FaultKind::Client { client, .. } => match world.meant(client) {
            None => {
                world.triggers.await_role(id, client);
                return Deferred::Nothing;
            }
            client => client,
        },
        _ => None,
    };
    if !fault.is_fixed() {
        world.history.began.push(Began {
            fault: id.index(),
            at: world.now(),
            client: client.map(Id::get),
        });
    }
    match &fault.what {
        FaultKind::Link { .. } => links::begin(world, fault, id, until),
        FaultKind::Client { fault: what, .. } => {
            let Some(client) = client else {
                return Deferred::Nothing;
            };
            return begin_on_client(world, client, *what, id, until);
        }
        FaultKind::Node {
            node,
            replica,
            fault: what,
        } => {
            let seat = Seat::new(*node);
            let replica = replica.and_then(|number| world.replicas_of(seat).nth(number.into()));
            begin_on_node(world, (seat, replica), what, id, until);
        }
        FaultKind::Nodes { nodes, fault } => match fault {
            NodesFault::Backup => {
                for seat in nodes {
                    let node = world.failovers.primary(Seat::new(*seat));
                    if nodes::back_up(world, node) {
                        world.blame(id);
                    }
                }
            }
        },
    }
    Deferred::Nothing
}

fn begin_on_client(
    world: &mut World,
    client: ClientId,
    fault: ClientFault,
    id: FaultId,
    until: u64,
) -> Deferred {
    let now = world.now();
    match fault {
        ClientFault::Pause => clients::pause(world, client, until),
        // These faults count as effective when they strike.
        ClientFault::PauseInside { nth } => {
            let counted = Counted::new(nth, until - now, id);
            world.client(client).pause_inside(counted);
            return Deferred::Nothing;
        }
        ClientFault::StopInside { nth } => {
            clients::stop_inside(world, client, Stop::new(nth, until - now, Some(id)));
            return Deferred::Nothing;
        }
        ClientFault::Cancel { nth } => {
            world.client(client).cancel(Counted::new(nth, 0, id));
            return Deferred::Nothing;
        }
        ClientFault::Suspend { clock } => clocks::suspend(world, client, until, clock),
        ClientFault::Rate { rate_ppm } => clocks::run_at(world, client, rate_ppm),
        ClientFault::Step { by } => world.client(client).step_wall(now, by.as_nanos()),
        ClientFault::Crash if world.client(client).is_up() => {
            world.blame(id);
            let process = Process {
                client: client.get(),
                restarts: world.client(client).restarts(),
            };
            let tasks = clients::kill(world, client);
            world.history.died.push((process, now));
            dead_claims::leave(world, process);
            world.push(until, Event::BootClient(client));
            return Deferred::Drop(tasks);
        }
        ClientFault::Crash => return Deferred::Nothing,
    }
    world.blame(id);
    Deferred::Nothing
}

/// Begins a fault of a server of a node: of its primary, or of one of the servers that were replicas when the run began.
/// If such a server has been promoted since, the fault strikes it as the primary.
fn begin_on_node(
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
    let now = world.now();
    match fault {
        NodeFault::Pause if replica.is_some() => replicas::pause(world, node, until),
        NodeFault::Pause => {
            elections::strike(world, seat, id, node);
            nodes::pause(world, node, until);
        }
        NodeFault::Crash if replica.is_some() => {
            if !replicas::crash(world, seat, node, id, until) {
                return;
            }
        }
        NodeFault::Crash => {
            if !nodes::crash(world, node) {
                return;
            }
            elections::strike(world, seat, id, node);
            elections::primary_ended(world, seat, node);
            world.push(until, Event::RestartNode(node));
        }
        NodeFault::PowerLoss { .. } => {
            if !nodes::lose_power(world, node) {
                return;
            }
            elections::strike(world, seat, id, node);
            elections::primary_ended(world, seat, node);
            world.push(until, Event::RestartNode(node));
        }
        NodeFault::Flush => {
            world.node(node).begin_life();
            let had_any = nodes::flush(world, node);
            keep(world, node);
            if !had_any {
                return;
            }
        }
        NodeFault::Evict { name } => {
            let had_any = nodes::evict(world, node, *name);
            keep(world, node);
            if !had_any {
                return;
            }
        }
        // These faults count as effective when a request encounters them.
        NodeFault::Error { error } => {
            elections::strike(world, seat, id, node);
            world.node(node).begin_error(*error, id);
            world.servers.server(node).refuse(Some(*error));
            world.push(until, Event::Ends(id));
            return;
        }
        NodeFault::RevokeKeys { name } => {
            elections::strike(world, seat, id, node);
            world.node(node).revoke(*name, id);
            world.push(until, Event::Ends(id));
            return;
        }
        NodeFault::ForgetScripts => {
            world.servers.server(node).forget_scripts();
            for client in first(world.plan.clients) {
                world.link(client, node).forget_scripts(id);
            }
            return;
        }
        NodeFault::Rate { rate_ppm } => world.node(node).clock_mut().run_at(now, *rate_ppm),
        NodeFault::Step { by } if now == 0 && replica.is_none() => {
            clocks::set_nodes(world, seat, by.as_nanos())
        }
        NodeFault::Step { by } => world.node(node).clock_mut().step(now, by.as_nanos()),
        NodeFault::SlowReplication { by, replica } => {
            elections::strike(world, seat, id, node);
            let slow = slow_end(world, seat, node, *replica);
            world.node(slow).begin_replication_delay(by.as_nanos());
            world.push(until, Event::Ends(id));
        }
        NodeFault::Failover {
            replica,
            left_behind,
        } => {
            let promotion = Promotion {
                by: id,
                seat,
                replica: *replica,
                left_behind,
                rejoins: until,
            };
            failover::promote(world, promotion);
            world.push(until, Event::Ends(id));
        }
        // This fault counts as effective when a request encounters it.
        NodeFault::Stall { nth } => {
            let counted = Counted::new(*nth, until - now, id);
            world.node(node).stall(counted);
            return;
        }
        NodeFault::FreeBacklog => {
            if !nodes::free_backlog(world, node) {
                return;
            }
        }
        NodeFault::Misroute { clients, .. } => {
            routes::begin(world, seat, clients, id, until);
            world.push(until, Event::Ends(id));
            return;
        }
        NodeFault::IsolatePrimary { clients, sentinels } => {
            groups::isolate(world, seat, id, (clients, sentinels), until);
        }
        NodeFault::StaleSentinel { sentinel } => {
            groups::make_stale(world, seat, id, *sentinel, until);
        }
        NodeFault::CrashSentinel { sentinel } => {
            if !groups::crash_sentinel(world, seat, *sentinel, until) {
                return;
            }
        }
        NodeFault::PauseSentinel { sentinel } => {
            groups::pause_sentinel(world, seat, *sentinel, until);
        }
        // This fault counts as effective if a failover begins.
        NodeFault::SentinelFailover => {
            elections::order(world, seat, id);
            return;
        }
        // These faults count as effective if they change anything.
        NodeFault::MigrateSlot { name, to, .. } => {
            migration::begin(world, seat, (*name, Seat::new(*to)), id, until);
            return;
        }
        NodeFault::ClusterFailover { how } => {
            handover::hand_over(world, seat, id, *how);
            return;
        }
    }
    world.blame(id);
}

/// Returns how often each fault of the plan had an effect that a client can notice.
///
/// A fault of a node that no client uses is not noticeable. Neither is a fault of a replica that confirms nothing and
/// is not promoted.
pub(crate) fn effects(world: &mut World) -> Vec<u32> {
    let plan = Rc::clone(&world.plan);
    let effects = std::mem::take(&mut world.faults);
    let is_noticed = |fault: &Fault| {
        let nodes = fault.nodes();
        let is_used = nodes.is_empty() || nodes.iter().any(|node| effects.is_used(*node));
        let replicas_matter = match &fault.what {
            FaultKind::Node {
                replica: Some(_), ..
            }
            | FaultKind::Node {
                fault: NodeFault::SlowReplication { .. },
                ..
            } => {
                let is_replaced = nodes.iter().any(|node| world.failovers.has_any(*node));
                is_replaced || plan.nodes.wait.is_some() || plan.nodes.min_replicas.is_some()
            }
            _ => true,
        };
        is_used && replicas_matter
    };
    let noticed: Vec<bool> = plan.faults.iter().map(is_noticed).collect();
    let effects = effects.into_effects().into_iter().zip(noticed);
    effects
        .map(|(effects, is_noticed)| if is_noticed { effects } else { 0 })
        .collect()
}

/// Returns the node whose replication is slow: the primary, or a replica of a node of the plan.
fn slow_end(world: &World, seat: Seat, primary: NodeId, replica: Option<u16>) -> NodeId {
    let slow = replica.and_then(|replica| world.replicas_of(seat).nth(replica.into()));
    slow.unwrap_or(primary)
}

pub(crate) fn end(world: &mut World, id: FaultId) {
    let plan = Rc::clone(&world.plan);
    let Some(fault) = plan.faults.get(id.index()) else {
        return;
    };
    match &fault.what {
        FaultKind::Node {
            node,
            replica,
            fault: what,
        } => {
            let seat = Seat::new(*node);
            match replica.and_then(|replica| world.replicas_of(seat).nth(replica.into())) {
                Some(replica) => replicas::end(world, seat, replica, what),
                None => end_on_node(world, seat, what, id),
            }
        }
        FaultKind::Link { .. } => links::end(world, fault, id),
        // Their events of the end are those of the client and the node themselves.
        FaultKind::Client { .. } | FaultKind::Nodes { .. } => {}
    }
}

fn end_on_node(world: &mut World, seat: Seat, fault: &NodeFault, id: FaultId) {
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
