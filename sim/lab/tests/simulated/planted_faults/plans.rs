//! Shapes of plans, each of which exposes one flaw.

use quorlock_sim_plan::fault::{
    ClientFault, Direction, Fault, FaultKind, LinkFault, NodeFault, ServerError, Trigger,
};
use quorlock_sim_plan::time::{ClockStep, SimTime};
use quorlock_sim_plan::{Plan, Watchdog};

/// Changes nothing in the drawn plan.
pub(super) fn as_drawn(_: &mut Plan) {}

/// All clients want one lock.
pub(super) fn one_name(plan: &mut Plan) {
    plan.workload.names = 1;
}

/// Two clients want two names, and both must still make progress in the second half of the run.
pub(super) fn two_names_for_two(plan: &mut Plan) {
    plan.clients = 2;
    plan.workload.names = 2;
    plan.healed_at = Some(SimTime::secs(1));
    plan.progress_within = Some(SimTime::millis(900));
}

/// Sections last for about a lease, and holders often check whether they still hold the lock.
pub(super) fn at_the_deadline(plan: &mut Plan) {
    one_name(plan);
    let workload = &mut plan.workload;
    workload.lease = SimTime::millis(200);
    workload.hold_min = SimTime::millis(150);
    workload.hold_max = SimTime::millis(300);
    workload.think_min = SimTime::ZERO;
    workload.think_max = SimTime::millis(5);
    workload.checks = 60;
}

/// Like [`at_the_deadline`], and the wall clock of one client steps backwards every now and then.
pub(super) fn set_back(plan: &mut Plan) {
    at_the_deadline(plan);
    plan.faults.extend((1..10).map(|n| {
        Fault::of_client(
            SimTime::millis(170 * n),
            0,
            ClientFault::Step {
                by: ClockStep::millis(-60),
            },
        )
    }));
}

/// Like [`at_the_deadline`] with longer leases, and slow replies to one of two clients.
pub(super) fn slow_replies(plan: &mut Plan) {
    at_the_deadline(plan);
    plan.clients = 2;
    plan.duration = SimTime::secs(8);
    let workload = &mut plan.workload;
    workload.lease = SimTime::secs(1);
    workload.hold_min = SimTime::millis(1_050);
    workload.hold_max = SimTime::millis(1_200);
    workload.checks = 300;
    plan.network.min = SimTime::micros(100);
    plan.network.max = SimTime::millis(1);
    plan.faults.push(Fault {
        when: Trigger::At(SimTime::ZERO),
        lasts: SimTime::secs(8),
        what: FaultKind::Link {
            clients: vec![0],
            nodes: nodes(plan),
            direction: Direction::ToClient,
            fault: LinkFault::Delay {
                min: SimTime::millis(40),
                max: SimTime::millis(40),
            },
        },
    });
}

/// The first client's replies take half a lease, then its requests are lost.
pub(super) fn slow_replies_then_none(plan: &mut Plan) {
    one_name(plan);
    plan.clients = 2;
    plan.duration = SimTime::secs(4);
    plan.workload.lease = SimTime::millis(300);
    plan.workload.think_max = plan.workload.think_min;
    plan.network.call_timeout = SimTime::secs(1);
    for start in [300, 1_400, 2_500] {
        let at = SimTime::millis(start + plan.seed % 7 * 40);
        plan.faults.push(Fault {
            when: Trigger::At(at),
            lasts: SimTime::millis(300),
            what: FaultKind::Link {
                clients: vec![0],
                nodes: nodes(plan),
                direction: Direction::ToClient,
                fault: LinkFault::Delay {
                    min: SimTime::millis(150),
                    max: SimTime::millis(150),
                },
            },
        });
        plan.faults.push(Fault {
            when: Trigger::At(at.plus(SimTime::millis(140))),
            lasts: SimTime::millis(600),
            what: FaultKind::Link {
                clients: vec![0],
                nodes: nodes(plan),
                direction: Direction::ToNode,
                fault: LinkFault::Cut,
            },
        });
    }
}

