//! Tests what the page of the servers says about services that refuse commands. A user of a real server has all rights
//! but those of a row.

use std::fmt;
use std::time::Duration;

use futures_util::future::try_join;
use quorlock::Locks;
use quorlock::redis::{RedisConfig, Wait};
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::BOUND;

server_tests![
    CHANNELS: one_node_that_refuses_commands_does_what_the_page_says,
    CHANNELS: a_majority_that_refuses_commands_does_what_the_page_says,
];

const PAGE: &str = include_str!("../../../docs/src/reference/servers.md");

const NAME: &str = "orders/42";

/// A row of the page that has commands to refuse, as rules of a user.
struct Row {
    line: &'static str,
    rules: Vec<&'static str>,
    on_one_node: &'static str,
    on_a_majority: &'static str,
}

impl Row {
    /// Reads a line of the page. The cells for one node and for a majority follow the one with the rules.
    fn read(line: &'static str) -> Option<Row> {
        let cells = line.strip_prefix("| ")?.strip_suffix(" |")?;
        let mut cells = cells
            .split(" | ")
            .skip_while(|cell| !cell.starts_with("`-"));
        Some(Row {
            line,
            rules: code(cells.next()?)?.split(' ').collect(),
            on_one_node: cells.next().expect("a cell for one node"),
            on_a_majority: cells.next().expect("a cell for a majority"),
        })
    }

    /// Checks an outcome against a cell: `works ..`, or `refused ..`, whose first code is in the error.
    fn check(&self, cell: &str, outcome: Worked) {
        let error = outcome.err().map(|failed| failed.0);
        if cell.starts_with("works") {
            assert_eq!(error, None, "{}", self.line);
            return;
        }
        assert!(cell.starts_with("refused"), "{cell}");
        let words = code(cell).expect("a part of the error");
        let error = error.unwrap_or_else(|| panic!("it works: {}", self.line));
        assert!(error.contains("waiting does not help"), "{error}");
        assert!(error.contains(words), "{}: {error}", self.line);
    }
}

/// Returns the first code in a cell.
fn code(cell: &str) -> Option<&str> {
    cell.split('`').nth(1)
}

fn rows() -> Vec<Row> {
    let rows: Vec<Row> = PAGE.lines().filter_map(Row::read).collect();
    assert!(10 < rows.len(), "{} rows", rows.len());
    rows
}

/// The error of a piece of work.
struct Failed(String);

impl<E: fmt::Display> From<E> for Failed {
    fn from(error: E) -> Self {
        Failed(error.to_string())
    }
}

type Worked = Result<(), Failed>;

/// One client holds and extends the lock, and another one waits for it, as users who lack the rights of a row.
async fn hand_over(servers: &[Server], row: &Row) -> Worked {
    let database = if row.line.contains("`/1`") { "1" } else { "" };
    let mut addresses = Vec::new();
    for server in servers {
        server.command::<u32>(&["ACL", "DELUSER", "locks"]);
        server.command::<()>(&["FLUSHALL"]);
        server.command::<()>(&["SCRIPT", "FLUSH"]);
        let user = ["ACL", "SETUSER", "locks", "on", ">secret"];
        let all = ["~*", "&*", "+@all"];
        server.command::<()>(&[&user[..], &all[..], &row.rules[..]].concat());
        let address = server.address();
        let address = address.replace("redis://", "redis://locks:secret@");
        addresses.push(format!("{address}{database}"));
    }
    let redis = RedisConfig::default();
    let redis = if row.line.contains("`RedisConfig::wait`") {
        redis.wait(Wait::replicas(0, Duration::from_millis(10)))
    } else {
        redis
    };
    let settings = Locks::builder().redis(redis).trust_fresh_nodes();
    let one = settings.clone().quorum(&addresses).await?;
    let other = settings.quorum(&addresses).await?;
    let guard = one.lock(NAME).acquire().await?;
    // Without a wake-up it asks again after a while.
    let waiter = other.lock(NAME).wait(4 * BOUND);
    let waiting = async { Worked::Ok(waiter.acquire().await?.release().await?) };
    let holding = async {
        guard.extend(Duration::from_secs(40)).await?;
        guard.release().await?;
        Worked::Ok(())
    };
    try_join(waiting, holding).await?;
    one.close().await;
    other.close().await;
    Ok(())
}

async fn one_node_that_refuses_commands_does_what_the_page_says() {
    let servers = [Server::start()];
    for row in rows() {
        let outcome = hand_over(&servers, &row).await;
        row.check(row.on_one_node, outcome);
    }
}

async fn a_majority_that_refuses_commands_does_what_the_page_says() {
    let servers = [Server::start(), Server::start(), Server::start()];
    for row in rows() {
        let outcome = hand_over(&servers, &row).await;
        row.check(row.on_a_majority, outcome);
    }
}
