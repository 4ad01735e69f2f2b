//! Claims that may stand for owners that have given up, until they are released or have expired.

use std::collections::{BTreeMap, BTreeSet};
use std::task::Poll;

use quorlock_core::lease::Lease;
use quorlock_core::message::{Mode, Release, Reply, Request};
use quorlock_core::name::Name;
use quorlock_core::orphan::Orphan;
use quorlock_core::owner::OwnerId;
use quorlock_core::quorum::MemberId;
use quorlock_core::time::Time;
use quorlock_core::transport::Call;

use super::phase::Phase;
use crate::runtime::Runtime;
use crate::shared::calls::{Received, poll_once};
use crate::shared::hold::Hold;
use crate::shared::layout::{Member, Node};
use crate::shared::trust::answer;
use crate::shared::under::Readers;
use crate::telemetry;

/// A claim that may stand on a node for an owner that has given up.
pub(crate) struct CleanUp {
    machine: Orphan,
    node: Node,
    name: Name,
    mode: Mode,
    owner: OwnerId,
    lease: Lease,
    /// Whose renewals keep the claim alive.
    readers: Option<Readers>,
    acquire: Option<Call>,
    release: Option<Call>,
}

impl CleanUp {
    /// The claim of `owner` on a member for `lease`, perhaps with its acquire under way.
    pub(crate) fn new(
        place: &Member,
        owner: OwnerId,
        now: Time,
        lease: Lease,
        acquire: Option<Call>,
    ) -> Self {
        let gone = place.node.gone(now, lease);
        let machine = match acquire {
            Some(_) => Orphan::unanswered(now, gone),
            None => Orphan::new(now, gone),
        };
        CleanUp {
            machine,
            node: place.node.clone(),
            name: place.name.clone(),
            mode: place.mode,
            owner,
            lease,
            readers: None,
            acquire,
            release: None,
        }
    }

    /// The claim of a hold that has ended on a member.
    pub(crate) fn of(hold: &Hold, member: MemberId, now: Time, acquire: Option<Call>) -> Self {
        let place = hold.layout.place(member);
        let mut orphan = CleanUp::new(place, hold.owner, now, hold.lease(), acquire);
        if place.mode == Mode::Write {
            orphan.readers = Some(hold.readers().clone());
        }
        orphan
    }

    /// The release of a writer failed, and its own reader goes on: the claim does not end with its lease, as the
    /// renewals of that extend the hash in which both are. It is not given up before the reader has ended, or the client
    /// ends.
    fn outlast_readers(&mut self, now: Time, phase: Phase) {
        let has_readers = self.readers.as_ref().is_some_and(Readers::are_there);
        if has_readers && phase == Phase::Running {
            self.machine.keep_alive(self.node.gone(now, self.lease));
        }
    }

    /// The same with its release under way already.
    pub(crate) fn with_release(mut self, now: Time, call: Call, clock: &dyn Runtime) -> Self {
        self.machine.next_release(now);
        self.release = Some(call);
        self.hear(clock);
        self
    }

    /// Sends the release now, so that it precedes whatever the caller sends next.
    pub(crate) fn send_release(&mut self, now: Time, clock: &dyn Runtime) {
        if self.machine.next_release(now) {
            self.release = Some(self.node.call(self.release_request()));
        }
        self.hear(clock);
    }

    /// Takes in the answers that have come.
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

    /// Whether its release has been sent.
    pub(super) fn is_releasing(&self) -> bool {
        self.release.is_some()
    }

    /// Tells operators if nothing is left to do, and returns whether it is so.
    pub(super) fn report_if_done(&self, now: Time) -> bool {
        let is_done = self.machine.is_done(now);
        if is_done {
            telemetry::orphan_cleaned(&self.name, self.owner, self.node.address());
        }
        is_done
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

/// A claim that has just been added.
pub(super) struct Added {
    pub(super) id: u64,
    pub(super) node: Node,
    pub(super) acquire: Option<Call>,
    pub(super) release: Option<Call>,
}

impl CleanUps {
    /// Adds a claim. What is under way for it is the caller's to poll.
    pub(super) fn add(&mut self, mut orphan: CleanUp) -> Added {
        let id = self.next;
        self.next += 1;
        let added = Added {
            id,
            node: orphan.node.clone(),
            acquire: orphan.acquire.take(),
            release: orphan.release.take(),
        };
        self.orphans.insert(id, orphan);
        added
    }

    /// The next claim that is due.
    pub(super) fn take_due(&mut self, now: Time) -> Option<u64> {
        let (_, id) = self.due.first().filter(|(at, _)| *at <= now)?;
        let id = *id;
        self.due.pop_first();
        Some(id)
    }

    /// Forgets a claim for which nothing is left to do. Returns the node from which it is released now, if it is.
    pub(super) fn attend(&mut self, id: u64, now: Time, phase: Phase) -> Option<Node> {
        let orphan = self.orphans.get_mut(&id)?;
        orphan.outlast_readers(now, phase);
        if orphan.machine.is_due(now) {
            return Some(orphan.node.clone());
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

    /// The release to send; `None` when it has waited for too long, or its acquire was refused meanwhile.
    pub(super) fn next_release(&mut self, id: u64, now: Time) -> Option<Request> {
        let orphan = self.orphans.get_mut(&id)?;
        let is_sent = orphan.machine.next_release(now);
        is_sent.then(|| orphan.release_request())
    }

    /// The acquire of a claim has ended.
    pub(super) fn handle_acquire(&mut self, id: u64, received: &Received) {
        if let Some(orphan) = self.orphans.get_mut(&id) {
            let answer = answer(&received.result);
            orphan.machine.handle_acquire(received.at, answer);
        }
    }

    /// The release of a claim has ended.
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

    /// Whether a claim may stand on a node of a client that was closed.
    pub(super) fn has_closed_node(&self) -> bool {
        let mut orphans = self.orphans.values();
        orphans.any(|orphan| orphan.node.party.is_closed())
    }
}
