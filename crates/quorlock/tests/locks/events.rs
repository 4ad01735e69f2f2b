//! The events that are emitted; none of them contains a password.

#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test is the world: it waits and spawns by itself, and fails by panicking"
)]

use std::cell::RefCell;
use std::fmt::{Debug, Write as _};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use quorlock::{EmbeddedNode, Locks, Lost};
use tokio::time::sleep;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{DefaultGuard, NoSubscriber};
use tracing::{Dispatch, Event, Metadata, Subscriber};

/// Records events as lines of text.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<String>>>);

struct Line(String);

thread_local! {
    /// The spans that are entered.
    static INSIDE: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "quorlock"
    }
    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut line = Line(format!("span {}", attributes.metadata().name()));
        attributes.record(&mut line);
        let mut lines = self.0.lock().unwrap();
        lines.push(line.0);
        Id::from_u64(lines.len() as u64)
    }
    fn record(&self, id: &Id, values: &Record<'_>) {
        let mut line = Line(String::new());
        values.record(&mut line);
        let number = usize::try_from(id.into_u64()).unwrap();
        self.0.lock().unwrap()[number - 1].push_str(&line.0);
    }
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let level = event.metadata().level();
        let inside = INSIDE.with_borrow(|inside| inside.last().copied());
        let mut line = Line(inside.map_or(level.to_string(), |span| format!("{level} in {span}")));
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }
    fn enter(&self, id: &Id) {
        INSIDE.with_borrow_mut(|inside| inside.push(id.into_u64()));
    }
    fn exit(&self, _: &Id) {
        INSIDE.with_borrow_mut(Vec::pop);
    }
}

impl Recorder {
    fn begin() -> (Self, DefaultGuard) {
        // While a process has one subscriber, an event that is first emitted on a thread without it stays unheard everywhere.
        static SECOND: LazyLock<Dispatch> =
            LazyLock::new(|| Dispatch::new(NoSubscriber::default()));
        LazyLock::force(&SECOND);
        let recorder = Recorder::default();
        let guard = tracing::subscriber::set_default(recorder.clone());
        (recorder, guard)
    }

    /// The number of new events that contain all of these words.
    fn with(&self, words: &[&str]) -> usize {
        let lines = self.0.lock().unwrap();
        let hits = lines.iter().filter(|l| words.iter().all(|w| l.contains(w)));
        hits.count()
    }

    #[track_caller]
    fn assert_told(&self, words: &[&str]) {
        let lines = self.0.lock().unwrap().clone();
        assert_ne!(self.with(words), 0, "{words:?} in {lines:#?}");
    }
}

