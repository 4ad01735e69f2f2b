//! The process that the guardian starts in the new process group. It becomes the command.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use clap::Args;
use rustix::process::{getpid, getppid};

use super::terminal::Terminal;
use crate::failure::{Code, Failure};
use crate::messages::Voice;

/// Prepares the process and becomes the command.
#[derive(Clone, Debug, Args)]
pub(crate) struct Launch {
    /// Process id of the guardian.
    #[arg(long)]
    parent: i32,
    /// Whether the command gets the terminal.
    #[arg(long)]
    foreground: bool,
    #[arg(long, default_value = "text")]
    voice: Voice,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

impl Launch {
    /// Returns only if it fails.
    pub(crate) fn run(self) -> Code {
        if self.tether().is_err() {
            return Code::SYSTEM;
        }
        if self.foreground
            && let Some(terminal) = Terminal::open()
        {
            let _ = terminal.give(getpid());
        }
        let Some((program, arguments)) = self.command.split_first() else {
            return Code::USAGE;
        };
        let error = Command::new(program).args(arguments).exec();
        let code = match error.kind() {
            io::ErrorKind::NotFound => Code::NOT_FOUND,
            _ => Code::CANNOT_EXECUTE,
        };
        let text = format!("{}: {error}", program.display());
        self.voice.failure(&Failure::new(code, text));
        code
    }

    /// Makes this process end with the guardian, if the guardian is killed.
    fn tether(&self) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        // If the guardian was killed before, no signal follows.
        match getppid() {
            Some(parent) if parent.as_raw_nonzero().get() == self.parent => Ok(()),
            _ => Err(io::Error::other("the guardian is gone")),
        }
    }
}
