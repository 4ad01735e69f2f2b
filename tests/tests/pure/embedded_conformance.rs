//! The embedded node and a store in memory behave as the specification does.

use std::cell::RefCell;

use quorlock_core::name::Name;
use quorlock_core::time::WallMillis;
use quorlock_tests::conformance::{
    Arm, Cases, Coverage, EmbeddedArm, SpecArm, Step, StoreArm, agree, gathered_sequences,
    many_names, names, sequences,
};
use quorlock_tests::requests::wall_clock;

/// Compares an arm with the specification on sequences of single requests.
fn agrees_on_every_sequence<A: Arm>(arm: fn(WallMillis, &[Name]) -> A) {
    let (names, now, cases) = (names(), wall_clock(), Cases::from_environment());
    let spec = RefCell::new(SpecArm::new(now));
    let arm = RefCell::new(arm(now, &names));
    let coverage = RefCell::new(Coverage::default());
    cases.run(&sequences(now), |steps| {
        agree(
            steps,
            &names,
            &mut spec.borrow_mut(),
            &mut *arm.borrow_mut(),
            &mut coverage.borrow_mut(),
        )
    });
    coverage
        .borrow()
        .assert_each_occurred(cases.count as usize / 50);
}

/// Compares an arm with the specification on sequences of requests of the same moment.
fn agrees_on_requests_of_one_moment<A: Arm>(arm: fn(WallMillis, &[Name]) -> A) {
    let (names, now, cases) = (many_names(), wall_clock(), Cases::from_environment());
    let spec = RefCell::new(SpecArm::new(now));
    let arm = RefCell::new(arm(now, &names));
    let coverage = RefCell::new(Coverage::default());
    let gathered = RefCell::new(0);
    cases.run(&gathered_sequences(now), |steps| {
        for step in steps {
            if let Step::AskTogether(requests) = step {
                *gathered.borrow_mut() += requests.len();
            }
        }
        agree(
            steps,
            &names,
            &mut spec.borrow_mut(),
            &mut *arm.borrow_mut(),
            &mut coverage.borrow_mut(),
        )
    });
    println!("{} requests of one moment", gathered.borrow());
    assert!(10 * cases.count as usize <= gathered.into_inner());
}

#[test]
fn the_embedded_node_agrees_with_the_specification_on_every_sequence() {
    agrees_on_every_sequence(EmbeddedArm::new);
}

#[test]
fn a_store_in_memory_agrees_with_the_specification_on_every_sequence() {
    agrees_on_every_sequence(StoreArm::new);
}

/// The embedded node receives requests of the same moment, which the adapter may send as one call.
#[test]
fn requests_of_one_moment_are_executed_by_the_embedded_node_as_if_each_came_by_itself() {
    agrees_on_requests_of_one_moment(EmbeddedArm::new);
}

/// The transport writes requests about one record together.
#[test]
fn requests_of_one_moment_are_executed_by_a_store_as_if_each_came_by_itself() {
    agrees_on_requests_of_one_moment(StoreArm::new);
}
