//! Tests of many runs, and of what an interruption leaves of their results.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::*;
use crate::study::results::{RowVerdict, Stored, Tallies, each_row, merge, together};
use quorlock_sim_plan::generator::{FaultChoice, PlanGenerator};
use quorlock_sim_plan::{LockKind, Plan};

/// Plans that break exclusion with some seeds.
fn plans() -> PlanGenerator {
    PlanGenerator {
        faults: FaultChoice::All,
        lock: LockKind::Single,
        ..PlanGenerator::default()
    }
}

fn cell<'a>(name: &str, generator: &'a PlanGenerator, seeds: Range<u64>) -> Cell<'a> {
    Cell {
        name: name.to_owned(),
        seeds,
        plan: Box::new(|seed| generator.plan(seed)),
        measure: None,
        is_last: None,
    }
}

fn until_failure(mut cell: Cell<'_>) -> Cell<'_> {
    cell.is_last = Some(Box::new(|row| row.verdict == RowVerdict::Violated));
    cell
}

fn rows(runs: &Runs<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    runs.run(&mut |_, row| lines.push(row.line()));
    lines
}

fn law() -> Value {
    json!({ "command": "explore", "drawn": "--lock single", "goes_on": true })
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("quorlock-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

fn record(runs: &Runs<'_>, folder: &Path, start: Start) -> Result<Extent, RunsError> {
    let target = Target {
        folder,
        start,
        manifest: runs.manifest(&law(), Vec::new()),
    };
    runs.record(Some(target), &|_| Ok(()), &mut |_, _| {})
}

fn stored(folder: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    let stored = Stored::read(folder).unwrap();
    stored
        .rows(|row| {
            lines.push(row.line());
            Ok(())
        })
        .unwrap();
    lines.sort_unstable();
    lines
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort_unstable();
    lines
}

#[test]
fn rows_come_in_the_order_of_seeds_on_any_number_of_threads() {
    let generator = plans();
    let on = |jobs| rows(&Runs::all(vec![cell("a", &generator, 5..40)], jobs));
    let alone = on(1);
    assert_eq!(alone.len(), 35);
    assert!(alone[0].contains("\"seed\":5,"), "{}", alone[0]);
    assert_eq!(alone, on(3));
}

#[test]
fn no_row_behind_the_last_one_counts() {
    let generator = plans();
    let whole = rows(&Runs::all(vec![cell("a", &generator, 0..60)], 2));
    let is_failure = |line: &&String| line.contains("\"violated\",\"property\"");
    let first = whole.iter().position(|line| is_failure(&line)).unwrap();
    let folder = folder("last");
    for jobs in [1, 5] {
        let runs = Runs::all(vec![until_failure(cell("a", &generator, 0..60))], jobs);
        assert_eq!(rows(&runs), whole[..=first], "{jobs}");
        record(&runs, &folder, Start::New).unwrap();
        assert_eq!(stored(&folder), sorted(whole[..=first].to_vec()));
        let manifest = Stored::read(&folder).unwrap().manifest;
        assert_eq!(
            (manifest.rows, manifest.is_complete),
            (first as u64 + 1, true)
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

#[test]
fn results_that_end_anywhere_are_continued_to_the_same_rows() {
    let generator = plans();
    let cells = || vec![cell("a", &generator, 0..6), cell("b", &generator, 3..9)];
    let runs = Runs::all(cells(), 2);
    let (whole, cut) = (folder("whole"), folder("cut"));
    record(&runs, &whole, Start::New).unwrap();
    let expected = stored(&whole);
    assert_eq!(expected.len(), 12);
    // Two frames, as if the process had lived for a second, and ended at any byte of the second one.
    let half = Runs {
        cells: vec![cell("a", &generator, 0..6), cell("b", &generator, 3..9)],
        within: Some(Duration::ZERO),
        ..Runs::all(Vec::new(), 1)
    };
    assert_eq!(record(&half, &cut, Start::New).unwrap(), Extent::Partial);
    assert!(!Stored::read(&cut).unwrap().manifest.is_complete);
    let rows = std::fs::read(whole.join("rows.jsonl.zst")).unwrap();
    for len in [0, 1, 9, rows.len() / 2, rows.len() - 1, rows.len()] {
        std::fs::write(cut.join("rows.jsonl.zst"), &rows[..len]).unwrap();
        assert_eq!(
            record(&runs, &cut, Start::Resumed).unwrap(),
            Extent::Complete
        );
        assert_eq!(stored(&cut), expected, "{len}");
        assert!(Stored::read(&cut).unwrap().manifest.is_complete);
    }
    for folder in [whole, cut] {
        std::fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn only_the_same_runs_are_continued() {
    let generator = plans();
    let folder = folder("same");
    let runs = |seeds, shard| Runs {
        shard,
        ..Runs::all(vec![cell("a", &generator, seeds)], 1)
    };
    let refused = |runs: &Runs<'_>, start| record(runs, &folder, start).unwrap_err().to_string();
    let first = runs(0..4, Shard::WHOLE);
    assert!(refused(&first, Start::Resumed).ends_with("leave out --resume"));
    record(&first, &folder, Start::New).unwrap();
    assert!(refused(&first, Start::New).contains("continue them with --resume"));
    let longer = refused(&runs(0..5, Shard::WHOLE), Start::Resumed);
    assert!(
        longer.contains("their range of seeds is 0..4, and it would be 0..5"),
        "{longer}"
    );
    let part = refused(&runs(0..4, Shard { index: 1, of: 2 }), Start::Resumed);
    assert!(
        part.contains("their number of shards is 1, and it would be 2"),
        "{part}"
    );
    std::fs::write(folder.join("manifest.json"), "{}").unwrap();
    assert!(refused(&first, Start::Resumed).contains("not results of this simulator"));
    std::fs::remove_dir_all(folder).unwrap();
}

/// Records the shards of the same runs, each to its own folder.
fn shards(name: &str, of: u64, plan: &(dyn Fn(u64) -> Plan + Sync)) -> Vec<PathBuf> {
    let folders = (0..of).map(|index| {
        let folder = folder(&format!("{name}-{index}"));
        let shard = Shard { index, of };
        let cell = Cell {
            name: "a".to_owned(),
            seeds: 10..21,
            plan: Box::new(plan),
            measure: None,
            is_last: None,
        };
        let runs = Runs {
            shard,
            ..Runs::all(vec![cell], 1)
        };
        record(&runs, &folder, Start::New).unwrap();
        folder
    });
    folders.collect()
}

fn read(folders: &[&PathBuf]) -> Vec<Stored> {
    let stored = folders.iter().map(|folder| Stored::read(folder).unwrap());
    stored.collect()
}

#[test]
fn shards_merge_to_the_whole() {
    let generator = plans();
    let plan = |seed| generator.plan(seed);
    let whole = shards("one", 1, &plan);
    let parts = shards("three", 3, &plan);
    let all = together(read(&[&parts[2], &parts[0], &parts[1]])).unwrap();
    let merged = folder("merged");
    merge(&all, &merged).unwrap();
    assert_eq!(stored(&merged), stored(&whole[0]));
    let manifest = Stored::read(&merged).unwrap().manifest;
    assert_eq!((manifest.rows, manifest.shard), (11, Shard::WHOLE));
    assert_eq!(Tallies::read(&all).unwrap().0[0].runs, 11);
    let mut seeds = Vec::new();
    each_row(&all, &mut |_, row| seeds.push(row.seed)).unwrap();
    seeds.sort_unstable();
    assert_eq!(seeds, (10..21).collect::<Vec<_>>());
    for folder in whole.iter().chain(&parts).chain([&merged]) {
        std::fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn shards_that_do_not_belong_together_are_refused_by_what_is_wrong() {
    let generator = plans();
    let plan = |seed| generator.plan(seed);
    let parts = shards("refused", 3, &plan);
    let [zero, one, two] = [&parts[0], &parts[1], &parts[2]];
    let refused = |all: Vec<Stored>| together(all).unwrap_err().to_string();
    assert_eq!(refused(Vec::new()), "there is nothing to merge");
    assert!(refused(read(&[zero, one, one])).ends_with("shard 1/3 is given twice"));
    assert!(refused(read(&[one])).ends_with("there is no shard 0/3, 2/3"));
    type Change = fn(&mut Manifest);
    let changes: [(Change, &str); 7] = [
        (|m| m.schema = 2, "schema"),
        (|m| m.version = "0.0.9".to_owned(), "version"),
        (|m| m.commit = Some("abc".to_owned()), "commit"),
        (|m| m.features.clear(), "list of features"),
        (|m| m.cells[0].seeds.end = 22, "range of seeds"),
        (|m| m.behaviour = "0".to_owned(), "behaviour"),
        (|m| m.law = Value::Null, "law"),
    ];
    for (change, what) in changes {
        let mut all = read(&[zero, one, two]);
        change(&mut all[2].manifest);
        let why = refused(all);
        assert!(
            why.contains(&format!("shard 2/3 is of other runs: its {what} is")),
            "{why}"
        );
    }
    let mut all = read(&[zero, one, two]);
    all[1].manifest.is_complete = false;
    let why = refused(all);
    assert!(
        why.contains("shard 1/3 has 4 rows and is not complete"),
        "{why}"
    );
    for folder in &parts {
        std::fs::remove_dir_all(folder).unwrap();
    }
}
