//! Storms: many faults of a class, close together, for runs on real servers.
//!
//! A run of the matrix has a few faults at random times, and over thousands of runs, these hit every moment of a hold.
//! On real servers, a few minutes must be enough. So faults come in bursts, and some holds are long enough for any
//! fault to hit them.

use super::class::{Class, ClassBounds, Clients};
use super::contender::Candidate;
use super::work::StormWork;
use quorlock_sim_plan::draw::{Draw, Purpose};
use quorlock_sim_plan::fault::{Fault, FaultKind, Handover, Kind, NodeFault, Trigger};
use quorlock_sim_plan::time::{ClockStep, SimTime};
use quorlock_sim_plan::{Cluster, Coverage, Network, Plan, Sentinels, Watchdog, Workload};

/// The length of a lease, in the time of the plan.
const LEASE: SimTime = SimTime::millis(150);

/// The number of clients.
const CLIENTS: u16 = 8;
/// The number of servers if a majority decides.
const MAJORITY: u16 = 3;

/// The parameters of a storm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Storm {
    pub(crate) seed: u64,
    /// The work of the clients.
    pub(crate) work: StormWork,
    /// How long the storm lasts, in the time of the plan.
    pub(crate) lasts: SimTime,
    /// Returns whether a kind of fault is supported.
    pub(crate) has: fn(Kind) -> bool,
}

impl Class {
    /// Returns the kinds of faults of the class.
    pub(crate) fn kinds(&self) -> &'static [Kind] {
        self.kinds
    }

    /// Returns whether any kind of fault of this class is supported, or the class needs none.
    pub(crate) fn is_had(&self, has: fn(Kind) -> bool) -> bool {
        self.kinds.is_empty() || self.kinds.iter().any(|kind| has(*kind))
    }
}

impl Candidate {
    /// Returns the plan of a storm. The clients are the same for all locks, and so is the work of those that can do
    /// it. The faults are the same for locks with the same servers.
    pub(crate) fn storm(&self, class: &Class, storm: Storm) -> Plan {
        let mut plan = Plan {
            seed: storm.seed,
            lane: self.lane(),
            duration: storm.lasts,
            clients: CLIENTS,
            network: Network {
                min: SimTime::micros(10),
                max: SimTime::micros(100),
                call_timeout: SimTime::millis(30),
                connect_timeout: SimTime::millis(30),
            },
            workload: Workload {
                names: 2,
                lease: LEASE,
                // On real servers, the simple locks have no watchdog.
                watchdog: match self.variant.has_product_clients() {
                    true => Watchdog::Half,
                    false => Watchdog::Off,
                },
                hold_min: SimTime::ZERO,
                hold_max: SimTime::millis(240),
                think_min: SimTime::ZERO,
                think_max: SimTime::millis(5),
                poll_cap: SimTime::millis(100),
                backoff_cap: SimTime::millis(20),
                ..Workload::default()
            },
            ..Plan::default()
        };
        self.put_to(storm.work, &mut plan.workload);
        self.dress(&mut plan, class, MAJORITY);
        if plan.nodes.are_groups() {
            make_elections_matter(&mut plan);
            plan.faults = Bursts::new(class, &plan, storm).one_after_another();
        } else if class.clients == Clients::Idle {
            make_clients_idle(&mut plan);
            plan.faults = Bursts::new(class, &plan, storm).in_turn();
        } else {
            plan.faults = Bursts::new(class, &plan, storm).all();
        }
        plan
    }
}

/// Makes holds and leases longer than an election, and replicas lag. Otherwise, a claim has ended or has reached the
/// replica before that is promoted, and a failover loses nothing.
fn make_elections_matter(plan: &mut Plan) {
    if plan.nodes.cluster.is_some() {
        // A replica of a cluster waits for up to a second before it asks for votes, and a node that has just begun
        // answers after two. So elections and holds are longer than those of a Sentinel group.
        plan.workload.lease = SimTime::millis(500);
        plan.workload.hold_min = SimTime::millis(250);
        plan.workload.hold_max = SimTime::millis(500);
        plan.nodes.replication_lag = SimTime::millis(300);
        plan.nodes.cluster = Some(Cluster {
            node_timeout: SimTime::millis(100),
            election: SimTime::millis(80),
            // The shards without a fault go on.
            coverage: Coverage::Partial,
            ..Cluster::default()
        });
        return;
    }
    plan.nodes.replication_lag = SimTime::millis(80);
    plan.workload.lease = SimTime::millis(300);
    plan.workload.hold_min = SimTime::millis(120);
    plan.workload.hold_max = SimTime::millis(300);
    plan.nodes.sentinels = Some(Sentinels {
        down_after: SimTime::millis(50),
        election: SimTime::millis(60),
        ..Sentinels::default()
    });
}

