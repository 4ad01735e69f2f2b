//! The properties of every plan with faults inside the lock's assumptions. proptest draws plans, and shrinks a plan
//! that fails.
//!
//! No two clients hold a name at the same time. Tokens never decrease. No client releases the claim of another one.
//! Hold counts are correct. When all faults are over, the lock is acquired. When all clients have ended, nothing stays
//! locked. A plan that breaks one of these is printed with the command that runs it. `PROPTEST_CASES=10000` runs that
//! many plans of each lock.

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::test_runner::{RngSeed, TestCaseError, TestError, TestRunner};
use quorlock_sim_check::run::Verdict;
use quorlock_sim_lab::plan_file;
use quorlock_sim_lab::simulation::run;
use quorlock_sim_plan::fault::{
    ClientFault, Direction, Fault, FaultKind, InFlight, LinkFault, NodeFault, NodesFault,
    ServerError, Suspended, Trigger,
};
use quorlock_sim_plan::time::{ClockStep, SimTime};
use quorlock_sim_plan::variant::Variant;
use quorlock_sim_plan::{LockKind, Network, Nodes, Plan, Watchdog, Workload, WorkloadKind};

const CLIENTS: u16 = 3;

/// A duration in this range of microseconds.
fn span(micros: std::ops::RangeInclusive<u64>) -> impl Strategy<Value = SimTime> {
    micros.prop_map(SimTime::micros)
}

/// When a fault begins. A fault ends within the run, which takes 2 s.
fn at() -> impl Strategy<Value = SimTime> {
    span(0..=1_200_000)
}

/// How long a fault lasts: up to twice the longest lease.
fn lasts() -> impl Strategy<Value = SimTime> {
    span(100..=800_000)
}

/// A random subset of `0..of` with at least one element.
fn some(of: u16) -> impl Strategy<Value = Vec<u16>> {
    let all: Vec<u16> = (0..of).collect();
    subsequence(all, 1..=usize::from(of))
}

fn direction() -> impl Strategy<Value = Direction> {
    select(&[Direction::Both, Direction::ToNode, Direction::ToClient][..])
}

/// The rate of a clock. The clocks of clients and nodes may differ by 1 %, so each may be wrong by half of that.
fn rate_ppm() -> impl Strategy<Value = i32> {
    -4_900..=4_900
}

/// A fault of the links between some clients and some nodes.
fn link_fault(nodes: u16) -> impl Strategy<Value = Fault> {
    let link = || (at(), lasts(), some(CLIENTS), some(nodes), direction());
    prop_oneof![
        link().prop_map(|(at, lasts, clients, nodes, direction)| Fault {
            when: Trigger::At(at),
            lasts,
            what: FaultKind::Link {
                clients,
                nodes,
                direction,
                fault: LinkFault::Cut
            }
        }),
        (link(), 10_000..=500_000u32).prop_map(|(link, of_million)| {
            let (at, lasts, clients, nodes, direction) = link;
            Fault {
                when: Trigger::At(at),
                lasts,
                what: FaultKind::Link {
                    clients,
                    nodes,
                    direction,
                    fault: LinkFault::Loss { of_million },
                },
            }
        }),
        (link(), span(0..=20_000), span(0..=200_000)).prop_map(|(link, min, more)| {
            let (at, lasts, clients, nodes, direction) = link;
            Fault {
                when: Trigger::At(at),
                lasts,
                what: FaultKind::Link {
                    clients,
                    nodes,
                    direction,
                    fault: LinkFault::Delay {
                        min,
                        max: min.plus(more),
                    },
                },
            }
        }),
        link().prop_map(|(at, lasts, clients, nodes, direction)| Fault {
            when: Trigger::At(at),
            lasts,
            what: FaultKind::Link {
                clients,
                nodes,
                direction,
                fault: LinkFault::HoldBack
            }
        }),
        (link(), 10_000..=1_000_000u32, span(10..=500_000)).prop_map(|(link, of_million, max)| {
            let (at, lasts, clients, nodes, _) = link;
            Fault {
                when: Trigger::At(at),
                lasts,
                what: FaultKind::Link {
                    clients,
                    nodes,
                    direction: Direction::ToNode,
                    fault: LinkFault::Duplicate { of_million, max },
                },
            }
        }),
        (link(), span(100..=100_000)).prop_map(|(link, max)| {
            let (at, lasts, clients, nodes, direction) = link;
            Fault {
                when: Trigger::At(at),
                lasts,
                what: FaultKind::Link {
                    clients,
                    nodes,
                    direction,
                    fault: LinkFault::Reorder { max },
                },
            }
        }),
        (link(), select(&[InFlight::Lost, InFlight::Executed][..])).prop_map(
            |(link, in_flight)| {
                let (at, _, clients, nodes, _) = link;
                Fault {
                    when: Trigger::At(at),
                    lasts: SimTime::ZERO,
                    what: FaultKind::Link {
                        clients,
                        nodes,
                        direction: Direction::Both,
                        fault: LinkFault::Reset { in_flight },
                    },
                }
            }
        ),
    ]
}