async fn settle() {
    for _ in 0..10 {
        sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_life_of_a_lock_is_told_with_its_owner_and_token() {
    let (told, _guard) = Recorder::begin();
    let locks = Locks::on_node(EmbeddedNode::new()).unwrap();
    let guard = locks.lock("a").acquire().await.unwrap();
    let owner = format!("owner={}", guard.owner_id());
    let token = format!("token={}", guard.fencing_token());
    told.assert_told(&["DEBUG", "message=acquired", "names=a", &owner, &token]);
    assert!(locks.lock("a").try_acquire().await.unwrap().is_none());
    told.assert_told(&["DEBUG", "contended", "names=a"]);
    told.assert_told(&["DEBUG", "not acquired", "waited="]);
    guard.release().await.unwrap();
    told.assert_told(&["DEBUG", "released", &owner]);
    assert_eq!(told.with(&["WARN"]), 0);
}

#[tokio::test(start_paused = true)]
async fn a_lost_lock_is_a_warning_told_once() {
    let (told, _guard) = Recorder::begin();
    let node = EmbeddedNode::new();
    let locks = Locks::on_node(node.clone()).unwrap();
    let guard = locks.lock("a").acquire().await.unwrap();
    node.flush();
    assert_eq!(guard.lost().await, Lost::Taken);
    settle().await;
    let address = node_address(&locks).await;
    told.assert_told(&["WARN", "a claim is gone from a node", "name=a", &address]);
    assert_eq!(told.with(&["WARN", "message=lost", "taken", "names=a"]), 1);
    drop(guard);
    settle().await;
    assert_eq!(told.with(&["message=lost"]), 1);
    assert_eq!(told.with(&["message=released"]), 0);
}

#[tokio::test(start_paused = true)]
async fn an_election_is_told_with_its_term_and_its_failure_with_a_reason() {
    let (told, _guard) = Recorder::begin();
    let node = EmbeddedNode::new();
    let locks = Locks::on_node(node.clone()).unwrap();
    let mut candidacy = locks.leader("a").campaign();
    candidacy.next().await.unwrap();
    let leadership = candidacy.leadership().unwrap();
    let owner = format!("owner={}", leadership.owner_id());
    let term = format!("term={}", leadership.term());
    told.assert_told(&["INFO", "elected", "name=a", &owner, &term]);
    assert_eq!(told.with(&["WARN"]), 0);
    node.kill();
    candidacy.next().await.unwrap();
    told.assert_told(&["WARN", "message=lost", "unreachable"]);
    candidacy.next().await.unwrap();
    told.assert_told(&["WARN", "a candidate cannot be elected", "name=a", "error="]);
}

async fn node_address(locks: &Locks) -> String {
    let inspection = locks.inspect("a").await.unwrap();
    inspection.nodes[0].address.clone()
}

#[tokio::test(start_paused = true)]
async fn failing_renewals_and_releases_are_warnings_that_name_the_node() {
    let (told, _guard) = Recorder::begin();
    let nodes: Vec<_> = (0..3).map(|_| EmbeddedNode::new()).collect();
    let locks = Locks::builder()
        .trust_fresh_nodes()
        .on_nodes(nodes.clone())
        .unwrap();
    let guard = locks.lock("a").acquire().await.unwrap();
    nodes[0].kill();
    sleep(Duration::from_secs(12)).await;
    told.assert_told(&["WARN", "a renewal failed", "address=", "node was killed"]);
    assert!(guard.is_held());
    nodes[1].kill();
    guard.release().await.unwrap_err();
    told.assert_told(&["WARN", "a release is not confirmed", "names=a"]);
    told.assert_told(&["WARN", "did not confirm a release", "address="]);
    sleep(Duration::from_secs(60)).await;
    told.assert_told(&["DEBUG", "cleaned up a claim", "name=a", "address="]);
}

#[tokio::test(start_paused = true)]
async fn a_silent_node_is_told_of() {
    let (told, _guard) = Recorder::begin();
    let nodes: Vec<_> = (0..3).map(|_| EmbeddedNode::new()).collect();
    let locks = Locks::builder()
        .trust_fresh_nodes()
        .on_nodes(nodes.clone())
        .unwrap();
    nodes[0].pause();
    let guard = locks.lock("a").acquire().await.unwrap();
    sleep(Duration::from_secs(3)).await;
    told.assert_told(&["WARN", "a node does not back a hold", "name=a", "TimedOut"]);
    assert!(guard.is_held());
}

/// A server that refuses everything and repeats the command in its error, like one that does not know `AUTH`.
#[cfg(feature = "redis")]
async fn parrot() -> u16 {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut heard = vec![0; 64 * 1024];
            while let Ok(1..) = stream.read(&mut heard).await {
                let said = b"-ERR unknown command 'AUTH', with args beginning with: 'bob' 'hunter2-s3cret'\r\n";
                if stream.write_all(said).await.is_err() {
                    break;
                }
            }
        }
    });
    port
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn no_event_and_no_error_repeats_a_password() {
    use quorlock::redis::{RedisConfig, RedisTransport};
    let (told, _guard) = Recorder::begin();
    let address = format!("redis://bob:hunter2-s3cret@127.0.0.1:{}/", parrot().await);
    let config = RedisConfig::default().call_timeout(Duration::from_millis(300));
    let node = RedisTransport::open(&address, config.clone()).unwrap();
    let mut said = format!("{node:?} {config:?}");
    let locks = Locks::builder().redis(config);
    let locks = locks.watchdog_lease(Duration::from_secs(1));
    write!(said, " {locks:?} {locks:#?}").unwrap();
    let error = locks.clone().connect(&address).await.unwrap_err();
    write!(said, " {error} {error:?} {error:#?}").unwrap();
    let locks = locks.on_node(node).unwrap();
    let error = locks.lock("a").try_acquire().await.unwrap_err();
    write!(said, " {error} {error:?} {error:#?} {locks:?} {locks:#?}").unwrap();
    let inspection = locks.inspect("a").await.unwrap();
    write!(said, " {inspection} {inspection:?}").unwrap();
    let error = locks.force_release("a").await.unwrap_err();
    write!(said, " {error} {error:?}").unwrap();
    told.assert_told(&["DEBUG", "a node did not count in a round", "127.0.0.1"]);
    said.push_str(&told.0.lock().unwrap().join(" "));
    assert!(!said.contains("nter2"), "{said}");
}

