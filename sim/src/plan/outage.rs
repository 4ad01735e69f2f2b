//! What goes wrong with a resource beside the lock.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::plan::draw::{Draw, Purpose};
use crate::plan::time::SimTime;

/// Something that goes wrong with one resource of a user's own, for some time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// When it begins.
    pub at: SimTime,
    /// For how long.
    pub lasts: SimTime,
    /// Which resource: the one at this place in the order in which they are made, from 0. A number beyond the last one
    /// begins again with the first.
    pub resource: u16,
    /// What.
    pub what: OutageKind,
}

/// What goes wrong with a resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutageKind {
    /// Every second message to it or from it is lost, at random.
    Loss,
    /// Every fourth message to it or from it, at random, takes longer by up to two leases, and others overtake it.
    Slow,
    /// It stands still: what it is asked is done afterwards.
    Pause,
    /// It is down: what it is asked is refused. What it had not written down is gone.
    Crash,
}

impl OutageKind {
    const ALL: [OutageKind; 4] = [
        OutageKind::Loss,
        OutageKind::Slow,
        OutageKind::Pause,
        OutageKind::Crash,
    ];

    /// Its name.
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
            OutageKind::Pause => write!(f, "resource {resource} stands still for {lasts}"),
            OutageKind::Crash => write!(f, "resource {resource} is down for {lasts}"),
        }
    }
}

impl Outage {
    /// When it ends.
    #[must_use]
    pub fn ends(&self) -> SimTime {
        self.at.plus(self.lasts)
    }

    /// Whether it is under way at a time, in nanoseconds of true time.
    pub(crate) fn is_at(&self, at: u64) -> bool {
        self.at.as_nanos() <= at && at < self.ends().as_nanos()
    }

    /// Those of a seed: in a quarter of all runs none, else up to four. They end with three quarters of the run.
    pub(crate) fn draw(seed: u64, duration: SimTime) -> Vec<Outage> {
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
