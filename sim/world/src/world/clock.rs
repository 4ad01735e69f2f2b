//! Clocks that drift, stop and step.

/// Where wall clocks begin: the start of 2026, in nanoseconds since 1970.
const EPOCH: u64 = 1_767_225_600_000_000_000;

/// Returns a wall clock that is correct at the beginning of a run.
pub(crate) fn right_wall_clock() -> Clock {
    Clock::new(EPOCH)
}

/// A clock whose reading is computed from the true time.
#[derive(Clone, Debug)]
pub struct Clock {
    since_true: u64,
    since_local: u64,
    rate_ppm: i32,
}

impl Clock {
    /// Returns a clock that shows `local` at true time 0 and runs at the true rate.
    pub fn new(local: u64) -> Self {
        Clock {
            since_true: 0,
            since_local: local,
            rate_ppm: 0,
        }
    }

    /// Returns the reading of the clock at a true time, in nanoseconds.
    pub fn read(&self, at: u64) -> u64 {
        let passed = at.saturating_sub(self.since_true);
        if self.rate_ppm == 0 {
            return self.since_local + passed;
        }
        // Split into two products, neither of which overflows.
        let (rate, full) = (i64::from(self.rate_ppm), passed / 1_000_000);
        let rest = (passed % 1_000_000).cast_signed() * rate / 1_000_000;
        let ahead = full.cast_signed().saturating_mul(rate).saturating_add(rest);
        self.since_local
            .saturating_add(passed.saturating_add_signed(ahead))
    }

    /// Returns the first true time from `at` on at which the clock shows `local` or more.
    pub fn when(&self, at: u64, local: u64) -> u64 {
        let shown = self.read(at);
        if local <= shown {
            return at;
        }
        if self.rate_ppm == 0 {
            return self.since_true.saturating_add(local - self.since_local);
        }
        let start = at.max(self.since_true);
        let missing = local - self.read(start);
        let rate = i128::from(1_000_000 + self.rate_ppm).max(1);
        let needed = i128::from(missing) * 1_000_000 / rate;
        let mut due = start.saturating_add(u64::try_from(needed).unwrap_or(u64::MAX));
        while self.read(due) < local {
            due += 1;
        }
        due
    }

    /// Changes the rate of the clock from `at` on.
    pub fn run_at(&mut self, at: u64, rate_ppm: i32) {
        self.since_local = self.read(at);
        self.since_true = at.max(self.since_true);
        self.rate_ppm = rate_ppm.max(-999_999);
    }

    /// Steps the clock forwards or backwards at `at`.
    pub fn step(&mut self, at: u64, by: i64) {
        self.since_local = self.read(at).saturating_add_signed(by);
        self.since_true = at.max(self.since_true);
    }

    /// Stops the clock from `at` until `until`.
    pub fn stop(&mut self, at: u64, until: u64) {
        self.since_local = self.read(at);
        self.since_true = until.max(self.since_true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_runs_at_its_rate_from_where_it_was() {
        let mut clock = Clock::new(500);
        assert_eq!(clock.read(1_000), 1_500);
        clock.run_at(1_000_000, 10_000);
        assert_eq!(clock.read(2_000_000), 1_000_500 + 1_010_000);
        clock.run_at(2_000_000, -500_000);
        assert_eq!(clock.read(2_000_010), 2_010_505);
    }

    #[test]
    fn when_is_the_first_moment_at_which_the_clock_shows_it() {
        for rate in [-300_000, -7, 0, 3, 10_000, 900_000] {
            let mut clock = Clock::new(12_345);
            clock.run_at(100, rate);
            for local in [12_446, 20_000, 777_777, 123_456_789] {
                let due = clock.when(100, local);
                assert!(local <= clock.read(due), "{rate} {local}");
                assert!(clock.read(due - 1) < local, "{rate} {local}");
            }
        }
    }

    #[test]
    fn a_stopped_clock_goes_on_from_where_it_stood() {
        let mut clock = Clock::new(0);
        clock.stop(100, 600);
        assert_eq!(clock.read(300), 100);
        assert_eq!(clock.read(600), 100);
        assert_eq!(clock.read(650), 150);
        assert_eq!(clock.when(200, 120), 620);
    }

    #[test]
    fn a_step_is_seen_at_once() {
        let mut clock = Clock::new(1_000);
        clock.step(100, -600);
        assert_eq!(clock.read(100), 500);
        clock.step(200, 5_000);
        assert_eq!(clock.read(201), 5_601);
    }
}
