//! Plans drawn from a seed.
//!
//! First it is drawn which kinds of fault exist at all, how often and how long: runs that know few kinds go deeper
//! than runs that know all. Then the faults are written down one by one, and only that list is run.

use std::fmt;
use std::str::FromStr;

use crate::draw::{Draw, Purpose};
use crate::fault::{Direction, Fault, InFlight, Kind, ServerError, Suspended};
use crate::plan::{LockKind, Persistence, Plan, Watchdog, WorkloadKind};
use crate::span::{Span, Step};

/// From which kinds of fault a plan is drawn.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Faults {
    /// None.
    None,
    /// Those that the stated assumptions of the lock allow, within their bounds.
    #[default]
    Inside,
    /// All.
    All,
    /// These.
    Only(Vec<Kind>),
}

/// The text names no kinds of fault.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{word:?} is no kind of fault: say inside, all, none, or a list of {}", names().join(","))]
pub struct UnknownKind {
    word: String,
}

fn names() -> Vec<&'static str> {
    Kind::ALL.iter().map(|kind| kind.name()).collect()
}

impl FromStr for Faults {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        match text {
            "none" => Ok(Faults::None),
            "inside" => Ok(Faults::Inside),
            "all" => Ok(Faults::All),
            list => list
                .split(',')
                .map(|word| {
                    let kind = Kind::ALL
                        .into_iter()
                        .find(|kind| kind.name() == word.trim());
                    kind.ok_or_else(|| UnknownKind {
                        word: word.to_owned(),
                    })
                })
                .collect::<Result<_, _>>()
                .map(Faults::Only),
        }
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Faults::None => f.write_str("none"),
            Faults::Inside => f.write_str("inside"),
            Faults::All => f.write_str("all"),
            Faults::Only(kinds) => {
                let names: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
                f.write_str(&names.join(","))
            }
        }
    }
}

impl Faults {
    /// Whether faults of a kind may be drawn for a plan.
    fn allows(&self, kind: Kind, plan: &Plan) -> bool {
        let is_possible = match kind {
            Kind::SlowReplication | Kind::Failover => 0 < plan.nodes.replicas,
            _ => true,
        };
        is_possible
            && match self {
                Faults::None => false,
                Faults::Inside => is_inside(kind),
                Faults::All => true,
                Faults::Only(kinds) => kinds.contains(&kind),
            }
    }
}

/// Whether the stated assumptions of a lock allow a kind of fault: no node loses data, no node's clock is stepped, no
/// machine is suspended behind the back of its clock.
fn is_inside(kind: Kind) -> bool {
    !matches!(
        kind,
        Kind::Flush | Kind::Evict | Kind::NodeStep | Kind::Failover | Kind::SlowReplication
    )
}

/// What a user fixes; the rest is drawn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Swarm {
    /// From which kinds of fault.
    pub faults: Faults,
    /// Which lock.
    pub lock: LockKind,
    /// How many nodes; drawn without.
    pub nodes: Option<u16>,
    /// How many clients; drawn without.
    pub clients: Option<u16>,
    /// Which work; drawn without.
    pub workload: Option<WorkloadKind>,
    /// For how long; the standard 2 s without.
    pub duration: Option<Span>,
}

impl Default for Swarm {
    fn default() -> Self {
        Swarm {
            faults: Faults::Inside,
            lock: LockKind::Redlock,
            nodes: None,
            clients: None,
            workload: None,
            duration: None,
        }
    }
}

