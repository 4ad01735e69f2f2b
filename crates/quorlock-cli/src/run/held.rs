//! Runs the command from its start to its end while the lock is held.

use std::ffi::OsString;
use std::future::{Future as _, poll_fn};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::pin::{Pin, pin};
use std::process::{Child, Stdio};
use std::task::Poll;
use std::time::Duration;

use clap::ValueEnum as _;
use quorlock::{Lost, LostSignal, ValidityWatch};
use rustix::process::{
    Pid, Signal, kill_current_process_group, kill_process, kill_process_group,
    test_kill_process_group,
};

use super::alarm::Alarm;
use super::clock::Moment;
use super::guardian::program;
use super::guarding::OnLoss;
use super::holding::{HoldThen, Holding, Moved};
use super::link::{Link, Order, Report, hand_over};
use super::notify::Notify;
use super::sentry::SentryProcess;
use super::signals::{Signals, TELLING};
use super::tenure::Tenure;
use super::terminal::{Terminal, is_a_job};
use super::timing::Timing;
use crate::failure::{Code, Failure};
use crate::messages::Voice;

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
    // The watch begins before the validity is read, so that no change is missed in between.
    let watch = tenure.watch_validity();
    let until = valid_until(tenure);
    let Started {
        guardian,
        sentry,
        link,
    } = start(work, until, terminal.as_ref())
        .map_err(|error| Failure::system("the guardian of the command cannot be started", error))?;
    let held = Held {
        work,
        tenure,
        watch,
        link,
        guardian,
        sentry,
        terminal,
        holding: Holding::new(until, work.timing.reserve, work.on_loss),
        alarm: Alarm::new(),
        group: None,
    };
    held.watch(signals).await
}

/// The processes that guard a command.
struct Started {
    guardian: Child,
    sentry: SentryProcess,
    link: Link,
}

/// Starts the sentry, and the guardian, which starts the command.
fn start(work: &Work<'_>, until: Moment, terminal: Option<&Terminal>) -> io::Result<Started> {
    let (ours, theirs) = UnixStream::pair()?;
    let (sentry, to_sentry) = SentryProcess::start(program("lock-sentry"))?;
    let nanos = |span: Duration| span.as_nanos().to_string();
    let on_loss = work.on_loss.to_possible_value();
    let on_loss = on_loss.map_or_else(String::new, |value| value.get_name().to_owned());
    let mut command = program("lock-guardian");
    command
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
    let guardian = command
        .arg("--")
        .args(work.command)
        .envs(work.variables.iter().map(|(name, value)| (name, value)))
        .env_remove(Notify::VARIABLE)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .spawn()?;
    // Only the guardian keeps its end of the sentry's pipe, which is closed when it ends.
    hand_over(&ours, [io::stdin().as_fd(), to_sentry.as_fd()])?;
    let link = Link::new(ours)?;
    Ok(Started {
        guardian,
        sentry,
        link,
    })
}

/// An event that the wrapper handles.
enum HeldEvent {
    Report(Report),
    GuardianGone,
    Signal(Signal),
    Lost(Lost),
    /// The validity ends at another time than before.
    Moved,
    Time,
}

struct Held<'a> {
    work: &'a Work<'a>,
    tenure: &'a dyn Tenure,
    watch: ValidityWatch,
    link: Link,
    guardian: Child,
    sentry: SentryProcess,
    terminal: Option<Terminal>,
    holding: Holding,
    alarm: Alarm,
    group: Option<Pid>,
}

impl Held<'_> {
    async fn watch(mut self, signals: &mut Signals) -> Result<End, Failure> {
        let mut lost = Some(self.tenure.lost());
        let end = loop {
            let event = self.next(signals, &mut lost).await;
            let moved = match event {
                HeldEvent::Moved => Moved::Yes,
                _ => Moved::No,
            };
            match event {
                HeldEvent::Report(report) => {
                    if let Some(end) = self.heard(report)? {
                        break end;
                    }
                }
                HeldEvent::GuardianGone => break self.without_guardian().await,
                HeldEvent::Signal(signal) => self.link.order(Order::Signal(signal.as_raw())),
                HeldEvent::Lost(how) => self.lost(how),
                HeldEvent::Moved | HeldEvent::Time => {}
            }
            self.tick(moved);
        };
        if let (Some(terminal), Some(group)) = (&self.terminal, self.group) {
            terminal.take_from(group);
        }
        let _ = self.guardian.wait();
        drop(self.sentry);
        Ok(end)
    }

    /// Returns the next event. What the guardian must learn comes before what it says.
    #[expect(
        clippy::disallowed_methods,
        reason = "the command runs on the real clock"
    )]
    async fn next(&mut self, signals: &mut Signals, lost: &mut Option<LostSignal>) -> HeldEvent {
        let now = Moment::now();
        let at = self.holding.poll_timeout(now, self.work.timing.tick());
        let mut sleep = pin!(tokio::time::sleep(at.since(now)));
        poll_fn(|cx| {
            if let Some(signal) = lost
                && let Poll::Ready(how) = Pin::new(signal).poll(cx)
            {
                *lost = None;
                return Poll::Ready(HeldEvent::Lost(how));
            }
            if self.watch.poll_changed(cx).is_ready() {
                return Poll::Ready(HeldEvent::Moved);
            }
            if let Poll::Ready(report) = self.link.poll_report(cx) {
                return Poll::Ready(report.map_or(HeldEvent::GuardianGone, HeldEvent::Report));
            }
            if let Poll::Ready(signal) = signals.poll(cx) {
                return Poll::Ready(HeldEvent::Signal(signal));
            }
            sleep.as_mut().poll(cx).map(|()| HeldEvent::Time)
        })
        .await
    }

    /// Sends the guardian the time until which the lock is valid, and kills the group itself if the guardian is late.
    fn tick(&mut self, moved: Moved) {
        let until = valid_until(self.tenure);
        if let Some(order) = self.holding.handle_validity(until, moved) {
            self.order(order);
        }
        self.link.flush();
        // Suppose this process is stopped, and then guardian and sentry are killed: only the alarm is left.
        if let Some(late) = self.holding.last_resort() {
            self.alarm.set(late);
        }
        if let Some(group) = self.group
            && self.holding.is_late(Moment::now())
        {
            let _ = kill_process_group(group, Signal::KILL);
            self.wake_guardian();
        }
    }

    /// Sends an order about the validity. Nothing may stop a guardian, so one that is stopped is continued: suppose the
    /// validity moves back, and then this process is stopped, too. The guardian would learn it too late.
    fn order(&mut self, order: Order) {
        self.link.order(order);
        self.wake_guardian();
    }

    fn lost(&mut self, how: Lost) {
        let order = self.holding.handle_lost(Moment::now());
        self.order(order);
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
                if self.holding.handle_ending() == HoldThen::Lost {
                    return Ok(None);
                }
                let left = self.holding.until().since(Moment::now());
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
        let hold = self.holding.hold();
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
                // running. The alarm must not continue a job that the shell shows as stopped.
                self.alarm.clear();
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
