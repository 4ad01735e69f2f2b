//! The keeper's task.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_util::stream::{FuturesUnordered, Stream};
use quorlock_core::message::{Claim, Mode, ReleaseReply, Renew, RenewReply, Reply, Request};
use quorlock_core::quorum::MemberId;
use quorlock_core::renewal::{Ask, Lost, Status};
use quorlock_core::time::Time;
use quorlock_core::transport::{Call, TransportError};

use super::lanes::{Lanes, Next};
use super::phase::{GiveBack, Phase};
use super::{Inner, Keeper, Message, Orphaned, PATIENCE, TICK};
use crate::calls::Received;
use crate::hold::{Asked, Hold};
use crate::layout::{Node, Place};
use crate::runtime::{Runtime, Timer};
use crate::telemetry;
use crate::trust::{Asking, Sent, answer};
use crate::waiters::{LeaderDue, Led, Relief};

/// How many claims go into one renewal: few enough not to hold up a server, which runs one script at a time.
const BATCH: usize = 100;

pub(super) struct KeeperTask {
    keeper: Arc<Keeper>,
    runtime: Arc<dyn Runtime>,
    nodes: Arc<[Node]>,
    timer: Box<dyn Timer>,
    calls: FuturesUnordered<Pending>,
    lanes: Lanes,
    /// Empty, and as large as the inbox was: they change places.
    mail: Vec<Message>,
    orphans: BTreeMap<u64, Orphaned>,
    orphans_due: BTreeSet<(Time, u64)>,
    next_orphan: u64,
    /// Queues whose leaders are to come, by when they are looked at.
    queues: VecDeque<WatchedQueue>,
}

/// A queue whose leader was woken on behalf of others.
struct WatchedQueue {
    due: Time,
    /// What was seen when it was looked at last.
    before: LeaderDue,
    queue: Arc<dyn Led>,
}

/// A call under way, and what it is for.
struct Pending {
    of: Option<Of>,
    call: Call,
}

impl Future for Pending {
    type Output = (Of, Result<Reply, TransportError>);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.call.as_mut().poll(cx).map(|result| {
            let of = self.of.take();
            (of.expect("BUG: a call that ends twice"), result)
        })
    }
}

enum Of {
    /// A renewal of these claims.
    Renewal(Vec<Asked>),
    /// A re-acquire that the watchdog sent.
    Reacquire(Asked, Sent),
    /// An acquire of the round that won.
    Late(Asked, Sent),
    /// The acquire of an orphan.
    OrphanAcquire(u64),
    /// The release of an orphan, from this node.
    OrphanRelease(u64, Node),
    /// A release that leaves some of the count.
    Lowering(Asked),
    /// The end of a node's watch.
    Ripening(Node, Sent),
}

/// The renewals that are due, node by node and mode by mode.
#[derive(Default)]
struct Batches(Vec<Batch>);

struct Batch {
    node: Node,
    mode: Mode,
    claims: Vec<(Claim, Asked)>,
}

impl Batches {
    fn add(&mut self, place: &Place, claim: Claim, asked: Asked) {
        let mode = match place.mode {
            Mode::Fair => Mode::Plain,
            mode => mode,
        };
        let is_known =
            |batch: &&mut Batch| batch.mode == mode && Arc::ptr_eq(&batch.node, &place.node);
        match self.0.iter_mut().find(is_known) {
            Some(batch) => batch.claims.push((claim, asked)),
            None => self.0.push(Batch {
                node: place.node.clone(),
                mode,
                claims: vec![(claim, asked)],
            }),
        }
    }
}

impl KeeperTask {
    pub(super) fn new(keeper: Arc<Keeper>, runtime: Arc<dyn Runtime>, nodes: Arc<[Node]>) -> Self {
        KeeperTask {
            keeper,
            timer: runtime.timer(),
            runtime,
            nodes,
            calls: FuturesUnordered::new(),
            lanes: Lanes::default(),
            mail: Vec::new(),
            orphans: BTreeMap::new(),
            orphans_due: BTreeSet::new(),
            next_orphan: 0,
            queues: VecDeque::new(),
        }
    }

    fn call(&mut self, of: Of, call: Call) {
        let of = Some(of);
        self.calls.push(Pending { of, call });
    }

