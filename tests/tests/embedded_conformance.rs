//! The embedded node does what the specification says.

use std::cell::RefCell;

use quorlock_tests::conformance::{Cases, Coverage, EmbeddedArm, SpecArm, agree, names, sequences};
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
