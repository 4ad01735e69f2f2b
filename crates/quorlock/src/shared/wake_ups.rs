//! Wake-ups for one acquisition from all members of its lock.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Weak};
use std::task::{Context, Waker};

use quorlock_core::message::{Channel, Wake};
use quorlock_core::owner::OwnerId;
use quorlock_core::quorum::{MemberId, Members};
use quorlock_core::transport::{Listener, Subscription, Witness};

use crate::mutex::Mutex;
use crate::shared::layout::{Layout, Place};
use crate::sync::atomic::{AtomicBool, Ordering};

/// The subscriptions to every member, and the messages that they received.
pub(crate) struct WakeUps {
    heard: Arc<ReceivedWakeUps>,
    /// While rounds fail: watches that report when a node is reachable again.
    attendances: Vec<Subscription>,
    /// The waker that was registered last.
    waker: Waker,
    is_live: bool,
    subscriptions: Vec<Option<Subscription>>,
}

/// How many messages certain subscriptions had received at some moment.
#[derive(Debug)]
pub(crate) struct HeardBefore {
    of: Weak<ReceivedWakeUps>,
    /// The number of messages from each member.
    counts: Vec<u64>,
}

struct ReceivedWakeUps {
    members: Arc<Members>,
    /// Whether the state has changed since the last look. If not, which is usual, the look locks no mutex.
    has_changed: AtomicBool,
    /// Whether a node has become reachable again.
    has_returned: AtomicBool,
    state: Mutex<ListenerState>,
}

struct ListenerState {
    live: Vec<bool>,
    /// The number of the current subscription to each member.
    present: Vec<u64>,
    /// Whether enough subscriptions have been live in every group.
    is_live: bool,
    woken: Vec<MemberId>,
    /// The number of messages from each member.
    heard: Vec<u64>,
    /// Members whose next message is the one that this client's own release publishes.
    own: Vec<MemberId>,
    waker: Waker,
}

struct MemberListener {
    heard: Arc<ReceivedWakeUps>,
    member: MemberId,
    /// The number of this subscription to the member. Late messages of an earlier one are ignored.
    number: u64,
}

impl WakeUps {
    /// Whether enough subscriptions are live.
    pub(crate) fn is_live(&self) -> bool {
        self.is_live
    }

    /// Stops waking tasks until the next `listen`. Messages received before that are dropped, because the
    /// acquisition that takes the subscriptions over sends a request first.
    pub(crate) fn rest(&mut self) {
        self.leave();
        self.waker = Waker::noop().clone();
        let mut state = self.heard.state.lock();
        state.waker = self.waker.clone();
        state.woken.clear();
    }

    /// Returns the number of messages so far.
    pub(crate) fn heard(&self) -> HeardBefore {
        HeardBefore {
            of: Arc::downgrade(&self.heard),
            counts: self.heard.state.lock().heard.clone(),
        }
    }

    /// Returns how many messages `before` counted from this member; `None` if it belongs to other subscriptions.
    pub(crate) fn count(&self, before: &HeardBefore, member: MemberId) -> Option<u64> {
        let is_same = std::ptr::eq(before.of.as_ptr(), Arc::as_ptr(&self.heard));
        is_same.then(|| member.get(&before.counts).copied())?
    }

    /// Drops the messages so far. For members in `released`, also ignores the next message, if none has come since
    /// the release: it is the one that this client's own release published.
    pub(crate) fn forget(&mut self, released: &[(MemberId, u64)]) {
        let mut state = self.heard.state.lock();
        state.woken.clear();
        let own = released.iter().filter(|(member, before)| {
            let heard = member.get(&state.heard);
            heard.is_some_and(|heard| heard <= before)
        });
        state.own = own.map(|(member, _)| *member).collect();
    }

    /// Creates the subscriptions' state, without subscribing.
    pub(crate) fn new(layout: &Layout) -> Self {
        WakeUps::of(layout.members.clone())
    }

    fn of(members: Arc<Members>) -> Self {
        let len = members.len();
        let state = ListenerState {
            live: vec![false; len],
            present: vec![0; len],
            is_live: false,
            woken: Vec::new(),
            heard: vec![0; len],
            own: Vec::new(),
            waker: Waker::noop().clone(),
        };
        let heard = ReceivedWakeUps {
            members,
            has_changed: AtomicBool::new(false),
            has_returned: AtomicBool::new(false),
            state: Mutex::new(state),
        };
        WakeUps {
            heard: Arc::new(heard),
            attendances: Vec::new(),
            waker: Waker::noop().clone(),
            is_live: false,
            subscriptions: (0..len).map(|_| None).collect(),
        }
    }

    /// Subscribes to every member without a subscription, on the channel for this owner. Returns whether there were
    /// any.
    pub(crate) fn subscribe(&mut self, layout: &Layout, owner: OwnerId) -> bool {
        self.subscribe_to(layout, |at| Channel::of(&at.name, at.mode, owner))
    }

    /// Subscribes to the loss of this owner's claim on every member without a subscription.
    pub(crate) fn subscribe_to_losses(&mut self, layout: &Layout, owner: OwnerId) {
        self.subscribe_to(layout, |at| Channel::Claim(at.name.clone(), at.mode, owner));
    }

    fn subscribe_to(&mut self, layout: &Layout, channel: impl Fn(&Place) -> Channel) -> bool {
        let mut is_news = false;
        for (place, (member, at)) in self.subscriptions.iter_mut().zip(layout.all()) {
            if place.is_some() {
                continue;
            }
            is_news = true;
            let number = {
                let state = self.heard.state.lock();
                member.get(&state.present).copied().unwrap_or_default()
            };
            let ear = MemberListener {
                heard: self.heard.clone(),
                member,
                number,
            };
            *place = Some(at.node.subscribe(&channel(at), Arc::new(ear)));
        }
        is_news
    }

