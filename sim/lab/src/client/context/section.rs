//! Records of the times that clients spend inside critical sections, for the exclusion checker.

use std::cell::Cell;
use std::time::Duration;

use quorlock::runtime::Time;
use quorlock_core::lease::Lease;

use crate::client::subject::Hold;
use quorlock_sim_plan::fault::{Fault, Kind};
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_plan::{Lane, LockKind, Plan};
use quorlock_sim_world::engine::{clients, stop};
use quorlock_sim_world::history::{self, Access, BeliefStatement, BrokenStatement, HoldId};
use quorlock_sim_world::world::World;
use quorlock_sim_world::world::id::{Id, ProcessId};
use quorlock_sim_world::world::with;

/// The record of a client inside a critical section. Dropping it records that the client has left.
///
/// The checkers assume that the client believes that it holds the lock from when its guard was won until its last
/// check that found the lock held. [`Context::acquire`](super::Context::acquire) records when a guard was won; for any
/// other guard, the moment of entering counts. If the process is stopped during a check, the moment before the stop
/// counts. Exclusion is broken if two clients believe that they hold the same name at the same true time.
#[derive(Debug)]
#[must_use = "dropping it leaves the section"]
pub struct SectionHandle {
    who: ProcessId,
    first: usize,
    names: usize,
    /// When the hold was to expire according to the last check, in nanoseconds on the clock of the client.
    until: Cell<Option<u64>>,
}

impl SectionHandle {
    /// Enters the sections of a guard's names.
    pub(super) fn enter(
        who: ProcessId,
        guard: &impl Hold,
        hold: HoldId,
        access: Access,
        under: HoldId,
    ) -> SectionHandle {
        // The guard reads the clock, which borrows the world. So the guard is checked before the world is borrowed
        // here.
        let (is_held, asked) = stop::ask(who, || guard.is_held());
        with(|world| {
            let entered = world.moment(who);
            // If the process was paused after the product read its clock, the guard was won before the pause, perhaps
            // in an earlier step: a process that resumes and tries again at the same instant is granted what its first
            // try won.
            let is_at_once = entered == world.now()
                && world.client(who.client).paused_until() != entered
                && world.plan.variant.has_product_clients();
            let first = world.history.sections.len();
            guard.each_name(&mut |name| {
                let name = world.history.name(name);
                // A client that has its guard but has not entered its section yet holds the lock, too. A second guard
                // that is won in that time breaks exclusion.
                let mut grants = world.history.grants.iter().rev();
                let grant = grants.find(|grant| grant.hold == hold && grant.name == name);
                let won = grant.map_or(entered, |grant| grant.won);
                let given = grant.filter(|grant| grant.won == entered && is_at_once);
                if given.is_some() && !is_held {
                    world.history.broken.push(BrokenStatement {
                        at: entered,
                        process: who.process(),
                        hold,
                        name,
                        said: BeliefStatement::Acquired,
                    });
                }
                world.history.sections.push(history::Section {
                    process: who.process(),
                    hold,
                    name,
                    won,
                    entered,
                    believed: asked.filter(|_| is_held),
                    left: u64::MAX,
                    access,
                    under,
                });
            });
            world.fill_roles();
            SectionHandle {
                who,
                first,
                names: world.history.sections.len() - first,
                until: Cell::new(None),
            }
        })
    }

    /// Checks whether the guard's lock is held, and records the result.
    #[must_use]
    pub fn look(&self, guard: &impl Hold) -> bool {
        let (validity, asked) = stop::ask(self.who, || guard.validity());
        if let Some(asked) = asked {
            let said = with(|world| self.weigh(world, validity, asked));
            if let Some(said) = said {
                self.complain(said);
            }
        }
        if let Some(asked) = asked.filter(|_| validity.is_some()) {
            self.each(|section, _| section.believed = Some(asked));
        }
        validity.is_some()
    }

