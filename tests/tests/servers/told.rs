//! Tests that errors tell what a server said, and what a user lacks, with the rule that grants it.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quorlock::redis::{RedisConfig, RedisTransport};
use quorlock::transport::Cause;
use quorlock::{AcquireError, Guard, Lock, Locks, LocksBuilder};
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::{BOUND, until};
use quorlock_tests::clients::settings;
use quorlock_tests::requests::{acquire, ask, name, release};

server_tests![
    CHANNELS: a_name_that_cannot_be_published_to_becomes_free,
    CHANNELS: a_server_without_publish_frees_names,
    CHANNELS: the_first_acquire_names_the_channel,
    USERS: what_a_user_lacks_is_told_with_the_rule_that_grants_it,
    USERS: the_keys_of_a_name_that_do_not_begin_with_the_prefix_are_named,
    a_command_that_scripts_lack_is_permanent_and_named,
    a_server_with_too_many_clients_says_so,
    what_a_server_says_before_it_closes_comes_first,
    USERS: a_refused_login_is_told_in_the_words_of_the_server,
    a_paused_clock_is_told_as_such,
];

const SECRET: &str = "s3cret-of-jobs";

/// Makes the user with these rules alone.
fn allow(server: &Server, rules: &[&str]) {
    let password = format!(">{SECRET}");
    let user = [
        "ACL",
        "SETUSER",
        "jobs",
        "reset",
        "resetchannels",
        "on",
        &password,
    ];
    server.command::<()>(&[&user[..], rules].concat());
}

fn address(server: &Server) -> String {
    let user = format!("redis://jobs:{SECRET}@");
    server.address().replace("redis://", &user)
}

/// The kinds of locks of one client.
fn kinds(locks: &Locks) -> [Lock; 4] {
    let name = "orders/42";
    [
        locks.lock(name),
        locks.fair(name),
        locks.read(name),
        locks.write(name),
    ]
}

async fn a_name_that_cannot_be_published_to_becomes_free() {
    let server = Server::start();
    allow(&server, &["~*", "+@all"]);
    let locks = settings().connect(address(&server)).await.unwrap();
    let other = settings().connect(address(&server)).await.unwrap();
    let is_there = || server.command::<u32>(&["EXISTS", "orders/42"]) == 1;
    for (lock, again) in kinds(&locks).into_iter().zip(kinds(&other)) {
        let guard = lock.acquire().await.unwrap();
        assert!(is_there());
        let waiter = again.clone().wait(BOUND);
        let waiting = tokio::spawn(async move { waiter.acquire().await });
        guard.release().await.unwrap();
        // The waiter is not woken: it asks again by itself.
        waiting.await.unwrap().unwrap().release().await.unwrap();
        assert!(!is_there());
        lock.acquire().await.unwrap().leak();
        other.force_release("orders/42").await.unwrap();
        assert!(!is_there());
        server.command::<()>(&["FLUSHALL"]);
    }
}

async fn a_server_without_publish_frees_names() {
    let server = Server::start_with(&["--rename-command", "PUBLISH", ""]);
    let said = Said::default();
    let locks = said
        .hear(settings())
        .connect(server.address())
        .await
        .unwrap();
    locks
        .lock("a")
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    assert_eq!(server.command::<u32>(&["EXISTS", "a"]), 0);
    let words = said.words();
    assert!(
        matches!(&words[..], [one] if one.contains("the server has no command PUBLISH")),
        "{words:?}"
    );
}

/// What was said about doubts.
#[derive(Clone, Default)]
struct Said(Arc<Mutex<Vec<String>>>);

impl Said {
    fn hear(&self, builder: LocksBuilder) -> LocksBuilder {
        let said = Arc::clone(&self.0);
        builder.on_doubt(move |_, doubt| said.lock().unwrap().push(doubt.to_string()))
    }

