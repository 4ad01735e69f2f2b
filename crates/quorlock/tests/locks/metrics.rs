//! The recorded metrics. Runs with `--features metrics`.

#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test is the world: it waits and spawns by itself, and fails by panicking"
)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ::metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};
use quorlock::{EmbeddedNode, Locks, Lost, Name, metrics};
use quorlock_core::node::Held;
use tokio::time::sleep;

/// Keeps values by name and label, and the description of each name.
#[derive(Clone, Default)]
struct Sums(
    Arc<Mutex<BTreeMap<String, Vec<f64>>>>,
    Arc<Mutex<BTreeMap<String, String>>>,
);

struct One(Sums, String);

impl One {
    fn add(&self, value: f64) {
        let mut sums = self.0.0.lock().unwrap();
        sums.entry(self.1.clone()).or_default().push(value);
    }
}

impl CounterFn for One {
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    fn increment(&self, value: u64) {
        self.add(value as f64);
    }
    fn absolute(&self, _: u64) {}
}

impl GaugeFn for One {
    fn increment(&self, value: f64) {
        self.add(value);
    }
    fn decrement(&self, value: f64) {
        self.add(-value);
    }
    fn set(&self, value: f64) {
        self.0.0.lock().unwrap().insert(self.1.clone(), vec![value]);
    }
}

impl HistogramFn for One {
    fn record(&self, value: f64) {
        self.add(value);
    }
}

impl Sums {
    fn one(&self, key: &Key) -> Arc<One> {
        let labels: Vec<_> = key.labels().map(|l| l.value().to_owned()).collect();
        let name = [key.name(), &labels.join(",")].join(" ").trim().to_owned();
        Arc::new(One(self.clone(), name))
    }

    fn describe(&self, kind: &str, name: &KeyName, unit: Option<Unit>, text: &str) {
        let unit = unit.map_or("", |unit| unit.as_str());
        let line = format!("{kind} {unit}: {text}");
        self.1
            .lock()
            .unwrap()
            .insert(name.as_str().to_owned(), line);
    }

    fn of(&self, name: &str) -> Vec<f64> {
        let sums = self.0.lock().unwrap();
        sums.get(name).cloned().unwrap_or_default()
    }

    /// The value of a gauge.
    fn shown(&self, name: &str) -> f64 {
        self.of(name).iter().sum()
    }

    fn count(&self, name: &str) -> usize {
        self.of(name).len()
    }
}

impl Recorder for Sums {
    fn describe_counter(&self, name: KeyName, unit: Option<Unit>, text: SharedString) {
        self.describe("counter", &name, unit, &text);
    }
    fn describe_gauge(&self, name: KeyName, unit: Option<Unit>, text: SharedString) {
        self.describe("gauge", &name, unit, &text);
    }
    fn describe_histogram(&self, name: KeyName, unit: Option<Unit>, text: SharedString) {
        self.describe("histogram", &name, unit, &text);
    }
    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let one = self.one(key);
        self.0.lock().unwrap().entry(one.1.clone()).or_default();
        Counter::from_arc(one)
    }
    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.one(key))
    }
    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.one(key))
    }
}

