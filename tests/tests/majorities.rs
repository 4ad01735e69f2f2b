//! Tests of majorities whose members are shards of a Redis Cluster, clusters, Sentinel groups and servers, all real
//! processes.

mod majorities {
    pub(crate) mod bad_input;
    pub(crate) mod deaths;
    pub(crate) mod locks;
    pub(crate) mod mixed;
    pub(crate) mod moving;
    pub(crate) mod promotions;
    pub(crate) mod stage;
}

fn main() {
    let trials = [
        majorities::bad_input::trials(),
        majorities::deaths::trials(),
        majorities::locks::trials(),
        majorities::mixed::trials(),
        majorities::moving::trials(),
        majorities::promotions::trials(),
    ];
    quorlock_testbed::trials::run(
        majorities::stage::CLUSTERS,
        trials.into_iter().flatten().collect(),
    )
}
