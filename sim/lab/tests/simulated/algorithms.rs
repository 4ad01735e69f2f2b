//! Lock algorithms that are not of the laboratory: that of the page "Your own algorithm in the matrix", and the lease in a record.

use std::rc::Rc;

use own_algorithm::InTurns;
use quorlock_sim_lab::algorithm::{LeaseRecord, LockAlgorithm, register};
use quorlock_sim_lab::simulation::run;
use quorlock_sim_lab::study::matrix::{CLASSES, Cell, Matrix, contenders};
use quorlock_sim_plan::{Plan, check};

#[path = "../../examples/own_algorithm.rs"]
#[allow(dead_code, reason = "the program of the example is not run here")]
mod own_algorithm;

/// Runs an algorithm under classes of fault.
fn cells(lock: &str, classes: &[&str], runs: u64) -> Vec<Cell> {
    assert_eq!(register(&InTurns), Ok(()));
    let mut matrix = Matrix::new(runs);
    matrix.contenders.retain(|contender| contender.id == lock);
    matrix.classes.retain(|class| classes.contains(&class.id));
    let table = matrix.run(2);
    assert_eq!(table.cells.len(), classes.len(), "{lock}");
    table.cells
}

#[test]
fn an_algorithm_from_outside_is_a_column_of_the_matrix() {
    let cells = cells("in-turns", &["quiet", "client pauses"], 120);
    let [quiet, pauses] = cells.as_slice() else {
        panic!("{} cells", cells.len());
    };
    for cell in [quiet, pauses] {
        assert_eq!(cell.exclusion.violations, 0, "{}", cell.class);
        assert!(
            120 <= cell.tally.holds,
            "{}: {}",
            cell.class,
            cell.tally.holds
        );
    }
    assert!(!quiet.exclusion.is_claimed_to_hold);
}

#[test]
fn a_lease_in_a_record_keeps_what_it_claims_and_breaks_where_clocks_stand_still() {
    let all: Vec<&str> = CLASSES.iter().map(|class| class.id).collect();
    let cells = cells(LeaseRecord.name(), &all, 60);
    for cell in &cells {
        for broken in [&cell.exclusion, &cell.fencing] {
            let is_kept = !broken.is_claimed_to_hold || broken.violations == 0;
            assert!(is_kept, "{}: seed {:?}", cell.class, broken.first_seed);
        }
        assert!(
            60 <= cell.tally.holds,
            "{}: {}",
            cell.class,
            cell.tally.holds
        );
    }
    let stops = cells
        .iter()
        .find(|cell| cell.class == "suspend, clock stops");
    assert!(stops.is_some_and(|cell| 0 < cell.exclusion.violations));
    assert!(
        contenders()
            .iter()
            .any(|lock| lock.id == LeaseRecord.name())
    );
}

#[test]
fn a_plan_names_an_algorithm_and_its_run_is_the_same_every_time() {
    register(&InTurns).unwrap();
    let text = "variant = \"in-turns\"\nlock = \"redlock\"\nseed = 0\nnodes = { count = 3 }";
    let plan: Rc<Plan> = Rc::new(toml::from_str(text).unwrap());
    check(&plan).unwrap();
    let (one, other) = (run(&plan), run(&plan));
    assert_eq!(one.trace, other.trace);
    assert!(0 < one.history.holds);
}

#[test]
fn a_plan_without_the_nodes_or_with_other_work_than_an_algorithm_has_is_refused() {
    register(&InTurns).unwrap();
    for (text, why) in [
        (
            "variant = \"lease-record\"\nlock = \"single\"",
            "variant: lease-record needs lock = \"single\" and nodes.kinds = [\"consensus\"]",
        ),
        (
            "variant = \"in-turns\"\nlock = \"single\"",
            "variant: in-turns needs lock = \"redlock\" on servers",
        ),
        (
            "variant = \"in-turns\"\nlock = \"redlock\"\nworkload = { kind = \"reentrant\" }",
            "workload.kind: an algorithm only acquires one name and releases it",
        ),
    ] {
        let plan: Plan = toml::from_str(text).unwrap();
        let refused = check(&plan).unwrap_err().to_string();
        assert!(refused.starts_with(why), "{refused}");
    }
}
