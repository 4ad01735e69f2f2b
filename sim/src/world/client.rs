//! A client process: its clocks, and what stops it.

use std::collections::VecDeque;

use quorlock::OwnerId;
use quorlock::transport::Wake;

use crate::engine::Stop;
use crate::engine::executor::Task;
use crate::history::{HoldId, Process};
use crate::plan::draw::{Draw, Purpose};
use crate::plan::fault::Suspended;
use crate::world::World;
use crate::world::call::Call;
use crate::world::clock::Clock;
use crate::world::event::What;
use crate::world::link::{FaultId, Line};
use crate::world::slab::Key;
use crate::world::subscription::Subscribed;

/// A process of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Who {
    pub(crate) run: u32,
    pub(crate) client: u16,
    pub(crate) restarts: u16,
}

impl Who {
    pub(crate) fn process(self) -> Process {
        Process {
            client: self.client,
            restarts: self.restarts,
        }
    }
}

#[derive(Debug)]
pub(crate) struct ClientState {
    pub(crate) restarts: u16,
    /// The process that it is now, unless it is down.
    pub(crate) process: Option<Who>,
    /// When it last ended.
    pub(crate) died_at: u64,
    pub(crate) monotonic: Clock,
    /// Nanoseconds since 1970.
    pub(crate) wall: Clock,
    pub(crate) random: Draw,
    pub(crate) paused_until: u64,
    pub(crate) pauses: u32,
    pub(crate) pauses_inside: Vec<Counted>,
    pub(crate) cancels: Vec<Counted>,
    pub(crate) stop: Option<Stop>,
    /// Woken while it was paused.
    pub(crate) parked: Vec<Key<Task>>,
    /// Heard while it was paused.
    pub(crate) mail: Vec<Mail>,
    /// When calls are out of time, on its monotonic clock.
    pub(crate) deadlines: VecDeque<(u64, Key<Call>)>,
    pub(crate) watches_deadlines: bool,
    /// The holds that it won last.
    holds: Vec<(OwnerId, HoldId)>,
}

/// How many holds of one client are remembered at a time.
const REMEMBERED: usize = 32;

/// A hold that a guard is of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Known {
    New(HoldId),
    Entered(HoldId),
}

impl Known {
    pub(crate) fn id(self) -> HoldId {
        match self {
            Known::New(id) | Known::Entered(id) => id,
        }
    }

    pub(crate) fn is_new(self) -> bool {
        matches!(self, Known::New(_))
    }
}

/// Something that happens at the n-th occasion from a time on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    pub(crate) left: u32,
    pub(crate) lasts: u64,
    pub(crate) fault: FaultId,
}

/// What a subscription brought.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mail {
    Live(Key<Subscribed>),
    Wake(Key<Subscribed>, Wake),
}

/// Where wall clocks begin: the beginning of 2026.
const EPOCH: u64 = 1_767_225_600_000_000_000;

/// The reading of a wall clock that is right, at the beginning of a run.
pub(crate) fn right_wall_clock() -> Clock {
    Clock::new(EPOCH)
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
            stop: None,
            parked: Vec::new(),
            mail: Vec::new(),
            deadlines: VecDeque::new(),
            watches_deadlines: false,
            holds: Vec::new(),
        }
    }
}

impl World {
    /// Stands still until then.
    pub(crate) fn pause_client(&mut self, client: u16, until: u64) {
        let state = self.client(client);
        if state.paused_until < until {
            state.paused_until = until;
            state.pauses += 1;
            let pause = state.pauses;
            self.push(until, What::ResumeClient(client, pause));
        }
    }

    /// One more use of the seams since pauses in the middle of things are due.
    #[cold]
    pub(crate) fn count_towards_pause(&mut self, client: u16) {
        let now = self.now;
        let state = self.client(client);
        for counted in &mut state.pauses_inside {
            counted.left = counted.left.saturating_sub(1);
        }
        let due = state.pauses_inside.iter().position(|c| c.left == 0);
        if let Some(due) = due {
            let counted = state.pauses_inside.swap_remove(due);
            self.blame(counted.fault);
            self.pause_client(client, now + counted.lasts);
        }
    }

