//! Calls: a request is sent, executed and answered, or ends without a reply.

use std::rc::Rc;
use std::task::{Context, Waker};

use quorlock::transport::{Cause, Execution, Request};

use crate::history::Process;
use crate::world::World;
use crate::world::call::{Answer, Call, Replied, failure};
use crate::world::client::Who;
use crate::world::event::What;
use crate::world::link::{Line, Passage};
use crate::world::slab::Key;
use crate::world::task::remember;

impl World {
    /// Takes a request and sends it, or begins to connect.
    pub(crate) fn call(&mut self, who: Who, seat: u16, request: Rc<Request>) -> Key<Call> {
        let Some(departs) = self.seam(who) else {
            return Key::NONE;
        };
        let client = who.client;
        let node = *self.route(client, seat);
        let key = self.calls.insert(Call {
            client,
            restarts: who.restarts,
            node,
            request,
            epoch: 0,
            departs,
            copies: 0,
            is_sent: false,
            is_dropped: false,
            is_done: false,
            is_sent_by_the_dead: false,
            outlives_its_connection: false,
            is_void: false,
            waker: None,
            answer: None,
        });
        self.watch_deadline(client, departs, key);
        match self.link(client, node).line {
            Line::Up => self.send(key, departs),
            Line::Connecting => self.link(client, node).waiting.push(key),
            Line::Down => {
                self.link(client, node).waiting.push(key);
                self.connect(client, node, departs);
            }
        }
        key
    }

    /// Puts a request on the wire.
    pub(crate) fn send(&mut self, key: Key<Call>, departs: u64) {
        let Some(call) = self.calls.get_mut(key) else {
            return;
        };
        let at = usize::from(call.client) * self.nodes.len() + usize::from(call.node);
        let Some(link) = self.links.get_mut(at) else {
            return;
        };
        call.is_sent = true;
        call.departs = departs;
        call.epoch = link.client_epoch;
        let passage = link.to_node.send(departs, &mut self.effects);
        match passage {
            Passage::Never => {}
            Passage::Once(at) => {
                call.copies = 1;
                self.events.push(at, What::Request(key));
            }
            Passage::Twice(first, second) => {
                call.copies = 2;
                self.events.push(first, What::Request(key));
                self.events.push(second, What::Request(key));
            }
        }
        if self.recording.is_some() {
            self.record_call(key, passage);
        }
    }

    fn record_call(&mut self, key: Key<Call>, passage: Passage) {
        let Some(call) = self.calls.get(key) else {
            return;
        };
        let (client, node, departs) = (call.client, call.node, call.departs);
        let request = Rc::clone(&call.request);
        let restarts = self.client(client).restarts;
        let process = Process { client, restarts };
        self.record_request(process, node, departs, passage, &request);
    }

    /// A copy of a request comes to its node.
    pub(crate) fn request_arrives(&mut self, key: Key<Call>) {
        let Some(call) = self.calls.get_mut(key) else {
            return;
        };
        call.copies = call.copies.saturating_sub(1);
        let (client, node, epoch) = (call.client, call.node, call.epoch);
        let at = usize::from(client) * self.nodes.len() + usize::from(node);
        let state = self.nodes.get_mut(usize::from(node));
        let Some((link, state)) = self.links.get_mut(at).zip(state) else {
            return;
        };
        let is_void = call.is_void;
        let is_kept = call.is_sent_by_the_dead || call.outlives_its_connection;
        let is_served = link.node_epoch == epoch || is_kept;
        if is_void || !state.is_up || !is_served {
            self.free_if_over(key);
            if !is_void && !is_kept {
                self.tell_closed(client, node, epoch);
            }
            return;
        }
        if let Some(fault) = link.lacks_scripts.take() {
            // The node does not know the scripts: the call goes back and comes again.
            call.copies += 1;
            self.blame(fault);
            let again = self.now + 2 * self.plan.network.most.as_nanos();
            self.push(again, What::Request(key));
            return;
        }
        if self.now < state.paused_until {
            call.copies += 1;
            state.queue.push(key);
            return;
        }
        self.execute(key);
        self.free_if_over(key);
    }

    /// A request that was held up in a paused node is executed.
    pub(crate) fn execute_queued(&mut self, key: Key<Call>) {
        if let Some(call) = self.calls.get_mut(key) {
            call.copies = call.copies.saturating_sub(1);
            self.execute(key);
            self.free_if_over(key);
        }
    }

    /// A request that was held up in a node that has ended.
    pub(crate) fn forget_queued(&mut self, key: Key<Call>) {
        if let Some(call) = self.calls.get_mut(key) {
            call.copies = call.copies.saturating_sub(1);
            self.free_if_over(key);
        }
    }

