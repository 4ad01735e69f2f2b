//! The world of the simulated processes: nodes, a rival, pipes, and the kernel.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use quorlock_core::fencing::Token;
use quorlock_core::lease::{Lease, Terms};
use quorlock_core::message::RenewReply;
use quorlock_core::quorum::{MemberId, Members, Threshold};
use quorlock_core::renewal::{Renewal, Status, Watchdog};
use quorlock_core::time::Time;
use rustix::process::Signal;

use super::super::clock::Moment;
use super::super::guarding::{Act, Ended, Guarding, OnLoss, Remains, Spans};
use super::super::holding::{Holding, Moved};
use super::super::link::{Order, Report};
use super::super::sentry::{Notice, Standing};
use super::super::timing::Timing;
use super::plan::{Fate, LATENCY, LEASE, Plan, Random, Who, ms};

/// The state of a process, for the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Runs,
    Stopped,
    Gone,
}

#[derive(Clone, Copy, Debug)]
struct Process {
    state: State,
    /// When it got its last turn.
    ran: Moment,
    alarm: Option<Moment>,
}

/// A claim on a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Claim {
    Ours(Moment),
    Rival,
    Free,
}

#[derive(Clone, Copy, Debug)]
enum Reply {
    Renewed(RenewReply),
    Granted,
    Failed,
}

#[derive(Clone, Copy, Debug)]
struct Answer {
    member: usize,
    sent: Moment,
    at: Moment,
    reply: Reply,
}

/// The command's process group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Group {
    has_command: bool,
    has_child: bool,
    ended: Option<Ended>,
}

#[derive(Debug)]
pub(super) struct World {
    plan: Plan,
    random: Random,
    now: Moment,
    processes: [Process; 3],
    claims: Vec<Claim>,
    group: Group,
    // The wrapper.
    renewal: Renewal,
    holding: Holding,
    answers: Vec<Answer>,
    is_loss_told: bool,
    /// The end of the validity, as the wrapper knows it, and when it last moved back.
    known: Moment,
    moved_back_at: Moment,
    moved_back: u32,
    exit: Option<i32>,
    // The guardian.
    orders: VecDeque<Order>,
    guarding: Guarding,
    reports: VecDeque<Report>,
    is_wrapper_gone_told: bool,
    told_sentry: Option<Moment>,
    // The sentry.
    notices: VecDeque<Notice>,
    standing: Standing,
    /// Whether a majority was free or the rival's.
    was_free: bool,
    was_deleted: bool,
    group_ended_at: Option<Moment>,
}

fn time(moment: Moment) -> Time {
    Time::from_nanos(moment.as_nanos())
}

fn moment(time: Time) -> Moment {
    Moment::of_nanos(time.as_nanos())
}

const STEP: Duration = Duration::from_millis(1);

impl World {
    /// Runs the plan to its end, and checks each step.
    pub(super) fn run(plan: Plan) -> World {
        let mut world = World::new(plan);
        // Some time after the end of the group the lock is free.
        while world.now < ms(6_000)
            && world.exit.is_none()
            && world
                .group_ended_at
                .is_none_or(|ended| world.now < ended.after(LEASE / 10))
        {
            world.now = world.now.after(STEP);
            world.strike();
            world.pass_time();
            for (index, who) in Who::ALL.into_iter().enumerate() {
                if world.gets_its_turn(index) {
                    world.turn(who);
                }
            }
            world.check();
        }
        world
    }

