//! Clients that acquire again as soon as they have released. The lock must not be idle while another client waits for
//! it, and each client must get its share.

#![expect(
    clippy::print_stdout,
    reason = "the figures are shown with --nocapture"
)]

use std::rc::Rc;

use quorlock_sim_check::gaps;
use quorlock_sim_check::run::Verdict;
use quorlock_sim_lab::simulation::run;
use quorlock_sim_plan::fault::{Direction, Fault, FaultKind, LinkFault, Trigger};
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_plan::{LockKind, Network, Nodes, Plan, Workload, WorkloadKind};
use quorlock_sim_world::history::{Action, Outcome};

/// The figures of several seeds.
#[derive(Debug)]
struct Measured {
    /// How long the lock was free although a client waited for it, in ms: the median, the 99th percentile and the
    /// maximum.
    gaps: [f64; 3],
    /// The smallest share of a client, relative to an even share.
    least_share: f64,
    commands_a_hold: f64,
    holds: u64,
}

/// Latencies of 1 to 5 ms one way, as in the reference workload.
fn far() -> Network {
    Network::default()
}

/// Latencies of 50 to 150 µs one way.
fn near() -> Network {
    Network {
        min: SimTime::nanos(50_000),
        max: SimTime::nanos(150_000),
        ..Network::default()
    }
}

/// A plan in which clients compete without a pause.
fn greedy(
    network: &Network,
    (nodes, clients): (u16, u16),
    of_million: u32,
    free_within: SimTime,
) -> Plan {
    let duration = SimTime::secs(5);
    Plan {
        clients,
        duration,
        network: network.clone(),
        lock: LockKind::Redlock,
        nodes: Nodes {
            count: nodes,
            ..Nodes::default()
        },
        workload: Workload {
            kind: WorkloadKind::Greedy,
            hold_min: SimTime::millis(5),
            hold_max: SimTime::millis(5),
            ..Workload::default()
        },
        faults: lossy(clients, nodes, of_million, duration),
        free_within: Some(free_within),
        ..Plan::default()
    }
}

fn measure(
    network: &Network,
    (nodes, clients): (u16, u16),
    of_million: u32,
    free_within: SimTime,
) -> Measured {
    let (mut idle, mut holds, mut commands) = (Vec::new(), 0, 0);
    let mut least_share = f64::INFINITY;
    for seed in 0..6 {
        let plan = Plan {
            seed,
            ..greedy(network, (nodes, clients), of_million, free_within)
        };
        let run = run(&Rc::new(plan));
        assert!(
            run.verdict == Verdict::Holds,
            "seed {seed}: {:?}",
            run.verdict
        );
        let ms = |nanos: u64| nanos as f64 / 1e6;
        let found = gaps(&run.history);
        let found = found.filter(|gap| gap.to != u64::MAX);
        idle.extend(found.map(|gap| ms(gap.to - gap.from)));
        let won = run.history.operations.iter();
        let won = won.filter(|op| op.action == Action::Acquire && op.outcome == Outcome::Ok);
        let shares = (0..clients).map(|client| {
            let its = won.clone().filter(|op| op.process.client == client);
            its.count() as f64 * f64::from(clients) / won.clone().count() as f64
        });
        least_share = shares.fold(least_share, f64::min);
        holds += won.count() as u64;
        commands += run.counters.commands;
    }
    idle.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let last = idle.len().saturating_sub(1) as f64;
        idle.get((last * share).round() as usize)
            .copied()
            .unwrap_or(f64::NAN)
    };
    Measured {
        gaps: [at(0.5), at(0.99), at(1.0)],
        least_share,
        commands_a_hold: commands as f64 / holds as f64,
        holds,
    }
}

/// Makes every link lose `of_million` of a million messages in both directions.
fn lossy(clients: u16, nodes: u16, of_million: u32, duration: SimTime) -> Vec<Fault> {
    if of_million == 0 {
        return Vec::new();
    }
    vec![Fault {
        when: Trigger::At(SimTime::ZERO),
        lasts: duration,
        what: FaultKind::Link {
            clients: (0..clients).collect(),
            nodes: (0..nodes).collect(),
            direction: Direction::Both,
            fault: LinkFault::Loss { of_million },
        },
    }]
}

/// Latencies are 1 to 5 ms one way. On five nodes, a message, a round that asks the first member before the rest, and
/// a release take about 20 ms in total. Figures are printed with `--nocapture`.
#[test]
fn a_lock_that_is_wanted_is_not_idle_and_each_gets_its_share() {
    for (nodes, clients, p99, commands) in [
        (1, 2, 15.0, 4.0),
        (1, 10, 15.0, 15.0),
        (5, 2, 25.0, 20.0),
        (5, 10, 30.0, 45.0),
    ] {
        let measured = measure(&far(), (nodes, clients), 0, SimTime::millis(100));
        println!("{clients} clients of {nodes} nodes: {measured:?}");
        let [_, gap, _] = measured.gaps;
        assert!(gap <= p99, "{nodes} {clients}: {measured:?}");
        assert!(
            1.0 / 3.0 <= measured.least_share,
            "{nodes} {clients}: {measured:?}"
        );
        assert!(
            measured.commands_a_hold <= commands,
            "{nodes} {clients}: {measured:?}"
        );
        assert!(1_000 <= measured.holds, "{nodes} {clients}: {measured:?}");
    }
}

/// A lost message costs as much time as a member has to answer: half a second.
#[test]
fn lost_messages_leave_it_idle_for_no_longer_than_they_are_waited_for() {
    for (nodes, clients, p99) in [(1, 2, 20.0), (1, 10, 20.0), (5, 2, 40.0), (5, 10, 50.0)] {
        let measured = measure(&far(), (nodes, clients), 2_000, SimTime::millis(1_500));
        println!("{clients} clients of {nodes} nodes, 0.2 % of messages lost: {measured:?}");
        let [_, gap, _] = measured.gaps;
        assert!(gap <= p99, "{nodes} {clients}: {measured:?}");
        assert!(
            1.0 / 3.0 <= measured.least_share,
            "{nodes} {clients}: {measured:?}"
        );
    }
}

/// A client that asked all near nodes at once would split the votes with the others: 65 commands a hold on real servers.
#[test]
fn ten_clients_of_near_nodes_ask_the_first_node_first() {
    let measured = measure(&near(), (5, 10), 0, SimTime::millis(100));
    println!("10 clients of 5 near nodes: {measured:?}");
    let [_, gap, _] = measured.gaps;
    assert!(gap <= 5.0, "{measured:?}");
    assert!(1.0 / 3.0 <= measured.least_share, "{measured:?}");
    assert!(measured.commands_a_hold <= 45.0, "{measured:?}");
}
