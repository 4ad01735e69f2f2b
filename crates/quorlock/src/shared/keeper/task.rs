//! The keeper's task.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, Stream};
use quorlock_core::quorum::MemberId;
use quorlock_core::renewal::{Ask, Lost, Status};
use quorlock_core::time::Time;
use quorlock_core::transport::{Call, Subscription};

use super::batches::{Batches, handle_renewed, is_refused_together};
use super::clean_up::{Added, CleanUp, CleanUps};
use super::late;
use super::phase::Phase;
use super::queues::WatchedQueues;
use super::under_way::{Of, Pending};
use super::windows::{Executor, Next, Windows};
use super::{Keeper, Message};
use crate::runtime::{Runtime, Timer};
use crate::shared::calls::Received;
use crate::shared::hold::{Asked, Hold, requests};
use crate::shared::layout::Node;
use crate::shared::trust::{Purpose, Sent};
use crate::telemetry;

pub(super) struct KeeperTask {
    pub(super) keeper: Arc<Keeper>,
    runtime: Arc<dyn Runtime>,
    /// The nodes that are probed.
    nodes: Arc<[Node]>,
    /// The connections to the watched nodes, from the first poll until the client is closed or dropped.
    attendances: Option<Vec<Subscription>>,
    timer: Box<dyn Timer>,
    calls: FuturesUnordered<Pending>,
    /// The number of calls that are probes. No task waits for their ends.
    probes: usize,
    pub(super) windows: Windows,
    /// An empty list with the capacity of the inbox, with which it is swapped.
    mail: Vec<Message>,
    clean_ups: CleanUps,
    queues: WatchedQueues,
    /// When the task wants to be run again.
    planned: Time,
    has_told_of_delay: bool,
}

/// How late the task may be run without a warning. A busy machine delays it by milliseconds.
const LATE: Duration = Duration::from_secs(1);

impl KeeperTask {
    pub(super) fn new(keeper: Arc<Keeper>, runtime: Arc<dyn Runtime>, nodes: Arc<[Node]>) -> Self {
        KeeperTask {
            keeper,
            timer: runtime.timer(),
            runtime,
            nodes,
            attendances: None,
            calls: FuturesUnordered::new(),
            probes: 0,
            windows: Windows::default(),
            mail: Vec::new(),
            clean_ups: CleanUps::default(),
            queues: WatchedQueues::default(),
            planned: Time::NEVER,
            has_told_of_delay: false,
        }
    }

    /// Warns if the task was run too late for what it renews.
    fn tell_of_delay(&mut self, now: Time) {
        let late = now.since(self.planned);
        if LATE < late && !self.has_told_of_delay && self.keeper.len() != 0 {
            self.has_told_of_delay = true;
            telemetry::not_run(late);
        }
    }

    pub(super) fn call(&mut self, of: Of, call: Call) {
        self.calls.push(Pending::new(of, call));
    }

    fn take_messages(&mut self, now: Time) {
        let closing = self.keeper.inner.lock().take_messages(now, &mut self.mail);
        if !self.mail.is_empty() {
            self.read_mail(now);
        }
        if let Some(closing) = closing {
            let staying = self.keeper.inner.lock().staying();
            for hold in closing {
                if staying.contains(&hold.owner.number) && !hold.is_untaken() {
                    // Its claims end with its lease.
                    hold.leak();
                }
                if hold.close(now) == Status::Held {
                    self.give_back(&hold, now);
                }
            }
        }
    }

    /// Drops the guards of holds that have stayed locked for long enough.
    fn end_stays(&self, now: Time) {
        while let Some(hold) = {
            let mut inner = self.keeper.inner.lock();
            inner.take_stayed(now)
        } {
            let (count, status) = hold.leave(now);
            self.keeper.dropped(&hold, count, status);
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
                Message::Doubted(hold, member) => self.doubted(hold, member, now),
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
            let server = Executor::at(hold.layout.place(member));
            let next = self.windows.lower(&server, hold.clone(), member);
            if let Some(Next::Lower(hold, member)) = next {
                self.lower(server, hold, member, now);
            }
        }
    }

