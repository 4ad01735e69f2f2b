//! Tests against a Sentinel group of real processes.

mod sentinels {
    pub(crate) mod discovery;
    pub(crate) mod example;
    pub(crate) mod failover;
    pub(crate) mod majority;
    pub(crate) mod reached;
    pub(crate) mod stage;
    pub(crate) mod steady;
}

fn main() {
    let trials = [
        sentinels::discovery::trials(),
        sentinels::example::trials(),
        sentinels::failover::trials(),
        sentinels::majority::trials(),
        sentinels::reached::trials(),
        sentinels::steady::trials(),
    ];
    quorlock_testbed::trials::run(
        sentinels::stage::GROUPS,
        trials.into_iter().flatten().collect(),
    )
}