    fn take_messages(&mut self, now: Time) {
        let closing: Option<Vec<_>> = {
            let mut inner = self.keeper.inner.lock();
            if inner.inbox_due <= now {
                inner.inbox_due = Time::NEVER;
                // It becomes the inbox, in which each guard has its place.
                self.mail.reserve(inner.guards);
                std::mem::swap(&mut self.mail, &mut inner.inbox);
            }
            let give_back = std::mem::take(&mut inner.give_back);
            let holds = inner.holds.values().map(|kept| kept.hold.clone());
            let is_all = give_back == GiveBack::All;
            let closing = holds.filter(|hold| is_all || hold.layout.is_closed());
            (give_back != GiveBack::None).then(|| closing.collect())
        };
        if !self.mail.is_empty() {
            self.read_mail(now);
        }
        if let Some(closing) = closing {
            for hold in closing {
                if hold.close(now) == Status::Held {
                    self.give_back(&hold, now);
                }
            }
        }
    }

    fn read_mail(&mut self, now: Time) {
        let mut mail = std::mem::take(&mut self.mail);
        for message in mail.drain(..) {
            match message {
                Message::Orphans(orphans) => {
                    for orphan in orphans {
                        self.adopt(orphan, now);
                    }
                }
                Message::Dropped(hold, count) => self.dropped(&hold, count, now),
            }
        }
        self.mail = mail;
    }

    fn dropped(&mut self, hold: &Arc<Hold>, count: u32, now: Time) {
        if count == 0 {
            self.give_back(hold, now);
            return;
        }
        for member in hold.claimed() {
            let node = &hold.layout.place(member).node;
            let next = self.lanes.lower(node, hold.clone(), member);
            if let Some(Next::Lower(hold, member)) = next {
                self.lower(hold, member, now);
            }
        }
    }

    /// Tells a member of a hold the count that it has now, for which there is room in its lane.
    fn lower(&mut self, hold: Arc<Hold>, member: MemberId, now: Time) {
        let count = hold.count();
        let node = hold.layout.place(member).node.clone();
        if count == 0 || hold.status(now) != Status::Held {
            // It was released or lost while it waited for the lane.
            self.lanes.ended(&node, 1);
            return;
        }
        let call = node.call(hold.release_request(member, count));
        let asked = Asked {
            asking: Asking::Missing,
            lease: hold.lease(),
            sent: now,
            member,
            hold,
        };
        self.call(Of::Lowering(asked), call);
    }

    /// Takes in what the members say that had not answered when the round was won, now or when they do.
    fn adopt_late(&mut self, hold: &Arc<Hold>) {
        for mut late in hold.take_late() {
            let polled = late.poll(&*self.runtime);
            let (asked, sent) = late.asked(hold);
            match polled {
                Poll::Ready(received) => self.answered(&asked, sent, &received),
                Poll::Pending => self.call(Of::Late(asked, sent), late.call),
            }
        }
    }

    /// Releases the claims of a hold that has ended.
    fn give_back(&mut self, hold: &Arc<Hold>, now: Time) {
        self.keeper.forget(hold);
        self.adopt_late(hold);
        for member in hold.claimed() {
            self.orphan(hold, member, now);
        }
    }

    fn orphan(&mut self, hold: &Hold, member: MemberId, now: Time) {
        hold.gone_from(member);
        self.adopt(Orphaned::of(hold, member, now, None), now);
    }

    fn adopt(&mut self, mut orphan: Orphaned, now: Time) {
        orphan.hear(&*self.runtime);
        if orphan.machine.is_done(now) {
            orphan.tell_cleaned();
            return;
        }
        let id = self.next_orphan;
        self.next_orphan += 1;
        if let Some(call) = orphan.acquire.take() {
            self.call(Of::OrphanAcquire(id), call);
        }
        if let Some(call) = orphan.release.take() {
            let node = orphan.node.clone();
            self.lanes.sent(&node);
            self.call(Of::OrphanRelease(id, node), call);
        }
        self.orphans.insert(id, orphan);
        self.attend(id, now);
    }

    /// Sends what an orphan needs now, and forgets it when it needs nothing more.
    fn attend(&mut self, id: u64, now: Time) {
        let Some(orphan) = self.orphans.get_mut(&id) else {
            return;
        };
        if orphan.has_readers() && !self.keeper.is_ending() {
            orphan.keep_alive(now);
        }
        if orphan.machine.is_due(now) {
            let node = orphan.node.clone();
            if let Some(Next::Release(id)) = self.lanes.release(&node, id) {
                self.release(&node, id, now);
            }
        } else if orphan.machine.is_done(now) {
            orphan.tell_cleaned();
            self.orphans.remove(&id);
        } else {
            let at = orphan.machine.poll_timeout();
            if at != Time::NEVER {
                self.orphans_due.insert((at, id));
            }
        }
    }

