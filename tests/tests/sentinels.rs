//! Tests against a Sentinel group of real processes.

mod sentinels {
    pub(crate) mod discovery;
    pub(crate) mod failover;
    pub(crate) mod stage;
}

fn main() {
    let trials = [
        sentinels::discovery::trials(),
        sentinels::failover::trials(),
    ];
    quorlock_tests::trials::run(trials.into_iter().flatten().collect())
}
