//! The time during which the machine was suspended, which Rust's clocks do not count.

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) use counted::{awake, before};
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) use uncounted::{awake, before};

#[cfg(any(target_os = "linux", target_os = "android"))]
mod counted {
    use std::sync::atomic::{AtomicU64, Ordering};

    use rustix::time::{ClockId, clock_gettime};

    /// The largest time that was read, in nanoseconds.
    static SEEN: AtomicU64 = AtomicU64::new(0);

    /// Reads `awake`, a clock that does not count suspended time. Returns for how long the machine was suspended before, and the
    /// reading, in nanoseconds: their sum is a time at some moment of this call, however long it pauses between its steps.
    ///
    /// Usually two clocks are read, and not three. Suppose the machine was suspended for no longer than was seen before. Then
    /// `CLOCK_BOOTTIME`, which is read first, is at most the sum that is returned, so the sum is not of a moment before this call.
    /// A clock of tokio that a test has paused may be behind that of the system, and then the third one is read.
    pub(in super::super) fn before(awake: impl Fn() -> u64) -> (u64, u64) {
        let with = nanos(ClockId::Boottime);
        let reading = awake();
        let seen = SEEN.load(Ordering::Relaxed);
        let (suspended, reading) = if with <= reading.saturating_add(seen) {
            (seen, reading)
        } else {
            (time(), awake())
        };
        #[cfg(test)]
        let suspended = suspended + super::pretended::NANOS.get();
        (suspended, reading)
    }

    /// What the clock that does not count suspended time shows, in nanoseconds.
    pub(in super::super) fn awake() -> u64 {
        nanos(ClockId::Monotonic)
    }

    /// How long the machine has been suspended since it was booted. It never decreases.
    ///
    /// It is `CLOCK_BOOTTIME` minus `CLOCK_MONOTONIC`, read in this order. A thread that is preempted between the two
    /// reads gets too small a value, which the largest value of other readers corrects; no reader gets too large a
    /// value.
    fn time() -> u64 {
        let with = nanos(ClockId::Boottime);
        let without = nanos(ClockId::Monotonic);
        largest(&SEEN, with.saturating_sub(without))
    }

    fn nanos(clock: ClockId) -> u64 {
        let time = clock_gettime(clock);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
        seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
    }

    /// Returns the larger of `now` and the largest value so far.
    fn largest(seen: &AtomicU64, now: u64) -> u64 {
        // The value rarely grows, and an unneeded write would contend for the cache line.
        let before = seen.load(Ordering::Relaxed);
        if now <= before {
            return before;
        }
        seen.fetch_max(now, Ordering::Relaxed).max(now)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn what_was_seen_does_not_go_down() {
            let seen = AtomicU64::new(0);
            let readings = [0, 7, 5, 7, 40_000_000_000, 39_999_999_950];
            let told = readings.map(|reading| largest(&seen, reading));
            assert_eq!(told, [0, 7, 7, 7, 40_000_000_000, 40_000_000_000]);
        }

        #[test]
        fn a_reading_is_of_a_moment_of_its_call() {
            for _ in 0..1_000 {
                let earliest = nanos(ClockId::Boottime);
                let (suspended, reading) = before(awake);
                assert!(earliest <= suspended + reading);
                assert!(suspended + reading <= nanos(ClockId::Boottime));
            }
        }

        #[test]
        fn a_clock_that_is_behind_shows_no_suspension() {
            let real = time();
            let (suspended, reading) = before(|| 7);
            // Another thread may have seen more since, but not the whole time since the machine was booted.
            assert!(real <= suspended && suspended < nanos(ClockId::Boottime) / 2);
            assert_eq!(reading, 7);
        }

        #[test]
        fn it_is_what_the_two_clocks_of_the_system_differ_by() {
            let before = nanos(ClockId::Boottime);
            let told = time();
            let without = nanos(ClockId::Monotonic);
            // Time passes between these readings, and never backwards.
            assert!(before <= without + told);
            assert!(without + told <= nanos(ClockId::Boottime));
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod uncounted {
    /// Nothing is known of suspensions: the clock of the standard library is used as it is.
    pub(in super::super) fn before(awake: impl Fn() -> u64) -> (u64, u64) {
        #[cfg(test)]
        let suspended = super::pretended::NANOS.get();
        #[cfg(not(test))]
        let suspended = 0;
        (suspended, awake())
    }

    /// Zero: readings count from the first use of the clock.
    pub(in super::super) fn awake() -> u64 {
        0
    }
}

/// A pretended suspension of the machine, for tests of one thread.
#[cfg(test)]
pub(super) mod pretended {
    use std::cell::Cell;
    use std::time::Duration;

    thread_local! {
        pub(super) static NANOS: Cell<u64> = const { Cell::new(0) };
    }

    /// Suspends the machine for this time, during which Rust's clocks stand still.
    pub(in super::super) fn suspend(span: Duration) {
        let span = u64::try_from(span.as_nanos()).unwrap();
        NANOS.set(NANOS.get() + span);
    }
}
