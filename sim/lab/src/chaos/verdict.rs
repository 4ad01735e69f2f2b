//! Observations of a lock on real servers.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::counts::{beside_each_other, during_holds, hand_overs};
use super::network::Network;
use super::other_library::SharedWith;
use super::violation::Break;
use super::waits::WaitCounts;
use quorlock_sim_check::check_one;
use quorlock_sim_plan::property::Property;
use quorlock_sim_world::history::{Access, History, HoldId, Section};

/// The observations of one lock under the faults of one plan.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Observed {
    /// The length of the run, in seconds.
    pub(crate) seconds: u64,
    /// The number of holds that were won.
    pub(crate) holds: u64,
    /// How often a name passed from one process to another.
    pub(crate) hand_overs: u64,
    /// The number of faults that began.
    pub(crate) faults: u64,
    /// The number of faults that began while a lock was held.
    pub(crate) during_holds: u64,
    /// The number of faults that were skipped because another fault was using the process or the server.
    pub(crate) passed_over: u64,
    /// The number of faults that were impossible, for each reason why they were.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) lacking: BTreeMap<String, u64>,
    /// The network of the processes; `None` in results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) network: Option<Network>,
    /// How the names were shared with the clients of another library, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) beside: Option<SharedWith>,
    /// How often two clients believed that they held the lock at the same time.
    pub(crate) overlaps: u64,
    /// The first violation of exclusion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) exclusion: Option<Break>,
    /// The first token that was not larger than the earlier ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fencing: Option<Break>,
    /// The first write under a token that overwrote a value which its client had not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<Break>,
    /// The first claim that was left after all clients had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) orphans: Option<Break>,
    /// The numbers of waits with a bound. `None` if the lock under test has no such waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) waits: Option<WaitCounts>,
    /// The first wait from which a client returned too late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) overrun: Option<Break>,
    /// Whether clients seldom use locks. Then faults need not meet holds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_idle: bool,
    /// The first wait that was longer than the plan allows where locks are seldom used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) delayed: Option<Break>,
    /// The first bystander that was lost, although no fault concerns it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bereft: Option<Break>,
    /// How many grants of a fair lock could be judged, because another owner waited in the queue. `None` if servers did
    /// not report their queues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) queued: Option<u64>,
    /// The first grant of a fair lock to an owner that was not the first in the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fairness: Option<Break>,
    /// How often two clients were inside a section at the same time, whatever they believed.
    pub(crate) met_inside: u64,
    /// The number of writes of an unfenced counter that were overwritten before they were read.
    pub(crate) lost_updates: u64,
    /// The errors of calls. The numbers of occurrences are lower bounds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) failures: BTreeMap<String, u64>,
    /// The most resident memory that a client had, in KiB. Zero where the system does not tell.
    #[serde(default)]
    pub(crate) most_memory_kib: u64,
    /// The most file descriptors that a client had open.
    #[serde(default)]
    pub(crate) most_descriptors: u64,
    /// Clients that grew all the time, the output of clients to standard error, and the number of clients that did not
    /// end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) complaints: Vec<String>,
}

/// The reason why a run shows nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Vacuous {
    Holds,
    HandOvers,
    /// One of two libraries had few holds, or few names passed between the two in one of the directions.
    Beside,
    Faults,
    Waits,
    Queue,
}

impl Vacuous {
    pub(crate) fn what(self) -> &'static str {
        match self {
            Vacuous::Holds => "too few holds",
            Vacuous::HandOvers => "too few hand-overs",
            Vacuous::Beside => "too few holds of one library, or too few hand-overs to it",
            Vacuous::Faults => "too few faults during a hold",
            Vacuous::Queue => "too few grants of a fair lock while others waited",
            Vacuous::Waits => "too few waits with a bound",
        }
    }
}

// A run in which a minute has fewer of them shows nothing.
const LEAST_HOLDS: u64 = 20;
const LEAST_HAND_OVERS: u64 = 10;
const LEAST_FAULTS: u64 = 4;
const LEAST_WAITS: u64 = 10;
const LEAST_QUEUED: u64 = 10;
// The holds of each library and the hand-overs in each direction, if there are two libraries.
const LEAST_BESIDE: u64 = 10;

impl Observed {
    /// Returns how often two clients held one name at the same time, in words.
    pub(crate) fn how_often(&self) -> String {
        match self.overlaps {
            1 => "once".to_owned(),
            overlaps => format!("{overlaps} times"),
        }
    }

