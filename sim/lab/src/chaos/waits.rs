//! Waits with a bound. A client must return from them in time, unless its process was stopped or its clock was set.

use serde::{Deserialize, Serialize};

use super::violation::Break;
use quorlock_sim_world::history::Process;

/// How much later than the bound a client may return on a machine that is never late, in nanoseconds. The last
/// answers of the nodes are still processed in this time.
const ALLOWANCE: u64 = 250_000_000;

/// How many times in a row the machine may be late between the bound and the return: for the timer, for the task that
/// the timer wakes, and for the one that reads the clock.
const LATE_STEPS: u64 = 3;

/// A wait with a bound. All times are readings of the machine's clock, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct BoundedWait {
    /// When the client asked for the lock.
    pub(super) invoked: u64,
    /// How long the client was willing to wait.
    pub(super) bound: u64,
    /// When the client returned from the wait.
    pub(super) ended: u64,
    pub(super) end: WaitEnd,
    /// The largest lateness of the machine that the client measured during the wait.
    pub(super) late: u64,
}

/// How a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum WaitEnd {
    /// The client has the lock.
    Won,
    /// The lock gave up.
    GivenUp,
    /// The client dropped the wait, because a fault cancelled it or the run ended.
    Dropped,
}

/// A time in which the process of a client was stopped or its clock was set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Disturbance {
    client: u16,
    from: u64,
    until: u64,
}

/// The numbers of waits with a bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct WaitCounts {
    /// The number of waits that were judged.
    pub(crate) judged: u64,
    /// How many of them ended without the lock when their time had run out.
    pub(crate) ran_out: u64,
    /// The number of waits that were not judged, because the process was stopped or its clock was set.
    pub(crate) excused: u64,
    /// How long after its bound the latest client returned, in milliseconds.
    #[serde(default)]
    pub(crate) latest_ms: u64,
}

/// The waits of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Waits {
    waits: Vec<(Process, BoundedWait)>,
    disturbances: Vec<Disturbance>,
}

impl BoundedWait {
    fn due(&self) -> u64 {
        self.invoked.saturating_add(self.bound)
    }

    /// Returns the latest time at which the client may return.
    fn latest(&self) -> u64 {
        let late = self.late.saturating_mul(LATE_STEPS);
        self.due().saturating_add(ALLOWANCE).saturating_add(late)
    }
}

impl Waits {
    pub(super) fn add(&mut self, process: Process, wait: BoundedWait) {
        self.waits.push((process, wait));
    }

    /// Records that the process of a client was stopped, or its clock set, within this time.
    pub(super) fn disturbed(&mut self, client: u16, from: u64, until: u64) {
        let disturbance = Disturbance {
            client,
            from,
            until,
        };
        self.disturbances.push(disturbance);
    }

    fn is_excused(&self, process: Process, wait: &BoundedWait) -> bool {
        let mut disturbances = self.disturbances.iter();
        disturbances.any(|disturbance| {
            disturbance.client == process.client
                && disturbance.from <= wait.ended
                && wait.invoked <= disturbance.until
        })
    }

    fn judged(&self) -> impl Iterator<Item = &(Process, BoundedWait)> {
        let waits = self.waits.iter();
        waits.filter(|(process, wait)| !self.is_excused(*process, wait))
    }

    /// Returns the numbers of waits, or `None` if no wait had a bound.
    pub(super) fn counts(&self) -> Option<WaitCounts> {
        let judged = self.judged().count() as u64;
        let has_run_out = |(_, wait): &&(Process, BoundedWait)| {
            wait.end == WaitEnd::GivenUp && wait.due() <= wait.ended
        };
        let latest = self.judged();
        let latest = latest.map(|(_, wait)| wait.ended.saturating_sub(wait.due()));
        (!self.waits.is_empty()).then(|| WaitCounts {
            judged,
            ran_out: self.judged().filter(has_run_out).count() as u64,
            excused: self.waits.len() as u64 - judged,
            latest_ms: latest.max().unwrap_or(0) / 1_000_000,
        })
    }

    /// Returns the first wait for a lock that hardly anyone uses that lasted for longer than this, in nanoseconds. `began`
    /// is time 0 of the history.
    pub(super) fn delayed(&self, began: u64, within: u64) -> Option<Break> {
        let lasted = |wait: &BoundedWait| wait.ended.saturating_sub(wait.invoked);
        let is_delayed = |wait: &BoundedWait| {
            let late = wait.late.saturating_mul(LATE_STEPS);
            wait.end != WaitEnd::Dropped && within.saturating_add(late) < lasted(wait)
        };
        let delayed = self.judged().filter(|(_, wait)| is_delayed(wait));
        let (process, wait) = delayed.min_by_key(|(_, wait)| wait.ended)?;
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        let after = seconds(wait.ended.saturating_sub(began));
        let (client, lasted, within) = (process.client, seconds(lasted(wait)), seconds(within));
        let late = seconds(wait.late);
        Some(Break {
            after,
            story: format!(
                "lock granted late at {after:.3}s: client {client} waited for {lasted:.3} s, but a lock that is seldom used is \
                 granted within {within:.3} s; the machine was late by {late:.3} s at most"
            ),
        })
    }

