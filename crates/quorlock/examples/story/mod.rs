//! What the examples share: their arguments, and output lines with the elapsed time. Nothing here is about locks.
#![allow(dead_code, reason = "each example uses a part of it")]
#![allow(
    clippy::disallowed_methods,
    reason = "an example is a program of its own"
)]

use std::error::Error;
use std::fmt::Display;
use std::io::{Write, stderr, stdout};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Prints what happens, each line with the seconds since the start. Clones share one start.
#[derive(Clone, Copy)]
pub(crate) struct Story(Instant);

impl Story {
    pub(crate) fn say(self, line: impl Display) {
        // The reader may have closed its end of a pipe, which is no reason to fail.
        let _ = writeln!(stdout(), "{:7.3} s  {line}", self.elapsed().as_secs_f64());
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// What the command line requests.
pub(crate) enum Start {
    Tell(Story, Vec<String>),
    Exit(ExitCode),
}

/// Reads the arguments: `--help`, or the addresses of at most `most` servers.
pub(crate) fn start(help: &str, most: usize) -> Start {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|a| a == "--help" || a == "-h") {
        let _ = writeln!(stdout(), "{help}");
        return Start::Exit(ExitCode::SUCCESS);
    }
    if let Some(option) = arguments.iter().find(|a| a.starts_with('-')) {
        return wrong(format_args!("there is no option {option}"));
    }
    if most < arguments.len() {
        let given = arguments.len();
        return wrong(format_args!(
            "{given} addresses were given, at most {most} can be used"
        ));
    }
    Start::Tell(Story(Instant::now()), arguments)
}

fn wrong(what: impl Display) -> Start {
    let _ = writeln!(stderr(), "{what}: see --help");
    Start::Exit(ExitCode::FAILURE)
}

/// Ends an example: prints an error to the standard error stream.
pub(crate) fn end(result: Result<(), Box<dyn Error>>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

/// An address without its credentials, for output.
pub(crate) fn shown(address: &str) -> String {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    format!("redis://{host}")
}
