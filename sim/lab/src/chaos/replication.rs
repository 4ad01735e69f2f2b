//! The replication of a primary to its replicas, as faults change it.

use super::server_command::ask;

/// Makes servers lose their primaries, and keeps them from finding them again: their login fails.
pub(super) async fn cut(ports: &[u16]) {
    for port in ports {
        set_login(*port, "none").await;
        let _ = ask::<redis::Value>(*port, &["CLIENT", "KILL", "TYPE", "master"]).await;
    }
}

/// Lets servers follow their primaries again.
pub(super) async fn mend(ports: &[u16]) {
    for port in ports {
        set_login(*port, "").await;
    }
}

async fn set_login(port: u16, login: &str) {
    let _ = ask::<redis::Value>(port, &["CONFIG", "SET", "masterauth", login]).await;
}
