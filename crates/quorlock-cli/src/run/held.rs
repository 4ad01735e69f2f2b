//! Runs the command from its start to its end while the lock is held.

use std::ffi::OsString;
use std::future::{Future as _, poll_fn};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::pin::{Pin, pin};
use std::process::{Child, Command, Stdio};
use std::task::Poll;
use std::time::Duration;

use clap::ValueEnum as _;
use quorlock::{Lost, LostSignal};
use rustix::process::{
    Pid, Signal, kill_current_process_group, kill_process, kill_process_group,
    test_kill_process_group,
};

use super::clock::Moment;
use super::guardian::{OnLoss, program};
use super::link::{Link, Order, Report, hand_over};
use super::notify::Notify;
use super::signals::{Signals, TELLING};
use super::tenure::Tenure;
use super::terminal::{Terminal, is_a_job};
use super::timing::Timing;
use crate::failure::{Code, Failure};
use crate::voice::Voice;

/// The command that runs while the lock is held, and how it runs.
#[derive(Debug)]
pub(crate) struct Work<'a> {
    pub(crate) command: &'a [OsString],
    /// Variables in the environment of the command.
    pub(crate) variables: Vec<(String, String)>,
    pub(crate) timing: Timing,
    pub(crate) on_loss: OnLoss,
    pub(crate) voice: Voice,
}

/// The end of a run: its exit code, and what became of the lock and the process group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct End {
    pub(crate) code: Code,
    pub(crate) hold: HoldThen,
    pub(crate) group: GroupThen,
}

/// Whether the lock was held for as long as the command ran.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HoldThen {
    Held,
    Lost,
}

/// Whether the process group has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum GroupThen {
    Gone,
    /// The group could not be ended, so others must not get the lock before its lease ends.
    Survives,
}

/// How long the group may take to end when there is no guardian to report it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Time between two checks whether the group has ended.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// Returns until when the lock is valid. The clock is read before the validity: a delay in between can only make the
/// result earlier.
pub(crate) fn valid_until(tenure: &dyn Tenure) -> Moment {
    let now = Moment::now();
    now.after(tenure.validity())
}

/// Runs the command while the lock is held.
pub(crate) async fn run(
    work: &Work<'_>,
    tenure: &dyn Tenure,
    signals: &mut Signals,
) -> Result<End, Failure> {
    signals
        .catch_also(&TELLING)
        .map_err(|error| Failure::system("signals cannot be caught", error))?;
    // If the guardian is killed, its children become children of this process, which ends them and waits for them.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    let terminal = Terminal::open();
    let until = valid_until(tenure);
    let (guardian, link) = start(work, until, terminal.as_ref())
        .map_err(|error| Failure::system("the guardian of the command cannot be started", error))?;
    let held = Held {
        work,
        tenure,
        link,
        guardian,
        terminal,
        until,
        group: None,
        hold: HoldThen::Held,
    };
    held.watch(signals).await
}

/// Starts the guardian, which starts the command.
fn start(work: &Work<'_>, until: Moment, terminal: Option<&Terminal>) -> io::Result<(Child, Link)> {
    let (ours, theirs) = UnixStream::pair()?;
    let nanos = |span: Duration| span.as_nanos().to_string();
    let on_loss = work.on_loss.to_possible_value();
    let on_loss = on_loss.map_or_else(String::new, |value| value.get_name().to_owned());
    let mut command = Command::new(program());
    command
        .arg0("quorlock")
        .arg("guard")
        .args(["--until", &until.as_nanos().to_string()])
        .args(["--grace-nanos", &nanos(work.timing.grace)])
        .args(["--reserve-nanos", &nanos(work.timing.reserve)])
        .args(["--on-loss", &on_loss])
        .args(["--voice", work.voice.name()]);
    // In a pipeline the other programs would lose the terminal, so there the command gets it only when it reads from
    // it.
    let is_interactive =
        rustix::termios::isatty(io::stdin()) && rustix::termios::isatty(io::stdout());
    if is_interactive && terminal.is_some_and(Terminal::is_ours) {
        command.arg("--foreground");
    }
    // The guardian has its own process group: a signal that a terminal or a shell sends to the wrapper's group must not
    // stop it.
    let guardian = command
        .arg("--")
        .args(work.command)
        .envs(work.variables.iter().map(|(name, value)| (name, value)))
        .env_remove(Notify::VARIABLE)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .process_group(0)
        .spawn()?;
    hand_over(&ours, io::stdin())?;
    Ok((guardian, Link::new(ours)?))
}

