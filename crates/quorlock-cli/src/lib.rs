//! The command `quorlock`. `quorlock --help` documents it. This crate has no API for other crates: the library is
//! `quorlock`.
//!
//! | to read | see |
//! |---|---|
//! | the command line | `cli` |
//! | the servers and their credentials | `settings`, `connect` |
//! | `quorlock run` | `run` |
//! | `quorlock leader` | `leader`, on top of `run` |
//! | `quorlock doctor` | `doctor` |
//! | `quorlock advise` | `advise` |
//! | `inspect`, `force-release`, `list`, `watch` | `operate` |
//! | completions, man pages | `pages` |
//! | messages and exit codes | `voice`, `failure` |

mod advise;
mod cli;
mod connect;
mod doctor;
mod failure;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzed;
#[cfg(unix)]
mod leader;
mod manual;
mod messages;
#[cfg(any(not(unix), test))]
mod not_unix;
mod operate;
#[cfg(unix)]
mod run;
mod settings;
mod span;

/// Runs the command line of this process.
#[must_use]
pub fn main() -> std::process::ExitCode {
    cli::main()
}
