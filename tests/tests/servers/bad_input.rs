//! Servers that will not do, and keys that are in the way: a typed error that says what to do, in time, and no key.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use quorlock::transport::{Cause, NodeConnectError, RedisConfig};
use quorlock::{
    AcquireError, ConfigError, ConnectError, ForceReleaseError, Found, Locks, LocksBuilder, Mode,
    Summary,
};
use quorlock_tests::requests::name;
use quorlock_tests::server::Server;
use quorlock_tests::server_tests;
use quorlock_tests::wire::{acquire_as_jvm, token_key};

server_tests![
    one_server_under_two_addresses_is_refused,
    a_replica_is_refused_as_a_node,
    a_wrong_password_is_refused,
    a_user_without_permission_is_told_so,
    no_server_is_found_out_in_time,
    a_server_that_never_answers_is_found_out_in_time,
    a_server_older_than_5_is_refused,
    a_database_that_is_not_there_is_named,
    a_key_of_another_type_is_named_and_stays,
    a_lock_of_another_mode_is_named_and_freed_by_force_only,
    what_looks_almost_like_a_lock_is_not_freed_by_force,
    a_lock_of_a_stranger_is_shown_and_freed_by_force,
    names_of_every_kind_leave_no_key_but_the_counter,
    the_longest_spans_work_on_a_server,
    no_count_that_another_program_writes_holds_up_the_server,
    a_queue_behind_a_dead_waiter_of_a_jvm_is_shown_and_moved_on_by_force,
];

const BOUND: Duration = Duration::from_millis(400);

fn settings() -> LocksBuilder {
    let redis = RedisConfig::default();
    Locks::builder().redis(redis.connect_timeout(BOUND).call_timeout(BOUND))
}

