//! `quorlock-sim why`, on plans whose causes are known.

use std::rc::Rc;

use quorlock_sim_lab::simulation::run;
use quorlock_sim_lab::study::scenario::{Depth, find};
use quorlock_sim_lab::study::why::{Why, explain};
use quorlock_sim_plan::Plan;
use quorlock_sim_plan::property::Property;

use crate::command_line::{sim, stderr};

/// Returns the plan of a case, with the first seed that breaks it.
fn broken(id: &str, case: &str) -> Plan {
    let scenario = find(id).expect("a scenario");
    let case = scenario.cases.iter().find(|known| known.name == case);
    let case = case.expect("a case");
    let seed = case.judge(Depth::UntilFound).first.expect("it breaks");
    Plan {
        seed,
        ..case.plan.clone()
    }
}

fn why(id: &str, case: &str) -> Why {
    explain(&Rc::new(broken(id, case)), 60).expect("it breaks")
}

/// One of two nodes of a bare quorum restarts without its data. This restart, and no other fault, is necessary.
#[test]
fn the_restart_that_forgets_a_claim_is_necessary() {
    let why = why("Q5", "published");
    assert_eq!(why.violation.property, Property::Exclusion);
    let necessary = why
        .faults
        .iter()
        .filter(|cause| cause.is_necessary == Some(true));
    let necessary: Vec<_> = necessary
        .filter(|cause| cause.text.contains("crashes"))
        .collect();
    let [restart] = necessary.as_slice() else {
        panic!("{:?}", why.faults);
    };
    assert!(restart.is_in_slice && why.since <= restart.at && restart.at <= why.violation.at);
    // A request by which the second client won is necessary too, and so is an answer.
    let messages = why
        .messages
        .iter()
        .filter(|cause| cause.is_necessary == Some(true));
    let texts: Vec<&str> = messages.map(|cause| cause.text.as_str()).collect();
    assert!(
        texts.iter().any(|text| text.starts_with("client")),
        "{texts:?}"
    );
    assert!(
        texts.iter().any(|text| text.starts_with("node")),
        "{texts:?}"
    );
    let outside = why.messages.iter().filter(|cause| !cause.is_in_slice);
    assert!(
        outside.count() > why.messages.len() / 2,
        "the slice leaves most of the past out"
    );
}

/// What is found is true: without the restart, the same plan does not break at that time.
#[test]
fn a_plan_without_what_was_necessary_holds_for_longer() {
    let plan = broken("Q5", "published");
    let why = explain(&Rc::new(plan.clone()), 0).expect("it breaks");
    let mut without = Plan::clone(&run(&Rc::new(plan)).plan);
    let before = without.faults.len();
    let mut causes = why.faults.iter();
    // Those that began before the violation are the first ones.
    without.faults.retain(|_| {
        causes
            .next()
            .is_none_or(|cause| cause.is_necessary != Some(true))
    });
    assert!(without.faults.len() < before);
    let broken = run(&Rc::new(without))
        .violated
        .get(&why.violation.property)
        .copied();
    assert!(broken.is_none_or(|at| why.violation.at < at), "{broken:?}");
}

#[test]
fn the_command_names_what_was_necessary() {
    let output = sim(&["why", "Q5", "--case", "published", "--messages", "20"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let printed = String::from_utf8(output.stdout).expect("text");
    assert!(
        printed.contains("without this fault it holds:"),
        "{printed}"
    );
    let output = sim(&["why", "Q5", "--case", "product", "--seed", "0"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("there is nothing to explain"),
        "{}",
        stderr(&output)
    );
}
