//! What nodes answer about fair locks and read-write locks, as the checkers of these want to know it.

use quorlock::transport::{
    Access, Acquire, AcquireReply, Cause, Freshness, Mode, Place, RenewReply, Reply, Request,
};
use quorlock::{Name, OwnerId, WallMillis};

use crate::call::Call;
use crate::history::{self, Answered, Turn};
use crate::slab::Key;
use crate::world::World;

impl World {
    /// Notes what a node answered, if it is about a fair lock or a read-write lock.
    pub(crate) fn note_turn(
        &mut self,
        key: Key<Call>,
        wall: WallMillis,
        reply: &Result<Reply, Cause>,
    ) {
        let Some(call) = self.calls.get(key) else {
            return;
        };
        let turns = turns(wall.0, &call.request, reply);
        let (process, node) = (call.process(), call.node);
        for (name, owner, answer) in turns {
            let name = self.history.name(name.as_str());
            let life = self.node(node).lives;
            self.history.turns.push(Turn {
                at: self.now,
                node,
                life,
                wall: wall.0,
                name,
                process,
                owner,
                answer,
            });
        }
    }
}

/// To whom a node has said what, and of which name.
fn turns(
    wall: u64,
    request: &Request,
    reply: &Result<Reply, Cause>,
) -> Vec<(Name, OwnerId, Answered)> {
    let Ok(reply) = reply else {
        return Vec::new();
    };
    match (request, reply) {
        (Request::Acquire(ask), Reply::Acquire(reply) | Reply::Checked(reply, _)) => {
            let answer = acquired(wall, ask, reply);
            let turn = answer.map(|answer| (ask.name.clone(), ask.owner, answer));
            turn.into_iter().collect()
        }
        (Request::Renew(ask), Reply::Renew(replies)) => {
            let claims = ask.claims.iter().zip(replies);
            let kept = claims.filter(|(_, reply)| **reply != RenewReply::NotYours);
            let answer = |until| match ask.mode {
                Mode::Read => Some(Answered::Reads { until }),
                Mode::Write => Some(Answered::Writes { until }),
                Mode::Plain | Mode::Fair => None,
            };
            let turns = kept.filter_map(|(claim, _)| {
                let answer = answer(wall.saturating_add(claim.kept_millis()))?;
                Some((claim.name.clone(), claim.owner, answer))
            });
            turns.collect()
        }
        (Request::Release(ask), Reply::Release(_)) if ask.count == 0 => {
            let access = match ask.mode {
                Mode::Plain => return Vec::new(),
                Mode::Fair => history::Access::Alone,
                Mode::Read => history::Access::Read,
                Mode::Write => history::Access::Write,
            };
            vec![(ask.name.clone(), ask.owner, Answered::Left(access))]
        }
        _ => Vec::new(),
    }
}

fn acquired(wall: u64, ask: &Acquire, reply: &AcquireReply) -> Option<Answered> {
    let is_granted = matches!(reply, AcquireReply::Granted { .. });
    let is_refused = matches!(reply, AcquireReply::Refused { .. });
    let until = wall.saturating_add(ask.kept_millis());
    match ask.access {
        Access::Plain => None,
        Access::Fair(place) => match (reply, place) {
            (
                AcquireReply::Granted {
                    freshness: Freshness::Anew,
                    ..
                },
                _,
            ) => Some(Answered::Served),
            (AcquireReply::Queued { .. }, Place::Kept { millis }) => Some(Answered::Queued {
                until: wall.saturating_add(millis),
            }),
            _ => None,
        },
        Access::Read { .. } | Access::Write if is_refused => Some(Answered::KeptOut),
        Access::Read { .. } => is_granted.then_some(Answered::Reads { until }),
        Access::Write => is_granted.then_some(Answered::Writes { until }),
    }
}
