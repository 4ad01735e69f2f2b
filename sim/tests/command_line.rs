//! Exit codes, files and errors of the command.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn sim(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_quorlock-sim"))
        .args(arguments)
        .output()
        .expect("it starts")
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn exit_codes_say_what_came_of_it() {
    let out = folder("codes");
    let out = out.to_str().unwrap();
    let good = sim(&["explore", "--seeds", "0..20", "--out", out]);
    assert_eq!(good.status.code(), Some(0), "{}", stderr(&good));
    let bad = [
        "explore", "--seeds", "0..300", "--faults", "all", "--lock", "single",
    ];
    let bad = sim(&[&bad[..], &["--out", out]].concat());
    assert_eq!(bad.status.code(), Some(2));
    for usage in [
        &["explore", "--seeds", "9"][..],
        &["explore", "--faults", "earthquake"],
        &["explore", "--shard", "3/3"],
        &["explore", "--clients", "0"],
        &["dance"],
        &["replay", "/no/such/file"],
        &["report", "/no/such/file", "-o", "page.html"],
        &["shrink", "/no/such/file", "-o", "small.json"],
    ] {
        assert_eq!(sim(usage).status.code(), Some(1), "{usage:?}");
    }
    for help in [
        "explore", "run", "replay", "serve", "shrink", "report", "merge", "bench",
    ] {
        let output = sim(&[help, "--help"]);
        assert_eq!(output.status.code(), Some(0));
        assert!(
            String::from_utf8_lossy(&output.stdout).contains("Example"),
            "{help}"
        );
    }
}

#[test]
fn a_failure_is_written_and_the_last_line_replays_it() {
    let out = folder("failures");
    let explored = sim(&[
        "explore",
        "--seeds",
        "0..300",
        "--faults",
        "all",
        "--lock",
        "single",
        "--out",
        out.to_str().unwrap(),
    ]);
    let text = String::from_utf8(explored.stdout).unwrap();
    let last = text.lines().last().unwrap();
    let file = last.strip_prefix("quorlock-sim replay ").unwrap();
    let replayed = sim(&["replay", file, "--json"]);
    assert_eq!(replayed.status.code(), Some(2), "{}", stderr(&replayed));
    let told: serde_json::Value = serde_json::from_slice(&replayed.stdout).unwrap();
    let written = std::fs::read_to_string(file).unwrap();
    assert!(written.contains(told["trace"].as_str().unwrap()));

    let other = written.replacen(env!("CARGO_PKG_VERSION"), "0.0.0", 1);
    std::fs::write(file, other).unwrap();
    let refused = sim(&["replay", file]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("made by version 0.0.0"));
    std::fs::write(file, "{}").unwrap();
    assert!(stderr(&sim(&["replay", file])).contains("not a failure"));
}

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
        ("[network]\nleast = \"0s\"", "network.least"),
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
fn shards_merge() {
    let folder = folder("shards");
    let mut files = Vec::new();
    for index in 0..2 {
        let shard = format!("{index}/2");
        let part = sim(&["explore", "--seeds", "0..20", "--shard", &shard, "--json"]);
        let file = folder.join(format!("{index}.json"));
        std::fs::write(&file, &part.stdout).unwrap();
        files.push(file.to_str().unwrap().to_owned());
    }
    let merged = sim(&["merge", &files[0], &files[1], "--json"]);
    let whole = sim(&["explore", "--seeds", "0..20", "--json"]);
    assert_eq!(merged.status.code(), Some(0), "{}", stderr(&merged));
    assert_eq!(merged.stdout, whole.stdout);
}

#[test]
fn hashes_are_printed_seed_by_seed_and_are_those_of_the_runs() {
    let base = ["explore", "--seeds", "7..19", "--faults", "all", "--hashes"];
    let whole = sim(&base);
    assert_eq!(whole.status.code(), Some(0), "{}", stderr(&whole));
    let text = String::from_utf8(whole.stdout).unwrap();
    let lines: Vec<(&str, &str)> = text
        .lines()
        .map(|line| line.split_once(' ').expect("a seed and a hash"))
        .collect();
    let seeds: Vec<u64> = lines
        .iter()
        .map(|(seed, _)| seed.parse().unwrap())
        .collect();
    assert_eq!(seeds, (7..19).collect::<Vec<_>>());
    for (seed, hash) in &lines[..3] {
        let run = sim(&["run", "--seed", seed, "--faults", "all", "--json"]);
        let run: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
        assert_eq!(run["trace"], **hash, "seed {seed}");
    }
    let part = sim(&[&base[..], &["--shard", "1/3", "--jobs", "1"]].concat());
    let part = String::from_utf8(part.stdout).unwrap();
    let every_third: Vec<&str> = text.lines().skip(1).step_by(3).collect();
    assert_eq!(part.lines().collect::<Vec<_>>(), every_third);
}

