//! Figures that go together, and bring out what others hide.
//!
//! Where leases of 100 ms meet latencies of milliseconds, the drift of clocks has no room to matter; where a waiter looks
//! again after 200 ms, a wake-up that is lost is missed by none. Each law gives one of them its chance.

mod connections;
mod crowds;
mod echoes;
mod last_polls;
mod lasting;
mod leftovers;
mod longer;
mod lost_renewals;
mod newcomers;
mod old_disks;
mod re_acquired;
mod sides;
mod twins;
mod wake_ups;

use super::{stopped, together};
use crate::plan::draw::{Draw, Purpose};
use crate::plan::fault::{ClientFault, Fault, NodeFault};
use crate::plan::property::Property;
use crate::plan::time::SimTime;
use crate::plan::{LockKind, Plan, Watchdog, WorkloadKind};

/// By what a plan is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Law {
    /// Everything small and mixed.
    Mixed,
    /// Work that is seldom drawn.
    OtherWork,
    /// Holds of about a lease, which nothing renews: they end at their deadline.
    WholeLeases,
    /// Long leases, quick messages, and clocks at the bounds of the drift that is allowed for.
    Clocks,
    /// Hardly anything goes wrong, and waiters look again too late to help themselves.
    WakeUps,
    /// A waiter is stopped again and again between a reading of its clock and the replies to what it had asked.
    Stopped,
    /// Locks of several clients together, whose nodes come back empty; of one client, both sides of one owner.
    Together,
    /// What calls leave behind matters: leases outlast the run, and faults are short.
    Leftovers,
    /// Holds are renewed for several leases, while one connection of their client after another is late or cut.
    Connections,
    /// Holds are renewed for several leases, and what is in the way leaves them time enough: none may be lost.
    Lasting,
    /// Two clients have majorities that share only nodes that forget, or whose clocks are set.
    Sides,
    /// Many clients want one lock, and nothing goes wrong.
    Crowds,
    /// The holder is stopped again and again, for longer than its lease, where its work may just end.
    LastPolls,
    /// A node comes back without the last renewal that it confirmed.
    LostRenewals,
    /// Two addresses of one client lead to one server.
    Twins,
    /// Some clients are set up with longer leases than the others know of.
    Longer,
    /// A node that is said to keep everything comes back with what it had before it was flushed.
    OldDisks,
    /// Requests come once more when their owner is long gone.
    Echoes,
    /// A holder asks a node again that has forgotten a competitor's claim, while the competitor's round goes on.
    ReAcquired,
    /// The first request of a client to a node is under way while that is flushed.
    Newcomers,
}

/// What a user fixes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fixed {
    /// Which work.
    pub(super) work: Option<WorkloadKind>,
    /// How many nodes.
    pub(super) nodes: Option<u16>,
    /// How many clients.
    pub(super) clients: Option<u16>,
}

impl Law {
    /// The law of a seed.
    pub(super) fn draw(draw: &mut Draw) -> Self {
        let laws = [
            Law::Mixed,
            Law::Mixed,
            Law::Mixed,
            Law::OtherWork,
            Law::OtherWork,
            Law::WholeLeases,
            Law::Clocks,
            Law::WakeUps,
            Law::Leftovers,
            Law::Connections,
            Law::Connections,
            Law::Lasting,
            Law::Sides,
            Law::Sides,
        ];
        laws.get(draw.index(laws.len()))
            .copied()
            .unwrap_or(Law::Mixed)
    }

    /// A stream of its own, so that what is drawn by no law stays as it was.
    pub(super) fn stream(seed: u64) -> Draw {
        Draw::new(seed, Purpose::Plan, 2_000)
    }

