//! Draws Sentinel groups. They have their own stream of random numbers, so that plans without groups do not change.

use super::FaultChoice;
use crate::draw::{Draw, Purpose};
use crate::time::SimTime;
use crate::{Connections, MinReplicas, Persistence, Plan, Sentinels, Wait};

/// Turns each node of a plan into a group.
pub(super) fn add(plan: &mut Plan, faults: &FaultChoice) {
    let mut draw = Draw::new(plan.seed, Purpose::Groups, 0);
    let draw = &mut draw;
    let nodes = &mut plan.nodes;
    nodes.replicas = draw.between(1, 2) as u16;
    nodes.replication_lag = SimTime::micros(draw.between(100, 3_000));
    let waits = draw.chance(500_000);
    let within = SimTime::millis(draw.between(10, 60));
    let demands = draw.chance(300_000);
    let max_lag = SimTime::millis(draw.between(0, 100));
    let is_inside = *faults == FaultChoice::Inside;
    // No election loses a claim that every replica has.
    nodes.wait = (is_inside || waits).then_some(Wait {
        replicas: nodes.replicas,
        within,
    });
    nodes.min_replicas = demands.then_some(MinReplicas { count: 1, max_lag });
    if is_inside {
        nodes.persistence = Persistence::EveryWrite;
    }
    nodes.sentinels = Some(Sentinels {
        count: if draw.chance(800_000) { 3 } else { 5 },
        quorum: draw.chance(300_000).then_some(2),
        down_after: SimTime::millis(draw.between(20, 150)),
        election: SimTime::millis(draw.between(2, 40)),
        gossip: SimTime::millis(draw.between(1, 40)),
        demotion: SimTime::millis(draw.between(0, 200)),
        connections: match draw.chance(500_000) {
            true => Connections::Ended,
            false => Connections::Kept,
        },
    });
    // Within this time, the client asks one sentinel after another. If the others do not answer, it must still reach
    // the last one.
    plan.network.connect_timeout = SimTime::millis(draw.between(400, 900));
}
