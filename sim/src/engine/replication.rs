//! Requests that are answered only when replicas have what they wrote, as `WAIT` after a script has it.

use quorlock::transport::{AcquireReply, Cause, Execution, RenewReply, Reply};

use crate::world::World;
use crate::world::call::{Answer, Call, failure};
use crate::world::event::What;
use crate::world::node::Role;
use crate::world::replication::Waiting;
use crate::world::slab::Key;

impl World {
    /// Answers, at once or when enough replicas have confirmed.
    pub(crate) fn reply_when_replicated(&mut self, call: Key<Call>, node: u16, answer: Answer) {
        let wait = self.plan.nodes.wait.as_ref();
        let Some(wait) = wait.filter(|_| is_relied_upon(&answer)).cloned() else {
            self.reply(call, answer);
            return;
        };
        let lag = self.plan.nodes.replication_lag.as_nanos();
        let replicas = self.node(node).replicas.iter();
        let mut confirmed: Vec<_> = replicas.map(|(id, comes)| (*id, comes + lag)).collect();
        confirmed.sort_by_key(|(_, at)| *at);
        let ends = self.now + wait.within.as_nanos();
        let last_needed = usize::from(wait.replicas).checked_sub(1);
        let due = match last_needed {
            None => self.now,
            Some(last) => confirmed.get(last).map_or(ends, |(_, at)| *at.min(&ends)),
        };
        let waiting = self.waiting.insert(Waiting {
            call,
            node,
            answer,
            confirmed,
        });
        self.push(due, What::Replicated(waiting));
    }

    /// The time has come at which enough replicas have confirmed, or are not waited for any more.
    pub(crate) fn replicated(&mut self, key: Key<Waiting>) {
        let Some(waiting) = self.waiting.remove(key) else {
            return;
        };
        let node = waiting.node;
        if !self.node(node).is_up {
            return;
        }
        let now = self.now;
        let has_it = |(replica, at): &(u16, u64)| {
            let state = self.nodes.get(usize::from(*replica));
            *at <= now && state.is_some_and(|s| s.is_up && s.role == Role::ReplicaOf(node))
        };
        let have = waiting.confirmed.iter().filter(|replica| has_it(replica));
        let needed = self
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
        self.reply(waiting.call, answer);
    }
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
