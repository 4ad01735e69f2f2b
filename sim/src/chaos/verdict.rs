//! What was observed of a lock on real servers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::records::{beside_each_other, during_holds, hand_overs};
use crate::checker::{Property, check_one};
use crate::history::{Access, History, Section};

/// One lock under the faults of one plan, for a while.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Observed {
    /// For how long, in seconds.
    pub(crate) seconds: u64,
    /// How many holds were won.
    pub(crate) holds: u64,
    /// How often a name passed from one process to another.
    pub(crate) hand_overs: u64,
    /// How many faults began.
    pub(crate) faults: u64,
    /// How many of them while a lock was held.
    pub(crate) during_holds: u64,
    /// How many were passed over, because another had the process or the server.
    pub(crate) passed_over: u64,
    /// Which faults could not be had, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) lacking: BTreeMap<String, u64>,
    /// Two believed to hold the lock at a time: how often.
    pub(crate) overlaps: u64,
    /// When that came first, in seconds since the beginning, and what happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) exclusion: Option<Break>,
    /// When a token first was not larger than those before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fencing: Option<Break>,
    /// When a write under a token first overwrote what it had not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<Break>,
    /// What stayed locked when all had gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) orphans: Option<Break>,
    /// How often two were inside at a time, whatever they believed.
    pub(crate) met_inside: u64,
    /// How many writes of an unfenced counter were overwritten unread.
    pub(crate) lost_updates: u64,
    /// What calls failed with, and how often at least.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) failures: BTreeMap<String, u64>,
    /// What clients wrote to standard error, and which did not end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) complaints: Vec<String>,
}

/// The first time that a property broke.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Break {
    /// After so many seconds.
    pub(crate) after: f64,
    /// What happened.
    pub(crate) story: String,
}

/// What was seen is too little to show anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Vacuous {
    Holds,
    HandOvers,
    Faults,
}

impl Vacuous {
    pub(crate) fn what(self) -> &'static str {
        match self {
            Vacuous::Holds => "too few holds",
            Vacuous::HandOvers => "too few hand-overs",
            Vacuous::Faults => "too few faults during a hold",
        }
    }
}

/// What a minute must have at least, or nothing is shown.
const LEAST_HOLDS: u64 = 20;
const LEAST_HAND_OVERS: u64 = 10;
const LEAST_FAULTS: u64 = 4;

impl Observed {
    /// What the history of a run says.
    pub(super) fn of(history: &History) -> Observed {
        let broke = |property| {
            check_one(property, history).map(|violation| Break {
                after: violation.at.as_duration().as_secs_f64(),
                story: violation.to_string(),
            })
        };
        let exclusion = broke(Property::Exclusion).or_else(|| broke(Property::ReadWrite));
        Observed {
            holds: u64::from(history.holds),
            hand_overs: hand_overs(history),
            during_holds: during_holds(history),
            overlaps: overlaps(history),
            exclusion,
            fencing: broke(Property::Fencing),
            usage: broke(Property::Usage),
            orphans: broke(Property::Orphans),
            met_inside: beside_each_other(history),
            ..Observed::default()
        }
    }

    /// Whether it is too little to show anything. `has_faults`: of a plan in which something goes wrong.
    pub(crate) fn vacuous(&self, planned_faults: usize) -> Option<Vacuous> {
        let least = |of_a_minute: u64| (of_a_minute * self.seconds / 60).max(1);
        if self.holds < least(LEAST_HOLDS) {
            return Some(Vacuous::Holds);
        }
        if self.hand_overs < least(LEAST_HAND_OVERS) {
            return Some(Vacuous::HandOvers);
        }
        let planned = u64::try_from(planned_faults).unwrap_or(u64::MAX);
        // A plan of few faults has no more of them.
        let faults = least(LEAST_FAULTS).min(planned.div_ceil(4));
        (self.during_holds < faults).then_some(Vacuous::Faults)
    }
}

/// How many holds began while another client believed to hold the name, and did later.
fn overlaps(history: &History) -> u64 {
    let stays = history.sections.iter();
    let mut stays: Vec<(&Section, u64)> = stays
        .filter(|stay| stay.access != Access::Read)
        .filter_map(|stay| Some((stay, stay.believed?)))
        .collect();
    stays.sort_by_key(|(stay, _)| (stay.name, stay.won));
    let mut longest: Option<(&Section, u64)> = None;
    let mut overlaps = 0;
    for (stay, believed) in stays {
        let other = longest.filter(|(other, _)| other.name == stay.name);
        overlaps += u64::from(other.is_some_and(|(_, until)| stay.won < until));
        if other.is_none_or(|(_, until)| until < believed) {
            longest = Some((stay, believed));
        }
    }
    overlaps
}
