//! The names of the metrics, recorded through the [`metrics`](https://docs.rs/metrics) facade. Feature `metrics`.
//!
//! Install a recorder or an exporter of your own. No label has more values than are listed here; names of locks,
//! owners and addresses are in the `tracing` events.

/// Histogram, seconds: from the call to its end, for every acquisition that was waited for to the end. Label `outcome`: `acquired`,
/// `contended`, `no_quorum`, `too_slow`, `closed`, `refused` (any other error).
pub const WAIT_SECONDS: &str = "quorlock_wait_seconds";

/// Histogram, seconds: from the begin of the round that won a lock to its release or loss.
pub const HOLD_SECONDS: &str = "quorlock_hold_seconds";

/// Counter: rounds that were lost because others hold the lock (contention).
pub const REFUSED_ROUNDS: &str = "quorlock_refused_rounds_total";

/// Counter: those refused rounds in which some nodes granted: competitors split the votes.
pub const SPLIT_VOTES: &str = "quorlock_split_votes_total";

/// Counter: rounds that were lost because too few nodes answered, or too slowly, or too many are quarantined.
pub const FAILED_ROUNDS: &str = "quorlock_failed_rounds_total";

/// Counter: rounds that were won whose nodes had handed out different tokens, which takes one more round trip.
pub const RAISED_TOKENS: &str = "quorlock_raised_tokens_total";

/// Counter: holds that were lost. Label `kind`: `expired`, `taken`, `unreachable`, `closed`.
pub const LOST: &str = "quorlock_lost_total";

/// Counter: elections that a candidate of this process has won.
pub const ELECTIONS: &str = "quorlock_elections_total";

/// Counter: renewals (of up to a hundred claims each) that a node did not answer.
pub const RENEWAL_FAILURES: &str = "quorlock_renewal_failures_total";

/// Counter: claims of which a node said at a renewal that they are gone.
pub const CLAIMS_GONE: &str = "quorlock_claims_gone_total";

/// Counter: releases that too few nodes confirmed; they go on in the background.
pub const RELEASES_UNCONFIRMED: &str = "quorlock_releases_unconfirmed_total";

/// Counter: how often a node was quarantined, or the reason for it changed.
pub const QUARANTINES: &str = "quorlock_quarantines_total";

/// Counter: claims that were cleaned up in the background, one for each node: of lost rounds, dropped guards and lost holds.
pub const ORPHANS_CLEANED: &str = "quorlock_orphans_cleaned_total";
