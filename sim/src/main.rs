//! The command `quorlock-sim`. See `quorlock-sim --help`.

use std::process::ExitCode;

/// A run makes many small, short-lived allocations; campaigns are faster with this allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    quorlock_sim::cli::main()
}
