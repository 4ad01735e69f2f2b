//! The command `quorlock`. `quorlock --help` says what it does.
//!
//! | to read | see |
//! |---|---|
//! | the command line | `cli` |
//! | which servers, and how to log in | `settings`, `connect` |
//! | `quorlock run` | `run` |
//! | `quorlock leader` | `leader`, on top of `run` |
//! | `inspect`, `force-release`, `list`, `watch` | `operate` |
//! | completions, man pages | `pages` |
//! | what it says, and how it ends | `voice`, `failure` |

mod cli;
mod connect;
#[cfg(any(not(unix), test))]
mod elsewhere;
mod failure;
#[cfg(unix)]
mod leader;
mod operate;
mod pages;
#[cfg(unix)]
mod run;
mod settings;
mod span;
mod voice;

fn main() -> std::process::ExitCode {
    cli::main()
}
