//! Draws single faults.

use super::clusters;
use crate::draw::Draw;
use crate::fault::{
    ClientFault, Direction, Fault, FaultKind, Handover, InFlight, Kind, LinkFault, NodeFault,
    NodesFault, ServerError, Suspended, Trigger,
};
use crate::time::{ClockStep, SimTime};
use crate::{NodeKind, Persistence, Plan};

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

    /// Maps a node to one that a replica can replace.
    fn may_fail_over(&self, node: u16) -> u16 {
        let nodes = &self.plan.nodes;
        let mut others = (node..nodes.count).chain(0..node);
        let replaced = others.find(|node| nodes.kind(*node) != NodeKind::Consensus);
        replaced.unwrap_or(node)
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

    /// Draws a fault of a kind: its times, its target, and then its fields.
    pub fn fault(&mut self, kind: Kind) -> Fault {
        let at = self.at();
        let lasts = self.lasts();
        let mut fault = Fault {
            when: Trigger::At(at),
            lasts: match kind.ends() {
                true => lasts,
                false => SimTime::ZERO,
            },
            what: kind.blank(),
        };
        match &mut fault.what {
            FaultKind::Link {
                clients,
                nodes,
                direction,
                fault,
            } => {
                *clients = self.clients();
                *nodes = self.nodes();
                let drawn = self.direction();
                *direction = kind.direction().unwrap_or(drawn);
                self.draw_link(fault);
            }
            FaultKind::Client { client, fault } => {
                *client = self.client().into();
                self.draw_client(fault);
            }
            FaultKind::Node { node, fault, .. } => {
                *node = self.node();
                if self.plan.nodes.cluster.is_some() {
                    *node = clusters::struck(*node, self.plan, self.inside, self.draw);
                }
                self.draw_node(node, fault, lasts);
            }
            FaultKind::Nodes { nodes, fault } => match fault {
                NodesFault::Backup => *nodes = self.nodes(),
            },
        }
        if kind == Kind::StopInside {
            self.stop_beside_late_requests(&mut fault);
        }
        fault
    }

    fn draw_link(&mut self, fault: &mut LinkFault) {
        let draw = &mut *self.draw;
        match fault {
            LinkFault::Cut | LinkFault::HoldBack | LinkFault::Swallow => {}
            LinkFault::Loss { of_million } => *of_million = draw.between(10_000, 500_000) as u32,
            LinkFault::Delay { min, max } => {
                *min = SimTime::micros(draw.between(0, 20_000));
                *max = min.plus(SimTime::micros(draw.between(0, 200_000)));
            }
            LinkFault::Duplicate { of_million, max } => {
                *of_million = draw.between(10_000, 1_000_000) as u32;
                *max = SimTime::micros(draw.between(10, 500_000));
            }
            LinkFault::Reorder { max } => *max = SimTime::micros(draw.between(100, 100_000)),
            LinkFault::Reset { in_flight } => {
                *in_flight = match draw.between(0, 1) {
                    0 => InFlight::Lost,
                    _ => InFlight::Executed,
                };
            }
        }
    }

    fn draw_client(&mut self, fault: &mut ClientFault) {
        match fault {
            ClientFault::Pause | ClientFault::Crash => {}
            ClientFault::PauseInside { nth } => *nth = self.draw.between(1, 60) as u32,
            ClientFault::StopInside { nth } => *nth = self.draw.between(1, 30) as u32,
            ClientFault::Suspend { clock } => {
                *clock = match self.draw.between(0, 1) {
                    // A clock that stops during a suspension breaks the stated assumptions.
                    _ if self.inside => Suspended::Counts,
                    0 => Suspended::Stops,
                    _ => Suspended::Counts,
                };
            }
            ClientFault::Cancel { nth } => *nth = self.draw.between(1, 20) as u32,
            ClientFault::Rate { rate_ppm } => *rate_ppm = self.rate(),
            ClientFault::Step { by } => {
                *by = ClockStep::millis(self.draw.signed(-3_600_000, 3_600_000));
            }
        }
    }

    /// Moves a stop in the middle of a step to a fault that delays requests. The rest of that step can observe what
    /// changed during the stop only through a request that was sent before the stop and is answered late. So if a fault
    /// delays requests, most stops last until that fault ends.
    fn stop_beside_late_requests(&mut self, stop: &mut Fault) {
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
        if late.is_empty() || self.draw.chance(250_000) {
            return;
        }
        let Some(late) = late.get(self.draw.index(late.len())) else {
            return;
        };
        let clients = late.clients();
        if !clients.is_empty()
            && let Some(meant) = clients.get(self.draw.index(clients.len()))
            && let FaultKind::Client { client, .. } = &mut stop.what
        {
            *client = (*meant).into();
        }
        let half = late.lasts.as_nanos() / 2_000;
        let at = late
            .begins()
            .plus(SimTime::micros(self.draw.between(0, half)));
        let more = SimTime::micros(self.draw.between(0, 20_000));
        let ends = late.ends().unwrap_or(self.plan.duration);
        let ends = ends.plus(more).min(self.plan.duration);
        (stop.when, stop.lasts) = (Trigger::At(at), ends.minus(at));
    }

    fn draw_node(&mut self, node: &mut u16, fault: &mut NodeFault, lasts: SimTime) {
        match fault {
            NodeFault::Pause
            | NodeFault::Flush
            | NodeFault::ForgetScripts
            | NodeFault::FreeBacklog => {}
            NodeFault::Crash => *node = self.may_crash(*node),
            NodeFault::PowerLoss { loses } => {
                *loses = SimTime::micros(self.draw.between(100, 500_000));
                *node = self.may_forget(*node);
            }
            NodeFault::Evict { name } | NodeFault::RevokeKeys { name } => *name = self.name(),
            NodeFault::Error { error } => *error = self.error(),
            NodeFault::Stall { nth } => *nth = self.draw.between(1, 60) as u32,
            NodeFault::Misroute { clients, to } => {
                // Any node other than `node`.
                let count = self.plan.nodes.count.max(2);
                let steps = self.draw.between(1, u64::from(count) - 1) as u16;
                *clients = self.clients();
                *to = (*node + steps) % count;
            }
            NodeFault::Rate { rate_ppm } => *rate_ppm = self.rate(),
            NodeFault::Step { by } => *by = self.node_step(),
            NodeFault::SlowReplication { by, replica: _ } => *by = self.lasts(),
            NodeFault::Failover {
                replica,
                left_behind,
            } => {
                *node = self.may_fail_over(*node);
                let replicas = u64::from(self.plan.nodes.replicas).max(1);
                *replica = self.draw.between(0, replicas - 1) as u16;
                if self.draw.chance(500_000) {
                    *left_behind = self.clients();
                }
            }
            NodeFault::IsolatePrimary { clients, sentinels } => {
                (*clients, *sentinels) = self.side_of_the_primary();
            }
            // The sentinel that receives the command is not stated, but drawn like the others.
            NodeFault::SentinelFailover => _ = self.sentinel(),
            NodeFault::CrashSentinel { sentinel }
            | NodeFault::PauseSentinel { sentinel }
            | NodeFault::StaleSentinel { sentinel } => *sentinel = self.sentinel(),
            NodeFault::MigrateSlot { name, to, gap } => {
                *name = self.name();
                *to = self.node();
                if self.draw.chance(300_000) {
                    *gap = SimTime::micros(self.draw.between(0, lasts.as_nanos() / 2_000));
                }
            }
            NodeFault::ClusterFailover { how } => {
                *how = match self.draw.chance(500_000) {
                    true => Handover::Manual,
                    false => Handover::Takeover,
                };
            }
        }
    }

    fn error(&mut self) -> ServerError {
        let errors = [
            ServerError::ReadOnly,
            ServerError::Loading,
            ServerError::OutOfMemory,
            ServerError::Busy,
        ];
        let error = errors.get(self.draw.index(errors.len()));
        error.copied().unwrap_or(ServerError::Busy)
    }

    fn node_step(&mut self) -> ClockStep {
        // Four steps on one node within one lease must stay within the margin together. Fair locks have no margin.
        let margin = match self.plan.has_fair_locks() {
            true => 0,
            false => self.plan.clock_margin().as_nanos() / 4_000_000,
        };
        let max = match self.inside {
            true => i64::try_from(margin).unwrap_or(i64::MAX).saturating_sub(1),
            false => 1_000,
        };
        ClockStep::millis(self.draw.signed(-1_000, max))
    }

    fn sentinels(&self) -> u16 {
        let sentinels = self.plan.nodes.sentinels.as_ref();
        sentinels.map_or(1, |sentinels| sentinels.count)
    }

    fn sentinel(&mut self) -> u16 {
        self.draw.index(self.sentinels().into()) as u16
    }

    /// Draws the clients and sentinels that still reach a primary that is cut off.
    fn side_of_the_primary(&mut self) -> (Vec<u16>, Vec<u16>) {
        let sentinel = self.sentinel();
        let clients = match self.draw.chance(700_000) {
            true => self.clients(),
            false => Vec::new(),
        };
        // Usually a minority, so that the sentinels on the other side can elect.
        let sentinels = match self.draw.between(0, 9) {
            _ if self.plan.nodes.cluster.is_some() => Vec::new(),
            0..=3 => Vec::new(),
            4..=7 => vec![sentinel],
            _ => self.some(self.sentinels()),
        };
        (clients, sentinels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::PlanGenerator;
    use crate::{LockKind, WorkloadKind};

    /// Fair locks have no margin, so a clock that goes forward would end a claim early.
    #[test]
    fn no_clock_goes_forward_under_a_fair_lock() {
        let mut steps = 0;
        for workload in [WorkloadKind::Fair, WorkloadKind::Together] {
            let generator = PlanGenerator {
                lock: LockKind::Multi,
                workload: Some(workload),
                ..PlanGenerator::default()
            };
            for plan in (0..5_000).map(|seed| generator.plan(seed)) {
                let later = |fault: &&Fault| fault.when != Trigger::At(SimTime::ZERO);
                for fault in plan.faults.iter().filter(later) {
                    if let FaultKind::Node {
                        fault: NodeFault::Step { by },
                        ..
                    } = &fault.what
                    {
                        assert!(by.as_nanos() <= 0, "{fault:?} of seed {}", plan.seed);
                        steps += 1;
                    }
                }
            }
        }
        assert!(100 < steps, "{steps}");
    }
}
