//! Faults as they take effect.

mod clocks;

use std::rc::Rc;

use crate::engine::network::{connections, subscriptions};
use crate::engine::nodes::{failover, replicas};
use crate::engine::{clients, nodes};
use crate::plan::fault::{ClientFault, Direction, Fault, FaultKind, LinkFault, NodeFault};
use crate::plan::time::Span;
use crate::world::World;
use crate::world::client::Counted;
use crate::world::event::What;
use crate::world::link::{FaultId, Trouble};
use crate::world::task::Task;

/// What has to be done once the world is not borrowed.
#[derive(Debug)]
pub(crate) enum Aftermath {
    Nothing,
    /// Tasks of a process that has ended, to be dropped.
    Drop(Vec<Task>),
}

/// Schedules every fault of the plan.
pub(crate) fn schedule(world: &mut World) {
    let plan = Rc::clone(&world.plan);
    for (fault, id) in plan.faults.iter().zip(0u16..) {
        world.push(fault.at.as_nanos(), What::Begins(id));
    }
}

pub(crate) fn begin(world: &mut World, id: u16) -> Aftermath {
    let plan = Rc::clone(&world.plan);
    let Some(fault) = plan.faults.get(usize::from(id)) else {
        return Aftermath::Nothing;
    };
    let until = world.now + fault.lasts.as_nanos();
    match &fault.what {
        FaultKind::Link { .. } => begin_on_links(world, fault, id, until),
        FaultKind::Client {
            client,
            fault: what,
        } => {
            return begin_on_client(world, *client, *what, id, until);
        }
        FaultKind::Node { node, fault: what } => begin_on_node(world, *node, what, id, until),
        FaultKind::Backup { nodes } => {
            for seat in nodes {
                if nodes::back_up(world, failover::primary(world, *seat)) {
                    world.blame(usize::from(id));
                }
            }
        }
    }
    Aftermath::Nothing
}

fn begin_on_links(world: &mut World, fault: &Fault, id: u16, until: u64) {
    if let FaultKind::Link {
        clients,
        nodes,
        fault: LinkFault::Reset { in_flight },
        ..
    } = &fault.what
    {
        for (client, node) in pairs(clients, nodes) {
            let node = *world.route(client, node);
            if connections::reset(world, client, node, *in_flight) {
                world.blame(usize::from(id));
            }
        }
        return;
    }
    world.active.push(usize::from(id));
    world.push(until, What::Ends(id));
    set_troubles(world, fault);
}

fn begin_on_client(
    world: &mut World,
    client: u16,
    fault: ClientFault,
    id: u16,
    until: u64,
) -> Aftermath {
    let blame = usize::from(id);
    let now = world.now;
    match fault {
        ClientFault::Pause => {
            world.blame(blame);
            clients::pause(world, client, until);
        }
        ClientFault::PauseInside { nth } => {
            let counted = Counted {
                left: nth.max(1),
                lasts: until - now,
                fault: blame,
            };
            world.client(client).pauses_inside.push(counted);
        }
        ClientFault::Cancel { nth } => {
            let counted = Counted {
                left: nth.max(1),
                lasts: 0,
                fault: blame,
            };
            world.client(client).cancels.push(counted);
        }
        ClientFault::Suspend { clock } => {
            world.blame(blame);
            clocks::suspend(world, client, until, clock);
        }
        ClientFault::Rate { rate_ppm } => {
            world.blame(blame);
            clocks::run_at(world, client, rate_ppm);
        }
        ClientFault::Step { by } => {
            world.blame(blame);
            world.client(client).wall.step(now, by.as_nanos());
        }
        ClientFault::Crash if world.client(client).process.is_some() => {
            world.blame(blame);
            let tasks = clients::kill(world, client);
            world.push(until, What::BootClient(client));
            return Aftermath::Drop(tasks);
        }
        ClientFault::Crash => {}
    }
    Aftermath::Nothing
}

