//! Input of the command: plans, scenarios and numbers.

use super::{folder, sim, stderr};

#[test]
fn a_plan_from_a_file_is_run_and_a_bad_one_is_refused_with_the_place() {
    let folder = folder("plans");
    let file = folder.join("plan.toml");
    let path = file.to_str().unwrap();
    let plan = sim(&["run", "--seed", "7", "--plan"]);
    std::fs::write(&file, &plan.stdout).unwrap();
    let from_file = sim(&["run", path, "--json"]);
    let from_seed = sim(&["run", "--seed", "7", "--json"]);
    assert_eq!(from_file.status.code(), Some(0), "{}", stderr(&from_file));
    assert_eq!(from_file.stdout, from_seed.stdout);
    for (text, place) in [
        ("colour = 3", "colour"),
        ("clients = 0", "clients"),
        ("duration = \"fast\"", "duration"),
        (
            "[[faults]]\nkind = \"flush\"\nat = \"1s\"\nnode = 9",
            "faults[0].node",
        ),
        (
            "[[faults]]\nkind = \"flush\"\nat = \"9s\"\nnode = 0",
            "faults[0].at",
        ),
        (
            "[[faults]]\nkind = \"flush\"\nat = \"1s\"\nnode = 0\nwhy = 1",
            "why",
        ),
        ("[workload]\nlease = \"1ms\"", "workload.lease"),
        ("[workload]\nbackoff_cap = \"0s\"", "workload.backoff_cap"),
        ("[network]\nmin = \"0s\"", "network.min"),
    ] {
        std::fs::write(&file, text).unwrap();
        let refused = sim(&["run", path]);
        assert_eq!(refused.status.code(), Some(1), "{text}");
        assert!(
            stderr(&refused).contains(place),
            "{text}: {}",
            stderr(&refused)
        );
        assert!(stderr(&refused).contains("plan.toml"));
    }
}

#[test]
fn what_is_no_file_of_the_simulator_is_refused_with_its_name() {
    let folder = folder("foreign");
    let file = folder.join("foreign.txt");
    let path = file.to_str().unwrap();
    let out = folder.join("out");
    let out = out.to_str().unwrap();
    for text in [
        "",
        "hello",
        "{\"a\": 1}",
        "{",
        "[[faults]]\nkind = \"earthquake\"",
    ] {
        std::fs::write(&file, text).unwrap();
        for command in ["report", "shrink"] {
            let refused = sim(&[command, path, "-o", out]);
            // An empty file is the default plan, which breaks nothing.
            if !text.is_empty() || command == "shrink" {
                assert_eq!(refused.status.code(), Some(1), "{command} {text}");
                assert!(stderr(&refused).contains("foreign.txt"), "{text}");
            }
        }
    }
}

#[test]
fn scenarios_are_chosen_by_their_id_or_else_by_their_title() {
    let ids = |wanted: &str| {
        let output = sim(&["scenarios", wanted, "--list"]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let ids = said.lines().filter_map(|line| line.split(' ').next());
        ids.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(ids("Q3"), ["Q3"]);
    let single = ids("s");
    assert!(10 < single.len());
    assert!(single.iter().all(|id| id.starts_with('S')), "{single:?}");
    assert!(ids("clock").len() > 1);
    assert!(ids("no such thing").is_empty());
}

#[test]
fn a_number_that_makes_no_sense_is_refused_with_one_that_does() {
    let out = folder("numbers");
    let out = out.to_str().unwrap();
    for (arguments, wrong) in [
        (&["matrix", "--runs", "0", "--out", out][..], "--runs"),
        (&["matrix", "--jobs", "0", "--out", out], "--jobs"),
        (&["explore", "--jobs", "0", "--out", out], "--jobs"),
        (&["explore", "--jobs", "1000000", "--out", out], "--jobs"),
        (&["explore", "--seeds", "5..5", "--out", out], "--seeds"),
        (&["explore", "--shard", "0/0", "--out", out], "--shard"),
        (&["explore", "--nodes", "0", "--out", out], "--nodes"),
        (&["explore", "--duration", "0s", "--out", out], "duration"),
        (&["scenarios", "--jobs", "0"], "--jobs"),
        (&["scenarios", "--seeds", "0"], "--seeds"),
        (&["shrink", "S9", "--runs", "0", "-o", out], "--runs"),
        (&["bench", "--seconds", "0"], "--seconds"),
        (&["serve", "--nodes", "0"], "--nodes"),
    ] {
        let refused = sim(arguments);
        let said = stderr(&refused);
        assert_eq!(refused.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.contains(wrong), "{arguments:?}: {said}");
        let helps = [
            "1..=",
            "write for example",
            "write I/N",
            "1 or more",
            "at least",
        ];
        assert!(
            helps.iter().any(|help| said.contains(help)),
            "{arguments:?}: {said}"
        );
    }
}

#[test]
fn the_help_of_every_command_has_an_example_and_the_exit_codes() {
    let all = String::from_utf8(sim(&["--help"]).stdout).unwrap();
    let (_, commands) = all.split_once("Commands:\n").unwrap();
    let commands = commands.lines().take_while(|line| !line.is_empty());
    let names: Vec<&str> = commands
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(names.contains(&"gallery") && 15 <= names.len(), "{names:?}");
    for name in names.into_iter().filter(|name| *name != "help") {
        for flag in ["--help", "-h"] {
            let help = String::from_utf8(sim(&[name, flag]).stdout).unwrap();
            assert!(help.contains("Example"), "{name}: no example");
            assert!(
                help.to_lowercase().contains("exit code"),
                "{name}: no exit codes"
            );
            // These two write text for a shell and for `man`.
            let is_for_others = ["completions", "man"].contains(&name);
            assert!(help.contains("--json") != is_for_others, "{name}: --json");
        }
    }
}

#[test]
fn a_wrong_field_of_a_study_is_named_with_its_place_also_if_it_is_varied() {
    let folder = folder("study-places");
    let file = folder.join("study.toml");
    let path = file.to_str().unwrap();
    let header = "title = \"x\"\nruns = 10\n";
    for (text, place) in [
        (
            "[plan]\nlock = \"single\"\n[grid]\nplan.workload.lease = [\"1ms\", \"100ms\"]\n",
            "study.toml:6:23: lease = 1ms, the lock: workload.lease: 1ms is too short",
        ),
        (
            "[plan]\nlock = \"single\"\nclients = 99\n",
            "study.toml:5:11: the lock: clients: 99",
        ),
        (
            "[plan]\nlock = \"single\"\n[[lock]]\nname = \"a\"\nplan = { clients = 0 }\n",
            "study.toml:7:20: a: clients: 0",
        ),
    ] {
        std::fs::write(&file, format!("{header}{text}")).unwrap();
        let refused = sim(&["study", path, "--out", folder.join("out").to_str().unwrap()]);
        assert_eq!(refused.status.code(), Some(1));
        assert!(stderr(&refused).contains(place), "{}", stderr(&refused));
    }
}
