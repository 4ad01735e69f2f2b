//! Plans drawn from a seed.
//!
//! The generator first draws which kinds of fault occur, and how often and how long. A run with few kinds explores them
//! more deeply than a run with all kinds. The generator then lists every single fault, and only these faults occur in
//! the run.

mod clusters;
mod exempt;
mod fault_generator;
mod groups;
mod preset;
mod stores;

use std::fmt;
use std::str::FromStr;

use quorlock::NodeTrust;

use crate::draw::{Draw, Purpose};
use crate::fault::{Allowed, ClientFault, Drawn, Fault, Kind, Needs, NodeFault};
use crate::time::{ClockStep, SimTime};
use crate::variant::Variant;
use crate::{Lacks, Lane, LockKind, Persistence, Plan, Watchdog, WorkloadKind};
pub use fault_generator::FaultGenerator;
use preset::{Fixed, Preset};

/// The kinds of fault from which a plan is drawn.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum FaultChoice {
    /// No faults.
    None,
    /// The faults that the stated assumptions of the lock allow, within their bounds.
    #[default]
    Inside,
    /// Faults of all kinds.
    All,
    /// Faults of these kinds.
    Only(Vec<Kind>),
}

/// The error for a text that names no kinds of fault.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{word:?} is not a kind of fault: use inside, all, none, or a list of {}", names().join(","))]
pub struct UnknownKind {
    word: String,
}

fn names() -> Vec<&'static str> {
    Kind::ALL.iter().map(|kind| kind.name()).collect()
}

impl FromStr for FaultChoice {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        match text {
            "none" => Ok(FaultChoice::None),
            "inside" => Ok(FaultChoice::Inside),
            "all" => Ok(FaultChoice::All),
            list => list
                .split(',')
                .map(|word| {
                    Kind::named(word.trim()).ok_or_else(|| UnknownKind {
                        word: word.to_owned(),
                    })
                })
                .collect::<Result<_, _>>()
                .map(FaultChoice::Only),
        }
    }
}

impl fmt::Display for FaultChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultChoice::None => f.write_str("none"),
            FaultChoice::Inside => f.write_str("inside"),
            FaultChoice::All => f.write_str("all"),
            FaultChoice::Only(kinds) => {
                let names: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
                f.write_str(&names.join(","))
            }
        }
    }
}

impl FaultChoice {
    /// Returns whether faults of a kind may be drawn for a plan.
    fn allows(&self, kind: Kind, plan: &Plan) -> bool {
        let nodes = &plan.nodes;
        let is_had = match kind.needs() {
            Needs::Nothing => true,
            Needs::Replicas => 0 < nodes.replicas,
            Needs::PlainServers { .. } => !nodes.are_groups() && nodes.can_fail_over(),
            Needs::Elections => nodes.are_groups(),
            Needs::Sentinels => nodes.sentinels.is_some(),
            Needs::Cluster => nodes.cluster.is_some(),
        };
        let is_drawn = match kind.drawn() {
            Drawn::Always => true,
            Drawn::WithReplicas => 0 < nodes.replicas,
            Drawn::WithoutReplicas => nodes.replicas == 0,
            Drawn::AmongNodes => 1 < nodes.count,
            Drawn::ByName => matches!(self, FaultChoice::Only(_)),
        };
        is_had
            && is_drawn
            && match self {
                FaultChoice::None => false,
                FaultChoice::Inside => is_inside(kind, plan) && plan.lane.has(kind),
                FaultChoice::All => plan.lane.has(kind),
                FaultChoice::Only(kinds) => kinds.contains(&kind),
            }
    }
}

/// Returns whether the stated assumptions of a lock allow a kind of fault in a plan.
fn is_inside(kind: Kind, plan: &Plan) -> bool {
    let is_group = plan.nodes.are_groups();
    let is_allowed = match kind.allowed() {
        Allowed::Always => true,
        Allowed::Never => false,
        Allowed::WithElections => is_group,
        Allowed::WithoutElections => !is_group,
        Allowed::WithinMargin => !is_group && SimTime::ZERO < plan.clock_margin(),
        Allowed::OfMinority => {
            let is_majority = plan.lock == LockKind::Redlock && 3 <= plan.nodes.count;
            plan.node_trust() == NodeTrust::Watched && is_majority && !is_group
        }
    };
    is_allowed && (plan.nodes.cluster.is_none() || clusters::is_inside(kind, plan))
}

