//! Fuzzes command lines, their values, and settings files.
//!
//! The function accepts any bytes and panics if one of its promises is broken. The target in `fuzz/` calls it, and so
//! does the test, with every input of the corpus there.

use std::path::Path;

use clap::Parser as _;

use crate::cli::Cli;
#[cfg(unix)]
use crate::run::timing::Timing;
use crate::settings::{addresses_of, file_of};
use crate::span::Span;

/// Parses the bytes as a command line with one word on each line, each line as a value, and all of it as a settings
/// file.
///
/// # Panics
/// Panics if one of these happens:
///
/// - A duration is not read as it was written.
/// - A list of addresses is not split as it was joined.
/// - A password appears in a message.
pub fn command_lines(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let words = std::iter::once("quorlock").chain(text.lines());
    match Cli::try_parse_from(words) {
        Ok(cli) => assert!(!format!("{cli:?}").is_empty()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    let mut spans = Vec::new();
    for word in text.lines() {
        if let Ok(span) = word.parse::<Span>() {
            assert_eq!(span.to_string().parse(), Ok(span), "{word}");
            spans.push(span);
        }
        let addresses = addresses_of(word);
        assert_eq!(addresses_of(&addresses.join(",")), addresses);
    }
    #[cfg(unix)]
    if let [lease, rest @ ..] = spans.as_slice()
        && let Ok(timing) = Timing::new(lease.0, rest.first().copied(), rest.get(1).copied())
    {
        assert!(timing.needed() < timing.lease, "{timing:?}");
        assert!(timing.tick() < timing.lease, "{timing:?}");
    }
    settings(text);
}

/// A secret that appears nowhere else in the input.
const SECRET: &str = "Zq9xW7";

/// Checks that an error about a file does not show the passwords of its addresses.
fn settings(text: &str) {
    let _ = file_of(Path::new("f.toml"), text);
    if text.contains(SECRET) {
        return;
    }
    for (at, scheme) in text.match_indices("://") {
        let (before, after) = text.split_at(at + scheme.len());
        let Some((login, _)) = after.lines().next().and_then(|line| line.split_once('@')) else {
            continue;
        };
        let (user, _) = login.split_once(':').unwrap_or((login, ""));
        let (user, after) = after.split_at(user.len());
        let after = after.trim_start_matches(':');
        let text = format!("{before}{user}:{SECRET}{after}");
        if let Err(failure) = file_of(Path::new("f.toml"), &text) {
            assert!(!failure.text.contains(SECRET), "{}", failure.text);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    #[expect(
        clippy::print_stdout,
        reason = "a panic names its place, but not its input"
    )]
    fn no_bytes_break_the_command_line() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/command_lines");
        let mut inputs: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        inputs.sort();
        assert!(20 <= inputs.len(), "{} inputs", inputs.len());
        for path in inputs {
            println!("{}", path.display());
            let input = fs::read(&path).unwrap();
            command_lines(&input);
            for at in 0..input.len().min(200) {
                let (before, after) = input.split_at(at);
                command_lines(before);
                command_lines(&[before, &after[1..]].concat());
            }
        }
    }
}