/// Makes clients use the lock so seldom that all nodes restart in between, and demands that a majority grants it long before
/// the lease that a node which is first seen after its restart would have to be watched for.
fn make_clients_idle(plan: &mut Plan) {
    plan.workload.names = 1;
    plan.workload.hold_max = SimTime::millis(20);
    plan.workload.think_min = SimTime::millis(1_200);
    plan.workload.think_max = SimTime::millis(1_800);
    plan.idle_within = (1 < plan.nodes.count).then_some(SimTime::millis(100));
}

/// Draws the faults of a storm.
struct Bursts<'a> {
    class: &'a Class,
    plan: &'a Plan,
    kinds: Vec<Kind>,
    draw: Draw,
    /// The number of faults that were drawn.
    drawn: usize,
    /// How far the clock of each node is ahead, in milliseconds, and when it was last set forwards.
    ahead: Vec<(i64, Option<SimTime>)>,
}

impl<'a> Bursts<'a> {
    fn new(class: &'a Class, plan: &'a Plan, storm: Storm) -> Self {
        let kinds = class
            .kinds
            .iter()
            .copied()
            .filter(|kind| (storm.has)(*kind));
        Bursts {
            class,
            plan,
            kinds: kinds.collect(),
            draw: Draw::new(storm.seed, Purpose::Storms, 0),
            drawn: 0,
            ahead: vec![(0, None); usize::from(plan.nodes.count)],
        }
    }

    /// Draws bursts of faults with small gaps, and pauses between the bursts in which everything recovers.
    fn all(mut self) -> Vec<Fault> {
        let mut faults = Vec::new();
        if self.kinds.is_empty() {
            return faults;
        }
        let between = |draw: &mut Draw, min, max| SimTime::millis(draw.between(min, max));
        // All faults end before the clients do.
        let last = self.plan.duration.minus(self.plan.duration.min(LEASE));
        let mut at = between(&mut self.draw, 20, 100);
        while at < last {
            for _ in 0..self.draw.between(3, 10) {
                faults.extend(self.one(at).filter(|_| at < last));
                at = at.plus(between(&mut self.draw, 0, 50));
            }
            at = at.plus(between(&mut self.draw, 100, 500));
        }
        for fault in &mut faults {
            fault.lasts = fault.lasts.min(self.plan.duration.minus(fault.begins()));
        }
        faults
    }

    /// Draws faults of one node after another, each after the one before is trusted again.
    fn in_turn(mut self) -> Vec<Fault> {
        let mut faults = Vec::new();
        let last = self.plan.duration.minus(self.plan.duration.min(LEASE));
        let nodes = self.plan.nodes.count.max(1);
        let mut at = SimTime::millis(self.draw.between(20, 100));
        for turn in 0.. {
            let Some(mut fault) = self.one(at).filter(|_| at < last) else {
                break;
            };
            if let FaultKind::Node { node, .. } = &mut fault.what {
                *node = turn % nodes;
            }
            // The node is away for a moment, and is then watched for a lease.
            fault.lasts = SimTime::millis(self.draw.between(1, 20));
            at = at.plus(fault.lasts).plus(LEASE.plus(LEASE));
            faults.push(fault);
        }
        faults
    }

    /// Draws faults of Sentinel groups or of a cluster, each after the one before is over, with pauses in which the
    /// group recovers. Faults of sentinels overlap with the fault that follows. A slot that is moved away from the
    /// shard with the faults is moved back next.
    fn one_after_another(mut self) -> Vec<Fault> {
        let mut faults = Vec::new();
        let last = self.plan.duration.minus(self.plan.duration.min(LEASE));
        let mut at = SimTime::millis(self.draw.between(20, 100));
        while at < last {
            let Some(mut fault) = self.one(at) else {
                return faults;
            };
            let kind = fault.kind();
            // About half of the faults are too short for an election.
            let length = match kind {
                Kind::SentinelFailover | Kind::ClusterFailover => None,
                // Moves alone have to last for longer than a lease. In between, names have time to be handed over.
                Kind::MigrateSlot if self.kinds.len() == 1 => Some((600, 1_000)),
                _ if self.plan.nodes.cluster.is_some() => Some((80, 350)),
                _ => Some((10, 200)),
            };
            if let Some((min, max)) = length {
                fault.lasts = SimTime::millis(self.draw.between(min, max));
            }
            fault.lasts = fault.lasts.min(self.plan.duration.minus(at));
            let back = self.send_away(&mut fault);
            at = at.plus(self.pause_after(&fault));
            faults.push(fault);
            if let Some(mut back) = back.filter(|_| at < last) {
                back.when = Trigger::At(at);
                back.lasts = back.lasts.min(self.plan.duration.minus(at));
                at = at.plus(self.pause_after(&back));
                faults.push(back);
            }
        }
        faults
    }

