//! What operators see: `tracing` events and metrics, each behind its feature.
//!
//! This module is above the stored state: state returns what has changed, and the operation or the keeper that
//! changed it reports it here.
//!
//! Without the features all of it compiles to nothing. An uncontended acquisition checks once whether a subscriber is
//! interested, and so does its end. Events contain keys, owners, tokens and addresses without credentials.

#![cfg_attr(
    not(all(feature = "metrics", feature = "tracing")),
    allow(
        unused_variables,
        unused_imports,
        clippy::single_match,
        reason = "unused without both features"
    )
)]

mod span;

use std::fmt::Display;
use std::time::Duration;

use quorlock_core::fencing::Token;
use quorlock_core::marker::Act;
use quorlock_core::message::Request;
use quorlock_core::name::Name;
use quorlock_core::owner::OwnerId;
use quorlock_core::renewal::{Lost, Status};
use quorlock_core::round::Loss;
use quorlock_core::time::Time;
use quorlock_core::transport::TransportError;

use crate::error::{AcquireError, NodeReport};
use crate::shared::layout::Layout;
use crate::shared::trust::TrustChange;

#[cfg(feature = "metrics")]
use self::span::outcome;
pub(crate) use self::span::{Span, acquire as acquire_span, hold as hold_span};

/// Increments a counter, optionally with a label, and with that of the lock's names.
macro_rules! count {
    ($name:ident of $lock:expr $(, $label:literal => $value:expr)?) => {
        #[cfg(feature = "metrics")]
        ::metrics::counter!(crate::metrics::$name, labels($lock, &[$(($label, $value))?])).increment(1);
    };
    ($name:ident $(, $label:literal => $value:expr)?) => {
        #[cfg(feature = "metrics")]
        ::metrics::counter!(crate::metrics::$name $(, $label => $value)?).increment(1);
    };
}

/// Records a time span in a histogram, optionally with the label of the lock's names.
macro_rules! note {
    ($name:ident of $lock:expr, $span:expr $(, $label:literal => $value:expr)?) => {
        #[cfg(feature = "metrics")]
        ::metrics::histogram!(crate::metrics::$name, labels($lock, &[$(($label, $value))?])).record($span.as_secs_f64());
    };
    ($name:ident, $span:expr $(, $label:literal => $value:expr)?) => {
        #[cfg(feature = "metrics")]
        ::metrics::histogram!(crate::metrics::$name $(, $label => $value)?).record($span.as_secs_f64());
    };
}

/// Moves a gauge by one.
macro_rules! shift {
    ($name:ident, $way:ident) => {
        #[cfg(feature = "metrics")]
        ::metrics::gauge!(crate::metrics::$name).$way(1.0);
    };
}

/// Emits an event.
macro_rules! tell {
    ($level:ident, $($rest:tt)+) => {
        #[cfg(feature = "tracing")]
        tracing::$level!(target: "quorlock", $($rest)+);
    };
}

/// The labels of a metric about a lock: its own, and that of the lock's names if there is one.
#[cfg(feature = "metrics")]
fn labels(lock: &Layout, own: &[(&'static str, &'static str)]) -> Vec<::metrics::Label> {
    let own = own.iter();
    let mut labels: Vec<_> = own.map(::metrics::Label::from).collect();
    let party = lock.parties().next();
    if let Some(names) = party.and_then(|party| party.name_labels.as_ref()) {
        labels.push(::metrics::Label::new("name", names.of(lock.given())));
    }
    labels
}

/// An acquisition in progress: when it began, if its end will be reported. It counts as a waiter until it is dropped.
pub(crate) struct Began(Option<Time>);

impl Drop for Began {
    fn drop(&mut self) {
        shift!(WAITERS, decrement);
    }
}

/// Begins an acquisition. The clock is read only if the end will be reported.
pub(crate) fn begin(now: impl FnOnce() -> Time) -> Began {
    shift!(WAITERS, increment);
    Began(is_wanted().then(now))
}

fn is_wanted() -> bool {
    #[cfg(feature = "tracing")]
    if tracing::enabled!(target: "quorlock", tracing::Level::DEBUG) {
        return true;
    }
    cfg!(feature = "metrics")
}

/// Reports the end of an acquisition.
pub(crate) fn acquired(
    began: &Began,
    now: impl FnOnce() -> Time,
    names: &Layout,
    result: Result<(OwnerId, Token), &AcquireError>,
) {
    let Some(began) = began.0 else {
        return;
    };
    let waited = now().since(began);
    match result {
        Ok((owner, token)) => {
            tell!(debug, %names, %owner, %token, ?waited, "acquired");
        }
        Err(error) => {
            tell!(debug, %names, ?waited, %error, "not acquired");
        }
    }
    note!(WAIT_SECONDS of names, waited, "outcome" => outcome(result));
}

/// Reports a won round and its duration. The new hold's end is reported by [`ended`] or [`leaked`].
pub(crate) fn won(lasted: Duration) {
    shift!(HOLDS, increment);
    note!(ROUND_SECONDS, lasted, "outcome" => "won");
}