/// A fault of one client. Its wall clock may show anything, and its monotonic clock counts suspended time.
fn client_fault() -> impl Strategy<Value = Fault> {
    let client = || (at(), lasts(), 0..CLIENTS);
    prop_oneof![
        client().prop_map(
            |(at, lasts, client)| Fault::of_client(at, client, ClientFault::Pause).lasting(lasts)
        ),
        (client(), 1..=60u32).prop_map(|((at, lasts, client), nth)| Fault::of_client(
            at,
            client,
            ClientFault::PauseInside { nth }
        )
        .lasting(lasts)),
        (client(), 1..=60u32).prop_map(|((at, lasts, client), nth)| Fault::of_client(
            at,
            client,
            ClientFault::StopInside { nth }
        )
        .lasting(lasts)),
        client().prop_map(|(at, restart_after, client)| Fault::of_client(
            at,
            client,
            ClientFault::Crash
        )
        .lasting(restart_after)),
        client().prop_map(|(at, lasts, client)| Fault::of_client(
            at,
            client,
            ClientFault::Suspend {
                clock: Suspended::Counts
            }
        )
        .lasting(lasts)),
        (client(), 1..=20u32).prop_map(|((at, _, client), nth)| Fault::of_client(
            at,
            client,
            ClientFault::Cancel { nth }
        )),
        (client(), rate_ppm()).prop_map(|((at, _, client), rate_ppm)| Fault::of_client(
            at,
            client,
            ClientFault::Rate { rate_ppm }
        )),
        (client(), -3_600_000..=3_600_000i64).prop_map(|((at, _, client), by)| {
            Fault::of_client(
                at,
                client,
                ClientFault::Step {
                    by: ClockStep::millis(by),
                },
            )
        }),
    ]
}

/// A fault of one node that keeps its data. Its wall clock may be wrong from the beginning, but is not stepped later.
fn node_fault(nodes: u16) -> impl Strategy<Value = Fault> {
    let node = move || (at(), lasts(), 0..nodes);
    let errors = [
        ServerError::ReadOnly,
        ServerError::Loading,
        ServerError::OutOfMemory,
        ServerError::Busy,
    ];
    prop_oneof![
        node().prop_map(
            |(at, lasts, node)| Fault::of_node(at, node, NodeFault::Pause).lasting(lasts)
        ),
        node().prop_map(
            |(at, restart_after, node)| Fault::of_node(at, node, NodeFault::Crash)
                .lasting(restart_after)
        ),
        (node(), select(errors.to_vec())).prop_map(|((at, lasts, node), error)| {
            Fault::of_node(at, node, NodeFault::Error { error }).lasting(lasts)
        }),
        node().prop_map(|(at, _, node)| Fault::of_node(at, node, NodeFault::ForgetScripts)),
        node().prop_map(|(at, _, node)| Fault {
            when: Trigger::At(at),
            lasts: SimTime::ZERO,
            what: FaultKind::Nodes {
                nodes: vec![node],
                fault: NodesFault::Backup,
            }
        }),
        (node(), rate_ppm()).prop_map(|((at, _, node), rate_ppm)| Fault::of_node(
            at,
            node,
            NodeFault::Rate { rate_ppm }
        )),
        (node(), -100_000..=100_000i64).prop_map(|((_, _, node), by)| Fault::of_node(
            SimTime::ZERO,
            node,
            NodeFault::Step {
                by: ClockStep::millis(by)
            }
        )),
    ]
}

fn workload(lock: LockKind) -> impl Strategy<Value = Workload> {
    let kinds = WorkloadKind::ALL
        .into_iter()
        .filter(move |kind| match kind {
            // A stopped client does not notice the loss of its lock. Fencing tokens exist for this case.
            WorkloadKind::UnfencedWrites | WorkloadKind::FencedUpdates => false,
            // Names on several nodes have no common owner.
            WorkloadKind::Reentrant | WorkloadKind::Leading => lock != LockKind::Multi,
            // Queues on several nodes have no common order.
            WorkloadKind::Fair => lock != LockKind::Redlock,
            // The nodes of this workload lose data, and another test draws that.
            WorkloadKind::Together => false,
            WorkloadKind::Sides => lock != LockKind::Multi,
            _ => true,
        });
    let watchdog = select(&[Watchdog::Off, Watchdog::On][..]);
    let holds = (span(1_000..=20_000), span(0..=80_000));
    let thinks = (span(0..=10_000), span(1_000..=60_000));
    let caps = (span(100_000..=400_000), span(20_000..=200_000));
    (
        select(kinds.collect::<Vec<_>>()),
        1..=3u16,
        span(60_000..=400_000),
        watchdog,
        (holds, thinks, caps),
        1..=4u16,
    )
        .prop_map(|(kind, names, lease, watchdog, spans, checks)| {
            let ((hold_min, longer), (think_min, thinks_longer), caps) = spans;
            Workload {
                kind,
                names,
                lease,
                watchdog,
                max_hold: None,
                longer: 0,
                hold_min,
                hold_max: hold_min.plus(longer),
                think_min,
                think_max: think_min.plus(thinks_longer),
                poll_cap: caps.0,
                backoff_cap: caps.1,
                checks,
            }
        })
}

