//! The state of a client and its process: its clocks, and what stops it.

use std::collections::VecDeque;

use quorlock::OwnerId;
use quorlock::transport::Wake;

use crate::history::HoldId;
use crate::world::call::Call;
use crate::world::clock::{Clock, right_wall_clock};
use crate::world::id::{ClientId, FaultId, ProcessId};
use crate::world::slab::Key;
use crate::world::stop::Stops;
use crate::world::subscription::Subscribed;
use crate::world::task::Task;
use crate::world::witnesses::Attendance;
use quorlock_sim_plan::draw::{Draw, Purpose};

/// The state of a client: its process, its clocks, and what faults do to it.
#[derive(Debug)]
pub struct ClientState {
    restarts: u16,
    /// The current process, unless the client is down.
    process: Option<ProcessId>,
    /// When the last process ended.
    died_at: u64,
    monotonic: Clock,
    /// The wall clock, in nanoseconds since 1970.
    wall: Clock,
    random: Draw,
    paused_until: u64,
    pauses: u32,
    pauses_inside: Vec<Counted>,
    cancels: Vec<Counted>,
    stops: Stops,
    missed: Missed,
    /// When calls time out, on the monotonic clock, in the order of departure.
    deadlines: VecDeque<(u64, Key<Call>)>,
    watches_deadlines: bool,
    /// The holds that the client won most recently.
    holds: Vec<((OwnerId, u64), HoldId)>,
}

/// What a process did not receive while it was paused.
#[derive(Debug, Default)]
pub(crate) struct Missed {
    /// Messages of subscriptions, and returns of nodes.
    pub(crate) mail: Vec<Mail>,
    /// Tasks that were woken.
    pub(crate) tasks: Vec<Key<Task>>,
}

/// The number of holds of one client that are remembered.
const REMEMBERED: usize = 32;

/// The hold that a guard belongs to.
#[derive(Clone, Copy, Debug)]
pub enum Known {
    /// A hold that was not known.
    New(HoldId),
    /// A hold that the client has entered again.
    Entered(HoldId),
}

impl Known {
    /// Returns the hold.
    pub fn id(self) -> HoldId {
        match self {
            Known::New(id) | Known::Entered(id) => id,
        }
    }

    /// Returns whether the hold was not known.
    pub fn is_new(self) -> bool {
        matches!(self, Known::New(_))
    }
}

/// A fault that takes effect at the n-th occasion after a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    left: u32,
    lasts: u64,
    fault: FaultId,
}

impl Counted {
    /// Creates a fault that takes effect at the `nth` occasion from now on, counted from 1.
    pub(crate) fn new(nth: u32, lasts: u64, fault: FaultId) -> Self {
        Counted {
            left: nth.max(1),
            lasts,
            fault,
        }
    }

    pub(crate) fn lasts(self) -> u64 {
        self.lasts
    }

    pub(crate) fn fault(self) -> FaultId {
        self.fault
    }

    /// Counts one occasion for all of these faults. Returns the first fault that is due.
    pub(crate) fn count(all: &mut Vec<Counted>) -> Option<Counted> {
        for counted in &mut *all {
            counted.left = counted.left.saturating_sub(1);
        }
        let due = all.iter().position(|counted| counted.left == 0)?;
        Some(all.swap_remove(due))
    }
}

/// A message of a subscription, or the return of a node.
#[derive(Clone, Copy, Debug)]
pub enum Mail {
    /// Messages flow to the listener of a subscription.
    Live(Key<Subscribed>),
    /// A message arrives at the listener of a subscription.
    Wake(Key<Subscribed>, Wake),
    /// A node can be reached.
    Reachable(Key<Attendance>),
}

impl ClientState {
    pub(crate) fn new(seed: u64, client: u16) -> Self {
        let mut draw = Draw::new(seed, Purpose::Clock, u64::from(client));
        let uptime = draw.between(1_000_000_000, 1_000_000_000_000_000);
        ClientState {
            restarts: 0,
            process: None,
            died_at: 0,
            monotonic: Clock::new(uptime),
            wall: right_wall_clock(),
            random: Draw::new(seed, Purpose::Client, u64::from(client) << 16),
            paused_until: 0,
            pauses: 0,
            pauses_inside: Vec::new(),
            cancels: Vec::new(),
            stops: Stops::default(),
            missed: Missed::default(),
            deadlines: VecDeque::new(),
            watches_deadlines: false,
            holds: Vec::new(),
        }
    }

    /// Returns how often the client was restarted.
    pub fn restarts(&self) -> u16 {
        self.restarts
    }

    /// Returns the current process, unless the client is down.
    pub fn process(&self) -> Option<ProcessId> {
        self.process
    }

    pub(crate) fn is_up(&self) -> bool {
        self.process.is_some()
    }

    /// Returns whether this is the current process.
    #[inline]
    pub fn is(&self, who: ProcessId) -> bool {
        self.process == Some(who)
    }

    /// Begins a process.
    pub(crate) fn boot(&mut self, run: u32, client: ClientId, seed: u64) -> ProcessId {
        let who = ProcessId {
            run,
            client,
            restarts: self.restarts,
        };
        self.paused_until = 0;
        self.process = Some(who);
        self.random = Draw::new(seed, Purpose::Client, who.stream());
        who
    }