/// The kind of deployment that forms each node of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Deployment {
    /// Each node is a server, sometimes with replicas.
    #[default]
    Servers,
    /// Each node is a Sentinel group. Faults that lead to elections are drawn, too.
    Groups,
    /// Each node is a shard of one cluster. Elections, faults that lead to them, and moves of slots are drawn, too.
    /// For the lock on one node, the whole cluster is that node.
    Clusters,
    /// Each node is a store: a database or a consensus store. A node of a majority may also be a server.
    Stores,
}

/// The choices that the user makes. Everything else is drawn from the seed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanGenerator {
    /// The kinds of fault.
    pub faults: FaultChoice,
    /// The lane. Faults that it does not support are drawn only if the user requests them by name.
    pub lane: Lane,
    /// The deployment that forms each node.
    pub deployment: Deployment,
    /// The kind of lock.
    pub lock: LockKind,
    /// The implementation of the lock.
    pub variant: Variant,
    /// The number of nodes, or `None` to draw it.
    pub nodes: Option<u16>,
    /// The number of clients, or `None` to draw it.
    pub clients: Option<u16>,
    /// The kind of work, or `None` to draw it.
    pub workload: Option<WorkloadKind>,
    /// How long clients work, or `None` for the default of 2 s.
    pub duration: Option<SimTime>,
}

impl Default for PlanGenerator {
    fn default() -> Self {
        PlanGenerator {
            faults: FaultChoice::Inside,
            lane: Lane::default(),
            deployment: Deployment::default(),
            lock: LockKind::Redlock,
            variant: Variant::Product,
            nodes: None,
            clients: None,
            workload: None,
            duration: None,
        }
    }
}

impl PlanGenerator {
    /// Checks that the lane supports the deployment, and the faults that were requested by name.
    ///
    /// # Errors
    /// Returns [`Lacks::Kind`], [`Lacks::Sentinels`], [`Lacks::Cluster`], [`Lacks::Stores`] or [`Lacks::SeveralOfCluster`].
    pub fn check(&self) -> Result<(), Lacks> {
        if self.deployment == Deployment::Groups && self.lane == Lane::Fast {
            return Err(Lacks::Sentinels);
        }
        if self.deployment == Deployment::Clusters {
            if self.lane == Lane::Fast {
                return Err(Lacks::Cluster);
            }
            if self.lock == LockKind::Multi {
                return Err(Lacks::SeveralOfCluster);
            }
        }
        if self.deployment == Deployment::Stores && self.lane != Lane::Fast {
            return Err(Lacks::Stores);
        }
        let FaultChoice::Only(kinds) = &self.faults else {
            return Ok(());
        };
        let missing = kinds.iter().find(|kind| !self.lane.has(**kind));
        missing.map_or(Ok(()), |kind| Err(Lacks::Kind(*kind)))
    }

    /// Returns the plan of a seed.
    #[must_use]
    pub fn plan(&self, seed: u64) -> Plan {
        let mut draw = Draw::new(seed, Purpose::Plan, 0);
        let mut plan = Plan {
            seed,
            lane: self.lane,
            lock: self.lock,
            variant: self.variant,
            ..Plan::default()
        };
        let duration = self.duration.unwrap_or(plan.duration);
        plan.duration = duration;
        self.people(&mut plan, &mut draw);
        self.work(&mut plan, &mut draw);
        self.margin(&mut plan, seed);
        self.stays(&mut plan, seed);
        self.clocks(&mut plan, seed);
        let shaped = match self.deployment {
            Deployment::Servers => None,
            Deployment::Groups => {
                groups::add(&mut plan, &self.faults);
                None
            }
            Deployment::Clusters => {
                clusters::add(&mut plan, &self.faults);
                None
            }
            Deployment::Stores => Some(stores::add(&mut plan, &self.faults)),
        };
        let preset = shaped.unwrap_or_else(|| self.preset(&mut plan));
        let kinds = Kind::ALL.into_iter().filter(|_| preset.has_faults());
        for kind in kinds {
            // Each kind has its own stream, so that a new kind does not change the faults of the others.
            let mut draw = Draw::new(seed, Purpose::Plan, 1 + kind as u64);
            if self.faults.allows(kind, &plan) && draw.chance(400_000) {
                let times = draw.between(1, kind.most());
                for _ in 0..times {
                    let inside = self.faults == FaultChoice::Inside;
                    let fault = FaultGenerator {
                        draw: &mut draw,
                        plan: &plan,
                        inside,
                    }
                    .fault(kind);
                    plan.faults.push(fault);
                }
            }
        }
        plan.faults.sort_by_key(Fault::begins);
        if plan.workload.kind == WorkloadKind::HandingOver {
            wait_for_tickets(&mut plan);
        }
        if self.faults == FaultChoice::Inside {
            exempt::add(&mut plan);
        }
        plan
    }

