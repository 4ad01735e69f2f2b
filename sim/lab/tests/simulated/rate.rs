//! `quorlock-sim rate` against closed forms, against plain counting, and as used from a terminal.

use std::path::Path;

use quorlock_sim_lab::simulation::run;
use quorlock_sim_lab::study::rate::{Count, Deployment, Estimate, Found, Search, Strata};
use quorlock_sim_lab::study::runs::Session;
use quorlock_sim_plan::property::Property;

use crate::command_line::{folder, sim, stderr};

/// The work of all deployments here: the lock is held for most of the time, and others wait for it.
const WORK: &str = "workload = { lease = \"300ms\", hold_min = \"60ms\", hold_max = \"100ms\", think_min = \"5ms\", \
                    think_max = \"40ms\", backoff_cap = \"50ms\" }\n";

fn deployment(plan: &str, processes: &str) -> Deployment {
    let text = format!(
        "horizon = \"1h\"\nlargest = 2\nwindow = \"1s\"\n[plan]\n{plan}\n{WORK}{processes}"
    );
    Deployment::parse(Path::new("x.toml"), &text).unwrap_or_else(|error| panic!("{error}"))
}

/// Restarts of servers, each of which forgets everything.
fn restarts(rate: &str) -> String {
    format!(
        "[[process]]\nkind = \"crash-node\"\neach = \"node\"\nrate = \"{rate}\"\nrestart_after = \"5ms\"\n"
    )
}

const ONE: &str = "lock = \"single\"\nnodes = { count = 1, persistence = \"memory\" }";
const THREE: &str =
    "lock = \"redlock\"\nvariant = \"published\"\nnodes = { count = 3, persistence = \"memory\" }";

fn found(deployment: &Deployment, relative_error: f64, most_runs: u64) -> Found {
    let search = Search {
        deployment,
        jobs: 2,
        relative_error,
        within: None,
        most_runs,
        first_seed: 0,
        shard: quorlock_sim_lab::study::results::Shard::WHOLE,
    };
    let found = search.run(&mut Session::default());
    found.expect("nothing is written")
}

fn estimate(deployment: &Deployment, relative_error: f64, most_runs: u64) -> Estimate {
    match found(deployment, relative_error, most_runs) {
        Found::Estimate(estimate) => estimate,
        other => panic!("{other:?}"),
    }
}

/// A restart of the only server breaks the lock if it meets a hold, and that hold lasts until another client has acquired.
#[test]
fn a_single_restart_breaks_as_often_as_it_meets_a_hold() {
    let deployment = deployment(ONE, &restarts("1/h"));
    let estimate = estimate(&deployment, 0.15, 900);
    // How much of the time a hold is believed for at least so much longer, in a run without faults.
    let mut plan = deployment.plan.clone();
    plan.duration = quorlock_sim_plan::time::SimTime::secs(60);
    let history = run(&std::rc::Rc::new(plan)).history;
    let share = |longer: u64| {
        let stays = history.sections.iter().filter_map(|section| {
            Some(
                section
                    .believed?
                    .saturating_sub(section.won)
                    .saturating_sub(longer),
            )
        });
        stays.sum::<u64>() as f64 / 60e9
    };
    // Another client acquires within its longest pause between two rounds, and three trips of 5 ms and a restart of 5 ms.
    let (least, most) = (share(70_000_000), share(0));
    assert!(least < most && most < 1.0, "{least} to {most}");
    assert!(
        least <= estimate.upper && estimate.lower <= most,
        "{estimate:?}, {least} to {most}"
    );
    assert!(
        0.1 < estimate.rate && estimate.rate <= most,
        "{estimate:?}, {most}"
    );
}

/// With all three claims, and a quorum of two, a rival needs h - (N - q) = 3 - 1 = 2 lost claims. Two clients take turns, so that
/// no round meets another one; and a release reaches all nodes at the same time, so that each hold has all three claims.
#[test]
fn two_of_three_claims_must_be_lost() {
    let turns = "workload = { lease = \"300ms\", hold_min = \"200ms\", hold_max = \"200ms\", think_min = \"150ms\", \
                 think_max = \"160ms\", backoff_cap = \"50ms\" }";
    let text = format!(
        "horizon = \"1h\"\nlargest = 2\nwindow = \"1s\"\n[plan]\nclients = 2\nnetwork = {{ min = \"2ms\", max = \"2ms\" }}\n{THREE}\n{turns}\n{}",
        restarts("60/h")
    );
    let deployment = Deployment::parse(Path::new("x.toml"), &text);
    let deployment = deployment.unwrap_or_else(|error| panic!("{error}"));
    let estimate = estimate(&deployment, 0.01, 900);
    let [one, two, ..] = estimate.strata.as_slice() else {
        panic!("{estimate:?}");
    };
    let names = [one.cut_set.as_str(), two.cut_set.as_str()];
    assert_eq!(names, ["crash-node", "2 x crash-node"]);
    assert!(256 <= one.runs && one.broken == 0, "{one:?}");
    assert!(0 < two.broken, "{two:?}");
    // The closed form: each of three servers restarts 60 times an hour, and at least two do so within one hold of 200 ms. A loss has no effect
    // if the hold ends before a rival has waited for its next try (50 ms), a restart (5 ms) and three trips.
    let two_lost = |seconds: f64| {
        let one = -f64::exp_m1(-seconds / 60.0);
        3.0 * one * one * (1.0 - one) + one.powi(3)
    };
    let (least, most) = (
        3_600.0 / 0.27 * two_lost(0.13),
        3_600.0 / 0.204 * two_lost(0.2),
    );
    assert!(
        two.lower <= most && least <= two.upper,
        "{two:?}, {least} to {most}"
    );
}