    /// Returns the first wait from which a client returned too late. `began` is time 0 of the history.
    pub(super) fn overrun(&self, began: u64) -> Option<Break> {
        let late = self.judged().filter(|(_, wait)| wait.latest() < wait.ended);
        let (process, wait) = late.min_by_key(|(_, wait)| wait.ended)?;
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        let after = seconds(wait.ended.saturating_sub(began));
        let (client, bound) = (process.client, seconds(wait.bound));
        let overrun = seconds(wait.ended - wait.due());
        let late = seconds(wait.late);
        Some(Break {
            after,
            story: format!(
                "wait overrun at {after:.3}s: client {client} wanted to wait for {bound:.3} s at most and returned \
                 {overrun:.3} s after that, while the machine was late by {late:.3} s at most"
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn process(client: u16) -> Process {
        Process {
            client,
            restarts: 0,
        }
    }

    /// Returns a wait of a second that began at second 10 and ended this much after its bound.
    fn wait(overrun: u64) -> BoundedWait {
        BoundedWait {
            invoked: 10 * SECOND,
            bound: SECOND,
            ended: 11 * SECOND + overrun,
            end: WaitEnd::GivenUp,
            late: 0,
        }
    }

    #[test]
    fn a_client_that_returns_too_late_is_named_with_its_bound() {
        let mut waits = Waits::default();
        waits.add(process(0), wait(ALLOWANCE));
        assert_eq!(waits.overrun(0), None);
        waits.add(process(3), wait(SECOND));
        let story = waits.overrun(2 * SECOND).map(|broke| broke.story);
        let story = story.expect("client 3 is late");
        assert!(story.contains("10.000s: client 3"), "{story}");
        assert!(story.contains("for 1.000 s at most"), "{story}");
        assert!(story.contains("1.000 s after"), "{story}");
    }

    #[test]
    fn a_wait_for_a_quiet_lock_is_delayed_whether_the_lock_is_won_or_not() {
        for end in [WaitEnd::Won, WaitEnd::GivenUp] {
            let mut waits = Waits::default();
            waits.add(process(0), BoundedWait { end, ..wait(0) });
            assert_eq!(waits.delayed(0, SECOND), None);
            let story = waits.delayed(0, SECOND - 1).map(|broke| broke.story);
            assert!(story.is_some_and(|story| story.contains("waited for 1.000 s")));
        }
        let mut waits = Waits::default();
        let end = WaitEnd::Dropped;
        waits.add(process(0), BoundedWait { end, ..wait(0) });
        assert_eq!(
            waits.delayed(0, 1),
            None,
            "the client did not want the lock"
        );
    }

    #[test]
    fn a_lock_that_is_won_or_dropped_too_late_is_an_overrun_too() {
        for end in [WaitEnd::Won, WaitEnd::Dropped] {
            let mut waits = Waits::default();
            waits.add(
                process(0),
                BoundedWait {
                    end,
                    ..wait(SECOND)
                },
            );
            assert!(waits.overrun(0).is_some(), "{end:?}");
            assert_eq!(waits.counts().map(|counts| counts.ran_out), Some(0));
        }
    }

    #[test]
    fn a_client_that_was_stopped_is_excused_and_another_one_is_not() {
        let mut waits = Waits::default();
        waits.add(process(1), wait(SECOND));
        waits.disturbed(2, 10 * SECOND, 12 * SECOND);
        waits.disturbed(1, 0, 10 * SECOND - 1);
        assert!(waits.overrun(0).is_some());
        waits.disturbed(1, 10 * SECOND + SECOND / 2, 10 * SECOND + SECOND / 2);
        assert_eq!(waits.overrun(0), None);
        let counts = WaitCounts {
            judged: 0,
            excused: 1,
            ..WaitCounts::default()
        };
        assert_eq!(waits.counts(), Some(counts));
    }

    #[test]
    fn the_lateness_of_the_machine_is_not_the_lateness_of_the_client() {
        let late = SECOND / 2;
        let (mut within, mut beyond) = (Waits::default(), Waits::default());
        let most = ALLOWANCE + LATE_STEPS * late;
        within.add(process(0), BoundedWait { late, ..wait(most) });
        beyond.add(
            process(0),
            BoundedWait {
                late,
                ..wait(most + 1)
            },
        );
        assert_eq!(within.overrun(0), None);
        assert!(beyond.overrun(0).is_some());
    }

    #[test]
    fn waits_that_ran_out_are_counted() {
        let mut waits = Waits::default();
        assert_eq!(waits.counts(), None);
        waits.add(process(0), wait(20_000_000));
        let won = BoundedWait {
            ended: 10 * SECOND + 1,
            end: WaitEnd::Won,
            ..wait(0)
        };
        waits.add(process(0), won);
        let counts = WaitCounts {
            judged: 2,
            ran_out: 1,
            excused: 0,
            latest_ms: 20,
        };
        assert_eq!(waits.counts(), Some(counts));
    }
}
