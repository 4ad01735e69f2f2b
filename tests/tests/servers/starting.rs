//! Clients that are started before their servers, and clients without `async`.

use std::time::Duration;

use quorlock::{ConnectError, ErrorKind, Locks, blocking};
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::BOUND;

server_tests![
    a_client_waits_for_its_servers_to_start,
    a_client_waits_for_no_server_that_refuses_it,
    a_lazy_client_is_ready_when_its_server_is,
    USERS: a_client_that_may_not_write_is_not_ready,
    threads_share_a_lock_with_tasks,
];

/// Two of three servers start while the client waits.
async fn a_client_waits_for_its_servers_to_start() {
    let servers = [(); 3].map(|()| Server::start());
    let addresses = servers.each_ref().map(Server::address);
    servers.iter().for_each(Server::kill);
    let builder = || Locks::builder().trust_fresh_nodes();
    let error = builder().quorum(&addresses).await.unwrap_err();
    assert!(!error.is_final(), "{error}");
    let connecting = builder().wait_for_servers(BOUND).quorum(addresses);
    let starting = tokio::task::spawn_blocking(move || {
        servers[0].restart();
        servers[2].restart();
        servers
    });
    let (locks, servers) = tokio::join!(connecting, starting);
    let locks = locks.unwrap();
    locks.ready().await.unwrap();
    drop(servers);
}

async fn a_client_waits_for_no_server_that_refuses_it() {
    let server = Server::start();
    let _: () = server.command(&["CONFIG", "SET", "requirepass", "secret"]);
    let builder = Locks::builder().wait_for_servers(Duration::from_secs(3_600));
    let error = builder.connect(server.address()).await.unwrap_err();
    assert!(matches!(&error, ConnectError::Nodes { .. }) && error.is_final());
    assert!(!error.to_string().contains("secret"), "{error}");
}

async fn a_lazy_client_is_ready_when_its_server_is() {
    let server = Server::start();
    server.kill();
    let locks = Locks::builder().connect_lazy(server.address()).unwrap();
    let error = locks.ready().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    tokio::task::block_in_place(|| server.restart());
    let guard = locks.lock("a").wait(BOUND).acquire().await.unwrap();
    locks.ready().await.unwrap();
    guard.release().await.unwrap();
}

/// A client that is connected may still fail at every lock.
async fn a_client_that_may_not_write_is_not_ready() {
    let server = Server::start();
    let locks = Locks::connect(server.address()).await.unwrap();
    locks.ready().await.unwrap();
    let _: String = server.command(&["REPLICAOF", "127.0.0.1", "1"]);
    let error = locks.ready().await.unwrap_err();
    assert_ne!(error.kind(), ErrorKind::Busy, "{error}");
    let _: String = server.command(&["REPLICAOF", "NO", "ONE"]);
    let _: String = server.command(&["ACL", "SETUSER", "default", "-@all", "+info"]);
    let error = locks.ready().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misconfigured, "{error}");
}

/// Three threads and three tasks count with two clients. Without exclusion, counts would be lost.
async fn threads_share_a_lock_with_tasks() {
    const TIMES: u64 = 20;
    let server = Server::start();
    let address = server.address();
    let locks = Locks::connect(&address).await.unwrap();
    let counts = || {
        let count: Option<u64> = server.command(&["GET", "count"]);
        let text = (count.unwrap_or(0) + 1).to_string();
        let _: String = server.command(&["SET", "count", &text]);
    };
    let threads = || {
        let blocking = blocking::Locks::connect(&address).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..TIMES {
                        let guard = blocking.lock("counter").wait(BOUND).acquire().unwrap();
                        counts();
                        guard.release().unwrap();
                    }
                });
            }
        });
    };
    let tasks = (0..3).map(|_| async {
        for _ in 0..TIMES {
            let guard = locks.lock("counter").wait(BOUND).acquire().await.unwrap();
            counts();
            guard.release().await.unwrap();
        }
    });
    let tasks = futures_util::future::join_all(tasks);
    std::thread::scope(|scope| {
        let threads = scope.spawn(threads);
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(tasks));
        threads.join().unwrap();
    });
    let count: u64 = server.command(&["GET", "count"]);
    assert_eq!(count, 6 * TIMES);
}
