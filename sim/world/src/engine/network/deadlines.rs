//! Deadlines of calls.

use quorlock::transport::{Cause, Execution};

use crate::engine::network::{calls, connections};
use crate::world::World;
use crate::world::call::Call;
use crate::world::event::Event;
use crate::world::id::ClientId;
use crate::world::slab::Key;

/// Watches a call of a client for the call timeout of the plan.
pub fn watch(world: &mut World, client: ClientId, departs: u64, key: Key<Call>) {
    let timeout = world.plan.network.call_timeout.as_nanos();
    let due = world.client(client).watch_deadline(departs, timeout, key);
    if let Some(due) = due {
        world.push(due, Event::Deadlines(client));
    }
}

/// Reschedules the deadlines of a client whose clock has changed.
pub(crate) fn set_anew(world: &mut World, client: ClientId) {
    let now = world.now();
    let state = world.client(client);
    if let Some((deadline, _)) = state.next_deadline() {
        let due = state.monotonic().when(now, deadline);
        world.push(due, Event::Deadlines(client));
    }
}

/// Fails the calls that have timed out. Calls that never had a connection were certainly not executed.
pub fn expire(world: &mut World, client: ClientId) {
    let now = world.now();
    loop {
        let Some(state) = world.clients.get_mut(client) else {
            return;
        };
        let Some((deadline, key)) = state.next_deadline() else {
            state.stop_watching_deadlines();
            return;
        };
        let call = world.calls.get(key).filter(|call| call.is_awaited());
        let is_sent = call.map(Call::is_sent);
        if is_sent.is_some() && state.monotonic().read(now) < deadline {
            let due = state.monotonic().when(now, deadline);
            world.push(due, Event::Deadlines(client));
            return;
        }
        state.forget_deadline();
        match is_sent {
            Some(true) => {
                let call = world.calls.get(key);
                let ends = call.map(|call| (call.node(), call.epoch()));
                calls::fail(world, key, Execution::Indeterminate, Cause::TimedOut);
                if let Some((node, epoch)) = ends {
                    connections::doubt(world, client, node, epoch);
                }
            }
            Some(false) => calls::fail(world, key, Execution::Definite, Cause::Unreachable),
            None => {}
        }
    }
}
