//! `quorlock doctor`: whether locks can be held on the servers, and what would break them.
//!
//! | to read | see |
//! |---|---|
//! | what is read from the servers | `facts` |
//! | what it means, line by line | `findings`, `server`, `whole`, `line` |
//! | how it is shown | `print`, `json`, `show` |

pub(crate) mod facts;
mod findings;
mod json;
mod line;
mod print;
mod server;
mod show;
mod whole;

use std::io::IsTerminal as _;

use clap::Args;

use crate::doctor::facts::gather;
use crate::doctor::findings::judge;
use crate::doctor::print::{Paint, text};
use crate::failure::Code;
use crate::operate::{done, print as print_line};
use crate::settings::Reach;
use crate::span::Span;

/// Examine the servers: can locks be held on them, and what would break them?
///
/// Prints lines for each server, each `ok`, `doubtful` or `wrong`, with what to do, and then lines for all servers
/// together: how many of them vote, and how many may fail. It looks at login and rights, version, role and replicas, persistence,
/// memory and eviction, the clock, round trips, the slow log, connections, sentinels, and quarantine.
///
/// Nothing is changed, except that one lock is acquired and released. It leaves what every lock leaves: the counter of
/// its tokens, and the marker of a watched server. Give the settings of the deployment (--config), because they decide what is
/// enough.
///
/// Exits with 0 if nothing is wrong, with 78 if settings, a login or rights are wrong, and with 69 if a server does not answer or no
/// majority votes.
#[derive(Clone, Debug, Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    reach: Reach,
    /// Print one line of JSON for each server, and one for all of them.
    #[arg(long)]
    json: bool,
    /// Name of the lock that is acquired and released. For a user who may lock some names only, give one of those.
    #[arg(long, value_name = "NAME", default_value = "quorlock/doctor")]
    name: String,
    /// Lease to compare round trips with [default: that of the settings, or 30s].
    #[arg(long, value_name = "SPAN")]
    lease: Option<Span>,
}

impl Doctor {
    pub(crate) fn run(&self) -> Code {
        done(async {
            let mut settings = self.reach.settings()?;
            if let Some(lease) = self.lease.or(settings.lease) {
                settings.builder = settings.builder.watchdog_lease(lease.0);
            }
            let facts = gather(&settings, &self.name).await?;
            let report = judge(&facts);
            if self.json {
                for line in json::lines(&facts, &report) {
                    print_line(&line.to_string())?;
                }
            } else {
                let paint = Paint::of(std::io::stdout().is_terminal());
                print_line(text(&report, paint).trim_end())?;
            }
            Ok(report.code())
        })
    }
}
