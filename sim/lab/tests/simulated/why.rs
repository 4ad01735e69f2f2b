//! `quorlock-sim why`, on plans whose causes are known.

use std::rc::Rc;

use quorlock_sim_lab::simulation::run;
use quorlock_sim_lab::study::scenario::{Depth, find};
use quorlock_sim_lab::study::why::{Why, explain};
use quorlock_sim_plan::Plan;
use quorlock_sim_plan::property::Property;

use crate::command_line::{folder, sim, stderr};

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
    let explained = explain(&Rc::new(broken(id, case)), 60);
    explained.expect("it breaks").why
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
    let explained = explain(&Rc::new(plan.clone()), 0);
    let why = explained.expect("it breaks").why;
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

#[test]
fn the_nearest_run_that_passes_passes() {
    let explained = explain(&Rc::new(broken("Q5", "published")), 60).expect("it breaks");
    let twin = explained.twin.expect("something alone was necessary");
    let at = run(&Rc::new(twin))
        .violated
        .get(&Property::Exclusion)
        .copied();
    let violated = explained.why.violation.at;
    assert!(at.is_none_or(|at| violated < at), "{at:?}");
}

#[test]
fn the_page_greys_what_cannot_have_led_to_the_violation_and_ends_with_it() {
    let out = folder("why").join("page.html");
    let path = out.to_str().unwrap();
    let output = sim(&[
        "why",
        "Q5",
        "--case",
        "published",
        "--messages",
        "20",
        "-o",
        path,
        "--json",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let why: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let page = std::fs::read_to_string(&out).unwrap();
    let messages = why["messages"].as_array().unwrap();
    let outside = messages
        .iter()
        .filter(|message| message["is_in_slice"] == false);
    // Those after the violation are outside, too.
    assert!(outside.count() <= page.matches(" outside\"").count());
    let inside = messages
        .iter()
        .filter(|message| message["is_in_slice"] == true);
    let arrows = page.split("<line class=\"message ").skip(1);
    let black = arrows.filter(|arrow| !arrow.split('"').next().unwrap().contains("outside"));
    assert_eq!(black.count(), inside.count());
    let end: u64 = page
        .split("const RUN = { end: ")
        .nth(1)
        .unwrap()
        .split(',')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    let (_, shown) = page.split_once("const RUN = ").unwrap();
    let violated = shown.split("violated: ").nth(1).unwrap();
    let violated: u64 = violated.split(',').next().unwrap().parse().unwrap();
    assert!(
        violated < end && end < violated + 100_000_000,
        "{violated} {end}"
    );
    assert!(page.contains("page-passes.html") && out.with_file_name("page-passes.html").exists());
}