    /// Sends the release of an orphan, for which there is room in its lane.
    fn release(&mut self, node: &Node, id: u64, now: Time) {
        let orphan = self.orphans.get_mut(&id);
        if let Some(orphan) = orphan
            && orphan.machine.next_release(now)
        {
            let call = node.call(orphan.release_request());
            self.call(Of::OrphanRelease(id, node.clone()), call);
        } else {
            // It has waited for too long, or its acquire was refused meanwhile and it is forgotten. Its room in the lane
            // is given back all the same: a node that has refused a thousand of them would be sent no release any more.
            self.lanes.ended(node, 1);
            self.attend(id, now);
        }
    }

    /// Requests about so many claims have come to their end: sends what waited for that.
    fn ended(&mut self, node: &Node, claims: usize, now: Time) {
        self.lanes.ended(node, claims);
        let mut batches = Batches::default();
        while let Some(next) = self.lanes.next(node) {
            match next {
                Next::Ask(hold, member) => self.ask(hold, member, now, &mut batches),
                Next::Release(id) => self.release(node, id, now),
                Next::Lower(hold, member) => self.lower(hold, member, now),
            }
        }
        self.renew_all(batches);
    }

    fn attend_due(&mut self, now: Time) {
        while let Some((at, id)) = self.orphans_due.first().copied()
            && at <= now
        {
            self.orphans_due.pop_first();
            self.attend(id, now);
        }
    }

    /// Passes over leaders that were woken a while ago and have not come, though others wait for them.
    fn relieve_due(&mut self, now: Time) {
        if self.queues.is_empty() && self.keeper.inner.lock().queues.is_empty() {
            return;
        }
        let news = std::mem::take(&mut self.keeper.inner.lock().queues);
        let due = now + PATIENCE;
        for queue in news {
            let before = queue.due();
            self.queues.push_back(WatchedQueue { due, before, queue });
        }
        while let Some(watched) = self.queues.pop_front() {
            if now < watched.due {
                self.queues.push_front(watched);
                return;
            }
            if let Relief::On(before) = watched.queue.relieve(watched.before) {
                let queue = watched.queue;
                self.queues.push_back(WatchedQueue { due, before, queue });
            }
        }
    }

    /// Renews what is due, and ends what is over. Returns whether the watch of a node is due, too.
    fn keep_due(&mut self, now: Time) -> bool {
        let mut batches = Batches::default();
        let is_watch_due = loop {
            let hold = {
                let inner = self.keeper.inner.lock();
                let due = inner.due.first().filter(|(at, _)| *at <= now);
                match due.and_then(|(_, number)| inner.holds.get(number)) {
                    Some(kept) => kept.hold.clone(),
                    None => break !self.is_giving_back(&inner) && self.keeper.alarm.due() <= now,
                }
            };
            match hold.status(now) {
                Status::Held => {
                    self.adopt_late(&hold);
                    for member in hold.take_due(now) {
                        let node = &hold.layout.place(member).node;
                        let next = self.lanes.ask(node, hold.clone(), member);
                        if let Some(Next::Ask(hold, member)) = next {
                            self.ask(hold, member, now, &mut batches);
                        }
                    }
                    self.keeper.reschedule(&hold);
                }
                Status::Lost(_) => self.give_back(&hold, now),
                Status::Releasing => self.keeper.forget(&hold),
            }
        };
        self.renew_all(batches);
        is_watch_due
    }

    /// Asks a member of a hold, for which there is room in its lane.
    fn ask(&mut self, hold: Arc<Hold>, member: MemberId, now: Time, batches: &mut Batches) {
        let Some((ask, stated)) = hold.ask(now, member) else {
            let node = hold.layout.place(member).node.clone();
            self.lanes.ended(&node, 1);
            return;
        };
        let asked = Asked {
            hold: hold.clone(),
            member,
            asking: Asking::Missing,
            lease: stated.lease,
            sent: now,
        };
        let place = hold.layout.place(member);
        match ask {
            Ask::Renew => batches.add(place, hold.claim(member, stated), asked),
            Ask::Reacquire => {
                let (request, sent) = hold.reacquire_request(member, stated);
                self.call(Of::Reacquire(asked, sent), place.node.call(request));
            }
        }
    }

