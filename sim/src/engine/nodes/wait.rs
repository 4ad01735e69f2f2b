//! Requests that are answered only when replicas have what they wrote, as `WAIT` after a script has it.

use quorlock::transport::{AcquireReply, Cause, Execution, RenewReply, Reply};

use crate::engine::network::calls;
use crate::world::World;
use crate::world::call::{Answer, Call, failure};
use crate::world::event::What;
use crate::world::node::Role;
use crate::world::replication::Waiting;
use crate::world::slab::Key;

/// Answers, at once or when enough replicas have confirmed.
pub(crate) fn reply(world: &mut World, call: Key<Call>, node: u16, answer: Answer) {
    let wait = world.plan.nodes.wait.as_ref();
    let Some(wait) = wait.filter(|_| is_relied_upon(&answer)).cloned() else {
        calls::reply(world, call, answer);
        return;
    };
    let lag = world.plan.nodes.replication_lag.as_nanos();
    let replicas = world.node(node).replicas.iter();
    let mut confirmed: Vec<_> = replicas.map(|(id, comes)| (*id, comes + lag)).collect();
    confirmed.sort_by_key(|(_, at)| *at);
    let ends = world.now + wait.within.as_nanos();
    let last_needed = usize::from(wait.replicas).checked_sub(1);
    let due = match last_needed {
        None => world.now,
        Some(last) => confirmed.get(last).map_or(ends, |(_, at)| *at.min(&ends)),
    };
    let waiting = world.waiting.insert(Waiting {
        call,
        node,
        answer,
        confirmed,
    });
    world.push(due, What::Replicated(waiting));
}

/// The time has come at which enough replicas have confirmed, or are not waited for any more.
pub(crate) fn end(world: &mut World, key: Key<Waiting>) {
    let Some(waiting) = world.waiting.remove(key) else {
        return;
    };
    let node = waiting.node;
    if !world.node(node).is_up {
        return;
    }
    let now = world.now;
    let has_it = |(replica, at): &(u16, u64)| {
        let state = world.nodes.get(usize::from(*replica));
        *at <= now && state.is_some_and(|s| s.is_up && s.role == Role::ReplicaOf(node))
    };
    let have = waiting.confirmed.iter().filter(|replica| has_it(replica));
    let needed = world
        .plan
        .nodes
        .wait
        .as_ref()
        .map_or(0, |wait| wait.replicas);
    let answer = if usize::from(needed) <= have.count() {
        waiting.answer
    } else {
        Err(failure(Execution::Indeterminate, Cause::NotReplicated))
    };
    calls::reply(world, waiting.call, answer);
}

/// Whether somebody relies on what was written: the adapter waits after grants and renewals.
fn is_relied_upon(answer: &Answer) -> bool {
    match answer {
        Ok(Reply::Acquire(reply) | Reply::Checked(reply, _)) => {
            matches!(reply, AcquireReply::Granted { .. })
        }
        Ok(Reply::Renew(replies)) => replies
            .iter()
            .any(|reply| matches!(reply, RenewReply::AlreadyYours { .. })),
        _ => false,
    }
}
