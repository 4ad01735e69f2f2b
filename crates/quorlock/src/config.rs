//! Validated settings, as the rest of the crate reads them.

#[cfg(feature = "metrics")]
use std::sync::Arc;
use std::time::Duration;

use quorlock_core::acquisition::RetryPolicy;
use quorlock_core::lease::Lease;
use quorlock_core::message::Retention;
use quorlock_core::name::{Name, NameError};

use crate::error::{ConfigError, LeaseSource};
#[cfg(feature = "metrics")]
use crate::metrics::NameLabels;

/// A hundred years. See [`LocksBuilder::LONGEST_SPAN`](crate::LocksBuilder::LONGEST_SPAN).
pub(crate) const LONGEST_SPAN: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Settings that were checked against each other.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) watchdog_lease: Lease,
    pub(crate) longest_lease: Duration,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) retry: RetryPolicy,
    pub(crate) retention: Retention,
    pub(crate) namespace: Box<[u8]>,
    pub(crate) key_prefix: Box<[u8]>,
    pub(crate) member_timeout: Option<Duration>,
    /// The random part of the client's identity, if it is drawn already.
    pub(crate) identity: Option<u128>,
    /// Whether an error names the clients that hold the lock.
    pub(crate) names_holders: bool,
    /// Whether the loss of a claim is noticed at once.
    pub(crate) watches_claims: bool,
    #[cfg(feature = "metrics")]
    pub(crate) name_labels: Option<Arc<NameLabels>>,
}

impl Config {
    /// Returns the lease of a lock, checked against the settings.
    pub(crate) fn lease(&self, length: Duration) -> Result<Lease, ConfigError> {
        self.lease_of(LeaseSource::Lock, length)
    }

    pub(crate) fn lease_of(&self, of: LeaseSource, length: Duration) -> Result<Lease, ConfigError> {
        let lease = lease_of(of, length)?;
        if self.longest_lease < length {
            return Err(ConfigError::LeaseTooLong {
                of,
                lease: length,
                longest: self.longest_lease,
            });
        }
        // A round in which one member is silent lasts for the member time-out. If that is as long as the lease, A's
        // grants by the other members have expired by then, and A can never win.
        if let Some(member_timeout) = self.member_timeout
            && length <= member_timeout
        {
            return Err(ConfigError::MemberTimeout {
                of,
                member_timeout,
                lease: length,
            });
        }
        // The first lease alone would exceed the longest hold.
        if let Some(max_hold) = self.max_hold
            && max_hold < length
        {
            return Err(ConfigError::MaxHold {
                of,
                max_hold,
                lease: length,
            });
        }
        Ok(lease)
    }

    /// Returns warnings about settings that are legal but doubtful.
    pub(crate) fn doubts(&self, nodes: usize) -> impl Iterator<Item = String> {
        let even = (nodes.is_multiple_of(2)).then(|| {
            format!(
                "{nodes} nodes tolerate no more failures than {} do, and need one grant more",
                nodes - 1
            )
        });
        let lease = self.watchdog_lease.length();
        let slow = self.member_timeout.filter(|at_most| lease / 3 < *at_most);
        let slow = slow.map(|at_most| {
            format!(
                "member_timeout, {at_most:?}, is more than a third of watchdog_lease, {lease:?}: one silent node may use up a renewal's time"
            )
        });
        [even, slow].into_iter().flatten()
    }

    /// Returns the key under which nodes store a name. An empty name is an error with any prefix, because a [`Name`]
    /// is never empty.
    pub(crate) fn key(&self, name: &Name) -> Result<Name, NameError> {
        if self.key_prefix.is_empty() && self.namespace.is_empty() {
            Ok(name.clone())
        } else {
            let name = [&self.key_prefix, name.as_bytes()].concat();
            Name::within(&self.namespace, name)
        }
    }

    /// The number of bytes before a name in its key.
    pub(crate) fn prefix_len(&self) -> usize {
        self.namespace.len() + self.key_prefix.len()
    }

    /// How long a queue keeps the place of a waiter that sends no request.
    ///
    /// It is the watchdog's lease, as long as a name stays locked after its holder died, but at least four times the
    /// poll cap. With less than that, waiter A, which asks again only after its poll cap, would be taken for dead and
    /// lose its place to B.
    pub(crate) fn place(&self) -> Duration {
        let seldom = self.retry.poll_cap.saturating_mul(4);
        let seldom = seldom.min(LONGEST_SPAN);
        self.watchdog_lease.length().max(seldom)
    }

    /// How long each member has to answer: 5 % of the lease, but at least 25 ms if a third of the lease allows it.
    ///
    /// Without the floor, members that mostly need longer than 5 % of a short lease would prevent progress. With it
    /// short leases are usable on networks with round trips of up to 25 ms.
    pub(crate) fn member_timeout(&self, lease: Lease) -> Duration {
        let least = Duration::from_millis(25).min(lease.length() / 3);
        self.member_timeout
            .unwrap_or_else(|| (lease.length() / 20).max(least))
    }
}

/// Makes a lease of this length, or returns an error that names the setting it came from.
pub(crate) fn lease_of(of: LeaseSource, length: Duration) -> Result<Lease, ConfigError> {
    Lease::new(length).map_err(|error| ConfigError::LeaseTooShort { of, error })
}
