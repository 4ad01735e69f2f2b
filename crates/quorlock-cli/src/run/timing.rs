//! The times that decide whether a command may start, and by when it must end.

use std::time::Duration;

use crate::failure::Failure;
use crate::span::Span;

/// The times of one run, checked against each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Timing {
    /// Lease of the lock, renewed every third of it.
    pub(crate) lease: Duration,
    /// Time from TERM to the end of the validity.
    pub(crate) grace: Duration,
    /// Shortest validity before TERM with which the command starts.
    pub(crate) min_validity: Duration,
    /// Time from KILL to the end of the validity. The system needs time to end a group, and the group must have ended
    /// by then.
    pub(crate) reserve: Duration,
}

impl Timing {
    /// The default lease.
    pub(crate) const LEASE: Duration = Duration::from_secs(30);

    /// The shortest lease. Processes take milliseconds to start and to end.
    const SHORTEST_LEASE: Duration = Duration::from_millis(200);

    const LONGEST_DEFAULT: Duration = Duration::from_secs(10);

    /// Returns the times of a run.
    ///
    /// # Errors
    /// A failure of usage if they do not fit together.
    pub(crate) fn new(
        lease: Duration,
        grace: Option<Span>,
        min_validity: Option<Span>,
    ) -> Result<Self, Failure> {
        if lease < Self::SHORTEST_LEASE {
            return Err(Failure::usage(format!(
                "--lease, {lease:?}, is too short for a command: at least {:?}",
                Self::SHORTEST_LEASE
            )));
        }
        let third = (lease / 3).min(Self::LONGEST_DEFAULT);
        let grace = grace.map_or(third, |span| span.0);
        let min_validity = min_validity.map_or(third, |span| span.0);
        // The lock is renewed when two thirds are left. After that there must be time for further attempts before the
        // grace begins.
        if lease / 2 < grace {
            return Err(Failure::usage(format!(
                "--grace, {grace:?}, leaves no time to renew a lease of {lease:?}: at most half of it, {:?}",
                lease / 2
            )));
        }
        // The validity of a new lease is shorter than its length by the drift of 1 % and the round trip.
        let most = (lease / 10 * 9).saturating_sub(grace);
        if most < min_validity {
            return Err(Failure::usage(format!(
                "--min-validity, {min_validity:?}, is more than a lease of {lease:?} has before a grace of {grace:?} begins: at most {most:?}"
            )));
        }
        let reserve = lease / 50;
        let reserve = reserve.clamp(Duration::from_millis(5), Duration::from_millis(100));
        Ok(Timing {
            lease,
            grace,
            min_validity,
            reserve,
        })
    }

    /// Returns how much validity a command needs to start.
    pub(crate) fn needed(&self) -> Duration {
        self.min_validity + self.grace.max(self.reserve)
    }

    /// Returns how often the guardian receives the time until which the lock is valid.
    pub(crate) fn tick(&self) -> Duration {
        let tick = self.lease / 20;
        tick.clamp(Duration::from_millis(10), Duration::from_millis(500))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn grace_and_min_validity_are_a_third_of_the_lease_and_at_most_ten_seconds() {
        let short = Timing::new(millis(3_000), None, None).unwrap();
        assert_eq!(
            (short.grace, short.min_validity),
            (millis(1_000), millis(1_000))
        );
        assert_eq!(short.reserve, millis(60));
        let long = Timing::new(millis(60_000), None, None).unwrap();
        assert_eq!(
            (long.grace, long.min_validity),
            (millis(10_000), millis(10_000))
        );
        assert_eq!(long.reserve, millis(100));
    }

    #[test]
    fn what_does_not_fit_the_lease_is_an_error_of_usage() {
        let lease = millis(10_000);
        for (grace, min_validity, says) in [
            (
                Some(5_001),
                None,
                "--grace, 5.001s, leaves no time to renew a lease of 10s",
            ),
            (
                Some(4_000),
                Some(5_001),
                "--min-validity, 5.001s, is more than a lease of 10s has",
            ),
            (None, Some(9_000), "--min-validity, 9s"),
        ] {
            let span = |span: Option<u64>| span.map(|span| Span(millis(span)));
            let failure = Timing::new(lease, span(grace), span(min_validity)).unwrap_err();
            assert_eq!(failure.code, crate::failure::Code::USAGE);
            assert!(failure.text.contains(says), "{}", failure.text);
        }
        assert!(Timing::new(lease, Some(Span(millis(4_000))), Some(Span(millis(5_000)))).is_ok());
        assert!(Timing::new(millis(199), None, None).is_err());
    }
}
