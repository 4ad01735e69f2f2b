//! What a client concludes from what one node shows about itself.

use std::sync::Arc;

use quorlock_core::lease::Lease;
use quorlock_core::longest_lease::{LongestLease, Step};
use quorlock_core::marker::{Act, Check, Figures, Nonce, Process, Restarts, Shown};
use quorlock_core::time::Time;
use quorlock_core::trust::{Counts, Trust, Why};

use crate::error::Quarantine;
use crate::mutex::Mutex;
use crate::shared::alarm::Alarm;

/// When a request was sent, by the clock of the client that owns the node.
///
/// It must only be compared with readings of that clock: a lock may have members of several clients, whose clocks
/// differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sent(pub(super) Time);

/// The watch of one node.
pub(super) struct Watch {
    index: usize,
    shared: Arc<WatchSettings>,
}

/// A change of trust in a node. The caller reports it to operators, because telemetry is above the stored state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TrustChange {
    /// The node's votes do not count from now on.
    Quarantined(Quarantine),
    /// The node's votes count again.
    Trusted,
}

/// What the watched nodes of one client have in common.
struct WatchSettings {
    /// The alarm, which is set for the next probe of each node.
    alarm: Arc<Alarm>,
    /// What the nodes have shown about the longest lease. Locked after the state of a node.
    longest: Mutex<LongestLease>,
    trusts_fresh: bool,
    restarts: Restarts,
    /// The process of each trusted node.
    processes: Mutex<Vec<Option<Process>>>,
}

/// The settings by which nodes are watched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watching {
    pub(crate) longest: Lease,
    /// Whether the nodes are asked to grant leases up to `longest`, if they grant shorter ones only.
    pub(crate) raises: bool,
    pub(crate) trusts_fresh: bool,
    pub(crate) restarts: Restarts,
}

impl Watching {
    /// Returns one watch for each node of a client.
    pub(super) fn begin(self, nodes: usize, alarm: &Arc<Alarm>) -> impl Iterator<Item = Watch> {
        let shared = Arc::new(WatchSettings {
            alarm: alarm.clone(),
            longest: Mutex::new(LongestLease::new(self.longest.length(), self.raises, nodes)),
            trusts_fresh: self.trusts_fresh,
            restarts: self.restarts,
            processes: Mutex::new(vec![None; nodes]),
        });
        (0..nodes).map(move |index| Watch {
            index,
            shared: shared.clone(),
        })
    }
}

impl Watch {
    /// Returns what restarts keep, by the assertion of the operator.
    pub(super) fn restarts(&self) -> Restarts {
        self.shared.restarts
    }

    /// Returns how a node without a marker is marked.
    pub(super) fn mark(&self, nonce: Nonce) -> Act {
        if self.shared.trusts_fresh {
            Act::MarkFresh(nonce)
        } else {
            Act::Mark(nonce)
        }
    }

    /// Sets the alarm for the next probe.
    pub(super) fn probe_at(&self, due: Time) {
        self.shared.alarm.set(due);
    }

    /// Returns the trust in a node that has not been contacted.
    pub(super) fn trust(&self) -> Trust {
        Trust::new(&self.shared.longest.lock())
    }

    /// Tells `trust` what the client knows about the longest lease, and returns what a request states about it.
    ///
    /// Both at once: otherwise another node could show a longer lease in between, and the request would state a watch
    /// that is longer than the one that the trust in this node was based on.
    pub(super) fn stated(&self, trust: &mut Trust, now: Time) -> Figures {
        let longest = self.shared.longest.lock();
        trust.handle_longest(now, &longest);
        longest.stated()
    }

    /// Returns the check of a request that states these figures.
    pub(super) fn request(&self, act: Act, figures: Figures) -> Check {
        Check {
            figures,
            act,
            trusted: None,
            restarts: self.shared.restarts,
            known: None,
        }
    }

    /// Returns the request that is due to introduce a longer lease, if one is.
    pub(super) fn next_step(&self, now: Time) -> Option<Step> {
        self.shared.longest.lock().next_step(now, self.index)
    }

    /// Returns when to call [`Watch::next_step`].
    pub(super) fn step_timeout(&self) -> Time {
        self.shared.longest.lock().poll_timeout(self.index)
    }

    /// Returns what the client knows about the longest lease.
    pub(super) fn longest<T>(&self, read: impl FnOnce(&LongestLease) -> T) -> T {
        read(&self.shared.longest.lock())
    }

    /// Sets the alarm for the next request that introduces a longer lease, to any node.
    pub(super) fn attend_to_steps(&self) {
        let due = self.longest(|longest| match longest.is_raising() {
            true => longest.next_timeout(),
            false => Time::NEVER,
        });
        if due < Time::NEVER {
            self.probe_at(due);
        }
    }

    /// Handles what a node has shown. Returns whether a vote that came with it counts, and the change of trust.
    pub(super) fn hear(
        &self,
        trust: &mut Trust,
        now: Time,
        sent: Sent,
        shown: Shown,
    ) -> (Counts, Option<TrustChange>) {
        let (before, trusted) = (trust.quarantine(), trust.trusted());
        let mut longest = self.shared.longest.lock();
        longest.handle_shown(now, sent.0, self.index, shown);
        trust.handle_longest(now, &longest);
        drop(longest);
        if trust.is_twin(shown.process) && !self.has_twin(shown.process) {
            trust.handle_single(now, shown.process);
        }
        let mut counts = trust.handle_shown(now, sent.0, shown);
        // Two addresses lead to one server. If both counted, A would win two of three members by this server alone,
        // and its failure would take both votes away at once.
        if counts == Counts::Yes && trust.trusted() != trusted && !self.is_alone(shown.process) {
            trust.handle_twin(now, shown.process);
            counts = Counts::No;
        }
        let change = match trust.quarantine() {
            Some((why, until)) if Some((why, until)) != before => {
                let left = until.map(|until| until.since(now));
                Some(TrustChange::Quarantined(Quarantine { why, left }))
            }
            None if before.is_some_and(|(why, _)| why != Why::Unknown) => {
                Some(TrustChange::Trusted)
            }
            _ => None,
        };
        (counts, change)
    }

    /// Whether another address of the quorum leads to this process.
    fn has_twin(&self, process: Process) -> bool {
        self.is_among(&self.shared.processes.lock(), process)
    }

    fn is_among(&self, processes: &[Option<Process>], process: Process) -> bool {
        let mut others = processes.iter().enumerate();
        others.any(|(index, id)| index != self.index && *id == Some(process))
    }

    /// Records the process as this node's, unless another address of the quorum leads to it. Returns whether none does.
    fn is_alone(&self, process: Process) -> bool {
        let mut processes = self.shared.processes.lock();
        let is_alone = !self.is_among(&processes, process);
        if let Some(place) = processes.get_mut(self.index) {
            *place = is_alone.then_some(process);
        }
        is_alone
    }
}
