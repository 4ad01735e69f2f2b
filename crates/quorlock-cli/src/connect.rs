//! Connects to the servers.

use std::time::{Duration, Instant};

use quorlock::Locks;

use crate::failure::Failure;
use crate::messages::Voice;
use crate::settings::Settings;

/// How long the command waits for servers that cannot be reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Patience {
    /// Tries once.
    None,
    /// Tries again until this time.
    Until(Instant),
}

/// Returns a client of the servers. Errors that may be temporary are retried while there is patience. Doubts about a
/// server are told by the voice.
#[expect(
    clippy::disallowed_methods,
    reason = "the command runs on the real clock"
)]
pub(crate) async fn connect(
    settings: &Settings,
    patience: Patience,
    voice: Voice,
) -> Result<Locks, Failure> {
    let patience = match patience {
        Patience::None => Duration::ZERO,
        Patience::Until(until) => until.saturating_duration_since(Instant::now()),
    };
    let builder = settings.builder.clone().wait_for_servers(patience);
    let builder = builder.on_doubt(move |address, doubt| {
        let fields = [("node", serde_json::Value::from(address))];
        voice.warn("doubtful", &format!("{address}: {doubt}"), &fields);
    });
    Ok(builder.quorum(&settings.addresses).await?)
}
