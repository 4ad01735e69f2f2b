//! Requests that are answered only when replicas have what they wrote, as `WAIT` after a script has it.

use quorlock::transport::{AcquireReply, Cause, Execution, RenewReply, Reply};

use crate::engine::network::calls;
use crate::world::World;
use crate::world::call::{Answer, Call, failure};
use crate::world::event::What;
use crate::world::id::NodeId;
use crate::world::replication::Waiting;
use crate::world::slab::Key;

/// Answers, at once or when enough replicas have confirmed.
pub(super) fn reply(world: &mut World, call: Key<Call>, node: NodeId, answer: Answer) {
    let wait = world.plan.nodes.wait.as_ref();
    let Some(wait) = wait.filter(|_| is_relied_upon(&answer)).cloned() else {
        calls::reply(world, call, answer);
        return;
    };
    let lag = world.plan.nodes.replication_lag.as_nanos();
    let replicas = world.node(node).replicas().iter();
    let confirmed = replicas.map(|(id, comes)| (*id, comes + lag)).collect();
    let waiting = Waiting::new(call, node, answer, confirmed);
    let now = world.now();
    let ends = now + wait.within.as_nanos();
    let enough = waiting.confirmed_by(wait.replicas.into());
    let due = enough.map_or(ends, |at| at.max(now).min(ends));
    let waiting = world.waiting.insert(waiting);
    world.push(due, What::Replicated(waiting));
}

/// The time has come at which enough replicas have confirmed, or are not waited for any more.
pub(crate) fn end(world: &mut World, key: Key<Waiting>) {
    let Some(waiting) = world.waiting.remove(key) else {
        return;
    };
    let node = waiting.node();
    if !world.node(node).is_up() {
        return;
    }
    let has_it = |replica: &NodeId| {
        let state = world.nodes.get(*replica);
        state.is_some_and(|state| state.follows() == Some(node))
    };
    let have = waiting.confirmed(world.now()).filter(has_it).count();
    let wait = world.plan.nodes.wait.as_ref();
    let needed = wait.map_or(0, |wait| wait.replicas);
    let (call, answer) = waiting.into_answer();
    let answer = if usize::from(needed) <= have {
        answer
    } else {
        Err(failure(Execution::Indeterminate, Cause::NotReplicated))
    };
    calls::reply(world, call, answer);
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
