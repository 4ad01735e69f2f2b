//! Tests of `WAIT` and `min-replicas-to-write`, which need replicas and so cannot be compared with a single real
//! server.

use std::time::Duration;

use super::*;

#[test]
fn a_connection_waits_for_replicas_and_what_comes_behind_waits_too() {
    let mut server = Server::new(1);
    server.replicate();
    let session = server.open_session();
    let now = WallMicros::from_secs(1);
    server.receive(session, now, b"SET a 1\r\nWAIT 2 50\r\nGET a\r\n");
    assert_eq!(server.take_output(session), b"+OK\r\n");
    let awaited = Awaited {
        session,
        replicas: 2,
        within: Some(Duration::from_millis(50)),
    };
    assert_eq!(server.take_awaited(), [awaited]);
    assert_eq!(server.take_awaited(), []);
    server.receive(session, now, b"SET a 2\r\n");
    assert_eq!(server.take_output(session), b"");
    server.confirm(session, now, 1);
    assert_eq!(server.take_output(session), b":1\r\n$1\r\n1\r\n+OK\r\n");
    // In a transaction `WAIT` does not wait. A replica has no replicas to wait for.
    server.receive(session, now, b"MULTI\r\nWAIT 1 0\r\nEXEC\r\nPING\r\n");
    assert!(server.take_output(session).ends_with(b"+PONG\r\n"));
    assert_eq!(server.take_awaited(), []);
    server.receive(session, now, b"WAIT 1 0\r\nPING\r\n");
    server.follow(&Server::new(2));
    let said = String::from_utf8(server.take_output(session)).unwrap();
    assert!(said.starts_with("-UNBLOCKED force unblock"), "{said}");
    assert!(server.is_closing(session));
}

#[test]
fn without_its_replicas_a_server_takes_no_writes() {
    let mut server = Server::new(1);
    let session = server.open_session();
    let now = WallMicros::from_secs(1);
    server.set_condition(Some(Condition::FewReplicas));
    server.receive(session, now, b"SET a 1\r\nGET a\r\n");
    assert_eq!(
        server.take_output(session),
        b"-NOREPLICAS Not enough good replicas to write.\r\n$-1\r\n"
    );
    server.receive(
        session,
        now,
        b"EVAL \"return redis.call('set', 'a', '1')\" 0\r\n",
    );
    let said = String::from_utf8(server.take_output(session)).unwrap();
    assert!(said.starts_with("-NOREPLICAS Not enough"), "{said}");
}