    fn new(plan: Plan) -> World {
        let lease = Lease::new(LEASE).unwrap();
        let timing = Timing::new(LEASE, None, None).unwrap();
        let members = Arc::new(Members::new([Threshold::majority(plan.members)]));
        let mut terms = Terms::new(members.clone());
        for member in members.all() {
            terms.confirm(member, lease.term(Time::ZERO));
        }
        let watchdog = Some(Watchdog::for_lease(lease));
        let renewal = Renewal::new(Time::ZERO, terms, lease, watchdog, Time::NEVER);
        let until = moment(renewal.valid_until());
        let spans = Spans {
            grace: timing.grace,
            reserve: timing.reserve,
        };
        let process = Process {
            state: State::Runs,
            ran: ms(0),
            alarm: None,
        };
        let mut standing = Standing::default();
        standing.handle(Notice::Group(1));
        World {
            random: Random(plan.seed),
            now: ms(0),
            processes: [process; 3],
            claims: vec![Claim::Ours(ms(0).after(LEASE)); plan.members],
            group: Group {
                has_command: true,
                has_child: true,
                ended: None,
            },
            renewal,
            holding: Holding::new(until, timing.reserve, OnLoss::Kill),
            answers: Vec::new(),
            is_loss_told: false,
            known: until,
            moved_back_at: ms(0),
            moved_back: 0,
            exit: None,
            orders: VecDeque::new(),
            guarding: Guarding::new(until, spans, OnLoss::Kill),
            reports: VecDeque::new(),
            is_wrapper_gone_told: false,
            told_sentry: None,
            notices: VecDeque::new(),
            standing,
            was_free: false,
            was_deleted: false,
            group_ended_at: None,
            plan,
        }
    }

    pub(super) fn is_group_alive(&self) -> bool {
        self.group.has_command || self.group.has_child
    }

    /// Whether another client could have won the lock.
    pub(super) fn was_free(&self) -> bool {
        self.was_free
    }

    /// How often the validity moved back before the lock was lost.
    pub(super) fn moved_back(&self) -> u32 {
        self.moved_back
    }

    /// The code with which the command ended, as the wrapper heard it.
    pub(super) fn exit(&self) -> Option<i32> {
        self.exit
    }

    fn process(&self, who: Who) -> &Process {
        &self.processes[who as usize]
    }

    fn set(&mut self, who: Who, state: State) {
        let process = &mut self.processes[who as usize];
        if process.state != State::Gone {
            process.state = state;
        }
        if who == Who::Guardian && state == State::Gone {
            // The kernel kills the command with its parent, but not the rest of the group.
            self.end_command(Ended::Signal(9));
        }
    }

    fn end_command(&mut self, ended: Ended) {
        if std::mem::take(&mut self.group.has_command) {
            self.group.ended = Some(ended);
        }
    }

    fn kill_group(&mut self) {
        self.end_command(Ended::Signal(9));
        self.group.has_child = false;
    }

    /// The signals that are due.
    fn strike(&mut self) {
        while let Some(fault) = self.plan.faults.first().copied() {
            // Between the news that the validity moved back and the guardian's next turn no process can do more.
            if self.now < fault.at || self.now < self.moved_back_at.after(LATENCY * 3) {
                return;
            }
            self.plan.faults.remove(0);
            let others = Who::ALL.into_iter().filter(|who| *who != fault.who);
            let is_last = others
                .map(|who| self.process(who).state)
                .all(|state| state == State::Gone);
            match fault.fate {
                Fate::Stopped => self.set(fault.who, State::Stopped),
                Fate::Continued => self.set(fault.who, State::Runs),
                Fate::Killed if is_last => {}
                Fate::Killed => self.set(fault.who, State::Gone),
            }
        }
    }

    /// What happens without our processes.
    fn pass_time(&mut self) {
        let now = self.now;
        for process in &mut self.processes {
            if process.state == State::Stopped && process.alarm.is_some_and(|at| at <= now) {
                process.state = State::Runs;
            }
        }
        if let Some((member, at)) = self.plan.deletion
            && at <= now
            && self.process(Who::Wrapper).state == State::Runs
        {
            self.plan.deletion = None;
            self.was_deleted = true;
            self.claims[member] = Claim::Free;
        }
        for claim in &mut self.claims {
            if matches!(claim, Claim::Ours(until) if *until <= now) {
                *claim = Claim::Free;
            }
            if self.plan.has_rival && *claim == Claim::Free {
                *claim = Claim::Rival;
            }
        }
        if self.plan.ends <= now && self.group.has_command {
            self.end_command(Ended::Code(0));
            self.group.has_child &= self.plan.leaves_child;
        }
    }

