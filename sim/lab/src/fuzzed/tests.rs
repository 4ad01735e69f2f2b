//! Runs every input of the corpora, and inputs that are similar.

use std::fs;
use std::path::Path;

use super::{command_lines, plans};

/// Calls a function with each input of a target. Also calls it with inputs that are cut off or lack a byte, at every
/// `apart` bytes.
#[expect(
    clippy::print_stdout,
    reason = "a panic names its place, but not its input"
)]
fn try_all(target: &str, function: fn(&[u8]), apart: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let mut inputs: Vec<_> = fs::read_dir(folder.join(target))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    inputs.sort();
    assert!(20 <= inputs.len(), "{target}: {} inputs", inputs.len());
    for path in inputs {
        println!("{}", path.display());
        let input = fs::read(&path).unwrap();
        function(&input);
        for at in (0..input.len()).step_by(apart) {
            let (before, after) = input.split_at(at);
            function(before);
            function(&[before, &after[1..]].concat());
        }
    }
}

#[test]
fn no_bytes_break_the_reading_of_plans_or_a_run_of_one() {
    try_all("plans", plans, 13);
}

#[test]
fn no_bytes_break_the_command_line() {
    try_all("simulator_command_lines", command_lines, 1);
}
