//! Settings at both ends of `Duration`: they are refused by name, or they work. Nothing panics.

#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test is the world: it waits and spawns by itself, and fails by panicking"
)]

use std::time::Duration;

use quorlock::{AcquireError, ConfigError, EmbeddedNode, Locks, LocksBuilder, RetryPolicy};
use tokio::time::{sleep, timeout};

const LONGEST: Duration = LocksBuilder::LONGEST_SPAN;

const SPANS: [Duration; 9] = [
    Duration::ZERO,
    Duration::from_nanos(1),
    Duration::from_millis(5),
    Duration::from_secs(90),
    LONGEST,
    LONGEST.saturating_add(Duration::from_nanos(1)),
    Duration::from_nanos(u64::MAX),
    Duration::from_millis(u64::MAX),
    Duration::MAX,
];

/// A setting that is a time span, and its name if it is sent to nodes.
type Setting = (
    fn(LocksBuilder, Duration) -> LocksBuilder,
    Option<&'static str>,
);

fn policy(builder: LocksBuilder, change: impl FnOnce(RetryPolicy) -> RetryPolicy) -> LocksBuilder {
    let policy = change(RetryPolicy::default());
    builder.retry(policy)
}

const SETTINGS: [Setting; 10] = [
    (LocksBuilder::watchdog_lease, Some("watchdog_lease")),
    (LocksBuilder::longest_lease, Some("longest_lease")),
    (LocksBuilder::clock_margin, Some("clock_margin")),
    (
        |builder, span| builder.token_retention(Some(span)),
        Some("token_retention"),
    ),
    (LocksBuilder::member_timeout, None),
    (LocksBuilder::max_hold, None),
    (
        // A first pause must not be longer than the longest.
        |builder, span| policy(builder, |p| p.backoff(span).backoff_cap(span)),
        None,
    ),
    (
        |builder, span| policy(builder, |p| p.backoff_cap(span)),
        None,
    ),
    (
        |builder, span| policy(builder, |p| p.without_quorum(span)),
        None,
    ),
    (|builder, span| policy(builder, |p| p.poll_cap(span)), None),
];

/// Acquires, keeps, enters, extends and releases a lock, and waits behind another one.
async fn live(locks: &Locks, span: Duration) {
    let short = Duration::from_millis(300);
    let lock = locks.lock("a").wait(span);
    for lock in [lock.clone(), lock.lease(span)] {
        let Ok(Ok(guard)) = timeout(short, lock.acquire()).await else {
            continue;
        };
        let _ = guard.validity();
        let _ = timeout(short, lock.try_acquire()).await;
        let other = locks.lock("a").wait(span);
        drop(timeout(short, other.acquire()).await);
        let _ = timeout(short, guard.extend(span)).await;
        let _ = timeout(short, guard.reenter()).await;
        sleep(Duration::from_millis(20)).await;
        let _ = timeout(short, guard.release()).await;
    }
    if let Ok(guard) = locks.lock("b").wait(short).acquire().await {
        let _ = guard.while_held(async |_| {}).await;
    }
    let is_closed = matches!(
        timeout(short, locks.lock("c").try_acquire()).await,
        Ok(Err(AcquireError::Closed))
    );
    assert!(!is_closed, "the keeper has ended");
}

async fn check(builder: LocksBuilder, spans: &[(usize, Duration)]) {
    for many in [1, 3] {
        let nodes: Vec<_> = (0..many).map(|_| EmbeddedNode::new()).collect();
        let built = builder.clone().trust_fresh_nodes().on_nodes(nodes);
        let told = spans
            .iter()
            .filter(|(index, _)| SETTINGS[*index].1.is_some());
        let is_too_long = told.clone().any(|(_, span)| LONGEST < *span);
        match built {
            Ok(locks) => {
                assert!(!is_too_long, "{spans:?}");
                for (_, span) in spans {
                    live(&locks, *span).await;
                }
                let closed = timeout(Duration::from_secs(100), locks.close()).await;
                assert!(closed.is_ok(), "{spans:?}");
            }
            Err(ConfigError::SpanTooLong { field, span, most }) => {
                assert_eq!(most, LONGEST);
                let is_named = |(index, set): &(usize, Duration)| {
                    SETTINGS[*index].1 == Some(field) && *set == span
                };
                assert!(spans.iter().any(is_named), "{field}: {span:?}, {spans:?}");
            }
            Err(other) => drop(other.to_string()),
        }
    }
}

/// Every setting with every span, and every pair of settings.
#[tokio::test(start_paused = true)]
async fn every_two_settings_at_their_extremes_are_refused_or_work() {
    for (first, (set_first, _)) in SETTINGS.iter().enumerate() {
        for (second, (set_second, _)) in SETTINGS.iter().enumerate().skip(first) {
            for one in SPANS {
                for other in SPANS {
                    if first == second && one != other {
                        continue;
                    }
                    let builder = Locks::builder().token_retention(None);
                    let builder = set_second(set_first(builder, one), other);
                    check(builder, &[(first, one), (second, other)]).await;
                }
            }
        }
    }
}

/// It could be built, and its keeper panicked when the first round was lost.
#[tokio::test(start_paused = true)]
async fn a_clock_margin_without_end_is_refused_by_name() {
    let builder = Locks::builder().token_retention(None);
    let built = builder
        .clock_margin(Duration::MAX)
        .on_node(EmbeddedNode::new());
    let error = built.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "clock_margin, {:?}, is more than {LONGEST:?}",
            Duration::MAX
        )
    );
}