    fn gets_its_turn(&mut self, index: usize) -> bool {
        let is_due = self.processes[index].ran.after(LATENCY) <= self.now;
        let runs = self.processes[index].state == State::Runs && (is_due || self.random.one_in(2));
        if runs {
            self.processes[index].ran = self.now;
        }
        runs
    }

    fn turn(&mut self, who: Who) {
        match who {
            Who::Wrapper => self.wrap(),
            Who::Guardian => self.guard(),
            Who::Sentry => self.stand(),
        }
    }

    fn wrap(&mut self) {
        self.renew();
        let now = self.now;
        let is_held = self.renewal.status(time(now)) == Status::Held;
        if !is_held && !std::mem::replace(&mut self.is_loss_told, true) {
            let order = self.holding.handle_lost(now);
            self.order(order);
        }
        let until = match is_held {
            true => moment(self.renewal.valid_until()),
            false => now.min(self.known),
        };
        let moved = if until == self.known {
            Moved::No
        } else {
            Moved::Yes
        };
        if until < self.known {
            self.moved_back += u32::from(is_held);
            self.moved_back_at = now;
        }
        self.known = until;
        // The process may not be scheduled between the two clocks of a reading.
        let jitter = Duration::from_micros(self.random.below(2_000));
        if let Some(order) = self.holding.handle_validity(until.before(jitter), moved) {
            self.order(order);
        }
        assert!(
            self.holding.until() <= self.known,
            "the guardian's deadline is later than the validity: {:?}",
            self.plan
        );
        if self.holding.is_late(now) {
            self.kill_group();
            self.continue_guardian();
        }
        self.processes[Who::Wrapper as usize].alarm = self.holding.last_resort();
        while let Some(report) = self.reports.pop_front() {
            match report {
                Report::Ending => drop(self.holding.handle_ending()),
                Report::Exited(code) => self.exit = Some(code),
                Report::Killed(signal) => self.exit = Some(128 + signal),
                Report::Survives => panic!("nothing survives KILL: {:?}", self.plan),
                _ => {}
            }
        }
        if self.process(Who::Guardian).state == State::Gone {
            self.kill_group();
            self.exit = self.exit.or(Some(137));
        }
    }

    fn order(&mut self, order: Order) {
        self.orders.push_back(order);
        self.continue_guardian();
    }

    fn continue_guardian(&mut self) {
        if self.process(Who::Guardian).state == State::Stopped {
            self.set(Who::Guardian, State::Runs);
        }
    }

    /// Hears the answers of the nodes, and sends what is due.
    fn renew(&mut self) {
        let now = self.now;
        let lease = Lease::new(LEASE).unwrap();
        let (heard, later): (Vec<_>, Vec<_>) = std::mem::take(&mut self.answers)
            .into_iter()
            .partition(|answer| answer.at <= now);
        self.answers = later;
        for Answer {
            member,
            sent,
            reply,
            ..
        } in heard
        {
            let id = self.member(member);
            let (now, sent) = (time(now), time(sent));
            self.renewal.handle_end(id);
            match reply {
                Reply::Renewed(reply) => {
                    self.renewal.handle_renewed(now, id, sent, lease, reply);
                }
                Reply::Granted => drop(self.renewal.handle_granted(now, id, sent, lease)),
                Reply::Failed => self.renewal.handle_failed(now, id),
            }
        }
        for id in self.renewal.take_due(time(now), usize::MAX) {
            let (member, counts) = (id.index(), self.renewal.counts(id));
            let reply = self.execute(member, counts);
            let way = match reply {
                Reply::Failed => LEASE / 10,
                _ => Duration::from_millis(self.random.below(30)),
            };
            self.answers.push(Answer {
                member,
                sent: now,
                at: now.after(way),
                reply,
            });
        }
    }

    fn member(&self, index: usize) -> MemberId {
        let members = Members::new([Threshold::majority(self.plan.members)]);
        members.at(index).unwrap()
    }

