//! The product's seam to clocks, timers, tasks and randomness, as one client process has it.

use std::task::{Context, Poll, Waker};

use quorlock::{Runtime, Time, Timer, WallMillis};

use crate::engine::executor::Part;
use crate::engine::go_on_without;
use crate::plan::draw::{Draw, Purpose};
use crate::world::client::Who;
use crate::world::event::What;
use crate::world::slab::Key;
use crate::world::{World, with};

/// The runtime of one client of the product: of a process there may be several.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SimRuntime {
    who: Who,
    /// How much more its clock shows than that of the process.
    ahead: u64,
}

impl SimRuntime {
    /// With the clock of the process.
    pub(crate) fn new(who: Who) -> Self {
        SimRuntime { who, ahead: 0 }
    }

    /// With a clock of its own, for the client at this place among those of the process: no two of them show the same
    /// time, so that what is dated by one and looked at by another is found out.
    pub(crate) fn of(who: Who, seed: u64, place: u16) -> Self {
        let stream = 1 << 32 | u64::from(place) << 16 | u64::from(who.client);
        let mut draw = Draw::new(seed, Purpose::Clock, stream);
        SimRuntime {
            who,
            ahead: draw.between(1_000_000_000, 1_000_000_000_000_000),
        }
    }
}

impl Runtime for SimRuntime {
    fn now(&self) -> Time {
        let (reading, stop) = with(|world| {
            let reading = world.read_monotonic(self.who);
            (reading, world.count_towards_stop(self.who))
        });
        if let Some(lasts) = stop {
            go_on_without(self.who, lasts);
        }
        Time::from_nanos(reading.saturating_add(self.ahead))
    }

    fn wall_clock(&self) -> WallMillis {
        with(|world| {
            let at = world.seam(self.who).unwrap_or(world.now);
            let client = world.clients.get(usize::from(self.who.client));
            WallMillis(client.map_or(0, |client| client.wall.read(at)) / 1_000_000)
        })
    }

    fn timer(&self) -> Box<dyn Timer> {
        Box::new(SimTimer {
            ahead: self.ahead,
            ..SimTimer::new(self.who)
        })
    }

    fn spawn(&self, task: quorlock::Task) {
        let refused = with(|world| match world.seam(self.who) {
            Some(_) => {
                world.spawn(self.who, Part::Background, task);
                None
            }
            None => Some(task),
        });
        drop(refused);
    }

    fn random(&self) -> u64 {
        with(|world| {
            world.seam(self.who);
            let client = world.clients.get_mut(usize::from(self.who.client));
            client.map_or(0, |client| client.random.bits())
        })
    }
}

/// One timer of a process. It has at most one entry among the events that counts.
#[derive(Debug)]
pub(crate) struct Alarm {
    client: u16,
    /// On the monotonic clock of the process.
    deadline: u64,
    /// When the entry that counts is due; `u64::MAX` without one.
    entry_at: u64,
    entry: u32,
    waker: Waker,
}

/// A timer in the hands of a process.
#[derive(Debug)]
pub(crate) struct SimTimer {
    who: Who,
    ahead: u64,
    alarm: Key<Alarm>,
}

impl SimTimer {
    pub(crate) fn new(who: Who) -> Self {
        SimTimer {
            who,
            ahead: 0,
            alarm: Key::NONE,
        }
    }
}

impl Timer for SimTimer {
    fn poll_until(&mut self, cx: &mut Context<'_>, at: Time) -> Poll<()> {
        // On the clock of the process.
        let at = match at {
            Time::NEVER => u64::MAX,
            at => at.as_nanos().saturating_sub(self.ahead),
        };
        with(|world| world.poll_alarm(self, cx, at))
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

impl World {
    #[inline]
    pub(crate) fn read_monotonic(&mut self, who: Who) -> u64 {
        let at = self.seam(who).unwrap_or(self.now);
        let client = self.clients.get(usize::from(who.client));
        client.map_or(0, |client| client.monotonic.read(at))
    }

    fn poll_alarm(&mut self, timer: &mut SimTimer, cx: &Context<'_>, deadline: u64) -> Poll<()> {
        let Some(at) = self.seam(timer.who) else {
            return Poll::Pending;
        };
        let Some(client) = self.clients.get(usize::from(timer.who.client)) else {
            return Poll::Pending;
        };
        if deadline <= client.monotonic.read(at) {
            return Poll::Ready(());
        }
        if deadline == u64::MAX {
            return Poll::Pending;
        }
        if timer.alarm == Key::NONE {
            timer.alarm = self.alarms.insert(Alarm {
                client: timer.who.client,
                deadline,
                entry_at: u64::MAX,
                entry: 0,
                waker: cx.waker().clone(),
            });
        }
        let Some(alarm) = self.alarms.get_mut(timer.alarm) else {
            return Poll::Pending;
        };
        alarm.waker.clone_from(cx.waker());
        if alarm.deadline == deadline && alarm.entry_at != u64::MAX {
            return Poll::Pending;
        }
        alarm.deadline = deadline;
        let due = client.monotonic.when(at, deadline);
        if due < alarm.entry_at {
            alarm.entry = alarm.entry.wrapping_add(1);
            alarm.entry_at = due;
            self.events.push(due, What::Alarm(timer.alarm, alarm.entry));
        }
        Poll::Pending
    }

    /// An entry of a timer has come up. It may have been set to later meanwhile.
    pub(crate) fn alarm(&mut self, key: Key<Alarm>, entry: u32) {
        let now = self.now;
        let Some(alarm) = self.alarms.get_mut(key).filter(|a| a.entry == entry) else {
            return;
        };
        alarm.entry_at = u64::MAX;
        let Some(client) = self.clients.get(usize::from(alarm.client)) else {
            return;
        };
        if alarm.deadline <= client.monotonic.read(now) {
            alarm.waker.wake_by_ref();
            return;
        }
        let due = client.monotonic.when(now, alarm.deadline);
        alarm.entry_at = due;
        self.push(due, What::Alarm(key, entry));
    }

    /// The clock of a client has changed: sets its timers anew, `later` by this.
    fn set_alarms_anew(&mut self, client: u16, later: u64) {
        let now = self.now;
        for key in self.alarms.keys(|alarm| alarm.client == client) {
            let Some(state) = self.clients.get(usize::from(client)) else {
                return;
            };
            let Some(alarm) = self.alarms.get_mut(key) else {
                continue;
            };
            if alarm.entry_at == u64::MAX {
                continue;
            }
            let due = state.monotonic.when(now, alarm.deadline) + later;
            alarm.entry = alarm.entry.wrapping_add(1);
            alarm.entry_at = due;
            let entry = alarm.entry;
            self.push(due, What::Alarm(key, entry));
        }
    }

    /// Timers do not count the time that the machine is suspended.
    pub(crate) fn delay_alarms(&mut self, client: u16, by: u64) {
        self.set_alarms_anew(client, by);
    }

    pub(crate) fn run_client_at(&mut self, client: u16, rate_ppm: i32) {
        let now = self.now;
        let state = self.client(client);
        state.monotonic.run_at(now, rate_ppm);
        state.wall.run_at(now, rate_ppm);
        self.set_alarms_anew(client, 0);
        self.watch_deadlines_anew(client);
    }
}
