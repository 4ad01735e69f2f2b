//! How late the machine lets a process run. A thread sleeps in short steps and records how much too late it wakes up.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::clock;

/// The length of a step.
const STEP: Duration = Duration::from_millis(10);

/// How long readings are kept, in nanoseconds. No wait with a bound is judged that takes longer.
const KEPT: u64 = 120_000_000_000;

/// A lateness below this is not kept, in nanoseconds.
const SMALLEST: u64 = 1_000_000;

/// The lateness of this process. All clones share the thread, which lasts until the process ends.
#[derive(Clone, Debug)]
pub(super) struct Lateness {
    readings: Arc<Mutex<Readings>>,
}

#[derive(Debug)]
struct Readings {
    /// When the thread began to sleep.
    asleep_since: u64,
    /// When the thread woke up too late, each time with its lateness in nanoseconds.
    late: VecDeque<(u64, u64)>,
}

impl Lateness {
    /// Starts the thread.
    pub(super) fn measure() -> Lateness {
        let readings = Readings {
            asleep_since: clock::now(),
            late: VecDeque::new(),
        };
        let lateness = Lateness {
            readings: Arc::new(Mutex::new(readings)),
        };
        let of_thread = lateness.clone();
        std::thread::spawn(move || {
            loop {
                clock::sleep_in_thread(STEP);
                of_thread.woke(clock::now());
            }
        });
        lateness
    }

    fn woke(&self, now: u64) {
        let mut readings = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        readings.woke(now);
    }

    /// Returns the largest lateness since a time, up to now.
    pub(super) fn since(&self, from: u64) -> u64 {
        let readings = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        readings.since(from, clock::now())
    }
}

/// Returns how much later than planned a step ends at `now`.
fn lateness(asleep_since: u64, now: u64) -> u64 {
    let step = u64::try_from(STEP.as_nanos()).unwrap_or(u64::MAX);
    now.saturating_sub(asleep_since).saturating_sub(step)
}

impl Readings {
    fn woke(&mut self, now: u64) {
        let late = lateness(self.asleep_since, now);
        if SMALLEST <= late {
            self.late.push_back((now, late));
        }
        while self.late.front().is_some_and(|(at, _)| *at + KEPT < now) {
            self.late.pop_front();
        }
        self.asleep_since = now;
    }

    fn since(&self, from: u64, now: u64) -> u64 {
        let recorded = self.late.iter().rev();
        let recorded = recorded.take_while(|(at, _)| from <= *at);
        let recorded = recorded.map(|(_, late)| *late).max().unwrap_or(0);
        // The thread may be late at this moment.
        recorded.max(lateness(self.asleep_since, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: u64 = 1_000_000;

    #[test]
    fn the_largest_lateness_since_a_time_is_told() {
        let mut readings = Readings {
            asleep_since: 0,
            late: VecDeque::new(),
        };
        readings.woke(60 * MILLI);
        readings.woke(70 * MILLI);
        readings.woke(100 * MILLI);
        assert_eq!(readings.since(0, 100 * MILLI), 50 * MILLI);
        assert_eq!(readings.since(61 * MILLI, 100 * MILLI), 20 * MILLI);
        assert_eq!(readings.since(101 * MILLI, 110 * MILLI), 0);
        // A thread that does not wake up is late, too.
        assert_eq!(readings.since(101 * MILLI, 200 * MILLI), 90 * MILLI);
    }
}
