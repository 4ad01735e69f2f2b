//! The outcomes of the tests, by lock, direction and version.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::future::Future;
use std::sync::{Mutex, PoisonError};

use libtest_mimic::Trial;
use quorlock_testbed::trials::trial;

use super::mode::Mode;
use super::stage::{Side, Stage};

/// The outcome of each test that ran.
static CELLS: Mutex<BTreeMap<Cell, String>> = Mutex::new(BTreeMap::new());

/// The identity of a test.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Cell {
    version: &'static str,
    case: &'static str,
    mode: Mode,
    first: Side,
}

/// Creates a test with a cell in the table. The test returns the text of the cell.
pub(crate) fn case<F: Future<Output = String>>(
    name: &'static str,
    stage: Stage,
    test: impl FnOnce(Stage) -> F + Send + 'static,
) -> Trial {
    let cell = Cell {
        version: stage.version.number,
        case: name,
        mode: stage.mode,
        first: stage.first,
    };
    let (mode, first) = (stage.mode.word(), stage.first.word());
    let title = format!("{}::{mode}::{name}::{first}_first", cell.version);
    trial(&title, async move || {
        write(&cell, "**failed**".into());
        let what = test(stage).await;
        write(&cell, what);
    })
}

fn write(cell: &Cell, what: String) {
    let mut cells = CELLS.lock().unwrap_or_else(PoisonError::into_inner);
    cells.insert(cell.clone(), what);
}

/// Returns the outcomes in Markdown, with a table for each version. A cell has two halves: JVM first, Rust first.
pub(crate) fn of_all() -> String {
    let cells = CELLS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut text = String::new();
    let versions: BTreeSet<_> = cells.keys().map(|cell| cell.version).collect();
    for version in versions {
        let of_version = |cell: &&Cell| cell.version == version;
        let cases: BTreeSet<_> = cells.keys().filter(of_version).map(|c| c.case).collect();
        let modes: BTreeSet<_> = cells.keys().filter(of_version).map(|c| c.mode).collect();
        let head: Vec<_> = modes.iter().map(|mode| mode.word()).collect();
        writeln!(text, "\n| Redisson {version} | {} |", head.join(" | ")).unwrap();
        writeln!(text, "|---{}|", "|---".repeat(head.len())).unwrap();
        for case in cases {
            let row: Vec<_> = modes
                .iter()
                .map(|mode| {
                    let halves = Side::BOTH.iter().filter_map(|first| {
                        let (mode, first) = (*mode, *first);
                        cells.get(&Cell {
                            version,
                            case,
                            mode,
                            first,
                        })
                    });
                    let halves: Vec<_> = halves.map(String::as_str).collect();
                    halves.join(" / ")
                })
                .collect();
            writeln!(text, "| {} | {} |", case.replace('_', " "), row.join(" | ")).unwrap();
        }
    }
    text
}
