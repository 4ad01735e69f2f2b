//! Tests keys that are in the way: locks of other modes and of other programs, and keys that are not locks. An error
//! names them, and only a forced release frees a name.
use std::time::{Duration, Instant};

use quorlock::operate::{ForceReleaseError, Found, Summary};
use quorlock::transport::Cause;
use quorlock::{AcquireError, Mode};
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_tests::requests::name;
use quorlock_tests::wire::{acquire_as_jvm, token_key};

use super::bad_input::settings;

server_tests![
    a_key_of_another_type_is_named_and_stays,
    a_lock_of_another_mode_is_named_and_freed_by_force_only,
    what_looks_almost_like_a_lock_is_not_freed_by_force,
    a_lock_of_a_stranger_is_shown_and_freed_by_force,
    no_count_that_another_program_writes_holds_up_the_server,
    no_count_in_the_field_of_a_holder_keeps_it_from_its_release,
    dead_readers_with_many_holds_delay_nothing,
    a_queue_behind_a_dead_waiter_of_a_jvm_is_shown_and_moved_on_by_force,
    a_queue_whose_times_were_evicted_blocks_no_waiter,
];

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

/// Counts that another program may have written, as a reader's or as a writer's. No script counts up to one of them.
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

/// Requests that return within this time were not delayed: a script that counts to one of these numbers takes hours.
const SOON: Duration = quorlock_testbed::wait::BOUND;

/// The key of the locks with strange counts.
const KEY: &str = "a";

async fn no_count_that_another_program_writes_holds_up_the_server() {
    let server = Server::start();
    let locks = settings().connect(server.address()).await.unwrap();
    let plant = |mode: &str, count: &str, lives: bool| {
        server.command::<()>(&["FLUSHALL"]);
        let (reader, writer) = ("0f:7", "0f:7:write");
        server.command::<()>(&["HSET", KEY, "mode", mode, reader, count]);
        if mode == "write" {
            server.command::<()>(&["HSET", KEY, writer, count]);
        }
        server.command::<()>(&["PEXPIRE", KEY, "30000"]);
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
                let inspection = locks.inspect(KEY).await.unwrap();
                assert!(inspection.nodes[0].found.is_ok(), "{inspection}");
                let written = locks.write(KEY).try_acquire().await.unwrap();
                let is_dead = mode == "read" && count == "1000" && !lives;
                assert_eq!(written.is_some(), is_dead, "{mode} {count}");
                drop(written);
                plant(mode, count, lives);
                let read = locks.read(KEY).try_acquire().await.unwrap();
                assert_eq!(read.is_some(), mode == "read", "{mode} {count}");
                if let Some(read) = read {
                    read.release().await.unwrap();
                }
                plant(mode, count, lives);
                let _ = locks.force_release(KEY).await;
                assert!(
                    began.elapsed() < SOON,
                    "{mode} {count}: {:?}",
                    began.elapsed()
                );
            }
        }
    }
}

/// The count is in a holder's own field. The holder renews, continues to read and releases.
async fn no_count_in_the_field_of_a_holder_keeps_it_from_its_release() {
    let server = Server::start();
    let locks = settings().connect(server.address()).await.unwrap();
    for count in COUNTS {
        for is_writer in [false, true] {
            let began = Instant::now();
            server.command::<()>(&["FLUSHALL"]);
            let owner = locks.owner();
            let writer = match is_writer {
                true => Some(owner.write(KEY).acquire().await.unwrap()),
                false => None,
            };
            let reader = owner.read(KEY).acquire().await.unwrap();
            let field = reader.owner_id().to_string();
            server.command::<()>(&["HSET", KEY, &field, count]);
            reader.extend(Duration::from_secs(35)).await.unwrap();
            server.command::<()>(&["HSET", KEY, &field, count]);
            let again = owner.read(KEY).acquire().await.unwrap();
            server.command::<()>(&["HSET", KEY, &field, count]);
            again.release().await.unwrap();
            server.command::<()>(&["HSET", KEY, &field, count]);
            if let Some(writer) = writer {
                writer.release().await.unwrap();
            }
            reader.release().await.unwrap();
            assert!(began.elapsed() < SOON, "{count}: {:?}", began.elapsed());
            let left: usize = server.command(&["EXISTS", KEY]);
            assert_eq!(left, 0, "{count}");
        }
    }
}

/// One count beyond every bound prevents no other reader's lease from being freed, and many dead readers with many holds
/// delay no request. The order of the readers in the hash is the server's.
async fn dead_readers_with_many_holds_delay_nothing() {
    let server = Server::start();
    let locks = settings().connect(server.address()).await.unwrap();
    server.command::<()>(&["HSET", KEY, "mode", "read", "00", "900000000000"]);
    let reader = locks.read(KEY).acquire().await.unwrap();
    let lease = format!("{{a}}:{}:rwlock_timeout:1", reader.owner_id());
    assert_eq!(server.command::<usize>(&["EXISTS", &lease]), 1);
    locks.force_release(KEY).await.unwrap();
    assert_eq!(server.command::<usize>(&["EXISTS", &lease]), 0);
    drop(reader);
    let fill = "for i = 1, 9000 do redis.call('HSET', KEYS[1], 'r' .. i, 1000) end redis.call('HSET', KEYS[1], 'mode', 'read')";
    server.command::<()>(&["FLUSHALL"]);
    server.command::<()>(&["EVAL", fill, "1", KEY]);
    server.command::<()>(&["PEXPIRE", KEY, "30000"]);
    let began = Instant::now();
    locks.inspect(KEY).await.unwrap();
    assert!(locks.write(KEY).try_acquire().await.unwrap().is_none());
    locks.force_release(KEY).await.unwrap();
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

/// A waiter of a JVM was notified and died. For five minutes, all other waiters are behind it.
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

/// A server at its memory limit evicted the keys that show until when each waiter counts as alive, and kept the queue.
async fn a_queue_whose_times_were_evicted_blocks_no_waiter() {
    let server = Server::start();
    let locks = settings().connect(server.address()).await.unwrap();
    server.command::<()>(&["RPUSH", "redisson_lock_queue:{a}", "0f:7", "1e:3"]);
    let guard = locks.fair("a").try_acquire().await.unwrap();
    guard.expect("no waiter is alive").release().await.unwrap();
    // A waiter that is alive keeps its place behind one whose time was evicted.
    let holder = locks.fair("a").acquire().await.unwrap();
    let waiting = locks.fair("a");
    let waiting = tokio::spawn(async move { waiting.acquire().await.unwrap() });
    while server.command::<usize>(&["LLEN", "redisson_lock_queue:{a}"]) < 1 {
        tokio::task::yield_now().await;
    }
    server.command::<()>(&["LPUSH", "redisson_lock_queue:{a}", "0f:7"]);
    holder.release().await.unwrap();
    let guard = tokio::time::timeout(Duration::from_secs(3), waiting).await;
    guard.unwrap().unwrap().release().await.unwrap();
    let keys: Vec<String> = server.command(&["KEYS", "*"]);
    assert_eq!(keys, [token_key(&name("a"))]);
}
