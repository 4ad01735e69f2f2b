//! Runs the command `quorlock` as users do: real processes, on real servers.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests may; without a harness of its own clippy does not see that these are some"
)]

#[cfg(unix)]
mod command {
    pub(crate) mod behind_sentinels;
    pub(crate) mod clusters;
    pub(crate) mod doctor;
    pub(crate) mod encrypted;
    pub(crate) mod ending;
    pub(crate) mod exclusion;
    pub(crate) mod exit_codes;
    #[cfg(feature = "etcd")]
    pub(crate) mod in_etcd;
    #[cfg(feature = "mongodb")]
    pub(crate) mod in_mongodb;
    #[cfg(feature = "s3")]
    pub(crate) mod in_s3;
    pub(crate) mod leader;
    pub(crate) mod operators;
    pub(crate) mod permits;
    pub(crate) mod recipes;
    pub(crate) mod signalled;
    pub(crate) mod signals;
    pub(crate) mod stores;
    pub(crate) mod support;
    #[cfg(target_os = "linux")]
    pub(crate) mod terminal;
    pub(crate) mod told;
}

/// Restarts this process with the signals that a terminal sets. A shell starts a background process with INT and QUIT
/// ignored, and nohup with HUP ignored. The command leaves signals ignored that are ignored at its start, so signals
/// that the tests send would be lost.
#[cfg(target_os = "linux")]
fn take_signals_as_they_are_by_default() {
    use std::os::unix::process::CommandExt as _;

    const HUP_INT_QUIT_TERM: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 14;
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = u64::from_str_radix(mask.unwrap().trim(), 16).unwrap();
    if ignored & HUP_INT_QUIT_TERM != 0 {
        let error = std::process::Command::new("env")
            .arg("--default-signal=HUP,INT,QUIT,TERM")
            .arg(std::env::current_exe().unwrap())
            .args(std::env::args_os().skip(1))
            .exec();
        panic!("env cannot be run: {error}");
    }
}

#[cfg(unix)]
fn main() {
    #[cfg(target_os = "linux")]
    take_signals_as_they_are_by_default();
    let trials = [
        command::behind_sentinels::trials(),
        command::clusters::trials(),
        command::doctor::trials(),
        command::doctor::several::trials(),
        command::doctor::trouble::trials(),
        command::encrypted::trials(),
        command::ending::trials(),
        command::exclusion::trials(),
        command::exit_codes::trials(),
        #[cfg(feature = "etcd")]
        command::in_etcd::trials(),
        #[cfg(feature = "mongodb")]
        command::in_mongodb::trials(),
        #[cfg(feature = "s3")]
        command::in_s3::trials(),
        command::leader::trials(),
        command::operators::trials(),
        command::permits::trials(),
        command::recipes::trials(),
        command::signalled::trials(),
        command::signals::trials(),
        command::stores::trials(),
        command::terminal::trials(),
        command::told::trials(),
    ];
    quorlock_testbed::trials::run(8, trials.into_iter().flatten().collect())
}

#[cfg(not(unix))]
fn main() {}
