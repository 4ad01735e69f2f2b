//! The process that ends the command's group if the guardian cannot: it was killed, or it is late. It has the other end
//! of a pipe that only the guardian writes to.
//!
//! Suppose `kill -9` reaches wrapper and guardian together. The kernel kills the command with the guardian, but not the
//! other processes of its group. The sentry sees the end of the pipe and kills them.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::{Child, Command, Stdio};

use clap::Args;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::SigSet;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process_group};

use super::alarm::{Alarm, take_name};
use super::clock::Moment;
use super::guarding::LONGEST_SLEEP;
use crate::failure::Code;

/// Runs beside wrapper and guardian. Its standard input is the pipe from the guardian.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Sentry {}

/// A message of the guardian.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Notice {
    /// The command runs, in a process group with this number.
    Group(i32),
    /// The group must have been killed by this time.
    Until(Moment),
    /// Nothing is left of the group, or it cannot be ended.
    Over,
}

impl Notice {
    fn line(self) -> String {
        match self {
            Notice::Group(group) => format!("group {group}\n"),
            Notice::Until(moment) => format!("until {}\n", moment.as_nanos()),
            Notice::Over => "over\n".into(),
        }
    }

    fn parse(line: &str) -> Option<Self> {
        let (word, number) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "group" => Some(Notice::Group(number.parse().ok()?)),
            "until" => Some(Notice::Until(Moment::of_nanos(number.parse().ok()?))),
            "over" => Some(Notice::Over),
            _ => None,
        }
    }
}

/// The guardian's end of the pipe.
#[derive(Debug)]
pub(super) struct ToSentry {
    pipe: File,
    until: Option<Moment>,
}

impl ToSentry {
    pub(super) fn new(pipe: OwnedFd) -> io::Result<Self> {
        fcntl_setfl(&pipe, fcntl_getfl(&pipe)? | OFlags::NONBLOCK)?;
        let pipe = File::from(pipe);
        Ok(ToSentry { pipe, until: None })
    }

    /// Sends a notice. The sentry is awake at least once in each validity, so the pipe is never full; a sentry that was
    /// killed is missed by nothing but its own work.
    pub(super) fn tell(&mut self, notice: Notice) {
        let _ = self.pipe.write_all(notice.line().as_bytes());
    }

    /// Sends the time by which the sentry has to kill the group, if it has changed.
    pub(super) fn tell_until(&mut self, until: Option<Moment>) {
        if let Some(until) = until.filter(|_| until != self.until) {
            self.until = Some(until);
            self.tell(Notice::Until(until));
        }
    }
}

/// The decisions of the sentry. Time is an input, as in [`guarding`](super::guarding).
#[derive(Debug, Default)]
pub(super) struct Standing {
    group: Option<i32>,
    until: Option<Moment>,
    is_over: bool,
}

impl Standing {
    pub(super) fn handle(&mut self, notice: Notice) {
        match notice {
            Notice::Group(group) => self.group = Some(group),
            Notice::Until(until) => self.until = Some(until),
            Notice::Over => {
                self.group = None;
                self.is_over = true;
            }
        }
    }

    /// Handles the end of the guardian. Returns the group to kill.
    pub(super) fn handle_guardian_gone(&mut self) -> Option<i32> {
        self.is_over = true;
        self.group.take()
    }

    /// Returns the group to kill, if the guardian is late.
    pub(super) fn handle_timeout(&mut self, now: Moment) -> Option<i32> {
        self.group
            .take_if(|_| self.until.is_some_and(|until| until <= now))
    }

    /// Returns when to call [`Standing::handle_timeout`] again.
    pub(super) fn poll_timeout(&self) -> Option<Moment> {
        self.until.filter(|_| self.group.is_some())
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }
}

impl Sentry {
    pub(crate) fn run(self) -> Code {
        take_name(c"lock-sentry");
        // It acts on the pipe alone. A blocked CONT still continues a process that is stopped.
        let _ = SigSet::all().thread_block();
        match watch() {
            Ok(()) => Code::SUCCESS,
            Err(_) => Code::SYSTEM,
        }
    }
}

fn watch() -> io::Result<()> {
    let mut pipe = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut alarm = Alarm::new();
    let mut standing = Standing::default();
    let mut received = Vec::new();
    while !standing.is_over() {
        // The clock is read before the pipe, so that all notices that were sent by then are heard before it is judged.
        let now = Moment::now();
        while is_readable(&pipe, Moment::now())? {
            let mut bytes = [0; 512];
            let read = pipe.read(&mut bytes)?;
            if read == 0 {
                kill(standing.handle_guardian_gone());
                return Ok(());
            }
            received.extend(bytes.iter().take(read));
            while let Some(end) = received.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = received.drain(..=end).collect();
                let notice = Notice::parse(String::from_utf8_lossy(&line).trim_end());
                notice
                    .into_iter()
                    .for_each(|notice| standing.handle(notice));
            }
        }
        kill(standing.handle_timeout(now));
        let at = standing.poll_timeout();
        if let Some(at) = at {
            alarm.set(at);
        }
        is_readable(&pipe, at.unwrap_or_else(|| now.after(LONGEST_SLEEP)))?;
    }
    Ok(())
}

/// Waits until there is something to read, at most until this time. Returns whether there is.
fn is_readable(pipe: &File, until: Moment) -> io::Result<bool> {
    let span = until.since(Moment::now()).min(LONGEST_SLEEP);
    let millis = u16::try_from(span.as_micros().div_ceil(1_000)).unwrap_or(u16::MAX);
    let mut files = [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)];
    match poll(&mut files, PollTimeout::from(millis)) {
        Ok(ready) => Ok(0 < ready),
        Err(nix::errno::Errno::EINTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn kill(group: Option<i32>) {
    if let Some(group) = group.and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// The wrapper's handle of the sentry, which ends with it.
#[derive(Debug)]
pub(super) struct SentryProcess(Child);

impl SentryProcess {
    /// Starts the sentry. Returns the guardian's end of its pipe.
    pub(super) fn start(mut program: Command) -> io::Result<(Self, OwnedFd)> {
        let (hears, tells) = io::pipe()?;
        let sentry = program
            .arg("sentry")
            .stdin(Stdio::from(OwnedFd::from(hears)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok((SentryProcess(sentry), OwnedFd::from(tells)))
    }
}

impl Drop for SentryProcess {
    fn drop(&mut self) {
        // It is not killed if it was waited for before: its number may be that of another process.
        if let Ok(None) = self.0.try_wait() {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_guardian_says_the_sentry_understands() {
        for notice in [
            Notice::Group(4711),
            Notice::Until(Moment::of_nanos(1_234_567_890_123)),
            Notice::Over,
        ] {
            assert_eq!(Notice::parse(notice.line().trim_end()), Some(notice));
        }
    }
}
