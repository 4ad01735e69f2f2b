//! Tests that need no real server to compare with: time, replicas, restarts.

use super::*;
use crate::watch::{Place, Watch};

const START: WallMicros = WallMicros::from_secs(1_700_000_000);

fn after(millis: u64) -> WallMicros {
    WallMicros(START.0 + 1_000 * millis)
}

/// Sends one request on a new connection.
fn ask(server: &mut Server, now: WallMicros, line: &str) -> String {
    let session = server.open_session();
    server.receive(session, now, format!("{line}\r\n").as_bytes());
    let said = String::from_utf8(server.take_output(session)).unwrap();
    server.close_session(session);
    said
}

/// Sends a replica all changes of its primary.
fn tell(replica: &mut Server, primary: &mut Server) {
    for effect in primary.take_effects() {
        replica.apply(&effect);
    }
}

fn pair() -> (Server, Server) {
    let (mut primary, mut replica) = (Server::new(1), Server::new(2));
    ask(&mut primary, START, "SET old 1");
    primary.replicate();
    replica.follow(&primary);
    (primary, replica)
}

#[test]
fn a_key_is_there_up_to_the_millisecond_in_which_it_expires() {
    let mut server = Server::new(1);
    ask(&mut server, START, "SET a 1 PX 100");
    assert_eq!(ask(&mut server, after(100), "PTTL a"), ":0\r\n");
    assert_eq!(ask(&mut server, after(101), "PTTL a"), ":-2\r\n");
}

#[test]
fn a_step_of_the_clock_expires_keys_at_once_and_time_goes_on_while_the_server_is_down() {
    let mut server = Server::new(1);
    ask(&mut server, START, "SET a 1 PX 100");
    ask(&mut server, START, "SET b 1 PX 60000");
    let keys = server.dataset();
    server.restart(keys);
    assert_eq!(ask(&mut server, after(50_000), "EXISTS a b"), ":1\r\n");
    assert_eq!(ask(&mut server, after(50_000), "PTTL b"), ":10000\r\n");
    // It lives longer by the time that the clock was set back.
    assert_eq!(ask(&mut server, after(0), "PTTL b"), ":60000\r\n");
}

#[test]
fn a_request_that_is_not_complete_is_pending() {
    let mut server = Server::new(1);
    let session = server.open_session();
    server.receive(session, START, b"SET a 1\r\nSET b");
    assert_eq!(server.pending(session), b"SET b");
    server.receive(session, START, b" 2\r\n");
    assert_eq!(server.pending(session), b"");
    assert_eq!(ask(&mut server, START, "EXISTS a b"), ":2\r\n");
}

#[test]
fn no_key_expires_in_the_middle_of_a_script() {
    let mut server = Server::new(1);
    ask(&mut server, START, "SET a 1 PX 100");
    let script =
        "EVAL \"local n = 0 for i = 1, 100000 do n = n + 1 end return redis.call('PTTL','a')\" 0";
    assert_eq!(ask(&mut server, after(100), script), ":0\r\n");
}

#[test]
fn a_replica_has_what_its_primary_has() {
    let (mut primary, mut replica) = pair();
    for line in [
        "SET a 1 PX 1000",
        "HSET h f v g w",
        "HDEL h f",
        "RPUSH l x y",
        "LPOP l",
        "ZADD z 1 m 2 n",
        "EVAL \"redis.call('SET','s','t') redis.call('DEL','old') redis.call('HGET','l','x')\" 0",
        "PERSIST a",
        "PEXPIRE h 5000",
        "SADD set m",
        "RENAME set other",
        "INCR counter",
    ] {
        ask(&mut primary, START, line);
        tell(&mut replica, &mut primary);
        assert_eq!(replica.dataset(), primary.dataset(), "{line}");
    }
    ask(&mut primary, START, "FLUSHALL");
    tell(&mut replica, &mut primary);
    assert_eq!(replica.dataset(), primary.dataset());
}

#[test]
fn a_replica_hides_what_is_over_and_deletes_it_when_it_is_told() {
    let (mut primary, mut replica) = pair();
    ask(&mut primary, START, "SET a 1 PX 100");
    tell(&mut replica, &mut primary);
    assert_eq!(ask(&mut replica, after(200), "GET a"), "$-1\r\n");
    assert_eq!(ask(&mut replica, after(200), "EXISTS a"), ":0\r\n");
    // The replica's clock is set back: the key has never been deleted there.
    assert_eq!(ask(&mut replica, after(0), "GET a"), "$1\r\n1\r\n");
    primary.tick(after(200));
    tell(&mut replica, &mut primary);
    assert_eq!(ask(&mut replica, after(0), "GET a"), "$-1\r\n");
}