fn begin_on_node(world: &mut World, seat: u16, fault: &NodeFault, id: u16, until: u64) {
    let node = failover::primary(world, seat);
    let now = world.now;
    match fault {
        NodeFault::Pause => nodes::pause(world, node, until),
        NodeFault::Crash => {
            if !nodes::crash(world, node) {
                return;
            }
            world.push(until, What::RestartNode(node));
        }
        NodeFault::Flush | NodeFault::Evict { .. } => {
            world.node(node).lives += u32::from(*fault == NodeFault::Flush);
            let had_any = nodes::strike(world, node, fault);
            replicas::keep(world, node);
            if !had_any {
                return;
            }
        }
        NodeFault::Error { error } => {
            world.node(node).error = Some((*error, usize::from(id)));
            nodes::strike(world, node, fault);
            world.push(until, What::Ends(id));
            return;
        }
        NodeFault::ForgetScripts => {
            nodes::strike(world, node, fault);
            for client in 0..world.plan.clients {
                world.link(client, node).lacks_scripts = Some(usize::from(id));
            }
            return;
        }
        NodeFault::Rate { rate_ppm } => world.node(node).clock.run_at(now, *rate_ppm),
        NodeFault::Step { by } if now == 0 => clocks::set_nodes(world, seat, by.as_nanos()),
        NodeFault::Step { by } => world.node(node).clock.step(now, by.as_nanos()),
        NodeFault::SlowReplication { by, replica } => {
            let slow = replica.and_then(|replica| failover::replica_of(world, seat, replica));
            world.node(slow.unwrap_or(node)).replication_delay += by.as_nanos();
            world.push(until, What::Ends(id));
        }
        NodeFault::Failover {
            replica,
            left_behind,
        } => {
            failover::promote(world, id, seat, *replica, left_behind, until);
            world.push(until, What::Ends(id));
        }
    }
    world.blame(usize::from(id));
}

pub(crate) fn end(world: &mut World, id: u16) {
    let plan = Rc::clone(&world.plan);
    let Some(fault) = plan.faults.get(usize::from(id)) else {
        return;
    };
    match &fault.what {
        FaultKind::Node { node, fault: what } => end_on_node(world, *node, what, id),
        _ => {
            world.active.retain(|active| *active != usize::from(id));
            set_troubles(world, fault);
        }
    }
}

fn end_on_node(world: &mut World, seat: u16, fault: &NodeFault, id: u16) {
    let node = failover::primary(world, seat);
    match fault {
        NodeFault::Error { .. } => {
            let error = world.node(node).error;
            if error.is_some_and(|(_, by)| by == usize::from(id)) {
                world.node(node).error = None;
                world.servers.server(node).refuse(None);
            }
        }
        NodeFault::SlowReplication { by, replica } => {
            let slow = replica.and_then(|replica| failover::replica_of(world, seat, replica));
            let state = world.node(slow.unwrap_or(node));
            state.replication_delay = state.replication_delay.saturating_sub(by.as_nanos());
        }
        NodeFault::Failover { .. } => failover::rejoin(world, id),
        _ => {}
    }
}

/// Sets what is wrong with the links of a fault, from all faults that are active.
fn set_troubles(world: &mut World, changed: &Fault) {
    let plan = Rc::clone(&world.plan);
    let FaultKind::Link { clients, nodes, .. } = &changed.what else {
        return;
    };
    for (client, seat) in pairs(clients, nodes) {
        let mut to_node = None;
        let mut to_client = None;
        for id in &world.active {
            let Some(fault) = plan.faults.get(*id) else {
                continue;
            };
            let FaultKind::Link {
                clients,
                nodes,
                direction,
                fault: what,
            } = &fault.what
            else {
                continue;
            };
            if !clients.contains(&client) || !nodes.contains(&seat) {
                continue;
            }
            let ends = fault.ends();
            if *direction != Direction::ToClient {
                add(to_node.get_or_insert_default(), *what, ends, *id);
            }
            if *direction != Direction::ToNode {
                add(to_client.get_or_insert_default(), *what, ends, *id);
            }
        }
        let node = *world.route(client, seat);
        let link = world.link(client, node);
        let was_lossy = link.to_client.is_lossy();
        link.to_node.set_trouble(to_node);
        link.to_client.set_trouble(to_client);
        // What was published meanwhile may be missing.
        if was_lossy && !world.link(client, node).to_client.is_lossy() {
            subscriptions::lose(world, client, node);
        }
    }
}

fn pairs<'a>(clients: &'a [u16], nodes: &'a [u16]) -> impl Iterator<Item = (u16, u16)> + 'a {
    clients
        .iter()
        .flat_map(|client| nodes.iter().map(|node| (*client, *node)))
}

/// Adds what one fault does to a lane.
fn add(trouble: &mut Trouble, fault: LinkFault, ends: Span, id: FaultId) {
    match fault {
        LinkFault::Cut => trouble.cut = Some(id),
        LinkFault::Loss { of_million } => trouble.loss = Some((of_million, id)),
        LinkFault::Delay { least, most } => {
            trouble.delay = Some((least.as_nanos(), most.as_nanos(), id));
        }
        LinkFault::HoldBack => trouble.held_until = Some((ends.as_nanos(), id)),
        LinkFault::Duplicate { of_million, most } => {
            trouble.duplicate = Some((of_million, most.as_nanos(), id));
        }
        LinkFault::Reorder { most } => trouble.reorder = Some((most.as_nanos(), id)),
        LinkFault::Reset { .. } => {}
    }
}