/// A task that waits for a lock that it holds itself never gets it, which is told when the wait begins. Tasks that alternate are
/// normal, so it is no warning.
#[tokio::test(start_paused = true)]
async fn a_wait_for_what_its_own_client_holds_is_told_as_it_begins() {
    let (told, _guard) = Recorder::begin();
    let node = EmbeddedNode::new().latency(Duration::from_millis(2));
    let client = || Locks::on_node(node.clone()).unwrap();
    let (locks, other) = (client(), client());
    let held = locks.lock("a").acquire().await.unwrap();
    let wait = async |locks: &Locks| {
        let minute = Duration::from_secs(60);
        let lock = locks.lock("a").wait(minute);
        let begun = tokio::time::timeout(Duration::from_millis(10), lock.acquire()).await;
        assert!(begun.is_err(), "{begun:?}");
    };
    let words = "waiting for what this client holds";
    wait(&other).await;
    assert!(locks.lock("a").try_acquire().await.unwrap().is_none());
    assert_eq!(told.with(&[words]), 0, "neither of them waits for itself");
    wait(&locks).await;
    told.assert_told(&["DEBUG", words, "names=a", "reenter", "Owner"]);
    assert_eq!(told.with(&["WARN"]), 0);
    assert_eq!(told.with(&[words]), 1);
    drop(held);
}

/// Settings that are legal but doubtful are reported once, when the client is made.
#[tokio::test(start_paused = true)]
async fn doubtful_settings_are_told_once() {
    let (events, _guard) = Recorder::begin();
    let nodes = |many: usize| (0..many).map(|_| EmbeddedNode::new());
    for many in [1, 3, 5] {
        drop(Locks::on_nodes(nodes(many)).unwrap());
    }
    assert_eq!(events.with(&["doubtful"]), 0);
    for many in [2, 4] {
        let locks = Locks::builder().trust_fresh_nodes();
        let locks = locks.on_nodes(nodes(many)).unwrap();
        for _ in 0..3 {
            drop(locks.lock("a").acquire().await.unwrap());
        }
        let words = format!("{many} nodes tolerate no more failures than {}", many - 1);
        assert_eq!(events.with(&["WARN", "doubtful", &words]), 1);
    }
    let slow = Locks::builder().member_timeout(Duration::from_secs(11));
    drop(slow.on_node(EmbeddedNode::new()).unwrap());
    let words = [
        "WARN",
        "doubtful",
        "member_timeout, 11s",
        "watchdog_lease, 30s",
    ];
    assert_eq!(events.with(&words), 1);
    assert_eq!(events.with(&["doubtful"]), 3);
}