    /// Returns the time from the beginning of a fault to the beginning of the next one.
    fn pause_after(&mut self, fault: &Fault) -> SimTime {
        let (min, max) = match fault.kind() {
            Kind::CrashSentinel | Kind::PauseSentinel => {
                return SimTime::millis(self.draw.between(0, 50));
            }
            // A real cluster needs about five seconds, three of them before the fault begins.
            _ if self.plan.nodes.cluster.is_some() => (350, 550),
            _ => (100, 400),
        };
        fault
            .lasts
            .plus(SimTime::millis(self.draw.between(min, max)))
    }

    /// Makes a fault that moves a slot move it from the shard with the faults to another one, without a gap that is
    /// longer than the fault. Returns the fault that moves it back.
    fn send_away(&mut self, fault: &mut Fault) -> Option<Fault> {
        let lasts = fault.lasts;
        let others = u64::from(self.plan.nodes.count).saturating_sub(1).max(1);
        let FaultKind::Node {
            node,
            fault: NodeFault::MigrateSlot { to, gap, .. },
            ..
        } = &mut fault.what
        else {
            return None;
        };
        *gap = match self.kinds.len() {
            // In a long gap no node renews anything, and holds end although nothing is wrong.
            1 => SimTime::ZERO,
            _ => (*gap).min(SimTime::nanos(lasts.as_nanos() / 2)),
        };
        let home = *node;
        *to = u16::try_from(self.draw.between(1, others)).unwrap_or(1);
        let mut back = fault.clone();
        if let FaultKind::Node {
            fault: NodeFault::MigrateSlot { to, gap, .. },
            ..
        } = &mut back.what
        {
            *to = home;
            *gap = SimTime::ZERO;
        }
        Some(back)
    }

    fn one(&mut self, at: SimTime) -> Option<Fault> {
        let index = match self.plan.nodes.cluster {
            // A minute has about a dozen faults of a cluster, so the kinds take turns.
            Some(_) => (self.plan.seed as usize + self.drawn) % self.kinds.len().max(1),
            None => self.draw.index(self.kinds.len()),
        };
        let kind = self.kinds.get(index).copied()?;
        self.drawn += 1;
        let mut fault = self.class.fault(kind, self.plan, &mut self.draw);
        if let FaultKind::Node {
            fault: NodeFault::ClusterFailover { how },
            ..
        } = &mut fault.what
        {
            // A manual failover loses nothing. So only one in three is manual.
            *how = match self.draw.between(0, 2) {
                0 => Handover::Manual,
                _ => Handover::Takeover,
            };
        }
        fault.when = Trigger::At(at);
        if self.plan.is_one_cluster()
            && let FaultKind::Node { node, .. } = &mut fault.what
        {
            // When the run begins, shard 0 owns the slots of all names.
            *node = 0;
        }
        if let FaultKind::Node {
            node, fault: what, ..
        } = &mut fault.what
        {
            let any = u16::try_from(self.draw.index(usize::from(self.plan.nodes.count)));
            match what {
                // Faults that lose data strike all servers, one after the other. Clients need not know which servers
                // may lose data.
                NodeFault::Crash | NodeFault::PowerLoss { .. } if !self.plan.nodes.are_groups() => {
                    *node = any.unwrap_or(0);
                    fault.lasts = SimTime::millis(self.draw.between(0, 30));
                }
                NodeFault::Step { by } if self.class.bounds == ClassBounds::Inside => {
                    *by = self.step(*node, at)?;
                }
                _ => {}
            }
        }
        Some(fault)
    }

    /// Returns the next step of a clock: forwards by less than the margin while a claim exists, then back again.
    fn step(&mut self, node: u16, at: SimTime) -> Option<ClockStep> {
        let lease = i64::try_from(LEASE.as_nanos() / 1_000_000).unwrap_or(0);
        let (ahead, last) = self.ahead.get_mut(usize::from(node))?;
        let by = match *ahead {
            0 => {
                // A claim lasts for two leases, and two steps forwards in that time could together exceed the margin.
                // So three leases must pass between them.
                let apart = LEASE.plus(LEASE).plus(LEASE);
                if last.is_some_and(|last| at < last.plus(apart)) {
                    return None;
                }
                *last = Some(at);
                self.draw.signed(1, lease - 1)
            }
            ahead => -ahead,
        };
        *ahead += by;
        Some(ClockStep::millis(by))
    }
}
