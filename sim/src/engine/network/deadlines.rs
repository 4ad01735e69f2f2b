//! Calls that are out of time.

use quorlock::transport::{Cause, Execution};

use crate::engine::network::calls;
use crate::world::World;
use crate::world::call::Call;
use crate::world::event::What;
use crate::world::slab::Key;

pub(crate) fn watch(world: &mut World, client: u16, departs: u64, key: Key<Call>) {
    let timeout = world.plan.network.call_timeout.as_nanos();
    let state = world.client(client);
    let deadline = state.monotonic.read(departs) + timeout;
    state.deadlines.push_back((deadline, key));
    if !state.watches_deadlines {
        state.watches_deadlines = true;
        let due = state.monotonic.when(departs, deadline);
        world.push(due, What::Deadlines(client));
    }
}

pub(crate) fn set_anew(world: &mut World, client: u16) {
    let now = world.now;
    let state = world.client(client);
    if let Some((deadline, _)) = state.deadlines.front() {
        let due = state.monotonic.when(now, *deadline);
        world.push(due, What::Deadlines(client));
    }
}

/// Ends the calls that are out of time. Those that never had a connection were certainly not executed.
pub(crate) fn expire(world: &mut World, client: u16) {
    let now = world.now;
    loop {
        let calls = &world.calls;
        let Some(state) = world.clients.get_mut(usize::from(client)) else {
            return;
        };
        let Some((deadline, key)) = state.deadlines.front().copied() else {
            state.watches_deadlines = false;
            return;
        };
        let call = calls
            .get(key)
            .filter(|call| !call.is_done && !call.is_dropped);
        let is_sent = call.map(|call| call.is_sent);
        if is_sent.is_some() && state.monotonic.read(now) < deadline {
            let due = state.monotonic.when(now, deadline);
            world.push(due, What::Deadlines(client));
            return;
        }
        state.deadlines.pop_front();
        match is_sent {
            Some(true) => calls::fail(world, key, Execution::Indeterminate, Cause::TimedOut),
            Some(false) => calls::fail(world, key, Execution::Definite, Cause::Unreachable),
            None => {}
        }
    }
}