    /// Changes a plan to what the law says; what is fixed stays.
    pub(super) fn apply(self, plan: &mut Plan, fixed: Fixed, draw: &mut Draw) {
        let work = fixed.work;
        match self {
            Law::Mixed => {}
            Law::OtherWork => {
                if work.is_none() {
                    plan.workload.kind = other_work(plan.lock, draw);
                }
            }
            Law::WholeLeases => whole_leases(plan, work, draw),
            Law::Clocks => clocks(plan, work, draw),
            Law::WakeUps => wake_ups::apply(plan, work, draw),
            Law::Leftovers => leftovers::apply(plan, work, draw),
            Law::Connections => connections::apply(plan, work, draw),
            Law::Lasting => lasting::apply(plan, work, draw),
            Law::Sides => sides::apply(plan, fixed, draw),
            Law::Stopped => stopped::apply(plan, work, draw),
            Law::Together => together::apply(plan, work, draw),
            Law::Crowds => crowds::apply(plan, fixed, draw),
            Law::LastPolls => last_polls::apply(plan, work, draw),
            Law::LostRenewals => lost_renewals::apply(plan, fixed, draw),
            Law::Twins => twins::apply(plan, fixed, draw),
            Law::Longer => longer::apply(plan, fixed, draw),
            Law::OldDisks => old_disks::apply(plan, fixed, draw),
            Law::Echoes => echoes::apply(plan, work, draw),
            Law::ReAcquired => re_acquired::apply(plan, fixed, draw),
            Law::Newcomers => newcomers::apply(plan, fixed, draw),
        }
    }

    /// Whether it is one of the laws under which processes are stopped, which have a stream of their own.
    pub(super) fn draw_stopped(seed: u64) -> Option<(Self, Draw)> {
        let mut draw = Draw::new(seed, Purpose::Plan, 2_001);
        draw.chance(100_000).then_some((Law::Stopped, draw))
    }

    /// The same for locks of several clients.
    pub(super) fn draw_together(seed: u64) -> Option<(Self, Draw)> {
        let mut draw = Draw::new(seed, Purpose::Plan, 2_002);
        draw.chance(100_000).then_some((Law::Together, draw))
    }

    /// The same for newcomers, which need no more than a few seeds.
    pub(super) fn draw_newcomers(seed: u64) -> Option<(Self, Draw)> {
        let mut draw = Draw::new(seed, Purpose::Plan, 2_004);
        draw.chance(5_000).then_some((Law::Newcomers, draw))
    }

    /// The same for what is seen where one thing in particular meets another.
    pub(super) fn draw_meeting(seed: u64) -> Option<(Self, Draw)> {
        let mut draw = Draw::new(seed, Purpose::Plan, 2_003);
        let laws = [
            Law::Crowds,
            Law::LastPolls,
            Law::LostRenewals,
            Law::LostRenewals,
            Law::Twins,
            Law::Longer,
            Law::OldDisks,
            Law::Echoes,
            Law::ReAcquired,
        ];
        let law = laws.get(draw.index(laws.len())).copied()?;
        draw.chance(250_000).then_some((law, draw))
    }

    /// Whether kinds of fault are drawn beside what it says.
    pub(super) fn has_faults(self) -> bool {
        matches!(
            self,
            Law::Mixed | Law::OtherWork | Law::WholeLeases | Law::Clocks | Law::Together
        )
    }
}

fn other_work(lock: LockKind, draw: &mut Draw) -> WorkloadKind {
    let work: &[WorkloadKind] = match lock {
        LockKind::Single => &[
            WorkloadKind::Fair,
            WorkloadKind::ReadWrite,
            WorkloadKind::Extending,
            WorkloadKind::RaisedUpdates,
            WorkloadKind::Crowd,
            WorkloadKind::Leading,
        ],
        LockKind::Multi => &[
            WorkloadKind::Fair,
            WorkloadKind::ReadWrite,
            WorkloadKind::Extending,
            WorkloadKind::RaisedUpdates,
            WorkloadKind::Crowd,
        ],
        LockKind::Redlock => &[
            WorkloadKind::ReadWrite,
            WorkloadKind::Extending,
            WorkloadKind::RaisedUpdates,
            WorkloadKind::Crowd,
            WorkloadKind::Leading,
        ],
    };
    work.get(draw.index(work.len()))
        .copied()
        .unwrap_or_default()
}

/// The margin of a majority: its own, none, or a part of a lease.
fn margin(plan: &mut Plan, draw: &mut Draw) {
    if plan.lock == LockKind::Redlock {
        plan.remedies.margin = match draw.between(0, 3) {
            0 => Some(SimTime::ZERO),
            1 => Some(SimTime::nanos(plan.workload.lease.as_nanos() / 4)),
            _ => None,
        };
    }
}

