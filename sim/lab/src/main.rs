//! The command `quorlock-sim`. See `quorlock-sim --help`.

use std::process::ExitCode;

/// The allocator. A run makes many small, short-lived allocations, so campaigns are faster with it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    quorlock_sim_lab::cli::main()
}