    fn words(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

async fn the_first_acquire_names_the_channel() {
    let server = Server::start();
    for (rules, prefix, rule) in [
        (&[][..], "", Some("&redisson_lock__channel:*")),
        (&[], "app:", Some("&redisson_lock__channel:{app:*")),
        (&["&redisson_lock__channel:{app:*"], "app:", None),
        (&["&*", "-publish"], "", Some("+publish")),
    ] {
        allow(&server, &[&["~*", "+@all"][..], rules].concat());
        let said = Said::default();
        let builder = said.hear(settings().key_prefix(prefix));
        let locks = builder.connect(address(&server)).await.unwrap();
        let guard = locks.lock("a").acquire().await.unwrap();
        let Some(rule) = rule else {
            guard.release().await.unwrap();
            assert_eq!(said.words(), Vec::<String>::new(), "{rules:?}");
            continue;
        };
        let can_ask =
            server.try_command::<i64>(&["EVAL", "return redis.acl_check_cmd and 1 or 0", "0"]);
        if can_ask == Ok(1) {
            until("the acquire says it", || !said.words().is_empty()).await;
        }
        guard.release().await.unwrap();
        locks
            .lock("a")
            .acquire()
            .await
            .unwrap()
            .release()
            .await
            .unwrap();
        let words = said.words();
        let expected = format!("ACL SETUSER jobs {rule}");
        assert!(
            matches!(&words[..], [once] if once.contains(&expected)),
            "{rules:?}: {words:?}"
        );
    }
}

/// Returns the rule in an error, and checks that the error shows no password.
fn cure(error: &str) -> Vec<String> {
    assert!(!error.contains(SECRET), "{error}");
    let (_, rule) = error
        .split_once("ACL SETUSER jobs ")
        .unwrap_or_else(|| panic!("no rule: {error}"));
    let is_rule = |word: &&str| word.starts_with(['~', '&', '+']);
    let words = rule.split_whitespace().take_while(is_rule);
    let words = words.map(|word| word.trim_end_matches([';', ',']).to_owned());
    words.collect()
}

/// Takes one right away after another, and applies the rules in the errors until the lock works.
async fn what_a_user_lacks_is_told_with_the_rule_that_grants_it() {
    let server = Server::start();
    let plain = [
        "~orders/*",
        "~redisson_lock_token:*",
        "~redisson_lock_queue:*",
        "&*",
        "+evalsha",
        "+eval",
        "+script|load",
        "+info",
        "+exists",
        "+pttl",
        "+hmget",
        "+hset",
        "+pexpire",
        "+get",
        "+set",
        "+del",
        "+time",
        "+publish",
    ];
    let fair = [
        "~redisson_lock_timeout:*",
        "~quorlock_lock_alive:*",
        "+lindex",
        "+rpush",
        "+lpop",
        "+lrem",
        "+zadd",
        "+zscore",
        "+zrem",
        "+persist",
    ];
    let shared = ["~{orders/*", "+hscan", "+hdel"];
    for (extra, at) in [(&[][..], 0), (&fair, 1), (&shared, 2), (&shared, 3)] {
        let all = [&plain[..], extra].concat();
        for right in &all {
            let rest: Vec<&str> = all.iter().copied().filter(|other| other != right).collect();
            allow(&server, &rest);
            server.command::<()>(&["FLUSHALL"]);
            let builder = settings().key_prefix("orders/");
            let mut cures = 0;
            loop {
                let locks = builder.clone().connect(address(&server)).await.unwrap();
                let Some(error) = use_once(&kinds(&locks)[at]).await else {
                    break;
                };
                let rule = cure(&error);
                let rule: Vec<&str> = rule.iter().map(String::as_str).collect();
                let user = ["ACL", "SETUSER", "jobs"];
                server.command::<()>(&[&user[..], &rule].concat());
                cures += 1;
                assert!(cures < 4, "{right}, {at}: {error}");
                server.command::<()>(&["FLUSHALL"]);
            }
        }
    }
}

/// Holds, extends and releases the lock. Returns the error.
async fn use_once(lock: &Lock) -> Option<String> {
    let lock = lock.clone().wait(BOUND);
    let guard: Guard = match lock.acquire().await {
        Ok(guard) => guard,
        Err(error) => {
            let is_permanent = matches!(error, AcquireError::Refused { .. });
            assert!(is_permanent, "it waits for nothing: {error}");
            return Some(error.to_string());
        }
    };
    if let Err(error) = guard.extend(Duration::from_secs(40)).await {
        return Some(error.to_string());
    }
    let released = guard.release().await;
    released.err().map(|error| error.to_string())
}

async fn the_keys_of_a_name_that_do_not_begin_with_the_prefix_are_named() {
    let server = Server::start();
    allow(&server, &["~tenant:*", "&*", "+@all"]);
    let builder = settings().key_prefix("tenant:");
    let locks = builder.connect(address(&server)).await.unwrap();
    let error = locks.lock("job").try_acquire().await.unwrap_err();
    let text = error.to_string();
    for words in [
        "redisson_lock_token:{tenant:job}",
        "redisson_lock_queue:{tenant:job}",
        "which do not begin with the prefix tenant:",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let rule = cure(&text);
    let rule: Vec<&str> = rule.iter().map(String::as_str).collect();
    server.command::<()>(&[&["ACL", "SETUSER", "jobs"][..], &rule].concat());
    let guard = locks.lock("job").acquire().await.unwrap();
    guard.release().await.unwrap();
}

async fn a_command_that_scripts_lack_is_permanent_and_named() {
    for verb in ["EVALSHA", "HSET", "PEXPIRE", "TIME", "HMGET", "DEL"] {
        let server = Server::start_with(&["--rename-command", verb, ""]);
        let config = RedisConfig::default().only_scripts(true);
        let transport = RedisTransport::open(&server.address(), config).unwrap();
        let name = name("orders/42");
        let mut error = ask(&transport, acquire(&name, 1)).await.err();
        if error.is_none() {
            error = release(&transport, &name, 1, 0).await.err();
        }
        let error = error.unwrap_or_else(|| panic!("{verb} is not needed"));
        assert_eq!(error.cause, Cause::Unsupported, "{error}");
        let words = format!("the server has no command {verb}:");
        assert!(error.to_string().contains(&words), "{error}");
        if !matches!(verb, "HMGET" | "DEL") {
            let locks = settings().connect(server.address()).await.unwrap();
            let refused = locks.lock("a").acquire().await.unwrap_err();
            assert!(matches!(refused, AcquireError::Refused { .. }), "{refused}");
        }
    }
}

async fn a_server_with_too_many_clients_says_so() {
    let server = Server::start();
    server.command::<()>(&["CONFIG", "SET", "maxclients", "1"]);
    for login in ["", ":s3cret@", "jobs:s3cret@"] {
        let address = server
            .address()
            .replace("redis://", &format!("redis://{login}"));
        let error = settings().connect(address).await.unwrap_err().to_string();
        assert_first(&error, "the server says: ERR max number of clients reached");
    }
    let address = server.address().replace("redis://", "rediss://");
    let error = settings().connect(address).await.unwrap_err().to_string();
    assert_first(&error, "the server says: ERR max number of clients reached");
}

/// Checks that the error begins with these words, after the number of nodes and the address.
#[track_caller]
fn assert_first(error: &str, words: &str) {
    let at = error
        .find(words)
        .unwrap_or_else(|| panic!("{words}: {error}"));
    let before = error.get(..at).unwrap();
    assert!(before.ends_with("0: "), "{error}");
}

/// How a listener treats its clients.
#[derive(Clone, Copy)]
enum Door {
    /// Closes the connection directly after its words.
    Closes,
    /// Leaves the connection open.
    StaysOpen,
}

/// Says a line to every client, as a server does that turns clients away. Returns the port.
fn listen(line: &'static str, door: Door) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut open: Vec<TcpStream> = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.write_all(line.as_bytes());
            if matches!(door, Door::StaysOpen) {
                open.push(stream);
            }
        }
    });
    port
}