fn whole_leases(plan: &mut Plan, fixed: Option<WorkloadKind>, draw: &mut Draw) {
    if fixed.is_none() {
        plan.workload.kind = match draw.between(0, 3) {
            0 => WorkloadKind::FencedWrites,
            _ => WorkloadKind::MutualExclusion,
        };
    }
    let workload = &mut plan.workload;
    let lease = workload.lease.as_nanos();
    workload.names = 1;
    workload.watchdog = Watchdog::Off;
    workload.hold_least = SimTime::nanos(lease / 2);
    workload.hold_most = SimTime::nanos(lease / 5 * 6);
    workload.think_least = SimTime::ZERO;
    workload.think_most = SimTime::millis(draw.between(1, 20));
    workload.looks = draw.between(4, 12) as u16;
    margin(plan, draw);
}

/// Two clients of a majority of three nodes, which want one lock from `begins` on, and no faults of others: the law says what meets what.
/// Returns whether what is fixed leaves room for that.
fn two_clients(plan: &mut Plan, fixed: Fixed, lease: SimTime, begins: SimTime) -> bool {
    let is_of_three = plan.nodes.count == 3 || fixed.nodes.is_none();
    let is_plain = fixed
        .work
        .is_none_or(|kind| kind == WorkloadKind::MutualExclusion);
    if plan.lock != LockKind::Redlock || !is_of_three || !is_plain || fixed.clients.is_some() {
        return false;
    }
    plan.nodes.count = 3;
    plan.clients = 2;
    plan.faults
        .retain(|fault| fault.clients().iter().all(|client| *client < 2));
    let workload = &mut plan.workload;
    workload.kind = WorkloadKind::MutualExclusion;
    workload.names = 1;
    workload.lease = lease;
    workload.think_least = begins;
    workload.think_most = begins;
    plan.remedies.margin = Some(SimTime::ZERO);
    plan.duration = plan.duration.max(SimTime::secs(7));
    plan.healed_at = Some(plan.duration);
    plan.progress_within = Some(SimTime::ZERO);
    plan.not_demanded.push(Property::Progress);
    true
}

fn clocks(plan: &mut Plan, fixed: Option<WorkloadKind>, draw: &mut Draw) {
    plan.workload.lease = SimTime::millis(draw.between(800, 4_000));
    whole_leases(plan, fixed, draw);
    plan.workload.hold_least = SimTime::nanos(plan.workload.lease.as_nanos() / 10 * 9);
    plan.workload.think_most = SimTime::millis(1);
    // A look each few milliseconds around the deadline.
    plan.workload.looks = 400;
    plan.workload.poll_cap = SimTime::millis(draw.between(1, 4));
    plan.workload.backoff_cap = SimTime::millis(draw.between(1, 4));
    plan.duration = plan
        .duration
        .max(SimTime::nanos(plan.workload.lease.as_nanos() * 3));
    plan.network.least = SimTime::micros(draw.between(20, 100));
    plan.network.most = plan
        .network
        .least
        .plus(SimTime::micros(draw.between(0, 100)));
    // Within the drift allowance two clocks may differ by 1 %, so each may be off by half of that.
    let (clients, nodes) = match draw.between(0, 3) {
        0 => (4_900, -4_900),
        _ => (-4_900, 4_900),
    };
    let slow = draw.index(usize::from(plan.clients)) as u16;
    for client in 0..plan.clients {
        let rate_ppm = if client == slow { clients } else { -clients };
        plan.faults.push(Fault::of_client(
            SimTime::ZERO,
            client,
            ClientFault::Rate { rate_ppm },
        ));
    }
    for node in 0..plan.nodes.count {
        let rate = NodeFault::Rate { rate_ppm: nodes };
        plan.faults.push(Fault::of_node(SimTime::ZERO, node, rate));
    }
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use super::*;
    use crate::plan::generator::{FaultChoice, PlanGenerator};

    #[test]
    fn one_seed_of_four_has_a_law_of_meetings() {
        let has_one = |seed: &u64| Law::draw_meeting(*seed).is_some();
        let many = (0..2_000).filter(has_one).count();
        assert!((440..=560).contains(&many), "{many}");
    }

    #[test]
    fn every_plan_that_is_drawn_can_be_run() {
        for lock in [LockKind::Single, LockKind::Multi, LockKind::Redlock] {
            for faults in ["inside", "all"] {
                let faults = FaultChoice::from_str(faults).unwrap();
                let swarm = PlanGenerator {
                    faults,
                    lock,
                    ..PlanGenerator::default()
                };
                for seed in 0..500 {
                    let plan = swarm.plan(seed);
                    let checked = crate::plan::file::check(&plan);
                    assert!(checked.is_ok(), "{lock:?} {seed}: {checked:?}");
                }
            }
        }
    }
}
