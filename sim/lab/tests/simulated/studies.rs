//! `quorlock-sim study` against a closed form, and as used from a terminal.

use std::path::Path;

use quorlock_sim_lab::study::experiment::{Experiment, Finished, Sitting, compare, csv};
use quorlock_sim_lab::study::results::Shard;
use quorlock_sim_lab::study::runs::{Extent, Session};

use crate::command_line::{folder, sim, stderr};

const DRIFT: &str = include_str!("../../../studies/drift.toml");

fn study(text: &str) -> Experiment {
    Experiment::parse(Path::new("small.toml"), text).unwrap_or_else(|error| panic!("{error}"))
}

fn run(study: &Experiment, jobs: usize) -> Finished {
    let sitting = Sitting {
        study,
        first_seed: 7_000,
        shard: Shard::WHOLE,
        jobs,
        within: None,
    };
    let finished = sitting.run(&mut Session::default());
    finished.expect("nothing is written")
}

/// A lock with the lease T and the allowance D breaks only if the clock of its server is faster than T / (T - D).
#[test]
fn drift_breaks_a_lock_only_beyond_its_threshold() {
    let mut drift = study(
        &DRIFT
            .replace("points = 15", "points = 8")
            .replace("duration = \"3s\"", "duration = \"1s\""),
    );
    drift.runs = 12;
    drift.half_width = None;
    let finished = run(&drift, 2);
    assert_eq!(finished.extent, Extent::Complete);
    // T = 300 ms, D = 1 % and 2 ms.
    let threshold = (300.0 / (300.0 - 5.0) - 1.0) * 1e6;
    let mut broken = [0; 3];
    for outcome in &finished.outcomes {
        let ppm = drift.points[outcome.point][0].number.unwrap();
        if ppm < threshold {
            assert_eq!(
                outcome.broken,
                [],
                "{}",
                drift.cell_name(outcome.point, outcome.lock)
            );
        }
        broken[outcome.lock] += outcome.broken.len();
    }
    assert!(broken.iter().all(|count| 12 < *count), "{broken:?}");
    // Just above the threshold the overlap is shorter than the way of a message, and some parts in a thousand above it is longer.
    let shares = finished.outcomes.iter().filter(|outcome| outcome.lock == 2);
    let shares: Vec<f64> = shares.map(|outcome| outcome.bounds(&drift).share).collect();
    assert!(0.5 < shares[6], "at 24,000 parts in a million: {shares:?}");
}

const SMALL: &str = "title = \"small\"\nruns = 100\n\
    [plan]\nlock = \"single\"\nclients = 3\nduration = \"1s\"\nnodes = { count = 1, persistence = \"memory\" }\n\
    workload = { lease = \"200ms\", hold_min = \"20ms\", hold_max = \"60ms\", think_min = \"1ms\", think_max = \"20ms\", backoff_cap = \"20ms\", poll_cap = \"20ms\" }\n\
    [[plan.faults]]\nkind = \"crash-node\"\nat = { draw = \"uniform(0s, 900ms)\" }\nnode = 0\nrestart_after = \"1ms\"\n\
    [grid]\nplan.nodes.persistence = [\"memory\", \"every-write\"]\n\
    [[lock]]\nname = \"published\"\nplan = { variant = \"published\" }\n\
    [[lock]]\nname = \"ours\"\n";

#[test]
fn cells_do_not_depend_on_threads_and_drawn_faults_strike() {
    let small = study(SMALL);
    let finished = run(&small, 1);
    assert_eq!(
        csv(&small, &finished.outcomes),
        csv(&small, &run(&small, 3).outcomes)
    );
    let broken: Vec<usize> = finished
        .outcomes
        .iter()
        .map(|outcome| outcome.broken.len())
        .collect();
    let [published, ours, published_kept, ours_kept] = broken[..] else {
        panic!("{broken:?}");
    };
    assert!(5 < published && 5 < ours, "{broken:?}");
    assert_eq!((published_kept, ours_kept), (0, 0));
    for outcome in &finished.outcomes {
        assert_eq!(outcome.tally.runs, 100);
        assert!(80 < outcome.tally.effects(), "{outcome:?}");
        let bounds = outcome.bounds(&small);
        assert!(bounds.least <= bounds.share && bounds.share <= bounds.most);
        assert!(
            bounds.most < 1.0 && bounds.wilson_most <= bounds.most + 1e-3,
            "{bounds:?}"
        );
    }
    let pairs = compare(&small, &finished.outcomes);
    assert_eq!(pairs.len(), 3, "two points and their sum");
    // The same seeds at both points: each counts once.
    assert_eq!(pairs[2].seeds, 100);
    assert_eq!(pairs[2].only_one, pairs[0].only_one);
    assert_eq!(pairs[1].p, 1.0);
}

