//! The time during which the machine was suspended, which Rust's clocks do not count.

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) use counted::time;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) use uncounted::time;

#[cfg(any(target_os = "linux", target_os = "android"))]
mod counted {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use rustix::time::{ClockId, clock_gettime};

    /// The largest time that was read, in nanoseconds.
    static SEEN: AtomicU64 = AtomicU64::new(0);

    /// How long the machine has been suspended since it was booted. It never decreases.
    ///
    /// It is `CLOCK_BOOTTIME` minus `CLOCK_MONOTONIC`, read in this order. A thread that is preempted between the two
    /// reads gets too small a value, which the largest value of other readers corrects; no reader gets too large a
    /// value.
    pub(in super::super) fn time() -> Duration {
        let with = nanos(ClockId::Boottime);
        let without = nanos(ClockId::Monotonic);
        let nanos = largest(&SEEN, with.saturating_sub(without));
        #[cfg(test)]
        let nanos = nanos + super::pretended::NANOS.get();
        Duration::from_nanos(nanos)
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
        fn it_is_what_the_two_clocks_of_the_system_differ_by() {
            let before = nanos(ClockId::Boottime);
            let told = u64::try_from(time().as_nanos()).unwrap();
            let without = nanos(ClockId::Monotonic);
            // Time passes between these readings, and never backwards.
            assert!(before <= without + told);
            assert!(without + told <= nanos(ClockId::Boottime));
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod uncounted {
    use std::time::Duration;

    /// Always zero: the clock of the standard library is used as it is.
    pub(in super::super) fn time() -> Duration {
        #[cfg(test)]
        let time = Duration::from_nanos(super::pretended::NANOS.get());
        #[cfg(not(test))]
        let time = Duration::ZERO;
        time
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
