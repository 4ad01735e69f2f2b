//! Tests claims that are made and ended without a script.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::join_all;
use quorlock::redis::{ByteStream, Connect, Connecting, Endpoint, Network, RedisConfig};
use quorlock::{Lock, Locks};
use quorlock_core::fencing::Token;
use quorlock_core::message::{Acquire, AcquireReply, Mode, ReleaseReply, Ttl};
use quorlock_core::name::Name;
use quorlock_core::transport::{Cause, Execution};
use quorlock_redis::RedisTransport;
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::wait_until;
use quorlock_tests::requests::{RETENTION, acquire, ask, name, owner, release, take, wall_clock};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::errors::limit_user;

server_tests![
    a_free_name_is_taken_and_freed_without_a_script,
    a_name_that_was_taken_is_asked_for_by_scripts,
    a_token_that_was_not_seen_here_is_by_the_clock,
    a_waiter_of_the_fair_lock_is_not_overtaken,
    of_names_that_are_taken_together_one_has_waiters_of_the_fair_lock,
    a_counter_that_was_lost_is_found_out,
    a_counter_that_was_lost_gets_a_time_also_if_the_name_is_taken,
    a_counter_that_is_no_number_is_told,
    CHANNELS: a_command_that_the_user_may_not_use_is_tried_once,
    ERROR_COUNTS: a_server_without_the_commands_gets_scripts,
    a_connection_that_breaks_behind_any_command_leaves_nothing,
    a_majority_takes_and_frees_a_name_without_scripts,
    a_process_that_is_not_trusted_is_asked_by_the_script,
];

const NAME: &str = "orders/42";
/// How often a name is taken.
const HOLDS: u64 = 40;
const COUNTER: &str = "redisson_lock_token:{orders/42}";
const QUEUE: &str = "redisson_lock_queue:{orders/42}";

/// A new connection is taken for an old one.
fn config() -> RedisConfig {
    RedisConfig::default().youngest(Duration::ZERO)
}

fn open(server: &Server) -> RedisTransport {
    RedisTransport::open(&server.address(), config()).unwrap()
}

/// An acquire by a client that has seen this token.
fn after(name: &Name, number: u64, seen: Token) -> Acquire {
    Acquire {
        after: Some(seen),
        ..acquire(name, number)
    }
}

/// Takes the name after a token, and returns the next one.
async fn take_after(transport: &RedisTransport, name: &Name, number: u64, seen: Token) -> Token {
    match ask(transport, after(name, number, seen)).await {
        Ok(AcquireReply::Granted { token, .. }) => token,
        other => panic!("{other:?}"),
    }
}

/// Returns how often the server has executed a command, or refused to.
fn calls(server: &Server, command: &str) -> u64 {
    let stats: String = server.command(&["INFO", "commandstats"]);
    let line = stats
        .lines()
        .find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:")));
    let number = |key: &str| -> u64 {
        let found = line.and_then(|line| line.split(',').find_map(|part| part.strip_prefix(key)));
        found.map_or(0, |number| number.parse().unwrap())
    };
    number("calls=") + number("rejected_calls=")
}

/// Returns how often the server has executed a command and a script since they were counted last.
struct Counted<'a> {
    server: &'a Server,
    commands: [&'static str; 2],
    before: [u64; 2],
}

impl<'a> Counted<'a> {
    fn of(server: &'a Server, command: &'static str) -> Self {
        let commands = [command, "evalsha"];
        let before = commands.map(|command| calls(server, command));
        Counted {
            server,
            commands,
            before,
        }
    }

    fn further(&mut self) -> [u64; 2] {
        let now = self.commands.map(|command| calls(self.server, command));
        let before = std::mem::replace(&mut self.before, now);
        [now[0] - before[0], now[1] - before[1]]
    }
}