    /// Evaluates the history of a run. The whole history is judged, but only the holds since the run began are counted.
    pub(super) fn of(history: &History, run_began: u64) -> Observed {
        let broke = |property| {
            check_one(property, history).map(|violation| Break {
                after: violation.at.as_duration().as_secs_f64(),
                story: violation.to_string(),
            })
        };
        let first = |properties: &[Property]| {
            let breaks = properties.iter().filter_map(|property| broke(*property));
            breaks.min_by(|a, b| a.after.total_cmp(&b.after))
        };
        let counted = since(history, run_began);
        Observed {
            holds: holds(&counted),
            hand_overs: hand_overs(&counted),
            faults: history.began.len() as u64,
            during_holds: during_holds(history),
            overlaps: overlaps(history),
            exclusion: first(&[
                Property::Exclusion,
                Property::ReadWrite,
                Property::Leadership,
            ]),
            fencing: first(&[Property::Fencing, Property::Terms]),
            usage: broke(Property::Usage),
            orphans: broke(Property::Orphans),
            fairness: broke(Property::Fairness),
            met_inside: beside_each_other(history),
            ..Observed::default()
        }
    }

    /// Returns the reason why the run shows nothing, if there is one.
    pub(crate) fn vacuous(&self) -> Option<Vacuous> {
        let min = |of_a_minute: u64| (of_a_minute * self.seconds / 60).max(1);
        if self.holds < min(LEAST_HOLDS) {
            return Some(Vacuous::Holds);
        }
        if self.hand_overs < min(LEAST_HAND_OVERS) {
            return Some(Vacuous::HandOvers);
        }
        // Where faults set the clocks of all clients, hardly any wait can be judged.
        let has_too_few = |waits: &WaitCounts| waits.judged + waits.excused < min(LEAST_WAITS);
        if self.waits.as_ref().is_some_and(has_too_few) {
            return Some(Vacuous::Waits);
        }
        if self.queued.is_some_and(|queued| queued < min(LEAST_QUEUED)) {
            return Some(Vacuous::Queue);
        }
        let least = self.beside.map(|beside| {
            let ours = self.holds.saturating_sub(beside.holds);
            let holds = beside.holds.min(ours);
            holds.min(beside.to_them).min(beside.to_us)
        });
        if least.is_some_and(|least| least < min(LEAST_BESIDE)) {
            return Some(Vacuous::Beside);
        }
        let planned = self.faults + self.passed_over + self.lacking.values().sum::<u64>();
        // A plan with few faults cannot reach the usual bound.
        let faults = min(LEAST_FAULTS).min(planned.div_ceil(4));
        let met = if self.is_idle {
            self.faults
        } else {
            self.during_holds
        };
        (met < faults).then_some(Vacuous::Faults)
    }
}

/// Returns the holds that were won since a time. Clients that wait for others to start hold locks without any fault.
pub(super) fn since(history: &History, from: u64) -> History {
    let sections = history.sections.iter();
    let reigns = history.reigns.iter();
    History {
        sections: sections.filter(|s| from <= s.won).cloned().collect(),
        reigns: reigns.filter(|r| from <= r.elected).cloned().collect(),
        ..History::default()
    }
}

/// Returns the number of holds. A hold of several names has a section for each.
fn holds(history: &History) -> u64 {
    let holds: BTreeSet<HoldId> = history.stays().map(|stay| stay.hold).collect();
    holds.len() as u64
}

/// Returns the number of holds that began while another client believed that it held the name in a way that excludes
/// them. Readers do not exclude each other.
fn overlaps(history: &History) -> u64 {
    let stays = history.stays();
    let mut stays: Vec<(Section, u64)> = stays
        .filter_map(|stay| {
            let believed = stay.believed?;
            Some((stay, believed))
        })
        .collect();
    stays.sort_by_key(|(stay, _)| (stay.name, stay.won));
    let (mut name, mut writers, mut readers) = (None, 0, 0);
    let mut overlaps = 0;
    for (stay, believed) in stays {
        if name != Some(stay.name) {
            (name, writers, readers) = (Some(stay.name), 0, 0);
        }
        let reads = stay.access == Access::Read;
        overlaps += u64::from(stay.won < writers || (!reads && stay.won < readers));
        let until = if reads { &mut readers } else { &mut writers };
        *until = believed.max(*until);
    }
    overlaps
}
