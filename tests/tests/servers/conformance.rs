//! Tests that the scripts on a real server behave as the specification does.

use std::cell::RefCell;
use std::time::Duration;

use quorlock::Name;
use quorlock::redis::{RedisClient, SharedConnection};
use quorlock_core::fencing::{Fence, Token};
use quorlock_core::lease::Lease;
use quorlock_core::message::{Access, Acquire, QueuePlace, Request, Retention};
use quorlock_core::time::millis_of;
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::BOUND;
use quorlock_tests::conformance::{
    Cases, Coverage, RedisArm, SpecArm, Step, Twin, agree, evicting_sequences, gathered_sequences,
    many_names, names, sequences,
};
use quorlock_tests::requests::{name, owner, wall_clock};

server_tests![
    the_scripts_agree_with_the_specification_on_every_sequence,
    a_connection_of_the_caller_carries_what_the_specification_says,
    the_specification_a_real_server_and_the_embedded_interpreter_agree_on_every_sequence,
    the_scripts_agree_with_the_specification_while_keys_are_evicted,
    requests_that_go_together_are_executed_as_if_each_came_by_itself,
    a_simulated_server_executes_requests_together_as_a_real_one,
    the_queue_does_not_outlive_its_waiters_when_the_first_is_granted_the_name,
];

/// The holder's lease is over, the first waiter is granted the name, and the second one never returned. The rest of
/// the queue must end when it would have ended, not after the time for which the first waiter would have waited. Of
/// some 70,000 generated sequences, one found this error.
async fn the_queue_does_not_outlive_its_waiters_when_the_first_is_granted_the_name() {
    let ask = |number, place| {
        Step::Ask(Request::Acquire(Acquire {
            name: name("orders/42"),
            access: Access::Fair(place),
            owner: owner(number),
            count: 1,
            lease: Lease::new(Duration::from_secs(150)).unwrap(),
            fence: Fence::Carry(Token(7)),
            retention: Retention::of(Duration::from_secs(1_050)),
            keep: None,
            after: None,
            replaces: None,
            continues: None,
            check: None,
        }))
    };
    let kept = |secs| QueuePlace::Kept {
        millis: millis_of(Duration::from_secs(secs)),
    };
    let steps = [
        ask(1, QueuePlace::None),
        ask(2, kept(250)),
        ask(3, kept(50)),
        Step::Pass(Duration::from_secs(200)),
        ask(2, kept(250)),
        Step::Pass(Duration::from_secs(100)),
    ];
    let (names, now) = (names(), wall_clock());
    let (mut spec, mut redis) = (SpecArm::new(now), RedisArm::start(&names));
    let mut coverage = Coverage::default();
    agree(&steps, &names, &mut spec, &mut redis, &mut coverage).unwrap();
}

async fn the_scripts_agree_with_the_specification_on_every_sequence() {
    agrees(RedisArm::start);
}

async fn a_connection_of_the_caller_carries_what_the_specification_says() {
    let server = Server::start();
    let client = RedisClient::open(server.address()).unwrap();
    let connection = client.get_multiplexed_async_connection().await.unwrap();
    agrees(|names| {
        let shared = SharedConnection::new(connection, "a").call_timeout(BOUND);
        RedisArm::at(server.port(), names).through(shared)
    });
}

fn agrees(arm: impl FnOnce(&[Name]) -> RedisArm) {
    let (names, now, cases) = (names(), wall_clock(), Cases::from_environment());
    let spec = RefCell::new(SpecArm::new(now));
    let redis = RefCell::new(arm(&names));
    let coverage = RefCell::new(Coverage::default());
    cases.run(&sequences(now), |steps| {
        agree(
            steps,
            &names,
            &mut spec.borrow_mut(),
            &mut *redis.borrow_mut(),
            &mut coverage.borrow_mut(),
        )
    });
    coverage
        .borrow()
        .assert_each_occurred(cases.count as usize / 50);
}