/// An event that the wrapper handles.
enum HeldEvent {
    Report(Report),
    GuardianGone,
    Signal(Signal),
    Lost(Lost),
    Time,
}

struct Held<'a> {
    work: &'a Work<'a>,
    tenure: &'a dyn Tenure,
    link: Link,
    guardian: Child,
    terminal: Option<Terminal>,
    /// Time until which the lock is valid, as sent to the guardian.
    until: Moment,
    group: Option<Pid>,
    hold: HoldThen,
}

impl Held<'_> {
    async fn watch(mut self, signals: &mut Signals) -> Result<End, Failure> {
        let mut lost = Some(self.tenure.lost());
        let end = loop {
            let event = self.next(signals, &mut lost).await;
            match event {
                HeldEvent::Report(report) => {
                    if let Some(end) = self.heard(report)? {
                        break end;
                    }
                }
                HeldEvent::GuardianGone => break self.without_guardian().await,
                HeldEvent::Signal(signal) => self.link.order(Order::Signal(signal.as_raw())),
                HeldEvent::Lost(how) => self.lost(how),
                HeldEvent::Time => {}
            }
            self.tick();
        };
        if let (Some(terminal), Some(group)) = (&self.terminal, self.group) {
            terminal.take_from(group);
        }
        let _ = self.guardian.wait();
        Ok(end)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the command runs on the real clock"
    )]
    async fn next(&mut self, signals: &mut Signals, lost: &mut Option<LostSignal>) -> HeldEvent {
        let mut sleep = pin!(tokio::time::sleep(self.work.timing.tick()));
        poll_fn(|cx| {
            if let Poll::Ready(report) = self.link.poll_report(cx) {
                return Poll::Ready(report.map_or(HeldEvent::GuardianGone, HeldEvent::Report));
            }
            if let Some(signal) = lost
                && let Poll::Ready(how) = Pin::new(signal).poll(cx)
            {
                *lost = None;
                return Poll::Ready(HeldEvent::Lost(how));
            }
            if let Poll::Ready(signal) = signals.poll(cx) {
                return Poll::Ready(HeldEvent::Signal(signal));
            }
            sleep.as_mut().poll(cx).map(|()| HeldEvent::Time)
        })
        .await
    }

    /// Sends the guardian the time until which the lock is valid, and kills the group itself if the guardian is late.
    fn tick(&mut self) {
        let until = valid_until(self.tenure);
        // Two readings of the same validity differ by less than a millisecond.
        if self.hold == HoldThen::Held && Duration::from_millis(1) < until.since(self.until) {
            self.until = until;
            self.link.order(Order::Until(until));
        }
        self.link.flush();
        let is_late = self.until.before(self.work.timing.reserve / 2) <= Moment::now();
        if is_late
            && self.work.on_loss == OnLoss::Kill
            && let Some(group) = self.group
        {
            // The guardian is stopped, or the machine is so busy that the guardian is not scheduled.
            let _ = kill_process_group(group, Signal::KILL);
            self.wake_guardian();
        }
    }

    fn lost(&mut self, how: Lost) {
        self.hold = HoldThen::Lost;
        self.until = self.until.min(Moment::now());
        self.link.order(Order::Lost);
        let what = match self.work.on_loss {
            OnLoss::Kill => "the command is ended",
            OnLoss::Term => "TERM is sent to the command",
            OnLoss::Ignore => "the command continues without it (--on-loss ignore)",
        };
        let text = format!("{how}: {what}");
        self.work.voice.warn("lost", &text, &[]);
    }

    /// Handles a report of the guardian. Returns how the command ended, if it has.
    fn heard(&mut self, report: Report) -> Result<Option<End>, Failure> {
        match report {
            Report::Started(group) => {
                self.group = Pid::from_raw(group);
                self.work.voice.event("started", &[("group", group.into())]);
                Ok(None)
            }
            Report::Stopped(signal) => {
                self.stopped(signal);
                Ok(None)
            }
            Report::Ending => {
                let was = std::mem::replace(&mut self.hold, HoldThen::Lost);
                if was == HoldThen::Lost {
                    return Ok(None);
                }
                let left = self.until.since(Moment::now());
                let text = format!(
                    "the lock was not renewed in time, and ends in {:.1} s: the command must end by then",
                    left.as_secs_f64()
                );
                self.work.voice.warn("ending", &text, &[]);
                Ok(None)
            }
            Report::LeftOthers => {
                let text =
                    "the command left processes behind: they are ended before the lock is released";
                self.work.voice.warn("left-others", text, &[]);
                Ok(None)
            }
            Report::Exited(code) => {
                let code = Code(u8::try_from(code & 0xff).unwrap_or(u8::MAX));
                Ok(Some(self.end(code, GroupThen::Gone)))
            }
            Report::Killed(signal) => Ok(Some(self.end(Code::of_signal(signal), GroupThen::Gone))),
            Report::TooLate => Err(Failure::new(
                Code::UNAVAILABLE,
                "the lock was acquired, but too little of its validity was left to start the command",
            )),
            Report::Failed => Err(Failure::new(
                Code::SYSTEM,
                "the command could not be started",
            )),
            Report::Survives => {
                let text = "processes of the command cannot be ended: the lock is not released, and is free when its lease ends";
                self.work.voice.warn("survives", text, &[]);
                Ok(Some(self.end(Code::LOST, GroupThen::Survives)))
            }
        }
    }

    fn end(&self, code: Code, group: GroupThen) -> End {
        let hold = self.hold;
        End { code, hold, group }
    }

    /// Handles a stopped command. One that stopped because it needs the terminal gets it. One that was stopped at the
    /// terminal stops this job too, as a shell expects.
    fn stopped(&mut self, signal: i32) {
        let Some(group) = self.group else { return };
        let Some(terminal) = &self.terminal else {
            return;
        };
        let signal = Signal::from_named_raw(signal);
        let wants_terminal = signal == Some(Signal::TTIN) || signal == Some(Signal::TTOU);
        if wants_terminal && terminal.is_ours() {
            let _ = terminal.give(group);
        } else if wants_terminal || signal == Some(Signal::TSTP) {
            let had_terminal = terminal.is_of(group);
            terminal.take_from(group);
            if is_a_job() {
                // This process stops here until the shell continues it, and so does the renewal. The guardian keeps
                // running.
                let _ = kill_current_process_group(Signal::STOP);
            }
            if had_terminal && terminal.is_ours() {
                let _ = terminal.give(group);
            }
        } else {
            return;
        }
        self.link.order(Order::Signal(Signal::CONT.as_raw()));
    }

    /// Ends the command after the guardian was killed. On Linux the command is killed with the guardian, and this
    /// process kills the rest of its group.
    #[expect(
        clippy::disallowed_methods,
        reason = "the command runs on the real clock"
    )]
    async fn without_guardian(&mut self) -> End {
        let text = "the guardian of the command is gone: the command is ended";
        self.work.voice.warn("guardian-gone", text, &[]);
        let killed = Code::of_signal(Signal::KILL.as_raw());
        let Some(group) = self.group else {
            return self.end(killed, GroupThen::Gone);
        };
        let until = Moment::now().after(PATIENCE);
        while Moment::now() < until {
            let _ = kill_process_group(group, Signal::KILL);
            // Orphans have become children of this process.
            while let Ok(Some(_)) = rustix::process::wait(rustix::process::WaitOptions::NOHANG) {}
            if test_kill_process_group(group) == Err(rustix::io::Errno::SRCH) {
                return self.end(killed, GroupThen::Gone);
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
        self.end(killed, GroupThen::Survives)
    }

    fn wake_guardian(&self) {
        let pid = i32::try_from(self.guardian.id()).ok();
        if let Some(pid) = pid.and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::CONT);
        }
    }
}