    /// Starts watching for nodes that become reachable again.
    pub(crate) fn attend(&mut self, layout: &Layout) {
        if !self.attendances.is_empty() {
            return;
        }
        self.heard.has_returned.store(false, Ordering::Relaxed);
        let mut nodes = BTreeSet::new();
        for (_, place) in layout.all() {
            // Once per node: a lock may have 10,000 names on one node.
            if nodes.insert(Arc::as_ptr(&place.node)) {
                self.attendances.push(place.node.attend(self.heard.clone()));
            }
        }
    }

    /// Stops watching for nodes.
    pub(crate) fn leave(&mut self) {
        self.attendances.clear();
    }

    /// Whether a node has become reachable since the last call. The task is woken when one does.
    pub(crate) fn take_return(&mut self) -> bool {
        !self.attendances.is_empty() && self.heard.has_returned.swap(false, Ordering::Acquire)
    }

    /// Unsubscribes from these members.
    pub(crate) fn unsubscribe(&mut self, members: &[MemberId]) {
        for member in members {
            let ended = member
                .get_mut(&mut self.subscriptions)
                .and_then(Option::take);
            if ended.is_none() {
                continue;
            }
            let mut state = self.heard.state.lock();
            if let Some(live) = member.get_mut(&mut state.live) {
                *live = false;
            }
            if let Some(present) = member.get_mut(&mut state.present) {
                *present += 1;
            }
            state.woken.retain(|woken| woken != member);
            state.is_live = false;
            drop(state);
            self.is_live = false;
        }
    }

    /// Passes on the members that were woken since the last call. Returns whether enough subscriptions have been
    /// live. The task is woken at the next change.
    pub(crate) fn listen(&mut self, cx: &Context<'_>, woken: impl FnMut(MemberId)) -> bool {
        let is_registered = self.waker.will_wake(cx.waker());
        if is_registered && !self.heard.has_changed.load(Ordering::Acquire) {
            return self.is_live;
        }
        let mut state = self.heard.state.lock();
        self.heard.has_changed.store(false, Ordering::Relaxed);
        if !is_registered {
            self.waker.clone_from(cx.waker());
            state.waker.clone_from(cx.waker());
        }
        state.woken.drain(..).for_each(woken);
        self.is_live = state.is_live;
        self.is_live
    }
}

impl MemberListener {
    fn hear(&self, change: impl FnOnce(&mut ListenerState)) {
        let mut state = self.heard.state.lock();
        if self.member.get(&state.present) != Some(&self.number) {
            return;
        }
        change(&mut state);
        self.heard.has_changed.store(true, Ordering::Release);
        let waker = state.waker.clone();
        // Wake without the mutex: the waker may poll A's attempt on this thread, which locks the state in `listen`.
        drop(state);
        waker.wake();
    }

    fn woken(&self, state: &mut ListenerState) {
        if !state.woken.contains(&self.member) {
            state.woken.push(self.member);
        }
    }
}

impl Listener for MemberListener {
    fn live(&self) {
        self.hear(|state| {
            if let Some(live) = self.member.get_mut(&mut state.live) {
                *live = true;
            }
            state.is_live = self.heard.members.groups().all(|group| {
                let live = group.slice(&state.live).iter().filter(|live| **live);
                group.threshold().needed() <= live.count()
            });
            // The message of this client's own release may have been missed, too.
            state.own.retain(|own| *own != self.member);
            // The holder may have released between A's refusal and this moment. A would miss that message and sleep
            // until its poll cap, so a subscription that becomes live counts as a wake-up.
            self.woken(state);
        });
    }

    fn wake(&self, _: Wake) {
        self.hear(|state| {
            if let Some(heard) = self.member.get_mut(&mut state.heard) {
                *heard += 1;
            }
            match state.own.iter().position(|own| *own == self.member) {
                Some(own) => drop(state.own.swap_remove(own)),
                None => self.woken(state),
            }
        });
    }
}

impl Witness for ReceivedWakeUps {
    fn reachable(&self) {
        self.has_returned.store(true, Ordering::Release);
        let waker = self.state.lock().waker.clone();
        waker.wake();
    }
}

impl fmt::Debug for WakeUps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WakeUps")
    }
}

#[cfg(all(test, shuttle))]
mod threads {
    use std::future::poll_fn;
    use std::task::Poll;

    use quorlock_core::quorum::Threshold;

    use super::*;

    #[test]
    fn no_wake_up_is_missed_by_the_one_that_listens() {
        let name = "no_wake_up_is_missed_by_the_one_that_listens";
        quorlock_explore::explore_all(name, 20_000, async || {
            let members = Arc::new(Members::new([Threshold::majority(1)]));
            let mut ears = WakeUps::of(members.clone());
            let member = members.at(0).unwrap();
            let ear = MemberListener {
                heard: ears.heard.clone(),
                member,
                number: 0,
            };
            drop(shuttle::future::spawn(async move {
                ear.live();
                ear.wake(Wake::Unlocked);
            }));
            let mut woken = false;
            let listening = poll_fn(|cx| {
                let is_live = ears.listen(cx, |_| woken = true);
                match is_live && woken {
                    true => Poll::Ready(()),
                    false => Poll::Pending,
                }
            });
            listening.await;
        });
    }
}