/// A lock breaks without any fault if a node is faster than T / (T - D), and no rate is stated for it.
#[test]
fn the_threshold_of_drift_decides_whether_a_rate_exists() {
    let with = |ppm: i32| {
        let plan = "lock = \"single\"\nvariant = \"published\"\nnodes = { count = 1 }";
        let drift = format!(
            "[[plan.faults]]\nkind = \"node-rate\"\nat = \"0s\"\nnode = 0\nrate_ppm = {ppm}\n"
        );
        let late = "lease = \"300ms\", hold_min = \"400ms\", hold_max = \"400ms\", think_min = \"1ms\", think_max = \"1ms\", \
                    backoff_cap = \"1ms\", poll_cap = \"1ms\", checks = 100";
        let text = format!(
            "horizon = \"1h\"\nlargest = 1\n[plan]\nclients = 4\n{plan}\nworkload = {{ {late} }}\n{drift}{}",
            restarts("1/h")
        );
        let deployment = Deployment::parse(Path::new("x.toml"), &text);
        found(
            &deployment.unwrap_or_else(|error| panic!("{error}")),
            1.0,
            100,
        )
    };
    // T = 300 ms, D = 1 % and 2 ms: T / (T - D) = 1.0169.
    assert!(matches!(with(16_000), Found::Estimate(_)));
    assert!(matches!(with(60_000), Found::BreaksAlone(_)));
}

/// The rate that is counted in long runs lies within the bounds. `sim/check-rates.sh --full` checks twenty deployments.
#[test]
fn what_is_counted_lies_within_the_bounds() {
    let common = restarts("200/h") + "common = 0.2\n";
    for (plan, processes) in [(ONE, restarts("200/h")), (THREE, common)] {
        let deployment = deployment(plan, &processes);
        let estimate = estimate(&deployment, 0.1, 400);
        let count = Count {
            deployment: &deployment,
            runs: 12,
            jobs: 2,
        };
        let counted = count.run(&mut Session::default()).unwrap();
        assert!(5 <= counted.violations, "{counted:?}");
        assert!(
            counted.lower <= estimate.upper && estimate.lower <= counted.upper,
            "{counted:?}, {estimate:?}"
        );
    }
}

/// With no run at all, each cluster counts as violated.
#[test]
fn what_is_not_run_counts_as_violated() {
    let deployment = deployment(THREE, &restarts("60/h"));
    let strata = Strata::of(&deployment);
    let estimate = estimate(&deployment, 1e-9, 0);
    let clusters: f64 = estimate.strata.iter().map(|part| part.clusters).sum();
    assert_eq!((estimate.runs, estimate.lower), (0, 0.0));
    assert!(
        (estimate.upper / clusters - 1.0).abs() < 1e-9,
        "{estimate:?}"
    );
    let last = &estimate.strata[estimate.strata.len() - 2..];
    assert_eq!(last[0].cut_set, "larger clusters");
    assert_eq!((last[0].runs, last[0].upper), (0, strata.larger));
    assert!(0.0 < strata.larger && strata.larger < estimate.upper);
    assert_eq!(deployment.property, Property::Exclusion);
}