#[test]
fn a_history_is_exported_as_json_lines() {
    let folder = folder("history");
    let file = folder.join("history.jsonl");
    let path = file.to_str().unwrap();
    let run = ["run", "--seed", "1", "--workload", "mutual-exclusion"];
    sim(&[&run[..], &["--history", path]].concat());
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(lines.iter().any(|line| line["operation"] == "acquire"));
    assert!(lines.iter().any(|line| line["operation"] == "use"));
    assert!(lines.iter().all(|line| line["invoke"].is_u64()));

    // Every line has what the page says, and no more.
    let page = include_str!("../../docs/src/simulator.md");
    let section = page
        .split("## Histories for other checkers")
        .nth(1)
        .unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    let mut keys: Vec<&str> = rows.filter_map(|row| row.split('`').next()).collect();
    keys.sort_unstable();
    for line in &lines {
        let mut said: Vec<&str> = line
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        said.sort_unstable();
        assert_eq!(said, keys);
        let operation = line["operation"].as_str().unwrap();
        assert!(section.contains(&format!("`{operation}`")), "{operation}");
        let outcome = line["outcome"].as_str().unwrap();
        assert!(section.contains(&format!("`{outcome}`")), "{outcome}");
    }
}

/// The first failure that a campaign finds.
fn failure(folder: &Path) -> String {
    let out = folder.to_str().expect("a path");
    let explore = ["explore", "--seeds", "0..300", "--faults", "all"];
    let explored = sim(&[&explore[..], &["--lock", "single", "--out", out]].concat());
    let text = String::from_utf8(explored.stdout).expect("text");
    let last = text.lines().last().expect("a line");
    last.strip_prefix("quorlock-sim replay ")
        .expect("a failure")
        .to_owned()
}

#[test]
fn a_campaign_writes_a_hundred_failures_at_most_on_however_many_threads() {
    let folder = folder("hundred");
    let out = folder.to_str().unwrap();
    let swarm = [
        "--lock",
        "single",
        "--variant",
        "set-nx-del",
        "--faults",
        "pause-client",
        "--nodes",
        "1",
    ];
    let explore = [
        "explore",
        "--seeds",
        "0..700",
        "--keep-going",
        "--jobs",
        "8",
    ];
    let explored = sim(&[&explore[..], &swarm, &["--out", out, "--json"]].concat());
    let summary: serde_json::Value = serde_json::from_slice(&explored.stdout).unwrap();
    let violated: u64 = summary["violated"]
        .as_object()
        .unwrap()
        .values()
        .filter_map(serde_json::Value::as_u64)
        .sum();
    assert!(120 < violated, "{violated}");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 100);
    assert_eq!(summary["files"].as_array().unwrap().len(), 100);
}

#[test]
fn a_failure_is_shrunk_and_the_small_one_replays() {
    let folder = folder("shrink");
    let file = failure(&folder);
    let small = folder.join("small/one.json");
    let small = small.to_str().unwrap();
    let shrunk = sim(&["shrink", &file, "-o", small, "--json", "--runs", "1500"]);
    // It did what it was asked: the failure is the answer.
    assert_eq!(shrunk.status.code(), Some(0), "{}", stderr(&shrunk));
    let told: serde_json::Value = serde_json::from_slice(&shrunk.stdout).unwrap();
    let size = |when: &str, what: &str| told[when][what].as_u64().unwrap();
    assert!(size("after", "faults") < size("before", "faults"), "{told}");
    assert!(size("after", "events") < size("before", "events"), "{told}");
    assert_eq!(sim(&["replay", small]).status.code(), Some(2));

    let good = folder.join("good.toml");
    std::fs::write(&good, "clients = 2").unwrap();
    let refused = sim(&["shrink", good.to_str().unwrap(), "-o", small]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("good.toml: it does not fail"));
}

/// Whether every element of a text in XML is closed, in order.
fn is_well_formed(xml: &str) -> bool {
    let mut open = Vec::new();
    for tag in xml.split('<').skip(1) {
        let Some((tag, _)) = tag.split_once('>') else {
            return false;
        };
        let name = tag.split([' ', '\n', '/']).next().unwrap_or("");
        match tag.strip_prefix('/') {
            Some(closed) if open.pop() != Some(closed) => return false,
            Some(_) => {}
            None if tag.ends_with('/') => {}
            None => open.push(name),
        }
    }
    open.is_empty()
}

