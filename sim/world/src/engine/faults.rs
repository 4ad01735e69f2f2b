//! Faults, and how they take effect.

mod clocks;
mod groups;
mod links;
mod replicas;
mod routes;
mod servers;

use std::rc::Rc;

use crate::engine::nodes::dead_claims;
use crate::engine::{clients, nodes};
use crate::history::{Began, Process};
use crate::world::World;
use crate::world::client::Counted;
use crate::world::event::Event;
use crate::world::id::{ClientId, FaultId, Id, Seat};
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
            servers::begin(world, (seat, replica), what, id, until);
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
                None => servers::end(world, seat, what, id),
            }
        }
        FaultKind::Link { .. } => links::end(world, fault, id),
        // Their events of the end are those of the client and the node themselves.
        FaultKind::Client { .. } | FaultKind::Nodes { .. } => {}
    }
}