#[test]
fn a_promoted_replica_has_what_had_reached_it_and_a_history_of_its_own() {
    let (mut primary, mut replica) = pair();
    ask(&mut primary, START, "SET a 1 PX 100");
    tell(&mut replica, &mut primary);
    ask(&mut primary, START, "SET b 1");
    let id = |server: &mut Server| {
        let info = ask(server, START, "INFO replication");
        info.lines()
            .find(|line| line.starts_with("master_replid:"))
            .unwrap()
            .to_owned()
    };
    assert_eq!(id(&mut replica), id(&mut primary));
    assert!(ask(&mut replica, START, "SET c 1").starts_with("-READONLY"));
    replica.promote();
    assert_ne!(id(&mut replica), id(&mut primary));
    assert_eq!(ask(&mut replica, START, "EXISTS old a b"), ":2\r\n");
    assert_eq!(ask(&mut replica, START, "SET c 1"), "+OK\r\n");
    // From now on it expires keys by its own clock.
    replica.tick(after(200));
    assert_eq!(ask(&mut replica, after(0), "EXISTS a"), ":0\r\n");
    // Changes of the old primary no longer have an effect.
    tell(&mut replica, &mut primary);
    assert_eq!(ask(&mut replica, START, "EXISTS b"), ":0\r\n");
}

/// Returns the ids that `INFO` reports: its own, that of a former primary, and whether there is a backlog.
fn history(server: &mut Server) -> [String; 3] {
    let info = ask(server, START, "INFO replication");
    ["master_replid:", "master_replid2:", "repl_backlog_active:"].map(|field| {
        let said = info.lines().find_map(|line| line.strip_prefix(field));
        said.unwrap().to_owned()
    })
}

/// The expected values were observed on Redis 7.0.15.
#[test]
fn a_first_replica_and_a_freed_backlog_change_the_identity_of_a_running_server() {
    let mut server = Server::new(1);
    let process = server.run_id();
    let [started, none, backlog] = history(&mut server);
    assert_eq!((none.len(), backlog.as_str()), (40, "0"));
    for _ in 0..2 {
        let [before, ..] = history(&mut server);
        server.set_replicas(1);
        server.set_replicas(0);
        let [backed_up, _, backlog] = history(&mut server);
        assert_ne!(backed_up, before);
        assert_eq!(backlog, "1");
        server.set_replicas(1);
        server.set_replicas(0);
        let [again, ..] = history(&mut server);
        assert_eq!(again, backed_up, "as long as there is a backlog");
        server.free_backlog();
        let [freed, former, backlog] = history(&mut server);
        assert_ne!(freed, backed_up);
        assert_ne!(freed, started);
        assert_eq!((former, backlog.as_str()), (none.clone(), "0"));
    }
    assert_eq!(server.run_id(), process);
}

#[test]
fn a_freed_backlog_wipes_out_the_trace_of_a_promotion() {
    let (primary, mut replica) = pair();
    replica.follow(&primary);
    let [_, none, _] = history(&mut Server::new(1));
    replica.promote();
    let [_, former, _] = history(&mut replica);
    assert_ne!(former, none);
    replica.free_backlog();
    let [_, former, _] = history(&mut replica);
    assert_eq!(former, none);
}

#[test]
fn a_restart_ends_connections_forgets_scripts_and_changes_the_identity() {
    let mut server = Server::new(1);
    let before = server.run_id();
    assert_eq!(before, Server::new(1).run_id());
    assert_ne!(before, Server::new(2).run_id());
    let session = server.open_session();
    server.receive(session, START, b"SUBSCRIBE a\r\n");
    ask(&mut server, START, "SCRIPT LOAD \"return 1\"");
    server.restart(Dataset::empty());
    assert_ne!(server.run_id(), before);
    assert!(server.is_closing(session));
    server.receive(session, START, b"PING\r\n");
    assert!(server.take_output(session).is_empty());
    assert_eq!(ask(&mut server, START, "PUBLISH a x"), ":0\r\n");
    let digest = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";
    assert!(ask(&mut server, START, &format!("EVALSHA {digest} 0")).starts_with("-NOSCRIPT"));
}

#[test]
fn a_server_in_trouble_says_so_and_is_well_again_afterwards() {
    let mut server = Server::new(1);
    ask(&mut server, START, "SET a 1");
    for (condition, line, says) in [
        (Condition::Loading, "GET a", "-LOADING "),
        (Condition::Loading, "EVAL \"return 1\" 0", "-LOADING "),
        (Condition::Busy, "GET a", "-BUSY "),
        (Condition::ReadOnly, "SET a 2", "-READONLY "),
        (Condition::ReadOnly, "GET a", "$1"),
        (Condition::OutOfMemory, "SET a 2", "-OOM "),
        (Condition::OutOfMemory, "DEL a", ":1"),
    ] {
        server.set_condition(Some(condition));
        assert!(
            ask(&mut server, START, line).starts_with(says),
            "{condition:?} {line}"
        );
    }
    server.set_condition(None);
    assert_eq!(ask(&mut server, START, "SET a 2"), "+OK\r\n");
}

#[test]
fn a_script_that_does_not_end_is_stopped_and_keeps_what_it_wrote() {
    let mut server = Server::new(1);
    let said = ask(
        &mut server,
        START,
        "EVAL \"redis.call('SET','a',1) while true do pcall(function() while true do end end) end\" 0",
    );
    assert!(said.starts_with("-ERR the script does not end"), "{said}");
    assert_eq!(ask(&mut server, START, "GET a"), "$1\r\n1\r\n");
}

