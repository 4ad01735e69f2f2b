//! Connects to the servers.

use std::time::{Duration, Instant};

use quorlock::Locks;

use crate::failure::{Failure, may_pass};
use crate::messages::Voice;
use crate::settings::Settings;

/// The pause before the second attempt. It doubles, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

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
    let mut pause = FIRST_PAUSE;
    loop {
        let builder = settings.builder.clone().on_doubt(move |address, doubt| {
            let fields = [("node", serde_json::Value::from(address))];
            voice.warn("doubtful", &format!("{address}: {doubt}"), &fields);
        });
        let error = match builder.quorum(&settings.addresses).await {
            Ok(locks) => return Ok(locks),
            Err(error) => error,
        };
        match patience {
            Patience::Until(until) if may_pass(&error) && Instant::now() + pause < until => {
                tokio::time::sleep(pause).await;
            }
            _ => return Err(error.into()),
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
