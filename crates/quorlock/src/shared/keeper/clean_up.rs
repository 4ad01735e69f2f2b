//! Clean-up of claims that may exist for owners that have given up.

use std::collections::{BTreeMap, BTreeSet};
use std::task::Poll;
use std::time::Duration;

use quorlock_core::message::{Mode, Release, ReleaseReply, Reply, Request};
use quorlock_core::name::Name;
use quorlock_core::orphan::Orphan;
use quorlock_core::owner::OwnerId;
use quorlock_core::quorum::MemberId;
use quorlock_core::time::Time;
use quorlock_core::transport::Call;

use super::phase::Phase;
use super::windows::Executor;
use crate::runtime::Runtime;
use crate::shared::calls::{Received, poll_once};
use crate::shared::hold::Hold;
use crate::shared::layout::{Node, Place};
use crate::shared::trust::answer;
use crate::shared::under::Readers;
use crate::telemetry;

/// The last acquire of an owner that has given up.
pub(crate) enum LastAcquire {
    Answered,
    /// It ended without an answer that rules out a claim.
    Lost,
    Unanswered(Call),
}

/// A claim that may exist on a node for an owner that has given up.
pub(crate) struct CleanUp {
    machine: Orphan,
    node: Node,
    name: Name,
    mode: Mode,
    owner: OwnerId,
    /// How long nodes keep what is left behind: a lease, or the place of a waiter.
    kept: Duration,
    /// The owner's read holds, whose renewals keep the claim alive.
    readers: Option<Readers>,
    acquire: Option<Call>,
    release: Option<Call>,
}

impl CleanUp {
    /// Creates the clean-up of what an owner may have left behind on a member, which the node keeps for this long.
    pub(crate) fn new(
        place: &Place,
        owner: OwnerId,
        now: Time,
        kept: Duration,
        acquire: LastAcquire,
    ) -> Self {
        let gone = place.node.gone(now, kept);
        let (machine, acquire) = match acquire {
            LastAcquire::Answered => (Orphan::new(now, gone), None),
            LastAcquire::Lost => (Orphan::lost(now, gone), None),
            LastAcquire::Unanswered(call) => (Orphan::unanswered(now, gone), Some(call)),
        };
        CleanUp {
            machine,
            node: place.node.clone(),
            name: place.name.clone(),
            mode: place.mode,
            owner,
            kept,
            readers: None,
            acquire,
            release: None,
        }
    }

    /// Creates the clean-up of a waiter that has a place in the queue of a fair lock on a member.
    pub(crate) fn of_waiter(
        place: &Place,
        owner: OwnerId,
        now: Time,
        kept: Duration,
        acquire: LastAcquire,
    ) -> Self {
        let mut orphan = CleanUp::new(place, owner, now, kept, acquire);
        orphan.machine = orphan.machine.with_place();
        orphan
    }

    /// Creates the clean-up of an ended hold's claim on a member. The hold may have an acquire there that has not been
    /// answered.
    pub(crate) fn of(hold: &Hold, member: MemberId, now: Time, acquire: Option<Call>) -> Self {
        let place = hold.layout.place(member);
        let acquire = match acquire {
            Some(call) => LastAcquire::Unanswered(call),
            None if hold.is_unanswered_on(member) => LastAcquire::Lost,
            None => LastAcquire::Answered,
        };
        let mut orphan = CleanUp::new(place, hold.owner, now, hold.lease().length(), acquire);
        if place.mode == Mode::Write {
            orphan.readers = Some(hold.readers().clone());
        }
        orphan
    }

    /// Keeps the clean-up going while the owner still reads beside this write claim.
    ///
    /// To the node both are one hash, which the reader's renewals extend, so the claim does not end with its lease.
    /// After a failed release it would keep B out until the reader ends. So the release is retried until the reader
    /// or the client ends.
    fn outlast_readers(&mut self, now: Time, phase: Phase) {
        let has_readers = self.readers.as_ref().is_some_and(Readers::are_there);
        if has_readers && phase == Phase::Running {
            self.machine.keep_alive(self.node.gone(now, self.kept));
        }
    }

    /// Adds the release that was already sent.
    pub(crate) fn with_release(mut self, now: Time, call: Call, clock: &dyn Runtime) -> Self {
        self.machine.next_release(now);
        self.release = Some(call);
        self.hear(clock);
        self
    }

    /// Adds the reply to a release that was already sent.
    pub(crate) fn with_reply(mut self, now: Time, reply: ReleaseReply) -> Self {
        self.machine.next_release(now);
        self.machine.handle_release(now, reply);
        self
    }

    /// Sends the release now, so that it precedes whatever the caller sends next.
    pub(crate) fn send_release(&mut self, now: Time, clock: &dyn Runtime) {
        if self.machine.next_release(now) {
            self.release = Some(self.node.call(self.release_request()));
        }
        self.hear(clock);
    }

