//! Tests the cause of every refusal of a server, and that nothing was executed.

use std::path::Path;

use futures_util::future::join_all;
use quorlock_core::message::{ReleaseReply, RenewReply};
use quorlock_core::name::Name;
use quorlock_core::transport::{Cause, Execution, TransportError};
use quorlock_redis::{RedisConfig, RedisTransport};
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::wait_until;
use quorlock_tests::polls::on_one_thread;
use quorlock_tests::requests::{acquire, ask, claim, name, release, renew, take};

server_tests![
    a_replica_is_named_as_such,
    a_full_server_takes_no_new_lock,
    a_full_server_renews_and_releases,
    a_server_busy_with_a_script_is_named_as_such,
    a_missing_password_is_named_as_such,
    USERS: a_wrong_password_is_named_as_such,
    USERS: a_password_that_is_asked_for_later_is_named_as_such,
    USERS: a_user_without_scripts_has_no_permission,
    USERS: a_user_without_the_key_has_no_permission,
    USERS: a_user_without_the_channel_frees_the_name,
    USERS: a_user_who_may_not_let_keys_expire_leaves_no_key_behind,
    USERS: of_several_acquires_in_one_call_each_is_refused_by_itself_and_leaves_no_key_behind,
    USERS: of_several_releases_in_one_call_all_free_their_names_whatever_may_be_published,
    a_key_that_is_no_lock_is_named_as_such,
    a_token_counter_that_is_no_number_is_named_as_such,
    a_server_that_cannot_save_is_named_as_such,
    SLOW_LOADING: a_loading_server_is_named_as_such,
    REPLICAS_FOR_SCRIPTS: a_server_without_its_replicas_is_named_as_such,
    BUS_PORTS: a_cluster_that_is_down_is_named_as_such,
    flushed_scripts_are_nobody_s_business,
];

fn open(server: &Server) -> RedisTransport {
    open_as(server, "")
}

/// Returns the address with credentials: `user:password@`.
fn open_as(server: &Server, credentials: &str) -> RedisTransport {
    open_with(server, credentials, RedisConfig::default())
}

fn open_with(server: &Server, credentials: &str, config: RedisConfig) -> RedisTransport {
    let address = server
        .address()
        .replace("redis://", &format!("redis://{credentials}"));
    RedisTransport::open(&address, config).unwrap()
}

/// Returns the error with which an acquisition fails. The acquisition must not have had any effect.
async fn definite(transport: &RedisTransport) -> Cause {
    let error = failure(transport).await;
    assert_eq!(error.execution, Execution::Definite, "{error:?}");
    error.cause
}

async fn failure(transport: &RedisTransport) -> TransportError {
    let asked = ask(transport, acquire(&name("orders/42"), 1)).await;
    asked.expect_err("the server must refuse")
}

fn assert_is_empty(server: &Server) {
    let keys: Vec<String> = server.command(&["KEYS", "*"]);
    assert_eq!(keys, Vec::<String>::new());
}

async fn a_replica_is_named_as_such() {
    let server = Server::start();
    let transport = open(&server);
    // The server is a replica of a primary that does not exist.
    server.command::<()>(&["REPLICAOF", "127.0.0.1", "1"]);
    assert_eq!(definite(&transport).await, Cause::ReadOnly);
    assert_is_empty(&server);
    server.command::<()>(&["REPLICAOF", "NO", "ONE"]);
    take(&transport, &name("orders/42"), 1).await;
}

async fn a_full_server_takes_no_new_lock() {
    let server = Server::start();
    let transport = open(&server);
    server.command::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
    assert_eq!(definite(&transport).await, Cause::OutOfMemory);
    assert_is_empty(&server);
    server.command::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
    take(&transport, &name("orders/42"), 1).await;
}

