//! Tests against real Redis servers. Each test has its own server.

mod servers {
    pub(crate) mod backups;
    pub(crate) mod bad_input;
    pub(crate) mod byte_names;
    pub(crate) mod calls;
    pub(crate) mod cancellation;
    pub(crate) mod claim_loss;
    pub(crate) mod clients;
    pub(crate) mod conformance;
    pub(crate) mod doubts;
    pub(crate) mod durable;
    pub(crate) mod encrypted;
    pub(crate) mod errors;
    pub(crate) mod fair_queues;
    pub(crate) mod handing_over;
    pub(crate) mod harness;
    pub(crate) mod labels;
    pub(crate) mod leading;
    pub(crate) mod logins;
    pub(crate) mod longest_lease;
    pub(crate) mod namespaces;
    pub(crate) mod natives;
    pub(crate) mod networks;
    pub(crate) mod one_refusal;
    pub(crate) mod passing;
    pub(crate) mod protocol;
    pub(crate) mod proxies;
    pub(crate) mod quick_start;
    pub(crate) mod quiet;
    pub(crate) mod redlock;
    pub(crate) mod refusals;
    pub(crate) mod replicas;
    pub(crate) mod rights;
    pub(crate) mod rslock;
    pub(crate) mod script_calls;
    pub(crate) mod secrets;
    pub(crate) mod semaphores;
    pub(crate) mod services;
    pub(crate) mod several;
    pub(crate) mod shared_connections;
    pub(crate) mod simulated;
    pub(crate) mod starting;
    pub(crate) mod stories;
    pub(crate) mod strange_keys;
    pub(crate) mod subscriptions;
    pub(crate) mod tokens;
    pub(crate) mod told;
    pub(crate) mod wire;
}

fn main() {
    servers::clients::hold_a_lock_if_asked();
    servers::handing_over::hand_over_if_asked();
    servers::harness::hold_a_server_if_asked();
    // While a process has one subscriber, an event that is first emitted on a thread without it stays unheard everywhere.
    let _second = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default());
    let trials = [
        servers::backups::trials(),
        servers::bad_input::trials(),
        servers::byte_names::trials(),
        servers::calls::trials(),
        servers::cancellation::trials(),
        servers::claim_loss::trials(),
        servers::clients::trials(),
        servers::conformance::trials(),
        servers::doubts::trials(),
        servers::durable::trials(),
        servers::encrypted::trials(),
        servers::encrypted::replaced::trials(),
        servers::errors::trials(),
        servers::fair_queues::trials(),
        servers::handing_over::trials(),
        servers::harness::trials(),
        servers::labels::trials(),
        servers::leading::trials(),
        servers::logins::trials(),
        servers::longest_lease::trials(),
        servers::namespaces::trials(),
        servers::natives::trials(),
        servers::networks::trials(),
        servers::one_refusal::trials(),
        servers::passing::trials(),
        servers::protocol::trials(),
        servers::proxies::trials(),
        servers::quick_start::trials(),
        servers::quiet::trials(),
        servers::redlock::trials(),
        servers::refusals::trials(),
        servers::replicas::trials(),
        servers::rights::trials(),
        servers::rslock::trials(),
        servers::script_calls::trials(),
        servers::secrets::trials(),
        servers::semaphores::trials(),
        servers::services::trials(),
        servers::several::trials(),
        servers::shared_connections::trials(),
        servers::simulated::trials(),
        servers::starting::trials(),
        servers::stories::trials(),
        servers::strange_keys::trials(),
        servers::subscriptions::trials(),
        servers::told::trials(),
        servers::tokens::trials(),
        servers::wire::trials(),
    ];
    quorlock_testbed::trials::run(8, trials.into_iter().flatten().collect())
}