async fn settle() {
    for _ in 0..10 {
        sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_holding_and_contention_are_measured() {
    let sums = Sums::default();
    let _local = ::metrics::set_default_local_recorder(&sums);
    let locks = Locks::on_node(EmbeddedNode::new()).unwrap();
    let guard = locks.lock("a").acquire().await.unwrap();
    let waiting = {
        let lock = locks.lock("a");
        tokio::spawn(async move { lock.acquire().await.unwrap() })
    };
    assert!(locks.lock("a").try_acquire().await.unwrap().is_none());
    sleep(Duration::from_secs(2)).await;
    guard.release().await.unwrap();
    let second = waiting.await.unwrap();
    let waited = sums.of("quorlock_wait_seconds acquired");
    assert_eq!(waited.len(), 2);
    assert!(waited[0] < 0.001 && 1.9 < waited[1], "{waited:?}");
    assert_eq!(sums.count("quorlock_wait_seconds contended"), 1);
    assert!(2 <= sums.count(metrics::REFUSED_ROUNDS));
    assert_eq!(sums.count(metrics::SPLIT_VOTES), 0);
    let held = sums.of(metrics::HOLD_SECONDS);
    assert!(held.len() == 1 && 1.9 < held[0], "{held:?}");
    // A dropped guard is cleaned up in the background, and is not a loss.
    drop(second);
    settle().await;
    assert_eq!(sums.count(metrics::ORPHANS_CLEANED), 1);
    assert_eq!(sums.count(metrics::HOLD_SECONDS), 2);
    assert_eq!(sums.count("quorlock_lost_total taken"), 0);
}

#[tokio::test(start_paused = true)]
async fn losses_are_counted_by_kind_and_failures_by_what_failed() {
    let sums = Sums::default();
    let _local = ::metrics::set_default_local_recorder(&sums);
    let node = EmbeddedNode::new();
    let locks = Locks::on_node(node.clone()).unwrap();
    let guard = locks.lock("a").acquire().await.unwrap();
    locks.force_release("a").await.unwrap();
    assert_eq!(guard.lost().await, Lost::Taken);
    assert_eq!(sums.count("quorlock_lost_total taken"), 1);
    assert_eq!(sums.count(metrics::CLAIMS_GONE), 1);
    let guard = locks.lock("a").acquire().await.unwrap();
    node.kill();
    assert_eq!(guard.lost().await, Lost::Unreachable);
    assert_eq!(sums.count("quorlock_lost_total unreachable"), 1);
    assert!(0 < sums.count(metrics::RENEWAL_FAILURES));
    node.restart();
    settle().await;
    let guard = locks.lock("b").acquire().await.unwrap();
    node.kill();
    guard.release().await.unwrap_err();
    assert_eq!(sums.count(metrics::RELEASES_UNCONFIRMED), 1);
    locks.lock("c").try_acquire().await.unwrap_err();
    assert_eq!(sums.count(metrics::FAILED_ROUNDS), 1);
    assert_eq!(sums.count("quorlock_wait_seconds no_quorum"), 1);
}

#[tokio::test(start_paused = true)]
async fn split_votes_are_counted() {
    let sums = Sums::default();
    let _local = ::metrics::set_default_local_recorder(&sums);
    let nodes: Vec<_> = (0..3).map(|_| EmbeddedNode::new()).collect();
    let name = Name::new("a").unwrap();
    // One client has the first node and another the second: neither holds a majority.
    let one = Locks::on_node(nodes[0].clone()).unwrap();
    let other = Locks::on_node(nodes[1].clone()).unwrap();
    let _one = one.lock("a").acquire().await.unwrap();
    let _other = other.lock("a").acquire().await.unwrap();
    let locks = Locks::builder()
        .trust_fresh_nodes()
        .on_nodes(nodes.clone())
        .unwrap();
    assert!(locks.lock("a").try_acquire().await.unwrap().is_none());
    assert_eq!(sums.count(metrics::SPLIT_VOTES), 1);
    nodes[0].put(
        &name,
        Held::read(
            "0fb4a3e4-4b32-4d3b-9d5e-3a2b1c0d9e8f:31".parse().unwrap(),
            1,
        ),
        None,
    );
    locks.lock("a").try_acquire().await.unwrap_err();
    assert_eq!(sums.count("quorlock_wait_seconds refused"), 1);
}

#[tokio::test(start_paused = true)]
async fn elections_are_counted() {
    let sums = Sums::default();
    let _local = ::metrics::set_default_local_recorder(&sums);
    let locks = Locks::on_node(EmbeddedNode::new()).unwrap();
    for _ in 0..3 {
        let mut candidacy = locks.leader("a").campaign();
        candidacy.next().await.unwrap();
        candidacy.resign().await.unwrap();
    }
    assert_eq!(sums.count(metrics::ELECTIONS), 3);
}

#[tokio::test(start_paused = true)]
async fn what_is_held_and_waited_for_now_is_shown() {
    let sums = Sums::default();
    let _local = ::metrics::set_default_local_recorder(&sums);
    let locks = Locks::on_node(EmbeddedNode::new()).unwrap();
    let shown = || (sums.shown(metrics::HOLDS), sums.shown(metrics::WAITERS));
    let first = locks.lock("a").acquire().await.unwrap();
    let second = locks.lock("b").acquire().await.unwrap();
    let third = locks.lock("c").acquire().await.unwrap();
    let again = third.reenter().await.unwrap();
    assert_eq!(shown(), (3.0, 0.0));
    let lock = locks.lock("a");
    let mut waiting = Box::pin(lock.acquire());
    assert!(
        tokio::time::timeout(Duration::from_secs(1), &mut waiting)
            .await
            .is_err()
    );
    assert_eq!(shown(), (3.0, 1.0));
    drop(waiting);
    assert_eq!(shown(), (3.0, 0.0));
    // Each hold ends once: released, leaked, lost.
    second.leak();
    assert_eq!(shown(), (2.0, 0.0));
    third.release().await.unwrap();
    assert_eq!(shown(), (2.0, 0.0));
    again.release().await.unwrap();
    assert_eq!(shown(), (1.0, 0.0));
    locks.force_release("a").await.unwrap();
    assert_eq!(first.lost().await, Lost::Taken);
    first.leak();
    settle().await;
    assert_eq!(shown(), (0.0, 0.0));
    assert_eq!(sums.count("quorlock_round_seconds won"), 3);
    assert!(0 < sums.count("quorlock_round_seconds refused"));
    assert_eq!(sums.count(metrics::HOLD_SECONDS), 2);
}

/// A lock that passes from caller to caller is one hold after another, although the nodes see a single one.
#[tokio::test(start_paused = true)]
async fn holds_that_pass_on_are_shown_and_measured_one_by_one() {
    let sums = Sums::default();
    let _local = ::metrics::set_default_local_recorder(&sums);
    let locks = Locks::on_node(EmbeddedNode::new()).unwrap();
    let mut guard = locks.lock("a").acquire().await.unwrap();
    let owner = guard.owner_id();
    for ended in 1..=4 {
        let lock = locks.lock("a");
        let next = tokio::spawn(async move { lock.acquire().await.unwrap() });
        sleep(Duration::from_millis(1)).await;
        guard.release().await.unwrap();
        guard = next.await.unwrap();
        assert_eq!(sums.shown(metrics::HOLDS), 1.0);
        assert_eq!(sums.count(metrics::HOLD_SECONDS), ended);
        assert_eq!(sums.count("quorlock_wait_seconds acquired"), ended + 1);
    }
    assert_eq!(guard.owner_id(), owner, "it was released and acquired");
    // A hold that its caller does not take is not shown.
    let lock = locks.lock("a");
    let mut gives_up = Box::pin(lock.acquire());
    let waited = tokio::time::timeout(Duration::from_millis(1), &mut gives_up);
    assert!(waited.await.is_err());
    guard.release().await.unwrap();
    drop(gives_up);
    settle().await;
    assert_eq!(sums.shown(metrics::HOLDS), 0.0);
    assert_eq!(sums.count(metrics::HOLD_SECONDS), 5);
}

async fn take_and_release(locks: &Locks) {
    let guard = locks.lock("a").acquire().await.unwrap();
    guard.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_node_that_forgot_is_shown_until_it_counts_again() {
    let sums = Sums::default();
    let _local = ::metrics::set_default_local_recorder(&sums);
    let nodes: Vec<_> = (0..3).map(|_| EmbeddedNode::new()).collect();
    let locks = Locks::builder()
        .trust_fresh_nodes()
        .on_nodes(nodes.clone())
        .unwrap();
    take_and_release(&locks).await;
    let quarantined = || {
        let values = sums.0.lock().unwrap();
        let nodes = values.iter();
        let nodes = nodes.filter(|(name, _)| name.starts_with(metrics::QUARANTINED));
        nodes
            .map(|(_, value)| value.iter().sum::<f64>())
            .sum::<f64>()
    };
    assert_eq!(quarantined(), 0.0);
    nodes[1].kill();
    nodes[1].restart();
    take_and_release(&locks).await;
    assert_eq!(quarantined(), 1.0);
    sleep(Duration::from_secs(120)).await;
    take_and_release(&locks).await;
    assert_eq!(quarantined(), 0.0);
}

/// The names of the metrics, parsed from the source.
fn constants() -> Vec<&'static str> {
    let source = include_str!("../../src/metrics.rs");
    let names = source
        .split('"')
        .filter(|word| word.starts_with("quorlock_"));
    names.collect()
}

#[tokio::test(start_paused = true)]
async fn every_metric_is_described_and_every_counter_exists_before_it_counts() {
    let sums = Sums::default();
    let _local = ::metrics::set_default_local_recorder(&sums);
    let _locks = Locks::on_node(EmbeddedNode::new()).unwrap();
    let described = sums.1.lock().unwrap().clone();
    let names = constants();
    assert!(15 < names.len());
    assert_eq!(described.keys().map(String::as_str).collect::<Vec<_>>(), {
        let mut names = names.clone();
        names.sort_unstable();
        names
    });
    for name in names {
        let said = &described[name];
        let unit = if name.ends_with("_seconds") {
            "seconds"
        } else {
            "count"
        };
        assert!(said.contains(&format!(" {unit}: ")), "{name}: {said}");
        if name.ends_with("_total") {
            let values = sums.0.lock().unwrap();
            let mut series = values.keys().filter(|series| series.starts_with(name));
            assert!(series.next().is_some(), "{name} does not exist yet");
            assert!(said.starts_with("counter "), "{said}");
        }
    }
    assert_eq!(sums.of("quorlock_lost_total expired"), Vec::<f64>::new());
}

/// The operators' page has a row for each metric.
#[test]
fn every_metric_is_on_the_page() {
    let page = include_str!("../../../../docs/src/operating.md");
    for name in constants() {
        assert!(page.contains(&format!("| `{name}` |")), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn names_are_labels_if_the_user_says_how() {
    let sums = Sums::default();
    let _local = ::metrics::set_default_local_recorder(&sums);
    let builder = Locks::builder().key_prefix("shop:");
    let builder = builder.metrics_by_name(3, metrics::without_ids);
    let locks = builder.on_node(EmbeddedNode::new()).unwrap();
    for name in ["orders/42", "orders/43"] {
        let guard = locks.lock(name).acquire().await.unwrap();
        assert!(locks.lock(name).try_acquire().await.unwrap().is_none());
        guard.release().await.unwrap();
    }
    // The key prefix is no part of a label.
    assert_eq!(sums.count("quorlock_wait_seconds acquired,orders/{id}"), 2);
    assert_eq!(sums.count("quorlock_wait_seconds contended,orders/{id}"), 2);
    assert_eq!(sums.count("quorlock_hold_seconds orders/{id}"), 2);
    assert_eq!(sums.count("quorlock_refused_rounds_total orders/{id}"), 2);
    assert_eq!(sums.count(metrics::HOLD_SECONDS), 0);

    // Several names have the labels of all, up to three.
    let both = locks.all(["stock/7", "orders/1", "orders/2"]);
    both.acquire().await.unwrap().release().await.unwrap();
    assert_eq!(
        sums.count("quorlock_hold_seconds orders/{id} + stock/{id}"),
        1
    );
    let many = locks.all(["a", "b", "c", "d"]).acquire().await.unwrap();
    locks.force_release("a").await.unwrap();
    many.lost().await;
    assert_eq!(sums.count("quorlock_lost_total taken,a + b + c + ..."), 1);

    // There are no more labels than the user allows.
    for name in ["e", "f", "orders/3"] {
        locks
            .lock(name)
            .acquire()
            .await
            .unwrap()
            .release()
            .await
            .unwrap();
    }
    assert_eq!(sums.count("quorlock_hold_seconds other"), 2);
    assert_eq!(sums.count("quorlock_hold_seconds orders/{id}"), 3);
}
