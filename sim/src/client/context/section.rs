//! Records of stays inside critical sections, for the exclusion checker.

use std::cell::Cell;
use std::time::Duration;

use quorlock::Time;
use quorlock_core::lease::Lease;

use crate::client::subject::Hold;
use crate::engine::{clients, stop};
use crate::history::{self, Access, BeliefStatement, BrokenStatement, HoldId};
use crate::plan::fault::{Fault, Kind};
use crate::plan::time::SimTime;
use crate::plan::{Lane, LockKind, Plan};
use crate::world::World;
use crate::world::id::{Id, ProcessId};
use crate::world::with;

/// A stay inside a critical section. It ends when this is dropped.
///
/// The client is taken to believe in its lock from the moment at which its guard was won until its last check that
/// found the lock held. [`Context::acquire`](super::Context::acquire) records when a guard was won; for any other
/// guard, it is the moment of entering. A check during which the process is stopped counts for the moment before the
/// stop. Two clients that believe in the same name at the same true time break exclusion.
#[derive(Debug)]
#[must_use = "dropping it leaves the section"]
pub struct SectionHandle {
    who: ProcessId,
    first: usize,
    names: usize,
    /// Until when the hold was valid at the last check, by the clock of the client, in nanoseconds.
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
        // Checked before the world is borrowed, because the guard reads the clock.
        let (is_held, asked) = stop::ask(who, || guard.is_held());
        with(|world| {
            let entered = world.moment(who);
            // If the process was paused since the product read its clock, the guard was won before the pause, perhaps
            // in an earlier step: a process that resumes and tries again within the same instant gets what its first
            // try has won.
            let is_at_once = entered == world.now()
                && world.client(who.client).paused_until() != entered
                && world.plan.variant.has_product_clients();
            let first = world.history.sections.len();
            guard.each_name(&mut |name| {
                let name = world.history.name(name);
                // A client that lingers between its guard and its section holds the lock in that time: a second guard
                // that is won then breaks exclusion, even if the first client has not entered its section.
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

    /// Returns what a guard stated about its hold, if the statement is wrong.
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
        // Any amount of time may have passed in a process that was stopped during the check.
        let is_at_once = world.moment(self.who) == asked && world.now() == asked;
        if validity == Duration::MAX || !is_at_once {
            self.until.set(None);
            return None;
        }
        if let Some(max) = world.plan.workload.max_hold {
            // The bound holds by the clock of the client, which may be slow.
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
        // On several nodes, a member that leaves takes its term with it and shortens the validity.
        let is_shorter = before.is_some_and(|before| until < before);
        (is_shorter && world.plan.lock == LockKind::Single).then_some(BeliefStatement::ValidUntil)
    }

    /// Records a wrong statement about the hold.
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

    /// Records that the lock is held now. For work under `Guard::while_held`, which is polled only while it is held.
    pub fn believe(&self) {
        if let Some(polled) = with(|world| stop::polled_at(world, self.who)) {
            self.each(|section, _| section.believed = Some(polled));
        }
    }

    /// Returns the true time of this client's current poll.
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

/// Returns how long a hold can be valid after requests with this lease: the lease less the drift allowance, counted
/// from when the last request was sent, less the round trip of its answer. `None` where the round trip has no lower
/// bound.
pub(super) fn longest_validity(plan: &Plan, lease: SimTime) -> Option<Duration> {
    let stands_still = |fault: &Fault| fault.kind() == Kind::SuspendClient;
    let is_known = plan.lane == Lane::Fast
        && plan.variant.has_product_clients()
        && !plan.faults.iter().any(stands_still);
    // A slow clock of the client shows a shorter round trip.
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
