//! `quorlock-sim why`, on plans whose causes are known.

use std::rc::Rc;

use quorlock_sim_check::run::branched;
use quorlock_sim_lab::simulation::{run, run_recorded};
use quorlock_sim_lab::study::scenario::{Depth, Expect, built_in, find};
use quorlock_sim_lab::study::why::{Why, explain};
use quorlock_sim_plan::property::Property;
use quorlock_sim_plan::{Lane, Plan};

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
    let output = sim(&[
        "why",
        "Q5",
        "--case",
        "published",
        "--messages",
        "20",
        "--curve",
        "0",
    ]);
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
        "--curve",
        "0",
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

/// Wherever the faults of the catalog are the cause, the slice has the cause: the run without any fault holds, and the run that lacks only
/// the faults of the slice holds as well.
#[test]
fn the_slice_has_the_faults_that_were_injected() {
    let (mut checked, mut wrong, mut narrow) = (Vec::new(), Vec::new(), 0);
    for scenario in built_in().unwrap() {
        for case in &scenario.cases {
            let Expect::Breaks(property, _) = &case.expect else {
                continue;
            };
            if case.plan.lane != Lane::Fast || case.plan.faults.is_empty() {
                continue;
            }
            let plans = (0..2).map(|seed| Plan {
                seed,
                ..case.plan.clone()
            });
            for plan in plans {
                let Ok(explained) = explain(&Rc::new(plan), 0) else {
                    continue;
                };
                let why = &explained.why;
                let (since, at) = (why.since.as_nanos(), why.violation.at.as_nanos());
                let holds = |faults: Vec<_>| {
                    let plan = Plan::clone(&explained.run.plan);
                    let ran = run(&Rc::new(Plan { faults, ..plan }));
                    let broken = ran.violated.get(property);
                    broken.is_none_or(|other| at + (at - since) < other.as_nanos())
                };
                if why.violation.property != *property || !holds(Vec::new()) {
                    continue;
                }
                let slice = why.slice(None).faults;
                let faults = explained.run.plan.faults.iter().enumerate();
                // Those behind the violation may break it again.
                let is_before = |index| {
                    let fault = explained.run.happened(index);
                    fault.is_some_and(|fault| fault.begins() <= why.violation.at)
                };
                let outside =
                    faults.filter(|(index, _)| !slice.contains(index) && is_before(*index));
                let outside: Vec<_> = outside.map(|(_, fault)| fault.clone()).collect();
                narrow += u64::from(!outside.is_empty());
                let name = format!(
                    "{}, {}, seed {}",
                    scenario.id, case.name, explained.run.plan.seed
                );
                if slice.is_empty() || !holds(outside) {
                    wrong.push(format!("{name}: {:?}", why.faults));
                }
                checked.push(name);
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong: {wrong:#?}", wrong.len());
    let many = checked.len();
    assert!(90 <= many, "{many}: {checked:?}");
    assert!(10 <= narrow, "of {many}, {narrow} slices leave a fault out");
}

/// A branch has the past of its run, and another future. One that begins behind the end is the same run.
#[test]
fn a_branch_has_the_same_past_and_another_future() {
    let plan = Rc::new(broken("Q5", "published"));
    let whole = run(&plan);
    assert_eq!(branched(u64::MAX, 7, || run(&plan)).trace, whole.trace);
    let at = 400_000_000;
    let past = |run: &quorlock_sim_check::run::Run| {
        let grants = run.history.grants.iter().filter(|grant| grant.won < at);
        grants
            .map(|grant| (grant.process, grant.won, grant.token))
            .collect::<Vec<_>>()
    };
    let branches = [1, 2].map(|seed| branched(at, seed, || run(&plan)));
    for branch in &branches {
        assert_ne!(branch.trace, whole.trace);
        assert!(!past(branch).is_empty());
        assert_eq!(past(branch), past(&whole));
    }
    assert_ne!(branches[0].trace, branches[1].trace);
    assert_eq!(branched(at, 1, || run(&plan)).trace, branches[0].trace);
    // Nothing of a branch is left for the next run.
    assert_eq!(run(&plan).trace, whole.trace);
}

#[test]
fn the_curve_rises_to_the_violation_and_does_not_depend_on_threads() {
    let mut explained = explain(&Rc::new(broken("Q5", "published")), 0).expect("it breaks");
    explained.draw_curve(24, 2, |_, _| {});
    let curve = explained.why.curve.clone();
    assert!((10..=40).contains(&curve.len()), "{}", curve.len());
    assert!(curve.windows(2).all(|two| two[0].at < two[1].at));
    let (first, last) = (curve[0], curve[curve.len() - 1]);
    assert_eq!(
        (first.at.as_nanos(), last.at),
        (0, explained.why.violation.at)
    );
    // What is about to happen at the last instant is the violation itself.
    assert_eq!((last.broken, last.runs), (24, 24));
    assert!(first.broken < 20, "{first}");
    let decided = explained.why.decided().expect("it rises");
    assert!(decided.from.share() < decided.until.share());
    explained.draw_curve(24, 1, |_, _| {});
    assert_eq!(explained.why.curve, curve);
}

/// The claim that the restarted node forgets would have expired later, and the fault is named as the cause.
#[test]
fn the_page_tells_when_claims_would_expire_and_what_changed_that() {
    let plan = broken("Q5", "published");
    let (_, recording) = run_recorded(&Rc::new(plan));
    let renewed = recording
        .claims
        .iter()
        .filter(|claim| 1 < claim.expiries.len());
    for claim in renewed {
        let since = claim.expiries.windows(2);
        assert!(since.clone().count() > 0 && { since }.all(|two| two[0].since < two[1].since));
    }
    let out = folder("claims").join("page.html");
    let path = out.to_str().unwrap();
    let output = sim(&[
        "why",
        "Q5",
        "--case",
        "published",
        "--messages",
        "0",
        "--curve",
        "8",
        "-o",
        path,
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let printed = String::from_utf8(output.stdout).expect("text");
    assert!(
        printed.contains("how likely it was: drawn anew from 0s on,"),
        "{printed}"
    );
    assert!(printed.contains("most was decided from "), "{printed}");
    let page = std::fs::read_to_string(&out).unwrap();
    let (_, claims) = page
        .split_once("<section id=\"claims\"")
        .expect("the claims");
    let lines: Vec<&str> = claims
        .lines()
        .filter(|line| line.starts_with("<li"))
        .collect();
    let has = |parts: &[&str]| {
        lines
            .iter()
            .any(|line| parts.iter().all(|part| line.contains(part)))
    };
    assert!(
        has(&[
            "on lock-0 would expire at",
            ": client 0: acquire lock-0 for 200 ms"
        ]),
        "{lines:?}"
    );
    assert!(
        has(&["is gone before its time", "release lock-0"]),
        "{lines:?}"
    );
    assert!(
        has(&[
            "on node 0, the claim of client 0",
            "is gone before its time",
            "crashes and is started again"
        ]),
        "{lines:?}"
    );
    assert!(page.contains("class=\"chance\"") && page.contains("class=\"due "));
}

/// A node with a planted flaw lets any client release a claim. The request at which it does is in the slice.
#[test]
fn the_slice_has_the_step_at_which_a_planted_flaw_acts() {
    let explained = explain(&Rc::new(broken("S13", "plain-delete")), 0).expect("it breaks");
    let slice = explained.why.slice(None).messages;
    let is_of_another = |client, at| {
        let mut ended = explained.recording.claims.iter();
        let ended = ended.find(|claim| claim.until == at && claim.owner.is_some());
        ended.is_some_and(|claim| claim.owner.map(|owner| owner.client) != Some(client))
    };
    let messages = explained.recording.messages.iter().enumerate();
    let mut acted = messages.filter(|(_, message)| {
        let at = message.arrives.unwrap_or(u64::MAX);
        let is_release = message.text.starts_with("release");
        at <= explained.why.violation.at.as_nanos()
            && is_release
            && is_of_another(message.client, at)
    });
    let (index, message) = acted.next().expect("the flaw acts");
    assert!(slice.contains(&index), "{message:?}");
}