    /// Returns the statement of a guard about its hold that is wrong, if there is one.
    fn weigh(
        &self,
        world: &mut World,
        validity: Option<Duration>,
        asked: u64,
    ) -> Option<BeliefStatement> {
        let Some(validity) = validity else {
            let believed = world.history.sections.get(self.first)?.believed;
            return (world.plan.holds_last && believed.is_some())
                .then_some(BeliefStatement::Renewed);
        };
        // If the process was stopped during the check, any amount of time may have passed.
        let is_at_once = world.moment(self.who) == asked && world.now() == asked;
        if validity == Duration::MAX || !is_at_once {
            self.until.set(None);
            return None;
        }
        if let Some(max) = world.plan.workload.max_hold {
            // The bound is measured on the clock of the client, which may be slow.
            let max = max.plus(SimTime::nanos(max.as_nanos() / 50)).as_nanos();
            let won = world.history.sections.get(self.first)?.won;
            if won.saturating_add(max) < asked {
                return Some(BeliefStatement::AtMost);
            }
        }
        let longest = longest_validity(
            &world.plan,
            world
                .plan
                .longest_lease()
                .max(world.plan.lease_of(self.who.client.get())),
        );
        if longest.is_some_and(|max| max < validity) {
            return Some(BeliefStatement::Lease);
        }
        let now = clients::shown(world, self.who);
        let until = now.saturating_add(u64::try_from(validity.as_nanos()).unwrap_or(u64::MAX));
        let before = self.until.replace(Some(until));
        // With several nodes, a member that leaves the hold takes its term with it, which shortens the validity.
        let is_shorter = before.is_some_and(|before| until < before);
        (is_shorter && world.plan.lock == LockKind::Single).then_some(BeliefStatement::ValidUntil)
    }

    /// Records that a guard made a wrong statement about the hold.
    pub(super) fn complain(&self, said: BeliefStatement) {
        with(|world| {
            let Some(section) = world.history.sections.get(self.first) else {
                return;
            };
            let (process, hold, name) = (section.process, section.hold, section.name);
            let at = world.moment(self.who);
            world.history.broken.push(BrokenStatement {
                at,
                process,
                hold,
                name,
                said,
            });
        });
    }

    /// Records that the lock is held now. Meant for work under `Guard::while_held`, which is polled only while the
    /// lock is held.
    pub fn believe(&self) {
        if let Some(polled) = with(|world| stop::polled_at(world, self.who)) {
            self.each(|section, _| section.believed = Some(polled));
        }
    }

    /// Returns the true time of the poll of this client that is running.
    pub(crate) fn moment(&self) -> u64 {
        with(|world| world.moment(self.who))
    }

    /// Records that the lock was held until this time.
    pub(crate) fn believe_until(&self, at: u64) {
        self.each(|section, _| section.believed = section.believed.max(Some(at)));
    }

    fn each(&self, change: impl Fn(&mut history::Section, u64)) {
        with(|world| {
            if world.run() != self.who.run {
                return;
            }
            let now = world.moment(self.who);
            let sections = world.history.sections.iter_mut();
            for section in sections.skip(self.first).take(self.names) {
                change(section, now);
            }
        });
    }
}

/// Returns how long a hold can be valid after its requests were sent with this lease: the lease minus the drift
/// allowance and the round trip of the last answer. Returns `None` if the round trip has no lower bound.
pub(super) fn longest_validity(plan: &Plan, lease: SimTime) -> Option<Duration> {
    let stands_still = |fault: &Fault| fault.kind() == Kind::SuspendClient;
    let is_known = plan.lane == Lane::Fast
        && plan.variant.has_product_clients()
        && !plan.faults.iter().any(stands_still);
    // On a slow clock of the client, the round trip appears shorter.
    let round_trip = plan.network.min.as_duration() * 2 * 3 / 4;
    // The product rounds leases to whole milliseconds.
    let lease = Lease::new(lease.as_duration()).ok()?;
    let term = lease.term(Time::ZERO).since(Time::ZERO);
    is_known.then(|| term.saturating_sub(round_trip))
}

impl Drop for SectionHandle {
    fn drop(&mut self) {
        self.each(|section, now| section.left = now);
    }
}
