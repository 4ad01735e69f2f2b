//! Tests against real Redis servers, each on a server of its own.

mod servers {
    pub(crate) mod conformance;
    pub(crate) mod harness;
    pub(crate) mod tokens;
    pub(crate) mod wire;
}

fn main() {
    servers::harness::hold_a_server_if_asked();
    let trials = [
        servers::conformance::trials(),
        servers::harness::trials(),
        servers::tokens::trials(),
        servers::wire::trials(),
    ];
    quorlock_tests::trials::run(trials.into_iter().flatten().collect())
}
