//! Tests against a Redis Cluster of real processes.

mod clusters {
    pub(crate) mod apart;
    pub(crate) mod calls;
    pub(crate) mod discovery;
    pub(crate) mod failover;
    pub(crate) mod idle;
    pub(crate) mod listening;
    pub(crate) mod locks;
    pub(crate) mod moving;
    pub(crate) mod replicas;
    pub(crate) mod stage;
    pub(crate) mod steady;
}

fn main() {
    let trials = [
        clusters::apart::trials(),
        clusters::calls::trials(),
        clusters::discovery::trials(),
        clusters::failover::trials(),
        clusters::idle::trials(),
        clusters::listening::trials(),
        clusters::locks::trials(),
        clusters::moving::trials(),
        clusters::replicas::trials(),
        clusters::steady::trials(),
    ];
    quorlock_testbed::trials::run(
        clusters::stage::CLUSTERS,
        trials.into_iter().flatten().collect(),
    )
}