impl Swarm {
    /// The plan that a seed stands for.
    #[must_use]
    pub fn plan(&self, seed: u64) -> Plan {
        let mut draw = Draw::new(seed, Purpose::Plan, 0);
        let mut plan = Plan {
            seed,
            lock: self.lock,
            ..Plan::default()
        };
        let duration = self.duration.unwrap_or(plan.duration);
        plan.duration = duration;
        self.people(&mut plan, &mut draw);
        self.work(&mut plan, &mut draw);
        self.clocks(&mut plan, seed);
        for kind in Kind::ALL {
            // Each kind has a stream of its own, so that one kind more changes nothing about the others.
            let mut draw = Draw::new(seed, Purpose::Plan, 1 + kind as u64);
            if self.faults.allows(kind, &plan) && draw.chance(400_000) {
                let times = draw.between(1, 4);
                for _ in 0..times {
                    let inside = self.faults == Faults::Inside;
                    let fault = Dice {
                        draw: &mut draw,
                        plan: &plan,
                        inside,
                    }
                    .fault(kind);
                    plan.faults.push(fault);
                }
            }
        }
        plan.faults.sort_by_key(Fault::at);
        plan
    }

    fn people(&self, plan: &mut Plan, draw: &mut Draw) {
        let nodes = [3, 5, 5, 3, 1];
        let drawn = nodes.get(draw.index(nodes.len())).copied().unwrap_or(5);
        plan.nodes.count = self.nodes.unwrap_or(match self.lock {
            LockKind::Single => 1,
            LockKind::Multi => draw.between(2, 3) as u16,
            LockKind::Redlock => drawn,
        });
        plan.clients = self.clients.unwrap_or(draw.between(2, 4) as u16);
        plan.nodes.persistence = match (&self.faults, draw.between(0, 2)) {
            (Faults::Inside | Faults::None, _) | (_, 0) => Persistence::EveryWrite,
            (_, 1) => Persistence::EverySecond,
            _ => Persistence::Memory,
        };
        if matches!(self.faults, Faults::All | Faults::Only(_)) {
            plan.nodes.replicas = draw.between(0, 2) as u16;
        }
        let network = &mut plan.network;
        network.least = Span::micros(draw.between(50, 2_000));
        network.most = network.least.plus(Span::micros(draw.between(0, 6_000)));
        network.call_timeout = Span::millis(draw.between(100, 600));
        network.connect_timeout = Span::millis(draw.between(50, 300));
    }

    fn work(&self, plan: &mut Plan, draw: &mut Draw) {
        let drawn = [
            WorkloadKind::MutualExclusion,
            WorkloadKind::MutualExclusion,
            WorkloadKind::Reentrant,
            WorkloadKind::Overlapping,
            WorkloadKind::FencedWrites,
            WorkloadKind::LongWork,
            WorkloadKind::TryStorm,
        ];
        let drawn = drawn
            .get(draw.index(drawn.len()))
            .copied()
            .unwrap_or_default();
        // A lock that takes one name from each node has no owner to enter it again.
        let drawn = match (drawn, self.lock) {
            (WorkloadKind::Reentrant, LockKind::Multi) => WorkloadKind::MutualExclusion,
            _ => drawn,
        };
        let workload = &mut plan.workload;
        workload.kind = self.workload.unwrap_or(drawn);
        workload.names = match workload.kind {
            WorkloadKind::Overlapping => draw.between(2, 4) as u16,
            _ => draw.between(1, 2) as u16,
        };
        workload.lease = Span::millis(draw.between(60, 400));
        workload.watchdog = if draw.chance(500_000) {
            Watchdog::On
        } else {
            Watchdog::Off
        };
        workload.hold_least = Span::millis(draw.between(1, 20));
        workload.hold_most = workload.hold_least.plus(Span::millis(draw.between(0, 80)));
        workload.think_least = Span::millis(draw.between(0, 10));
        workload.think_most = workload.think_least.plus(Span::millis(draw.between(1, 60)));
        workload.poll_cap = Span::millis(draw.between(100, 400));
        workload.backoff_cap = Span::millis(draw.between(20, 200));
        workload.looks = draw.between(1, 4) as u16;
    }