    fn renew_all(&mut self, batches: Batches) {
        for batch in batches.0 {
            self.renew(batch);
        }
    }

    fn renew(&mut self, batch: Batch) {
        let Batch { node, mode, claims } = batch;
        let mut claims = claims.into_iter().peekable();
        while claims.peek().is_some() {
            let (claims, renewing) = claims.by_ref().take(BATCH).unzip();
            let retention = node.party.retention;
            let call = node.call(Request::Renew(Renew {
                mode,
                claims,
                retention,
            }));
            self.call(Of::Renewal(renewing), call);
        }
    }

    fn handle(&mut self, of: Of, received: &Received) {
        let Received { result, at: now } = received;
        let now = *now;
        match of {
            Of::Renewal(renewing) => {
                let claims = renewing.len();
                let node = renewing
                    .first()
                    .map(|asked| asked.hold.layout.place(asked.member).node.clone());
                self.renewed(renewing, result, now);
                if let Some(node) = node {
                    self.ended(&node, claims, now);
                }
            }
            Of::Reacquire(asked, sent) => {
                asked.hold.end_ask(asked.member);
                self.answered(&asked, sent, received);
                self.ended(&asked.hold.layout.place(asked.member).node, 1, now);
            }
            Of::Late(asked, sent) => self.answered(&asked, sent, received),
            Of::OrphanAcquire(id) => {
                if let Some(orphan) = self.orphans.get_mut(&id) {
                    orphan.machine.handle_acquire(now, answer(result));
                }
                self.attend(id, now);
            }
            Of::OrphanRelease(id, node) => {
                if let Some(orphan) = self.orphans.get_mut(&id) {
                    if orphan.has_readers() && !self.keeper.is_ending() {
                        orphan.keep_alive(now);
                    }
                    orphan.released(received);
                }
                self.attend(id, now);
                self.ended(&node, 1, now);
            }
            Of::Lowering(asked) => {
                if let Ok(Reply::Release(ReleaseReply::NotYours)) = result {
                    asked.hold.not_yours(now, asked.member);
                    self.after(&asked.hold, now);
                }
                self.ended(&asked.hold.layout.place(asked.member).node, 1, now);
            }
            Of::Ripening(node, sent) => {
                node.ripened(sent, result);
                self.keeper.alarm.set(node.poll_timeout());
            }
        }
    }

    /// Ends the watches that are due.
    fn ripen_due(&mut self) {
        self.keeper.alarm.clear();
        for node in self.nodes.clone().iter() {
            if let Some((request, sent)) = node.next_ripening() {
                self.call(Of::Ripening(node.clone(), sent), node.call(request));
            }
        }
        let due = self.nodes.iter().map(|node| node.poll_timeout()).min();
        self.keeper.alarm.set(due.unwrap_or(Time::NEVER));
    }

    fn renewed(&mut self, renewing: Vec<Asked>, result: &Result<Reply, TransportError>, now: Time) {
        let replies = match result {
            Ok(Reply::Renew(replies)) => replies.as_slice(),
            _ => {
                if let Some(asked) = renewing.first() {
                    let node = &asked.hold.layout.place(asked.member).node;
                    let error = result.as_ref().err();
                    telemetry::renewal_failed(node.address(), error, renewing.len());
                }
                &[]
            }
        };
        let mut replies = replies.iter();
        let mut renewing = renewing.into_iter().peekable();
        while let Some(asked) = renewing.next() {
            // Many names of one hold may have been renewed at once: what follows for it is asked once.
            let next = renewing.peek();
            let is_last = next.is_none_or(|next| !Arc::ptr_eq(&next.hold, &asked.hold));
            let Asked {
                hold,
                member,
                lease,
                sent,
                ..
            } = asked;
            hold.end_ask(member);
            match replies.next() {
                Some(reply) => {
                    if *reply == RenewReply::NotYours && hold.status(now) == Status::Held {
                        let Place { node, name, .. } = hold.layout.place(member);
                        telemetry::claim_gone(name, hold.owner, node.address());
                    }
                    hold.renewed(now, member, sent, lease, *reply);
                }
                None => hold.failed(now, member),
            }
            if is_last {
                self.after(&hold, now);
            }
        }
    }

