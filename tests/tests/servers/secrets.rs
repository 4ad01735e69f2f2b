//! Tests that no password appears in an error, a log or a `Debug` output.

use std::fmt::Write;

use quorlock_core::transport::{Transport, TransportError};
use quorlock_redis::{RedisConfig, RedisTransport};
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::until;
use quorlock_tests::heard::Heard;
use quorlock_tests::requests::{acquire, ask, name, take};

server_tests![
    a_wrong_password_is_not_repeated,
    a_password_for_nobody_is_not_repeated,
    a_right_password_is_not_shown,
    a_malformed_address_is_not_repeated,
];

/// The password, in addresses both plain and escaped.
const SECRETS: [&str; 2] = ["hunter2-s3cret", "h%75nter2-s3cret"];

const TELLING: &str = "nter2";

fn assert_keeps_quiet(said: &str) {
    assert!(!said.contains(TELLING), "{said}");
}

fn told(transport: &RedisTransport, error: Option<&TransportError>) -> String {
    let mut told = format!("{transport:?} {transport:#?} {}", transport.address());
    if let Some(error) = error {
        write!(told, " {error} {error:?} {error:#?}").unwrap();
    }
    told
}

fn open(server: &Server, secret: &str) -> RedisTransport {
    let address = format!("redis://:{secret}@127.0.0.1:{}/", server.port());
    RedisTransport::open(&address, RedisConfig::default()).unwrap()
}

async fn a_wrong_password_is_not_repeated() {
    let server = Server::start();
    server.command::<()>(&["CONFIG", "SET", "requirepass", "another"]);
    for secret in SECRETS {
        let transport = open(&server, secret);
        let error = ask(&transport, acquire(&name("orders/42"), 1)).await;
        assert_keeps_quiet(&told(&transport, Some(&error.unwrap_err())));
    }
}

async fn a_password_for_nobody_is_not_repeated() {
    let server = Server::start();
    server.kill();
    for secret in SECRETS {
        let transport = open(&server, secret);
        let error = ask(&transport, acquire(&name("orders/42"), 1)).await;
        assert_keeps_quiet(&told(&transport, Some(&error.unwrap_err())));
        let address = format!("redis://:{secret}@127.0.0.1:{}/", server.port());
        let error = RedisTransport::connect(&address, RedisConfig::default()).await;
        let error = error.unwrap_err();
        assert_keeps_quiet(&format!("{error} {error:?} {error:#?}"));
    }
}

async fn a_right_password_is_not_shown() {
    let server = Server::start();
    server.command::<()>(&["CONFIG", "SET", "requirepass", SECRETS[0]]);
    for secret in SECRETS {
        let transport = open(&server, secret);
        take(&transport, &name(secret), 1).await;
        let heard = Heard::nothing();
        let subscription = transport.subscribe(&name("orders/42").into(), heard.clone());
        until("messages flow", || heard.lives() == 1).await;
        assert_keeps_quiet(&format!("{} {subscription:?}", told(&transport, None)));
    }
}

async fn a_malformed_address_is_not_repeated() {
    for address in [
        "redis//:hunter2@127.0.0.1",
        "http://:hunter2@127.0.0.1/",
        "redis://:hunter2@127.0.0.1:port/",
        "redis://:hunter2@127.0.0.1/database",
        "redis://:hunter2@/",
        "redis://user:hunter2@[::1/",
        "rediss://:hunter2@127.0.0.1/#insecure",
        ":hunter2@127.0.0.1",
        "unix:///socket?pass=hunter2&db=database",
        "redis://:hunter2@127.0.0.1/?protocol=another",
        "redis://:#hunter2@127.0.0.1",
        "redis://:%hunter2@127.0.0.1",
        "redis://:a/hunter2@127.0.0.1",
        "unix:///socket?pass=a&hunter2",
    ] {
        let error = RedisTransport::open(address, RedisConfig::default()).unwrap_err();
        assert_keeps_quiet(&format!("{error} {error:?} {error:#?}"));
    }
}
