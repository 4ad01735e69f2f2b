//! The process between wrapper and command. It knows until when the lock is valid, and ends the command's process
//! group by then, even if the wrapper is killed, stopped or busy. What it decides is in [`guarding`](super::guarding).

use std::ffi::OsString;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::pin::pin;
use std::process::{Command, Stdio};
use std::task::Poll;
use std::time::Duration;

use clap::Args;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, kill_process_group,
    test_kill_process_group, wait,
};
use tokio::signal::unix::SignalKind;

use super::alarm::{Alarm, take_name};
use super::clock::Moment;
use super::guarding::{Act, Ended, Guarding, LONGEST_SLEEP, OnLoss, Remains, Spans};
use super::link::{Link, Report, take_over};
use super::sentry::{Notice, ToSentry};
use super::signals::{ENDING, Signals, TELLING};
use crate::failure::{Code, Failure};
use crate::messages::Voice;

/// Runs between wrapper and command. Its standard input is the connection to the wrapper.
#[derive(Clone, Debug, Args)]
pub(crate) struct Guard {
    #[arg(long)]
    until: u64,
    #[arg(long)]
    grace_nanos: u64,
    #[arg(long)]
    reserve_nanos: u64,
    #[arg(long, value_enum)]
    on_loss: OnLoss,
    #[arg(long)]
    foreground: bool,
    #[arg(long, default_value = "text")]
    voice: Voice,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Returns the program that this process runs, under this name, in a process group of its own: a signal that a
/// terminal or a shell sends to the wrapper's group must not reach the processes that guard the command.
pub(super) fn program(name: &str) -> Command {
    // An update may have replaced or removed the file.
    let path = match std::env::current_exe() {
        Ok(path) if path.exists() => path,
        _ => PathBuf::from("/proc/self/exe"),
    };
    let mut program = Command::new(path);
    program.arg0(name).process_group(0);
    program
}

impl Guard {
    pub(crate) fn run(self) -> Code {
        take_name(c"lock-guardian");
        // The pipe is created before any other file is open, so that its numbers are small: redirections of a shell
        // accept numbers up to 9.
        let loss = rustix::pipe::pipe();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let guarded = match (runtime, loss) {
            (Ok(runtime), Ok(loss)) => runtime.block_on(self.guard(loss)),
            (Err(error), _) => Err(error),
            (_, Err(error)) => Err(error.into()),
        };
        match guarded {
            Ok(()) => Code::SUCCESS,
            Err(error) => {
                self.voice
                    .failure(&Failure::system("the guardian of the command", error));
                Code::SYSTEM
            }
        }
    }

    async fn guard(&self, (reader, writer): (OwnedFd, OwnedFd)) -> io::Result<()> {
        fcntl_setfd(&writer, FdFlags::CLOEXEC)?;
        let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        let [stdin, sentry] = take_over(&stream)?;
        let mut sentry = ToSentry::new(sentry)?;
        let mut link = Link::new(stream)?;
        // Grandchildren whose parents have ended become children of this process, which can wait for them and end them.
        #[cfg(target_os = "linux")]
        rustix::process::set_child_subreaper(Some(getpid()))?;
        // A signal that a service manager or a person sends to every process of the run is passed on by the wrapper, or
        // ends the wrapper. The guardian stays until the group has ended.
        let mut signals = Signals::catch(&ENDING)?;
        signals.catch_also(&TELLING)?;
        // This is set up before the command starts, so that its end is not missed.
        let children = tokio::signal::unix::signal(SignalKind::child())?;

        let until = Moment::of_nanos(self.until);
        let spans = Spans {
            grace: Duration::from_nanos(self.grace_nanos),
            reserve: Duration::from_nanos(self.reserve_nanos),
        };
        if until.before(spans.grace) <= Moment::now() {
            link.report(Report::TooLate);
            return Ok(());
        }
        let group = match self.launch(stdin, &reader) {
            Ok(group) => group,
            Err(error) => {
                link.report(Report::Failed);
                return Err(error);
            }
        };
        drop(reader);
        sentry.tell(Notice::Group(group.as_raw_nonzero().get()));
        link.report(Report::Started(group.as_raw_nonzero().get()));
        let guardian = Guardian {
            link,
            sentry,
            group,
            guarding: Guarding::new(until, spans, self.on_loss),
            alarm: Alarm::new(),
            signals,
            loss_pipe: Some(writer),
        };
        guardian.watch(children).await;
        Ok(())
    }

