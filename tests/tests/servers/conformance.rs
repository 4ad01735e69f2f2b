//! The scripts on a real server do what the specification says.

use std::cell::RefCell;

use quorlock_tests::conformance::{Cases, Coverage, RedisArm, SpecArm, agree, names, sequences};
use quorlock_tests::requests::wall_clock;
use quorlock_tests::server_tests;

server_tests![the_scripts_agree_with_the_specification_on_every_sequence];

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
        .assert_each_occurred(cases.count as usize / 30);
}
