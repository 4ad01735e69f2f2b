//! Draws single faults.

use super::clusters;
use crate::draw::Draw;
use crate::fault::{
    ClientFault, Direction, Fault, FaultKind, InFlight, Kind, LinkFault, NodeFault, ServerError,
    Suspended, Trigger,
};
use crate::time::{ClockStep, SimTime};
use crate::{Persistence, Plan};

/// Draws one fault of a given kind.
#[derive(Debug)]
pub struct FaultGenerator<'a> {
    /// The random numbers.
    pub draw: &'a mut Draw,
    /// The plan that the fault is for.
    pub plan: &'a Plan,
    /// Whether the stated assumptions of the lock bound the fault.
    pub inside: bool,
}

impl FaultGenerator<'_> {
    /// Draws a time in the first 60 % of the run.
    fn at(&mut self) -> SimTime {
        let last = self.plan.duration.as_nanos() / 10 * 6;
        SimTime::micros(self.draw.between(0, last / 1_000))
    }

    /// Draws a length that is usually short and sometimes longer than a lease.
    fn lasts(&mut self) -> SimTime {
        let lease = self.plan.workload.lease.as_nanos() / 1_000;
        let lasts = match self.draw.between(0, 2) {
            0 => SimTime::micros(self.draw.between(100, 20_000)),
            1 => SimTime::micros(self.draw.between(1_000, lease)),
            _ => SimTime::micros(self.draw.between(lease / 2, 2 * lease)),
        };
        // A fault must end within the run.
        lasts.min(SimTime::nanos(self.plan.duration.as_nanos() / 10 * 4))
    }

    fn client(&mut self) -> u16 {
        self.draw.index(usize::from(self.plan.clients)) as u16
    }

    fn node(&mut self) -> u16 {
        self.draw.index(usize::from(self.plan.nodes.count)) as u16
    }

    /// Returns the node that crashes: the given one, or one that may lose data if a crash loses data.
    fn may_crash(&self, node: u16) -> u16 {
        match self.plan.nodes.persistence {
            Persistence::EveryWrite => node,
            _ => self.may_forget(node),
        }
    }

    /// Maps a node to the minority of nodes that may lose data, so that the token counters of a majority survive.
    fn may_forget(&self, node: u16) -> u16 {
        let minority = self.plan.nodes.count.saturating_sub(1) / 2;
        if !self.inside || minority == 0 {
            return node;
        }
        node % minority
    }

    fn name(&mut self) -> u16 {
        self.draw.index(usize::from(self.plan.workload.names)) as u16
    }

    /// Draws a random subset of `0..of` with at least one element.
    fn some(&mut self, of: u16) -> Vec<u16> {
        let all = self.draw.between(1, (1u64 << of.min(60)) - 1);
        (0..of).filter(|bit| all & (1 << bit) != 0).collect()
    }

    fn clients(&mut self) -> Vec<u16> {
        self.some(self.plan.clients)
    }

    fn nodes(&mut self) -> Vec<u16> {
        self.some(self.plan.nodes.count)
    }

    fn direction(&mut self) -> Direction {
        match self.draw.between(0, 2) {
            0 => Direction::Both,
            1 => Direction::ToNode,
            _ => Direction::ToClient,
        }
    }

    /// Draws a clock rate. The drift allowance covers a difference of 1 % between two clocks, so each clock may be off
    /// by half of that.
    fn rate(&mut self) -> i32 {
        let max = if self.inside { 4_900 } else { 200_000 };
        i32::try_from(self.draw.signed(-max, max)).unwrap_or(0)
    }

    /// Draws a fault of a kind.
    pub fn fault(&mut self, kind: Kind) -> Fault {
        let at = self.at();
        let lasts = self.lasts();
        match kind {
            Kind::Cut
            | Kind::Loss
            | Kind::Delay
            | Kind::HoldBack
            | Kind::Duplicate
            | Kind::Reorder
            | Kind::Swallow
            | Kind::Reset => self.link_fault(kind, at, lasts),
            Kind::PauseClient
            | Kind::PauseInside
            | Kind::StopInside
            | Kind::CrashClient
            | Kind::SuspendClient
            | Kind::Cancel
            | Kind::ClientRate
            | Kind::ClientStep => self.client_fault(kind, at, lasts),
            Kind::Backup => Fault {
                when: Trigger::At(at),
                lasts: SimTime::ZERO,
                what: FaultKind::Backup {
                    nodes: self.nodes(),
                },
            },
            _ => self.node_fault(kind, at, lasts),
        }
    }

    fn link_fault(&mut self, kind: Kind, at: SimTime, lasts: SimTime) -> Fault {
        let (clients, nodes) = (self.clients(), self.nodes());
        let drawn = self.direction();
        let fault = match kind {
            Kind::Loss => LinkFault::Loss {
                of_million: self.draw.between(10_000, 500_000) as u32,
            },
            Kind::Delay => {
                let min = SimTime::micros(self.draw.between(0, 20_000));
                let max = min.plus(SimTime::micros(self.draw.between(0, 200_000)));
                LinkFault::Delay { min, max }
            }
            Kind::HoldBack => LinkFault::HoldBack,
            Kind::Duplicate => LinkFault::Duplicate {
                of_million: self.draw.between(10_000, 1_000_000) as u32,
                max: SimTime::micros(self.draw.between(10, 500_000)),
            },
            Kind::Reorder => LinkFault::Reorder {
                max: SimTime::micros(self.draw.between(100, 100_000)),
            },
            Kind::Reset => LinkFault::Reset {
                in_flight: match self.draw.between(0, 1) {
                    0 => InFlight::Lost,
                    _ => InFlight::Executed,
                },
            },
            Kind::Swallow => LinkFault::Swallow,
            _ => LinkFault::Cut,
        };
        let (direction, lasts) = match fault {
            LinkFault::Reset { .. } | LinkFault::Swallow => (Direction::Both, SimTime::ZERO),
            LinkFault::Duplicate { .. } => (Direction::ToNode, lasts),
            _ => (drawn, lasts),
        };
        let what = FaultKind::Link {
            clients,
            nodes,
            direction,
            fault,
        };
        Fault {
            when: Trigger::At(at),
            lasts,
            what,
        }
    }

    fn client_fault(&mut self, kind: Kind, at: SimTime, lasts: SimTime) -> Fault {
        let client = self.client();
        match kind {
            Kind::PauseInside => {
                let nth = self.draw.between(1, 60) as u32;
                Fault::of_client(at, client, ClientFault::PauseInside { nth }).lasting(lasts)
            }
            Kind::StopInside => self.stop(client, at, lasts),
            Kind::CrashClient => Fault::of_client(at, client, ClientFault::Crash).lasting(lasts),
            Kind::SuspendClient => {
                let clock = match self.draw.between(0, 1) {
                    // A clock that stops during a suspension breaks the stated assumptions.
                    _ if self.inside => Suspended::Counts,
                    0 => Suspended::Stops,
                    _ => Suspended::Counts,
                };
                Fault::of_client(at, client, ClientFault::Suspend { clock }).lasting(lasts)
            }
            Kind::Cancel => {
                let nth = self.draw.between(1, 20) as u32;
                Fault::of_client(at, client, ClientFault::Cancel { nth })
            }
            Kind::ClientRate => {
                let rate_ppm = self.rate();
                Fault::of_client(at, client, ClientFault::Rate { rate_ppm })
            }
            Kind::ClientStep => {
                let by = ClockStep::millis(self.draw.signed(-3_600_000, 3_600_000));
                Fault::of_client(at, client, ClientFault::Step { by })
            }
            _ => Fault::of_client(at, client, ClientFault::Pause).lasting(lasts),
        }
    }

    /// Draws a stop in the middle of a step. The rest of that step can observe what changed during the stop only
    /// through a request that was sent before the stop and is answered late. So if a fault delays requests, most stops
    /// last until that fault ends.
    fn stop(&mut self, client: u16, at: SimTime, lasts: SimTime) -> Fault {
        let nth = self.draw.between(1, 30) as u32;
        let delays = |fault: &&Fault| match fault.what {
            FaultKind::Link {
                direction,
                fault: LinkFault::HoldBack | LinkFault::Delay { .. },
                ..
            } => direction != Direction::ToClient,
            FaultKind::Node {
                fault: NodeFault::Pause,
                ..
            } => true,
            _ => false,
        };
        let late: Vec<&Fault> = self.plan.faults.iter().filter(delays).collect();
        let stop = ClientFault::StopInside { nth };
        if late.is_empty() || self.draw.chance(250_000) {
            return Fault::of_client(at, client, stop).lasting(lasts);
        }
        let Some(late) = late.get(self.draw.index(late.len())) else {
            return Fault::of_client(at, client, stop).lasting(lasts);
        };
        let clients = late.clients();
        let client = match clients.len() {
            0 => client,
            many => clients
                .get(self.draw.index(many))
                .copied()
                .unwrap_or(client),
        };
        let half = late.lasts.as_nanos() / 2_000;
        let at = late
            .begins()
            .plus(SimTime::micros(self.draw.between(0, half)));
        let more = SimTime::micros(self.draw.between(0, 20_000));
        let ends = late.ends().unwrap_or(self.plan.duration);
        let ends = ends.plus(more).min(self.plan.duration);
        Fault::of_client(at, client, stop).lasting(ends.minus(at))
    }

    fn node_fault(&mut self, kind: Kind, at: SimTime, lasts: SimTime) -> Fault {
        let node = match self.node() {
            node if self.plan.nodes.cluster.is_some() => {
                clusters::struck(node, self.plan, self.inside, self.draw)
            }
            node => node,
        };
        match kind {
            Kind::CrashNode => {
                Fault::of_node(at, self.may_crash(node), NodeFault::Crash).lasting(lasts)
            }
            Kind::PowerLoss => {
                let loses = SimTime::micros(self.draw.between(100, 500_000));
                Fault::of_node(at, self.may_forget(node), NodeFault::PowerLoss { loses })
                    .lasting(lasts)
            }
            Kind::Flush => Fault::of_node(at, node, NodeFault::Flush),
            Kind::Evict => Fault::of_node(at, node, NodeFault::Evict { name: self.name() }),
            Kind::RevokeKeys => {
                let name = self.name();
                Fault::of_node(at, node, NodeFault::RevokeKeys { name }).lasting(lasts)
            }
            Kind::ServerError => {
                let errors = [
                    ServerError::ReadOnly,
                    ServerError::Loading,
                    ServerError::OutOfMemory,
                    ServerError::Busy,
                ];
                let error = errors.get(self.draw.index(errors.len()));
                let error = error.copied().unwrap_or(ServerError::Busy);
                Fault::of_node(at, node, NodeFault::Error { error }).lasting(lasts)
            }
            Kind::ForgetScripts => Fault::of_node(at, node, NodeFault::ForgetScripts),
            Kind::StallNode => {
                let nth = self.draw.between(1, 60) as u32;
                Fault::of_node(at, node, NodeFault::Stall { nth }).lasting(lasts)
            }
            Kind::FreeBacklog => Fault::of_node(at, node, NodeFault::FreeBacklog),
            Kind::Misroute => {
                // Any node other than `node`.
                let count = self.plan.nodes.count.max(2);
                let steps = self.draw.between(1, u64::from(count) - 1) as u16;
                let misroute = NodeFault::Misroute {
                    clients: self.clients(),
                    to: (node + steps) % count,
                };
                Fault::of_node(at, node, misroute).lasting(lasts)
            }
            Kind::NodeRate => {
                let rate_ppm = self.rate();
                Fault::of_node(at, node, NodeFault::Rate { rate_ppm })
            }
            Kind::NodeStep => {
                // Four steps on one node within one lease must stay within the margin together.
                let margin = self.plan.clock_margin().as_nanos() / 4_000_000;
                let max = match self.inside {
                    true => i64::try_from(margin).unwrap_or(i64::MAX).saturating_sub(1),
                    false => 1_000,
                };
                let by = ClockStep::millis(self.draw.signed(-1_000, max));
                Fault::of_node(at, node, NodeFault::Step { by })
            }
            Kind::SlowReplication => {
                let by = self.lasts();
                Fault::of_node(at, node, NodeFault::SlowReplication { by, replica: None })
                    .lasting(lasts)
            }
            Kind::Failover => {
                let replicas = u64::from(self.plan.nodes.replicas).max(1);
                let replica = self.draw.between(0, replicas - 1) as u16;
                let left_behind = if self.draw.chance(500_000) {
                    self.clients()
                } else {
                    Vec::new()
                };
                Fault::of_node(
                    at,
                    node,
                    NodeFault::Failover {
                        replica,
                        left_behind,
                    },
                )
                .lasting(lasts)
            }
            kind if Kind::OF_CLUSTERS.contains(&kind) => {
                let fault = clusters::fault(kind, self.plan, lasts, self.draw);
                Fault::of_node(at, node, fault).lasting(match kind {
                    Kind::ClusterFailover => SimTime::ZERO,
                    _ => lasts,
                })
            }
            kind if Kind::OF_GROUPS.contains(&kind) => {
                Fault::of_node(at, node, self.group_fault(kind)).lasting(match kind {
                    Kind::SentinelFailover => SimTime::ZERO,
                    _ => lasts,
                })
            }
            _ => Fault::of_node(at, node, NodeFault::Pause).lasting(lasts),
        }
    }

    fn group_fault(&mut self, kind: Kind) -> NodeFault {
        let sentinels = self.plan.nodes.sentinels.as_ref();
        let sentinels = sentinels.map_or(1, |sentinels| sentinels.count);
        let sentinel = self.draw.index(sentinels.into()) as u16;
        match kind {
            Kind::IsolatePrimary => NodeFault::IsolatePrimary {
                clients: match self.draw.chance(700_000) {
                    true => self.clients(),
                    false => Vec::new(),
                },
                // Usually a minority, so that the sentinels on the other side can elect.
                sentinels: match self.draw.between(0, 9) {
                    _ if self.plan.nodes.cluster.is_some() => Vec::new(),
                    0..=3 => Vec::new(),
                    4..=7 => vec![sentinel],
                    _ => self.some(sentinels),
                },
            },
            Kind::CrashSentinel => NodeFault::CrashSentinel { sentinel },
            Kind::PauseSentinel => NodeFault::PauseSentinel { sentinel },
            Kind::StaleSentinel => NodeFault::StaleSentinel { sentinel },
            _ => NodeFault::SentinelFailover,
        }
    }
}
