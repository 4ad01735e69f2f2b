//! Execution of requests by nodes, and checks of what each request did.

use std::rc::Rc;

use quorlock::runtime::WallMillis;
use quorlock::transport::{
    AcquireReply, Cause, Claim, Execution, Release, ReleaseReply, Renew, RenewReply, Reply, Request,
};
use quorlock::{Name, OwnerId};
use quorlock_core::marker::Act;
use quorlock_core::message::Mode;
use quorlock_core::node::{Held, Node as Keys};

use crate::engine::network::{calls, subscriptions};
use crate::engine::nodes::{answers, dead_claims, replicas, statements, wait};
use crate::history::{Process, Theft};
use crate::world::World;
use crate::world::call::{Answer, Call, failure};
use crate::world::id::{FaultId, Id, NodeId, Seat, first};
use crate::world::slab::Key;
use crate::world::specification::server::Specification;

/// Executes a request at its node and answers it.
pub fn execute(world: &mut World, key: Key<Call>) {
    let now = world.now();
    let Some(call) = world.calls.get(key) else {
        return;
    };
    let (id, by, client) = (call.node(), call.process(), call.client());
    let request = Rc::clone(call.request());
    let Some(node) = world.nodes.get(id) else {
        return;
    };
    if let Some(cause) = node.refusal(now, world.plan.nodes.min_replicas.as_ref()) {
        calls::reply(world, key, Err(failure(Execution::Definite, cause)));
        return;
    }
    let server = Specification::of(&mut *world.servers).at(id);
    if let Some(cause) = server.refuses() {
        if let Some((_, fault)) = node.error() {
            world.blame(fault);
        }
        calls::reply(world, key, Err(failure(Execution::Definite, cause)));
        return;
    }
    if let Some(fault) = revocation(node.revoked(), &world.history.names, &request) {
        world.blame(fault);
        let forbidden = failure(Execution::Definite, Cause::NoPermission);
        calls::reply(world, key, Err(forbidden));
        return;
    }
    world.counters.commands += 1;
    let wall = node.wall(now);
    let has_replicas = !node.replicas().is_empty();
    let claimed = match &*request {
        Request::Release(release) => owners(server.keys(), wall, &release.name),
        _ => Owners::None,
    };
    let strange = match &*request {
        Request::Renew(renew) => of_others(server.keys(), wall, renew),
        _ => Vec::new(),
    };
    let mut applied = server.execute(wall, &request);
    let is_write = is_write(&request, &applied.reply);
    if is_write && has_replicas {
        server.write(wall, &request);
    }
    world.note(digest(&applied.reply) ^ u64::from(id.get()) << 56);
    if let (Request::Release(release), Ok(Reply::Release(reply))) = (&*request, &applied.reply)
        && !claimed.as_slice().is_empty()
    {
        look_for_theft(world, id, by, claimed.as_slice(), release, *reply, wall);
    }
    if let (Request::Renew(renew), Ok(Reply::Renew(replies))) = (&*request, &applied.reply) {
        for place in strange {
            if let (Some(claim), Some(RenewReply::AlreadyYours { .. })) =
                (renew.claims.get(place), replies.get(place))
            {
                note_theft(world, id, by, &claim.name);
            }
        }
    }
    statements::note(world, by, &request);
    if world.dead_claims.is_watched() {
        dead_claims::note(world, id, by, &request);
    }
    answers::note(world, id, by, wall, &request, &applied.reply);
    if let Ok(Reply::Acquire(reply) | Reply::Checked(reply, _)) = &applied.reply {
        world.counters.count(reply);
    }
    if is_write {
        replicas::persist(world, id);
        if has_replicas {
            replicas::replicate(world, id);
        }
    }
    if let Some((channel, wake)) = applied.published {
        let listening = subscriptions::publish(world, id, &channel, wake, client);
        if let (Request::Release(ask), Ok(Reply::Release(ReleaseReply::Freed { told }))) =
            (&*request, &mut applied.reply)
            && ask.mode == Mode::Plain
        {
            *told = listening;
        }
    }
    let answer: Answer = applied
        .reply
        .map_err(|cause| failure(Execution::Definite, cause));
    wait::reply(world, key, id, answer);
}

/// Returns the fault that forbids a request, because it has a name whose keys the user may not use.
fn revocation(revoked: &[(u16, FaultId)], all: &[String], request: &Request) -> Option<FaultId> {
    let of = |(name, _): &&(u16, FaultId)| {
        let name = all.get(usize::from(*name)).map(String::as_bytes);
        let is_it = |used: &Name| name == Some(used.as_bytes());
        match request {
            Request::Acquire(ask) => is_it(&ask.name),
            Request::Renew(ask) => ask.claims.iter().any(|claim| is_it(&claim.name)),
            Request::Release(ask) => is_it(&ask.name),
            Request::Inspect(ask) => is_it(&ask.name),
            Request::ForceRelease(ask) => is_it(&ask.name),
            Request::Probe(_) => false,
        }
    };
    revoked.iter().find(of).map(|(_, fault)| *fault)
}

