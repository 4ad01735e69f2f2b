//! Tests unsuitable servers, and names and spans that are accepted. For an unsuitable server, there must be a typed
//! error in time that states what to do, and no key.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use quorlock::errors::NodeProblem;
use quorlock::redis::{NodeConnectError, RedisConfig};
use quorlock::transport::Cause;
use quorlock::{AcquireError, ConfigError, ConnectError, Locks, LocksBuilder};
use quorlock_redis::advice;
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_tests::requests::name;
use quorlock_tests::wire::token_key;

server_tests![
    one_server_under_two_addresses_is_refused,
    a_replica_is_refused_as_a_node,
    a_wrong_password_is_refused,
    USERS: a_user_without_permission_is_told_so,
    no_server_is_found_out_in_time,
    a_server_that_never_answers_is_found_out_in_time,
    a_server_older_than_5_is_refused,
    a_database_that_is_not_there_is_named,
    names_of_every_kind_leave_no_key_but_the_counter,
    the_longest_spans_work_on_a_server,
];

const BOUND: Duration = Duration::from_millis(400);

pub(super) fn settings() -> LocksBuilder {
    let redis = RedisConfig::default();
    Locks::builder().redis(redis.connect_timeout(BOUND).call_timeout(BOUND))
}

/// Connects to the only node. The problem of the node must be found within the bounds of a connection and a call.
async fn problem(address: &str) -> NodeConnectError {
    let began = Instant::now();
    let error = settings().connect(address).await.unwrap_err();
    assert!(began.elapsed() < 8 * BOUND, "{:?}", began.elapsed());
    match error {
        ConnectError::Nodes { mut problems, .. } => match problems.remove(0) {
            NodeProblem::Redis(problem) => problem,
            other => panic!("{other}"),
        },
        other => panic!("{other}"),
    }
}

#[track_caller]
fn assert_says(problem: &NodeConnectError, advice: &str) {
    assert!(problem.to_string().contains(advice), "{problem}");
}

#[track_caller]
fn assert_is_empty(server: &Server) {
    let keys: Vec<String> = server.command(&["KEYS", "*"]);
    assert_eq!(keys, Vec::<String>::new());
}

async fn one_server_under_two_addresses_is_refused() {
    let (server, other, third) = (Server::start(), Server::start(), Server::start());
    let port = server.port();
    let socket = server.dir().join("redis.sock");
    for second in [
        format!("redis://localhost:{port}/"),
        format!("redis://127.0.0.1:{port}/1"),
        format!("unix://{}", socket.display()),
    ] {
        let addresses = [server.address(), other.address(), second];
        let error = settings().quorum(addresses).await.unwrap_err();
        let ConnectError::Config(ConfigError::SameServer { .. }) = &error else {
            panic!("{error}")
        };
        assert!(
            error.to_string().contains("give one address of it"),
            "{error}"
        );
    }
    let twice = [server.address(), other.address(), server.address()];
    let error = settings().quorum(twice).await.unwrap_err();
    let same = matches!(error, ConnectError::Config(ConfigError::SameNode { .. }));
    assert!(same, "{error}");
    let none: [&str; 0] = [];
    let error = settings().quorum(none).await.unwrap_err();
    assert_eq!(error, ConnectError::Config(ConfigError::NoNodes));
    let addresses = [server.address(), other.address(), third.address()];
    settings().quorum(addresses).await.unwrap();
    for server in [server, other, third] {
        assert_is_empty(&server);
    }
}

async fn a_replica_is_refused_as_a_node() {
    let server = Server::start();
    server.command::<()>(&["REPLICAOF", "127.0.0.1", "1"]);
    let problem = problem(&server.address()).await;
    assert!(matches!(problem, NodeConnectError::Replica { .. }));
    assert_says(&problem, "give the address of its primary");
    // The error also occurs if the other nodes are enough, because this node will never be usable.
    let others = [Server::start(), Server::start()];
    let addresses = others.iter().chain([&server]).map(Server::address);
    let error = settings().quorum(addresses).await.unwrap_err();
    assert!(error.to_string().contains("2 of 3 nodes"), "{error}");
}

