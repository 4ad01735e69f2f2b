//! The options of every command that runs under a guardian.

use std::ffi::OsString;

use clap::Args;

use super::guarding::OnLoss;
use super::holder;
use super::timing::Timing;
use crate::failure::Failure;
use crate::messages::Voice;
use crate::settings::Settings;
use crate::span::Span;

/// A command, and how it is ended.
#[derive(Clone, Debug, Args)]
pub(crate) struct Guarded {
    /// What to do with the command when the lock or the leadership is lost.
    #[arg(long, value_enum, default_value_t = OnLoss::Kill)]
    pub(crate) on_loss: OnLoss,
    /// How long before the end of the validity the command gets TERM; at most half of the lease [default: a third of
    /// the lease, at most 10s].
    #[arg(long, value_name = "SPAN")]
    grace: Option<Span>,
    /// Start the command only if this much validity is left in addition to --grace [default: a third of the lease, at
    /// most 10s].
    #[arg(long, value_name = "SPAN")]
    min_validity: Option<Span>,
    /// Label by which `inspect` shows this process as a holder, without spaces [default: the host and the process id].
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// Print no messages.
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
    /// Print every event to stderr, as one line of JSON each.
    #[arg(long)]
    json: bool,
    /// Command to run, with its arguments. Options of quorlock stand before it. `--` may stand between them.
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

impl Guarded {
    pub(crate) fn voice(&self) -> Voice {
        Voice::of(self.quiet, self.json)
    }

    /// Returns the times of a hold with this lease, or with the lease of the settings. The client requests this lease
    /// from now on, and has the label of this process.
    pub(crate) fn timing(
        &self,
        lease: Option<Span>,
        settings: &mut Settings,
    ) -> Result<Timing, Failure> {
        let lease = lease.or(settings.lease);
        let lease = lease.map_or(Timing::LEASE, |lease| lease.0);
        let timing = Timing::new(lease, self.grace, self.min_validity)?;
        let label = self.label.clone().unwrap_or_else(holder::label);
        let builder = settings.builder.clone().watchdog_lease(lease);
        settings.builder = builder.label(label);
        Ok(timing)
    }
}

/// Runs a future on this thread. The thread that starts a guardian must live as long as this process, so no other
/// threads are created.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::system("the async runtime cannot be started", error))?;
    runtime.block_on(work)
}