async fn what_a_server_says_before_it_closes_comes_first() {
    const DENIED: &str = "DENIED Redis is running in protected mode because ...";
    for (line, words, doors) in [
        (
            "-DENIED Redis is running in protected mode because ...\r\n",
            DENIED,
            &[Door::Closes, Door::StaysOpen][..],
        ),
        (
            "-ERR this proxy has no more room\r\n",
            "ERR this proxy has no more room",
            &[Door::Closes],
        ),
    ] {
        for door in doors {
            for (scheme, login) in [("redis", ""), ("redis", ":s3cret@"), ("rediss", "")] {
                let port = listen(line, *door);
                let address = format!("{scheme}://{login}127.0.0.1:{port}/");
                let error = settings().connect(address).await.unwrap_err().to_string();
                let is_login = !login.is_empty() && words != DENIED;
                let words = format!(
                    "{}{words}",
                    if is_login {
                        "login: "
                    } else {
                        "the server says: "
                    }
                );
                assert!(error.contains(&words), "{scheme} {login}: {error}");
                if !is_login {
                    assert_first(&error, &words);
                }
                assert!(!error.contains("s3cret"), "{error}");
            }
        }
    }
}

async fn a_refused_login_is_told_in_the_words_of_the_server() {
    let server = Server::start();
    let with = |login: &str| {
        server
            .address()
            .replace("redis://", &format!("redis://{login}"))
    };
    let error = settings().connect(with("jobs:wr0ng@")).await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("the server refused the login: WRONGPASS "),
        "{text}"
    );
    assert!(!text.contains("wr0ng"), "{text}");
    let error = settings().connect(with(":wr0ng@")).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("without any password configured"), "{text}");
    assert!(!text.contains("wr0ng"), "{text}");
}

/// The runtime of this test has a clock of its own.
async fn a_paused_clock_is_told_as_such() {
    let server = Server::start();
    let address = server.address();
    // A server that is suspended does not answer before the clock jumps.
    server.pause();
    let error = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        let connected = runtime.block_on(settings().connect(address));
        connected.unwrap_err().to_string()
    });
    let error = error.join().unwrap();
    server.resume();
    assert!(error.contains("tokio's clock is paused"), "{error}");
    assert!(error.contains("embedded nodes"), "{error}");
}
