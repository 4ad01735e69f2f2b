//! Tests that a connection shows which process its server is, and for how long.

use std::time::Duration;

use quorlock_core::fencing::Token;
use quorlock_core::lease::Lease;
use quorlock_core::marker::{
    Act, Check, ConfirmedMarker, Figures, MarkerState, Nonce, Restarts, Shown, ShownMarker,
};
use quorlock_core::message::{Acquire, AcquireReply, ReleaseReply, Reply, Request};
use quorlock_core::name::Name;
use quorlock_core::transport::Transport as _;
use quorlock_redis::RedisTransport;
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::wait_until;
use quorlock_tests::requests::{acquire, name, release};

use super::errors::limit_user;
use super::natives::{after, calls, config, open};
use super::replicas::pair;

server_tests![
    REPORTS: a_process_is_asked_for_once,
    REPORTS: a_server_that_may_not_report_is_asked_each_time,
    REPORTS: after_a_flush_the_process_is_asked_for_again,
    REPORTS: a_primary_whose_data_was_replaced_under_a_connection_is_another_process,
    REPORTS: a_primary_that_was_a_replica_is_found_out_in_time,
];

const NAME: &str = "orders/42";
/// The longest lease, and the lease.
const LEASE: Duration = Duration::from_secs(2);

/// A client that trusts the process of a server.
struct Client {
    transport: RedisTransport,
    name: Name,
    trusted: ConfirmedMarker,
    last: Token,
    number: u64,
}

impl Client {
    /// Marks a server, and takes the name once by the script.
    async fn of(transport: RedisTransport) -> Self {
        let figures = Figures::same(LEASE.as_millis() as u64);
        let fresh = Check {
            figures,
            act: Act::MarkFresh(Nonce::new(7)),
            trusted: None,
            restarts: Restarts::MayForget,
            known: None,
        };
        let trusted = match transport.call(Request::Probe(fresh)).await {
            Ok(Reply::Probe(Shown {
                process,
                marker: ShownMarker::Own(nonce, MarkerState::Confirmed, figures),
            })) => ConfirmedMarker {
                process,
                nonce,
                figures,
            },
            other => panic!("{other:?}"),
        };
        let mut client = Client {
            transport,
            name: name(NAME),
            trusted,
            last: Token(0),
            number: 0,
        };
        let first = acquire(&client.name, 1);
        assert!(client.takes(first).await);
        client
    }

    /// Takes and frees the name. Returns whether the server is the trusted process.
    async fn takes(&mut self, ask: Acquire) -> bool {
        self.number += 1;
        let check = Check {
            figures: self.trusted.figures,
            act: Act::Look,
            trusted: Some(self.trusted),
            restarts: Restarts::MayForget,
            known: Some(self.trusted.nonce),
        };
        let ask = Acquire {
            lease: Lease::new(LEASE).unwrap(),
            check: Some(check),
            ..ask
        };
        let replied = self.transport.call(Request::Acquire(ask)).await;
        let Ok(Reply::Checked(AcquireReply::Granted { token, .. }, shown)) = replied else {
            panic!("{replied:?}");
        };
        self.last = token;
        let freed = release(&self.transport, &self.name, self.number, 0).await;
        assert!(matches!(freed, Ok(ReleaseReply::Freed { .. })), "{freed:?}");
        shown.process == self.trusted.process
    }

    /// Takes and frees the name without a script, if the server is the trusted process.
    async fn takes_again(&mut self) -> bool {
        let ask = after(&self.name, self.number + 1, self.last);
        self.takes(ask).await
    }
}

/// Returns how often the client takes the name without a script in some tries, and how often the server says meanwhile which process it
/// is.
async fn counts(client: &mut Client, server: &Server) -> [u64; 2] {
    let now = || ["exec", "info"].map(|command| calls(server, command));
    let before = now();
    for _ in 0..10 {
        assert!(client.takes_again().await);
    }
    let after = now();
    // Counting is an `INFO`, too.
    [after[0] - before[0], after[1] - before[1] - 2]
}

async fn a_process_is_asked_for_once() {
    let server = Server::start();
    let mut client = Client::of(open(&server)).await;
    assert_eq!(counts(&mut client, &server).await, [10, 1]);
    assert_eq!(counts(&mut client, &server).await, [10, 0]);
}

async fn a_server_that_may_not_report_is_asked_each_time() {
    let server = Server::start();
    limit_user(&server, &["~*", "&*", "+@all", "-client|tracking"]);
    let user = server
        .address()
        .replace("redis://", "redis://limited:correct@");
    let mut client = Client::of(RedisTransport::open(&user, config()).unwrap()).await;
    assert_eq!(counts(&mut client, &server).await, [10, 10]);
}

/// The marker is written again, so that it shows nothing.
async fn after_a_flush_the_process_is_asked_for_again() {
    let server = Server::start();
    let mut client = Client::of(open(&server)).await;
    assert_eq!(counts(&mut client, &server).await, [10, 1]);
    let marker: String = server.command(&["GET", "quorlock_marker"]);
    server.command::<()>(&["FLUSHALL"]);
    server.command::<()>(&["SET", "quorlock_marker", &marker]);
    assert_eq!(counts(&mut client, &server).await, [10, 1]);
}

/// Makes the primary a replica of its replica, and then the primary again.
fn change_twice(primary: &Server, replica: &Server) {
    replica.command::<()>(&["REPLICAOF", "NO", "ONE"]);
    let port = replica.port().to_string();
    primary.command::<()>(&["REPLICAOF", "127.0.0.1", &port]);
    wait_until("the former primary follows", || {
        let info: String = primary.command(&["INFO", "replication"]);
        info.contains("master_link_status:up")
    });
    primary.command::<()>(&["REPLICAOF", "NO", "ONE"]);
}

fn full_copies(server: &Server) -> u64 {
    let stats: String = server.command(&["INFO", "stats"]);
    let line = stats
        .lines()
        .find_map(|line| line.strip_prefix("sync_full:"));
    line.and_then(|number| number.parse().ok())
        .expect("a number")
}

/// It lacks what it had written last, such as the claim of another client, and its marker is as before.
async fn a_primary_whose_data_was_replaced_under_a_connection_is_another_process() {
    let (primary, replica) = pair();
    let mut client = Client::of(open(&primary)).await;
    assert!(client.takes_again().await);
    wait_until("the replica has the marker", || {
        replica.command::<u32>(&["EXISTS", "quorlock_marker"]) == 1
    });
    replica.command::<()>(&["REPLICAOF", "NO", "ONE"]);
    primary.command::<()>(&["SET", "other", "claim"]);
    change_twice(&primary, &replica);
    assert_eq!(full_copies(&replica), 1);
    assert_eq!(primary.command::<u32>(&["EXISTS", "other"]), 0);
    assert!(!client.takes_again().await);
}

/// It has all that it had written, and its marker is as before.
async fn a_primary_that_was_a_replica_is_found_out_in_time() {
    let (primary, replica) = pair();
    let mut client = Client::of(open(&primary)).await;
    assert!(client.takes_again().await);
    wait_until("the replica has the marker", || {
        replica.command::<u32>(&["EXISTS", "quorlock_marker"]) == 1
    });
    change_twice(&primary, &replica);
    tokio::time::sleep(LEASE / 2).await;
    assert!(!client.takes_again().await);
}
