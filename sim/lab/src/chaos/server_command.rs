//! Commands that a run sends to a server, beside the clients.

use std::time::Duration;

use redis::Cmd;

use super::node::Node;

/// Sends commands to a server. A server that is down does not receive them.
pub(super) async fn say(port: u16, commands: &[Cmd]) {
    say_for(port, Duration::from_secs(2), commands).await;
}

/// Sends commands to a server. Each may take this long.
pub(super) async fn say_for(port: u16, bound: Duration, commands: &[Cmd]) {
    let Ok(mut connection) = Node::connect_for(port, bound).await else {
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
