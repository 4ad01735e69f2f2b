//! What a client makes of what one node shows of itself.

use std::sync::Arc;

use quorlock_core::lease::Lease;
use quorlock_core::marker::{Act, Check, Nonce, Process, Restarts, Shown};
use quorlock_core::time::Time;
use quorlock_core::trust::{Counts, Trust, Why};

use crate::error::Quarantine;
use crate::mutex::Mutex;
use crate::shared::alarm::Alarm;

/// When a request left, on the clock by which the node is judged. It is compared with what that clock shows later and
/// with nothing else: a lock may have members of several clients, each with a clock of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sent(pub(super) Time);

/// One node under watch.
pub(super) struct Watch {
    index: usize,
    shared: Arc<WatchSettings>,
}

/// What has changed for a node that has shown something. The caller tells operators: it stands above what is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TrustChange {
    /// Its votes do not count from now on.
    Quarantined(Quarantine),
    /// Its votes count again.
    Trusted,
}

/// What the nodes of one client under watch have in common.
struct WatchSettings {
    /// Set to when the watch of one of them ends.
    alarm: Arc<Alarm>,
    longest: Lease,
    trusts_fresh: bool,
    restarts: Restarts,
    /// Which process each trusted node is.
    processes: Mutex<Vec<Option<Process>>>,
}

/// How nodes are watched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watching {
    pub(crate) longest: Lease,
    pub(crate) trusts_fresh: bool,
    pub(crate) restarts: Restarts,
}

impl Watching {
    /// A watch for each of so many nodes of one client.
    pub(super) fn begin(self, nodes: usize, alarm: &Arc<Alarm>) -> impl Iterator<Item = Watch> {
        let shared = Arc::new(WatchSettings {
            alarm: alarm.clone(),
            longest: self.longest,
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
    /// What the marker of a node must be that keeps its trust.
    pub(super) fn restarts(&self) -> Restarts {
        self.shared.restarts
    }

    /// How a node without a marker is marked.
    pub(super) fn mark(&self, nonce: Nonce) -> Act {
        if self.shared.trusts_fresh {
            Act::MarkFresh(nonce)
        } else {
            Act::Mark(nonce)
        }
    }

    /// The watch of a node that is quarantined ends then.
    pub(super) fn ends_at(&self, due: Time) {
        self.shared.alarm.set(due);
    }

    /// What a request with this act asks the node about itself.
    pub(super) fn request(&self, act: Act) -> Check {
        Check {
            longest_millis: self.shared.longest.millis(),
            act,
            trusted: None,
            restarts: self.shared.restarts,
            known: None,
        }
    }

    /// Whether a vote that came with this counts, and what has changed.
    pub(super) fn hear(
        &self,
        trust: &mut Trust,
        now: Time,
        sent: Sent,
        shown: Shown,
    ) -> (Counts, Option<TrustChange>) {
        let (before, trusted) = (trust.quarantine(), trust.trusted());
        if trust.is_twin(shown.process) && !self.has_twin(shown.process) {
            trust.handle_single(shown.process);
        }
        let mut counts = trust.handle_shown(now, sent.0, shown);
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

    /// Whether no other address of the quorum leads to this process, which is that of this one from now on.
    fn is_alone(&self, process: Process) -> bool {
        let mut processes = self.shared.processes.lock();
        let is_alone = !self.is_among(&processes, process);
        if let Some(place) = processes.get_mut(self.index) {
            *place = is_alone.then_some(process);
        }
        is_alone
    }
}
