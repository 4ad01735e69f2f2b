//! Records of candidates and leaders, for the checkers.

use quorlock::OwnerId;

use super::Context;
use super::record::Begun;
use crate::engine::{clients, stop};
use crate::history::{Action, HoldId, NameId, Outcome, Reign};
use crate::world::id::ProcessId;
use crate::world::with;

/// A candidate that waits for its election. The history records it as an acquisition.
#[derive(Debug)]
#[must_use = "the outcome of a candidacy is recorded through it"]
pub struct Candidacy<'a> {
    ctx: &'a Context,
    name: NameId,
    begun: Begun,
}

/// A leader at work. Its work ends when this is dropped.
///
/// The leader is taken to believe that it leads from its election until the last time it was confirmed by
/// [`LeadershipRecord::look`] or [`LeadershipRecord::believe`]. Two leaders of one name that believe so at the same
/// true time break the property `leadership`.
#[derive(Debug)]
#[must_use = "dropping it ends the work of the leader"]
pub struct LeadershipRecord {
    who: ProcessId,
    reign: usize,
}

impl<'a> Candidacy<'a> {
    pub(super) fn new(ctx: &'a Context, name: NameId) -> Self {
        let begun = ctx.begin(Action::Acquire, 1 << (name.0 % 64), HoldId::NONE, 0);
        Candidacy { ctx, name, begun }
    }

    /// Records that the candidate was elected, with this identity and term.
    pub fn elected(self, owner: OwnerId, term: u64) -> LeadershipRecord {
        let who = self.ctx.who();
        let hold = with(|world| clients::hold_of(world, who, owner).id());
        self.ctx.end_with(self.begun, hold, term);
        let reign = with(|world| {
            let elected = world.moment(who);
            let history = &mut world.history;
            history.reigns.push(Reign {
                hold,
                process: who.process(),
                name: self.name,
                term,
                elected,
                believed: None,
                ended: u64::MAX,
            });
            let reign = history.reigns.len() - 1;
            world.fill_roles();
            reign
        });
        LeadershipRecord { who, reign }
    }

    /// Records that the candidate was not elected, and knows it.
    pub fn failed(self) {
        self.ctx.end(self.begun, Outcome::Fail);
    }
}

impl LeadershipRecord {
    /// Checks whether the leader leads, and records the result.
    pub fn look(&self, leads: impl FnOnce() -> bool) -> bool {
        let (leads, asked) = stop::ask(self.who, leads);
        if let Some(asked) = asked.filter(|_| leads) {
            self.note(|reign, _| reign.believed = Some(asked));
        }
        leads
    }

    /// Records that the leader leads now. For work that is polled only while it leads.
    pub fn believe(&self) {
        if let Some(polled) = with(|world| stop::polled_at(world, self.who)) {
            self.note(|reign, _| reign.believed = Some(polled));
        }
    }

    fn note(&self, note: impl FnOnce(&mut Reign, u64)) {
        with(|world| {
            if world.run() != self.who.run {
                return;
            }
            let now = world.moment(self.who);
            if let Some(reign) = world.history.reigns.get_mut(self.reign) {
                note(reign, now);
            }
        });
    }
}

impl Drop for LeadershipRecord {
    fn drop(&mut self) {
        self.note(|reign, now| reign.ended = now);
    }
}
