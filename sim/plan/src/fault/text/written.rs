//! Conversion of a fault to its form in files.

use super::{FaultText, Length};
use crate::fault::{ClientFault, Fault, FaultKind, LinkFault, NodeFault, Repeats, Trigger};
use crate::time::SimTime;

impl From<Fault> for FaultText {
    fn from(fault: Fault) -> Self {
        let mut text = FaultText::new(fault.kind());
        text.say_when(fault.when);
        match Length::of(text.kind) {
            Length::None => {}
            Length::Lasts => text.lasts = Some(fault.lasts),
            Length::RestartAfter => text.restart_after = Some(fault.lasts),
            Length::RejoinAfter => text.rejoin_after = Some(fault.lasts),
        }
        match fault.what {
            FaultKind::Link {
                clients,
                nodes,
                direction,
                fault,
            } => {
                text.clients = Some(clients);
                text.nodes = Some(nodes);
                text.direction = Some(direction);
                text.say_link(fault);
            }
            FaultKind::Client { client, fault } => {
                text.client = Some(client);
                text.say_client(fault);
            }
            FaultKind::Node {
                node,
                replica,
                fault,
            } => {
                text.node = Some(node);
                text.replica = replica.map(Some);
                text.say_node(fault);
            }
            FaultKind::Backup { nodes } => text.nodes = Some(nodes),
        }
        text
    }
}

impl FaultText {
    fn say_when(&mut self, when: Trigger) {
        self.at = Some(when.begins());
        match when {
            Trigger::At(_) => {}
            Trigger::Every { every, repeats, .. } => {
                self.every = Some(every);
                match repeats {
                    Repeats::Times(times) => self.times = Some(times),
                    Repeats::Until(until) => self.until = Some(until),
                }
            }
            Trigger::After(after) => self.after = Some(after.into()),
        }
    }

    fn say_link(&mut self, fault: LinkFault) {
        match fault {
            LinkFault::Cut | LinkFault::HoldBack => {}
            LinkFault::Loss { of_million } => self.of_million = Some(of_million),
            LinkFault::Delay { min, max } => {
                (self.min, self.max) = (Some(min), Some(max));
            }
            LinkFault::Duplicate { of_million, max } => {
                (self.of_million, self.max) = (Some(of_million), Some(max));
                // Only requests are duplicated, so the direction is not written.
                self.direction = None;
            }
            LinkFault::Reorder { max } => self.max = Some(max),
            LinkFault::Reset { in_flight } => {
                self.in_flight = Some(in_flight);
                self.direction = None;
            }
            LinkFault::Swallow => self.direction = None,
        }
    }

    fn say_client(&mut self, fault: ClientFault) {
        match fault {
            ClientFault::Pause | ClientFault::Crash => {}
            ClientFault::PauseInside { nth }
            | ClientFault::StopInside { nth }
            | ClientFault::Cancel { nth } => self.nth = Some(nth),
            ClientFault::Suspend { clock } => self.clock = Some(clock),
            ClientFault::Rate { rate_ppm } => self.rate_ppm = Some(rate_ppm),
            ClientFault::Step { by } => self.by = Some(by.to_string()),
        }
    }

    fn say_node(&mut self, fault: NodeFault) {
        match fault {
            NodeFault::Pause
            | NodeFault::Crash
            | NodeFault::Flush
            | NodeFault::ForgetScripts
            | NodeFault::FreeBacklog
            | NodeFault::SentinelFailover => {}
            NodeFault::PowerLoss { loses } => self.loses = Some(loses),
            NodeFault::Evict { name } | NodeFault::RevokeKeys { name } => self.name = Some(name),
            NodeFault::Error { error } => self.error = Some(error),
            NodeFault::Rate { rate_ppm } => self.rate_ppm = Some(rate_ppm),
            NodeFault::Step { by } => self.by = Some(by.to_string()),
            NodeFault::SlowReplication { by, replica } => {
                self.by = Some(by.to_string());
                self.replica = Some(replica);
            }
            NodeFault::Failover {
                replica,
                left_behind,
            } => {
                self.replica = Some(Some(replica));
                self.left_behind = Some(left_behind);
            }
            NodeFault::IsolatePrimary { clients, sentinels } => {
                self.clients = Some(clients);
                self.sentinels = Some(sentinels);
            }
            NodeFault::CrashSentinel { sentinel }
            | NodeFault::PauseSentinel { sentinel }
            | NodeFault::StaleSentinel { sentinel } => self.sentinel = Some(sentinel),
            NodeFault::Stall { nth } => self.nth = Some(nth),
            NodeFault::Misroute { clients, to } => {
                (self.clients, self.to) = (Some(clients), Some(to));
            }
            NodeFault::MigrateSlot { name, to, gap } => {
                (self.name, self.to) = (Some(name), Some(to));
                self.gap = (SimTime::ZERO < gap).then_some(gap);
            }
            NodeFault::ClusterFailover { how } => self.how = Some(how),
        }
    }
}
