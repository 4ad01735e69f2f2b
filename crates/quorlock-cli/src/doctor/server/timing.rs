//! The clock and the round trips.

use std::time::Duration;

use quorlock::operate::{Limits, ServerFacts};

use crate::doctor::line::{Level, Line};
use crate::doctor::show::{signed, span};

const CLOCK: &str = "clock";

/// The difference of rates that the drift allowance covers: 1 %.
const DRIFT_PPM: i64 = 10_000;

pub(super) fn clock(facts: &ServerFacts, limits: &Limits) -> Option<Line> {
    let clock = facts.clock?;
    let rate = clock.faster_ppm.map(|faster| (faster, clock.within_ppm));
    let shown = rate.map_or_else(String::new, |(faster, within)| {
        format!(
            ", {} as fast within {}",
            percent(1_000_000 + faster),
            percent(within)
        )
    });
    if let Some((faster, within)) = rate
        && DRIFT_PPM < faster.abs() - within
    {
        return Some(
            Line::doubtful(
                CLOCK,
                format!(
                    "it does not run as fast as this machine's{shown}: the drift allowance is 1 %"
                ),
            )
            .cure("compare both with a clock that you trust: leases rely on their rates"),
        );
    }
    Some(of_offset(
        clock.ahead_micros,
        clock.within_micros,
        &shown,
        limits,
    ))
}

/// A clock that is this far ahead of this machine's. A constant difference harms no lock; what the clients' clocks do to tokens is
/// bounded by a quarter of the longest lease.
pub(in crate::doctor) fn of_offset(
    ahead_micros: i64,
    within_micros: i64,
    more: &str,
    limits: &Limits,
) -> Line {
    let within = span(Duration::from_micros(within_micros.unsigned_abs()));
    let text = format!(
        "{} from this machine's, within {within}{more}",
        signed(ahead_micros)
    );
    let quarter = limits.longest_lease / 4;
    let bound = i64::try_from(quarter.as_micros()).unwrap_or(i64::MAX);
    if bound < ahead_micros.abs() - within_micros {
        return Line::doubtful(CLOCK, format!("{text}: more than a quarter of the longest lease, {}", span(quarter)))
            .cure("find out which of the two is wrong: fencing tokens rely on the clocks when counters are lost");
    }
    let steps = match limits.clock_margin {
        Duration::ZERO => "; no step is covered, as clock_margin is 0".to_owned(),
        margin => format!("; steps below {} are covered", span(margin)),
    };
    Line::ok(CLOCK, text + &steps)
}

fn percent(ppm: i64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "two digits are shown")]
    let percent = ppm as f64 / 10_000.0;
    format!("{percent:.2} %")
}

const LATENCY: &str = "latency";

/// How many of the longest round trips fit into a lease whose member time-out is its default, 5 %, twice as long as one: the first use
/// of a script takes two.
const ROUND_TRIPS: u32 = 40;

pub(in crate::doctor) fn of_round_trips(round_trips: &[Duration], limits: &Limits) -> Option<Line> {
    let longest = *round_trips.last()?;
    let median = *round_trips.get(round_trips.len() / 2)?;
    let (bound, lease) = (limits.member_timeout, span(limits.lease));
    let text = format!(
        "median {}, longest {} of {}; a server has {} to answer, with a lease of {lease}",
        span(median),
        span(longest),
        round_trips.len(),
        span(bound),
    );
    let least = span(longest * ROUND_TRIPS);
    let cure = format!(
        "set a lease of at least {least} (--lease, watchdog_lease), or a longer member_timeout"
    );
    Some(if bound <= median {
        Line::new(
            LATENCY,
            Level::Absent,
            format!("{text}: too slow for this lease"),
        )
        .cure(cure)
    } else if bound < longest * 2 {
        Line::doubtful(LATENCY, format!("{text}: two round trips do not fit")).cure(cure)
    } else {
        Line::ok(LATENCY, text)
    })
}