/// Reports a hold that another caller of the client has passed on.
pub(crate) fn passed() {
    shift!(HOLDS, increment);
}

/// Reports a lost round and its duration.
pub(crate) fn round_lost(names: &Layout, loss: &Loss, lasted: Duration, problems: &[NodeReport]) {
    note!(ROUND_SECONDS, lasted, "outcome" => match loss {
        Loss::Refused { .. } | Loss::Postponed | Loss::OtherMode(_) => "refused",
        _ => "failed",
    });
    match loss {
        Loss::Refused { split, .. } => {
            count!(REFUSED_ROUNDS of names);
            if *split {
                count!(SPLIT_VOTES);
            }
            tell!(debug, %names, split = *split, "contended: others hold it");
        }
        Loss::Postponed => {
            count!(REFUSED_ROUNDS of names);
            tell!(debug, %names, "contended: the first node is another's");
        }
        Loss::NoQuorum | Loss::TooSlow => {
            count!(FAILED_ROUNDS);
            tell!(debug, %names, ?loss, "a round failed");
        }
        Loss::Quarantined { .. } => {
            count!(FAILED_ROUNDS);
            tell!(debug, %names, "too many nodes are quarantined: waiting until they are trusted");
        }
        Loss::Denied => {
            count!(FAILED_ROUNDS);
            tell!(warn, %names, "too many nodes refuse in a way that waiting does not cure");
        }
        Loss::OtherMode(mode) => {
            tell!(warn, %names, found = %mode, "a lock of another mode stands there");
        }
    }
    for node in problems {
        tell!(debug, address = %node.address, problem = %node, "a node did not count in a round");
    }
}

/// Whether a developer would see the event of [`waits_for_itself`].
pub(crate) fn hears_of_itself() -> bool {
    #[cfg(feature = "tracing")]
    {
        tracing::enabled!(target: "quorlock", tracing::Level::DEBUG)
    }
    #[cfg(not(feature = "tracing"))]
    false
}

/// Reports a wait for a lock that this client holds. It is a mistake if the waiting task is the holder, and normal if
/// tasks alternate.
pub(crate) fn waits_for_itself(names: &dyn Display) {
    tell!(
        debug,
        %names,
        "waiting for what this client holds: right for another task, but a task that holds it waits in vain and has to release it first, or enter it again by its guard (reenter) or an Owner"
    );
    #[cfg(not(feature = "tracing"))]
    let _ = names;
}

/// Warns that the task that renews was not run in time. Says it once for each client.
pub(crate) fn not_run(late: Duration) {
    tell!(
        warn,
        ?late,
        "what renews the holds of this client was not run in time: a current_thread runtime runs tasks only inside block_on, and a thread that computes or blocks runs none. Use a runtime with several threads, spawn_blocking, or quorlock::blocking. (A machine that was suspended or is overloaded shows the same.) This is said once"
    );
    #[cfg(not(feature = "tracing"))]
    let _ = late;
}

/// Registers the metrics when a client is made.
pub(crate) fn made() {
    #[cfg(feature = "metrics")]
    crate::metrics::describe();
}

/// Reports settings of a new client that are legal but doubtful.
pub(crate) fn built(doubts: impl Iterator<Item = String>) {
    for doubt in doubts {
        tell!(warn, doubt, "a setting is legal and doubtful");
    }
}

/// Reports a won round whose members handed out different tokens.
pub(crate) fn raised(names: &dyn Display) {
    count!(RAISED_TOKENS);
    tell!(debug, %names, "the nodes handed out different tokens: proposing a larger one");
}

/// Reports the end of a hold: released or lost.
pub(crate) fn ended(names: &Layout, owner: OwnerId, token: Token, held: Duration, status: Status) {
    shift!(HOLDS, decrement);
    note!(HOLD_SECONDS of names, held);
    if let Status::Lost(lost) = status {
        count!(LOST of names, "kind" => kind(lost));
        if lost == Lost::Closed {
            tell!(debug, %names, %owner, "given back: the client was closed");
        } else {
            tell!(warn, %names, %owner, %token, ?held, kind = kind(lost), "lost");
        }
    } else {
        tell!(debug, %names, %owner, ?held, "released");
    }
}

/// Removes a leaked hold from the gauge. Its end is not reported.
pub(crate) fn leaked() {
    shift!(HOLDS, decrement);
}

#[cfg(any(feature = "metrics", feature = "tracing"))]
fn kind(lost: Lost) -> &'static str {
    match lost {
        Lost::Expired => "expired",
        Lost::Taken => "taken",
        Lost::Unreachable => "unreachable",
        Lost::Closed => "closed",
        Lost::Released => "released",
        _ => "other",
    }
}

/// Reports that a candidate leads. The end of its term is reported as the end of its hold.
pub(crate) fn elected(name: &dyn Display, owner: OwnerId, term: Token) {
    count!(ELECTIONS);
    tell!(info, %name, %owner, %term, "elected: leads");
}

