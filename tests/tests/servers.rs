//! Tests against real Redis servers, each on a server of its own.

mod servers {
    pub(crate) mod calls;
    pub(crate) mod conformance;
    pub(crate) mod errors;
    pub(crate) mod harness;
    pub(crate) mod secrets;
    pub(crate) mod subscriptions;
    pub(crate) mod tokens;
    pub(crate) mod wire;
}

fn main() {
    servers::harness::hold_a_server_if_asked();
    let trials = [
        servers::calls::trials(),
        servers::conformance::trials(),
        servers::errors::trials(),
        servers::harness::trials(),
        servers::secrets::trials(),
        servers::subscriptions::trials(),
        servers::tokens::trials(),
        servers::wire::trials(),
    ];
    quorlock_tests::trials::run(trials.into_iter().flatten().collect())
}
