//! Outages of resources other than the lock.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::draw::{Draw, Purpose};
use crate::time::SimTime;

/// An outage of one of a user's own resources.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// When the outage begins.
    pub at: SimTime,
    /// How long the outage lasts.
    pub lasts: SimTime,
    /// The index of the resource, from 0, in the order in which resources are created. Larger numbers wrap around.
    pub resource: u16,
    /// The kind of the outage.
    pub what: OutageKind,
}

/// The kind of an outage.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutageKind {
    /// Half of the messages to and from the resource are lost, at random.
    Loss,
    /// A quarter of the messages to and from the resource, at random, take up to two leases longer, so other messages
    /// overtake them.
    Slow,
    /// The resource is paused. It executes its requests after the pause.
    Pause,
    /// The resource is down. It refuses requests and loses what it had not persisted.
    Crash,
}

impl OutageKind {
    const ALL: [OutageKind; 4] = [
        OutageKind::Loss,
        OutageKind::Slow,
        OutageKind::Pause,
        OutageKind::Crash,
    ];

    /// Returns the name of this kind.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            OutageKind::Loss => "loss",
            OutageKind::Slow => "slow",
            OutageKind::Pause => "pause",
            OutageKind::Crash => "crash",
        }
    }
}

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outage {
            lasts, resource, ..
        } = self;
        match self.what {
            OutageKind::Loss => write!(f, "messages of resource {resource} are lost for {lasts}"),
            OutageKind::Slow => write!(f, "messages of resource {resource} are late for {lasts}"),
            OutageKind::Pause => write!(f, "resource {resource} is paused for {lasts}"),
            OutageKind::Crash => write!(f, "resource {resource} is down for {lasts}"),
        }
    }
}

impl Outage {
    /// Returns when the outage ends.
    #[must_use]
    pub fn ends(&self) -> SimTime {
        self.at.plus(self.lasts)
    }

    /// Returns whether the outage is active at a time, in nanoseconds of true time.
    pub fn is_at(&self, at: u64) -> bool {
        self.at.as_nanos() <= at && at < self.ends().as_nanos()
    }

    /// Draws the outages of a seed: none in a quarter of all runs, otherwise up to four. Outages end within the first
    /// three quarters of the run.
    pub fn draw(seed: u64, duration: SimTime) -> Vec<Outage> {
        let mut draw = Draw::new(seed, Purpose::Outages, 0);
        if draw.chance(250_000) {
            return Vec::new();
        }
        let end = duration.as_nanos() / 4 * 3;
        let mut outages: Vec<Outage> = (0..draw.between(1, 4))
            .map(|_| {
                let at = draw.between(0, end);
                let longest = (end - at).min(800_000_000);
                let what = OutageKind::ALL.get(draw.index(OutageKind::ALL.len()));
                Outage {
                    at: SimTime::nanos(at),
                    lasts: SimTime::nanos(draw.between(longest.min(1_000_000), longest)),
                    resource: u16::try_from(draw.between(0, 7)).unwrap_or(0),
                    what: what.copied().unwrap_or(OutageKind::Loss),
                }
            })
            .collect();
        outages.sort_by_key(|outage| outage.at);
        outages
    }
}
