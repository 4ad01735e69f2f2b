//! Faults of clocks, and their effect on timers and deadlines.

use crate::engine::clients;
use crate::engine::clients::timers;
use crate::engine::network::deadlines;
use crate::world::World;
use crate::world::id::{ClientId, Seat};
use quorlock_sim_plan::fault::Suspended;

/// Suspends the machine of a client until this time.
pub(super) fn suspend(world: &mut World, client: ClientId, until: u64, clock: Suspended) {
    let now = world.now();
    clients::pause(world, client, until);
    match clock {
        Suspended::Stops => world.client(client).stop_monotonic(now, until),
        // Timers do not count the time for which the machine is suspended.
        Suspended::Counts => timers::set_anew(world, client, until.saturating_sub(now)),
    }
}

pub(super) fn run_at(world: &mut World, client: ClientId, rate_ppm: i32) {
    let now = world.now();
    world.client(client).run_at(now, rate_ppm);
    timers::set_anew(world, client, 0);
    deadlines::set_anew(world, client);
}

/// Sets the initial clocks of a node and its replicas.
pub(super) fn set_nodes(world: &mut World, seat: Seat, by: i64) {
    world.node(seat.first_node()).clock_mut().step(0, by);
    for replica in world.replicas_of(seat) {
        world.node(replica).clock_mut().step(0, by);
    }
}