    /// A node executes a renewal, or an acquire of a member that does not count.
    fn execute(&mut self, member: usize, counts: bool) -> Reply {
        let now = self.now;
        let mut silences = self.plan.silences.iter();
        if silences.any(|(silent, from, to)| *silent == member && *from <= now && now < *to) {
            return Reply::Failed;
        }
        match (self.claims[member], counts) {
            (Claim::Ours(_), _) | (Claim::Free, false) => {
                self.claims[member] = Claim::Ours(now.after(LEASE));
                match counts {
                    true => Reply::Renewed(RenewReply::AlreadyYours { token: Token(1) }),
                    false => Reply::Granted,
                }
            }
            (Claim::Free | Claim::Rival, true) => Reply::Renewed(RenewReply::NotYours),
            (Claim::Rival, false) => Reply::Failed,
        }
    }

    fn guard(&mut self) {
        let now = self.now;
        while let Some(order) = self.orders.pop_front() {
            self.guarding.handle_order(now, order);
        }
        let is_wrapper_gone = self.process(Who::Wrapper).state == State::Gone;
        if is_wrapper_gone && !std::mem::replace(&mut self.is_wrapper_gone_told, true) {
            self.guarding.handle_wrapper_gone(now);
        }
        self.act();
        let last_resort = self.guarding.last_resort();
        if last_resort != self.told_sentry {
            self.told_sentry = last_resort;
            self.notices.extend(last_resort.map(Notice::Until));
        }
        if let Some(ended) = self.group.ended {
            self.guarding.handle_ended(ended);
        }
        let remains = match self.is_group_alive() {
            true => Remains::Group,
            false => Remains::Nothing,
        };
        self.guarding.handle_timeout(now, remains);
        self.act();
        if let Some(last) = self.guarding.outcome(now, remains) {
            self.notices.push_back(Notice::Over);
            self.reports.push_back(last);
            self.set(Who::Guardian, State::Gone);
            // A wrapper that was killed hears no report, and the run is over with the guardian.
            if is_wrapper_gone {
                self.exit = Some(137);
            }
        }
        let alarm = self.guarding.poll_timeout(now);
        self.processes[Who::Guardian as usize].alarm = Some(alarm);
    }

    fn act(&mut self) {
        while let Some(act) = self.guarding.poll_act() {
            match act {
                Act::Signal(Signal::KILL) => self.kill_group(),
                Act::Signal(Signal::TERM) if self.plan.heeds_term => {
                    self.end_command(Ended::Code(0));
                    self.group.has_child = false;
                }
                Act::Report(report) => self.reports.push_back(report),
                Act::Signal(_) | Act::KillStrays | Act::CloseLossPipe => {}
            }
        }
    }

    fn stand(&mut self) {
        while let Some(notice) = self.notices.pop_front() {
            self.standing.handle(notice);
        }
        let is_guardian_gone = self.process(Who::Guardian).state == State::Gone;
        let doomed = match is_guardian_gone && !self.standing.is_over() {
            true => self.standing.handle_guardian_gone(),
            false => self.standing.handle_timeout(self.now),
        };
        if doomed.is_some() {
            self.kill_group();
        }
        self.processes[Who::Sentry as usize].alarm = self.standing.poll_timeout();
    }

    /// The promises.
    fn check(&mut self) {
        let ours = |claim: &&Claim| matches!(claim, Claim::Ours(_));
        let others = self.plan.members - self.claims.iter().filter(ours).count();
        let is_free = Threshold::majority(self.plan.members).needed() <= others;
        self.was_free |= is_free;
        if !self.is_group_alive() {
            self.group_ended_at = self.group_ended_at.or(Some(self.now));
            return;
        }
        let until = self.known.max(self.moved_back_at.after(LATENCY * 3));
        assert!(self.now < until, "it lives beyond its validity: {self:?}");
        // What is deleted before the wrapper has heard of it is beyond what a lease promises.
        assert!(
            !is_free || self.was_deleted,
            "it lives while the lock is free: {self:?}"
        );
    }
}
