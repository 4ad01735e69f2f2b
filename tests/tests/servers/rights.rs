//! Tests the rights that the page of the rights gives to a user of the server. They must be sufficient, and each must be necessary.

use std::fmt;
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select, try_join};
use quorlock::redis::{RedisConfig, Wait};
use quorlock::{Lock, Locks, LocksBuilder, NodeTrust};
use quorlock_testbed::server::{Server, programs};
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::{BOUND, until};
use quorlock_tests::page::block;

server_tests![
    USERS: the_rights_of_plain_locks_are_those_of_the_page,
    USERS: the_rights_of_watched_nodes_are_those_of_the_page,
    USERS: the_rights_of_fair_locks_are_those_of_the_page,
    USERS: the_rights_of_read_write_locks_are_those_of_the_page,
    USERS: the_rights_of_operators_are_those_of_the_page,
    USERS: the_right_to_choose_a_database_is_that_of_the_page,
    USERS: the_right_to_wait_for_replicas_is_that_of_the_page,
    USERS: the_rights_that_may_be_left_out_may_be,
];

const PAGE: &str = include_str!("../../../docs/src/reference/rights.md");

const NAME: &str = "orders/42";

/// The rights of every user, which follow the user's name and password.
fn base() -> Vec<&'static str> {
    let command = block(PAGE, "text acl plain");
    let (_, rules) = command.split_once(" >secret ").unwrap();
    rules.split_whitespace().collect()
}

/// Returns the rights in the row of the page's table that begins with this text.
fn besides(row: &str) -> Vec<&'static str> {
    let begin = format!("| {row} | `");
    let mut rows = PAGE.lines().filter_map(|line| line.strip_prefix(&begin));
    let rules = rows.next().unwrap_or_else(|| panic!("no row {row:?}"));
    assert_eq!(rows.next(), None, "two rows {row:?}");
    let (rules, _) = rules.split_once('`').unwrap();
    // A bar is escaped in a table.
    let rules = rules.replace("\\|", "|").leak();
    rules.split_whitespace().collect()
}

/// A server with a user who has some rights.
struct Bench {
    server: Server,
    settings: LocksBuilder,
    database: &'static str,
}

impl Bench {
    fn allow(&self, rules: &[&str]) {
        self.server.command::<u32>(&["ACL", "DELUSER", "locks"]);
        self.server.command::<()>(&["FLUSHALL"]);
        self.server.command::<()>(&["SCRIPT", "FLUSH"]);
        let user = ["ACL", "SETUSER", "locks", "on", ">secret"];
        self.server.command::<()>(&[&user[..], rules].concat());
        self.server.command::<()>(&["ACL", "LOG", "RESET"]);
        self.server.command::<()>(&["CONFIG", "RESETSTAT"]);
    }

    /// Returns what the user was not allowed to do.
    fn denied(&self) -> Vec<String> {
        let entries: Vec<Vec<redis::Value>> = self.server.command(&["ACL", "LOG"]);
        entries.iter().map(|entry| format!("{entry:?}")).collect()
    }

    fn address(&self) -> String {
        let address = self.server.address();
        let address = address.replace("redis://", "redis://locks:secret@");
        format!("{address}{}", self.database)
    }

    async fn client(&self) -> Result<Locks, Failed> {
        Ok(self.settings.clone().connect(self.address()).await?)
    }

    /// Waits until the server has received this command, whatever it answered.
    async fn asked_for(&self, command: &str) {
        let counted = format!("cmdstat_{command}:");
        let asked = || {
            let stats: String = self.server.command(&["INFO", "commandstats"]);
            stats.contains(&counted)
        };
        until("the server is asked for it", asked).await;
    }
}

/// The error of a piece of work.
struct Failed(String);

impl<E: fmt::Display> From<E> for Failed {
    fn from(error: E) -> Self {
        Failed(error.to_string())
    }
}

type Worked = Result<(), Failed>;

