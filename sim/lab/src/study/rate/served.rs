//! How a lock served its clients in many runs.

use serde::Serialize;

use crate::study::measure::Measured;
use crate::study::results::Row;
use crate::study::service::Service;

/// Sums over runs. Times are in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Served {
    runs: u64,
    next_lock: u64,
    longest: u64,
    unavailable: u64,
    lasted: u64,
    holds: u64,
    requests: u64,
}

/// How a lock serves its clients after a cluster of faults. What was not run is absent.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Serving {
    /// From the first fault until a client got a lock, in seconds: the mean. A run in which none did counts with its length.
    pub next_lock: f64,
    /// For how much longer than without faults a client asked for a lock that no client held, in seconds: the mean.
    pub outage: f64,
    /// For how long a client asked for a lock that no client held in the worst run, in seconds.
    pub longest: f64,
    /// The requests that nodes executed, for each hold.
    pub requests_a_hold: Option<f64>,
}

impl Served {
    /// Adds a run.
    pub(super) fn add(&mut self, row: &Row) {
        let Some(Measured::Service(service)) = row.measured else {
            return;
        };
        let Service {
            next_lock,
            unavailable,
            lasted,
        } = service;
        self.add_all(&Served {
            runs: 1,
            next_lock: next_lock.unwrap_or(lasted),
            longest: unavailable,
            unavailable,
            lasted,
            holds: u64::from(row.holds),
            requests: row.commands,
        });
    }

    /// Adds the runs of other sums.
    pub(super) fn add_all(&mut self, other: &Served) {
        self.runs += other.runs;
        self.next_lock += other.next_lock;
        self.longest = self.longest.max(other.longest);
        self.unavailable += other.unavailable;
        self.lasted += other.lasted;
        self.holds += other.holds;
        self.requests += other.requests;
    }

    /// Returns the means of these runs, compared with runs without faults.
    pub(super) fn compared_with(&self, quiet: &Served) -> Option<Serving> {
        let mean = |sum: u64| sum as f64 / self.runs as f64 / 1e9;
        // In whole numbers, so that runs without faults have exactly no outage.
        let usual = i128::from(quiet.unavailable) * i128::from(self.lasted);
        let longer = i128::from(self.unavailable) * i128::from(quiet.lasted) - usual;
        (0 < self.runs).then(|| Serving {
            next_lock: mean(self.next_lock),
            outage: longer as f64 / quiet.lasted.max(1) as f64 / self.runs as f64 / 1e9,
            longest: self.longest as f64 / 1e9,
            requests_a_hold: (0 < self.holds).then(|| self.requests as f64 / self.holds as f64),
        })
    }
}