/// The server, at its memory limit, evicts any of the keys of a name, as often as requests come.
async fn the_scripts_agree_with_the_specification_while_keys_are_evicted() {
    let server = Server::start();
    let twin = Twin::of_redis(&server);
    let port = twin.as_ref().map_or(server.port(), Twin::port);
    let (names, now, cases) = (names(), wall_clock(), Cases::from_environment());
    let spec = RefCell::new(SpecArm::new(now));
    let redis = RefCell::new(RedisArm::at(port, &names));
    let coverage = RefCell::new(Coverage::default());
    cases.run(&evicting_sequences(now), |steps| {
        let (mut spec, mut redis) = (spec.borrow_mut(), redis.borrow_mut());
        let mut coverage = coverage.borrow_mut();
        let agreed = agree(steps, &names, &mut spec, &mut *redis, &mut coverage);
        agreed.and_then(|()| twin.as_ref().map_or(Ok(()), Twin::check))
    });
}

/// Compares the specification with the real server request by request, and the real server with the simulated one byte by
/// byte.
async fn the_specification_a_real_server_and_the_embedded_interpreter_agree_on_every_sequence() {
    let server = Server::start();
    let info: String = server.command(&["INFO", "server"]);
    if !info.contains("redis_version:7.0.") {
        println!("not compared: the simulated server answers as version 7.0 does");
        return;
    }
    let twin = Twin::of(&server);
    let (names, now, cases) = (names(), wall_clock(), Cases::from_environment());
    let spec = RefCell::new(SpecArm::new(now));
    let redis = RefCell::new(RedisArm::at(twin.port(), &names));
    let coverage = RefCell::new(Coverage::default());
    cases.run(&sequences(now), |steps| {
        let (mut spec, mut redis) = (spec.borrow_mut(), redis.borrow_mut());
        let mut coverage = coverage.borrow_mut();
        let agreed = agree(steps, &names, &mut spec, &mut *redis, &mut coverage);
        agreed.and_then(|()| twin.check())
    });
    coverage
        .borrow()
        .assert_each_occurred(cases.count as usize / 50);
    let found = twin.findings();
    println!(
        "{} replies the same, {} between two milliseconds, {} brought back",
        found.same, found.between, found.brought_back
    );
    assert!(u64::from(10 * cases.count) < found.same, "{found:?}");
    assert!(found.brought_back < u64::from(cases.count), "{found:?}");
}

/// The specification executes requests one by one that the server gets in one call, or in a few.
async fn requests_that_go_together_are_executed_as_if_each_came_by_itself() {
    let server = Server::start();
    let gathered = agree_on_gathered(server.port(), |_| Ok(()));
    // Only batches have this command: one for each batch with an acquire.
    let stats: String = server.command(&["INFO", "commandstats"]);
    let calls = stats.split("cmdstat_mget:calls=").nth(1).unwrap();
    let calls: u64 = calls.split(',').next().unwrap().parse().unwrap();
    println!("{gathered} requests at the same moment, {calls} calls of several");
    assert!(100 < calls, "{gathered} requests, {calls} calls of several");
}

/// The same with the simulated server, whose replies are those of the real server, byte for byte.
async fn a_simulated_server_executes_requests_together_as_a_real_one() {
    let server = Server::start();
    let info: String = server.command(&["INFO", "server"]);
    if !info.contains("redis_version:7.0.") {
        println!("not compared: the simulated server answers as version 7.0 does");
        return;
    }
    let twin = Twin::of(&server);
    agree_on_gathered(twin.port(), |_| twin.check());
    let found = twin.findings();
    println!("{} replies the same", found.same);
    assert!(
        u64::from(10 * Cases::from_environment().count) < found.same,
        "{found:?}"
    );
}

/// Returns how many requests were batched.
fn agree_on_gathered(port: u16, check: impl Fn(&[Step]) -> Result<(), String>) -> u64 {
    let (names, now, cases) = (many_names(), wall_clock(), Cases::from_environment());
    let spec = RefCell::new(SpecArm::new(now));
    let redis = RefCell::new(RedisArm::at(port, &names));
    let coverage = RefCell::new(Coverage::default());
    let gathered = RefCell::new(0);
    cases.run(&gathered_sequences(now), |steps| {
        for step in steps {
            if let Step::AskTogether(requests) = step {
                *gathered.borrow_mut() += requests.len() as u64;
            }
        }
        let (mut spec, mut redis) = (spec.borrow_mut(), redis.borrow_mut());
        let mut coverage = coverage.borrow_mut();
        let agreed = agree(steps, &names, &mut spec, &mut *redis, &mut coverage);
        agreed.and_then(|()| check(steps))
    });
    gathered.into_inner()
}