    fn launch(&self, stdin: OwnedFd, loss: &OwnedFd) -> io::Result<Pid> {
        let mut command = program("lock-launch");
        command
            .arg("launch")
            .args(["--parent", &getpid().as_raw_nonzero().to_string()])
            .args(["--voice", self.voice.name()]);
        if self.foreground {
            command.arg("--foreground");
        }
        // This handle does not wait for the child: `wait` collects any child that ends.
        let child = command
            .arg("--")
            .args(&self.command)
            .env("QUORLOCK_FD", loss.as_raw_fd().to_string())
            .stdin(Stdio::from(stdin))
            .spawn()?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        pid.ok_or_else(|| io::Error::other("the process has no valid id"))
    }
}

#[derive(Debug)]
struct Guardian {
    link: Link,
    sentry: ToSentry,
    group: Pid,
    guarding: Guarding,
    alarm: Alarm,
    signals: Signals,
    /// The command has the other end of this pipe. It is closed when the lock is lost.
    loss_pipe: Option<OwnedFd>,
}

impl Guardian {
    async fn watch(mut self, mut children: tokio::signal::unix::Signal) {
        let mut is_wrapper_gone = false;
        loop {
            // The clock is read before the link. A process that was stopped has orders waiting: all that were sent by
            // this time are heard before it is judged, so that a renewal is never overlooked.
            let now = Moment::now();
            for order in self.link.orders() {
                self.guarding.handle_order(now, order);
            }
            if self.link.is_closed() && !is_wrapper_gone {
                is_wrapper_gone = true;
                self.guarding.handle_wrapper_gone(now);
            }
            self.act();
            self.sentry.tell_until(self.guarding.last_resort());
            self.reap();
            let remains = self.remains();
            self.guarding.handle_timeout(now, remains);
            self.act();
            if let Some(last) = self.guarding.outcome(now, remains) {
                self.sentry.tell(Notice::Over);
                self.link.report(last);
                return;
            }
            self.next(&mut children).await;
        }
    }

    /// Waits until something has happened, or something is due.
    #[expect(
        clippy::disallowed_methods,
        reason = "the command runs on the real clock"
    )]
    async fn next(&mut self, children: &mut tokio::signal::unix::Signal) {
        let now = Moment::now();
        let at = self.guarding.poll_timeout(now);
        self.alarm.set(at);
        let mut sleep = pin!(tokio::time::sleep(at.since(now).min(LONGEST_SLEEP)));
        poll_fn(|cx| {
            let has_heard = !self.link.is_closed() && self.link.poll_received(cx).is_ready();
            // The alarm is a signal, too. It also comes when a machine that was suspended wakes up.
            if has_heard || children.poll_recv(cx).is_ready() || self.signals.poll(cx).is_ready() {
                return Poll::Ready(());
            }
            sleep.as_mut().poll(cx)
        })
        .await;
    }

    /// Does what was decided.
    fn act(&mut self) {
        while let Some(act) = self.guarding.poll_act() {
            match act {
                // The system does not reuse a group number while a process has it as its own or as its group's number,
                // even a dead process that its parent has not waited for.
                Act::Signal(signal) => {
                    let _ = kill_process_group(self.group, signal);
                }
                Act::KillStrays => {
                    for child in children() {
                        let _ = kill_process(child, Signal::KILL);
                    }
                }
                Act::CloseLossPipe => self.loss_pipe = None,
                Act::Report(report) => self.link.report(report),
            }
        }
    }

    /// Returns which processes exist. Those that have left the group and lost their parents are children of this one.
    fn remains(&self) -> Remains {
        if test_kill_process_group(self.group) != Err(rustix::io::Errno::SRCH) {
            Remains::Group
        } else if children().is_empty() {
            Remains::Nothing
        } else {
            Remains::Strays
        }
    }

    /// Collects the state changes of children.
    fn reap(&mut self) {
        let options = WaitOptions::NOHANG | WaitOptions::UNTRACED;
        while let Ok(Some((pid, status))) = wait(options) {
            if pid == self.group {
                self.note(status);
            }
        }
    }

    fn note(&mut self, status: WaitStatus) {
        if let Some(signal) = status.stopping_signal() {
            self.link.report(Report::Stopped(signal));
        } else if let Some(code) = status.exit_status() {
            self.guarding.handle_ended(Ended::Code(code));
        } else if let Some(signal) = status.terminating_signal() {
            self.guarding.handle_ended(Ended::Signal(signal));
        }
    }
}

/// Returns the children of this process, where the system shows them.
fn children() -> Vec<Pid> {
    let children = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    let children = children.split_whitespace();
    children
        .filter_map(|pid| Pid::from_raw(pid.parse().ok()?))
        .collect()
}
