//! Presets: combinations of parameters that reveal faults which other combinations hide.
//!
//! For example, with leases of 100 ms and latencies of milliseconds, clock drift is too small to matter; and if a
//! waiter tries again after 200 ms, a lost wake-up has no effect. Each preset makes one such cause matter.

mod connections;
mod contention;
mod echoes;
mod free_names;
mod last_polls;
mod lasting;
mod leftovers;
mod lost_renewals;
mod newcomers;
mod old_disks;
mod re_acquired;
mod rolling;
mod sides;
mod stopped;
mod together;
mod twins;
mod wake_ups;

use crate::draw::{Draw, Purpose};
use crate::fault::{ClientFault, Fault, NodeFault};
use crate::property::Property;
use crate::time::SimTime;
use crate::{LockKind, Plan, Watchdog, WorkloadKind};

/// The preset that a plan follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Preset {
    /// All times are short, and all faults are mixed.
    Mixed,
    /// The workloads that are rarely drawn otherwise.
    OtherWork,
    /// Holds of about a lease, without renewal: they end at their deadline.
    WholeLeases,
    /// Long leases, fast messages, and clocks at the bounds of the allowed drift.
    Clocks,
    /// Few faults, and waiters that try again too late to replace a lost wake-up.
    WakeUps,
    /// Repeated stops of a waiter between a reading of its clock and the replies to its requests.
    Stopped,
    /// Locks of several clients together, on nodes that lose their data. With one client: writing and reading by one
    /// owner at the same time.
    Together,
    /// Leases that outlast the run, and short faults. Claims that calls leave behind then matter.
    Leftovers,
    /// Holds that are renewed for several leases, while the connections of their client are slow or cut, one after
    /// another.
    Connections,
    /// Holds that are renewed for several leases, with faults that leave enough time for each renewal. No hold may be
    /// lost.
    Lasting,
    /// Two groups of clients whose majorities share only nodes that lose data, or nodes whose clocks are set.
    Sides,
    /// Many clients that compete for one lock, without faults.
    Contention,
    /// Repeated stops of the holder for longer than its lease, at moments when its work may be about to end.
    LastPolls,
    /// A node that is restarted without the last renewal that it confirmed.
    LostRenewals,
    /// A client for which the addresses of two nodes lead to one server.
    Twins,
    /// A rolling deployment: some clients have a longer longest lease than the others.
    Rolling,
    /// A node that is asserted to keep everything, and is restarted with the data that it had before a flush.
    OldDisks,
    /// Requests that are duplicated and arrive again long after their owner has released.
    Echoes,
    /// A holder that re-acquires a node that has lost the claim of a competitor, while the round of the competitor
    /// continues.
    ReAcquired,
    /// A client whose first request to a node is in flight while the node is flushed.
    Newcomers,
    /// Clients that mostly find the name free. The adapter then locks it without a script.
    FreeNames,
    /// A shape that the deployment has given to the plan.
    Shaped,
}

/// The choices that the user makes; `None` to draw them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fixed {
    /// The kind of work.
    pub(super) work: Option<WorkloadKind>,
    /// The number of nodes.
    pub(super) nodes: Option<u16>,
    /// The number of clients.
    pub(super) clients: Option<u16>,
}

impl Preset {
    /// Draws the preset of a seed.
    pub(super) fn draw(draw: &mut Draw) -> Self {
        let presets = [
            Preset::Mixed,
            Preset::Mixed,
            Preset::Mixed,
            Preset::OtherWork,
            Preset::OtherWork,
            Preset::WholeLeases,
            Preset::Clocks,
            Preset::WakeUps,
            Preset::Leftovers,
            Preset::Connections,
            Preset::Connections,
            Preset::Lasting,
            Preset::Sides,
            Preset::Sides,
        ];
        presets
            .get(draw.index(presets.len()))
            .copied()
            .unwrap_or(Preset::Mixed)
    }

    /// Returns the stream of the presets. It is a separate stream, so that parameters that no preset draws do not change.
    pub(super) fn stream(seed: u64) -> Draw {
        Draw::new(seed, Purpose::Plan, 2_000)
    }