    fn answered(&mut self, asked: &Asked, sent: Sent, received: &Received) {
        if asked.answered(sent, received) {
            self.orphan(&asked.hold, asked.member, received.at);
        }
        self.after(&asked.hold, received.at);
    }

    /// A hold has changed.
    fn after(&mut self, hold: &Arc<Hold>, now: Time) {
        match hold.status(now) {
            Status::Held => self.keeper.reschedule(hold),
            Status::Lost(Lost::Closed) | Status::Releasing => {}
            Status::Lost(_) => self.give_back(hold, now),
        }
    }

    /// Registers for the next wake-up and says when it is due; `None` when there is nothing to do ever again.
    fn next_wake(&mut self, cx: &Context<'_>, now: Time) -> Option<Time> {
        let mut inner = self.keeper.inner.lock();
        match &mut inner.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        let orphans = self.orphans_due.first().map_or(Time::NEVER, |(at, _)| *at);
        let holds = match inner.due.first() {
            Some((due, _)) => (*due).min(now + TICK),
            None => Time::NEVER,
        };
        let mail = match inner.give_back {
            GiveBack::None => inner.inbox_due,
            GiveBack::OfClosedClients | GiveBack::All => now,
        };
        let queues = match inner.queues.is_empty() {
            true => self
                .queues
                .front()
                .map_or(Time::NEVER, |watched| watched.due),
            false => now,
        };
        let at = mail.min(orphans).min(holds).min(queues);
        let is_giving_back = self.is_giving_back(&inner);
        let at =
            self.keeper.alarm.sleep(
                cx.waker(),
                |watch| {
                    if is_giving_back { at } else { at.min(watch) }
                },
            );
        inner.wakes_at = at;
        let is_idle = self.calls.is_empty() && self.orphans.is_empty() && inner.inbox.is_empty();
        inner.is_idle = is_idle;
        let waiting = (is_idle && inner.holds.is_empty())
            .then(|| std::mem::take(&mut inner.waiting_for_idle));
        let others = (inner.is_closing_others && !self.has_closed_members(&inner)).then(|| {
            inner.is_closing_others = false;
            std::mem::take(&mut inner.waiting_for_others)
        });
        let is_over = is_idle && self.is_finishing() && Inner::is_empty(&inner);
        drop(inner);
        for waiting in [waiting, others].into_iter().flatten() {
            waiting.into_iter().for_each(Waker::wake);
        }
        (!is_over).then_some(at)
    }
}

impl KeeperTask {
    /// Whether what is held is being given back: which nodes are trusted does not matter any more.
    fn is_giving_back(&self, inner: &Inner) -> bool {
        inner.give_back != GiveBack::None || self.is_finishing()
    }

    fn is_finishing(&self) -> bool {
        self.keeper.phase.get() == Phase::Finishing
    }

    /// Whether claims may be left of locks of which another client was closed.
    fn has_closed_members(&self, inner: &Inner) -> bool {
        let mut holds = inner.holds.values();
        inner.give_back != GiveBack::None
            || !inner.inbox.is_empty()
            || holds.any(|kept| kept.hold.layout.is_closed())
            || self
                .orphans
                .values()
                .any(|orphan| orphan.node.party.is_closed())
    }
}

impl Inner {
    fn is_empty(&self) -> bool {
        self.holds.is_empty() && self.inbox.is_empty()
    }
}

impl Drop for KeeperTask {
    fn drop(&mut self) {
        self.keeper.die(self.runtime.now());
        // None looks at them any more: what they wait for goes to the next, who sees that the client has ended.
        for WatchedQueue { queue, .. } in self.queues.drain(..) {
            let due = queue.due();
            queue.relieve(due);
        }
    }
}

impl Future for KeeperTask {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let task = self.get_mut();
        loop {
            let now = task.runtime.now();
            task.take_messages(now);
            task.attend_due(now);
            task.relieve_due(now);
            if task.keep_due(now) {
                task.ripen_due();
            }
            while !task.calls.is_empty()
                && let Poll::Ready(Some((of, result))) = Pin::new(&mut task.calls).poll_next(cx)
            {
                let received = Received::now(result, &*task.runtime);
                task.handle(of, &received);
            }
            let Some(at) = task.next_wake(cx, now) else {
                return Poll::Ready(());
            };
            if now < at && task.timer.poll_until(cx, at).is_pending() {
                return Poll::Pending;
            }
        }
    }
}
