//! A request comes to its node: it is executed at once, later, or never.

use crate::engine::network::{calls, connections};
use crate::engine::nodes::execution;
use crate::world::World;
use crate::world::call::Call;
use crate::world::event::What;
use crate::world::slab::Key;

/// A copy of a request comes to its node.
pub(crate) fn arrive(world: &mut World, key: Key<Call>) {
    let Some(call) = world.calls.get_mut(key) else {
        return;
    };
    call.copies = call.copies.saturating_sub(1);
    let (client, node, epoch) = (call.client, call.node, call.epoch);
    let at = usize::from(client) * world.nodes.len() + usize::from(node);
    let state = world.nodes.get_mut(usize::from(node));
    let Some((link, state)) = world.links.get_mut(at).zip(state) else {
        return;
    };
    let is_void = call.is_void;
    let is_kept = call.is_sent_by_the_dead || call.outlives_its_connection;
    let is_served = link.node_epoch == epoch || is_kept;
    if is_void || !state.is_up || !is_served {
        calls::free_if_over(world, key);
        if !is_void && !is_kept {
            connections::tell_closed(world, client, node, epoch);
        }
        return;
    }
    if let Some(fault) = link.lacks_scripts.take() {
        // The node does not know the scripts: the call goes back and comes again.
        call.copies += 1;
        world.blame(fault);
        let again = world.now + 2 * world.plan.network.most.as_nanos();
        world.push(again, What::Request(key));
        return;
    }
    if world.now < state.paused_until {
        call.copies += 1;
        state.queue.push(key);
        return;
    }
    execution::execute(world, key);
    calls::free_if_over(world, key);
}

/// A request that was held up in a paused node is executed.
pub(crate) fn execute_held_up(world: &mut World, key: Key<Call>) {
    if let Some(call) = world.calls.get_mut(key) {
        call.copies = call.copies.saturating_sub(1);
        execution::execute(world, key);
        calls::free_if_over(world, key);
    }
}

/// A request that was held up in a node that has ended.
pub(crate) fn forget(world: &mut World, key: Key<Call>) {
    if let Some(call) = world.calls.get_mut(key) {
        call.copies = call.copies.saturating_sub(1);
        calls::free_if_over(world, key);
    }
}
