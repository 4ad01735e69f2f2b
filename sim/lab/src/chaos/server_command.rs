//! Commands that a run sends to a server, beside the clients.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, FromRedisValue, RedisResult};

/// The longest time that a server may usually take to answer.
const ANSWERS: Duration = Duration::from_secs(2);

/// Connects the command to a server.
pub(super) async fn connect(port: u16) -> RedisResult<MultiplexedConnection> {
    connect_for(port, ANSWERS).await
}

/// Connects the command to a server that may take this long to answer.
pub(super) async fn connect_for(
    port: u16,
    answers: Duration,
) -> RedisResult<MultiplexedConnection> {
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}/"))?;
    let config = redis::AsyncConnectionConfig::new()
        .set_connection_timeout(Some(Duration::from_secs(1)))
        .set_response_timeout(Some(answers));
    client
        .get_multiplexed_async_connection_with_config(&config)
        .await
}

/// Sends a command to a server. Returns `None` if the server is down, or answers with an error.
pub(super) async fn ask<T: FromRedisValue>(port: u16, words: &[&str]) -> Option<T> {
    let mut connection = connect(port).await.ok()?;
    let mut command = Cmd::new();
    command.arg(words);
    command.query_async(&mut connection).await.ok()
}

/// Sends commands to a server. A server that is down does not receive them.
pub(super) async fn say(port: u16, commands: &[Cmd]) {
    say_for(port, ANSWERS, commands).await;
}

/// Sends commands to a server. Each may take this long.
pub(super) async fn say_for(port: u16, bound: Duration, commands: &[Cmd]) {
    let Ok(mut connection) = connect_for(port, bound).await else {
        return;
    };
    for command in commands {
        let _: Result<redis::Value, _> = command.query_async(&mut connection).await;
    }
}

/// Returns the command that changes a setting of a server.
pub(super) fn config(setting: &str, value: &str) -> Cmd {
    let mut config = redis::cmd("CONFIG");
    config.arg("SET").arg(setting).arg(value).clone()
}
