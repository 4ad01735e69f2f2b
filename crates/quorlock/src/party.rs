//! What a client states for its own nodes, also where a lock of another client has them among its members.

use std::time::Duration;

use quorlock_core::fencing::Fence;
use quorlock_core::message::Retention;
use quorlock_core::time::{WallMillis, millis_of};

use crate::config::Config;

/// A client as a party to locks over several clients: its settings hold for its own members, whoever drives the lock.
#[derive(Debug)]
pub(crate) struct Party {
    /// No request to its nodes states a longer lease: a node that has forgotten everything is trusted again after that.
    pub(crate) longest_lease: Duration,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) retention: Retention,
}

impl Party {
    pub(crate) fn new(config: &Config) -> Self {
        Party {
            longest_lease: config.longest_lease,
            max_hold: config.max_hold,
            retention: config.retention,
        }
    }

    /// How its nodes choose the token of a new hold.
    pub(crate) fn mint(&self, floor: WallMillis) -> Fence {
        Fence::Mint {
            floor,
            slack_millis: millis_of(self.longest_lease) / 4,
        }
    }
}
