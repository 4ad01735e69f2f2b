//! Execution of requests by nodes, and checks of what each request did.

use quorlock::transport::{AcquireReply, Cause, Execution, ReleaseReply, Reply, Request};
use quorlock::{Name, OwnerId};
use quorlock_core::marker::Act;
use quorlock_core::message::Mode;
use quorlock_core::node::Node as Keys;

use crate::engine::network::{calls, subscriptions};
use crate::engine::nodes::thefts::{ClaimsBefore, owners};
use crate::engine::nodes::{answers, dead_claims, records, replicas, statements, wait};
use crate::world::World;
use crate::world::call::{Answer, Asked, Call, Returned, failure};
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
    let asked = call.asked().clone();
    let Some(node) = world.nodes.get(id) else {
        return;
    };
    let wall = node.wall(now);
    let has_replicas = !node.replicas().is_empty();
    if let Some(cause) = refusal(world, id, &asked) {
        calls::reply(world, key, Err(failure(Execution::Definite, cause)));
        return;
    }
    world.counters.commands += 1;
    let request = match asked {
        Asked::Request(request) => request,
        Asked::Record(call) => return records::execute(world, key, (id, client), by, &call),
    };
    let server = Specification::of(&mut *world.servers).at(id);
    let before = ClaimsBefore::of(server.keys(), wall, &request);
    let mut applied = server.execute(wall, &request);
    let is_write = is_write(&request, &applied.reply);
    if is_write && has_replicas {
        server.write(wall, &request);
    }
    world.note(digest(&applied.reply) ^ u64::from(id.get()) << 56);
    before.look_for_thefts(world, (id, by, wall), &request, &applied.reply);
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
    if is_write {
        subscriptions::tell_losses(world, id);
    }
    let reply = applied.reply.map(Returned::Reply);
    let answer: Answer = reply.map_err(|cause| failure(Execution::Definite, cause));
    wait::reply(world, key, id, answer);
}

/// Returns why a node does not execute a request, if it does not.
fn refusal(world: &mut World, id: NodeId, asked: &Asked) -> Option<Cause> {
    let node = world.nodes.get(id)?;
    let min_replicas = world.plan.nodes.min_replicas.as_ref();
    if let Some(cause) = node.refusal(world.now(), min_replicas) {
        return Some(cause);
    }
    if let Some(cause) = Specification::of(&mut *world.servers).refuses(id) {
        if let Some((_, fault)) = node.error() {
            world.blame(fault);
        }
        return Some(cause);
    }
    let fault = revocation(node.revoked(), &world.history.names, asked)?;
    world.blame(fault);
    Some(Cause::NoPermission)
}

/// Returns the fault that forbids a request, because it has a name whose keys the user may not use.
fn revocation(revoked: &[(u16, FaultId)], all: &[String], asked: &Asked) -> Option<FaultId> {
    let of = |(name, _): &&(u16, FaultId)| {
        let name = all.get(usize::from(*name)).map(String::as_bytes);
        let is_it = |used: &Name| name == Some(used.as_bytes());
        let request = match asked {
            Asked::Request(request) => &**request,
            Asked::Record(call) => return name == Some(call.key().as_bytes()),
        };
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

/// Returns the number of nodes of the plan on which an owner has a claim on a name.
pub fn claims_of(world: &mut World, name: &quorlock::Name, owner: OwnerId) -> usize {
    let now = world.now();
    let seats = first::<Seat>(world.plan.nodes.count);
    let nodes: Vec<NodeId> = seats.map(Seat::first_node).collect();
    let mut has_claim = |node: &NodeId| {
        let Some(wall) = world.nodes.get(*node).map(|node| node.wall(now)) else {
            return false;
        };
        let has_it = |keys: &Keys, now| owners(keys, now, name).as_slice().contains(&owner);
        Specification::of(&mut *world.servers).look(*node, wall, name, has_it) == Some(true)
    };
    nodes.iter().map(|node| usize::from(has_claim(node))).sum()
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
