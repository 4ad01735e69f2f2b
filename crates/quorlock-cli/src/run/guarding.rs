//! The decisions of the guardian: which signal the command's group gets, and when. Time is an input, so that the
//! guardian's process and the simulated run (`simulated`) make the same decisions.

use std::collections::VecDeque;
use std::time::Duration;

use clap::ValueEnum;
use rustix::process::Signal;

use super::clock::Moment;
use super::link::{Order, Report};

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

/// Time between two checks whether processes that are not children of the guardian have ended.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// The longest time between two decisions. No timer of tokio counts the time for which a machine is suspended, so the
/// clock is read at least this often.
pub(super) const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// How long processes may take to end after KILL. A process that survives longer is blocked in the system.
const PATIENCE: Duration = Duration::from_secs(5);

/// The state of the group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// The lock is held, as far as is known.
    Running,
    /// The lock is lost, and the command gets no further signal.
    Left,
    /// TERM was sent; KILL follows at `kill_at`, or earlier if the validity ends earlier.
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

/// How the command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ended {
    Code(i32),
    Signal(i32),
}

/// The processes that exist.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Remains {
    /// Processes of the group.
    Group,
    /// No process of the group, but children that have left it.
    Strays,
    Nothing,
}

/// What the guardian's process does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Act {
    /// Sends a signal to the group.
    Signal(Signal),
    /// Kills processes that have left the group and lost their parents.
    KillStrays,
    /// Closes the pipe by which the command sees the loss.
    CloseLossPipe,
    Report(Report),
}

/// The times by which a group is ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Spans {
    /// Time from TERM to the end of the validity.
    pub(super) grace: Duration,
    /// Time from KILL to the end of the validity.
    pub(super) reserve: Duration,
}

/// The guardian of one run.
///
/// [`Guarding::handle_order`] takes every order that has arrived, and only then [`Guarding::handle_timeout`] judges the
/// time: the last of several orders is the valid one.
#[derive(Debug)]
pub(super) struct Guarding {
    until: Moment,
    spans: Spans,
    on_loss: OnLoss,
    phase: Phase,
    ended: Option<Ended>,
    acts: VecDeque<Act>,
}

impl Guarding {
    /// Returns the guardian of a command that has started under a lock that is valid until this time.
    pub(super) fn new(until: Moment, spans: Spans, on_loss: OnLoss) -> Self {
        Guarding {
            until,
            spans,
            on_loss,
            phase: Phase::Running,
            ended: None,
            acts: VecDeque::new(),
        }
    }

    /// Handles an order of the wrapper.
    pub(super) fn handle_order(&mut self, now: Moment, order: Order) {
        match order {
            Order::Until(until) => self.until = until,
            Order::Lost => self.lose(now),
            Order::Signal(number) => {
                let signal = Signal::from_named_raw(number);
                self.acts.extend(signal.map(Act::Signal));
            }
        }
    }

    /// Handles the end of the wrapper. The lock is no longer renewed. It remains valid for a while, and this time is
    /// the command's grace.
    pub(super) fn handle_wrapper_gone(&mut self, now: Moment) {
        self.tell_to_end(now);
    }

    /// Handles the end of the command.
    pub(super) fn handle_ended(&mut self, ended: Ended) {
        self.ended = Some(ended);
    }

    /// Decides what is due.
    pub(super) fn handle_timeout(&mut self, now: Moment, remains: Remains) {
        match self.phase {
            Phase::Running if self.term_at() <= now => {
                self.acts.push_back(Act::Report(Report::Ending));
                self.tell_to_end(now);
            }
            Phase::Running | Phase::Left if self.ended.is_some() && remains == Remains::Group => {
                self.acts.push_back(Act::Report(Report::LeftOthers));
                self.terminate(now, Why::Leftovers);
            }
            Phase::Ending { kill_at, why } if kill_at.min(self.last_moment()) <= now => {
                self.kill(now, why);
            }
            Phase::Killed { why: Why::Loss, .. } if self.ended.is_some() => {
                self.acts.push_back(Act::KillStrays);
            }
            _ => {}
        }
    }

    /// Returns the next thing to do.
    pub(super) fn poll_act(&mut self) -> Option<Act> {
        self.acts.pop_front()
    }

    /// Returns the last report, if the run is over.
    pub(super) fn outcome(&self, now: Moment, remains: Remains) -> Option<Report> {
        let is_over = match self.phase {
            Phase::Killed { at, .. } if PATIENCE <= now.since(at) => {
                return Some(match (remains, self.ended) {
                    (Remains::Strays | Remains::Nothing, Some(ended)) => ended.report(),
                    _ => Report::Survives,
                });
            }
            // Processes that have left the group have until KILL, too.
            Phase::Killed { why: Why::Loss, .. } | Phase::Ending { why: Why::Loss, .. } => {
                remains == Remains::Nothing
            }
            _ => remains != Remains::Group,
        };
        self.ended.filter(|_| is_over).map(Ended::report)
    }

    /// Returns when to call [`Guarding::handle_timeout`] again, if nothing else happens.
    pub(super) fn poll_timeout(&self, now: Moment) -> Moment {
        match self.phase {
            Phase::Running => self.term_at(),
            // The remaining processes of the group may be children of processes outside of it, so that their end causes
            // no event.
            _ if self.ended.is_some() => now.after(BETWEEN_LOOKS),
            Phase::Ending { kill_at, .. } => kill_at.min(self.last_moment()),
            Phase::Killed { .. } => now.after(BETWEEN_LOOKS),
            Phase::Left => now.after(LONGEST_SLEEP),
        }
    }

    /// Returns when another process has to kill the group, if this one has not. A quarter of the reserve is left then:
    /// the wrapper has done so at half of it.
    pub(super) fn last_resort(&self) -> Option<Moment> {
        let last = self.until.before(self.spans.reserve / 4);
        (self.on_loss == OnLoss::Kill).then_some(last)
    }

    fn term_at(&self) -> Moment {
        self.until.before(self.spans.grace.max(self.spans.reserve))
    }

    /// Returns when KILL has to be sent for the group to have ended by the end of the validity.
    fn last_moment(&self) -> Moment {
        self.until.before(self.spans.reserve)
    }

    /// Handles a lock that will not be renewed but is still valid.
    fn tell_to_end(&mut self, now: Moment) {
        self.acts.push_back(Act::CloseLossPipe);
        if self.phase != Phase::Running {
            return;
        }
        match self.on_loss {
            OnLoss::Ignore => self.phase = Phase::Left,
            OnLoss::Term => {
                self.term();
                self.phase = Phase::Left;
            }
            OnLoss::Kill => self.terminate(now, Why::Loss),
        }
    }

    /// Handles the loss of the lock.
    fn lose(&mut self, now: Moment) {
        self.acts.push_back(Act::CloseLossPipe);
        match (self.on_loss, self.phase) {
            (_, Phase::Killed { .. }) => {}
            (OnLoss::Kill, _) | (_, Phase::Ending { .. }) => self.kill(now, Why::Loss),
            _ => self.tell_to_end(now),
        }
    }

    fn term(&mut self) {
        // A stopped group receives TERM only when it continues.
        let signals = [Signal::TERM, Signal::CONT];
        self.acts.extend(signals.map(Act::Signal));
    }

    fn terminate(&mut self, now: Moment, why: Why) {
        self.term();
        let kill_at = now.after(self.spans.grace);
        self.phase = Phase::Ending { kill_at, why };
    }

    fn kill(&mut self, now: Moment, why: Why) {
        self.acts.push_back(Act::Signal(Signal::KILL));
        self.phase = Phase::Killed { at: now, why };
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
