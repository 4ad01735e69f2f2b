//! Requests that are answered only when replicas have what they wrote, as `WAIT` after a script has it.

use std::time::Duration;

use quorlock::transport::{AcquireReply, Cause, Execution, RenewReply, Reply};

use crate::world::session::Awaited;

use crate::engine::network::calls;
use crate::engine::nodes::replicas;
use crate::world::World;
use crate::world::call::{Answer, Call, failure};
use crate::world::event::Event;
use crate::world::id::NodeId;
use crate::world::replication::{AwaitedReplication, Waiter};
use crate::world::slab::Key;

/// Answers, at once or when enough replicas have confirmed.
pub(super) fn reply(world: &mut World, call: Key<Call>, node: NodeId, answer: Answer) {
    let wait = world.plan.nodes.wait.as_ref();
    let Some(wait) = wait.filter(|_| is_relied_upon(&answer)).cloned() else {
        calls::reply(world, call, answer);
        return;
    };
    let within = Some(wait.within.as_nanos());
    let waiter = Waiter::Call(call, answer);
    begin(world, waiter, node, wait.replicas.into(), within);
}

/// Connections that a server has blocked until replicas have confirmed begin to wait. What it wrote is on its way to those.
pub(crate) fn block(world: &mut World, node: NodeId) {
    for Awaited {
        session,
        replicas,
        within,
    } in world.servers.take_awaited(node)
    {
        let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        let waiter = Waiter::Connection(session);
        begin(world, waiter, node, replicas, within.map(nanos));
    }
}

/// Begins to wait until so many replicas have confirmed what was written so far.
fn begin(world: &mut World, waiter: Waiter, node: NodeId, needed: usize, within: Option<u64>) {
    let lag = world.plan.nodes.replication_lag.as_nanos();
    let replicas = world.node(node).replicas().iter();
    let confirmed = replicas.map(|(id, comes)| (*id, comes + lag)).collect();
    let waiting = AwaitedReplication::new(waiter, node, confirmed);
    let now = world.now();
    let ends = within.map(|within| now.saturating_add(within));
    let enough = waiting.confirmed_by(needed).map(|at| at.max(now));
    let due = match (enough, ends) {
        (Some(enough), Some(ends)) => enough.min(ends),
        (Some(due), None) | (None, Some(due)) => due,
        // No replica will ever confirm, and the client waits for ever.
        (None, None) => return,
    };
    let waiting = world.waiting.insert(waiting);
    world.push(due, Event::Replicated(waiting));
}

/// The time has come at which enough replicas have confirmed, or are not waited for any more.
pub(crate) fn end(world: &mut World, key: Key<AwaitedReplication>) {
    let Some(waiting) = world.waiting.remove(key) else {
        return;
    };
    let node = waiting.node();
    if !world.node(node).is_up() {
        return;
    }
    let paused_until = world.node(node).paused_until();
    if waiting.is_of_connection() && world.now() < paused_until {
        // A server that stands still answers nothing, and executes nothing of what comes behind.
        let waiting = world.waiting.insert(waiting);
        world.push(paused_until, Event::Replicated(waiting));
        return;
    }
    let has_it = |replica: &NodeId| {
        let state = world.nodes.get(*replica);
        state.is_some_and(|state| {
            state.follows() == Some(node) && state.stream_held_until() <= world.now()
        })
    };
    let have = waiting.confirmed(world.now()).filter(has_it).count();
    match waiting.into_waiter() {
        Waiter::Call(call, answer) => {
            let wait = world.plan.nodes.wait.as_ref();
            let needed = wait.map_or(0, |wait| wait.replicas);
            let answer = if usize::from(needed) <= have {
                answer
            } else {
                Err(failure(Execution::Indeterminate, Cause::NotReplicated))
            };
            calls::reply(world, call, answer);
        }
        Waiter::Connection(session) => {
            let now = world.micros(node);
            world.servers.confirm(node, session, now, have);
            replicas::keep(world, node);
            block(world, node);
        }
    }
}

/// Whether a client relies on what was written: the adapter waits after grants and renewals.
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