    /// Changes a plan according to the preset. The choices of the user stay.
    pub(super) fn apply(self, plan: &mut Plan, fixed: Fixed, draw: &mut Draw) {
        let work = fixed.work;
        match self {
            Preset::Mixed | Preset::Shaped => {}
            Preset::OtherWork => {
                if work.is_none() {
                    plan.workload.kind = other_work(plan.lock, draw);
                }
            }
            Preset::WholeLeases => whole_leases(plan, work, draw),
            Preset::Clocks => clocks(plan, work, draw),
            Preset::WakeUps => wake_ups::apply(plan, work, draw),
            Preset::Leftovers => leftovers::apply(plan, work, draw),
            Preset::Connections => connections::apply(plan, work, draw),
            Preset::Lasting => lasting::apply(plan, work, draw),
            Preset::Sides => sides::apply(plan, fixed, draw),
            Preset::Stopped => stopped::apply(plan, work, draw),
            Preset::Together => together::apply(plan, work, draw),
            Preset::Contention => contention::apply(plan, fixed, draw),
            Preset::LastPolls => last_polls::apply(plan, work, draw),
            Preset::LostRenewals => lost_renewals::apply(plan, fixed, draw),
            Preset::Twins => twins::apply(plan, fixed, draw),
            Preset::Rolling => rolling::apply(plan, fixed, draw),
            Preset::OldDisks => old_disks::apply(plan, fixed, draw),
            Preset::Echoes => echoes::apply(plan, work, draw),
            Preset::ReAcquired => re_acquired::apply(plan, fixed, draw),
            Preset::Newcomers => newcomers::apply(plan, fixed, draw),
            Preset::FreeNames => free_names::apply(plan, fixed, draw),
        }
    }

    /// Draws one of the presets that stop processes. They have their own stream.
    pub(super) fn draw_stopped(seed: u64) -> Option<(Self, Draw)> {
        let mut draw = Draw::new(seed, Purpose::Plan, 2_001);
        draw.chance(100_000).then_some((Preset::Stopped, draw))
    }

    /// Draws the preset of locks of several clients. It has its own stream.
    pub(super) fn draw_together(seed: u64) -> Option<(Self, Draw)> {
        let mut draw = Draw::new(seed, Purpose::Plan, 2_002);
        draw.chance(100_000).then_some((Preset::Together, draw))
    }

    /// Draws the preset of newcomers. It has its own stream, and needs only a few seeds.
    pub(super) fn draw_newcomers(seed: u64) -> Option<(Self, Draw)> {
        let mut draw = Draw::new(seed, Purpose::Plan, 2_004);
        draw.chance(5_000).then_some((Preset::Newcomers, draw))
    }

    /// Draws the preset of free names, which matters only where the adapter runs. It has its own stream.
    pub(super) fn draw_free_names(seed: u64) -> Option<(Self, Draw)> {
        let mut draw = Draw::new(seed, Purpose::Plan, 2_005);
        draw.chance(300_000).then_some((Preset::FreeNames, draw))
    }

    /// Draws one of the presets whose faults must coincide with one particular event. They have their own stream.
    pub(super) fn draw_meeting(seed: u64) -> Option<(Self, Draw)> {
        let mut draw = Draw::new(seed, Purpose::Plan, 2_003);
        let presets = [
            Preset::Contention,
            Preset::LastPolls,
            Preset::LostRenewals,
            Preset::LostRenewals,
            Preset::Twins,
            Preset::Rolling,
            Preset::OldDisks,
            Preset::Echoes,
            Preset::ReAcquired,
        ];
        let preset = presets.get(draw.index(presets.len())).copied()?;
        draw.chance(250_000).then_some((preset, draw))
    }