async fn a_wrong_password_is_refused() {
    let server = Server::start();
    server.command::<()>(&["CONFIG", "SET", "requirepass", "correct"]);
    for credentials in ["", ":hunter2@", "stranger:hunter2@"] {
        let address = format!("redis://{credentials}127.0.0.1:{}/", server.port());
        let problem = problem(&address).await;
        let is_named = matches!(problem, NodeConnectError::BadCredentials { .. });
        assert!(is_named, "{problem:?}");
        assert_says(&problem, "check the user and the password");
        assert!(!format!("{problem} {problem:?}").contains("hunter2"));
    }
}

async fn a_user_without_permission_is_told_so() {
    let server = Server::start();
    let rules = [
        "on",
        ">hunter2",
        "~*",
        "&*",
        "+@all",
        "-@scripting",
        "-info",
    ];
    server.command::<()>(&[&["ACL", "SETUSER", "limited"][..], &rules].concat());
    let address = format!("redis://limited:hunter2@127.0.0.1:{}/", server.port());
    // A user who may not query the server's properties passes the check.
    let locks = settings().connect(address).await.unwrap();
    let error = locks.lock("a").acquire().await.unwrap_err();
    let AcquireError::Refused { nodes, .. } = &error else {
        panic!("{error}")
    };
    let cause = nodes[0].error.as_ref().unwrap().cause;
    assert_eq!(cause, Cause::NoPermission);
    let text = format!("{error} {error:?} {locks:?}");
    assert!(
        text.contains("grant the user the commands and keys"),
        "{text}"
    );
    assert!(!text.contains("hunter2"), "{text}");
    assert_is_empty(&server);
}

async fn no_server_is_found_out_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let problem = problem(&format!("redis://:hunter2@127.0.0.1:{port}/")).await;
    assert!(matches!(problem, NodeConnectError::Unreachable { .. }));
    assert_says(
        &problem,
        "check that the node runs, and that its address is right",
    );
    assert!(!format!("{problem} {problem:?}").contains("hunter2"));
}

async fn a_server_that_never_answers_is_found_out_in_time() {
    // The operating system accepts the connection, although no server does.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let problem = problem(&format!("redis://127.0.0.1:{port}/")).await;
    assert!(
        matches!(problem, NodeConnectError::TimedOut { .. }),
        "{problem:?}"
    );
    assert_says(&problem, "slow or stopped");
}

async fn a_server_older_than_5_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            std::thread::spawn(move || old_server(&stream));
        }
    });
    let problem = problem(&format!("redis://127.0.0.1:{port}/")).await;
    let NodeConnectError::TooOld { version, .. } = &problem else {
        panic!("{problem:?}")
    };
    assert_eq!(version, "4.0.14");
    assert_says(&problem, "need Redis 5 or newer");
}

