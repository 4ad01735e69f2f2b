//! Queues of fair locks of which something is missing: keys that the server evicted, and rights that a user lacks.

use std::time::Duration;

use quorlock_core::fencing::{Fence, Token};
use quorlock_core::lease::Lease;
use quorlock_core::message::{
    Access, Acquire, AcquireReply, Mode, QueuePlace, Release, Reply, Request, Retention,
};
use quorlock_core::node::KeyKind;
use quorlock_core::owner::OwnerId;
use quorlock_core::time::millis_of;
use quorlock_core::transport::Transport;
use quorlock_redis::{RedisConfig, RedisTransport};
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_tests::conformance::{
    Arm, Coverage, Plant, RedisArm, SpecArm, Step, Twin, agree, names, owners,
};
use quorlock_tests::requests::{name, wall_clock};

server_tests![
    after_the_eviction_of_any_keys_no_waiter_starves_and_no_dead_one_blocks_the_name,
    USERS: a_waiter_that_lacks_a_right_leaves_no_queue_behind,
];

const PLACE: Duration = Duration::from_secs(150);

fn ask(owner: OwnerId, place: QueuePlace) -> Request {
    Request::Acquire(Acquire {
        name: name("orders/42"),
        access: Access::Fair(place),
        owner,
        count: 1,
        lease: Lease::new(Duration::from_secs(250)).unwrap(),
        fence: Fence::Carry(Token(7)),
        retention: Retention::Forever,
        keep: None,
        after: None,
        replaces: None,
        continues: None,
        check: None,
    })
}

fn wait_for_it(owner: OwnerId) -> Request {
    let millis = millis_of(PLACE);
    ask(owner, QueuePlace::Kept { millis })
}

fn give_back(owner: OwnerId) -> Request {
    Request::Release(Release {
        name: name("orders/42"),
        mode: Mode::Fair,
        owner,
        count: 0,
    })
}

/// A sequence of steps, with the specification that has executed them.
struct Run {
    spec: SpecArm,
    steps: Vec<Step>,
}

impl Run {
    /// Owner 0 holds the name or has released it, and owners 1 and 2 wait. Then the keys are evicted.
    fn begin(kinds: &[KeyKind], is_held: bool) -> Self {
        let [first, second, third] = owners();
        let mut run = Run {
            spec: SpecArm::new(wall_clock()),
            steps: Vec::new(),
        };
        run.ask(ask(first, QueuePlace::None));
        run.ask(wait_for_it(second));
        run.ask(wait_for_it(third));
        if !is_held {
            run.ask(give_back(first));
        }
        let plant = Plant::Evict {
            name: name("orders/42"),
            kinds: kinds.to_vec(),
        };
        run.spec.plant(&plant);
        run.steps.push(Step::Plant(plant));
        run
    }

    /// Returns whether the request was granted.
    fn ask(&mut self, request: Request) -> bool {
        self.steps.push(Step::Ask(request.clone()));
        let reply = self.spec.apply(&request);
        matches!(reply, Ok(Reply::Acquire(AcquireReply::Granted { .. })))
    }

    fn pass(&mut self, span: Duration) {
        self.spec.pass(span);
        self.steps.push(Step::Pass(span));
    }
}

/// Each of the 31 sets of keys is evicted while the name is held and while it is free. The specification decides what each
/// client does next; the scripts on a real server and on the simulated one must agree with it at each step.
async fn after_the_eviction_of_any_keys_no_waiter_starves_and_no_dead_one_blocks_the_name() {
    use KeyKind::{Alive, Claim, Queue, Timeouts, Token};
    let all = [Claim, Token, Queue, Alive, Timeouts];
    let server = Server::start();
    let twin = Twin::of_redis(&server);
    let port = twin.as_ref().map_or(server.port(), Twin::port);
    let names = names();
    let mut redis = RedisArm::at(port, &names);
    let mut check = |steps: &[Step], what: &str| {
        let (mut spec, mut coverage) = (SpecArm::new(wall_clock()), Coverage::default());
        let agreed = agree(steps, &names, &mut spec, &mut redis, &mut coverage);
        let agreed = agreed.and_then(|()| twin.as_ref().map_or(Ok(()), Twin::check));
        agreed.unwrap_or_else(|error| panic!("{what}: {error}"));
    };
    let [first, second, third] = owners();
    for (set, is_held) in (0..32u32).flat_map(|set| [(set, false), (set, true)]) {
        let kinds = all.iter().enumerate();
        let kinds = kinds.filter(|(bit, _)| set & (1 << bit) != 0);
        let kinds: Vec<_> = kinds.map(|(_, kind)| *kind).collect();
        let what = format!("{kinds:?} evicted, held: {is_held}");
        // The others come again and again, and always before the first waiter.
        let mut run = Run::begin(&kinds, is_held);
        let mut granted = Vec::new();
        let mut holder = is_held.then_some(first);
        for _ in 0..4 {
            for owner in [first, third, second] {
                if holder != Some(owner) && run.ask(wait_for_it(owner)) {
                    granted.push(owner);
                    holder = Some(owner);
                }
            }
            if let Some(holder) = holder.take() {
                run.ask(give_back(holder));
            }
        }
        let before = granted.iter().take_while(|owner| **owner != second).count();
        assert!(before <= 2 && before < granted.len(), "{what}: {granted:?}");
        check(&run.steps, &what);
        // The waiters are dead. A newcomer is granted the name when their places, and the claim, are over.
        let mut run = Run::begin(&kinds, is_held);
        run.ask(ask(first, QueuePlace::None));
        run.ask(give_back(first));
        run.pass(Duration::from_secs(200));
        assert!(run.ask(ask(first, QueuePlace::None)), "{what}");
        check(&run.steps, &what);
    }
}

/// The list must not remain without a TTL: a plain lock of the name would be refused for ever.
async fn a_waiter_that_lacks_a_right_leaves_no_queue_behind() {
    let server = Server::start();
    let [holder, waiter, _] = owners();
    let transport = |address: &str| RedisTransport::open(address, RedisConfig::default()).unwrap();
    let holding = transport(&server.address());
    holding.call(ask(holder, QueuePlace::None)).await.unwrap();
    let keys = [
        "redisson_lock_queue",
        "redisson_lock_timeout",
        "quorlock_lock_alive",
    ]
    .map(|prefix| format!("{prefix}:{{orders/42}}"));
    let rights = ["zadd", "pexpire", "rpush", "zscore"];
    for right in rights {
        let lacks = format!("-{right}");
        let user = [
            "ACL", "SETUSER", "locks", "reset", "on", ">secret", "~*", "&*", "+@all",
        ];
        server.command::<()>(&[&user[..], &[lacks.as_str()]].concat());
        let address = server
            .address()
            .replace("redis://", "redis://locks:secret@");
        let asked = transport(&address).call(wait_for_it(waiter)).await;
        assert!(asked.is_err(), "without {right}: {asked:?}");
        let left: u32 = server.command(&["EXISTS", &keys[0], &keys[1], &keys[2]]);
        assert_eq!(left, 0, "without {right}");
    }
    server.command::<()>(&["ACL", "DELUSER", "locks"]);
}
