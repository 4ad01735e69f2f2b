//! The process between wrapper and command. It knows until when the lock is valid, and ends the command's process
//! group by then, even if the wrapper is killed, stopped or busy.

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

use clap::{Args, ValueEnum};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, kill_process_group,
    test_kill_process_group, wait,
};
use tokio::signal::unix::SignalKind;

use super::clock::Moment;
use super::link::{Link, Order, Report, take_over};
use super::signals::{ENDING, Signals, TELLING};
use crate::failure::{Code, Failure};
use crate::voice::Voice;

/// The action on the command when the lock is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum OnLoss {
    /// Send TERM to the process group when the grace begins, and KILL before the validity ends.
    Kill,
    /// Send only TERM: the command may continue while others hold the lock.
    Term,
    /// Send no signal: the command must watch QUORLOCK_FD, which is then at its end.
    Ignore,
}

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

/// Time between two checks whether processes that are not children of this one have ended.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// The longest sleep. No timer counts the time for which a machine is suspended, so the clock is read at least this
/// often.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// How long processes may take to end after KILL. A process that survives longer is blocked in the system.
const PATIENCE: Duration = Duration::from_secs(5);

/// Returns the path of the program that this process runs.
pub(crate) fn program() -> PathBuf {
    // An update may have replaced or removed the file.
    match std::env::current_exe() {
        Ok(path) if path.exists() => path,
        _ => PathBuf::from("/proc/self/exe"),
    }
}

impl Guard {
    pub(crate) fn run(self) -> Code {
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
        let stdin = take_over(&stream)?;
        let mut link = Link::new(stream)?;
        // Grandchildren whose parents have ended become children of this process, which can wait for them and end them.
        #[cfg(target_os = "linux")]
        rustix::process::set_child_subreaper(Some(getpid()))?;
        // A signal that a service manager or a person sends to every process of the run is passed on by the wrapper, or
        // ends the wrapper. The guardian stays until the group has ended.
        let mut deaf = Signals::catch(&ENDING)?;
        deaf.catch_also(&TELLING)?;
        // This is set up before the command starts, so that its end is not missed.
        let children = tokio::signal::unix::signal(SignalKind::child())?;

        let until = Moment::of_nanos(self.until);
        let grace = Duration::from_nanos(self.grace_nanos);
        if until.before(grace) <= Moment::now() {
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
        link.report(Report::Started(group.as_raw_nonzero().get()));
        let guardian = Guardian {
            link,
            group,
            until,
            grace,
            reserve: Duration::from_nanos(self.reserve_nanos),
            on_loss: self.on_loss,
            ended: None,
            phase: Phase::Running,
            wrapper: Wrapper::Listens,
            loss_pipe: Some(writer),
        };
        guardian.watch(children).await;
        Ok(())
    }

    fn launch(&self, stdin: OwnedFd, loss: &OwnedFd) -> io::Result<Pid> {
        let mut command = Command::new(program());
        command
            .arg0("quorlock")
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
            .process_group(0)
            .spawn()?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        pid.ok_or_else(|| io::Error::other("the process has no valid id"))
    }
}

/// The state of the group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// The lock is held, as far as is known.
    Running,
    /// The lock is lost, and the command gets no further signal.
    Left,
    /// TERM was sent; KILL follows at `kill_at`.
    Ending { kill_at: Moment, why: Why },
    /// KILL was sent at this time.
    Killed { at: Moment, why: Why },
}

/// The reason why a group is ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Why {
    /// The lock is lost, or will be.
    Loss,
    /// The command has ended, but other processes of its group have not.
    Leftovers,
}

/// Whether the wrapper still exists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wrapper {
    Listens,
    Gone,
}

/// How the command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ended {
    Code(i32),
    Signal(i32),
}

/// An event that the guardian handles.
enum GuardianEvent {
    Order(Order),
    WrapperGone,
    Child,
    Time,
}

#[derive(Debug)]
struct Guardian {
    link: Link,
    group: Pid,
    until: Moment,
    grace: Duration,
    reserve: Duration,
    on_loss: OnLoss,
    ended: Option<Ended>,
    phase: Phase,
    wrapper: Wrapper,
    /// The command has the other end of this pipe. It is closed when the lock is lost.
    loss_pipe: Option<OwnedFd>,
}

impl Guardian {
    async fn watch(mut self, mut children: tokio::signal::unix::Signal) {
        loop {
            self.reap();
            self.act(Moment::now());
            if let Some(last) = self.last_words() {
                self.link.report(last);
                return;
            }
            match self.next(&mut children).await {
                GuardianEvent::Order(Order::Until(until)) => self.until = until,
                GuardianEvent::Order(Order::Lost) => self.lose(Moment::now()),
                GuardianEvent::Order(Order::Signal(number)) => self.pass_on(number),
                GuardianEvent::WrapperGone => {
                    self.wrapper = Wrapper::Gone;
                    // The lock is no longer renewed. It remains valid for a while, and this time is the command's
                    // grace.
                    self.tell_to_end(Moment::now());
                }
                GuardianEvent::Child | GuardianEvent::Time => {}
            }
        }
    }