/// A client of Redis servers warns if its user chose a call time-out longer than half of the lease. With a short
/// lease and the default time-out it does not: the user did not set two values that contradict each other, and a
/// connection is replaced after a part of the lease anyway.
#[cfg(feature = "redis-connections")]
#[tokio::test(start_paused = true)]
async fn a_call_that_was_chosen_to_take_half_of_the_lease_is_doubtful() {
    use quorlock::redis::RedisConfig;
    let (events, _guard) = Recorder::begin();
    let client = quorlock::redis::RedisClient::open("redis://127.0.0.1:1/").unwrap();
    let second = Duration::from_secs(1);
    drop(Locks::builder().from_redis_client(&client).unwrap());
    let short = Locks::builder().watchdog_lease(3 * second);
    drop(short.clone().from_redis_client(&client).unwrap());
    assert_eq!(events.with(&["doubtful"]), 0);
    let short = short.redis(RedisConfig::default().call_timeout(2 * second));
    drop(short.from_redis_client(&client).unwrap());
    let words = ["WARN", "doubtful", "call_timeout, 2s", "watchdog_lease, 3s"];
    assert_eq!(events.with(&words), 1);
}

#[cfg(feature = "redis")]
mod backlogs {
    use quorlock::NodeTrust;
    use quorlock::redis::{ByteStream, Connect, Connecting, Endpoint, RedisConfig};
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::*;

    /// Servers that only report whether they have a backlog.
    #[derive(Debug)]
    struct Servers {
        have_backlog: u8,
    }

    impl Connect for Servers {
        fn connect(&self, to: &Endpoint) -> Connecting {
            let (client, server) = duplex(1 << 16);
            let id = format!("{to:?}").len();
            let info = format!(
                "redis_version:7.0.15\r\nrole:master\r\nrun_id:{id}\r\nrepl_backlog_active:{}\r\n",
                self.have_backlog
            );
            tokio::spawn(answer(server, info));
            Box::pin(async { Ok(Box::new(client) as Box<dyn ByteStream>) })
        }
    }

    async fn answer(mut server: DuplexStream, info: String) {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(count @ 1..) = server.read(&mut bytes).await {
            let asked = String::from_utf8_lossy(&bytes[..count]).into_owned();
            let loads = asked.matches("LOAD\r\n").count();
            let infos = asked.matches("INFO\r\n").count();
            let text = format!("${}\r\n{info}\r\n", info.len());
            let said = "+OK\r\n".repeat(loads) + &text.repeat(infos);
            server.write_all(said.as_bytes()).await.unwrap();
        }
    }

    /// The levels of the events which say that a backup of these nodes will look like a restart.
    async fn told(nodes: &[&str], have_backlog: u8, trust: Option<NodeTrust>) -> [usize; 2] {
        let (told, _guard) = Recorder::begin();
        let network = RedisConfig::default().network(Servers { have_backlog });
        let builder = Locks::builder().redis(network);
        let builder = match trust {
            Some(trust) => builder.node_trust(trust),
            None => builder,
        };
        builder.quorum(nodes).await.unwrap();
        let addresses = nodes
            .join(", ")
            .replace("redis://", "")
            .replace('/', ":6379/0");
        ["WARN", "DEBUG"].map(|level| told.with(&[level, "backlog", &addresses]))
    }