    /// Clients' wall clocks may show anything, and nodes' too, as long as nobody sets them.
    fn clocks(&self, plan: &mut Plan, seed: u64) {
        if self.faults == Faults::None {
            return;
        }
        let mut draw = Draw::new(seed, Purpose::Plan, 1_000);
        if draw.chance(300_000) {
            for client in 0..plan.clients {
                let by = Step::millis(draw.signed(-100_000_000, 100_000_000));
                plan.faults.push(Fault::ClientStep {
                    at: Span::ZERO,
                    client,
                    by,
                });
            }
        }
        if draw.chance(300_000) {
            for node in 0..plan.nodes.count {
                let by = Step::millis(draw.signed(-100_000, 100_000));
                plan.faults.push(Fault::NodeStep {
                    at: Span::ZERO,
                    node,
                    by,
                });
            }
        }
    }
}

/// Draws one fault.
struct Dice<'a> {
    draw: &'a mut Draw,
    plan: &'a Plan,
    inside: bool,
}

impl Dice<'_> {
    /// Somewhere in the first 60 % of the run.
    fn at(&mut self) -> Span {
        let last = self.plan.duration.as_nanos() / 10 * 6;
        Span::micros(self.draw.between(0, last / 1_000))
    }

    /// Mostly short, sometimes longer than a lease.
    fn lasts(&mut self) -> Span {
        let lease = self.plan.workload.lease.as_nanos() / 1_000;
        let lasts = match self.draw.between(0, 2) {
            0 => Span::micros(self.draw.between(100, 20_000)),
            1 => Span::micros(self.draw.between(1_000, lease)),
            _ => Span::micros(self.draw.between(lease / 2, 2 * lease)),
        };
        // It ends within the run.
        lasts.min(Span::nanos(self.plan.duration.as_nanos() / 10 * 4))
    }

    fn client(&mut self) -> u16 {
        self.draw.index(usize::from(self.plan.clients)) as u16
    }

    fn node(&mut self) -> u16 {
        self.draw.index(usize::from(self.plan.nodes.count)) as u16
    }

    fn name(&mut self) -> u16 {
        self.draw.index(usize::from(self.plan.workload.names)) as u16
    }

    /// Some of `0..of`, at least one.
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

    /// Within the drift allowance two clocks may differ by 1 %, so each may be off by half of that.
    fn rate(&mut self) -> i32 {
        let most = if self.inside { 4_900 } else { 200_000 };
        i32::try_from(self.draw.signed(-most, most)).unwrap_or(0)
    }

    fn fault(&mut self, kind: Kind) -> Fault {
        let at = self.at();
        let lasts = self.lasts();
        match kind {
            Kind::Cut
            | Kind::Loss
            | Kind::Delay
            | Kind::HoldBack
            | Kind::Duplicate
            | Kind::Reorder
            | Kind::Reset => self.link_fault(kind, at, lasts),
            Kind::PauseClient
            | Kind::PauseInside
            | Kind::CrashClient
            | Kind::SuspendClient
            | Kind::Cancel
            | Kind::ClientRate
            | Kind::ClientStep => self.client_fault(kind, at, lasts),
            _ => self.node_fault(kind, at, lasts),
        }
    }

    fn link_fault(&mut self, kind: Kind, at: Span, lasts: Span) -> Fault {
        let (clients, nodes) = (self.clients(), self.nodes());
        let direction = self.direction();
        match kind {
            Kind::Loss => {
                let of_million = self.draw.between(10_000, 500_000) as u32;
                Fault::Loss {
                    at,
                    lasts,
                    clients,
                    nodes,
                    direction,
                    of_million,
                }
            }
            Kind::Delay => {
                let least = Span::micros(self.draw.between(0, 20_000));
                let most = least.plus(Span::micros(self.draw.between(0, 200_000)));
                Fault::Delay {
                    at,
                    lasts,
                    clients,
                    nodes,
                    direction,
                    least,
                    most,
                }
            }
            Kind::HoldBack => Fault::HoldBack {
                at,
                lasts,
                clients,
                nodes,
                direction,
            },
            Kind::Duplicate => {
                let of_million = self.draw.between(10_000, 1_000_000) as u32;
                let most = Span::micros(self.draw.between(10, 500_000));
                Fault::Duplicate {
                    at,
                    lasts,
                    clients,
                    nodes,
                    of_million,
                    most,
                }
            }
            Kind::Reorder => {
                let most = Span::micros(self.draw.between(100, 100_000));
                Fault::Reorder {
                    at,
                    lasts,
                    clients,
                    nodes,
                    direction,
                    most,
                }
            }
            Kind::Reset => {
                let in_flight = match self.draw.between(0, 1) {
                    0 => InFlight::Lost,
                    _ => InFlight::Executed,
                };
                Fault::Reset {
                    at,
                    clients,
                    nodes,
                    in_flight,
                }
            }
            _ => Fault::Cut {
                at,
                lasts,
                clients,
                nodes,
                direction,
            },
        }
    }

    fn client_fault(&mut self, kind: Kind, at: Span, lasts: Span) -> Fault {
        let client = self.client();
        match kind {
            Kind::PauseInside => {
                let nth = self.draw.between(1, 60) as u32;
                Fault::PauseInside {
                    at,
                    lasts,
                    client,
                    nth,
                }
            }
            Kind::CrashClient => Fault::CrashClient {
                at,
                client,
                restart_after: lasts,
            },
            Kind::SuspendClient => {
                let clock = match self.draw.between(0, 1) {
                    _ if self.inside => Suspended::Counts,
                    0 => Suspended::Stops,
                    _ => Suspended::Counts,
                };
                Fault::SuspendClient {
                    at,
                    lasts,
                    client,
                    clock,
                }
            }
            Kind::Cancel => {
                let nth = self.draw.between(1, 20) as u32;
                Fault::Cancel { at, client, nth }
            }
            Kind::ClientRate => {
                let rate_ppm = self.rate();
                Fault::ClientRate {
                    at,
                    client,
                    rate_ppm,
                }
            }
            Kind::ClientStep => {
                let by = Step::millis(self.draw.signed(-3_600_000, 3_600_000));
                Fault::ClientStep { at, client, by }
            }
            _ => Fault::PauseClient { at, lasts, client },
        }
    }

    fn node_fault(&mut self, kind: Kind, at: Span, lasts: Span) -> Fault {
        let node = self.node();
        match kind {
            Kind::CrashNode => Fault::CrashNode {
                at,
                node,
                restart_after: lasts,
            },
            Kind::Flush => Fault::Flush { at, node },
            Kind::Evict => Fault::Evict {
                at,
                node,
                name: self.name(),
            },
            Kind::ServerError => {
                let errors = [
                    ServerError::ReadOnly,
                    ServerError::Loading,
                    ServerError::OutOfMemory,
                    ServerError::Busy,
                ];
                let error = errors.get(self.draw.index(errors.len()));
                let error = error.copied().unwrap_or(ServerError::Busy);
                Fault::ServerError {
                    at,
                    lasts,
                    node,
                    error,
                }
            }
            Kind::ForgetScripts => Fault::ForgetScripts { at, node },
            Kind::NodeRate => {
                let rate_ppm = self.rate();
                Fault::NodeRate { at, node, rate_ppm }
            }
            Kind::NodeStep => {
                let by = Step::millis(self.draw.signed(-1_000, 1_000));
                Fault::NodeStep { at, node, by }
            }
            Kind::SlowReplication => {
                let by = self.lasts();
                Fault::SlowReplication {
                    at,
                    lasts,
                    node,
                    by,
                }
            }
            Kind::Failover => {
                let replicas = u64::from(self.plan.nodes.replicas).max(1);
                let replica = self.draw.between(0, replicas - 1) as u16;
                let left_behind = if self.draw.chance(500_000) {
                    self.clients()
                } else {
                    Vec::new()
                };
                Fault::Failover {
                    at,
                    node,
                    replica,
                    left_behind,
                    rejoin_after: lasts,
                }
            }
            _ => Fault::PauseNode { at, lasts, node },
        }
    }
}