#[test]
fn results_are_continued_and_do_not_depend_on_threads() {
    let folder = folder("rate");
    let file = folder.join("x.toml");
    let text = format!(
        "horizon = \"1h\"\nlargest = 1\nwindow = \"1s\"\n[plan]\n{ONE}\n{WORK}{}",
        restarts("60/h")
    );
    std::fs::write(&file, text).unwrap();
    let [file, whole, cut] =
        [file, folder.join("whole"), folder.join("cut")].map(|path| path.display().to_string());
    let base = [
        "rate",
        &file,
        "--relative-error",
        "0.2",
        "--runs",
        "600",
        "--json",
    ];
    let rate = |more: &[&str]| sim(&[&base[..], more].concat());
    let first = rate(&["--results", &whole, "--jobs", "3"]);
    assert!(
        matches!(first.status.code(), Some(0 | 4)),
        "{}",
        stderr(&first)
    );
    assert_eq!(
        rate(&["--results", &cut, "--for", "1ms"]).status.code(),
        Some(4)
    );
    let resumed = rate(&["--results", &cut, "--resume", "--jobs", "1"]);
    assert_eq!(resumed.stdout, first.stdout, "{}", stderr(&resumed));
    let again = rate(&["--results", &whole, "--resume"]);
    assert_eq!(again.stdout, first.stdout);
    let merged = sim(&["merge", &whole]);
    assert_eq!(merged.status.code(), Some(1));
    let printed: serde_json::Value = serde_json::from_slice(&first.stdout).unwrap();
    assert!(
        printed["lower"].as_f64() < printed["rate"].as_f64(),
        "{printed}"
    );
}

#[test]
fn errors_of_a_file_have_their_place() {
    let head = "horizon = \"1y\"\n[plan]\nclients = 2\n";
    let process =
        |lines: &str| format!("{head}[[process]]\nkind = \"crash-node\"\neach = \"node\"\n{lines}");
    let cases = [
        (
            "horizon = \"1y\"\n[plan]\nclents = 2\n".to_owned(),
            "3:1: unknown field `clents`",
        ),
        (
            format!("{head}[[process]]\nkind = \"crush-node\"\neach = \"node\"\nrate = \"1/h\"\n"),
            "5:8: ",
        ),
        (
            process("rate = \"often\"\nrestart_after = \"1s\"\n"),
            "7:8: rate: \"often\" is not a rate",
        ),
        (
            process("rate = \"1/h\"\nrestart_after = \"soon\"\n"),
            "8:17: restart_after: \"soon\" is not a length",
        ),
        (
            process("rate = \"1/h\"\nlaw = \"weibull\"\n"),
            "8:7: law: unknown variant `weibull`",
        ),
        (
            process("rate = \"1/h\"\ncommon = 2.0\nrestart_after = \"1s\"\n"),
            "8:10: common: a share",
        ),
        (
            format!(
                "{head}[[process]]\nkind = \"pause-client\"\neach = \"node\"\nrate = \"1/h\"\nlasts = \"1s\"\n"
            ),
            "6:8: each: this fault does not strike a node",
        ),
        // What a file lacks is reported where it can be added, never at its first character.
        (head.to_owned(), "3:12: there is no [[process]]"),
        (
            "horizon = \"1y\"\n[[process]]\nkind = \"flush\"\n".to_owned(),
            "3:15: there is no table [plan]",
        ),
        (
            "[plan]\n[[process]]\nkind = \"flush\"\neach = \"node\"\nrate = \"1/h\"\n".to_owned(),
            "1:2: missing field `horizon`: add it above all tables",
        ),
        (
            format!("{head}[process]\nkind = \"flush\"\n"),
            "4:1: write [[process]]",
        ),
        (
            format!("{head}[[lock]]\nplan = {{ clients = 3 }}\n"),
            "5:23: a [[lock]] has a text as its `name`",
        ),
        (
            format!("{head}[[lock]]\nname = \"a\"\n[[lock]]\nname = \"b\"\n"),
            "5:8: choose one of its locks with --lock: \"a\", \"b\"",
        ),
    ];
    for (text, expected) in cases {
        let error = Deployment::parse(Path::new("x.toml"), &text)
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("x.toml:") && error.contains(expected),
            "{error}, not {expected}"
        );
    }
}

/// Every file in the folder of deployments can be read, for each of its locks.
#[test]
fn the_deployments_of_this_repository_are_valid() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../studies/deployments");
    let files = std::fs::read_dir(folder).unwrap();
    let files = files.map(|file| file.unwrap().path());
    let mut read = 0;
    for file in files.filter(|file| file.extension().is_some_and(|kind| kind == "toml")) {
        let text = std::fs::read_to_string(&file).unwrap();
        let names = text.lines().filter_map(|line| line.strip_prefix("name = "));
        let mut locks: Vec<Option<&str>> = names.map(|name| Some(name.trim_matches('"'))).collect();
        if locks.is_empty() {
            locks.push(None);
        }
        for lock in locks {
            Deployment::of_lock(&file, &text, lock).unwrap_or_else(|error| panic!("{error}"));
            read += 1;
        }
    }
    assert_eq!(read, 4 + 3 * 6);
}