/// Answers OK to everything, and version 4 to INFO.
fn old_server(mut stream: &std::net::TcpStream) {
    const INFO: &str = "# Server\r\nredis_version:4.0.14\r\nrun_id:4\r\nrole:master\r\n";
    let mut reader = BufReader::new(stream);
    while let Some(words) = read_command(&mut reader) {
        let answer = match words.first() {
            Some(verb) if verb.eq_ignore_ascii_case(b"INFO") => {
                format!("${}\r\n{INFO}\r\n", INFO.len())
            }
            _ => "+OK\r\n".into(),
        };
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn read_command(reader: &mut impl BufRead) -> Option<Vec<Vec<u8>>> {
    let mut number = |prefix: char| {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let count: usize = line.trim_end().strip_prefix(prefix)?.parse().ok()?;
        if prefix == '*' {
            return Some((count, Vec::new()));
        }
        let mut word = vec![0; count + 2];
        reader.read_exact(&mut word).ok()?;
        word.truncate(count);
        Some((count, word))
    };
    let (words, _) = number('*')?;
    (0..words)
        .map(|_| number('$').map(|(_, word)| word))
        .collect()
}

async fn a_database_that_is_not_there_is_named() {
    let server = Server::start_with(&["--databases", "1"]);
    let address = format!("{}5", server.address());
    let error = settings().connect(&address).await.unwrap_err();
    let advice = advice(Cause::NoDatabase);
    assert!(error.to_string().contains(advice), "{error}");
    let client = redis::Client::open(address).unwrap();
    let locks = settings().from_redis_client(&client).unwrap();
    let error = locks.lock("a").acquire().await.unwrap_err();
    assert!(matches!(error, AcquireError::Refused { .. }), "{error}");
    assert!(error.to_string().contains(advice), "{error}");
}

async fn names_of_every_kind_leave_no_key_but_the_counter() {
    let server = Server::start();
    let builder = settings().key_prefix("app:");
    let locks = builder.connect(server.address()).await.unwrap();
    for given in [
        "{tag}:x",
        "}{",
        "{",
        " ",
        "a b",
        "заказ/42",
        "🔒",
        &"x".repeat(508),
    ] {
        let key = name(&format!("app:{given}"));
        let guard = locks.lock(given).acquire().await.unwrap();
        assert_eq!(server.command::<u32>(&["EXISTS", &key.text()]), 1);
        guard.release().await.unwrap();
        let keys: Vec<String> = server.command(&["KEYS", "*"]);
        assert_eq!(keys, [token_key(&key)]);
        server.command::<()>(&["FLUSHALL"]);
    }
    for given in ["", "a\0b", &"x".repeat(509)] {
        let error = locks.lock(given).acquire().await.unwrap_err();
        assert!(matches!(error, AcquireError::Config(ConfigError::Name(_))));
    }
    for lease in [0, 4, 60_001].map(Duration::from_millis) {
        let error = locks.lock("a").lease(lease).acquire().await.unwrap_err();
        assert!(matches!(error, AcquireError::Config(_)), "{error}");
    }
    assert_is_empty(&server);
}

/// Values for nodes are limited to what a server can count; values for the client alone are not.
async fn the_longest_spans_work_on_a_server() {
    let most = LocksBuilder::LONGEST_SPAN;
    let redis = RedisConfig::default()
        .connect_timeout(Duration::MAX)
        .call_timeout(Duration::MAX)
        .ping_interval(Duration::MAX)
        .linger(Duration::MAX);
    let builder = Locks::builder()
        .redis(redis)
        .max_hold(Duration::MAX)
        .trust_fresh_nodes();
    let long = builder.clone().watchdog_lease(most).longest_lease(most);
    let long = long.clock_margin(most).token_retention(None);
    let kept = builder.token_retention(Some(most));
    for (settings, name) in [(long, "long"), (kept, "kept")] {
        let servers = [Server::start(), Server::start(), Server::start()];
        let addresses = servers.each_ref().map(Server::address);
        for locks in [
            settings.clone().connect(&addresses[0]).await.unwrap(),
            settings.quorum(&addresses).await.unwrap(),
        ] {
            let lock = locks.lock(name).wait(Duration::MAX);
            let guard = lock.acquire().await.unwrap();
            guard.reenter().await.unwrap().release().await.unwrap();
            assert!(lock.try_acquire().await.unwrap().is_none());
            guard.release().await.unwrap();
            let fair = locks.fair(name).wait(Duration::MAX);
            if let Ok(guard) = fair.acquire().await {
                guard.release().await.unwrap();
            }
            let writer = locks.write(format!("{name}:rw")).acquire().await.unwrap();
            writer.release().await.unwrap();
            locks.close().await;
        }
    }
}
