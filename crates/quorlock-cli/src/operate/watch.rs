//! `quorlock watch`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use quorlock::Token;
use quorlock::operate::{Inspection, Summary};
use serde_json::json;

use super::{json, print, with_locks};
use crate::failure::{Code, Failure};
use crate::settings::Reach;
use crate::span::Span;

/// Print who holds a name, and every change, until this command is ended.
///
/// The name is inspected at intervals. Holds that are shorter than the interval may be missed, but the token, which
/// grows with every hold, shows them.
#[derive(Clone, Debug, Args)]
pub(crate) struct Watch {
    #[command(flatten)]
    reach: Reach,
    /// Print one line of JSON for each change.
    #[arg(long)]
    json: bool,
    /// Time between two inspections, at least 50ms.
    #[arg(long, value_name = "SPAN", default_value = "1s")]
    interval: Span,
    /// Name to watch.
    name: String,
}

const SHORTEST_INTERVAL: Duration = Duration::from_millis(50);

impl Watch {
    pub(crate) fn run(&self) -> Code {
        with_locks(&self.reach, |locks, _| async move {
            if self.interval.0 < SHORTEST_INTERVAL {
                return Err(Failure::usage(format!(
                    "--interval, {}, is too short: at least {SHORTEST_INTERVAL:?}",
                    self.interval
                )));
            }
            let mut last = None;
            loop {
                let inspection = locks.inspect(&self.name).await?;
                let seen = (inspection.summary(), token(&inspection));
                if last.as_ref() != Some(&seen) {
                    self.tell(&inspection, &seen)?;
                    last = Some(seen);
                }
                wait(self.interval.0).await;
            }
        })
    }

    fn tell(
        &self,
        inspection: &Inspection,
        (summary, token): &(Summary, Option<Token>),
    ) -> Result<(), Failure> {
        let now = wall_clock();
        let owner = match summary {
            Summary::Held { owner, .. } => Some(owner.as_str()),
            _ => None,
        };
        let token = token.map(|token| token.0);
        if self.json {
            let line = json!({
                "time_ms": u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
                "name": inspection.name.text(),
                "state": json::word(summary),
                "owner": owner,
                "client": inspection.client(),
                "token": token,
            });
            return print(&line.to_string());
        }
        let owner = owner.map_or_else(String::new, |owner| format!(" by {owner}"));
        let client = inspection.client();
        let client = client.map_or_else(String::new, |client| format!(" ({client})"));
        let token = token.map_or_else(String::new, |token| format!(", token {token}"));
        print(&format!(
            "{} {}{owner}{client}{token}",
            clock(now),
            json::word(summary)
        ))
    }
}

/// Returns the largest token of the name: it grows with every hold.
fn token(inspection: &Inspection) -> Option<Token> {
    let replies = inspection.nodes.iter();
    let replies = replies.filter_map(|node| node.found.as_ref().ok());
    replies.filter_map(|reply| reply.token).max()
}

#[expect(
    clippy::disallowed_methods,
    reason = "what a person compares with logs"
)]
fn wall_clock() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the command runs on the real clock"
)]
async fn wait(span: Duration) {
    tokio::time::sleep(span).await;
}

/// Returns the time of day, in UTC.
fn clock(now: Duration) -> String {
    let seconds = now.as_secs();
    let (hours, minutes) = (seconds / 3_600 % 24, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}Z", seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_day_is_shown_in_utc() {
        assert_eq!(clock(Duration::from_secs(1_700_000_000)), "22:13:20Z");
        assert_eq!(clock(Duration::from_secs(86_400)), "00:00:00Z");
    }
}