async fn a_free_name_is_taken_and_freed_without_a_script() {
    let server = Server::start();
    let (transport, name) = (open(&server), name(NAME));
    let mut taken = Counted::of(&server, "restore");
    let mut last = take(&transport, &name, 1).await;
    assert_eq!(taken.further(), [0, 1], "the first one");
    let mut freed = Counted::of(&server, "hdel");
    assert_eq!(
        release(&transport, &name, 1, 0).await,
        Ok(ReleaseReply::FREED)
    );
    assert_eq!(freed.further(), [1, 0]);
    // A server before version 7 refuses the first form of a claim.
    last = take_after(&transport, &name, 5, last).await;
    release(&transport, &name, 5, 0).await.unwrap();
    for number in 2..5 {
        taken.further();
        let token = take_after(&transport, &name, number, last).await;
        assert_eq!(taken.further(), [1, 0]);
        assert_eq!(token.0, last.0 + 1);
        last = token;
        let fields: Vec<(String, String)> = server.command(&["HGETALL", NAME]);
        assert_eq!(fields, [(owner(number).to_string(), "1".to_owned())]);
        let left: u64 = server.command(&["PTTL", NAME]);
        assert!((20_000..=30_000).contains(&left), "{left}");
        assert_eq!(server.command::<u64>(&["GET", COUNTER]), token.0);
        let freed = release(&transport, &name, number, 0).await;
        assert_eq!(freed, Ok(ReleaseReply::FREED));
        assert_eq!(server.command::<u32>(&["EXISTS", NAME]), 0);
        let again = release(&transport, &name, number, 0).await;
        assert_eq!(again, Ok(ReleaseReply::NotYours));
    }
    let kept: u128 = server.command(&["PTTL", COUNTER]);
    assert!(RETENTION.as_millis() - 60_000 < kept, "{kept}");
}

async fn a_name_that_was_taken_is_asked_for_by_scripts() {
    let server = Server::start();
    let (one, other, name) = (open(&server), open(&server), name(NAME));
    let seen = take(&one, &name, 1).await;
    release(&one, &name, 1, 0).await.unwrap();
    take(&other, &name, 2).await;
    let mut counted = Counted::of(&server, "restore");
    let refused = ask(&one, after(&name, 3, seen)).await.unwrap();
    assert!(
        matches!(refused, AcquireReply::Refused { ttl: Ttl::Millis(left), .. } if 20_000 < left),
        "{refused:?}"
    );
    assert_eq!(counted.further(), [1, 1], "one try, and the script");
    let refused = ask(&one, after(&name, 4, seen)).await.unwrap();
    assert!(
        matches!(refused, AcquireReply::Refused { .. }),
        "{refused:?}"
    );
    assert_eq!(counted.further(), [0, 1]);
    release(&other, &name, 2, 0).await.unwrap();
    let next = take_after(&one, &name, 5, seen).await;
    assert_eq!(counted.further()[0], 0, "it was taken lately");
    assert!(seen < next);
}

async fn a_token_that_was_not_seen_here_is_by_the_clock() {
    let server = Server::start();
    let (transport, name) = (open(&server), name(NAME));
    let mut last = take(&transport, &name, 1).await;
    release(&transport, &name, 1, 0).await.unwrap();
    for (number, behind) in [(2, 0), (3, 1), (4, 1_000)] {
        let next = take_after(&transport, &name, number, Token(last.0 - behind)).await;
        assert_eq!(next.0, last.0 + 1);
        release(&transport, &name, number, 0).await.unwrap();
        last = next;
    }
    let clock = wall_clock();
    let next = take_after(&transport, &name, 5, Token(last.0 + 1)).await;
    assert!(clock.0 <= next.0 && last < next, "{clock:?} {next:?}");
}

async fn of_names_that_are_taken_together_one_has_waiters_of_the_fair_lock() {
    let server = Server::start();
    let transport = open(&server);
    let names = ["a", "b", "c", "d"].map(name);
    let mut seen = Vec::new();
    for name in &names {
        seen.push(take(&transport, name, 1).await);
        release(&transport, name, 1, 0).await.unwrap();
    }
    server.command::<()>(&["RPUSH", "redisson_lock_queue:{b}", "jvm:1"]);
    server.command::<()>(&["ZADD", "redisson_lock_timeout:{b}", "9e12", "jvm:1"]);
    let mut taken = Counted::of(&server, "restore");
    let mut checked = Counted::of(&server, "exists");
    let asked = names.iter().zip(seen);
    let asked = asked.map(|(name, seen)| ask(&transport, after(name, 2, seen)));
    let replies = join_all(asked).await;
    assert_eq!(taken.further()[0], 4, "no script was needed before");
    // One for all, one for each, and two of the script that ends the claim on one of them.
    assert_eq!(checked.further()[0], 7);
    for (name, reply) in names.iter().zip(replies) {
        let text = String::from_utf8_lossy(name.as_bytes()).into_owned();
        let is_claimed = server.command::<u32>(&["EXISTS", &text]) == 1;
        match &*text {
            "b" => assert_eq!(reply, Ok(AcquireReply::OtherMode(Mode::Fair))),
            _ => assert!(
                matches!(reply, Ok(AcquireReply::Granted { .. })),
                "{reply:?}"
            ),
        }
        assert_eq!(is_claimed, text != "b");
    }
}