fn plans(lock: LockKind, nodes: u16, variant: Variant) -> impl Strategy<Value = Plan> {
    let fault = prop_oneof![link_fault(nodes), client_fault(), node_fault(nodes)];
    let faults = proptest::collection::vec(fault, 0..16);
    // A round trip is shorter than the time that a member has to answer, which is at least 20 ms. Progress is promised
    // only in this case.
    let network = (
        span(50..=2_000),
        span(0..=6_000),
        span(100_000..=600_000),
        span(50_000..=300_000),
    );
    // The faults come first, because proptest shrinks them first.
    (faults, workload(lock), network, any::<u64>().no_shrink()).prop_map(
        move |(faults, workload, network, seed)| Plan {
            seed,
            lock,
            variant,
            clients: CLIENTS,
            nodes: Nodes {
                count: nodes,
                ..Nodes::default()
            },
            network: Network {
                min: network.0,
                max: network.0.plus(network.1),
                call_timeout: network.2,
                connect_timeout: network.3,
            },
            workload,
            faults,
            ..Plan::default()
        },
    )
}

/// Returns a configuration that draws the same plans every time. The environment sets their number.
fn config(seed: u64) -> ProptestConfig {
    let config = ProptestConfig::default();
    ProptestConfig {
        rng_seed: match config.rng_seed {
            RngSeed::Random => RngSeed::Fixed(seed),
            fixed => fixed,
        },
        failure_persistence: None,
        ..config
    }
}

/// Returns the smallest plan that breaks a property, as proptest finds it, and the violation.
fn broken(lock: LockKind, nodes: u16, variant: Variant, seed: u64) -> Option<(Plan, String)> {
    let holds = Cell::new(0u64);
    let config = config(seed);
    let cases = u64::from(config.cases);
    let result = TestRunner::new(config).run(&plans(lock, nodes, variant), |plan| {
        quorlock_sim_plan::check(&plan).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let run = run(&Rc::new(plan));
        holds.set(holds.get() + u64::from(run.history.holds));
        match run.verdict {
            Verdict::Violated(violation) => Err(TestCaseError::fail(violation.to_string())),
            _ => Ok(()),
        }
    });
    match result {
        Ok(()) => {
            assert!(cases < holds.get(), "{} holds show nothing", holds.get());
            None
        }
        Err(TestError::Fail(reason, plan)) => Some((plan, reason.message().to_owned())),
        Err(abort) => panic!("{abort}"),
    }
}

fn every_property_holds(lock: LockKind, nodes: u16) {
    let Some((plan, reason)) = broken(lock, nodes, Variant::Product, 1) else {
        return;
    };
    let text = plan_file::write(&plan).expect("a plan is written");
    let name = format!("{lock:?}-{nodes}.toml").to_lowercase();
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&file, &text).expect("the plan is kept");
    let file = file.display();
    panic!(
        "{reason}\n\n{text}\nRun it, or make it smaller:\n  cargo run -p quorlock-sim-lab -- run {file}\n  cargo run -p quorlock-sim-lab -- shrink {file} -o small.json\n"
    );
}

#[test]
fn a_lock_on_one_node_keeps_every_property() {
    every_property_holds(LockKind::Single, 1);
}

#[test]
fn a_lock_of_one_name_on_each_of_three_nodes_keeps_every_property() {
    every_property_holds(LockKind::Multi, 3);
}

#[test]
fn a_lock_on_a_majority_of_three_nodes_keeps_every_property() {
    every_property_holds(LockKind::Redlock, 3);
}

#[test]
fn a_lock_on_a_majority_of_five_nodes_keeps_every_property() {
    every_property_holds(LockKind::Redlock, 5);
}

#[test]
fn a_planted_fault_is_found_and_its_plan_shrinks_to_what_it_takes() {
    // Not every failure shrinks to the minimum. The failure of the first seed keeps six faults.
    let found = broken(LockKind::Redlock, 3, Variant::ReusedNumber, 2);
    let (plan, reason) = found.expect("found");
    assert!(reason.contains("violated"), "{reason}");
    assert!(plan.faults.len() <= 3, "{:?}", plan.faults);
}
