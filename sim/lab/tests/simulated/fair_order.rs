//! Ten thousand hand-overs of a fair lock, all in order, although no two clocks agree.

use std::collections::VecDeque;
use std::rc::Rc;

use quorlock::OwnerId;
use quorlock_sim_check::run::Verdict;
use quorlock_sim_lab::simulation::run;
use quorlock_sim_plan::fault::{ClientFault, Fault, NodeFault};
use quorlock_sim_plan::time::{ClockStep, SimTime};
use quorlock_sim_plan::variant::Variant;
use quorlock_sim_plan::{LockKind, Network, Nodes, Plan, Workload, WorkloadKind};
use quorlock_sim_world::history::{Answered, History};

/// The number of hand-overs that the run must reach.
const HANDOVERS: u64 = 10_000;

/// Returns a plan with ten clients of two tasks each, on one node. No two clocks agree: the clocks of clients are
/// wrong by up to five minutes, and the clock of the node by an hour.
fn plan(variant: Variant) -> Plan {
    let steps = (0..10u16).map(|client| {
        Fault::of_client(
            SimTime::ZERO,
            client,
            ClientFault::Step {
                by: ClockStep::millis(i64::from(client) * 60_000 - 300_000),
            },
        )
    });
    let node = Fault::of_node(
        SimTime::ZERO,
        0,
        NodeFault::Step {
            by: ClockStep::millis(3_600_000),
        },
    );
    Plan {
        lock: LockKind::Single,
        variant,
        clients: 10,
        duration: SimTime::secs(25),
        nodes: Nodes {
            count: 1,
            ..Nodes::default()
        },
        network: Network {
            min: SimTime::micros(100),
            max: SimTime::micros(400),
            ..Network::default()
        },
        workload: Workload {
            kind: WorkloadKind::Fair,
            hold_min: SimTime::micros(100),
            hold_max: SimTime::millis(1),
            think_min: SimTime::ZERO,
            think_max: SimTime::millis(2),
            checks: 1,
            ..Workload::default()
        },
        faults: steps.chain([node]).collect(),
        ..Plan::default()
    }
}

/// Returns how often the lock went to an owner that had waited for it.
///
/// # Errors
/// Returns the index of the answer with which the lock went to an owner other than the one that had waited the
/// longest.
fn handovers(history: &History) -> Result<u64, usize> {
    let mut queue: VecDeque<OwnerId> = VecDeque::new();
    let mut handovers = 0;
    for (index, turn) in history.turns.iter().enumerate() {
        match turn.answer {
            Answered::Queued { .. } if !queue.contains(&turn.owner) => queue.push_back(turn.owner),
            Answered::Left(_) => queue.retain(|owner| *owner != turn.owner),
            Answered::Served => match queue.pop_front() {
                Some(first) if first == turn.owner => handovers += 1,
                Some(_) => return Err(index),
                None => {}
            },
            _ => {}
        }
    }
    Ok(handovers)
}

#[test]
fn story_10_ten_thousand_turns_are_taken_in_order_by_clocks_that_are_minutes_off() {
    let plan = plan(Variant::Product);
    quorlock_sim_plan::check(&plan).expect("a plan that can be run");
    let run = run(&Rc::new(plan));
    assert_eq!(run.verdict, Verdict::Holds);
    let handovers = handovers(&run.history).expect("everybody in turn");
    assert!(HANDOVERS <= handovers, "{handovers}");
}

#[test]
fn where_clocks_of_clients_decide_turns_are_taken_out_of_order() {
    let mut plan = plan(Variant::ClientClockQueue);
    plan.duration = SimTime::secs(2);
    let run = run(&Rc::new(plan));
    assert!(handovers(&run.history).is_err());
    assert!(
        matches!(run.verdict, Verdict::Violated(_)),
        "{:?}",
        run.verdict
    );
}
