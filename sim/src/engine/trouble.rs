//! Faults as they take effect.

use std::rc::Rc;

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

impl World {
    /// Schedules every fault of the plan.
    pub(crate) fn schedule_faults(&mut self) {
        let plan = Rc::clone(&self.plan);
        for (fault, id) in plan.faults.iter().zip(0u16..) {
            self.push(fault.at.as_nanos(), What::Begins(id));
        }
    }

    pub(crate) fn fault_begins(&mut self, id: u16) -> Aftermath {
        let plan = Rc::clone(&self.plan);
        let Some(fault) = plan.faults.get(usize::from(id)) else {
            return Aftermath::Nothing;
        };
        let until = self.now + fault.lasts.as_nanos();
        match &fault.what {
            FaultKind::Link { .. } => self.link_fault(fault, id, until),
            FaultKind::Client {
                client,
                fault: what,
            } => {
                return self.client_fault(*client, *what, id, until);
            }
            FaultKind::Node { node, fault: what } => self.node_fault(*node, what, id, until),
            FaultKind::Backup { nodes } => {
                for seat in nodes {
                    if self.back_up(self.primary(*seat)) {
                        self.blame(usize::from(id));
                    }
                }
            }
        }
        Aftermath::Nothing
    }

    fn link_fault(&mut self, fault: &Fault, id: u16, until: u64) {
        if let FaultKind::Link {
            clients,
            nodes,
            fault: LinkFault::Reset { in_flight },
            ..
        } = &fault.what
        {
            for (client, node) in pairs(clients, nodes) {
                let node = *self.route(client, node);
                if self.reset(client, node, *in_flight) {
                    self.blame(usize::from(id));
                }
            }
            return;
        }
        self.active.push(usize::from(id));
        self.push(until, What::Ends(id));
        self.set_troubles(fault);
    }

    fn client_fault(&mut self, client: u16, fault: ClientFault, id: u16, until: u64) -> Aftermath {
        let blame = usize::from(id);
        let now = self.now;
        match fault {
            ClientFault::Pause => {
                self.blame(blame);
                self.pause_client(client, until);
            }
            ClientFault::PauseInside { nth } => {
                let counted = Counted {
                    left: nth.max(1),
                    lasts: until - now,
                    fault: blame,
                };
                self.client(client).pauses_inside.push(counted);
            }
            ClientFault::Cancel { nth } => {
                let counted = Counted {
                    left: nth.max(1),
                    lasts: 0,
                    fault: blame,
                };
                self.client(client).cancels.push(counted);
            }
            ClientFault::Suspend { clock } => {
                self.blame(blame);
                self.suspend_client(client, until, clock);
            }
            ClientFault::Rate { rate_ppm } => {
                self.blame(blame);
                self.run_client_at(client, rate_ppm);
            }
            ClientFault::Step { by } => {
                self.blame(blame);
                self.client(client).wall.step(now, by.as_nanos());
            }
            ClientFault::Crash if self.client(client).process.is_some() => {
                self.blame(blame);
                let tasks = self.kill_client(client);
                self.push(until, What::BootClient(client));
                return Aftermath::Drop(tasks);
            }
            ClientFault::Crash => {}
        }
        Aftermath::Nothing
    }

    fn node_fault(&mut self, seat: u16, fault: &NodeFault, id: u16, until: u64) {
        let node = self.primary(seat);
        let now = self.now;
        match fault {
            NodeFault::Pause => self.pause_node(node, until),
            NodeFault::Crash => {
                if !self.crash_node(node) {
                    return;
                }
                self.push(until, What::RestartNode(node));
            }
            NodeFault::Flush | NodeFault::Evict { .. } => {
                self.node(node).lives += u32::from(*fault == NodeFault::Flush);
                let had_any = self.strike(node, fault);
                self.keep(node);
                if !had_any {
                    return;
                }
            }
            NodeFault::Error { error } => {
                self.node(node).error = Some((*error, usize::from(id)));
                self.strike(node, fault);
                self.push(until, What::Ends(id));
                return;
            }
            NodeFault::ForgetScripts => {
                self.strike(node, fault);
                for client in 0..self.plan.clients {
                    self.link(client, node).lacks_scripts = Some(usize::from(id));
                }
                return;
            }
            NodeFault::Rate { rate_ppm } => self.node(node).clock.run_at(now, *rate_ppm),
            NodeFault::Step { by } if now == 0 => self.set_clocks(seat, by.as_nanos()),
            NodeFault::Step { by } => self.node(node).clock.step(now, by.as_nanos()),
            NodeFault::SlowReplication { by, replica } => {
                let slow = replica.and_then(|replica| self.replica_of(seat, replica));
                self.node(slow.unwrap_or(node)).replication_delay += by.as_nanos();
                self.push(until, What::Ends(id));
            }
            NodeFault::Failover {
                replica,
                left_behind,
            } => {
                self.promote(id, seat, *replica, left_behind, until);
                self.push(until, What::Ends(id));
            }
        }
        self.blame(usize::from(id));
    }

    /// Where the clocks of a node and its replicas begin.
    fn set_clocks(&mut self, seat: u16, by: i64) {
        let replicas = self.plan.nodes.replicas;
        self.node(seat).clock.step(0, by);
        for replica in 0..replicas {
            let id = self.plan.nodes.count + seat * replicas + replica;
            self.node(id).clock.step(0, by);
        }
    }

    pub(crate) fn fault_ends(&mut self, id: u16) {
        let plan = Rc::clone(&self.plan);
        let Some(fault) = plan.faults.get(usize::from(id)) else {
            return;
        };
        match &fault.what {
            FaultKind::Node { node, fault: what } => self.node_fault_ends(*node, what, id),
            _ => {
                self.active.retain(|active| *active != usize::from(id));
                self.set_troubles(fault);
            }
        }
    }

    fn node_fault_ends(&mut self, seat: u16, fault: &NodeFault, id: u16) {
        let node = self.primary(seat);
        match fault {
            NodeFault::Error { .. } => {
                let error = self.node(node).error;
                if error.is_some_and(|(_, by)| by == usize::from(id)) {
                    self.node(node).error = None;
                    self.servers.server(node).refuse(None);
                }
            }
            NodeFault::SlowReplication { by, replica } => {
                let slow = replica.and_then(|replica| self.replica_of(seat, replica));
                let state = self.node(slow.unwrap_or(node));
                state.replication_delay = state.replication_delay.saturating_sub(by.as_nanos());
            }
            NodeFault::Failover { .. } => self.rejoin(id),
            _ => {}
        }
    }

    /// Sets what is wrong with the links of a fault, from all faults that are active.
    fn set_troubles(&mut self, changed: &Fault) {
        let plan = Rc::clone(&self.plan);
        let FaultKind::Link { clients, nodes, .. } = &changed.what else {
            return;
        };
        for (client, seat) in pairs(clients, nodes) {
            let mut to_node = None;
            let mut to_client = None;
            for id in &self.active {
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
            let node = *self.route(client, seat);
            let link = self.link(client, node);
            let was_lossy = link.to_client.is_lossy();
            link.to_node.set_trouble(to_node);
            link.to_client.set_trouble(to_client);
            // What was published meanwhile may be missing.
            if was_lossy && !self.link(client, node).to_client.is_lossy() {
                self.lose_subscriptions(client, node);
            }
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