#[test]
fn a_report_is_one_page_that_needs_nothing_else_and_a_figure_is_one_drawing() {
    let folder = folder("report");
    let file = failure(&folder);
    let page = folder.join("page.html");
    let figure = folder.join("figure.svg");
    let report = ["report", &file, "--json", "-o"];
    let reported = sim(&[&report[..], &[page.to_str().unwrap()]].concat());
    assert_eq!(reported.status.code(), Some(0), "{}", stderr(&reported));
    let page = std::fs::read_to_string(page).unwrap();
    for part in [
        "client 0",
        "node 0",
        "violated",
        "class=\"belief c",
        "class=\"claim c",
        "<ol>",
    ] {
        assert!(page.contains(part), "{part}");
    }
    // No other address than the name of the format, which nobody loads.
    assert_eq!(
        page.matches("http").count(),
        page.matches("http://www.w3.org/2000/svg").count()
    );
    assert!(!page.contains("<script src") && !page.contains("<link") && !page.contains("@import"));

    let drawn = sim(&[&report[..], &[figure.to_str().unwrap(), "--svg"]].concat());
    assert_eq!(drawn.status.code(), Some(0));
    let figure = std::fs::read_to_string(figure).unwrap();
    assert!(is_well_formed(&figure));
    assert!(figure.contains("class=\"message request\""));
    assert!(figure.contains("wrong"));
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
            // An empty file is the standard plan, which holds.
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
fn a_reader_that_goes_away_ends_the_output_and_nothing_else() {
    let out = folder("closed-pipe");
    let out = out.to_str().unwrap();
    let matrix = [
        "matrix", "--runs", "1", "--lock", "ours", "--class", "quiet",
    ];
    for (arguments, code) in [
        (&["run", "--seed", "1"][..], 0),
        (&["run", "--seed", "1", "--plan"], 0),
        (&["run", "S9", "--json"], 2),
        (&["explore", "--seeds", "0..20"], 0),
        (&["explore", "--seeds", "0..20", "--hashes"], 0),
        (&["scenarios", "S9"], 0),
        (&["scenarios", "--list"], 0),
        (&[&matrix[..], &["--out", out]].concat(), 0),
        (&["report", "S9", "-o", &format!("{out}/s9.html")], 0),
        (
            &[
                "shrink",
                "S9",
                "--runs",
                "10",
                "-o",
                &format!("{out}/s9.json"),
            ],
            0,
        ),
        (&["--help"], 0),
    ] {
        // Nothing reads what it says, from the beginning.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_quorlock-sim"));
        let ended = command.args(arguments).stdout(writer).output().unwrap();
        assert_eq!(stderr(&ended), "", "{arguments:?}");
        assert_eq!(ended.status.code(), Some(code), "{arguments:?}");
    }
}

#[test]
fn the_story_and_the_page_say_whose_lock_is_shown() {
    let folder = folder("whose");
    let page = folder.join("page.html");
    let page = page.to_str().unwrap();
    let told = |arguments: &[&str]| {
        let output = sim(&[&["run"][..], arguments].concat());
        let reported = sim(&[&["report", "-o", page][..], arguments].concat());
        assert_eq!(reported.status.code(), Some(0), "{}", stderr(&reported));
        let said = String::from_utf8(reported.stdout).unwrap();
        let story = String::from_utf8(output.stdout).unwrap();
        (story, said, std::fs::read_to_string(page).unwrap())
    };
    let (story, said, page) = told(&["Q5", "--case", "published"]);
    let whose = "the simulator&#39;s own, variant published: not the product&#39;s";
    let plain = whose.replace("&#39;", "'");
    assert!(story.starts_with("RedLock on "), "{story}");
    assert!(story.lines().next().unwrap().ends_with(&plain), "{story}");
    assert!(page.contains(&plain) || page.contains(whose));
    for text in [&story, &said] {
        assert!(
            text.contains("violated (variant published, not the product)"),
            "{text}"
        );
    }
    let (story, said, page) = told(&["S9", "--case", "product"]);
    assert!(
        story
            .lines()
            .next()
            .unwrap()
            .ends_with("one node: the product's"),
        "{story}"
    );
    assert!(page.contains("the product&#39;s") || page.contains("the product's"));
    assert!(!said.contains("not the product"), "{said}");
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
fn a_break_that_needs_more_seeds_than_were_given_is_no_failure() {
    let folder = folder("few-seeds");
    let file = folder.join("rare.toml");
    let scenario = |seeds: u64| {
        format!(
            "id = \"rare\"\ntitle = \"rare\"\nseeds = {seeds}\nlock = \"single\"\n[nodes]\ncount = 1\n\
             [[case]]\nexpect = \"breaks\"\nproperty = \"exclusion\"\n"
        )
    };
    let path = file.to_str().unwrap();
    std::fs::write(&file, scenario(300)).unwrap();
    let few = sim(&["scenarios", path, "--seeds", "2"]);
    let text = String::from_utf8(few.stdout).unwrap();
    assert_eq!(few.status.code(), Some(0), "{text}");
    assert!(
        text.contains("not shown: needs 300 seeds, was given 2"),
        "{text}"
    );
    assert!(text.contains("0 as expected, 0 not, 1 not shown"), "{text}");
    // With all of its own seeds it is missing.
    std::fs::write(&file, scenario(2)).unwrap();
    let all = sim(&["scenarios", path, "--seeds", "2"]);
    let text = String::from_utf8(all.stdout).unwrap();
    assert_eq!(all.status.code(), Some(4), "{text}");
    assert!(text.contains("NOT FOUND: exclusion"), "{text}");
}