    /// Reads the answers that were missing when the round was won, now or when they arrive.
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
        let left = CleanUp::of(hold, member, now, None);
        hold.gone_from(member);
        self.adopt(left, now);
    }

    fn adopt(&mut self, mut orphan: CleanUp, now: Time) {
        orphan.hear(&*self.runtime);
        if orphan.report_if_done(now) {
            return;
        }
        let Added {
            id,
            server,
            acquire,
            release,
        } = self.clean_ups.add(orphan);
        if let Some(call) = acquire {
            self.call(Of::OrphanAcquire(id), call);
        }
        if let Some(call) = release {
            self.windows.sent(&server);
            self.call(Of::OrphanRelease(server, id), call);
        }
        self.attend(id, now);
    }

    /// Sends the requests of an orphan that are due, and forgets the orphan when it needs no more.
    fn attend(&mut self, id: u64, now: Time) {
        let phase = self.keeper.phase.get();
        if let Some(server) = self.clean_ups.attend(id, now, phase)
            && let Some(Next::Release(id)) = self.windows.release(&server, id)
        {
            self.release(&server, id, now);
        }
    }

    /// Sends the release of an orphan. The caller must have counted it in the server's window.
    fn release(&mut self, server: &Executor, id: u64, now: Time) {
        if let Some(request) = self.clean_ups.next_release(id, now) {
            let call = server.node().call(request);
            self.call(Of::OrphanRelease(server.clone(), id), call);
        } else {
            // The release waited for too long, or its acquire was refused and the orphan is forgotten. Free its room
            // in the window: otherwise a server that refused 1,024 of them would be sent no more releases.
            self.windows.ended(server, 1);
            self.attend(id, now);
        }
    }

    /// Handles the end of requests with `claims` claims, and sends requests that waited for the room.
    pub(super) fn ended(&mut self, server: &Executor, claims: usize, now: Time) {
        self.windows.ended(server, claims);
        let mut batches = Batches::new();
        while let Some(next) = self.windows.next(server) {
            match next {
                Next::Ask(hold, member) => self.ask(server, hold, member, now, &mut batches),
                Next::Release(id) => self.release(server, id, now),
                Next::Lower(hold, member) => self.lower(server.clone(), hold, member, now),
            }
        }
        self.renew_all(batches);
    }

    fn attend_due(&mut self, now: Time) {
        while let Some(id) = self.clean_ups.take_due(now) {
            self.attend(id, now);
        }
    }

    /// Passes over first waiters that were woken a while ago and not polled, although others wait for them.
    fn relieve_due(&mut self, now: Time) {
        let news = std::mem::take(&mut self.keeper.inner.lock().queues);
        self.queues.watch(news, now);
        self.queues.relieve_due(now);
    }

    /// Renews what is due, and ends what is over. Returns whether the probe of a node is due, too.
    fn keep_due(&mut self, now: Time) -> bool {
        let mut batches = Batches::new();
        let is_probe_due = loop {
            let hold = {
                let inner = self.keeper.inner.lock();
                match inner.next_due(now) {
                    Some(hold) => hold,
                    None => {
                        let is_giving_back = inner.is_giving_back(self.keeper.phase.get());
                        break !is_giving_back && self.keeper.alarm.due() <= now;
                    }
                }
            };
            match hold.status(now) {
                Status::Held => {
                    self.adopt_late(&hold);
                    self.watch(&hold, now);
                    for member in hold.take_due(now) {
                        let server = Executor::at(hold.layout.place(member));
                        let next = self.windows.ask(&server, hold.clone(), member);
                        if let Some(Next::Ask(hold, member)) = next {
                            self.ask(&server, hold, member, now, &mut batches);
                        }
                    }
                    self.keeper.reschedule(&hold);
                }
                Status::Lost(_) => self.give_back(&hold, now),
                // The caller that gave up the last guard forgets the hold, after it has passed on or sent the
                // release. Suppose the hold were forgotten here. A drops the guard and is suspended in the middle; B
                // closes the client and finds nothing left, although the claim still exists.
                Status::Releasing => self.keeper.reschedule(&hold),
            }
        };
        self.renew_all(batches);
        is_probe_due
    }

    /// Sends a renewal or re-acquire to a member of a hold. The caller must have counted it in the server's window.
    fn ask(
        &mut self,
        server: &Executor,
        hold: Arc<Hold>,
        member: MemberId,
        now: Time,
        batches: &mut Batches,
    ) {
        // `now` is from before the request, so the new term ends before the node's claim does.
        let Some((ask, stated)) = hold.ask(now, member) else {
            self.windows.ended(server, 1);
            return;
        };
        let asked = Asked {
            hold: hold.clone(),
            member,
            asking: Purpose::Missing,
            lease: stated.lease,
            sent: now,
        };
        let place = hold.layout.place(member);
        match ask {
            Ask::Renew => {
                let claim = requests::claim(&hold, member, stated);
                batches.add(server.clone(), place, claim, asked);
            }
            Ask::Reacquire => {
                let (request, sent) = requests::reacquire(&hold, member, stated);
                let call = place.node.call(request);
                self.call(Of::Reacquire(server.clone(), asked, sent), call);
            }
        }
    }

    fn renew_all(&mut self, batches: Batches) {
        for (server, renewing, call) in batches.send() {
            self.call(Of::Renewal(server, renewing), call);
        }
    }

    /// Handles the result of a renewal, or renews its claims one by one.
    fn renewed(&mut self, server: &Executor, renewing: Vec<Asked>, received: &Received) {
        let now = received.at;
        let mut claims = renewing.len();
        if is_refused_together(&renewing, received) {
            // They stay counted in the window. Each states a new number: the refused request may have been executed in
            // part, and the same number twice would let B take the claim over a lease after the first.
            claims = 0;
            let mut apart = Batches::of_one();
            for Asked { hold, member, .. } in renewing {
                self.ask(server, hold, member, now, &mut apart);
            }
            self.renew_all(apart);
        } else {
            handle_renewed(renewing, received, |hold| self.after(hold, now));
        }
        self.ended(server, claims, now);
    }

    fn handle(&mut self, of: Of, received: &Received) {
        let Received { result, at: now } = received;
        let now = *now;
        match of {
            Of::Renewal(server, renewing) => self.renewed(&server, renewing, received),
            Of::Reacquire(server, asked, sent) => {
                self.answered(&asked, sent, received);
                // After the answer: the hold passes to another caller as soon as nothing is asked, and would not hear it.
                asked.hold.end_ask(asked.member);
                self.ended(&server, 1, now);
            }
            Of::Late(asked, sent) => self.answered(&asked, sent, received),
            Of::OrphanAcquire(id) => {
                self.clean_ups.handle_acquire(id, received);
                self.attend(id, now);
            }
            Of::OrphanRelease(server, id) => {
                let phase = self.keeper.phase.get();
                self.clean_ups.handle_release(id, received, phase);
                self.attend(id, now);
                self.ended(&server, 1, now);
            }
            Of::Lowering(server, asked) => self.lowered(&server, &asked, received),
            Of::Probe(node, sent) => {
                self.probes = self.probes.saturating_sub(1);
                let change = node.probed(sent, result);
                telemetry::trust_changed(node.address(), change);
                self.keeper.alarm.set(node.poll_timeout());
            }
        }
    }

    /// Attends to the watched nodes until the client is closed or dropped.
    fn attend_to_nodes(&mut self) {
        if self.keeper.phase.get() != Phase::Running {
            self.attendances = None;
        } else if self.attendances.is_none() {
            let nodes = self.nodes.iter();
            self.attendances = Some(nodes.filter_map(|node| node.attend_to_probe()).collect());
            self.set_alarm();
        }
    }

    /// Sends the probes that are due.
    fn probe_due(&mut self) {
        self.keeper.alarm.clear();
        for node in self.nodes.clone().iter() {
            if let Some((request, sent)) = node.next_probe() {
                telemetry::probing(node.address(), &request);
                self.probes += 1;
                self.call(Of::Probe(node.clone(), sent), node.call(request));
            }
        }
        self.set_alarm();
    }

    fn set_alarm(&self) {
        let due = self.nodes.iter().map(|node| node.poll_timeout()).min();
        self.keeper.alarm.set(due.unwrap_or(Time::NEVER));
    }

    fn answered(&mut self, asked: &Asked, sent: Sent, received: &Received) {
        if late::answered(asked, sent, received) {
            self.orphan(&asked.hold, asked.member, received.at);
        }
        self.after(&asked.hold, received.at);
    }

    /// Handles a change of a hold.
    pub(super) fn after(&mut self, hold: &Arc<Hold>, now: Time) {
        match hold.status(now) {
            Status::Held => self.keeper.reschedule(hold),
            Status::Lost(Lost::Closed) | Status::Releasing => {}
            Status::Lost(_) => self.give_back(hold, now),
        }
    }

    /// Registers for the next wake-up and returns when it is due; `None` if the task is done.
    fn next_wake(&mut self, cx: &Context<'_>, now: Time) -> Option<Time> {
        let mut inner = self.keeper.inner.lock();
        match &mut inner.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        let at = inner.poll_timeout(now);
        let at = at
            .min(self.keeper.contended.poll_timeout())
            .min(self.clean_ups.poll_timeout())
            .min(self.queues.poll_timeout());
        let phase = self.keeper.phase.get();
        let is_giving_back = inner.is_giving_back(phase);
        let at =
            self.keeper.alarm.sleep(
                cx.waker(),
                |probe| {
                    if is_giving_back { at } else { at.min(probe) }
                },
            );
        inner.wakes_at = at;
        let is_idle =
            self.calls.len() == self.probes && self.clean_ups.is_empty() && inner.inbox.is_empty();
        inner.is_idle = is_idle;
        let waiting = inner.take_waiting(is_idle, || self.clean_ups.has_closed_node());
        let is_over = is_idle && phase == Phase::Finishing && inner.is_empty();
        drop(inner);
        waiting.into_iter().for_each(Waker::wake);
        (!is_over).then_some(at)
    }
}

impl Drop for KeeperTask {
    fn drop(&mut self) {
        self.keeper.die(self.runtime.now());
        self.queues.relieve_all();
    }
}

impl Future for KeeperTask {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let task = self.get_mut();
        task.tell_of_delay(task.runtime.now());
        loop {
            let now = task.runtime.now();
            task.attend_to_nodes();
            task.end_stays(now);
            task.take_messages(now);
            task.attend_due(now);
            task.relieve_due(now);
            task.keeper.contended.end_due(now);
            if task.keep_due(now) {
                task.probe_due();
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
            task.planned = at;
            if now < at && task.timer.poll_until(cx, at).is_pending() {
                return Poll::Pending;
            }
        }
    }
}
