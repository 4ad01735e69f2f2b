//! The foreground process group of the terminal.

use std::fs::File;
use std::io;

use nix::sys::signal::{SigSet, Signal as NixSignal};
use rustix::process::{Pid, getpgrp, getppid, getsid};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr, tcsetpgrp};

/// The terminal of this process.
#[derive(Debug)]
pub(crate) struct Terminal {
    tty: File,
    own: Pid,
    modes: Option<Termios>,
}

impl Terminal {
    /// Returns the controlling terminal of this process, if there is one.
    pub(crate) fn open() -> Option<Self> {
        let tty = File::options()
            .read(true)
            .write(true)
            .open("/dev/tty")
            .ok()?;
        let modes = tcgetattr(&tty).ok();
        Some(Terminal {
            tty,
            own: getpgrp(),
            modes,
        })
    }

    /// Returns whether this process is in the foreground.
    pub(crate) fn is_ours(&self) -> bool {
        tcgetpgrp(&self.tty).is_ok_and(|group| group == self.own)
    }

    /// Returns whether this group is in the foreground.
    pub(crate) fn is_of(&self, group: Pid) -> bool {
        tcgetpgrp(&self.tty).is_ok_and(|foreground| foreground == group)
    }

    /// Puts a group in the foreground.
    pub(crate) fn give(&self, group: Pid) -> io::Result<()> {
        // A process in the background may do this only while it blocks SIGTTOU, which would otherwise stop it.
        let mut background = SigSet::empty();
        background.add(NixSignal::SIGTTOU);
        background.thread_block()?;
        let given = tcsetpgrp(&self.tty, group);
        background.thread_unblock()?;
        Ok(given?)
    }

    /// Takes the foreground back from a group that has it, and restores the terminal modes: a program that was killed
    /// has not restored them.
    pub(crate) fn take_from(&self, group: Pid) {
        if !self.is_of(group) || self.give(self.own).is_err() {
            return;
        }
        if let Some(modes) = &self.modes {
            let _ = tcsetattr(&self.tty, OptionalActions::Drain, modes);
        }
    }
}

/// Returns whether a shell with job control may be waiting for this process to stop: its parent belongs to its session.
/// Without such a shell, nothing would continue this process.
pub(crate) fn is_a_job() -> bool {
    let parent = getppid().and_then(|parent| getsid(Some(parent)).ok());
    getsid(None).is_ok_and(|session| parent == Some(session))
}
