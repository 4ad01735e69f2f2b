//! Requests that arrive at their node, and are executed at once, later, or never.

use crate::engine::network::{calls, connections};
use crate::engine::nodes::{self, execution};
use crate::world::World;
use crate::world::call::Call;
use crate::world::event::Event;
use crate::world::slab::Key;

/// Handles a copy of a request that arrives at its node.
pub fn arrive(world: &mut World, key: Key<Call>) {
    let now = world.now();
    let Some(call) = world.calls.get_mut(key) else {
        return;
    };
    call.copy_arrives();
    let (client, node, epoch) = (call.client(), call.node(), call.epoch());
    let state = world.nodes.get_mut(node);
    let Some((link, state)) = world.links.get_mut(client, node).zip(state) else {
        return;
    };
    let is_void = call.is_void();
    let is_kept = call.outlives_connection();
    if is_void || !state.is_up() || !(link.is_served(epoch) || is_kept) {
        calls::free_if_over(world, key);
        if !is_void && !is_kept {
            connections::tell_closed(world, client, node, epoch);
        }
        return;
    }
    if let Some(fault) = link.take_lacking_scripts() {
        // The node answers `NOSCRIPT`, and the client sends the call again with the script.
        call.copy_is_held_up();
        world.blame(fault);
        let again = now + 2 * world.plan.network.max.as_nanos();
        world.push(again, Event::Request(key));
        return;
    }
    if now < state.paused_until() {
        call.copy_is_held_up();
        state.hold_up(key);
        return;
    }
    let stall = state.count_towards_stall();
    if let Some(due) = stall {
        nodes::stall(world, node, due);
    }
    execution::execute(world, key);
    calls::free_if_over(world, key);
}

/// Executes a request that was held up in a paused node.
pub(super) fn execute_held_up(world: &mut World, key: Key<Call>) {
    if let Some(call) = world.calls.get_mut(key) {
        call.copy_arrives();
        execution::execute(world, key);
        calls::free_if_over(world, key);
    }
}

/// Drops a request that was held up in a node that has ended.
pub(super) fn forget(world: &mut World, key: Key<Call>) {
    if let Some(call) = world.calls.get_mut(key) {
        call.copy_arrives();
        calls::free_if_over(world, key);
    }
}
