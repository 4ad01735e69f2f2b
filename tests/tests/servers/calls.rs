//! Tests calls over faulty networks and to faulty servers.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use quorlock_core::message::{AcquireReply, Freshness, Request};
use quorlock_core::transport::{Cause, Execution, Transport, TransportError};
use quorlock_redis::{RedisConfig, RedisTransport};
use quorlock_testbed::proxy::Proxy;
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::{BOUND, until};
use quorlock_tests::requests::{acquire, ask, name, take};

server_tests![
    a_server_that_is_not_there_is_definitely_unreachable,
    a_listener_that_never_answers_does_not_hold_a_call_up,
    a_server_that_speaks_another_language_is_named_as_such,
    a_call_to_a_stopped_server_times_out_and_its_connection_is_replaced,
    a_call_to_a_stopped_server_may_be_executed_later,
    a_server_killed_during_a_call_leaves_it_indeterminate,
    a_lost_reply_leaves_an_executed_call_indeterminate,
    a_call_is_never_sent_twice,
    a_restarted_server_is_found_again,
    a_transport_may_be_made_before_its_server,
    a_dropped_call_does_no_harm_to_the_next,
    many_calls_share_one_connection,
    a_unix_socket_leads_to_a_server_too,
];

/// The bound on the calls of these tests. It is generous because the machine may be busy.
const CALL: Duration = Duration::from_secs(1);

/// How late a busy machine may be. This is far below what an unbounded call would take.
const LATE: Duration = Duration::from_secs(5);

fn config() -> RedisConfig {
    RedisConfig::default()
        .connect_timeout(CALL)
        .call_timeout(CALL)
}

fn open(address: &str) -> RedisTransport {
    RedisTransport::open(address, config()).unwrap()
}

async fn failure(transport: &RedisTransport) -> TransportError {
    let start = Instant::now();
    let asked = ask(transport, acquire(&name("orders/42"), 1)).await;
    let passed = start.elapsed();
    assert!(passed < CALL + LATE, "{passed:?}");
    asked.expect_err("the call must fail")
}

/// Sends a request again until it is answered.
async fn take_at_last(transport: &RedisTransport, number: u64) -> AcquireReply {
    let start = Instant::now();
    loop {
        match ask(transport, acquire(&name("orders/42"), number)).await {
            Ok(reply) => return reply,
            Err(error) => assert!(start.elapsed() < BOUND, "still: {error:?}"),
        }
        tokio::task::yield_now().await;
    }
}

/// Returns the connections other than the test's own.
fn connections(server: &Server) -> Vec<String> {
    let own: u64 = server.command(&["CLIENT", "ID"]);
    let clients: String = server.command(&["CLIENT", "LIST"]);
    let ids = clients.lines().filter_map(|line| line.split(' ').next());
    ids.filter(|id| *id != format!("id={own}"))
        .map(String::from)
        .collect()
}

async fn a_server_that_is_not_there_is_definitely_unreachable() {
    let server = Server::start();
    let transport = open(&server.address());
    server.kill();
    let error = failure(&transport).await;
    assert_eq!(error.cause, Cause::Unreachable, "{error:?}");
    assert_eq!(error.execution, Execution::Definite, "{error:?}");
}

async fn a_listener_that_never_answers_does_not_hold_a_call_up() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    for credentials in ["", "user:password@"] {
        let transport = open(&format!("redis://{credentials}127.0.0.1:{port}/"));
        let error = failure(&transport).await;
        assert_eq!(error.cause, Cause::TimedOut, "{error:?}");
        // No request is sent before the server has answered something.
        assert_eq!(error.execution, Execution::Definite, "{error:?}");
    }
}

async fn a_server_that_speaks_another_language_is_named_as_such() {
    use std::io::{Read, Write};
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let error = failure(&open(&format!("redis://127.0.0.1:{port}/"))).await;
    assert_eq!(error.cause, Cause::Protocol, "{error:?}");
}

async fn a_call_to_a_stopped_server_times_out_and_its_connection_is_replaced() {
    let server = Server::start();
    let transport = open(&server.address());
    take(&transport, &name("another"), 1).await;
    let before = connections(&server);
    assert_eq!(before.len(), 1);
    server.pause();
    let error = failure(&transport).await;
    assert_eq!(error.cause, Cause::TimedOut, "{error:?}");
    assert_eq!(error.execution, Execution::Indeterminate, "{error:?}");
    server.resume();
    take_at_last(&transport, 2).await;
    until("the silent connection is closed", || {
        let now = connections(&server);
        !now.is_empty() && !now.contains(&before[0])
    })
    .await;
}

async fn a_call_to_a_stopped_server_may_be_executed_later() {
    let server = Server::start();
    let transport = open(&server.address());
    take(&transport, &name("another"), 1).await;
    server.pause();
    let error = failure(&transport).await;
    assert_eq!(error.execution, Execution::Indeterminate, "{error:?}");
    server.resume();
    until("the request is executed", || {
        server.command::<u32>(&["EXISTS", "orders/42"]) == 1
    })
    .await;
    let again = take_at_last(&transport, 1).await;
    let AcquireReply::Granted { freshness, .. } = again else {
        panic!("{again:?}")
    };
    assert_eq!(freshness, Freshness::AlreadyYours);
}