#[test]
fn one_of_several_locks_is_chosen_and_changes_the_file() {
    let text = format!(
        "horizon = \"1h\"\n[plan]\n{WORK}{}[[lock]]\nname = \"one\"\nplan = {{ lock = \"single\", nodes = {{ count = 1 }} }}\n\
         [[lock]]\nname = \"three\"\nwindow = \"9s\"\nplan = {{ nodes = {{ count = 3 }} }}\n",
        restarts("1/h")
    );
    let of = |lock: Option<&str>| Deployment::of_lock(Path::new("x.toml"), &text, lock);
    let counts = ["one", "three"].map(|lock| of(Some(lock)).unwrap().plan.nodes.count);
    assert_eq!(counts, [1, 3]);
    let window = of(Some("three")).unwrap().window;
    assert_eq!(window, quorlock_sim_plan::time::SimTime::secs(9));
    for lock in [None, Some("five")] {
        let error = of(lock).unwrap_err().to_string();
        let names = "choose one of its locks with --lock: \"one\", \"three\"";
        assert!(error.contains(names), "{error}");
    }
    let without = text.split("[[lock]]").next().unwrap();
    let error = Deployment::of_lock(Path::new("x.toml"), without, Some("one")).unwrap_err();
    assert!(error.to_string().contains("leave out --lock"), "{error}");
}

/// The shards of a search find what they would find on any number of machines, and their sum has bounds as one search has.
#[test]
fn shards_of_a_search_merge_to_an_estimate() {
    let folder = folder("rate-shards");
    let file = folder.join("one.toml");
    let text = format!(
        "horizon = \"1h\"\nlargest = 2\nwindow = \"1s\"\n[plan]\n{ONE}\n{WORK}{}",
        restarts("1/h")
    );
    std::fs::write(&file, text).unwrap();
    let path = |name: &str| folder.join(name).to_str().expect("a path").to_owned();
    let shard = |of: u32, index: u32| {
        let (shard, results) = (format!("{index}/{of}"), path(&format!("{of}-{index}")));
        let arguments = [
            "rate",
            &path("one.toml"),
            "--runs",
            "1700",
            "--relative-error",
            "0.05",
            "--shard",
            &shard,
            "--results",
            &results,
        ];
        let output = sim(&arguments);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        results
    };
    let merged = [2, 3].map(|of| {
        let folders: Vec<String> = (0..of).map(|index| shard(of, index)).collect();
        let mut arguments = vec!["merge", "--json"];
        arguments.extend(folders.iter().map(String::as_str));
        let output = sim(&arguments);
        assert_eq!(
            output.status.code(),
            Some(4),
            "5 % need more runs: {}",
            stderr(&output)
        );
        output.stdout
    });
    assert_eq!(merged[0], merged[1]);
    let printed: serde_json::Value = serde_json::from_slice(&merged[0]).unwrap();
    let number = |key: &str| printed[key].as_f64().unwrap();
    assert!(
        1_000.0 < number("runs") && number("runs") <= 1_700.0,
        "{printed}"
    );
    let whole = estimate(&Deployment::read(&file).unwrap(), 0.05, 1_700);
    assert!(
        number("lower") <= whole.upper && whole.lower <= number("upper"),
        "{printed}, {whole:?}"
    );
    assert!(0.0 < number("lower"));
}

/// A server that is down for long keeps clients from the lock for that time. One of three servers, or a rival that asks elsewhere, does not.
#[test]
fn what_keeps_clients_from_the_lock_is_what_is_down() {
    let down = |plan: &str| {
        let processes = "[[process]]\nkind = \"crash-node\"\neach = \"node\"\nrate = \"1/d\"\nrestart_after = \"4s\"\n";
        let text = format!(
            "horizon = \"1d\"\nlargest = 1\nwindow = \"6s\"\n[plan]\n{plan}\n{WORK}{processes}"
        );
        let deployment = Deployment::parse(Path::new("x.toml"), &text);
        let deployment = deployment.unwrap_or_else(|error| panic!("{error}"));
        estimate(&deployment, 0.15, 64)
    };
    let one = down(ONE);
    let serving = one.strata[0].serving.expect("it was run");
    // Clients ask at nearly all times. Without faults the lock is free for up to a quarter of them, while it passes to the next client.
    assert!((3.0..4.1).contains(&serving.outage), "{serving:?}");
    assert!(4.0 < serving.longest, "{serving:?}");
    let quiet = one.quiet.expect("it was run");
    assert!(quiet.next_lock < 0.5 && quiet.outage == 0.0, "{quiet:?}");
    let expected = 1.0 - one.strata[0].clusters * serving.outage / 86_400.0;
    assert!((one.availability - expected).abs() < 1e-9, "{one:?}");
    let three = down(THREE);
    let serving = three.strata[0].serving.expect("it was run");
    assert!(serving.outage < 0.5, "{serving:?}");
    assert!(Some(3.0) < serving.requests_a_hold, "{serving:?}");
}