    /// Takes in the answers that have arrived.
    pub(super) fn hear(&mut self, clock: &dyn Runtime) {
        if let Some(call) = &mut self.acquire
            && let Poll::Ready(received) = poll_once(call, clock)
        {
            self.acquire = None;
            let answer = answer(&received.result);
            self.machine.handle_acquire(received.at, answer);
        }
        if let Some(call) = &mut self.release
            && let Poll::Ready(received) = poll_once(call, clock)
        {
            self.release = None;
            self.released(&received);
        }
    }

    /// Whether a release is in flight.
    pub(super) fn is_releasing(&self) -> bool {
        self.release.is_some()
    }

    /// Whether nothing is left to do. If so, reports the end of the clean-up to operators.
    pub(super) fn report_if_done(&self, now: Time) -> bool {
        let is_done = self.machine.is_done(now);
        if is_done {
            telemetry::orphan_cleaned(&self.name, self.owner, self.node.address());
        }
        is_done
    }

    /// The server that executes the next release.
    fn server(&self) -> Executor {
        Executor::of(&self.node, &self.name)
    }

    fn release_request(&self) -> Request {
        Request::Release(Release {
            name: self.name.clone(),
            mode: self.mode,
            owner: self.owner,
            count: 0,
        })
    }

    fn released(&mut self, Received { result, at }: &Received) {
        match result {
            Ok(Reply::Release(reply)) => self.machine.handle_release(*at, *reply),
            _ => self.machine.handle_failed(*at),
        }
    }
}

/// The claims that the keeper cleans up, by number.
#[derive(Default)]
pub(super) struct CleanUps {
    orphans: BTreeMap<u64, CleanUp>,
    due: BTreeSet<(Time, u64)>,
    next: u64,
}

/// A claim that was just added, with its calls in flight.
pub(super) struct Added {
    pub(super) id: u64,
    pub(super) server: Executor,
    pub(super) acquire: Option<Call>,
    pub(super) release: Option<Call>,
}

impl CleanUps {
    /// Adds a claim. The caller must poll the returned calls.
    pub(super) fn add(&mut self, mut orphan: CleanUp) -> Added {
        let id = self.next;
        self.next += 1;
        let added = Added {
            id,
            server: orphan.server(),
            acquire: orphan.acquire.take(),
            release: orphan.release.take(),
        };
        self.orphans.insert(id, orphan);
        added
    }

    /// Removes and returns the next number that is due.
    pub(super) fn take_due(&mut self, now: Time) -> Option<u64> {
        let (_, id) = self.due.first().filter(|(at, _)| *at <= now)?;
        let id = *id;
        self.due.pop_first();
        Some(id)
    }

    /// Removes a claim for which nothing is left to do. Returns its server if a release is due now.
    pub(super) fn attend(&mut self, id: u64, now: Time, phase: Phase) -> Option<Executor> {
        let orphan = self.orphans.get_mut(&id)?;
        orphan.outlast_readers(now, phase);
        if orphan.machine.is_due(now) {
            return Some(orphan.server());
        }
        if orphan.report_if_done(now) {
            self.orphans.remove(&id);
            return None;
        }
        let at = orphan.machine.poll_timeout();
        if at != Time::NEVER {
            self.due.insert((at, id));
        }
        None
    }

    /// The release to send; `None` if the request waited in the window for too long, or if the acquire was
    /// refused by now.
    pub(super) fn next_release(&mut self, id: u64, now: Time) -> Option<Request> {
        let orphan = self.orphans.get_mut(&id)?;
        let is_sent = orphan.machine.next_release(now);
        is_sent.then(|| orphan.release_request())
    }

    /// Handles the result of a claim's acquire.
    pub(super) fn handle_acquire(&mut self, id: u64, received: &Received) {
        if let Some(orphan) = self.orphans.get_mut(&id) {
            let answer = answer(&received.result);
            orphan.machine.handle_acquire(received.at, answer);
        }
    }

    /// Handles the result of a claim's release.
    pub(super) fn handle_release(&mut self, id: u64, received: &Received, phase: Phase) {
        if let Some(orphan) = self.orphans.get_mut(&id) {
            orphan.outlast_readers(received.at, phase);
            orphan.released(received);
        }
    }

    /// When the next claim is due.
    pub(super) fn poll_timeout(&self) -> Time {
        self.due.first().map_or(Time::NEVER, |(at, _)| *at)
    }

    /// Whether there is no claim to clean up.
    pub(super) fn is_empty(&self) -> bool {
        self.orphans.is_empty()
    }

    /// Whether a node of a closed client may have a claim.
    pub(super) fn has_closed_node(&self) -> bool {
        let mut orphans = self.orphans.values();
        orphans.any(|orphan| orphan.node.party.is_closed())
    }
}
