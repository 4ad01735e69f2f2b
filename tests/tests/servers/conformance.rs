//! The scripts on a real server do what the specification says.

use std::cell::RefCell;

use quorlock_tests::conformance::{
    Cases, Coverage, RedisArm, SpecArm, Twin, agree, names, sequences,
};
use quorlock_tests::requests::wall_clock;
use quorlock_tests::server::Server;
use quorlock_tests::server_tests;

server_tests![
    the_scripts_agree_with_the_specification_on_every_sequence,
    the_specification_a_real_server_and_the_embedded_interpreter_agree_on_every_sequence,
];

async fn the_scripts_agree_with_the_specification_on_every_sequence() {
    let (names, now, cases) = (names(), wall_clock(), Cases::from_environment());
    let spec = RefCell::new(SpecArm::new(now));
    let redis = RefCell::new(RedisArm::start(&names));
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

/// The specification against the real server, request for request, and the real server against the simulated one, byte
/// for byte.
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
