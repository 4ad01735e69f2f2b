//! Properties of every schedule of visits and faults, on embedded nodes in virtual time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use quorlock::{EmbeddedNode, Guard, Lock, Locks, Persistence, Token};
use tokio::time::{sleep, timeout};

/// A client that wants the lock.
#[derive(Clone, Debug)]
struct Visit {
    client: usize,
    at_millis: u64,
    patience_millis: u64,
    lease_millis: Option<u64>,
    stay_millis: u64,
    end: End,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Release,
    Drop,
    Leak,
}

/// A fault of a node of the minority, which fails for a while and keeps its data.
#[derive(Clone, Debug)]
struct Fault {
    node: usize,
    at_millis: u64,
    for_millis: u64,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Kill,
    Pause,
}

#[derive(Clone, Debug)]
struct Plan {
    latency_millis: Vec<u64>,
    visits: Vec<Visit>,
    faults: Vec<Fault>,
}

const CLIENTS: usize = 3;
const NODES: usize = 5;
const MINORITY: usize = 2;

fn visit() -> impl Strategy<Value = Visit> {
    let end = prop_oneof![
        4 => Just(End::Release),
        2 => Just(End::Drop),
        1 => Just(End::Leak)
    ];
    (
        0..CLIENTS,
        0..1_500u64,
        1..800u64,
        proptest::option::of(20..400u64),
        0..300u64,
        end,
    )
        .prop_map(
            |(client, at_millis, patience_millis, lease_millis, stay_millis, end)| Visit {
                client,
                at_millis,
                patience_millis,
                lease_millis,
                stay_millis,
                end,
            },
        )
}

fn fault(nodes: [usize; MINORITY]) -> impl Strategy<Value = Fault> {
    let kind = prop_oneof![Just(Kind::Kill), Just(Kind::Pause)];
    let node = proptest::sample::select(nodes.to_vec());
    (node, 0..1_800u64, 1..900u64, kind).prop_map(|(node, at_millis, for_millis, kind)| Fault {
        node,
        at_millis,
        for_millis,
        kind,
    })
}

fn plan() -> impl Strategy<Value = Plan> {
    let minority = (0..NODES, 1..NODES).prop_map(|(one, next)| [one, (one + next) % NODES]);
    minority.prop_flat_map(|minority| {
        (
            proptest::collection::vec(0..8u64, NODES),
            proptest::collection::vec(visit(), 1..25),
            proptest::collection::vec(fault(minority), 0..6),
        )
            .prop_map(|(latency_millis, visits, faults)| Plan {
                latency_millis,
                visits,
                faults,
            })
    })
}

/// Every live guard, and the token of the last grant.
#[derive(Default)]
struct Witness {
    guards: Vec<(usize, Arc<Guard>)>,
    last: Option<Token>,
    grants: usize,
}

impl Witness {
    fn assert_one_holder(&self) {
        let held = self.guards.iter().filter(|(_, guard)| guard.is_held());
        let held: Vec<_> = held.collect();
        assert!(held.len() <= 1, "two holders: {held:?}");
    }

    fn granted(&mut self, number: usize, guard: &Arc<Guard>) {
        self.guards.push((number, guard.clone()));
        self.assert_one_holder();
        let token = Some(guard.fencing_token());
        assert!(self.last < token, "{token:?} after {:?}", self.last);
        self.last = token;
        self.grants += 1;
    }
}

async fn attend(number: usize, visit: Visit, lock: Lock, witness: Arc<Mutex<Witness>>) {
    sleep(Duration::from_millis(visit.at_millis)).await;
    let lock = match visit.lease_millis {
        Some(lease) => lock.lease(Duration::from_millis(lease)),
        None => lock,
    };
    // When its patience runs out, the client drops the acquisition, whatever point it has reached.
    let patience = Duration::from_millis(visit.patience_millis);
    let Ok(acquired) = timeout(patience, lock.acquire()).await else {
        return;
    };
    // Short leases on slow nodes may fail. This is a valid outcome, too.
    let Ok(guard) = acquired else { return };
    let guard = Arc::new(guard);
    witness.lock().unwrap().granted(number, &guard);
    sleep(Duration::from_millis(visit.stay_millis)).await;
    witness.lock().unwrap().guards.retain(|(n, _)| *n != number);
    let guard = Arc::into_inner(guard).expect("there is no other reference");
    match visit.end {
        End::Release => drop(guard.release().await),
        End::Drop => drop(guard),
        End::Leak => guard.leak(),
    }
}

async fn strike(fault: Fault, node: EmbeddedNode) {
    sleep(Duration::from_millis(fault.at_millis)).await;
    match fault.kind {
        Kind::Kill => node.kill(),
        Kind::Pause => node.pause(),
    }
    sleep(Duration::from_millis(fault.for_millis)).await;
    node.resume();
    node.restart();
}

async fn run(plan: Plan) -> usize {
    let node = |millis: &u64| {
        EmbeddedNode::new()
            .latency(Duration::from_millis(*millis))
            .persistence(Persistence::EveryWrite)
    };
    let nodes: Vec<_> = plan.latency_millis.iter().map(node).collect();
    let client = || {
        let lease = Duration::from_millis(600);
        let settings = Locks::builder().watchdog_lease(lease).longest_lease(lease);
        let settings = settings.trust_fresh_nodes();
        settings.on_nodes(nodes.clone()).unwrap()
    };
    let clients: Vec<_> = std::iter::repeat_with(client).take(CLIENTS).collect();
    let witness = Arc::new(Mutex::new(Witness::default()));
    let mut tasks = Vec::new();
    for fault in plan.faults {
        let node = nodes[fault.node].clone();
        tasks.push(tokio::spawn(strike(fault, node)));
    }
    for (number, visit) in plan.visits.into_iter().enumerate() {
        let lock = clients[visit.client].lock("a");
        tasks.push(tokio::spawn(attend(number, visit, lock, witness.clone())));
    }
    let seen = witness.clone();
    let watching = tokio::spawn(async move {
        loop {
            seen.lock().unwrap().assert_one_holder();
            sleep(Duration::from_millis(1)).await;
        }
    });
    for task in tasks {
        task.await.unwrap();
    }
    assert!(!watching.is_finished(), "the watch has seen two holders");
    watching.abort();
    // By then, hanging calls have timed out, failed releases have been retried, and leaked leases have ended.
    sleep(Duration::from_secs(10)).await;
    for node in &nodes {
        assert_eq!(node.names(), [], "left on {node:?}");
    }
    assert!(clients.iter().all(|locks| locks.held() == 0));
    witness.lock().unwrap().grants
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 60,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// At most one guard is held at a time, tokens grow from grant to grant, and nothing is held at the end.
    #[test]
    fn one_holder_at_a_time_growing_tokens_and_nothing_left(plan in plan()) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(run(plan));
    }
}

/// Checks that the property is not vacuous: without faults, every client with patience is granted the lock.
#[tokio::test(start_paused = true)]
async fn everybody_is_let_in_where_nothing_fails() {
    let visit = |number: usize| Visit {
        client: number % CLIENTS,
        at_millis: 0,
        patience_millis: 60_000,
        lease_millis: None,
        stay_millis: 5,
        end: End::Release,
    };
    let plan = Plan {
        latency_millis: vec![2; NODES],
        visits: (0..20).map(visit).collect(),
        faults: Vec::new(),
    };
    assert_eq!(run(plan).await, 20);
}