async fn a_waiter_of_the_fair_lock_is_not_overtaken() {
    let server = Server::start();
    let (transport, name) = (open(&server), name(NAME));
    let seen = take(&transport, &name, 1).await;
    release(&transport, &name, 1, 0).await.unwrap();
    server.command::<()>(&["RPUSH", QUEUE, "jvm:1"]);
    server.command::<()>(&["ZADD", "redisson_lock_timeout:{orders/42}", "9e12", "jvm:1"]);
    let mut counted = Counted::of(&server, "restore");
    let refused = ask(&transport, after(&name, 2, seen)).await;
    assert_eq!(refused, Ok(AcquireReply::OtherMode(Mode::Fair)));
    assert_eq!(counted.further()[0], 1);
    assert_eq!(server.command::<u32>(&["EXISTS", NAME]), 0);
    assert_eq!(server.command::<u32>(&["LLEN", QUEUE]), 1);
}

async fn a_counter_that_was_lost_is_found_out() {
    let server = Server::start();
    let (transport, name) = (open(&server), name(NAME));
    for number in [1, 3, 5] {
        let last = take(&transport, &name, number).await;
        release(&transport, &name, number, 0).await.unwrap();
        server.command::<()>(&["FLUSHALL"]);
        let mut counted = Counted::of(&server, "restore");
        let token = take_after(&transport, &name, number + 1, last).await;
        assert_eq!(counted.further()[0], 1, "it was tried without the script");
        assert!(last < token, "{last:?} < {token:?}");
        assert_eq!(server.command::<u64>(&["GET", COUNTER]), token.0);
        let kept: i64 = server.command(&["PTTL", COUNTER]);
        assert!(0 < kept, "{kept}");
        release(&transport, &name, number + 1, 0).await.unwrap();
    }
}

async fn a_counter_that_was_lost_gets_a_time_also_if_the_name_is_taken() {
    let server = Server::start();
    let (one, other, name) = (open(&server), open(&server), name(NAME));
    let seen = take(&one, &name, 1).await;
    release(&one, &name, 1, 0).await.unwrap();
    take(&other, &name, 2).await;
    server.command::<()>(&["DEL", COUNTER]);
    let refused = ask(&one, after(&name, 3, seen)).await.unwrap();
    assert!(
        matches!(refused, AcquireReply::Refused { .. }),
        "{refused:?}"
    );
    assert_eq!(server.command::<u64>(&["GET", COUNTER]), 1);
    let kept: i64 = server.command(&["PTTL", COUNTER]);
    assert!(0 < kept, "{kept}");
}

async fn a_counter_that_is_no_number_is_told() {
    let server = Server::start();
    let (transport, name) = (open(&server), name(NAME));
    let seen = take(&transport, &name, 1).await;
    release(&transport, &name, 1, 0).await.unwrap();
    server.command::<()>(&["SET", COUNTER, "not a number"]);
    let first = ask(&transport, after(&name, 2, seen)).await;
    assert_eq!(first.unwrap_err().cause, Cause::Server);
    assert_eq!(server.command::<u32>(&["EXISTS", NAME]), 0);
    let error = ask(&transport, acquire(&name, 3)).await.unwrap_err();
    assert_eq!(error.cause, Cause::WrongType, "{error}");
}

