//! Records what nodes answer about fair locks and read-write locks, for their checkers.

use quorlock::Name;
use quorlock::runtime::WallMillis;
use quorlock::transport::{Acquire, AcquireReply, Cause, Freshness, RenewReply, Reply, Request};
use quorlock_core::message::{Access, Mode, QueuePlace};

use crate::history::{
    self, Answered, BeliefStatement, BrokenStatement, HoldId, LockAnswer, Process,
};
use crate::world::World;
use crate::world::id::{Id, NodeId};
use crate::world::specification::server::Specification;

/// Records an answer of a node, if it is about a fair lock or a read-write lock.
pub(crate) fn note(
    world: &mut World,
    node: NodeId,
    process: Process,
    wall: WallMillis,
    request: &Request,
    reply: &Result<Reply, Cause>,
) {
    let mut note = |name: &Name, owner, answer| {
        let name = world.history.name(&name.text());
        let life = world.node(node).lives();
        world.history.turns.push(LockAnswer {
            at: world.now(),
            node: node.get(),
            life,
            wall: wall.0,
            name,
            process,
            owner,
            answer,
        });
    };
    match (request, reply) {
        (Request::Acquire(ask), Ok(Reply::Acquire(reply) | Reply::Checked(reply, _))) => {
            if let Some(answer) = acquired(wall, ask, reply) {
                note(&ask.name, ask.owner, answer);
                if answer == Answered::Served {
                    weigh_place(world, node, process, wall, ask);
                }
            }
        }
        (Request::Renew(ask), Ok(Reply::Renew(replies))) => {
            let answer = |until| match ask.mode {
                Mode::Read => Some(Answered::Reads { until }),
                Mode::Write => Some(Answered::Writes { until }),
                Mode::Plain | Mode::Fair => None,
            };
            let claims = ask.claims.iter().zip(replies);
            for (claim, _) in claims.filter(|(_, reply)| **reply != RenewReply::NotYours) {
                if let Some(answer) = answer(wall.plus(claim.kept_millis()).0) {
                    note(&claim.name, claim.owner, answer);
                }
            }
        }
        (Request::Release(ask), Ok(Reply::Release(_))) if ask.count == 0 => {
            let access = match ask.mode {
                Mode::Plain => return,
                Mode::Fair => history::Access::Alone,
                Mode::Read => history::Access::Read,
                Mode::Write => history::Access::Write,
            };
            note(&ask.name, ask.owner, Answered::Left(access));
        }
        _ => {}
    }
}

/// Records a served owner that still has its place in the queue. After the owner's release, the place would keep other
/// owners out until it expires.
fn weigh_place(world: &mut World, node: NodeId, process: Process, wall: WallMillis, ask: &Acquire) {
    let server = Specification::of(&mut *world.servers).at(node);
    let queue = server.keys().queue(wall, &ask.name);
    if !queue.iter().any(|(owner, _)| *owner == ask.owner) {
        return;
    }
    let name = world.history.name(&ask.name.text());
    world.history.broken.push(BrokenStatement {
        at: world.now(),
        process,
        hold: HoldId::NONE,
        name,
        said: BeliefStatement::Served,
    });
}

fn acquired(wall: WallMillis, ask: &Acquire, reply: &AcquireReply) -> Option<Answered> {
    let is_granted = matches!(reply, AcquireReply::Granted { .. });
    let is_refused = matches!(reply, AcquireReply::Refused { .. });
    let until = wall.plus(ask.kept_millis()).0;
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
            (AcquireReply::Queued { .. }, QueuePlace::Kept { millis }) => Some(Answered::Queued {
                until: wall.plus(millis).0,
            }),
            _ => None,
        },
        Access::Read { .. } | Access::Write if is_refused => Some(Answered::KeptOut),
        Access::Read { .. } => is_granted.then_some(Answered::Reads { until }),
        Access::Write => is_granted.then_some(Answered::Writes { until }),
    }
}
