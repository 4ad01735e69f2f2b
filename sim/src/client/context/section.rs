//! Stays inside what a lock protects, as the exclusion checker sees them.

use crate::client::subject::Hold;
use crate::engine::stop;
use crate::history::{self, Access, HoldId};
use crate::world::id::Who;
use crate::world::with;

/// A stay inside a critical section. It ends when this is dropped.
///
/// The client is taken to believe in its lock from the moment at which its guard was won ([`Context::acquire`](super::Context::acquire) records
/// it; of another guard it is the moment at which the client went in) until the last moment at which it looked and found
/// it held. A look of a process that is stopped while it looks is one of the moment before the stop. Two clients that believe in the same name at the same true time break exclusion.
#[derive(Debug)]
#[must_use = "dropping it leaves the section"]
pub struct Section {
    who: Who,
    first: usize,
    names: usize,
}

impl Section {
    /// Goes in.
    pub(super) fn enter(
        who: Who,
        guard: &impl Hold,
        hold: HoldId,
        access: Access,
        under: HoldId,
    ) -> Section {
        // Asked before the world is borrowed: it reads the clock.
        let (is_held, asked) = stop::ask(who, || guard.is_held());
        with(|world| {
            let entered = world.moment(who);
            let first = world.history.sections.len();
            guard.each_name(&mut |name| {
                let name = world.history.name(name);
                // A client that dawdles between its guard and its section holds the lock meanwhile: a second guard
                // that is won then breaks exclusion, wherever the first client stands.
                let mut grants = world.history.grants.iter().rev();
                let grant = grants.find(|grant| grant.hold == hold && grant.name == name);
                let won = grant.map_or(entered, |grant| grant.won);
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
            Section {
                who,
                first,
                names: world.history.sections.len() - first,
            }
        })
    }

    /// Asks the guard whether the lock is held, and notes it.
    #[must_use]
    pub fn look(&self, guard: &impl Hold) -> bool {
        let (is_held, asked) = stop::ask(self.who, || guard.is_held());
        if let Some(asked) = asked.filter(|_| is_held) {
            self.each(|section, _| section.believed = Some(asked));
        }
        is_held
    }

    /// Notes that the lock is held now: for work under `Guard::while_held`, which is polled only then.
    pub fn believe(&self) {
        if let Some(polled) = with(|world| stop::polled_at(world, self.who)) {
            self.each(|section, _| section.believed = Some(polled));
        }
    }

    /// The moment, as far as this client's poll has come.
    pub(crate) fn moment(&self) -> u64 {
        with(|world| world.moment(self.who))
    }

    /// Notes that the lock was held until then.
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

impl Drop for Section {
    fn drop(&mut self) {
        self.each(|section, now| section.left = now);
    }
}
