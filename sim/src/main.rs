//! The command `quorlock-sim`. `quorlock-sim --help` says what it does.

use std::process::ExitCode;

/// A run is mostly small things that come and go: with this allocator a campaign is faster.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    quorlock_sim::cli::main()
}
