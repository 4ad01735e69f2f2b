//! Counts the files that a new kind of fault changes, by the patch that adds a made-up one.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

const PATCH: &str = include_str!("../../made-up/fault.patch");
const PAGE: &str = include_str!("../../../../docs/src/architecture.md");

#[test]
fn a_new_kind_of_fault_changes_six_files_and_the_page_names_each() {
    let changed = PATCH.lines().filter_map(|line| line.strip_prefix("+++ b/"));
    let changed: BTreeSet<&str> = changed.collect();
    assert!(changed.len() <= 6, "{changed:?}");
    let (_, told) = PAGE
        .split_once("- **A kind of fault** (6 files)")
        .expect("the page counts them");
    let told = told.split("\n- **").next().unwrap_or_default();
    for file in &changed {
        assert!(told.contains(&format!("`{file}`")), "{file}");
    }
}

#[test]
fn the_made_up_kind_can_be_added() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let patch = std::fs::File::open(top.join("sim/lab/made-up/fault.patch")).expect("a patch");
    let output = Command::new("patch")
        .args(["--dry-run", "--force", "-p1"])
        .current_dir(&top)
        .stdin(Stdio::from(patch))
        .output()
        .expect("patch(1)");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}");
}
