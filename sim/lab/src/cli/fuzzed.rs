//! Command lines made of arbitrary bytes.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use clap::Parser as _;

use super::recorded::shard;
use super::{Cli, seeds};
use crate::serve::FaultWords;
use quorlock_sim_plan::generator::FaultChoice;
use quorlock_sim_plan::time::{ClockStep, SimTime};
use quorlock_sim_plan::variant::Variant;

/// Parses the bytes as a command line, one word per line, and each line as every kind of word.
///
/// # Panics
/// Panics if a word is read as something other than what was written, or is rejected without a reason.
pub fn command_lines(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    match Cli::try_parse_from(std::iter::once("quorlock-sim").chain(text.lines())) {
        Ok(cli) => assert!(!format!("{cli:?}").is_empty()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    for word in text.lines() {
        read_again::<SimTime>(word);
        read_again::<ClockStep>(word);
        read_again::<FaultChoice>(word);
        read_again::<Variant>(word);
        match seeds(word) {
            Ok(seeds) => assert!(seeds.start < seeds.end),
            Err(why) => assert!(why.contains("write for example"), "{why}"),
        }
        match shard(word) {
            Ok(shard) => assert!(shard.index < shard.of),
            Err(why) => assert!(why.contains("for example"), "{why}"),
        }
        match word.parse::<FaultWords>() {
            Ok(words) => {
                for nodes in [1, 15] {
                    if let Ok(faults) = words.of(nodes) {
                        assert!(!faults.is_empty() && faults.len() <= usize::from(nodes));
                    }
                }
            }
            Err(why) => assert!(why.contains("write for example"), "{why}"),
        }
    }
}

/// Asserts that a parsed word, written as text, parses to the same value.
fn read_again<T: FromStr + Display + Debug + PartialEq>(word: &str) {
    if let Ok(read) = word.parse::<T>() {
        let written = read.to_string();
        assert_eq!(written.parse().ok(), Some(read), "{word} became {written}");
    }
}