/// Runs the work with all the rights, and then without each right in `besides`, or in the base if `besides` is empty.
async fn prove(
    besides: &[&str],
    settings: LocksBuilder,
    database: &'static str,
    work: impl AsyncFn(&Bench) -> Worked,
) {
    for program in programs() {
        let bench = Bench {
            server: Server::start_program(&program, &[]),
            settings: settings.clone(),
            database,
        };
        let base = base();
        let all: Vec<&str> = base.iter().chain(besides).copied().collect();
        bench.allow(&all);
        let worked = tokio::time::timeout(BOUND, work(&bench)).await;
        let error = worked.expect("it ends").err().map(|failed| failed.0);
        assert_eq!(error, None, "{program}: {:?}", bench.denied());
        assert_eq!(bench.denied(), Vec::<String>::new(), "{program}");

        let in_question = if besides.is_empty() {
            &base[..]
        } else {
            besides
        };
        let rights = in_question
            .iter()
            .filter(|r| r.starts_with(['~', '&', '+']));
        for right in rights {
            let rest: Vec<&str> = all.iter().copied().filter(|r| r != right).collect();
            bench.allow(&rest);
            let refused = until("something is refused", || !bench.denied().is_empty());
            let (refused, worked) = (pin!(refused), pin!(work(&bench)));
            if let Either::Right(_) = select(refused, worked).await {
                let denied = bench.denied();
                assert!(!denied.is_empty(), "{program}: {right} is not needed");
            }
        }
    }
}

/// Returns settings with short intervals, so that every command is sent soon.
fn settings() -> LocksBuilder {
    let redis = RedisConfig::default().ping_interval(Duration::from_millis(10));
    // A new connection is taken for an old one, so that the commands in place of a script are used.
    Locks::builder().redis(redis.youngest(Duration::ZERO))
}

/// One client holds, extends, re-enters and releases the lock. Another client waits for it, and a third one waits in
/// vain.
async fn hand_over(bench: &Bench, lock: impl Fn(&Locks) -> Lock) -> Worked {
    let (one, other) = (bench.client().await?, bench.client().await?);
    let guard = lock(&one).acquire().await?;
    let in_vain = lock(&other).wait(Duration::from_millis(30)).acquire().await;
    assert!(in_vain.is_err());
    let waiter = lock(&other).wait(BOUND);
    let waiting = async { Worked::Ok(waiter.acquire().await?.release().await?) };
    let holding = async {
        bench.asked_for("subscribe").await;
        bench.asked_for("ping").await;
        guard.extend(Duration::from_secs(40)).await?;
        guard.reenter().await?.release().await?;
        guard.release().await?;
        // This is the state after a restart: the script is sent as text.
        bench.server.command::<()>(&["SCRIPT", "FLUSH"]);
        Ok(())
    };
    // Neither is a task of its own: a waiter that outlived this work would take part in the next.
    try_join(waiting, holding).await?;
    bench.asked_for("unsubscribe").await;
    // On one connection, the name is free each time.
    for _ in 0..3 {
        lock(&one).acquire().await?.release().await?;
    }
    one.close().await;
    other.close().await;
    Ok(())
}

/// Adds a waiter of Redisson's to the queue. The queue drops it at this time. The time is written first: a waiter
/// without one counts as dead.
fn queue_up(bench: &Bench, waiter: &str, at: &str) {
    let queue = "redisson_lock_queue:{orders/42}";
    let timeouts = "redisson_lock_timeout:{orders/42}";
    bench.server.command::<()>(&["ZADD", timeouts, at, waiter]);
    bench.server.command::<()>(&["RPUSH", queue, waiter]);
}

async fn the_rights_of_plain_locks_are_those_of_the_page() {
    prove(&[], settings(), "", async |bench| {
        hand_over(bench, |locks| locks.lock(NAME)).await?;
        // A hold that lasts is told of its loss.
        let locks = bench.client().await?;
        let guard = locks.lock(NAME).acquire().await?;
        bench.asked_for("hexists").await;
        guard.release().await?;
        locks.close().await;
        // After a reconnection, a hold is released by a script.
        let scripts = settings().redis(RedisConfig::default().only_scripts(true));
        let locks = scripts.connect(bench.address()).await?;
        let guard = locks.lock(NAME).acquire().await?;
        // This is the state after a restart: the script is sent as text.
        bench.server.command::<()>(&["SCRIPT", "FLUSH"]);
        guard.release().await?;
        locks.close().await;
        Ok(())
    })
    .await;
}

async fn the_rights_of_watched_nodes_are_those_of_the_page() {
    let watched = settings()
        .node_trust(NodeTrust::Watched)
        .trust_fresh_nodes()
        .clock_margin(Duration::from_secs(10));
    let besides = besides(
        "watched nodes with a [clock margin](../glossary.md#clock-margin), so a majority by default",
    );
    prove(&besides, watched, "", async |bench| {
        hand_over(bench, |locks| locks.lock(NAME)).await
    })
    .await;
}

