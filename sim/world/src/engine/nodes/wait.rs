//! Answers that wait until replicas have a write, as with `WAIT` after a script.

use std::time::Duration;

use quorlock::transport::{AcquireReply, Cause, Execution, RenewReply, Reply};

use crate::world::session::Awaited;

use crate::engine::network::calls;
use crate::engine::nodes::replicas;
use crate::world::World;
use crate::world::call::{Answer, Call, Returned, failure};
use crate::world::event::Event;
use crate::world::id::NodeId;
use crate::world::replication::{AwaitedReplication, Waiter};
use crate::world::slab::Key;

/// Sends an answer, either at once or when enough replicas have confirmed the write.
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

/// Begins the waits of connections that a server has blocked until replicas confirm. The writes are already in flight.
pub fn block(world: &mut World, node: NodeId) {
    for Awaited {
        connection,
        replicas,
        within,
    } in world.servers.take_awaited(node)
    {
        let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        let waiter = Waiter::Connection(connection);
        begin(world, waiter, node, replicas, within.map(nanos));
    }
}

/// Begins to wait until this many replicas have confirmed the writes so far.
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
        // There are too few replicas and there is no bound, so the client waits forever.
        (None, None) => return,
    };
    let waiting = world.waiting.insert(waiting);
    world.push(due, Event::Replicated(waiting));
}

/// Ends a wait, because enough replicas have confirmed or the time for it has passed.
pub fn end(world: &mut World, key: Key<AwaitedReplication>) {
    let Some(waiting) = world.waiting.remove(key) else {
        return;
    };
    let node = waiting.node();
    if !world.node(node).is_up() {
        return;
    }
    let paused_until = world.node(node).paused_until();
    if waiting.is_of_connection() && world.now() < paused_until {
        // A paused server answers nothing, and executes nothing that the connection sent after it.
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
        Waiter::Connection(connection) => {
            let now = world.micros(node);
            world.servers.confirm(node, connection, now, have);
            replicas::keep(world, node);
            block(world, node);
        }
    }
}

/// Returns whether a client relies on the write. The adapter waits for replicas after grants and renewals.
fn is_relied_upon(answer: &Answer) -> bool {
    match answer {
        Ok(Returned::Reply(Reply::Acquire(reply) | Reply::Checked(reply, _))) => {
            matches!(reply, AcquireReply::Granted { .. })
        }
        Ok(Returned::Reply(Reply::Renew(replies))) => replies
            .iter()
            .any(|reply| matches!(reply, RenewReply::AlreadyYours { .. })),
        _ => false,
    }
}
