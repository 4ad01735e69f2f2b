//! What a run acquires: a lock, or one of several permits.

use std::time::Duration;

use quorlock::{AcquireError, Guard, Lock, Semaphore, Why};

/// A lock of one name or of several, or a semaphore.
#[derive(Clone, Debug)]
pub(crate) enum Wanted {
    Lock(Lock),
    Permit(Semaphore),
}

impl Wanted {
    pub(crate) async fn try_acquire(&self) -> Result<Option<Guard>, AcquireError> {
        match self {
            Wanted::Lock(lock) => lock.try_acquire().await,
            Wanted::Permit(semaphore) => semaphore.try_acquire().await,
        }
    }

    /// Waits at most this long, or until it is free.
    pub(crate) async fn acquire(self, at_most: Option<Duration>) -> Result<Guard, AcquireError> {
        match (self, at_most) {
            (Wanted::Lock(lock), None) => lock.acquire().await,
            (Wanted::Lock(lock), Some(wait)) => lock.wait(wait).acquire().await,
            (Wanted::Permit(semaphore), None) => semaphore.acquire().await,
            (Wanted::Permit(semaphore), Some(wait)) => semaphore.wait(wait).acquire().await,
        }
    }

    /// Returns who is in the way of a run that does not wait.
    pub(crate) fn refusal(&self, name: &str) -> String {
        match self {
            Wanted::Lock(_) => format!("{name}: others hold it"),
            Wanted::Permit(semaphore) => match semaphore.permits() {
                1 => format!("{name}: others hold the only permit"),
                permits => format!("{name}: others hold all {permits} permits"),
            },
        }
    }
}

/// Returns how long servers are still in quarantine, if enough others answer for a majority with them; zero if it is not known.
pub(crate) fn waits_for_trust(error: &AcquireError) -> Option<Duration> {
    let AcquireError::NoQuorum { of, nodes, .. } = error else {
        return None;
    };
    let quarantined = nodes.iter().filter_map(|node| node.quarantine);
    // A lease that is too long is not waited for here: that may take as long as a server is down.
    let watched: Vec<_> = quarantined.filter(|it| it.why != Why::Raising).collect();
    let answering = of.saturating_sub(nodes.len() - watched.len());
    let left = watched.iter().filter_map(|watched| watched.left).max();
    (!watched.is_empty() && of / 2 < answering).then_some(left.unwrap_or_default())
}
