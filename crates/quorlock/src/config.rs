//! Settings that were checked, as the rest of the crate reads them.

use std::time::Duration;

use quorlock_core::acquisition::RetryPolicy;
use quorlock_core::lease::Lease;
use quorlock_core::message::Retention;
use quorlock_core::name::{Name, NameError};

use crate::error::{ConfigError, LeaseSource};

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
    pub(crate) key_prefix: Box<[u8]>,
    pub(crate) member_timeout: Option<Duration>,
}

impl Config {
    /// The lease of a lock, within the bounds.
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
        if let Some(member_timeout) = self.member_timeout
            && length <= member_timeout
        {
            return Err(ConfigError::MemberTimeout {
                of,
                member_timeout,
                lease: length,
            });
        }
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

    /// What is legal and doubtful about the settings.
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

    /// The key under which nodes have a name. An empty name stays an error, whatever the prefix.
    pub(crate) fn key(&self, name: &Name) -> Result<Name, NameError> {
        if self.key_prefix.is_empty() {
            Ok(name.clone())
        } else {
            Name::new([&self.key_prefix, name.as_bytes()].concat())
        }
    }

    /// How long the place in a queue is kept for a waiter that is not heard of: as long as a name for a dead holder, but
    /// long enough for a waiter that asks as seldom as it may.
    pub(crate) fn place(&self) -> Duration {
        let seldom = self.retry.poll_cap.saturating_mul(4);
        let seldom = seldom.min(LONGEST_SPAN);
        self.watchdog_lease.length().max(seldom)
    }

    /// How long each member is given to answer: 5 % of the lease, but at least 25 ms if a third of the lease allows it.
    ///
    /// Members that need longer than that for most of their answers make no progress possible: the floor keeps short
    /// leases usable on networks with round trips of up to 25 ms.
    pub(crate) fn member_timeout(&self, lease: Lease) -> Duration {
        let least = Duration::from_millis(25).min(lease.length() / 3);
        self.member_timeout
            .unwrap_or_else(|| (lease.length() / 20).max(least))
    }
}

/// A lease that comes from there, or why it cannot be one.
pub(crate) fn lease_of(of: LeaseSource, length: Duration) -> Result<Lease, ConfigError> {
    Lease::new(length).map_err(|error| ConfigError::LeaseTooShort { of, error })
}