/// Sections may last for several leases under the watchdog, and no client checks its lock before their end. The first
/// client is cut off again and again.
pub(super) fn unattended(plan: &mut Plan) {
    one_name(plan);
    plan.clients = 2;
    let workload = &mut plan.workload;
    workload.lease = SimTime::millis(100);
    workload.watchdog = Watchdog::On;
    workload.hold_min = SimTime::millis(10);
    workload.hold_max = SimTime::millis(500);
    workload.checks = 1;
    for n in 0..5 {
        plan.faults.push(Fault {
            when: Trigger::At(SimTime::millis(50 + 350 * n)),
            lasts: SimTime::millis(200),
            what: FaultKind::Link {
                clients: vec![0],
                nodes: nodes(plan),
                direction: Direction::Both,
                fault: LinkFault::Cut,
            },
        });
    }
}

/// The first node loses its data again and again; the others do not.
pub(super) fn forgetful(plan: &mut Plan) {
    one_name(plan);
    plan.faults
        .extend((1..7).map(|n| Fault::of_node(SimTime::millis(180 * n), 0, NodeFault::Flush)));
}

/// Operations in progress are dropped again and again.
pub(super) fn dropped(plan: &mut Plan) {
    one_name(plan);
    for n in 1..10 {
        plan.faults.push(Fault::of_client(
            SimTime::millis(120 * n),
            u16::try_from(n).expect("small") % plan.clients,
            ClientFault::Cancel { nth: 2 },
        ));
    }
}

/// For one of three clients, a call takes longer than the lease.
pub(super) fn far_away(plan: &mut Plan) {
    one_name(plan);
    plan.clients = 3;
    plan.nodes.count = 3;
    plan.network.call_timeout = SimTime::millis(300);
    let workload = &mut plan.workload;
    workload.lease = SimTime::millis(200);
    workload.hold_max = workload.hold_min.plus(SimTime::millis(60));
    plan.faults.push(Fault {
        when: Trigger::At(SimTime::ZERO),
        lasts: plan.duration,
        what: FaultKind::Link {
            clients: vec![0],
            nodes: nodes(plan),
            direction: Direction::Both,
            fault: LinkFault::Delay {
                min: SimTime::millis(115),
                max: SimTime::millis(130),
            },
        },
    });
}

/// Every request arrives twice, the second time much later.
pub(super) fn everything_twice(plan: &mut Plan) {
    one_name(plan);
    plan.faults.push(Fault {
        when: Trigger::At(SimTime::ZERO),
        lasts: plan.duration,
        what: FaultKind::Link {
            clients: (0..plan.clients).collect(),
            nodes: nodes(plan),
            direction: Direction::ToNode,
            fault: LinkFault::Duplicate {
                of_million: 1_000_000,
                max: SimTime::millis(60),
            },
        },
    });
}

pub(super) fn nodes(plan: &Plan) -> Vec<u16> {
    (0..plan.nodes.count).collect()
}

/// Eight clients want a majority of fifteen nodes, and reach the nodes in different orders.
pub(super) fn contention(plan: &mut Plan) {
    plan.clients = 8;
    plan.nodes.count = 15;
    plan.duration = SimTime::secs(1);
    plan.progress_within = Some(plan.duration);
    plan.network.min = SimTime::millis(1);
    plan.network.max = SimTime::millis(9);
    let workload = &mut plan.workload;
    workload.names = 1;
    workload.lease = SimTime::secs(1);
    workload.think_min = SimTime::ZERO;
    workload.think_max = SimTime::millis(1);
    workload.backoff_cap = SimTime::secs(1);
}

/// Like [`contention`] with more clients.
pub(super) fn larger_crowd(plan: &mut Plan) {
    contention(plan);
    plan.clients = 16;
}

/// The wall clock of one client is ten minutes ahead, and the wall clock of another is ten minutes behind.
pub(super) fn clocks_of_clients_off(plan: &mut Plan) {
    one_name(plan);
    for (client, by) in [(0, 600_000), (1, -600_000)] {
        let by = ClockStep::millis(by);
        let at = SimTime::ZERO;
        plan.faults
            .push(Fault::of_client(at, client, ClientFault::Step { by }));
    }
}

