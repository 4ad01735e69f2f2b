//! The metrics, recorded through the [`metrics`](https://docs.rs/metrics) facade. Feature `metrics`.
//!
//! Install a recorder or an exporter before the first client is made or [`describe`] is called. Labels have only the
//! values that are listed here, except for the addresses of nodes. Names of locks and owners are in the `tracing`
//! events; [`metrics_by_name`](crate::LocksBuilder::metrics_by_name) adds a label for names.

mod names;

use ::metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram};

pub(crate) use self::names::NameLabels;
pub use self::names::{OTHER, without_ids};

/// The kind of a metric.
enum Kind {
    Histogram,
    Gauge,
    /// A label and all its values; empty for a counter without a label.
    Counter(&'static str, &'static [&'static str]),
}

const PLAIN: Kind = Kind::Counter("", &[]);

/// The table of metrics: the constant, the name, the kind and the documentation of each.
macro_rules! metrics {
    ($($(#[doc = $doc:literal])+ $constant:ident = $name:literal, $kind:expr;)+) => {
        $($(#[doc = $doc])+ pub const $constant: &str = $name;)+

        const ALL: &[(&str, Kind, &str)] = &[$(($name, $kind, concat!($($doc),+))),+];
    };
}

metrics! {
    /// Histogram, seconds: the duration of every acquisition that was not dropped. Label `outcome`: `acquired`,
    /// `contended`, `no_quorum`, `too_slow`, `closed`, `refused` (any other error).
    WAIT_SECONDS = "quorlock_wait_seconds", Kind::Histogram;

    /// Histogram, seconds: from the beginning of the round that won a lock to its release or loss.
    HOLD_SECONDS = "quorlock_hold_seconds", Kind::Histogram;

    /// Histogram, seconds: one round of requests to all members. Label `outcome`: `won`, `refused` (others hold the
    /// lock), `failed`.
    ROUND_SECONDS = "quorlock_round_seconds", Kind::Histogram;

    /// Gauge: holds of this process now, without leaked ones.
    HOLDS = "quorlock_holds", Kind::Gauge;

    /// Gauge: acquisitions in progress now, including those that wait.
    WAITERS = "quorlock_waiters", Kind::Gauge;

    /// Gauge: 1 while the votes of a node do not count, otherwise 0; absent until the node is quarantined for the
    /// first time. Label `address`. Clients of one process that share a node share it.
    QUARANTINED = "quorlock_node_quarantined", Kind::Gauge;

    /// Counter: rounds that were lost because others hold the lock (contention).
    REFUSED_ROUNDS = "quorlock_refused_rounds_total", PLAIN;

    /// Counter: refused rounds in which some nodes granted, because competitors split the votes.
    SPLIT_VOTES = "quorlock_split_votes_total", PLAIN;

    /// Counter: rounds that were lost because too few nodes answered, or too slowly, or too many are quarantined.
    FAILED_ROUNDS = "quorlock_failed_rounds_total", PLAIN;

    /// Counter: won rounds whose nodes had handed out different tokens, which takes one more round trip.
    RAISED_TOKENS = "quorlock_raised_tokens_total", PLAIN;

    /// Counter: holds that were lost. Label `kind`: `expired`, `taken`, `unreachable`, `closed`.
    LOST = "quorlock_lost_total", Kind::Counter("kind", &["expired", "taken", "unreachable", "closed"]);

    /// Counter: elections won by candidates of this process.
    ELECTIONS = "quorlock_elections_total", PLAIN;

    /// Counter: renewals (of up to a hundred claims each) that a node did not answer.
    RENEWAL_FAILURES = "quorlock_renewal_failures_total", PLAIN;

    /// Counter: claims that a node reported gone at a renewal.
    CLAIMS_GONE = "quorlock_claims_gone_total", PLAIN;

    /// Counter: releases that too few nodes confirmed; they continue in the background.
    RELEASES_UNCONFIRMED = "quorlock_releases_unconfirmed_total", PLAIN;

    /// Counter: how often a node was quarantined, or the reason for it changed.
    QUARANTINES = "quorlock_quarantines_total", PLAIN;

    /// Counter: claims that were cleaned up in the background, one per node, of lost rounds, dropped guards and lost
    /// holds.
    ORPHANS_CLEANED = "quorlock_orphans_cleaned_total", PLAIN;
}

/// Registers the unit and documentation of every metric, and every counter at zero. An alert on a counter that
/// appears with its first event would miss that event.
///
/// Every client calls this when it is made. Call it yourself if the recorder is installed later.
pub fn describe() {
    for (name, kind, text) in ALL {
        let text = text.trim_start();
        match kind {
            Kind::Histogram => describe_histogram!(*name, Unit::Seconds, text),
            Kind::Gauge => describe_gauge!(*name, Unit::Count, text),
            Kind::Counter(label, values) => {
                describe_counter!(*name, Unit::Count, text);
                // Registering a counter is enough to report it as zero.
                if values.is_empty() {
                    drop(counter!(*name));
                }
                for value in *values {
                    drop(counter!(*name, *label => *value));
                }
            }
        }
    }
}