/// Reports that a candidate could not be elected for a reason other than an existing leader.
pub(crate) fn not_elected(name: &dyn Display, error: &AcquireError) {
    tell!(warn, %name, %error, "a candidate cannot be elected");
}

/// Reports a node that did not answer a renewal, and the number of claims in it.
pub(crate) fn renewal_failed(address: &str, error: Option<&TransportError>, claims: usize) {
    count!(RENEWAL_FAILURES);
    match error {
        Some(error) => {
            tell!(warn, address, claims, cause = ?error.cause, %error, "a renewal failed");
        }
        None => {
            tell!(warn, address, claims, "a renewal failed: a strange answer");
        }
    }
}

/// Reports a claim that a node no longer has.
pub(crate) fn claim_gone(name: &Name, owner: OwnerId, address: &str) {
    count!(CLAIMS_GONE);
    tell!(warn, %name, %owner, address, "a claim is gone from a node");
}

/// Reports a node that did not grant a hold that was won without it.
pub(crate) fn node_missing(name: &Name, owner: OwnerId, address: &str, error: &TransportError) {
    tell!(warn, %name, %owner, address, cause = ?error.cause, %error, "a node does not back a hold");
}

/// Reports a release that too few nodes confirmed.
pub(crate) fn release_unconfirmed(names: &dyn Display, owner: OwnerId, problems: &[NodeReport]) {
    count!(RELEASES_UNCONFIRMED);
    tell!(warn, %names, %owner, "a release is not confirmed; it goes on in the background");
    for node in problems {
        tell!(warn, %owner, address = %node.address, problem = %node, "a node did not confirm a release");
    }
}

/// Reports a node whose votes stop counting, or count again.
pub(crate) fn trust_changed(address: &str, change: Option<TrustChange>) {
    match change {
        None => {}
        Some(TrustChange::Quarantined(quarantine)) => {
            count!(QUARANTINES);
            quarantined(address, 1.0);
            tell!(warn, address, why = %quarantine.why, left = ?quarantine.left, "a node is quarantined: it is asked, but its votes do not count yet");
        }
        Some(TrustChange::Trusted) => {
            quarantined(address, 0.0);
            tell!(info, address, "a node is trusted: its votes count");
        }
    }
}

/// Tells which longest lease this client wants a node to grant.
pub(crate) fn probing(address: &str, probe: &Request) {
    let Request::Probe(check) = probe else {
        return;
    };
    if check.act == Act::Restate {
        let figures = check.figures;
        let wanted = Duration::from_millis(figures.watched_millis);
        let granted = Duration::from_millis(figures.granted_millis);
        tell!(
            info,
            address,
            ?granted,
            ?wanted,
            "this client raises the longest lease of a node, because its longest_lease is larger"
        );
    }
    #[cfg(not(feature = "tracing"))]
    let _ = address;
}

fn quarantined(address: &str, is_so: f64) {
    #[cfg(feature = "metrics")]
    ::metrics::gauge!(crate::metrics::QUARANTINED, "address" => address.to_owned()).set(is_so);
}

/// Tells which nodes the next backup will make look restarted. It is a warning if the backup of one node ends all locks.
#[cfg(feature = "redis")]
pub(crate) fn without_backlog(addresses: &str, one_ends_all: bool) {
    if one_ends_all {
        tell!(
            warn,
            addresses,
            "nodes have no replication backlog: the next backup by replication (redis-cli --rdb) quarantines them, and no new lock is granted meanwhile. Set repl-backlog-ttl 0 and make one after each start (book: Back up nodes)"
        );
    } else {
        tell!(
            debug,
            addresses,
            "nodes have no replication backlog: a backup by replication (redis-cli --rdb) quarantines them, so back up one after another (book: Back up nodes)"
        );
    }
    #[cfg(not(feature = "tracing"))]
    let _ = addresses;
}

/// Whether an operator would see warnings about doubtful servers.
#[cfg(feature = "redis")]
pub(crate) fn hears_of_doubts() -> bool {
    #[cfg(feature = "tracing")]
    {
        tracing::enabled!(target: "quorlock", tracing::Level::WARN)
    }
    #[cfg(not(feature = "tracing"))]
    false
}

/// Warns about nodes that are usable but doubtful.
#[cfg(feature = "redis")]
pub(crate) fn doubtful(addresses: &str, doubt: &dyn Display) {
    tell!(warn, addresses, %doubt, "a server is usable and doubtful");
    #[cfg(not(feature = "tracing"))]
    let _ = (addresses, doubt);
}

/// Reports that nothing is left to clean up for a claim that may have existed on a node.
pub(crate) fn orphan_cleaned(name: &Name, owner: OwnerId, address: &str) {
    count!(ORPHANS_CLEANED);
    tell!(debug, %name, %owner, address, "cleaned up a claim");
}