/// All clients want one lock, and must still make progress in the second half of the run.
pub(super) fn still_at_it(plan: &mut Plan) {
    one_name(plan);
    plan.clients = 4;
    plan.workload.watchdog = Watchdog::On;
    plan.healed_at = Some(SimTime::secs(1));
    plan.progress_within = Some(SimTime::millis(900));
}

/// Work takes longer than a lease, and one node refuses everything for a while.
pub(super) fn refusing(plan: &mut Plan) {
    one_name(plan);
    plan.clients = 2;
    plan.workload.hold_min = SimTime::millis(100);
    plan.workload.hold_max = SimTime::millis(400);
    plan.faults.push(
        Fault::of_node(
            SimTime::millis(300),
            0,
            NodeFault::Error {
                error: ServerError::Busy,
            },
        )
        .lasting(SimTime::millis(500)),
    );
}

/// Holders of one lock stay long enough to be renewed, and one of three clients dies again and again.
pub(super) fn renewed_and_killed(plan: &mut Plan) {
    one_name(plan);
    plan.clients = 3;
    let workload = &mut plan.workload;
    workload.watchdog = Watchdog::On;
    workload.lease = SimTime::millis(90);
    workload.hold_min = SimTime::millis(20);
    workload.hold_max = SimTime::millis(160);
    workload.think_min = SimTime::millis(20);
    workload.think_max = SimTime::millis(60);
    plan.faults.extend((1..10).map(|n| {
        Fault::of_client(SimTime::millis(180 * n), 0, ClientFault::Crash)
            .lasting(SimTime::millis(40))
    }));
}

/// Leaders work for about two leases, check often, and are sometimes paused for longer than a lease.
pub(super) fn led_at_the_deadline(plan: &mut Plan) {
    one_name(plan);
    let workload = &mut plan.workload;
    workload.lease = SimTime::millis(100);
    workload.hold_min = SimTime::millis(100);
    workload.hold_max = SimTime::millis(300);
    workload.checks = 40;
    let clients = plan.clients;
    plan.faults.extend((1..10).map(|n| {
        let client = u16::try_from(n).expect("small") % clients;
        Fault::of_client(SimTime::millis(180 * n), client, ClientFault::Pause)
            .lasting(SimTime::millis(150))
    }));
}

/// The first client's replies take half a lease, then its requests are lost, so that its lease is not renewed.
pub(super) fn led_by_slow_replies(plan: &mut Plan) {
    slow_replies_then_none(plan);
    let workload = &mut plan.workload;
    workload.hold_min = SimTime::millis(400);
    workload.hold_max = SimTime::millis(700);
    workload.checks = 200;
}

/// The first client is cut off again and again, for longer than its lease.
pub(super) fn led_and_cut_off(plan: &mut Plan) {
    unattended(plan);
    plan.workload.checks = 100;
}

/// Requests to the first node are slow, and overtake each other.
pub(super) fn overtaken(plan: &mut Plan) {
    one_name(plan);
    plan.clients = 3;
    plan.nodes.count = 3;
    plan.duration = SimTime::secs(3);
    plan.network.call_timeout = SimTime::millis(60);
    plan.network.connect_timeout = SimTime::millis(50);
    let workload = &mut plan.workload;
    workload.lease = SimTime::millis(400);
    workload.watchdog = Watchdog::Off;
    workload.hold_min = SimTime::millis(60);
    workload.hold_max = SimTime::millis(200);
    let (min, max) = (SimTime::millis(1), SimTime::millis(200));
    for fault in [LinkFault::Delay { min, max }, LinkFault::Reorder { max }] {
        plan.faults.push(Fault {
            when: Trigger::At(SimTime::ZERO),
            lasts: SimTime::secs(3),
            what: FaultKind::Link {
                clients: vec![0, 1, 2],
                nodes: vec![0],
                direction: Direction::ToNode,
                fault,
            },
        });
    }
}
