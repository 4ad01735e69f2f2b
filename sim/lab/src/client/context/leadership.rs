//! Records of candidates and leaders, for the checkers.

use quorlock::OwnerId;

use super::Context;
use super::record::Begun;
use quorlock_sim_world::engine::{clients, stop};
use quorlock_sim_world::history::{Action, HoldId, NameId, Outcome, Reign};
use quorlock_sim_world::world::id::ProcessId;
use quorlock_sim_world::world::with;

/// A candidate that waits for its election. The history records it as an acquisition.
#[derive(Debug)]
#[must_use = "the outcome of a candidacy is recorded through it"]
pub struct Candidacy<'a> {
    ctx: &'a Context,
    name: NameId,
    begun: Begun,
}

/// The record of a leader at work. Dropping it records the end of the leader's work.
///
/// The checkers assume that the leader believes that it leads from its election until the last confirmation by
/// [`LeadershipRecord::look`] or [`LeadershipRecord::believe`]. The property `leadership` is broken if two leaders of
/// one name believe this at the same true time.
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

    /// Records that the candidate was elected, with the identity and the term of the leader.
    pub fn elected(self, owner: OwnerId, term: u64) -> LeadershipRecord {
        let who = self.ctx.who();
        let hold = with(|world| clients::hold_of(world, who, owner, term).id());
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

    /// Records that the candidate was not elected and has learned so.
    pub fn failed(self) {
        self.ctx.end(self.begun, Outcome::Fail);
    }
}

impl LeadershipRecord {
    /// Checks whether the client still leads, and records the result.
    pub fn look(&self, leads: impl FnOnce() -> bool) -> bool {
        let (leads, asked) = stop::ask(self.who, leads);
        if let Some(asked) = asked.filter(|_| leads) {
            self.note(|reign, _| reign.believed = Some(asked));
        }
        leads
    }

    /// Records that the client leads now. Meant for work that is polled only while the client leads.
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