/// What is wrong with the only node, found out within the bounds of a connection and a call.
async fn problem(address: &str) -> NodeConnectError {
    let began = Instant::now();
    let error = settings().connect(address).await.unwrap_err();
    assert!(began.elapsed() < 8 * BOUND, "{:?}", began.elapsed());
    match error {
        ConnectError::Nodes { mut problems, .. } => problems.remove(0),
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
    // Also where the others are enough: it will never be a node.
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
    // Who may not ask what the server is, is believed.
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
    // The system accepts for it.
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

/// Says OK to everything, and to INFO that it is of version 4.
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
    let advice = Cause::NoDatabase.advice();
    assert!(error.to_string().contains(advice), "{error}");
    let client = redis::Client::open(address).unwrap();
    let locks = settings().from_redis_client(&client).unwrap();
    let error = locks.lock("a").acquire().await.unwrap_err();
    assert!(matches!(error, AcquireError::Refused { .. }), "{error}");
    assert!(error.to_string().contains(advice), "{error}");
}

async fn a_key_of_another_type_is_named_and_stays() {
    let server = Server::start();
    let locks = settings().connect(server.address()).await.unwrap();
    server.command::<()>(&["SET", "a", "something else"]);
    let error = locks.lock("a").acquire().await.unwrap_err();
    let AcquireError::Refused { nodes, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(nodes[0].error.as_ref().unwrap().cause, Cause::WrongType);
    assert!(error.to_string().contains("choose another name"), "{error}");
    let inspection = locks.inspect("a").await.unwrap();
    assert_eq!(
        inspection.nodes[0].found.as_ref().unwrap().found,
        Found::NotALock
    );
    locks.force_release("a").await.unwrap_err();
    assert_eq!(server.command::<String>(&["GET", "a"]), "something else");
    assert_eq!(server.command::<u32>(&["DBSIZE"]), 1);
}

async fn a_lock_of_another_mode_is_named_and_freed_by_force_only() {
    let server = Server::start();
    let locks = settings().connect(server.address()).await.unwrap();
    server.command::<()>(&["HSET", "a", "mode", "write", "somebody:1:write", "1"]);
    let error = locks.lock("a").acquire().await.unwrap_err();
    let AcquireError::OtherMode { found, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(*found, Mode::Write);
    assert!(
        error.to_string().contains("use one mode per name"),
        "{error}"
    );
    assert_eq!(
        locks.inspect("a").await.unwrap().summary(),
        Summary::Held {
            owner: "somebody:1".into(),
            nodes: 1
        }
    );
    assert_eq!(server.command::<u32>(&["DBSIZE"]), 1);
    assert_eq!(locks.force_release("a").await.unwrap().freed(), 1);
    assert_eq!(server.command::<u32>(&["DBSIZE"]), 0);
}

async fn what_looks_almost_like_a_lock_is_not_freed_by_force() {
    let server = Server::start();
    let locks = settings().connect(server.address()).await.unwrap();
    for fields in [
        &["name", "bob"][..],
        &["x", "0"],
        &["x", "-1"],
        &["x", "1.5"],
        &["x", "1e3"],
        &["x", "01"],
        &["x", "1", "y", "2"],
        &["mode", "strange", "x", "1"],
        &["mode", "read", "title", "War and Peace"],
        &["x", "1234567890123456"],
    ] {
        server.command::<()>(&["DEL", "a"]);
        server.command::<()>(&[&["HSET", "a"], fields].concat());
        let inspection = locks.inspect("a").await.unwrap();
        let found = &inspection.nodes[0].found.as_ref().unwrap().found;
        assert_eq!(*found, Found::NotALock, "{fields:?}");
        let error = locks.force_release("a").await.unwrap_err();
        let ForceReleaseError::Unconfirmed(report) = &error else {
            panic!("{error}")
        };
        let refusal = report.nodes[0].result.as_ref().unwrap_err();
        assert_eq!(refusal.cause, Cause::WrongType, "{fields:?}");
        assert_eq!(server.command::<u32>(&["EXISTS", "a"]), 1);
    }
    server.command::<()>(&["DEL", "a"]);
    server.command::<()>(&["SET", &token_key(&name("a")), "no number"]);
    let inspection = locks.inspect("a").await.unwrap();
    let error = inspection.nodes[0].found.as_ref().unwrap_err();
    assert_eq!(error.cause, Cause::WrongType);
}

async fn a_lock_of_a_stranger_is_shown_and_freed_by_force() {
    let server = Server::start();
    let locks = settings().connect(server.address()).await.unwrap();
    let owner = "not even a uuid, but an owner";
    assert_eq!(acquire_as_jvm(&server, &name("a"), owner, 30_000), None);
    acquire_as_jvm(&server, &name("a"), owner, 30_000);
    let waiting = {
        let lock = locks.lock("a");
        tokio::spawn(async move { lock.acquire().await.unwrap() })
    };
    let inspection = locks.inspect("a").await.unwrap();
    let held = Summary::Held {
        owner: owner.into(),
        nodes: 1,
    };
    assert_eq!(inspection.summary(), held);
    let text = inspection.to_string();
    assert!(
        text.contains("count 2, ") && text.contains("no token"),
        "{text}"
    );
    let report = locks.force_release("a").await.unwrap();
    assert_eq!(report.freed(), 1);
    // The waiter is woken, or had not begun to wait.
    waiting.await.unwrap().release().await.unwrap();
    let report = locks.force_release("a").await.unwrap();
    assert_eq!(report.freed(), 0);
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
        assert_eq!(server.command::<u32>(&["EXISTS", key.as_str()]), 1);
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

/// What nodes are told is bounded by what a server can count; what only the client counts is not.
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

/// Counts that another program may have written, as a reader's or as a writer's: no script counts up to them.
async fn no_count_that_another_program_writes_holds_up_the_server() {
    const COUNTS: [&str; 14] = [
        "900000000000",
        "999999999999999",
        "9999999999999999999999",
        "1001",
        "-1",
        "0",
        "1.5",
        "1e15",
        "0x7fffffffffff",
        "nan",
        "inf",
        "",
        "many",
        "1000",
    ];
    // What was asked for within that was not waited for.
    const SOON: Duration = Duration::from_secs(1);
    let server = Server::start();
    let key = "a";
    let locks = settings().connect(server.address()).await.unwrap();
    let plant = |mode: &str, count: &str, lives: bool| {
        server.command::<()>(&["FLUSHALL"]);
        let (reader, writer) = ("0f:7", "0f:7:write");
        server.command::<()>(&["HSET", key, "mode", mode, reader, count]);
        if mode == "write" {
            server.command::<()>(&["HSET", key, writer, count]);
        }
        server.command::<()>(&["PEXPIRE", key, "30000"]);
        if lives {
            let lease = "{a}:0f:7:rwlock_timeout:1";
            server.command::<()>(&["SET", lease, "1", "PX", "30000"]);
        }
    };
    for count in COUNTS {
        for mode in ["read", "write"] {
            for lives in [true, false] {
                let began = Instant::now();
                plant(mode, count, lives);
                let inspection = locks.inspect(key).await.unwrap();
                assert!(inspection.nodes[0].found.is_ok(), "{inspection}");
                let written = locks.write(key).try_acquire().await.unwrap();
                let is_dead = mode == "read" && count == "1000" && !lives;
                assert_eq!(written.is_some(), is_dead, "{mode} {count}");
                drop(written);
                plant(mode, count, lives);
                let read = locks.read(key).try_acquire().await.unwrap();
                assert_eq!(read.is_some(), mode == "read", "{mode} {count}");
                if let Some(read) = read {
                    read.release().await.unwrap();
                }
                plant(mode, count, lives);
                let _ = locks.force_release(key).await;
                assert!(
                    began.elapsed() < SOON,
                    "{mode} {count}: {:?}",
                    began.elapsed()
                );
            }
        }
    }
    // The same written into the own field of a holder, which renews, goes on reading and releases.
    for count in COUNTS {
        for is_writer in [false, true] {
            let began = Instant::now();
            server.command::<()>(&["FLUSHALL"]);
            let owner = locks.owner();
            let writer = match is_writer {
                true => Some(owner.write(key).acquire().await.unwrap()),
                false => None,
            };
            let reader = owner.read(key).acquire().await.unwrap();
            let field = reader.owner_id().to_string();
            server.command::<()>(&["HSET", key, &field, count]);
            reader.extend(Duration::from_secs(35)).await.unwrap();
            server.command::<()>(&["HSET", key, &field, count]);
            let again = owner.read(key).acquire().await.unwrap();
            server.command::<()>(&["HSET", key, &field, count]);
            again.release().await.unwrap();
            server.command::<()>(&["HSET", key, &field, count]);
            if let Some(writer) = writer {
                writer.release().await.unwrap();
            }
            reader.release().await.unwrap();
            assert!(began.elapsed() < SOON, "{count}: {:?}", began.elapsed());
            let left: usize = server.command(&["EXISTS", key]);
            assert_eq!(left, 0, "{count}");
        }
    }
    // One count beyond every bound keeps no other reader's lease from being freed. Their order in the hash is the server's.
    server.command::<()>(&["FLUSHALL"]);
    server.command::<()>(&["HSET", key, "mode", "read", "00", "900000000000"]);
    let reader = locks.read(key).acquire().await.unwrap();
    let lease = format!("{{a}}:{}:rwlock_timeout:1", reader.owner_id());
    assert_eq!(server.command::<usize>(&["EXISTS", &lease]), 1);
    locks.force_release(key).await.unwrap();
    assert_eq!(server.command::<usize>(&["EXISTS", &lease]), 0);
    drop(reader);
    // Many dead readers of many holds.
    let fill = "for i = 1, 9000 do redis.call('HSET', KEYS[1], 'r' .. i, 1000) end redis.call('HSET', KEYS[1], 'mode', 'read')";
    server.command::<()>(&["FLUSHALL"]);
    server.command::<()>(&["EVAL", fill, "1", key]);
    server.command::<()>(&["PEXPIRE", key, "30000"]);
    let began = Instant::now();
    locks.inspect(key).await.unwrap();
    assert!(locks.write(key).try_acquire().await.unwrap().is_none());
    locks.force_release(key).await.unwrap();
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

/// A JVM's waiter that was told, and died: for five minutes everybody else waits behind it.
async fn a_queue_behind_a_dead_waiter_of_a_jvm_is_shown_and_moved_on_by_force() {
    let server = Server::start();
    let locks = settings().connect(server.address()).await.unwrap();
    let time: (u64, u64) = server.command(&["TIME"]);
    let drop_at = (1_000 * (time.0 + 300)).to_string();
    server.command::<()>(&["RPUSH", "redisson_lock_queue:{a}", "0f:7"]);
    server.command::<()>(&["ZADD", "redisson_lock_timeout:{a}", &drop_at, "0f:7"]);
    let inspection = locks.inspect("a").await.unwrap();
    assert_eq!(
        inspection.summary(),
        Summary::Queued { nodes: 1 },
        "{inspection}"
    );
    assert!(locks.fair("a").try_acquire().await.unwrap().is_none());
    let waiting = locks.fair("a");
    let waiting = tokio::spawn(async move { waiting.acquire().await.unwrap() });
    while server.command::<usize>(&["LLEN", "redisson_lock_queue:{a}"]) < 2 {
        tokio::task::yield_now().await;
    }
    locks.force_release("a").await.unwrap();
    let guard = tokio::time::timeout(Duration::from_secs(3), waiting);
    guard.await.unwrap().unwrap().release().await.unwrap();
    let keys: Vec<String> = server.command(&["KEYS", "*"]);
    assert_eq!(keys, [token_key(&name("a"))]);
}
