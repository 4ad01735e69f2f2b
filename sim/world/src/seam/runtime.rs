//! The product's seam to clocks, timers, tasks and randomness, for one client process.

use std::task::{Context, Poll};

use quorlock::runtime::{Runtime, Time, Timer, WallMillis};

use crate::engine::clients::{self, executor, timers};
use crate::engine::stop::using;
use crate::world::client::ClientState;
use crate::world::id::{Id, ProcessId};
use crate::world::slab::Key;
use crate::world::task::TaskKind;
use crate::world::timer::Alarm;
use crate::world::with;
use quorlock_sim_plan::draw::{Draw, Purpose};

/// The runtime of one client of the product. A process may have several clients.
#[derive(Clone, Copy, Debug)]
pub struct SimRuntime {
    who: ProcessId,
    /// How far the clock of this runtime is ahead of the clock of the process, in nanoseconds.
    ahead: u64,
}

impl SimRuntime {
    /// Creates a runtime with the clock of the process.
    pub fn new(who: ProcessId) -> Self {
        SimRuntime { who, ahead: 0 }
    }

    /// Creates a runtime with its own clock, for the client at index `place` of the process. The clocks of a process
    /// all differ, so that a comparison of times of different clocks is noticed.
    pub fn of(who: ProcessId, seed: u64, place: u16) -> Self {
        let stream = 1 << 32 | u64::from(place) << 16 | u64::from(who.client.get());
        let mut draw = Draw::new(seed, Purpose::Clock, stream);
        SimRuntime {
            who,
            ahead: draw.between(1_000_000_000, 1_000_000_000_000_000),
        }
    }
}

impl Runtime for SimRuntime {
    fn now(&self) -> Time {
        let reading = using(self.who, |world| clients::read_monotonic(world, self.who));
        Time::from_nanos(reading.saturating_add(self.ahead))
    }

    fn wall_clock(&self) -> WallMillis {
        using(self.who, |world| {
            let at = clients::seam(world, self.who).unwrap_or(world.now());
            let client = world.clients.get(self.who.client);
            WallMillis(client.map_or(0, |client| client.wall().read(at)) / 1_000_000)
        })
    }

    fn timer(&self) -> Box<dyn Timer> {
        Box::new(SimTimer {
            ahead: self.ahead,
            ..SimTimer::new(self.who)
        })
    }

    fn spawn(&self, task: quorlock::runtime::Task) {
        let refused = using(self.who, |world| match clients::seam(world, self.who) {
            Some(_) => {
                executor::spawn(world, self.who, TaskKind::Background, task);
                None
            }
            None => Some(task),
        });
        drop(refused);
    }

    fn random(&self) -> u64 {
        using(self.who, |world| {
            clients::seam(world, self.who);
            let client = world.clients.get_mut(self.who.client);
            let bits = client.map_or(0, ClientState::random_bits);
            world.drawn(bits)
        })
    }
}

/// A timer of a process.
#[derive(Debug)]
pub struct SimTimer {
    who: ProcessId,
    ahead: u64,
    alarm: Key<Alarm>,
}

impl SimTimer {
    /// Creates a timer on the clock of the process.
    pub fn new(who: ProcessId) -> Self {
        SimTimer {
            who,
            ahead: 0,
            alarm: Key::NONE,
        }
    }
}

impl Timer for SimTimer {
    fn poll_until(&mut self, cx: &mut Context<'_>, at: Time) -> Poll<()> {
        // The deadline is converted to the clock of the process.
        let at = match at {
            Time::NEVER => u64::MAX,
            at => at.as_nanos().saturating_sub(self.ahead),
        };
        let (who, alarm) = (self.who, &mut self.alarm);
        using(who, |world| timers::poll(world, who, alarm, cx, at))
    }
}

impl Drop for SimTimer {
    fn drop(&mut self) {
        if self.alarm != Key::NONE {
            let alarm = with(|world| world.alarms.remove(self.alarm));
            drop(alarm);
        }
    }
}