async fn a_full_server_renews_and_releases() {
    let server = Server::start();
    let (transport, name) = (open(&server), name("orders/42"));
    let token = take(&transport, &name, 1).await;
    server.command::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
    // This is the state after some time. Only then is there something to extend.
    server.command::<()>(&["PEXPIRE", "orders/42", "5000"]);
    let renewed = renew(&transport, vec![claim(&name, 1, token)]).await;
    assert_eq!(renewed, Ok(vec![RenewReply::AlreadyYours { token }]));
    let ttl: u64 = server.command(&["PTTL", "orders/42"]);
    assert!(5_000 < ttl, "{ttl}");
    let released = release(&transport, &name, 1, 0).await;
    assert_eq!(released, Ok(ReleaseReply::FREED));
}

async fn a_server_busy_with_a_script_is_named_as_such() {
    let server = Server::start_with(&["--lua-time-limit", "1"]);
    let transport = open(&server);
    take(&transport, &name("another"), 1).await;
    let mut looping = server.connect().unwrap();
    let script = redis::cmd("EVAL")
        .arg("while true do end")
        .arg(0)
        .get_packed_command();
    looping.send_packed_command(&script).unwrap();
    wait_until("the server is busy", || {
        let answer = server.try_command::<String>(&["PING"]);
        answer.is_err_and(|error| error.code() == Some("BUSY"))
    });
    assert_eq!(definite(&transport).await, Cause::Busy);
    server.command::<()>(&["SCRIPT", "KILL"]);
    wait_until("the server is free", || {
        server.try_command::<String>(&["PING"]).is_ok()
    });
    take(&transport, &name("orders/42"), 1).await;
}

async fn a_missing_password_is_named_as_such() {
    let server = Server::start();
    server.command::<()>(&["CONFIG", "SET", "requirepass", "correct"]);
    assert_eq!(definite(&open(&server)).await, Cause::NoAuth);
    take(&open_as(&server, ":correct@"), &name("orders/42"), 1).await;
}

async fn a_wrong_password_is_named_as_such() {
    let server = Server::start();
    server.command::<()>(&["CONFIG", "SET", "requirepass", "correct"]);
    assert_eq!(definite(&open_as(&server, ":wrong@")).await, Cause::NoAuth);
    let stranger = open_as(&server, "stranger:correct@");
    assert_eq!(definite(&stranger).await, Cause::NoAuth);
    take(&open_as(&server, "default:correct@"), &name("orders/42"), 1).await;
}

