//! The process between wrapper and command. It knows until when the lock is valid, and ends the command's process group by
//! then, whatever becomes of the wrapper: killed, stopped, or busy.

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

/// What becomes of the command when the lock is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum OnLoss {
    /// TERM to the process group in time, and KILL before the validity ends.
    Kill,
    /// TERM alone: the command ends when it likes, also when others hold the lock.
    Term,
    /// Nothing: the command sees that QUORLOCK_FD is closed, if it looks.
    Ignore,
}

/// Stands between wrapper and command. Its standard input is the line to the wrapper.
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

/// How often is looked whether processes have gone that are no children of this one.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// No timer counts the time for which a machine is suspended: the clock is looked at as often as this.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// After KILL. What survives that hangs in the system.
const PATIENCE: Duration = Duration::from_secs(5);

/// The program that this process runs.
pub(crate) fn program() -> PathBuf {
    // An update may have put another file in its place, or none.
    match std::env::current_exe() {
        Ok(path) if path.exists() => path,
        _ => PathBuf::from("/proc/self/exe"),
    }
}

impl Guard {
    pub(crate) fn run(self) -> Code {
        // Before anything else is open, so that the numbers are small: a shell's redirections know those up to 9.
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
        // Grandchildren whose parents end become children of this process, which can wait for them and end them.
        #[cfg(target_os = "linux")]
        rustix::process::set_child_subreaper(Some(getpid()))?;
        // What a service manager or a person sends to every process of the run is passed on by the wrapper, or ends it. The
        // guardian stays until the group has gone.
        let mut deaf = Signals::catch(&ENDING)?;
        deaf.catch_also(&TELLING)?;
        // Before the command is there, so that no end of it is missed.
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
        // Not waited for by this handle: `wait` takes what ends, whichever it is.
        let child = command
            .arg("--")
            .args(&self.command)
            .env("QUORLOCK_FD", loss.as_raw_fd().to_string())
            .stdin(Stdio::from(stdin))
            .process_group(0)
            .spawn()?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        pid.ok_or_else(|| io::Error::other("a process has no number"))
    }
}

/// Where the group is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// The lock is held, as far as is known.
    Running,
    /// The lock is lost, and the command was told all that it will be told.
    Left,
    /// TERM was sent; KILL comes then.
    Ending { kill_at: Moment, why: Why },
    /// KILL was sent then.
    Killed { at: Moment, why: Why },
}

/// Why a group is ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Why {
    /// The lock is lost, or will be.
    Loss,
    /// The command has ended, others of its group have not.
    Leftovers,
}

/// Who gave the orders.
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

/// What happens.
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
    /// Its other end is the command's. It is closed at the loss.
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
                    // Nothing renews the lock any more. It is valid for a while, which is the command's grace.
                    self.tell_to_end(Moment::now());
                }
                GuardianEvent::Child | GuardianEvent::Time => {}
            }
        }
    }

    /// Orders come first: a guardian that was stopped has some that waited, and may not go by what it knew before.
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
            // What is left of the group may be children of processes outside of it, and ends unheard.
            _ if self.ended.is_some() => Moment::now().after(BETWEEN_LOOKS),
            Phase::Ending { kill_at, .. } => kill_at,
            Phase::Killed { .. } => Moment::now().after(BETWEEN_LOOKS),
            Phase::Left => Moment::now().after(LONGEST_SLEEP),
        }
    }

    /// Does what the time calls for.
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

    /// When KILL has to be sent for the group to have gone by the end of the validity.
    fn last_moment(&self) -> Moment {
        self.until.before(self.reserve)
    }

    /// The lock will not be renewed, and is still valid.
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

    /// The lock is not ours any more.
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
        // A group that is stopped hears of it only when it goes on.
        self.send(Signal::CONT);
        self.phase = Phase::Ending { kill_at, why };
    }

    fn kill(&mut self, now: Moment, why: Why) {
        self.send(Signal::KILL);
        self.phase = Phase::Killed { at: now, why };
    }

    /// What the wrapper was sent.
    fn pass_on(&mut self, number: i32) {
        if let Some(signal) = Signal::from_named_raw(number) {
            self.send(signal);
        }
    }

    /// A number is not given to another group while a process has it as its own or as its group's, also a dead one that
    /// no parent has waited for.
    fn send(&self, signal: Signal) {
        let _ = kill_process_group(self.group, signal);
    }

    /// Whether anything is left of the group.
    fn is_there(&self) -> bool {
        test_kill_process_group(self.group) != Err(rustix::io::Errno::SRCH)
    }

    /// Ends what has left the group, and has lost its parents: daemons become children of this process.
    fn sweep(&self) {
        if self.ended.is_none() {
            return;
        }
        for child in children() {
            let _ = kill_process(child, Signal::KILL);
        }
    }

    /// Takes note of what has become of children.
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

    /// How the run ended, if it has.
    fn last_words(&self) -> Option<Report> {
        let is_over = match self.phase {
            Phase::Killed { at, .. } if PATIENCE <= Moment::now().since(at) => {
                return Some(match (self.is_there(), self.ended) {
                    (false, Some(ended)) => ended.report(),
                    _ => Report::Survives,
                });
            }
            // What has left the group has until KILL, too.
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

/// The children of this process, where the system tells.
fn children() -> Vec<Pid> {
    let children = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    let children = children.split_whitespace();
    children
        .filter_map(|pid| Pid::from_raw(pid.parse().ok()?))
        .collect()
}