async fn a_server_killed_during_a_call_leaves_it_indeterminate() {
    let server = Server::start();
    let proxy = Proxy::to(&server).await;
    let transport = RedisTransport::open(&proxy.address(), RedisConfig::default()).unwrap();
    take(&transport, &name("another"), 1).await;
    server.pause();
    let before = proxy.sent();
    let request = Request::Acquire(acquire(&name("orders/42"), 1));
    let call = tokio::spawn(transport.call(request));
    until("the request is on its way", || before < proxy.sent()).await;
    server.kill();
    proxy.cut();
    let error = call.await.unwrap().unwrap_err();
    assert_eq!(error.cause, Cause::Closed, "{error:?}");
    assert_eq!(error.execution, Execution::Indeterminate, "{error:?}");
}

async fn a_lost_reply_leaves_an_executed_call_indeterminate() {
    let server = Server::start();
    let proxy = Proxy::to(&server).await;
    let transport = RedisTransport::open(&proxy.address(), RedisConfig::default()).unwrap();
    take(&transport, &name("another"), 1).await;
    proxy.lose_replies();
    let request = Request::Acquire(acquire(&name("orders/42"), 1));
    let call = tokio::spawn(transport.call(request));
    until("the request is executed", || {
        server.command::<u32>(&["EXISTS", "orders/42"]) == 1
    })
    .await;
    proxy.cut();
    let error = call.await.unwrap().unwrap_err();
    assert_eq!(error.cause, Cause::Closed, "{error:?}");
    assert_eq!(error.execution, Execution::Indeterminate, "{error:?}");
}

async fn a_call_is_never_sent_twice() {
    let server = Server::start();
    let proxy = Proxy::to(&server).await;
    let transport = RedisTransport::open(&proxy.address(), RedisConfig::default()).unwrap();
    take(&transport, &name("another"), 1).await;
    proxy.lose_replies();
    let evaluations = || {
        let stats: String = server.command(&["INFO", "commandstats"]);
        let counted = stats
            .lines()
            .find_map(|l| l.strip_prefix("cmdstat_evalsha:calls="));
        let digits = counted
            .and_then(|l| l.split(',').next())
            .map(str::parse::<u32>);
        digits.map_or(0, |number| number.unwrap())
    };
    let before = evaluations();
    let request = Request::Acquire(acquire(&name("orders/42"), 1));
    let call = tokio::spawn(transport.call(request));
    until("the request is executed", || before < evaluations()).await;
    proxy.cut();
    proxy.carry_replies();
    call.await.unwrap().unwrap_err();
    // The next call is sent after any other call that may have been sent.
    take_at_last(&transport, 1).await;
    assert_eq!(evaluations(), before + 2);
}

async fn a_restarted_server_is_found_again() {
    let server = Server::start();
    let transport = open(&server.address());
    take(&transport, &name("orders/42"), 1).await;
    for number in 2..=4 {
        server.restart();
        let reply = take_at_last(&transport, number).await;
        let AcquireReply::Granted { freshness, .. } = reply else {
            panic!("it kept nothing: {reply:?}")
        };
        assert_eq!(freshness, Freshness::Anew);
        server.command::<()>(&["FLUSHALL"]);
    }
}

async fn a_transport_may_be_made_before_its_server() {
    let server = Server::start();
    server.kill();
    let transport = open(&server.address());
    failure(&transport).await;
    server.restart();
    take_at_last(&transport, 1).await;
}

async fn a_dropped_call_does_no_harm_to_the_next() {
    let server = Server::start();
    let transport = open(&server.address());
    take(&transport, &name("warm"), 1).await;
    for number in 0..100 {
        let dropped = acquire(&name(&format!("dropped/{number}")), 1);
        let call = tokio::spawn(transport.call(Request::Acquire(dropped)));
        if number % 2 == 0 {
            tokio::task::yield_now().await;
        }
        call.abort();
        take(&transport, &name(&format!("next/{number}")), number).await;
    }
    assert_eq!(connections(&server).len(), 1);
}

async fn many_calls_share_one_connection() {
    let server = Server::start();
    let transport = open_patiently(&server.address());
    let calls: Vec<_> = (0..500)
        .map(|number| {
            let request = acquire(&name(&format!("orders/{number}")), number);
            tokio::spawn(transport.call(Request::Acquire(request)))
        })
        .collect();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!(connections(&server).len(), 1);
    assert_eq!(server.command::<u32>(&["DBSIZE"]), 1_000);
}

async fn a_unix_socket_leads_to_a_server_too() {
    let server = Server::start();
    let address = format!("unix://{}", server.socket().display());
    take(&open_patiently(&address), &name("orders/42"), 1).await;
    assert_eq!(server.command::<u32>(&["EXISTS", "orders/42"]), 1);
}

fn open_patiently(address: &str) -> RedisTransport {
    RedisTransport::open(address, RedisConfig::default().call_timeout(BOUND)).unwrap()
}
