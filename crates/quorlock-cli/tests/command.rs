//! The command `quorlock` as users have it: real processes, on real servers.

#[cfg(unix)]
mod command {
    pub(crate) mod exit_codes;
    pub(crate) mod support;
}

#[cfg(unix)]
fn main() {
    let trials = [command::exit_codes::trials()];
    quorlock_tests::trials::run(trials.into_iter().flatten().collect())
}

#[cfg(not(unix))]
fn main() {}