async fn a_password_that_is_asked_for_later_is_named_as_such() {
    let server = Server::start();
    let transport = open(&server);
    take(&transport, &name("another"), 1).await;
    server.command::<()>(&["CONFIG", "SET", "requirepass", "correct"]);
    // Existing connections stay logged in. This ends them, except the test's own.
    server.command::<u32>(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    wait_until("the connection is gone", || {
        let clients: String = server.command(&["CLIENT", "LIST"]);
        clients.lines().count() == 1
    });
    let mut error = failure(&transport).await;
    // The end of the connection may be noticed only during the first call, or just before it is sent.
    if matches!(error.cause, Cause::Closed | Cause::Unreachable) {
        error = failure(&transport).await;
    }
    assert_eq!(error.execution, Execution::Definite, "{error:?}");
    assert_eq!(error.cause, Cause::NoAuth, "{error:?}");
}

fn make_user(server: &Server, rules: &[&str]) -> RedisTransport {
    limit_user(server, rules);
    open_as(server, "limited:correct@")
}

/// Makes the user `limited`, whose password is `correct`, with these rules.
pub(crate) fn limit_user(server: &Server, rules: &[&str]) {
    let mut words = vec![
        "ACL",
        "SETUSER",
        "limited",
        "on",
        ">correct",
        "resetchannels",
    ];
    words.extend(rules);
    server.command::<()>(&words);
}

async fn a_user_without_scripts_has_no_permission() {
    let server = Server::start();
    let transport = make_user(&server, &["~*", "&*", "+@all", "-@scripting"]);
    assert_eq!(definite(&transport).await, Cause::NoPermission);
    assert_is_empty(&server);
}

async fn a_user_without_the_key_has_no_permission() {
    let server = Server::start();
    let transport = make_user(&server, &["~other", "&*", "+@all"]);
    assert_eq!(definite(&transport).await, Cause::NoPermission);
    assert_is_empty(&server);
}

async fn a_user_without_the_channel_frees_the_name() {
    let server = Server::start();
    let transport = make_user(&server, &["~*", "+@all"]);
    let name = name("orders/42");
    take(&transport, &name, 1).await;
    let released = release(&transport, &name, 1, 0).await;
    assert_eq!(released, Ok(ReleaseReply::FREED));
    assert_eq!(server.command::<u32>(&["EXISTS", "orders/42"]), 0);
}

async fn a_user_who_may_not_let_keys_expire_leaves_no_key_behind() {
    let server = Server::start();
    let transport = make_user(&server, &["~*", "&*", "+@all", "-pexpire"]);
    let error = failure(&transport).await;
    assert_eq!(error.cause, Cause::NoPermission, "{error:?}");
    assert_eq!(server.command::<u32>(&["EXISTS", "orders/42"]), 0);
}

/// Returns how many script calls the server has executed.
fn script_calls(server: &Server) -> u64 {
    let stats: String = server.command(&["INFO", "commandstats"]);
    let calls = stats.split("cmdstat_evalsha:calls=").nth(1);
    let calls = calls.and_then(|rest| rest.split(',').next());
    calls.map_or(0, |calls| calls.parse().unwrap())
}

async fn of_several_acquires_in_one_call_each_is_refused_by_itself_and_leaves_no_key_behind() {
    let server = Server::start();
    let names = several_names();
    on_one_thread(async || {
        let transport = make_user(&server, &["~*", "&*", "+@all", "-pexpire"]);
        failure(&transport).await;
        let before = script_calls(&server);
        let asked = names.iter().map(|name| ask(&transport, acquire(name, 1)));
        for answer in join_all(asked).await {
            let error = answer.unwrap_err();
            assert_eq!(error.cause, Cause::NoPermission, "{error:?}");
        }
        assert_eq!(script_calls(&server) - before, 1);
    });
    for name in &names {
        assert_eq!(server.command::<u32>(&["EXISTS", &name.text()]), 0);
    }
}

async fn of_several_releases_in_one_call_all_free_their_names_whatever_may_be_published() {
    let server = Server::start();
    let names = several_names();
    let answers = on_one_thread(async || {
        let channel = "&redisson_lock__channel:{orders/3}";
        limit_user(&server, &["~*", channel, "+@all"]);
        let scripts = RedisConfig::default().only_scripts(true);
        let transport = open_with(&server, "limited:correct@", scripts);
        let taken = names.iter().map(|name| take(&transport, name, 1));
        join_all(taken).await;
        let before = script_calls(&server);
        let released = names.iter().map(|name| release(&transport, name, 1, 0));
        let answers = join_all(released).await;
        assert_eq!(script_calls(&server) - before, 1);
        answers
    });
    for (k, answer) in answers.into_iter().enumerate() {
        let there: u32 = server.command(&["EXISTS", &names[k].text()]);
        assert_eq!((answer, there), (Ok(ReleaseReply::FREED), 0), "{k}");
    }
}

fn several_names() -> Vec<Name> {
    (0..8).map(|k| name(&format!("orders/{k}"))).collect()
}

async fn a_key_that_is_no_lock_is_named_as_such() {
    let server = Server::start();
    let (transport, name) = (open(&server), name("orders/42"));
    server.command::<()>(&["SET", "orders/42", "something else"]);
    assert_eq!(definite(&transport).await, Cause::WrongType);
    let error = release(&transport, &name, 1, 0).await.unwrap_err();
    assert_eq!(error.cause, Cause::WrongType);
    assert_eq!(error.execution, Execution::Definite);
    let value: String = server.command(&["GET", "orders/42"]);
    assert_eq!(value, "something else");
}

async fn a_token_counter_that_is_no_number_is_named_as_such() {
    let server = Server::start();
    let transport = open(&server);
    let key = "redisson_lock_token:{orders/42}";
    for text in ["not a number", "nan", "inf", "9007199254740993"] {
        server.command::<()>(&["SET", key, text]);
        assert_eq!(definite(&transport).await, Cause::WrongType, "{text}");
        assert_eq!(server.command::<u32>(&["EXISTS", "orders/42"]), 0);
    }
    server.command::<()>(&["DEL", key]);
    server.command::<()>(&["LPUSH", key, "1"]);
    assert_eq!(definite(&transport).await, Cause::WrongType);
    assert_eq!(server.command::<u32>(&["EXISTS", "orders/42"]), 0);
}

async fn a_server_that_cannot_save_is_named_as_such() {
    let server = Server::start_with(&["--save", "3600", "1"]);
    let transport = open(&server);
    let snapshot = server.dir().join("dump.rdb");
    fail_to_save(&server, &snapshot);
    assert_eq!(definite(&transport).await, Cause::Misconfigured);
    assert_is_empty(&server);
    std::fs::remove_dir(snapshot).unwrap();
    save(&server, "ok");
    take(&transport, &name("orders/42"), 1).await;
}

/// Puts a folder in the place of the snapshot file.
fn fail_to_save(server: &Server, snapshot: &Path) {
    std::fs::create_dir(snapshot).unwrap();
    save(server, "err");
}

fn save(server: &Server, status: &str) {
    server.command::<()>(&["BGSAVE"]);
    wait_until("the snapshot has ended", || {
        let info: String = server.command(&["INFO", "persistence"]);
        info.contains("rdb_bgsave_in_progress:0")
            && info.contains(&format!("rdb_last_bgsave_status:{status}"))
    });
}

async fn a_loading_server_is_named_as_such() {
    let server = Server::start();
    let fill = "for i = 1, 20000 do redis.call('set', 'key' .. i, 'value') end";
    server.command::<()>(&["EVAL", fill, "0"]);
    server.command::<()>(&["SAVE"]);
    // At a thousandth of a second for each key, loading would take twenty seconds.
    server.relaunch_with(&[
        "--key-load-delay",
        "1000",
        "--loading-process-events-interval-bytes",
        "1024",
    ]);
    assert_eq!(definite(&open(&server)).await, Cause::Loading);
    server.command::<()>(&["CONFIG", "SET", "key-load-delay", "0"]);
    server.wait_until_ready();
    take(&open(&server), &name("orders/42"), 1).await;
}

async fn a_server_without_its_replicas_is_named_as_such() {
    let server = Server::start();
    let transport = open(&server);
    server.command::<()>(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    assert_eq!(definite(&transport).await, Cause::NoReplicas);
    assert_is_empty(&server);
    server.command::<()>(&["CONFIG", "SET", "min-replicas-to-write", "0"]);
    take(&transport, &name("orders/42"), 1).await;
}

async fn a_cluster_that_is_down_is_named_as_such() {
    // The server serves no slot yet.
    let server = Server::start_in_cluster(&[]);
    assert_eq!(definite(&open(&server)).await, Cause::Cluster);
}

async fn flushed_scripts_are_nobody_s_business() {
    let server = Server::start();
    let (transport, name) = (open(&server), name("orders/42"));
    for number in 1..=3 {
        server.command::<()>(&["SCRIPT", "FLUSH"]);
        let token = take(&transport, &name, number).await;
        server.command::<()>(&["SCRIPT", "FLUSH"]);
        let renewed = renew(&transport, vec![claim(&name, number, token)]).await;
        assert_eq!(renewed, Ok(vec![RenewReply::AlreadyYours { token }]));
        server.command::<()>(&["SCRIPT", "FLUSH"]);
        let released = release(&transport, &name, number, 0).await;
        assert_eq!(released, Ok(ReleaseReply::FREED));
    }
}
