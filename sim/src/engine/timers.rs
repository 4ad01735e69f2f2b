//! Timers: when they are due, as clocks run.

use std::task::{Context, Poll};

use crate::world::World;
use crate::world::client::Who;
use crate::world::event::What;
use crate::world::slab::Key;
use crate::world::timer::Alarm;

impl World {
    #[inline]
    pub(crate) fn read_monotonic(&mut self, who: Who) -> u64 {
        let at = self.seam(who).unwrap_or(self.now);
        let client = self.clients.get(usize::from(who.client));
        client.map_or(0, |client| client.monotonic.read(at))
    }

    pub(crate) fn poll_alarm(
        &mut self,
        who: Who,
        key: &mut Key<Alarm>,
        cx: &Context<'_>,
        deadline: u64,
    ) -> Poll<()> {
        let Some(at) = self.seam(who) else {
            return Poll::Pending;
        };
        let Some(client) = self.clients.get(usize::from(who.client)) else {
            return Poll::Pending;
        };
        if deadline <= client.monotonic.read(at) {
            return Poll::Ready(());
        }
        if deadline == u64::MAX {
            return Poll::Pending;
        }
        if *key == Key::NONE {
            *key = self.alarms.insert(Alarm {
                client: who.client,
                deadline,
                entry_at: u64::MAX,
                entry: 0,
                waker: cx.waker().clone(),
            });
        }
        let Some(alarm) = self.alarms.get_mut(*key) else {
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
            self.events.push(due, What::Alarm(*key, alarm.entry));
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