    /// Draws a preset and applies it.
    fn preset(&self, plan: &mut Plan) -> Preset {
        let is_plain = self.variant == Variant::Product && self.deployment == Deployment::Servers;
        let has_presets = matches!(self.faults, FaultChoice::Inside | FaultChoice::All) && is_plain;
        let stopped = Preset::draw_stopped(plan.seed).filter(|_| self.lane.has(Kind::StopInside));
        let own = stopped.or_else(|| Preset::draw_newcomers(plan.seed));
        let own = own.or_else(|| Preset::draw_together(plan.seed));
        let free = || Preset::draw_free_names(plan.seed).filter(|_| self.lane == Lane::Turmoil);
        let own = own.or_else(free);
        let (preset, mut draw) = match own.or_else(|| Preset::draw_meeting(plan.seed)) {
            // If the user requests kinds by name, no preset adds other kinds.
            _ if !has_presets => return Preset::Mixed,
            Some(own) => own,
            None => {
                let mut draw = Preset::stream(plan.seed);
                (Preset::draw(&mut draw), draw)
            }
        };
        let fixed = Fixed {
            work: self.workload,
            nodes: self.nodes,
            clients: self.clients,
        };
        preset.apply(plan, fixed, &mut draw);
        let lane = self.lane;
        let end = plan.duration;
        let nodes = plan.nodes.count;
        let is_there = |fault: &Fault| fault.nodes().iter().all(|node| *node < nodes);
        plan.faults
            .retain(|fault| lane.has(fault.kind()) && fault.begins() <= end && is_there(fault));
        for fault in &mut plan.faults {
            // A plan is rejected if a fault outlasts the run.
            fault.lasts = fault.lasts.min(end.minus(fault.begins()));
        }
        preset
    }

