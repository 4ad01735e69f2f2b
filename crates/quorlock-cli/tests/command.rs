//! The command `quorlock` as users have it: real processes, on real servers.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests may; without a harness of its own clippy does not see that these are some"
)]

#[cfg(unix)]
mod command {
    pub(crate) mod ending;
    pub(crate) mod exclusion;
    pub(crate) mod exit_codes;
    pub(crate) mod operators;
    pub(crate) mod recipes;
    pub(crate) mod signals;
    pub(crate) mod support;
    #[cfg(target_os = "linux")]
    pub(crate) mod terminal;
    pub(crate) mod told;
}

#[cfg(unix)]
fn main() {
    let trials = [
        command::ending::trials(),
        command::exclusion::trials(),
        command::exit_codes::trials(),
        command::operators::trials(),
        command::recipes::trials(),
        command::signals::trials(),
        command::terminal::trials(),
        command::told::trials(),
    ];
    quorlock_tests::trials::run(trials.into_iter().flatten().collect())
}

#[cfg(not(unix))]
fn main() {}