async fn a_command_that_the_user_may_not_use_is_tried_once() {
    for command in ["restore", "incr", "hdel"] {
        let server = Server::start();
        let denied = format!("-{command}");
        limit_user(&server, &["~*", "&*", "+@all", &denied]);
        let user = server
            .address()
            .replace("redis://", "redis://limited:correct@");
        let transport = RedisTransport::open(&user, config()).unwrap();
        let name = name(NAME);
        let mut tokens = Vec::new();
        let mut errors = 0;
        for number in 1..6 {
            let seen = Token(tokens.last().copied().unwrap_or(1));
            match ask(&transport, after(&name, number, seen)).await {
                Ok(AcquireReply::Granted { token, .. }) => tokens.push(token.0),
                Ok(other) => panic!("{other:?}"),
                // A user who may make a claim and not draw its token cannot keep it.
                Err(error) => {
                    assert_eq!(error.execution, Execution::Indeterminate, "{error}");
                    errors += 1;
                    continue;
                }
            }
            let freed = release(&transport, &name, number, 0).await;
            assert_eq!(freed, Ok(ReleaseReply::FREED), "{command}");
        }
        assert_eq!(errors, u32::from(command == "incr"));
        assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:?}");
        assert_eq!(calls(&server, command), 1, "{command}");
        assert_eq!(server.command::<u32>(&["EXISTS", NAME]), 0);
    }
}

async fn a_server_without_the_commands_gets_scripts() {
    for command in ["RESTORE", "INCR", "HDEL"] {
        let server = Server::start_with(&["--rename-command", command, ""]);
        let (transport, name) = (open(&server), name(NAME));
        let mut granted = 0;
        let errors = || -> u32 {
            let stats: String = server.command(&["INFO", "errorstats"]);
            let count = stats.split("errorstat_ERR:count=").nth(1).unwrap_or("0");
            count.trim().parse().unwrap()
        };
        let seen = take(&transport, &name, 1).await;
        let before = errors();
        for number in 1..6 {
            if number == 1 || ask(&transport, after(&name, number, seen)).await.is_ok() {
                let freed = release(&transport, &name, number, 0).await;
                assert_eq!(freed, Ok(ReleaseReply::FREED), "{command}");
                granted += 1;
            }
        }
        assert_eq!(granted, 5 - u32::from(command == "INCR"));
        assert_eq!(errors() - before, 1, "{command} is tried once");
    }
}

/// A network that breaks a connection at the next pipeline, behind this number of its commands.
#[derive(Clone, Debug, Default)]
struct Cutting(Arc<Mutex<Option<Cut>>>);

/// Where a pipeline is cut: before one of these texts.
type Cut = &'static str;

impl Cutting {
    fn cut_before(&self, text: Cut) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    }
}

impl Connect for Cutting {
    fn connect(&self, to: &Endpoint) -> Connecting {
        let (stream, cut) = (Network.connect(to), self.0.clone());
        Box::pin(async {
            let stream = stream.await?;
            let stream: Box<dyn ByteStream> = Box::new(CutStream {
                stream,
                cut,
                is_cut: false,
            });
            Ok(stream)
        })
    }
}

struct CutStream {
    stream: Box<dyn ByteStream>,
    cut: Arc<Mutex<Option<Cut>>>,
    is_cut: bool,
}

