//! The request of a caller, and how long it waits.

use std::sync::Arc;
use std::time::Duration;

use quorlock_core::acquisition::{Limit, Patience};
use quorlock_core::fencing::Fence;
use quorlock_core::lease::Lease;
use quorlock_core::message::{Access, Mode, QueuePlace};
use quorlock_core::time::{Time, WallMillis, millis_of};

use crate::shared::client::Client;
use crate::shared::hold::Continued;
use crate::shared::layout::{Layout, Place};
use crate::shared::under::Under;

/// The lock, lease and waiting mode that a caller requests.
#[derive(Clone, Debug)]
pub(crate) struct LockRequest {
    pub(crate) layout: Arc<Layout>,
    pub(crate) lease: Lease,
    pub(crate) member_timeout: Duration,
    pub(crate) is_watched: bool,
    pub(crate) patience: Patience,
    /// The write hold beside which an owner reads.
    pub(crate) under: Option<Under>,
    /// The hold of another client that the new one continues.
    pub(crate) continues: Option<Arc<Continued>>,
    /// Whether the name is that of a leader.
    pub(crate) elects: bool,
}

impl LockRequest {
    /// Whether any number of owners can hold it at once. Reading under a write lock is reserved to the writer.
    pub(crate) fn is_shared(&self) -> bool {
        let mut parts = self.layout.parts.iter();
        self.under.is_none() && parts.all(|part| part.mode == Mode::Read)
    }

    /// How long a node keeps what a request in this mode may leave behind: a claim, or a place in the queue of a fair lock.
    /// If the clean-up of a place ended with the lease, A's place could be left in front of B for much longer.
    pub(super) fn kept(&self, mode: Mode, client: &Client) -> Duration {
        let claim = self.lease.length();
        match self.access(mode, client) {
            Access::Fair(QueuePlace::Kept { .. }) => claim.max(client.config.place()),
            _ => claim,
        }
    }

    /// How a node chooses the token at this place of the lock.
    pub(super) fn fence(&self, place: &Place, clock: WallMillis) -> Fence {
        let before = self.continues.as_ref();
        let before = before.and_then(|hold| hold.tokens.get(place.group));
        // Where the counter is lost, the clock alone may be behind the token of the hold before.
        let least = before.map_or(0, |token| token.0.saturating_add(1));
        Fence::Mint {
            floor: clock.max(WallMillis(least)),
            slack_millis: place.node.slack_millis(),
        }
    }

    /// How a name is requested in this mode.
    pub(super) fn access(&self, mode: Mode, client: &Client) -> Access {
        match mode {
            Mode::Plain => Access::Plain,
            Mode::Fair => Access::Fair(match self.patience {
                Patience::Try => QueuePlace::None,
                Patience::Wait => QueuePlace::Kept {
                    millis: millis_of(client.config.place()),
                },
            }),
            Mode::Read => Access::Read {
                under: self.under.as_ref().map(|under| under.writer),
            },
            Mode::Write => Access::Write,
        }
    }
}

/// How long a caller waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waits {
    /// When the wait began. `None` for a caller that leads from the beginning: its wait begins with its first round.
    pub(crate) since: Option<Time>,
    /// When the wait ends; `None` to wait while quorums answer.
    pub(crate) until: Option<Time>,
}

impl Waits {
    /// Waits for as long as quorums answer.
    pub(crate) const UNBOUNDED: Waits = Waits {
        since: None,
        until: None,
    };

    pub(crate) fn limit(self) -> Limit {
        match self.until {
            Some(at) => Limit::At(at),
            None => Limit::WithoutQuorumFrom(self.since.unwrap_or(Time::ZERO)),
        }
    }
}