    /// Sends a reply back.
    pub(crate) fn reply(&mut self, key: Key<Call>, answer: Answer) {
        let Some(call) = self.calls.get(key) else {
            return;
        };
        if call.is_dropped || call.is_sent_by_the_dead {
            return;
        }
        let ends = (call.client, call.node);
        let at = self.link_at(ends.0, ends.1);
        let now = self.now;
        let Some(link) = self.links.get_mut(at) else {
            return;
        };
        let passage = link.to_client.send(now, &mut self.effects);
        if self.recording.is_some() {
            self.record_answer(ends, passage, &answer);
        }
        if let Passage::Once(at) | Passage::Twice(at, _) = passage {
            let reply = self.replies.insert(Replied { to: key, answer });
            self.events.push(at, What::Reply(reply));
        }
    }

    pub(crate) fn reply_arrives(&mut self, reply: Key<Replied>) {
        if let Some(replied) = self.replies.get(reply) {
            self.end_call(replied.to, reply);
        }
    }

    /// A call ends without a reply.
    fn fail_call(&mut self, key: Key<Call>, execution: Execution, cause: Cause) {
        let answer = Err(failure(execution, cause));
        let reply = self.replies.insert(Replied { to: key, answer });
        self.end_call(key, reply);
    }

    /// The first answer counts, if anybody waits for it.
    fn end_call(&mut self, key: Key<Call>, reply: Key<Replied>) {
        match self.calls.get_mut(key) {
            Some(call) if !call.is_done => {
                call.is_done = true;
                call.answer = Some(reply);
                if let Some(waker) = &call.waker {
                    waker.wake_by_ref();
                }
            }
            _ => self.replies.discard(reply),
        }
    }

    /// The answer of a call, once; until there is one, the task is woken when it comes.
    pub(crate) fn poll_call(&mut self, key: Key<Call>, cx: &Context<'_>) -> Option<Key<Replied>> {
        let call = self.calls.get_mut(key)?;
        if call.answer.is_some() {
            return call.answer.take();
        }
        remember(&mut call.waker, cx);
        None
    }

    pub(crate) fn take_answer(&mut self, reply: Key<Replied>) -> Option<Answer> {
        self.replies.remove(reply).map(|replied| replied.answer)
    }

    /// Nobody waits for a call any more. Its waker is not the world's to drop.
    pub(crate) fn drop_call(&mut self, key: Key<Call>) -> Option<Waker> {
        let call = self.calls.get_mut(key)?;
        let waker = call.waker.take();
        call.is_dropped = true;
        if let Some(reply) = call.answer.take() {
            self.replies.discard(reply);
        }
        if call.copies == 0 {
            self.calls.discard(key);
        }
        waker
    }

    fn free_if_over(&mut self, key: Key<Call>) {
        let call = self.calls.get(key);
        if call.is_some_and(|call| call.is_dropped && call.copies == 0) {
            self.calls.discard(key);
        }
    }

    /// The calls that were sent on a connection of this client and node and have not ended.
    pub(super) fn end_calls(&mut self, client: u16, node: u16, is_sent: Sent) {
        let of = |call: &Call| {
            call.client == client
                && call.node == node
                && !call.is_done
                && call.is_sent == (is_sent == Sent::Yes)
        };
        for key in self.calls.keys(of) {
            match is_sent {
                Sent::Yes => self.fail_call(key, Execution::Indeterminate, Cause::Closed),
                Sent::No => self.fail_call(key, Execution::Definite, Cause::Unreachable),
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    Yes,
    No,
}

/// Time-outs.
impl World {
    fn watch_deadline(&mut self, client: u16, departs: u64, key: Key<Call>) {
        let timeout = self.plan.network.call_timeout.as_nanos();
        let state = self.client(client);
        let deadline = state.monotonic.read(departs) + timeout;
        state.deadlines.push_back((deadline, key));
        if !state.watches_deadlines {
            state.watches_deadlines = true;
            let due = state.monotonic.when(departs, deadline);
            self.push(due, What::Deadlines(client));
        }
    }

    pub(crate) fn watch_deadlines_anew(&mut self, client: u16) {
        let now = self.now;
        let state = self.client(client);
        if let Some((deadline, _)) = state.deadlines.front() {
            let due = state.monotonic.when(now, *deadline);
            self.push(due, What::Deadlines(client));
        }
    }

    /// Ends the calls that are out of time. Those that never had a connection were certainly not executed.
    pub(crate) fn deadlines(&mut self, client: u16) {
        let now = self.now;
        loop {
            let calls = &self.calls;
            let Some(state) = self.clients.get_mut(usize::from(client)) else {
                return;
            };
            let Some((deadline, key)) = state.deadlines.front().copied() else {
                state.watches_deadlines = false;
                return;
            };
            let call = calls
                .get(key)
                .filter(|call| !call.is_done && !call.is_dropped);
            let is_sent = call.map(|call| call.is_sent);
            if is_sent.is_some() && state.monotonic.read(now) < deadline {
                let due = state.monotonic.when(now, deadline);
                self.push(due, What::Deadlines(client));
                return;
            }
            state.deadlines.pop_front();
            match is_sent {
                Some(true) => self.fail_call(key, Execution::Indeterminate, Cause::TimedOut),
                Some(false) => self.fail_call(key, Execution::Definite, Cause::Unreachable),
                None => {}
            }
        }
    }
}