impl AsyncRead for CutStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // Replies that were sent before the cut are lost.
        if self.is_cut {
            return Poll::Pending;
        }
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for CutStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_cut {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let before = {
            let mut cut = self.cut.lock().unwrap_or_else(PoisonError::into_inner);
            let found = cut.and_then(|text| {
                let at = buf
                    .windows(text.len())
                    .position(|part| part == text.as_bytes());
                at.map(|at| buf[..at].iter().rposition(|byte| *byte == b'*').unwrap())
            });
            if found.is_some() {
                *cut = None;
            }
            found
        };
        match before {
            None => Pin::new(&mut self.stream).poll_write(cx, buf),
            Some(0) => {
                self.is_cut = true;
                Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
            }
            Some(before) => {
                let written = Pin::new(&mut self.stream).poll_write(cx, &buf[..before]);
                self.is_cut = written.is_ready();
                written
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// The caller gets the name in the end, and no other claim is left.
async fn a_connection_that_breaks_behind_any_command_leaves_nothing() {
    let server = Server::start();
    let network = Cutting::default();
    let config = config().network(network.clone());
    let mut last = 0;
    for cut in ["RESTORE", "EXISTS", "INCR", "HDEL", "PUBLISH"] {
        let locks = Locks::builder().redis(config.clone());
        let locks = locks.connect(server.address()).await.unwrap();
        let lock: Lock = locks.lock(NAME).wait(Duration::from_secs(30));
        lock.acquire().await.unwrap().release().await.unwrap();
        network.cut_before(cut);
        let is_cut = || network.0.lock().unwrap().is_none();
        // On a slow machine a second may pass, after which a script is used once.
        for _ in 0..100 {
            let guard = lock.acquire().await.unwrap();
            let token = guard.fencing_token().0;
            assert!(last < token, "{cut}");
            last = token;
            let fields: Vec<(String, String)> = server.command(&["HGETALL", NAME]);
            assert_eq!(fields, [(guard.owner_id().to_string(), "1".to_owned())]);
            // Its release may be cut, and is then repeated.
            drop(guard.release().await);
            if is_cut() {
                break;
            }
        }
        assert!(is_cut(), "{cut} was not sent");
        let guard = lock.acquire().await.unwrap();
        assert!(last < guard.fencing_token().0, "{cut}");
        last = guard.fencing_token().0;
        guard.release().await.unwrap();
        assert_eq!(server.command::<u32>(&["EXISTS", NAME]), 0, "{cut}");
    }
}

/// The nodes of a majority agree on each token, so that the holder proposes none.
async fn a_majority_takes_and_frees_a_name_without_scripts() {
    let servers = [Server::start(), Server::start(), Server::start()];
    let addresses = servers.each_ref().map(Server::address);
    let locks = Locks::builder().trust_fresh_nodes();
    let locks = locks.quorum(addresses).await.unwrap();
    let mut tokens = Vec::new();
    for _ in 0..HOLDS {
        let guard = locks.lock(NAME).acquire().await.unwrap();
        tokens.push(guard.fencing_token().0);
        guard.release().await.unwrap();
    }
    locks.close().await;
    assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:?}");
    let counts = |server: &Server| {
        ["exec", "restore", "hdel", "hmget"].map(|command| calls(server, command))
    };
    let all = servers.each_ref().map(|server| {
        // The last requests to the slowest server may still be on their way.
        let is_over = || counts(server)[0] == counts(server)[1];
        wait_until("each transaction is over", is_over);
        counts(server)
    });
    // A script looks at the claim with each release. Once a second one is used, and for a second on a server that is late: the name is
    // asked for again before it is free there.
    let half = HOLDS / 2;
    let has_none =
        |[_, restore, hdel, hmget]: &[u64; 4]| half < *restore && half < *hdel && *hmget < half;
    assert!(all.iter().any(has_none), "{all:?} {tokens:?}");
}

/// The script says what the client must know of a server that is not the process that it trusts.
async fn a_process_that_is_not_trusted_is_asked_by_the_script() {
    let servers = [Server::start(), Server::start(), Server::start()];
    let addresses = servers.each_ref().map(Server::address);
    let locks = Locks::builder().trust_fresh_nodes();
    let locks = locks.quorum(addresses).await.unwrap();
    let lock = locks.lock(NAME).wait(Duration::from_secs(30));
    for _ in 0..3 {
        lock.acquire().await.unwrap().release().await.unwrap();
    }
    // It has forgotten everything, its marker included.
    servers[0].command::<()>(&["FLUSHALL"]);
    let guard = lock.acquire().await.unwrap();
    wait_until("it has a marker again", || {
        servers[0].command::<u32>(&["EXISTS", "quorlock_marker"]) == 1
    });
    let others = servers[1..].iter();
    let claimed = others.map(|server| server.command::<u32>(&["EXISTS", NAME]));
    assert_eq!(claimed.sum::<u32>(), 2, "the majority");
    guard.release().await.unwrap();
    wait_until("it is free everywhere", || {
        let mut all = servers.iter();
        all.all(|server| server.command::<u32>(&["EXISTS", NAME]) == 0)
    });
    locks.close().await;
}
