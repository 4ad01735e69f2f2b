//! The clock of a server, beside that of this machine.

use std::time::Duration;

use crate::timer::Reading;

/// A reading of a server's clock, in microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ClockSample {
    /// The server's clock, since 1970.
    server: i64,
    /// This machine's clock in the middle of the round trip, since 1970.
    here: i64,
    /// The middle of the round trip by this machine's monotonic clock.
    steady: i64,
    /// Half of the round trip: the server has read its clock at most this far from the middle.
    pub(super) half: i64,
}

/// What was found out about a server's clock.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockFacts {
    /// How far the clock is ahead of this machine's, in microseconds; less than zero if it is behind.
    pub ahead_micros: i64,
    /// The bound of this measurement: half of a round trip.
    pub within_micros: i64,
    /// How much faster than this machine's clock it runs, in parts per million, if it was read twice.
    pub faster_ppm: Option<i64>,
    /// The bound of that measurement.
    pub within_ppm: i64,
}

impl ClockSample {
    pub(super) fn of(sent: Reading, received: Reading, server: i64) -> Self {
        let half = micros(received.steady.saturating_sub(sent.steady)) / 2;
        ClockSample {
            server,
            here: micros(sent.wall) + half,
            steady: micros(sent.steady) + half,
            // The server states whole microseconds.
            half: half + 1,
        }
    }
}

impl ClockFacts {
    /// Concludes from one or two readings.
    pub(super) fn of(first: ClockSample, second: Option<ClockSample>) -> Self {
        let best = second.filter(|second| second.half < first.half);
        let best = best.unwrap_or(first);
        let apart = second.map_or(0, |second| second.steady - first.steady);
        let gained = |second: ClockSample| second.server - first.server - apart;
        let second = second.filter(|_| 0 < apart);
        ClockFacts {
            ahead_micros: best.server - best.here,
            within_micros: best.half,
            faster_ppm: second.map(|second| gained(second) * 1_000_000 / apart),
            within_ppm: second.map_or(0, |second| {
                (first.half + second.half) * 1_000_000 / apart + 1
            }),
        }
    }
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(sent: u64, round_trip: u64, server: i64) -> ClockSample {
        let at = |micros| Reading {
            wall: Duration::from_micros(1_000_000 + micros),
            steady: Duration::from_micros(micros),
        };
        ClockSample::of(at(sent), at(sent + round_trip), server)
    }

    #[test]
    fn a_clock_is_known_to_half_a_round_trip() {
        let facts = ClockFacts::of(sample(0, 400, 1_000_500), None);
        assert_eq!((facts.ahead_micros, facts.within_micros), (300, 201));
        assert_eq!(facts.faster_ppm, None);
    }

    #[test]
    fn of_two_readings_the_quicker_one_tells_the_offset_and_both_tell_the_rate() {
        let second = sample(100_000, 100, 1_101_250);
        let facts = ClockFacts::of(sample(0, 400, 1_000_200), Some(second));
        assert_eq!((facts.ahead_micros, facts.within_micros), (1_200, 51));
        // 101,050 us by the server's clock in 99,850 us.
        assert_eq!((facts.faster_ppm, facts.within_ppm), (Some(12_018), 2_524));
    }
}
