//! What faults do to clocks, and what that means for whatever waits for a time.

use crate::engine::clients;
use crate::engine::clients::timers;
use crate::engine::network::deadlines;
use crate::plan::fault::Suspended;
use crate::world::World;

pub(crate) fn suspend(world: &mut World, client: u16, until: u64, clock: Suspended) {
    let now = world.now;
    clients::pause(world, client, until);
    match clock {
        Suspended::Stops => world.client(client).monotonic.stop(now, until),
        // Timers do not count the time that the machine is suspended.
        Suspended::Counts => timers::set_anew(world, client, until.saturating_sub(now)),
    }
}

pub(crate) fn run_at(world: &mut World, client: u16, rate_ppm: i32) {
    let now = world.now;
    let state = world.client(client);
    state.monotonic.run_at(now, rate_ppm);
    state.wall.run_at(now, rate_ppm);
    timers::set_anew(world, client, 0);
    deadlines::set_anew(world, client);
}

/// Where the clocks of a node and its replicas begin.
pub(crate) fn set_nodes(world: &mut World, seat: u16, by: i64) {
    let replicas = world.plan.nodes.replicas;
    world.node(seat).clock.step(0, by);
    for replica in 0..replicas {
        let id = world.plan.nodes.count + seat * replicas + replica;
        world.node(id).clock.step(0, by);
    }
}