    /// Returns the next event. Orders come first: a guardian that was stopped has orders waiting, and must not act on
    /// earlier information.
    #[expect(
        clippy::disallowed_methods,
        reason = "the command runs on the real clock"
    )]
    async fn next(&mut self, children: &mut tokio::signal::unix::Signal) -> GuardianEvent {
        let now = Moment::now();
        let sleep = self.wakes_at().since(now).min(LONGEST_SLEEP);
        let mut sleep = pin!(tokio::time::sleep(sleep));
        poll_fn(|cx| {
            if self.wrapper == Wrapper::Listens
                && let Poll::Ready(order) = self.link.poll_order(cx)
            {
                return Poll::Ready(order.map_or(GuardianEvent::WrapperGone, GuardianEvent::Order));
            }
            if children.poll_recv(cx).is_ready() {
                return Poll::Ready(GuardianEvent::Child);
            }
            sleep.as_mut().poll(cx).map(|()| GuardianEvent::Time)
        })
        .await
    }

    fn wakes_at(&self) -> Moment {
        match self.phase {
            Phase::Running => self.until.before(self.grace.max(self.reserve)),
            // The remaining processes of the group may be children of processes outside of it, so that their end causes
            // no event.
            _ if self.ended.is_some() => Moment::now().after(BETWEEN_LOOKS),
            Phase::Ending { kill_at, .. } => kill_at,
            Phase::Killed { .. } => Moment::now().after(BETWEEN_LOOKS),
            Phase::Left => Moment::now().after(LONGEST_SLEEP),
        }
    }

    /// Performs the action that is due, if any.
    fn act(&mut self, now: Moment) {
        match self.phase {
            Phase::Running if self.until.before(self.grace.max(self.reserve)) <= now => {
                self.link.report(Report::Ending);
                self.tell_to_end(now);
            }
            Phase::Running | Phase::Left if self.ended.is_some() && self.is_there() => {
                self.link.report(Report::LeftOthers);
                let kill_at = now.after(self.grace).min(self.last_moment().max(now));
                self.terminate(kill_at, Why::Leftovers);
            }
            Phase::Ending { kill_at, why } if kill_at <= now => self.kill(now, why),
            Phase::Killed { why: Why::Loss, .. } => self.sweep(),
            _ => {}
        }
    }

    /// Returns when KILL has to be sent for the group to have ended by the end of the validity.
    fn last_moment(&self) -> Moment {
        self.until.before(self.reserve)
    }

    /// Handles a lock that will not be renewed but is still valid.
    fn tell_to_end(&mut self, now: Moment) {
        self.loss_pipe = None;
        if self.phase != Phase::Running {
            return;
        }
        match self.on_loss {
            OnLoss::Ignore => self.phase = Phase::Left,
            OnLoss::Term => {
                self.send(Signal::TERM);
                self.send(Signal::CONT);
                self.phase = Phase::Left;
            }
            OnLoss::Kill => {
                let kill_at = now.after(self.grace).min(self.last_moment());
                self.terminate(kill_at, Why::Loss);
            }
        }
    }

    /// Handles the loss of the lock.
    fn lose(&mut self, now: Moment) {
        self.loss_pipe = None;
        match (self.on_loss, self.phase) {
            (_, Phase::Killed { .. }) => {}
            (OnLoss::Kill, _) | (_, Phase::Ending { .. }) => self.kill(now, Why::Loss),
            _ => self.tell_to_end(now),
        }
    }

    fn terminate(&mut self, kill_at: Moment, why: Why) {
        self.send(Signal::TERM);
        // A stopped group receives TERM only when it continues.
        self.send(Signal::CONT);
        self.phase = Phase::Ending { kill_at, why };
    }

    fn kill(&mut self, now: Moment, why: Why) {
        self.send(Signal::KILL);
        self.phase = Phase::Killed { at: now, why };
    }

    /// Passes on a signal that the wrapper received.
    fn pass_on(&mut self, number: i32) {
        if let Some(signal) = Signal::from_named_raw(number) {
            self.send(signal);
        }
    }

    /// Sends a signal to the group. The system does not reuse a group number while a process has it as its own or as
    /// its group's number, even a dead process that its parent has not waited for.
    fn send(&self, signal: Signal) {
        let _ = kill_process_group(self.group, signal);
    }

    /// Returns whether any process of the group exists.
    fn is_there(&self) -> bool {
        test_kill_process_group(self.group) != Err(rustix::io::Errno::SRCH)
    }

    /// Kills processes that have left the group and lost their parents: daemons become children of this process.
    fn sweep(&self) {
        if self.ended.is_none() {
            return;
        }
        for child in children() {
            let _ = kill_process(child, Signal::KILL);
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
            self.ended = Some(Ended::Code(code));
        } else if let Some(signal) = status.terminating_signal() {
            self.ended = Some(Ended::Signal(signal));
        }
    }

    /// Returns the last report, if the run is over.
    fn last_words(&self) -> Option<Report> {
        let is_over = match self.phase {
            Phase::Killed { at, .. } if PATIENCE <= Moment::now().since(at) => {
                return Some(match (self.is_there(), self.ended) {
                    (false, Some(ended)) => ended.report(),
                    _ => Report::Survives,
                });
            }
            // Processes that have left the group have until KILL, too.
            Phase::Killed { why: Why::Loss, .. } | Phase::Ending { why: Why::Loss, .. } => {
                !self.is_there() && children().is_empty()
            }
            _ => !self.is_there(),
        };
        self.ended.filter(|_| is_over).map(Ended::report)
    }
}

impl Ended {
    fn report(self) -> Report {
        match self {
            Ended::Code(code) => Report::Exited(code),
            Ended::Signal(signal) => Report::Killed(signal),
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