#[test]
fn a_cell_ends_when_its_bounds_are_narrow() {
    let small = study(&SMALL.replace("runs = 100", "runs = 100\nhalf_width = 0.08"));
    let finished = run(&small, 2);
    for outcome in &finished.outcomes {
        let bounds = outcome.bounds(&small);
        let is_narrow = (bounds.most - bounds.least) / 2.0 <= 0.08;
        assert!(is_narrow || outcome.tally.runs == 100, "{bounds:?}");
    }
    let runs: Vec<u64> = finished
        .outcomes
        .iter()
        .map(|outcome| outcome.tally.runs)
        .collect();
    assert!(runs[2] < runs[0], "zeros are known sooner: {runs:?}");
}

#[test]
fn a_study_is_written_and_read_with_its_errors() {
    let errors = [
        (
            "title = 7",
            "small.toml:1:9: title: invalid type: integer `7`, expected a string",
        ),
        (
            "title = \"x\"\n[grid]\na = 7",
            "small.toml:3:5: write a list, or { from = \"0s\", to = \"2s\", points = 5 }",
        ),
        (
            "title = \"x\"\n[plan]\nclients = { draw = \"uniform(0, 3)\" }",
            "small.toml:3:11: the lock: clients: 0 is not between 1 and 60",
        ),
        (
            "title = \"x\"\n[plan]\nduration = { draw = \"exponential(1s)\" }",
            "small.toml:3:21: the lock: \"exponential(1s)\" is not a distribution: write uniform(0s, 2s), log-uniform(10ms, 2s), uniform(1, 5), \
             or, with at_most, exponential(2s) or pareto(50ms, 1.1)",
        ),
        (
            "title = \"x\"\n[grid]\nplan.clients = [2, 99]",
            "small.toml:3:16: clients = 99, the lock: clients: 99 is not between 1 and 60",
        ),
    ];
    for (text, told) in errors {
        let error = Experiment::parse(Path::new("small.toml"), text).unwrap_err();
        assert_eq!(error.to_string(), told);
    }
}

/// Every study of the page can be run, and so can those of the repository.
#[test]
fn the_studies_of_the_book_can_be_read() {
    let page = include_str!("../../../../docs/src/studies.md");
    let blocks = page
        .split("```toml\n")
        .skip(1)
        .filter_map(|block| block.split("```").next());
    let blocks: Vec<&str> = blocks.collect();
    assert_eq!(blocks.len(), 2);
    assert_eq!(study(blocks[0]).points.len(), 30);
    assert_eq!(study(blocks[1]).points.len(), 64);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../studies");
    for file in std::fs::read_dir(folder).expect("a folder") {
        let path = file.expect("a file").path();
        if path.extension().is_some_and(|kind| kind == "toml") {
            Experiment::read(&path).unwrap_or_else(|error| panic!("{error}"));
        }
    }
}