    #[tokio::test(start_paused = true)]
    async fn a_backup_is_warned_of_where_that_of_one_node_ends_all_locks() {
        let three = ["redis://a/", "redis://bb/", "redis://ccc/"];
        let [two, one] = [&three[..2], &three[..1]];
        let durable = Some(NodeTrust::AssertedDurable);
        for (nodes, have_backlog, trust, expected) in [
            (one, 0, Some(NodeTrust::Watched), [1, 0]),
            (one, 0, durable, [1, 0]),
            (one, 0, None, [0, 0]), // Nothing is quarantined.
            (two, 0, None, [1, 0]),
            (&three, 0, None, [0, 1]),
            (&three, 0, durable, [0, 1]),
            (&three, 1, None, [0, 0]),
            (&three, 0, Some(NodeTrust::Unwatched), [0, 0]),
        ] {
            let found = told(nodes, have_backlog, trust).await;
            assert_eq!(found, expected, "{nodes:?}, {have_backlog}, {trust:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn acquisitions_and_holds_are_spans_with_name_token_and_outcome() {
    let (told, _guard) = Recorder::begin();
    let locks = Locks::on_node(EmbeddedNode::new()).unwrap();
    let guard = locks.lock("a").acquire().await.unwrap();
    let token = format!("token={}", guard.fencing_token());
    told.assert_told(&["span acquire", "names=a", &token, "outcome=\"acquired\""]);
    assert!(locks.lock("a").try_acquire().await.unwrap().is_none());
    told.assert_told(&["span acquire", "names=a", "outcome=\"contended\""]);
    guard.release().await.unwrap();
    told.assert_told(&["span hold", "names=a", &token, "outcome=\"released\""]);
    drop(locks.lock("b").acquire().await.unwrap());
    told.assert_told(&["span hold", "names=b", "outcome=\"dropped\""]);
    locks.lock("c").acquire().await.unwrap().leak();
    told.assert_told(&["span hold", "names=c", "outcome=\"leaked\""]);
    let guard = locks.lock("d").acquire().await.unwrap();
    locks.force_release("d").await.unwrap();
    guard.lost().await;
    drop(guard);
    told.assert_told(&["span hold", "names=d", "outcome=\"lost\""]);
    // The work under a hold runs inside its span.
    let guard = locks.lock("e").acquire().await.unwrap();
    let spans = told.0.lock().unwrap().clone();
    let hold = spans.iter().rposition(|line| line.starts_with("span hold"));
    let inside = format!("INFO in {}", hold.unwrap() + 1);
    let work = async { tracing::info!(target: "quorlock", "working") };
    guard
        .while_held(async |_| work.await)
        .await
        .unwrap()
        .release
        .unwrap();
    told.assert_told(&[&inside, "working"]);
}

/// The level and text of every event, parsed from the source.
fn sources() -> Vec<(&'static str, &'static str)> {
    let source = include_str!("../../src/telemetry.rs");
    let told = source.split("tell!(").skip(1);
    let told = told.filter_map(|rest| rest.split_once(");"));
    let parts = told.filter_map(|(call, _)| {
        let (level, rest) = call.trim_start().split_once(',')?;
        let text = rest.rsplit('"').nth(1)?;
        Some((level, text))
    });
    parts.collect()
}

/// The operators' page has a row for each event, with the beginning of its text.
#[test]
fn every_event_is_on_the_page() {
    let page = include_str!("../../../../docs/src/operating.md");
    let rows: Vec<(&str, &str)> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| "))
        .filter_map(|row| row.split_once(" | `"))
        .filter_map(|(level, rest)| Some((level, rest.split_once('`')?.0)))
        .collect();
    let sources = sources();
    assert!(25 < sources.len(), "{sources:?}");
    for (level, text) in sources {
        let is_there = rows.iter().any(|(at, row)| {
            let begin = row.strip_suffix(" ..").unwrap_or(row);
            *at == level && text.starts_with(begin) && (begin.len() == text.len() || begin != *row)
        });
        assert!(is_there, "{level}: {text}");
    }
}

/// What renews runs only inside `block_on` on a runtime of one thread: a program that leaves it between two steps is warned.
#[tokio::test(start_paused = true)]
async fn a_client_whose_runtime_did_not_run_is_told_once() {
    let (told, _guard) = Recorder::begin();
    let locks = Locks::on_node(EmbeddedNode::new()).unwrap();
    let words = ["WARN", "was not run in time", "block_on", "blocking"];
    sleep(Duration::from_secs(100)).await;
    tokio::time::advance(Duration::from_secs(100)).await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(told.with(&words), 0, "it holds nothing");
    let held = locks.lock("a").acquire().await.unwrap();
    sleep(Duration::from_secs(100)).await;
    assert_eq!(told.with(&words), 0, "renewals ran in time");
    for _ in 0..3 {
        tokio::time::advance(Duration::from_secs(15)).await;
        sleep(Duration::from_secs(1)).await;
    }
    assert!(held.is_held());
    assert_eq!(told.with(&words), 1);
}
