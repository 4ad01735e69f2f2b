//! Holds that pass from one client to another.

use quorlock_core::fencing::Token;
use quorlock_core::message::Mode;
use quorlock_core::owner::OwnerId;
use quorlock_core::quorum::MemberId;
use quorlock_core::renewal::{Lost, Status};
use quorlock_core::time::Time;

use super::{Hold, HoldState};
use crate::error::HandOverProblem as Problem;

/// A hold of another client, which has handed it over.
#[derive(Debug)]
pub(crate) struct Continued {
    pub(crate) owner: OwnerId,
    /// Its tokens, one per group.
    pub(crate) tokens: Box<[Token]>,
}

impl Hold {
    /// Ends the hold without ending its claims, which another client may continue. From now on nothing is renewed, re-acquired
    /// or released. Returns whether a watchdog has renewed it.
    pub(crate) fn hand_over(&self, now: Time) -> Result<bool, Problem> {
        if self.layout.has(Mode::Read) {
            return Err(Problem::Reads);
        }
        if 1 < self.layout.parties().count() {
            return Err(Problem::SeveralClients);
        }
        self.change(now, |state| {
            let reads = self.readers().are_there();
            match state.renewal.status(now) {
                Status::Held if state.is_leaked => return Err(Problem::Lost(Lost::Released)),
                Status::Held if reads || state.count != 1 => return Err(Problem::Shared),
                Status::Held => {}
                Status::Releasing => return Err(Problem::Lost(Lost::Released)),
                Status::Lost(lost) => return Err(Problem::Lost(lost)),
            }
            state.count = 0;
            state.is_told = true;
            state.renewal.begin_release(now);
            Ok(state.renewal.is_watched())
        })
    }
}

impl HoldState {
    /// Returns true for every second call about a member.
    pub(super) fn takes_turns(&mut self, member: MemberId) -> bool {
        let known = self.continued.len();
        self.continued.retain(|other| *other != member);
        let is_odd = self.continued.len() == known;
        if is_odd {
            self.continued.push(member);
        }
        is_odd
    }
}
