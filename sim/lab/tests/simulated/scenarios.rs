//! The whole catalog with its expected verdicts, and scenarios of a user on the command line.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use quorlock_sim_lab::study::scenario::{CaseVerdict, Depth, built_in, parse};

#[test]
fn every_case_of_the_catalog_comes_out_as_expected() {
    let scenarios = built_in().unwrap();
    let cases: Vec<_> = scenarios
        .iter()
        .flat_map(|scenario| scenario.cases.iter().map(move |case| (&scenario.id, case)))
        .collect();
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((id, case)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let judged = case.judge(Depth::UntilFound);
                    if judged.verdict != CaseVerdict::AsExpected {
                        let name = &case.name;
                        let line = format!("{id}, {name}: {:?}", judged.verdict);
                        wrong.lock().unwrap().push(line);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The parts of the catalog: one node, failovers, several locks, a quorum, the model-checked variants, figures, modes,
/// and elections.
#[test]
fn the_catalog_has_every_part() {
    let ids: Vec<String> = built_in().unwrap().into_iter().map(|s| s.id).collect();
    let count = |prefix: &str| ids.iter().filter(|id| id.starts_with(prefix)).count();
    for (prefix, min) in [
        ("S", 20),
        ("R", 9),
        ("M", 7),
        ("Q", 29),
        ("V-", 12),
        ("F", 2),
        ("L", 8),
        ("E", 6),
    ] {
        assert!(min <= count(prefix), "{prefix}: {}", count(prefix));
    }
}

/// Returns the pages of the book, and the README.
fn pages() -> Vec<(String, String)> {
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).expect("it can be read");
        (path.display().to_string(), text)
    };
    quorlock_testbed::files::pages()
        .into_iter()
        .map(read)
        .collect()
}

#[test]
fn every_scenario_that_a_page_names_is_in_the_catalog() {
    let ids: Vec<String> = built_in().unwrap().into_iter().map(|s| s.id).collect();
    let mut missing = Vec::new();
    // The rules of the protocol have separate numbers.
    for (page, text) in pages()
        .into_iter()
        .filter(|(page, _)| !page.ends_with("protocol.md"))
    {
        for word in text.split(|c: char| !c.is_alphanumeric() && c != '-') {
            let number = word.strip_prefix(['S', 'R', 'M', 'Q', 'F', 'L', 'E', 'D']);
            let is_id =
                number.is_some_and(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()));
            if is_id && !ids.iter().any(|id| id == word) {
                missing.push(format!("{page}: {word}"));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn the_page_names_every_case_that_the_lane_over_sockets_cannot_show() {
    let page = include_str!("../../../../docs/src/simulator.md");
    let table = page
        .split("| scenario | case | what it needs |")
        .nth(1)
        .unwrap();
    let rows = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let cells = |row: &str| {
        row.split('|')
            .map(|cell| cell.trim().to_owned())
            .collect::<Vec<_>>()
    };
    let named: Vec<(String, String)> = rows
        .map(|row| (cells(row)[1].clone(), cells(row)[2].clone()))
        .collect();
    let mut lacking = Vec::new();
    for scenario in built_in().unwrap() {
        for mut case in scenario.cases {
            case.plan.lane = quorlock_sim_plan::Lane::Turmoil;
            // With zero seeds nothing runs, but what the lane lacks is reported.
            case.seeds = 0;
            if let CaseVerdict::NotInLane(_) = case.judge(Depth::UntilFound).verdict {
                lacking.push((scenario.id.clone(), case.name));
            }
        }
    }
    let sorted = |mut rows: Vec<(String, String)>| {
        rows.sort();
        rows
    };
    assert_eq!(sorted(named), sorted(lacking));
}

fn sim(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_quorlock-sim"))
        .args(arguments)
        .output()
        .expect("it starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

#[test]
fn a_filter_chooses_by_id_or_title() {
    let one = sim(&["scenarios", "s9"]);
    assert_eq!(one.status.code(), Some(0), "{}", stderr(&one));
    assert!(stdout(&one).contains("2 cases"), "{}", stdout(&one));
    let listed = sim(&["scenarios", "--list", "M"]);
    assert!(stdout(&listed).lines().count() >= 7);
    let none = sim(&["scenarios", "Z99"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(stderr(&none).contains("Z99") && stderr(&none).contains("--list"));
    let rows = sim(&["scenarios", "S7", "--json"]);
    let rows: serde_json::Value = serde_json::from_slice(&rows.stdout).unwrap();
    let row = &rows["cells"][0];
    assert_eq!(row["verdict"], "as-expected");
    assert!(row["runs"].as_u64() >= Some(10));
}

const MINE: &str = r#"
id = "MINE"
title = "my own"
seeds = 60
lock = "single"
[nodes]
count = 1
persistence = "memory"
[[faults]]
kind = "crash-node"
at = "500ms"
node = 0
restart_after = "1ms"
"#;

#[test]
fn a_scenario_in_any_folder_is_judged_like_the_catalog() {
    let folder = folder("mine");
    let file = folder.join("mine.toml");
    let path = file.to_str().unwrap();
    let breaks =
        "[[case]]\nexpect = \"breaks\"\nproperty = \"exclusion\"\nbeside = [\"fencing\"]\n";
    for (case, code, word) in [
        (breaks, 0, "as expected"),
        ("[[case]]\nexpect = \"holds\"\n", 2, "BROKEN: exclusion"),
        (
            "[[case]]\nexpect = \"breaks\"\nproperty = \"ownership\"\nbeside = [\"exclusion\", \"fencing\"]\n",
            4,
            "NOT FOUND: ownership",
        ),
        (
            "[[case]]\nexpect = \"holds\"\nplan = { clients = 1 }\n",
            4,
            "VACUOUS",
        ),
    ] {
        std::fs::write(&file, format!("{MINE}{case}")).unwrap();
        let judged = sim(&["scenarios", path]);
        assert_eq!(
            judged.status.code(),
            Some(code),
            "{case}{}",
            stdout(&judged)
        );
        assert!(stdout(&judged).contains(word), "{}", stdout(&judged));
    }
    // The same file as one story, as a page, and as a small failure.
    std::fs::write(&file, format!("{MINE}{breaks}")).unwrap();
    let told = sim(&["run", path]);
    assert_eq!(told.status.code(), Some(2), "{}", stderr(&told));
    assert!(stdout(&told).contains("node 0 crashes"));
    let page = folder.join("page.html");
    let page = page.to_str().unwrap();
    assert_eq!(sim(&["report", path, "-o", page]).status.code(), Some(0));
    let small = folder.join("small.json");
    let small = small.to_str().unwrap();
    assert_eq!(sim(&["shrink", path, "-o", small]).status.code(), Some(0));
    // The whole folder, and an empty folder.
    let all = sim(&["scenarios", folder.to_str().unwrap()]);
    assert_eq!(all.status.code(), Some(0), "{}", stderr(&all));
    let empty = folder.join("empty");
    std::fs::create_dir(&empty).unwrap();
    let none = sim(&["scenarios", empty.to_str().unwrap()]);
    assert_eq!(none.status.code(), Some(1));
    assert!(stderr(&none).contains(".toml"));
}

#[test]
fn a_scenario_is_told_by_its_id_and_an_unknown_one_is_refused() {
    let story = sim(&["run", "S9"]);
    assert_eq!(story.status.code(), Some(2), "{}", stderr(&story));
    assert!(stdout(&story).contains("the clock of node 0 is set by 300ms"));
    let other = sim(&["run", "S11", "--case", "wall-clock"]);
    assert_eq!(other.status.code(), Some(2), "{}", stderr(&other));
    for (arguments, told) in [
        (&["run", "S99"][..], "S99"),
        (
            &["run", "S9", "--case", "dance"],
            "use one of product, published",
        ),
        (&["report", "S99", "-o", "page.html"], "S99"),
        (
            &["shrink", "no/such.toml", "-o", "small.json"],
            "no/such.toml",
        ),
        (&["scenarios", "no/such.toml"], "no/such.toml"),
    ] {
        let refused = sim(arguments);
        assert_eq!(refused.status.code(), Some(1), "{arguments:?}");
        assert!(stderr(&refused).contains(told), "{}", stderr(&refused));
    }
    let help = sim(&["scenarios", "--help"]);
    assert!(stdout(&help).contains("Example"));
}

#[test]
fn the_scenario_that_the_documentation_builds_comes_out_as_it_says() {
    let page = include_str!("../../../../docs/src/scenarios.md");
    let blocks = page.split("```toml\n").skip(1);
    let blocks: Vec<&str> = blocks.filter_map(|b| b.split("```").next()).collect();
    let [plan, header, case, cut, other] = blocks.as_slice() else {
        panic!("{} blocks", blocks.len())
    };
    let whole = [*header, plan, cut, case, other].join("\n");
    let scenario = parse(Path::new("scenarios.md"), &whole).unwrap();
    assert_eq!(scenario.cases.len(), 2);
    for case in &scenario.cases {
        let verdict = case.judge(Depth::UntilFound).verdict;
        assert_eq!(verdict, CaseVerdict::AsExpected, "{}", case.name);
    }
}