async fn the_rights_of_fair_locks_are_those_of_the_page() {
    prove(&besides("fair locks"), settings(), "", async |bench| {
        hand_over(bench, |locks| locks.fair(NAME)).await?;
        // This client is behind a waiter of Redisson's, whose queue has no TTL.
        queue_up(bench, "jvm:1", "9000000000000");
        let locks = bench.client().await?;
        let short = locks.fair(NAME).wait(Duration::from_millis(30));
        assert!(short.acquire().await.is_err());
        locks.close().await;
        Ok(())
    })
    .await;
}

async fn the_rights_of_read_write_locks_are_those_of_the_page() {
    prove(
        &besides("read-write locks"),
        settings(),
        "",
        async |bench| {
            hand_over(bench, |locks| locks.write(NAME)).await?;
            let locks = bench.client().await?;
            let owner = locks.owner();
            let writer = owner.write(NAME).acquire().await?;
            let reader = owner.read(NAME).acquire().await?;
            writer.release().await?;
            let beside = locks.read(NAME).acquire().await?;
            reader.extend(Duration::from_secs(40)).await?;
            reader.release().await?;
            beside.release().await?;
            locks.close().await;
            Ok(())
        },
    )
    .await;
}

async fn the_rights_of_operators_are_those_of_the_page() {
    let besides = besides("`inspect` and `force_release`");
    // The holders are other users, who may do everything.
    prove(&besides, settings(), "", async |bench| {
        let all = Locks::connect(bench.server.address()).await?;
        let operator = bench.client().await?;
        let look_and_free = async || -> Worked {
            assert!(operator.inspect(NAME).await?.to_string().contains(NAME));
            operator.force_release(NAME).await?;
            Ok(())
        };
        all.lock(NAME).acquire().await?.leak();
        look_and_free().await?;

        // A dead waiter is ahead of a live one.
        let guard = all.fair(NAME).acquire().await?;
        queue_up(bench, "dead:1", "1");
        queue_up(bench, "live:1", "9000000000000");
        look_and_free().await?;
        // The name was freed by force. The release of the old guard must not come when the next waiters are in the
        // queue.
        assert!(guard.release().await.is_err());
        bench.server.command::<()>(&["FLUSHALL"]);

        // No owner holds the name, but waiters of Redisson's keep it from all others.
        queue_up(bench, "dead:1", "1");
        queue_up(bench, "live:1", "9000000000000");
        look_and_free().await?;
        bench.server.command::<()>(&["FLUSHALL"]);

        all.read(NAME).acquire().await?.leak();
        look_and_free().await?;
        all.close().await;
        operator.close().await;
        Ok(())
    })
    .await;
}

async fn the_right_to_choose_a_database_is_that_of_the_page() {
    let besides = besides("an address with a database (`/1`)");
    prove(&besides, settings(), "1", async |bench| {
        hand_over(bench, |locks| locks.lock(NAME)).await
    })
    .await;
}

async fn the_right_to_wait_for_replicas_is_that_of_the_page() {
    let wait = Wait::replicas(0, Duration::from_millis(10));
    let waiting = Locks::builder().redis(RedisConfig::default().wait(wait));
    prove(
        &besides("`RedisConfig::wait`"),
        waiting,
        "",
        async |bench| {
            let locks = bench.client().await?;
            locks.lock(NAME).acquire().await?.release().await?;
            locks.close().await;
            Ok(())
        },
    )
    .await;
}

/// Tests `INFO` and `SCRIPT LOAD`, on one node.
async fn the_rights_that_may_be_left_out_may_be() {
    for right in [
        "+info",
        "+script|load",
        "+client|tracking",
        "+client|caching",
    ] {
        let bench = Bench {
            server: Server::start(),
            settings: settings(),
            database: "",
        };
        let rest: Vec<&str> = base().into_iter().filter(|r| *r != right).collect();
        bench.allow(&rest);
        let worked = hand_over(&bench, |locks| locks.lock(NAME)).await;
        assert_eq!(worked.err().map(|failed| failed.0), None, "{right}");
        assert!(!bench.denied().is_empty(), "{right}");
    }
}