    /// Ends the process.
    pub fn kill(&mut self, now: u64) {
        self.process = None;
        self.died_at = now;
        self.restarts += 1;
        self.missed = Missed::default();
        self.deadlines.clear();
        self.pauses_inside.clear();
        self.cancels.clear();
        self.stops.clear();
    }

    /// Returns whether this process ended before a message could leave it.
    pub fn died_before(&self, who: ProcessId, departs: u64) -> bool {
        self.restarts != who.restarts && self.died_at < departs
    }

    pub(crate) fn random_bits(&mut self) -> u64 {
        self.random.bits()
    }

    /// Returns the hold of this owner with this token. One that is new gets `next`.
    pub fn hold_of(&mut self, owner: OwnerId, token: u64, next: HoldId) -> Known {
        let mut known = self.holds.iter().rev();
        let known = known.find(|(known, _)| *known == (owner, token));
        if let Some((_, hold)) = known {
            return Known::Entered(*hold);
        }
        self.begin_hold(owner, token, next)
    }

    /// Records a hold that is new.
    pub fn begin_hold(&mut self, owner: OwnerId, token: u64, next: HoldId) -> Known {
        if self.holds.len() == REMEMBERED {
            self.holds.remove(0);
        }
        self.holds.push(((owner, token), next));
        Known::New(next)
    }

    #[inline]
    pub(crate) fn monotonic(&self) -> &Clock {
        &self.monotonic
    }

    pub(crate) fn wall(&self) -> &Clock {
        &self.wall
    }

    pub(crate) fn stop_monotonic(&mut self, now: u64, until: u64) {
        self.monotonic.stop(now, until);
    }

    pub(crate) fn step_wall(&mut self, now: u64, by: i64) {
        self.wall.step(now, by);
    }

    /// Changes the rate of both clocks.
    pub fn run_at(&mut self, now: u64, rate_ppm: i32) {
        self.monotonic.run_at(now, rate_ppm);
        self.wall.run_at(now, rate_ppm);
    }
}

/// Pauses and cancellations, and what a paused process misses.
impl ClientState {
    /// Returns the time at which the pause of the process ends, or an earlier time than now.
    #[inline]
    pub fn paused_until(&self) -> u64 {
        self.paused_until
    }

    /// Pauses the process until this time. Returns the number of the pause, or `None` if the process is already paused
    /// for longer.
    pub fn pause(&mut self, until: u64) -> Option<u32> {
        if until <= self.paused_until {
            return None;
        }
        self.paused_until = until;
        self.pauses += 1;
        Some(self.pauses)
    }

    /// Returns whether this is the pause that began last.
    pub(crate) fn is_pause(&self, pause: u32) -> bool {
        self.pauses == pause
    }

    pub(crate) fn pause_inside(&mut self, at: Counted) {
        self.pauses_inside.push(at);
    }

    #[inline]
    pub(crate) fn has_pauses_inside(&self) -> bool {
        !self.pauses_inside.is_empty()
    }

    /// Counts a use of a seam. Returns the pause that is due at this use.
    pub(crate) fn count_towards_pause(&mut self) -> Option<Counted> {
        Counted::count(&mut self.pauses_inside)
    }

    pub(crate) fn cancel(&mut self, at: Counted) {
        self.cancels.push(at);
    }

    /// Counts a wait for a future. Returns the fault that drops the future now, if one is due.
    #[inline]
    pub(crate) fn count_towards_cancel(&mut self) -> Option<Counted> {
        if self.cancels.is_empty() {
            return None;
        }
        Counted::count(&mut self.cancels)
    }

    /// Returns the tasks that are stopped in the middle of a step.
    pub(crate) fn stops(&mut self) -> &mut Stops {
        &mut self.stops
    }

    /// Keeps a task that was woken while the process is paused.
    pub(crate) fn miss_task(&mut self, task: Key<Task>) {
        self.missed.tasks.push(task);
    }

    /// Keeps a message that arrived while the process is paused.
    pub(crate) fn miss_mail(&mut self, mail: Mail) {
        self.missed.mail.push(mail);
    }

    pub(crate) fn take_missed(&mut self) -> Missed {
        std::mem::take(&mut self.missed)
    }
}

/// Deadlines of calls.
impl ClientState {
    /// Adds the deadline of a call. Returns when to check it, unless a check is already scheduled.
    pub(crate) fn watch_deadline(
        &mut self,
        departs: u64,
        timeout: u64,
        key: Key<Call>,
    ) -> Option<u64> {
        let deadline = self.monotonic.read(departs) + timeout;
        self.deadlines.push_back((deadline, key));
        if self.watches_deadlines {
            return None;
        }
        self.watches_deadlines = true;
        Some(self.monotonic.when(departs, deadline))
    }

    /// Returns the call that times out first, and its deadline.
    pub(crate) fn next_deadline(&self) -> Option<(u64, Key<Call>)> {
        self.deadlines.front().copied()
    }

    pub(crate) fn forget_deadline(&mut self) {
        self.deadlines.pop_front();
    }

    pub(crate) fn stop_watching_deadlines(&mut self) {
        self.watches_deadlines = false;
    }
}
