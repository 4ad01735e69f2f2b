//! What every command under a guardian is given on the command line.

use std::ffi::OsString;

use clap::Args;

use super::guardian::OnLoss;
use super::timing::Timing;
use crate::failure::Failure;
use crate::settings::Settings;
use crate::span::Span;
use crate::voice::Voice;

/// A command, and how it is ended.
#[derive(Clone, Debug, Args)]
pub(crate) struct Guarded {
    /// What becomes of the command when the lock or the leadership is lost.
    #[arg(long, value_enum, default_value_t = OnLoss::Kill)]
    pub(crate) on_loss: OnLoss,
    /// From TERM to the end of the validity, at most half of the lease [default: a third of the lease, at most 10s].
    #[arg(long, value_name = "SPAN")]
    grace: Option<Span>,
    /// What must be left of the validity before the grace for the command to start [default: a third of the lease, at most
    /// 10s].
    #[arg(long, value_name = "SPAN")]
    min_validity: Option<Span>,
    /// Say nothing.
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
    /// Say what happens as lines of JSON, on stderr.
    #[arg(long)]
    json: bool,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

impl Guarded {
    pub(crate) fn voice(&self) -> Voice {
        Voice::of(self.quiet, self.json)
    }

    /// The times of a hold with that lease, else with that of the settings, which is what the client asks for from now on.
    pub(crate) fn timing(
        &self,
        lease: Option<Span>,
        settings: &mut Settings,
    ) -> Result<Timing, Failure> {
        let lease = lease.or(settings.lease);
        let lease = lease.map_or(Timing::LEASE, |lease| lease.0);
        let timing = Timing::new(lease, self.grace, self.min_validity)?;
        settings.builder = settings.builder.clone().watchdog_lease(lease);
        Ok(timing)
    }
}

/// Runs a future on this thread. The thread that starts a guardian must live as long as this process: this one, so no others
/// are made.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::system("no runtime", error))?;
    runtime.block_on(work)
}
