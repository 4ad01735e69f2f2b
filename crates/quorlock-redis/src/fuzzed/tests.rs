//! Runs every input of the corpora, and inputs close to them.

use std::fs;
use std::path::Path;

use super::{addresses, names, replies};

/// Returns the inputs of a target with their names.
fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let entries = fs::read_dir(folder.join(target)).unwrap();
    let mut inputs: Vec<_> = entries
        .map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read(entry.path()).unwrap())
        })
        .collect();
    inputs.sort();
    assert!(20 <= inputs.len(), "{target}: {} inputs", inputs.len());
    inputs
}

/// Calls a function with each input, with every prefix of it, and with each byte removed, doubled and replaced.
#[expect(
    clippy::print_stdout,
    reason = "a panic names its place, but not its input"
)]
fn try_all(target: &str, function: fn(&[u8])) {
    let inputs = corpus(target);
    for (name, input) in &inputs {
        println!("{target}/{name}");
        function(input);
        for at in 0..input.len().min(300) {
            let (before, after) = input.split_at(at);
            function(before);
            function(after);
            function(&[before, &after[1..]].concat());
            function(&[before, &after[..1], after].concat());
            for byte in *b"\r\0:{/@%-9" {
                function(&[before, &[byte], &after[1..]].concat());
            }
        }
    }
    for ((_, one), (_, other)) in inputs.iter().zip(inputs.iter().skip(1)) {
        function(&[one.as_slice(), other].concat());
    }
}

#[test]
fn no_bytes_break_the_reading_of_replies() {
    try_all("replies", replies);
}

#[test]
fn no_bytes_break_the_reading_of_addresses() {
    try_all("addresses", addresses);
}

#[test]
fn no_bytes_break_the_keys_of_names() {
    try_all("names", names);
}
