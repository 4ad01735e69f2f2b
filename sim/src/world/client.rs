//! A client process: its clocks, and what stops it.

use std::collections::VecDeque;

use quorlock::OwnerId;
use quorlock::transport::Wake;

use crate::history::{HoldId, Process};
use crate::plan::draw::{Draw, Purpose};
use crate::world::call::Call;
use crate::world::clock::Clock;
use crate::world::link::FaultId;
use crate::world::slab::Key;
use crate::world::stop::Stop;
use crate::world::subscription::Subscribed;
use crate::world::task::Task;

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

    /// The hold of this owner, which is `next` if it was not seen before.
    pub(crate) fn hold_of(&mut self, owner: OwnerId, next: HoldId) -> Known {
        let known = self.holds.iter().rev().find(|(o, _)| *o == owner);
        if let Some((_, hold)) = known {
            return Known::Entered(*hold);
        }
        if self.holds.len() == REMEMBERED {
            self.holds.remove(0);
        }
        self.holds.push((owner, next));
        Known::New(next)
    }
}
