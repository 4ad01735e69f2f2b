//! The embedded node behaves as the specification does.

use std::cell::RefCell;

use quorlock_tests::conformance::{
    Cases, Coverage, EmbeddedArm, SpecArm, Step, agree, gathered_sequences, many_names, names,
    sequences,
};
use quorlock_tests::requests::wall_clock;

#[test]
fn the_embedded_node_agrees_with_the_specification_on_every_sequence() {
    let (names, now, cases) = (names(), wall_clock(), Cases::from_environment());
    let spec = RefCell::new(SpecArm::new(now));
    let embedded = RefCell::new(EmbeddedArm::new(now, &names));
    let coverage = RefCell::new(Coverage::default());
    cases.run(&sequences(now), |steps| {
        agree(
            steps,
            &names,
            &mut spec.borrow_mut(),
            &mut *embedded.borrow_mut(),
            &mut coverage.borrow_mut(),
        )
    });
    coverage
        .borrow()
        .assert_each_occurred(cases.count as usize / 50);
}

/// The embedded node receives requests of the same moment, which the adapter may send as one call.
#[test]
fn requests_of_one_moment_are_executed_by_the_embedded_node_as_if_each_came_by_itself() {
    let (names, now, cases) = (many_names(), wall_clock(), Cases::from_environment());
    let spec = RefCell::new(SpecArm::new(now));
    let embedded = RefCell::new(EmbeddedArm::new(now, &names));
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
            &mut *embedded.borrow_mut(),
            &mut coverage.borrow_mut(),
        )
    });
    println!("{} requests of one moment", gathered.borrow());
    assert!(10 * cases.count as usize <= gathered.into_inner());
}
