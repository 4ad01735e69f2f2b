//! From addresses to a client.

use std::time::{Duration, Instant};

use quorlock::Locks;

use crate::failure::{Failure, may_pass};
use crate::settings::Settings;

/// The pause before the second try. It doubles, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How long servers are waited for that cannot be reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Patience {
    /// One try.
    None,
    /// Until then.
    Until(Instant),
}

/// A client of the servers. Those that may come back are tried again for as long as there is patience.
#[expect(
    clippy::disallowed_methods,
    reason = "the command runs on the real clock"
)]
pub(crate) async fn connect(settings: &Settings, patience: Patience) -> Result<Locks, Failure> {
    let mut pause = FIRST_PAUSE;
    loop {
        let builder = settings.builder.clone();
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
