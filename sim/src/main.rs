//! The command `quorlock-sim`. `quorlock-sim --help` says what it does.

use std::process::ExitCode;

fn main() -> ExitCode {
    quorlock_sim::cli::main()
}