    fn people(&self, plan: &mut Plan, draw: &mut Draw) {
        let nodes = [3, 5, 5, 3, 1];
        let drawn = nodes.get(draw.index(nodes.len())).copied().unwrap_or(5);
        plan.nodes.count = self.nodes.unwrap_or(match self.lock {
            LockKind::Single => 1,
            LockKind::Multi => draw.between(2, 3) as u16,
            LockKind::Redlock => drawn,
        });
        if self.deployment == Deployment::Clusters {
            plan.nodes.count = plan.nodes.count.max(3);
        }
        plan.clients = self.clients.unwrap_or(draw.between(2, 4) as u16);
        let may_forget = match self.faults {
            FaultChoice::None => false,
            // Watched nodes may lose data if a majority of the token counters survives.
            FaultChoice::Inside => plan.node_trust() == NodeTrust::Watched && 3 <= plan.nodes.count,
            FaultChoice::All | FaultChoice::Only(_) => true,
        };
        plan.nodes.persistence = match (may_forget, draw.between(0, 2)) {
            (false, _) | (true, 0) => Persistence::EveryWrite,
            (_, 1) => Persistence::EverySecond,
            _ => Persistence::Memory,
        };
        if matches!(self.faults, FaultChoice::All | FaultChoice::Only(_)) {
            plan.nodes.replicas = draw.between(0, 2) as u16;
        }
        let network = &mut plan.network;
        network.min = SimTime::micros(draw.between(50, 2_000));
        network.max = network.min.plus(SimTime::micros(draw.between(0, 6_000)));
        network.call_timeout = SimTime::millis(draw.between(100, 600));
        network.connect_timeout = SimTime::millis(draw.between(50, 300));
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
        // A lock that acquires one name from each node has no owner that could re-enter it.
        let drawn = match (drawn, self.lock) {
            (WorkloadKind::Reentrant, LockKind::Multi) => WorkloadKind::MutualExclusion,
            (WorkloadKind::Reentrant | WorkloadKind::Overlapping, _)
                if self.variant.algorithm().is_some() =>
            {
                WorkloadKind::FencedWrites
            }
            _ => drawn,
        };
        let workload = &mut plan.workload;
        workload.kind = self.workload.unwrap_or(drawn);
        workload.names = match workload.kind {
            WorkloadKind::Overlapping => draw.between(2, 4) as u16,
            _ => draw.between(1, 2) as u16,
        };
        workload.lease = SimTime::millis(draw.between(60, 400));
        workload.watchdog = if draw.chance(500_000) {
            Watchdog::On
        } else {
            Watchdog::Off
        };
        workload.hold_min = SimTime::millis(draw.between(1, 20));
        workload.hold_max = workload.hold_min.plus(SimTime::millis(draw.between(0, 80)));
        workload.think_min = SimTime::millis(draw.between(0, 10));
        workload.think_max = workload
            .think_min
            .plus(SimTime::millis(draw.between(1, 60)));
        workload.poll_cap = SimTime::millis(draw.between(100, 400));
        workload.backoff_cap = SimTime::millis(draw.between(20, 200));
        workload.checks = draw.between(1, 4) as u16;
    }

    /// Draws a margin for a lock on one node. There, claims outlast their leases only if the plan has a margin.
    fn margin(&self, plan: &mut Plan, seed: u64) {
        let is_asked_for = !plan.has_remedies()
            && plan.variant.has_product_clients()
            && matches!(self.faults, FaultChoice::Inside | FaultChoice::All);
        let mut draw = Draw::new(seed, Purpose::Plan, 1_001);
        if is_asked_for && draw.chance(500_000) {
            plan.remedies.margin = Some(plan.longest_lease());
        }
    }

    /// Draws sections that last about a lease: only these show what goes wrong when a lease ends.
    fn stays(&self, plan: &mut Plan, seed: u64) {
        let is_drawn = matches!(self.faults, FaultChoice::Inside | FaultChoice::All);
        let mut draw = Draw::new(seed, Purpose::Plan, 1_002);
        if is_drawn && draw.chance(500_000) {
            let longer = SimTime::nanos(plan.workload.lease.as_nanos() / 10 * 11);
            plan.workload.hold_max = plan.workload.hold_max.max(longer);
        }
    }

    /// Draws the initial readings of the wall clocks of clients and nodes. They can be arbitrary.
    fn clocks(&self, plan: &mut Plan, seed: u64) {
        if self.faults == FaultChoice::None {
            return;
        }
        let mut draw = Draw::new(seed, Purpose::Plan, 1_000);
        if draw.chance(300_000) {
            for client in 0..plan.clients {
                let by = ClockStep::millis(draw.signed(-100_000_000, 100_000_000));
                plan.faults.push(Fault::of_client(
                    SimTime::ZERO,
                    client,
                    ClientFault::Step { by },
                ));
            }
        }
        if draw.chance(300_000) {
            for node in 0..plan.nodes.count {
                let by = ClockStep::millis(draw.signed(-100_000, 100_000));
                plan.faults
                    .push(Fault::of_node(SimTime::ZERO, node, NodeFault::Step { by }));
            }
        }
    }
}
/// Extends the bounds on progress: a lock that was handed over and is never adopted stays locked for a lease.
fn wait_for_tickets(plan: &mut Plan) {
    let kept = plan.longest_lease().plus(plan.clock_margin());
    plan.progress_within = plan.progress_within.map(|bound| bound.plus(kept));
    plan.idle_within = plan.idle_within.map(|bound| bound.plus(kept));
    plan.free_within = None;
}