    /// Returns whether faults are drawn in addition to those of the preset.
    pub(super) fn has_faults(self) -> bool {
        matches!(
            self,
            Preset::Mixed
                | Preset::OtherWork
                | Preset::WholeLeases
                | Preset::Clocks
                | Preset::Together
                | Preset::FreeNames
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
            WorkloadKind::CompetingTasks,
            WorkloadKind::Leading,
        ],
        LockKind::Multi => &[
            WorkloadKind::Fair,
            WorkloadKind::ReadWrite,
            WorkloadKind::Extending,
            WorkloadKind::RaisedUpdates,
            WorkloadKind::CompetingTasks,
        ],
        LockKind::Redlock => &[
            WorkloadKind::ReadWrite,
            WorkloadKind::Extending,
            WorkloadKind::RaisedUpdates,
            WorkloadKind::CompetingTasks,
            WorkloadKind::Leading,
        ],
    };
    work.get(draw.index(work.len()))
        .copied()
        .unwrap_or_default()
}

/// Draws the margin of a majority: the default, none, or a fraction of a lease.
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
    workload.hold_min = SimTime::nanos(lease / 2);
    workload.hold_max = SimTime::nanos(lease / 5 * 6);
    workload.think_min = SimTime::ZERO;
    workload.think_max = SimTime::millis(draw.between(1, 20));
    workload.checks = draw.between(4, 12) as u16;
    margin(plan, draw);
}

/// Leaves two clients, and the faults of no others.
fn leave_two_clients(plan: &mut Plan) {
    plan.clients = 2;
    plan.faults
        .retain(|fault| fault.clients().iter().all(|client| *client < 2));
}

/// Sets up two clients of a majority of three nodes, which compete for one lock from `begins` on, without other
/// faults. The preset places each event. Returns whether the choices of the user allow that.
fn two_clients(plan: &mut Plan, fixed: Fixed, lease: SimTime, begins: SimTime) -> bool {
    let is_of_three = plan.nodes.count == 3 || fixed.nodes.is_none();
    let is_plain = fixed
        .work
        .is_none_or(|kind| kind == WorkloadKind::MutualExclusion);
    if plan.lock != LockKind::Redlock || !is_of_three || !is_plain || fixed.clients.is_some() {
        return false;
    }
    plan.nodes.count = 3;
    leave_two_clients(plan);
    let workload = &mut plan.workload;
    workload.kind = WorkloadKind::MutualExclusion;
    workload.names = 1;
    workload.lease = lease;
    workload.think_min = begins;
    workload.think_max = begins;
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
    plan.workload.hold_min = SimTime::nanos(plan.workload.lease.as_nanos() / 10 * 9);
    plan.workload.think_max = SimTime::millis(1);
    // With this many checks, there is one every few milliseconds around the deadline.
    plan.workload.checks = 400;
    plan.workload.poll_cap = SimTime::millis(draw.between(1, 4));
    plan.workload.backoff_cap = SimTime::millis(draw.between(1, 4));
    plan.duration = plan
        .duration
        .max(SimTime::nanos(plan.workload.lease.as_nanos() * 3));
    plan.network.min = SimTime::micros(draw.between(20, 100));
    plan.network.max = plan.network.min.plus(SimTime::micros(draw.between(0, 100)));
    // The drift allowance covers a difference of 1 % between two clocks, so each clock may be off by half of that.
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
    use crate::Lane;
    use crate::generator::{FaultChoice, PlanGenerator};

    #[test]
    fn one_seed_of_four_has_a_preset_of_meetings() {
        let has_one = |seed: &u64| Preset::draw_meeting(*seed).is_some();
        let many = (0..2_000).filter(has_one).count();
        assert!((440..=560).contains(&many), "{many}");
    }

    #[test]
    fn every_plan_that_is_drawn_can_be_run() {
        let choices = ["inside", "all"].map(|text| FaultChoice::from_str(text).unwrap());
        for lock in [LockKind::Single, LockKind::Multi, LockKind::Redlock] {
            for lane in [Lane::Fast, Lane::Turmoil] {
                for faults in choices.clone() {
                    let generator = PlanGenerator {
                        faults,
                        lock,
                        lane,
                        ..PlanGenerator::default()
                    };
                    for seed in 0..500 {
                        let plan = generator.plan(seed);
                        let checked = crate::check(&plan);
                        assert!(checked.is_ok(), "{lock:?} {lane:?} {seed}: {checked:?}");
                    }
                }
            }
        }
    }
}