/// The page lists six studies, each with a command whose file exists, and a section; `reproduce.sh` runs what is there.
#[test]
fn each_of_the_six_studies_has_its_file_and_its_section() {
    let page = include_str!("../../../../docs/src/studies.md");
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (_, index) = page.split_once("## Six studies").expect("a section");
    let (index, _) = index.split_once("\n## ").expect("another section");
    let rows: Vec<&str> = index
        .lines()
        .filter(|line| line.contains("sim/studies/"))
        .collect();
    assert_eq!(rows.len(), 6, "{rows:?}");
    for row in &rows {
        let file = row
            .split([' ', '`'])
            .find(|word| word.starts_with("sim/studies/"));
        assert!(top.join(file.expect("a file")).exists(), "{row}");
    }
    let script = std::fs::read_to_string(top.join("sim/reproduce.sh")).expect("a script");
    for part in [
        "studies/*.toml",
        "studies/deployments/$deployment.toml",
        "studies/shards.sh",
    ] {
        assert!(script.contains(part), "{part}");
    }
    for file in std::fs::read_dir(top.join("sim/studies")).expect("a folder") {
        let name = file.expect("a file").file_name();
        let name = name.to_str().expect("a name");
        let is_told = rows.iter().any(|row| row.contains(name));
        assert!(is_told, "{name} is not in the table");
    }
}

#[test]
fn the_command_writes_tables_and_pictures_and_a_zero_is_a_result() {
    let folder = folder("study");
    let file = folder.join("small.toml");
    std::fs::write(
        &file,
        SMALL.replace(
            "runs = 100",
            "runs = 40\npictures = [\"forest\", \"curve\", \"survival\", \"cost\"]",
        ),
    )
    .unwrap();
    let path = |name: &str| folder.join(name).to_str().expect("a path").to_owned();
    let output = sim(&["study", &path("small.toml"), "--out", &path("out")]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let printed = String::from_utf8(output.stdout).expect("text");
    assert!(
        printed.contains("| every-write | ours | 40 | 0 | 0 (0 to 8.81) |"),
        "{printed}"
    );
    let csv = std::fs::read_to_string(folder.join("out/small.csv")).expect("a table");
    let zero = csv
        .lines()
        .find(|line| line.starts_with("every-write,,ours"))
        .expect("a line");
    assert!(
        zero.starts_with("every-write,,ours,40,0,0,0,0,0.088"),
        "{zero}"
    );
    for kind in ["forest", "curve", "survival", "cost"] {
        let picture = std::fs::read_to_string(folder.join(format!("out/small-{kind}.svg")));
        let picture = picture.expect("a picture");
        assert!(
            picture.starts_with("<svg") && picture.contains("</svg>"),
            "{kind}"
        );
        assert!(picture.contains("published"), "{kind}");
    }
    let expected = SMALL.replace("runs = 100", "runs = 40\nexpect = \"holds\"");
    std::fs::write(&file, expected).unwrap();
    let output = sim(&["study", &path("small.toml"), "--out", &path("out")]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("it is expected to hold, but broke with seed"));
}

#[test]
fn merged_shards_have_the_tables_and_pictures_of_one_command() {
    let folder = folder("study-shards");
    let file = folder.join("small.toml");
    let pictures = "runs = 40\npictures = [\"forest\", \"survival\"]";
    std::fs::write(&file, SMALL.replace("runs = 100", pictures)).unwrap();
    let path = |name: &str| folder.join(name).to_str().expect("a path").to_owned();
    let study = path("small.toml");
    sim(&["study", &study, "--out", &path("alone")]);
    for shard in ["0", "1", "2"] {
        let (part, rows) = (format!("{shard}/3"), path(&format!("shard-{shard}")));
        let arguments = ["study", &study, "--shard", &part, "--results", &rows];
        sim(&[&arguments[..], &["--out", &path("shards")]].concat());
    }
    assert!(!folder.join("shards").exists(), "a shard writes no table");
    let shards = ["shard-2", "shard-0", "shard-1"].map(path);
    let [first, second, third] = &shards;
    let merged = sim(&["merge", first, second, third, "--out", &path("whole")]);
    assert_eq!(merged.status.code(), Some(0), "{}", stderr(&merged));
    for name in [
        "small.csv",
        "small-pairs.csv",
        "small-forest.svg",
        "small-survival.svg",
    ] {
        let [alone, whole] = ["alone", "whole"]
            .map(|place| std::fs::read_to_string(folder.join(place).join(name)).expect("a file"));
        assert!(alone == whole, "{name}:\n{alone}\n{whole}");
    }
}
