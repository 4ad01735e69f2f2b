//! What stops a client process, and what starts it.

use quorlock::OwnerId;

use crate::history::HoldId;
use crate::plan::draw::{Draw, Purpose};
use crate::plan::fault::Suspended;
use crate::world::World;
use crate::world::client::{Known, Who};
use crate::world::event::What;
use crate::world::link::Line;
use crate::world::task::Task;

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

    /// Whether what the process waits for must be dropped now.
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
        let known = client.hold_of(owner, next);
        if known.is_new() {
            self.history.holds += 1;
        }
        known
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
        self.servers.boot(who);
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
        self.servers.kill(client);
        for node in 0..self.nodes.len() {
            let link = self.link(client, u16::try_from(node).unwrap_or(u16::MAX));
            link.client_epoch += 1;
        }
        let keys = self.tasks.keys(|task| task.client == client);
        let tasks = keys.into_iter().filter_map(|key| self.tasks.remove(key));
        tasks.collect()
    }
}
