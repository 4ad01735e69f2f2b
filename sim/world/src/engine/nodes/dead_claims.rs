//! Checks that each node frees the claims of a dead process within their TTL.
//!
//! Nodes may keep claims of a process for at most the longest time that the process ever requested. This time counts
//! from the death of the process, or from the execution of its last request after its death. When it has passed, the
//! run checks that the claims are gone, before the next event.

use quorlock::Name;
use quorlock::transport::Request;

use crate::history::{Overdue, Process};
use crate::world::World;
use crate::world::dead_claims::DeadClaim;
use crate::world::id::{Id, NodeId, Seat, first};
use quorlock_sim_plan::NodeKind;
use quorlock_sim_plan::fault::{ClientFault, Fault, FaultKind, NodeFault, Trigger};
use quorlock_sim_plan::time::SimTime;

/// How much later a node that is paused or down is checked again, in nanoseconds.
const LATER: u64 = 10_000_000;

/// Records that a store executes a write of a process, which may have made it before its death.
pub(crate) fn write(world: &mut World, seat: Seat, by: Process) {
    if let Some(died) = world.dead_claims.died(by) {
        leave_on(world, by, died, seat);
    }
}

/// Returns how many milliseconds too late a claim may end at a database. Clients that write without reading reckon its clock from an
/// earlier reading, as if it were that of the moment in which they began to ask, and add 1 % for the drift of the two clocks.
fn reckoned(world: &World, seat: Seat) -> u64 {
    if world.plan.nodes.kind(seat.get()) != NodeKind::Database {
        return 0;
    }
    let rate = |fault: &Fault| match fault.what {
        FaultKind::Client {
            fault: ClientFault::Rate { rate_ppm },
            ..
        }
        | FaultKind::Node {
            fault: NodeFault::Rate { rate_ppm },
            ..
        } => Some(u64::from(rate_ppm.unsigned_abs())),
        _ => None,
    };
    let fastest = world.plan.faults.iter().filter_map(rate).max();
    let ppm = 11_000 + 3 * fastest.unwrap_or(0);
    let drift = world.now() / 1_000_000 * ppm / 1_000_000;
    // A call of the store gets half of the time-out, and its client may be stopped before it sends it.
    let stops = world.plan.faults.iter();
    let stops = stops.filter(|fault| matches!(fault.what, FaultKind::Client { .. }));
    let asking = stops.fold(world.plan.network.call_timeout, |sum, stop| {
        sum.plus(stop.lasts)
    });
    1 + drift + asking.as_nanos() / 1_000_000
}

/// Records that a node executes a request.
pub(crate) fn note(world: &mut World, node: NodeId, by: Process, request: &Request) {
    if let Some(died) = state(world, by, request) {
        let seat = world.seat_of(node);
        leave_on(world, by, died, seat);
    }
}

/// Records for how long a process asks that its claims are kept. Returns when it died, if it has died.
pub(crate) fn state(world: &mut World, by: Process, request: &Request) -> Option<u64> {
    let mut died = None;
    match request {
        Request::Acquire(ask) => {
            died = world.dead_claims.state(by, ask.owner, ask.kept_millis());
        }
        Request::Renew(ask) => {
            for claim in &ask.claims {
                died = world
                    .dead_claims
                    .state(by, claim.owner, claim.kept_millis());
            }
        }
        _ => {}
    }
    died
}

/// Records the death of a process, and schedules the check of its claims.
pub(crate) fn leave(world: &mut World, process: Process) {
    if !world.dead_claims.is_watched() {
        return;
    }
    let now = world.now();
    world.dead_claims.bury(process, now);
    for seat in first::<Seat>(world.plan.nodes.count) {
        leave_on(world, process, now, seat);
    }
}

/// Schedules the check of a node of the plan. The node must free the claims of the process within their TTL from now
/// on.
fn leave_on(world: &mut World, process: Process, died: u64, seat: Seat) {
    let Some(kept) = world.dead_claims.kept_millis(process) else {
        return;
    };
    let now = world.now();
    let servers = std::iter::once(seat.first_node()).chain(world.replicas_of(seat));
    let walls: Vec<u64> = servers
        .map(|server| world.node(server).wall(now).0)
        .collect();
    let wall = walls.into_iter().max().unwrap_or_default();
    let until = wall
        .saturating_add(kept)
        .saturating_add(reckoned(world, seat))
        .saturating_add(set_back(world, seat));
    let mut dead_claim = DeadClaim {
        process,
        died,
        seat,
        until,
        due: 0,
    };
    dead_claim.due = due(world, &dead_claim);
    world.dead_claims.put(dead_claim);
}

/// Returns by how many milliseconds the clocks of a node of the plan may have stepped since its claims were made.
fn set_back(world: &World, seat: Seat) -> u64 {
    let by = |fault: &Fault| match &fault.what {
        // A step at the beginning sets all clocks of a node alike.
        FaultKind::Node { replica: None, .. } if fault.when == Trigger::At(SimTime::ZERO) => None,
        FaultKind::Node {
            node,
            fault: NodeFault::Step { by },
            ..
        } => (*node == seat.get()).then_some(by.as_nanos().unsigned_abs()),
        _ => None,
    };
    let nanos: u64 = world.plan.faults.iter().filter_map(by).sum();
    nanos.div_ceil(1_000_000)
}

/// Returns when the claims must be gone, by the clock of their node's primary: one millisecond after their last
/// millisecond.
fn due(world: &World, dead_claim: &DeadClaim) -> u64 {
    let now = world.now();
    let primary = world.nodes.get(world.failovers.primary(dead_claim.seat));
    let gone = dead_claim.until.saturating_add(2).saturating_mul(1_000_000);
    primary.map_or(u64::MAX, |node| node.clock().when(now, gone))
}

/// Checks the claims that are due.
#[cold]
pub(crate) fn look(world: &mut World) {
    let now = world.now();
    for mut dead_claim in world.dead_claims.take_due(now) {
        let primary = world.failovers.primary(dead_claim.seat);
        let node = world.node(primary);
        let (is_awake, wall) = (node.is_up() && node.paused_until() <= now, node.wall(now).0);
        if !is_awake || wall <= dead_claim.until {
            // The clock may have been stepped since.
            dead_claim.due = due(world, &dead_claim).max(now + LATER);
            world.dead_claims.put(dead_claim);
            continue;
        }
        let micros = world.micros(primary);
        for text in world.history.names.clone() {
            let Ok(name) = Name::new(&text) else { continue };
            let claims = world.servers.claims(primary, micros, &name).into_iter();
            let mut owners = claims.filter_map(|(owner, _)| owner);
            if owners.any(|owner| world.dead_claims.is_of(owner, dead_claim.process)) {
                let name = world.history.name(&text);
                world.history.overdue.push(Overdue {
                    at: now,
                    node: primary.get(),
                    name,
                    process: dead_claim.process,
                    died: dead_claim.died,
                });
            }
        }
    }
}