    pub(crate) fn suspend_client(&mut self, client: u16, until: u64, clock: Suspended) {
        let now = self.now;
        self.pause_client(client, until);
        match clock {
            Suspended::Stops => self.client(client).monotonic.stop(now, until),
            Suspended::Counts => self.delay_alarms(client, until.saturating_sub(now)),
        }
    }

    /// Whether what the process waits for is to be dropped now.
    pub(crate) fn is_cancelled(&mut self, who: Who) -> bool {
        let Some(client) = self.clients.get_mut(usize::from(who.client)) else {
            return false;
        };
        if client.cancels.is_empty() {
            return false;
        }
        for counted in &mut client.cancels {
            counted.left = counted.left.saturating_sub(1);
        }
        let Some(due) = client.cancels.iter().position(|c| c.left == 0) else {
            return false;
        };
        let counted = client.cancels.swap_remove(due);
        self.blame(counted.fault);
        true
    }

    /// The hold of this owner, which is a new one if it was not seen before.
    pub(crate) fn hold_of(&mut self, who: Who, owner: OwnerId) -> Known {
        let next = HoldId(self.history.holds);
        let Some(client) = self.clients.get_mut(usize::from(who.client)) else {
            return Known::New(HoldId::NONE);
        };
        let known = client.holds.iter().rev().find(|(o, _)| *o == owner);
        if let Some((_, hold)) = known {
            return Known::Entered(*hold);
        }
        if client.holds.len() == REMEMBERED {
            client.holds.remove(0);
        }
        client.holds.push((owner, next));
        self.history.holds += 1;
        Known::New(next)
    }

    /// Starts it, for the first time or again, with new connections.
    pub(crate) fn boot(&mut self, client: u16) -> Who {
        let (run, seed) = (self.run, self.plan.seed);
        let state = self.client(client);
        state.paused_until = 0;
        let restarts = state.restarts;
        let who = Who {
            run,
            client,
            restarts,
        };
        state.process = Some(who);
        let stream = u64::from(client) << 16 | u64::from(restarts);
        state.random = Draw::new(seed, Purpose::Client, stream);
        if let Some(sockets) = &mut self.sockets {
            sockets.boot(who);
        }
        for node in 0..self.nodes.len() {
            let link = self.link(client, u16::try_from(node).unwrap_or(u16::MAX));
            link.line = if restarts == 0 { Line::Up } else { Line::Down };
            link.waiting.clear();
        }
        who
    }

    /// Ends it: from now on nothing that is left of it has any effect. What it had sent goes on; what was to leave
    /// after its pause does not. Returns its tasks, to be dropped.
    pub(crate) fn kill_client(&mut self, client: u16) -> Vec<Task> {
        let now = self.now;
        let state = self.client(client);
        state.process = None;
        state.died_at = now;
        state.restarts += 1;
        state.parked.clear();
        state.mail.clear();
        state.deadlines.clear();
        state.pauses_inside.clear();
        state.cancels.clear();
        state.stop = None;
        for key in self.calls.keys(|call| call.client == client) {
            if let Some(call) = self.calls.get_mut(key) {
                call.is_sent_by_the_dead = call.departs <= now;
                call.is_void = now < call.departs;
            }
        }
        if let Some(sockets) = &mut self.sockets {
            sockets.kill(client);
        }
        for node in 0..self.nodes.len() {
            let link = self.link(client, u16::try_from(node).unwrap_or(u16::MAX));
            link.client_epoch += 1;
        }
        let keys = self.tasks.keys(|task| task.client == client);
        let tasks = keys.into_iter().filter_map(|key| self.tasks.remove(key));
        tasks.collect()
    }
}