#[test]
fn a_script_has_no_random_numbers_and_cannot_hand_anything_on() {
    let mut server = Server::new(1);
    for code in [
        "return math.random()",
        "return os.time()",
        "x = 1",
        "string.format = 1",
        "getmetatable('').__index.format = nil return ('x'):format()",
        "return coroutine",
        "return string.dump(function() end)",
        "return loadstring('\\27')()",
    ] {
        let said = ask(&mut server, START, &format!("EVAL \"{code}\" 0"));
        assert!(said.starts_with("-ERR "), "{code}: {said}");
    }
    assert_eq!(
        ask(
            &mut server,
            START,
            "EVAL \"return string.format('%d', 7)\" 0"
        ),
        "$1\r\n7\r\n"
    );
}

#[test]
fn a_password_never_shows() {
    let server = Server::new(1).with_password("hunter2");
    assert!(!format!("{server:?}").contains("hunter2"));
}

fn place(host: &str) -> Place {
    (host.to_owned(), 6379)
}

fn watching() -> Server {
    Server::new(1).watching(Watch {
        name: "m".into(),
        primary: place("a"),
        epoch: 3,
        sentinels: vec![("s2".into(), 26379)],
    })
}

#[test]
fn a_sentinel_says_which_server_is_the_primary_and_has_no_keys() {
    let mut sentinel = watching();
    let session = sentinel.open_session();
    for (asked, said) in [
        (
            "SENTINEL get-master-addr-by-name m",
            "*2\r\n$1\r\na\r\n$4\r\n6379\r\n",
        ),
        ("SENTINEL GET-MASTER-ADDR-BY-NAME n", "*-1\r\n"),
        (
            "SENTINEL MASTER n",
            "-ERR No such master with that name\r\n",
        ),
        (
            "SENTINEL SENTINELS m",
            "*1\r\n*8\r\n$4\r\nname\r\n$8\r\ns2:26379\r\n$2\r\nip\r\n$2\r\ns2\r\n$4\r\nport\r\n$5\r\n26379\r\n$5\r\nflags\r\n$8\r\nsentinel\r\n",
        ),
        ("ROLE", "*2\r\n$8\r\nsentinel\r\n*1\r\n$1\r\nm\r\n"),
        (
            "GET a",
            "-ERR unknown command 'GET', with args beginning with: 'a' \r\n",
        ),
    ] {
        sentinel.receive(
            session,
            WallMicros::default(),
            format!("{asked}\r\n").as_bytes(),
        );
        let output = sentinel.take_output(session);
        assert_eq!(String::from_utf8_lossy(&output), said, "{asked}");
    }
    sentinel.receive(session, WallMicros::default(), b"SENTINEL MASTER m\r\n");
    let output = sentinel.take_output(session);
    let output = String::from_utf8_lossy(&output);
    assert!(
        output.contains("$12\r\nconfig-epoch\r\n$1\r\n3\r\n"),
        "{output}"
    );
    let mut server = Server::new(1);
    let session = server.open_session();
    server.receive(session, WallMicros::default(), b"SENTINEL masters\r\n");
    let output = server.take_output(session);
    assert!(output.starts_with(b"-ERR unknown command 'SENTINEL'"));
}

#[test]
fn a_sentinel_publishes_that_another_server_is_the_primary() {
    let mut sentinel = watching();
    let session = sentinel.open_session();
    sentinel.receive(
        session,
        WallMicros::default(),
        b"SUBSCRIBE +switch-master\r\n",
    );
    sentinel.take_output(session);
    sentinel.switch(place("b"), 4);
    let output = sentinel.take_output(session);
    let output = String::from_utf8_lossy(&output);
    assert!(output.ends_with("m a 6379 b 6379\r\n"), "{output}");
    let asking = sentinel.open_session();
    sentinel.restart(Dataset::empty());
    assert!(sentinel.is_closing(asking));
    let asking = sentinel.open_session();
    sentinel.receive(
        asking,
        WallMicros::default(),
        b"SENTINEL get-master-addr-by-name m\r\n",
    );
    assert_eq!(
        sentinel.take_output(asking),
        b"*2\r\n$1\r\nb\r\n$4\r\n6379\r\n"
    );
}

#[test]
fn the_sentinel_of_a_promotion_names_the_new_primary_before_it_publishes_the_switch() {
    let mut sentinel = watching();
    let session = sentinel.open_session();
    sentinel.receive(
        session,
        WallMicros::default(),
        b"SUBSCRIBE +switch-master +promoted-slave\r\n",
    );
    sentinel.take_output(session);
    sentinel.promoted(place("b"), 4);
    let said = String::from_utf8(sentinel.take_output(session)).unwrap();
    assert!(
        said.ends_with("slave b:6379 b 6379 @ m a 6379\r\n"),
        "{said}"
    );
    sentinel.switch(place("b"), 4);
    let said = String::from_utf8(sentinel.take_output(session)).unwrap();
    assert!(said.ends_with("m a 6379 b 6379\r\n"), "{said}");
}