/// Records a theft: a release that removed a claim of an owner other than the sender's.
fn look_for_theft(
    world: &mut World,
    node: NodeId,
    by: Process,
    claimed: &[OwnerId],
    release: &Release,
    reply: ReleaseReply,
    wall: WallMillis,
) {
    let is_theft = match (release.mode, claimed) {
        // A plain claim is released by the owner itself, or the answer states that another owner has it.
        (Mode::Plain | Mode::Fair, [owner]) => {
            let says_so = reply == ReleaseReply::NotYours || reply == ReleaseReply::Left;
            !says_so && *owner != release.owner
        }
        _ => {
            let keys = Specification::of(&mut *world.servers).at(node).keys();
            let left = owners(keys, wall, &release.name);
            let mut others = claimed.iter().filter(|owner| **owner != release.owner);
            others.any(|owner| !left.as_slice().contains(owner))
        }
    };
    if is_theft {
        note_theft(world, node, by, &release.name);
    }
}

/// Returns the indices of a renewal's claims that belong to other owners. Readers are left out, because they share a
/// name.
fn of_others(keys: &Keys, now: WallMillis, renew: &Renew) -> Vec<usize> {
    if !matches!(renew.mode, Mode::Plain | Mode::Fair) {
        return Vec::new();
    }
    let is_others = |claim: &Claim| match owners(keys, now, &claim.name) {
        Owners::One(owner) => owner != claim.owner,
        _ => false,
    };
    let places = renew.claims.iter().enumerate();
    let others = places.filter(|(_, claim)| is_others(claim));
    others.map(|(place, _)| place).collect()
}

/// Returns the number of nodes of the plan on which an owner has a claim on a name.
pub fn claims_of(world: &mut World, name: &quorlock::Name, owner: OwnerId) -> usize {
    let now = world.now();
    let seats = first::<Seat>(world.plan.nodes.count);
    let nodes: Vec<NodeId> = seats.map(Seat::first_node).collect();
    let mut has_claim = |node: &NodeId| {
        let Some(wall) = world.nodes.get(*node).map(|node| node.wall(now)) else {
            return false;
        };
        let keys = Specification::of(&mut *world.servers).at(*node).keys();
        owners(keys, wall, name).as_slice().contains(&owner)
    };
    nodes.iter().map(|node| usize::from(has_claim(node))).sum()
}

fn note_theft(world: &mut World, node: NodeId, by: Process, name: &quorlock::Name) {
    let name = world.history.name(&name.text());
    let at = world.now();
    world.history.thefts.push(Theft {
        at,
        node: node.get(),
        name,
        by,
    });
}

/// The owners with a claim under a name.
enum Owners {
    None,
    One(OwnerId),
    Several(Vec<OwnerId>),
}

impl Owners {
    fn as_slice(&self) -> &[OwnerId] {
        match self {
            Owners::None => &[],
            Owners::One(owner) => std::slice::from_ref(owner),
            Owners::Several(owners) => owners,
        }
    }
}

/// Returns the owners with a claim under a name, except readers whose claims have expired.
fn owners(keys: &Keys, now: WallMillis, name: &quorlock::Name) -> Owners {
    match keys.held(now, name) {
        Some((Held::Plain { owner, .. }, _)) => Owners::One(owner),
        Some((Held::ReadWrite(held), _)) => {
            let readers = keys.readers(now, name).into_iter();
            let readers = readers.map(|(owner, ..)| owner);
            let writer = held.writer.map(|(owner, _)| owner);
            Owners::Several(writer.into_iter().chain(readers).collect())
        }
        _ => Owners::None,
    }
}

/// Returns whether a request changed the keys of a node.
fn is_write(request: &Request, reply: &Result<Reply, Cause>) -> bool {
    match (request, reply) {
        (_, Ok(Reply::Acquire(AcquireReply::Refused { .. }))) => false,
        (Request::Acquire(ask), Ok(Reply::Checked(AcquireReply::Refused { .. }, _))) => {
            ask.check.is_some_and(|check| check.act != Act::Look)
        }
        _ => true,
    }
}

/// Returns a number for the trace that depends on the reply.
fn digest(reply: &Result<Reply, Cause>) -> u64 {
    match reply {
        Ok(Reply::Acquire(reply) | Reply::Checked(reply, _)) => match reply {
            AcquireReply::Granted { freshness, token } => (token.0 << 4) | (1 + *freshness as u64),
            AcquireReply::Refused { .. } => 3,
            AcquireReply::OtherMode(_) => 4,
            AcquireReply::Queued { .. } => 10,
            _ => 15,
        },
        Ok(Reply::Renew(replies)) => (replies.len() as u64) << 4 | 5,
        Ok(Reply::Release(reply)) => match reply {
            ReleaseReply::Freed { .. } => 6,
            ReleaseReply::Kept => 7,
            ReleaseReply::NotYours => 8,
            _ => 9,
        },
        Err(cause) => 16 + *cause as u64,
        _ => 15,
    }
}
