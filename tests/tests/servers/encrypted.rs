//! Tests servers under TLS.

mod bench;
pub(crate) mod replaced;

use std::path::Path;
use std::time::Duration;

use quorlock::Locks;
use quorlock::redis::{NodeConnectError, RedisConfig, RedisTransport, Tls};
use quorlock_testbed::certificates::{Authority, Validity};
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::until;
use quorlock_tests::clients::{is_claimed_by, settings, until_renewed};
use quorlock_tests::page::block;

use self::bench::{Bench, Clients, SECRET, redis, take_and_release, with};

server_tests![
    TLS: locks_are_held_renewed_and_handed_over_under_tls,
    TLS: locks_are_held_renewed_and_handed_over_under_mutual_tls,
    TLS: a_majority_is_spoken_to_under_tls,
    TLS: what_is_wrong_with_a_connection_is_told_with_what_to_do_and_without_secrets,
    TLS: a_tls_client_of_the_redis_crate_is_taken_as_far_as_it_can_be_read,
    TLS: a_whole_configuration_of_rustls_is_used_as_it_is,
    a_server_that_accepts_and_never_answers_is_told_in_time,
    the_page_shows_this_program,
    TLS: the_program_of_the_page_locks,
];

/// Holds one lock beyond its lease, while another client waits for it and is woken.
async fn assert_works(locks: &Locks, other: &Locks, server: &Server) {
    let guard = locks.lock("a").acquire().await.unwrap();
    assert!(is_claimed_by(server, "a", &guard));
    let waiter = other.lock("a");
    let waiting = tokio::spawn(async move { waiter.acquire().await });
    until("the other client listens", || {
        let channels: Vec<String> = server.command(&["PUBSUB", "CHANNELS"]);
        !channels.is_empty()
    })
    .await;
    let listeners: String = server.command(&["CLIENT", "LIST", "TYPE", "pubsub"]);
    let there = format!(" laddr=127.0.0.1:{} ", server.tls_port());
    assert!(
        listeners.lines().all(|client| client.contains(&there)),
        "{listeners}"
    );
    until_renewed(&guard).await;
    guard.release().await.unwrap();
    let guard = waiting.await.unwrap().unwrap();
    assert!(is_claimed_by(server, "a", &guard));
    guard.release().await.unwrap();
}

async fn locks_are_held_renewed_and_handed_over_under_tls() {
    let bench = Bench::start(Clients::Any);
    let short = || with(bench.roots()).watchdog_lease(Duration::from_secs(2));
    let address = bench.address("localhost");
    let locks = short().connect(&address).await.unwrap();
    // This client connects by the IP address, which is also in the certificate.
    let other = short().connect(bench.address("127.0.0.1")).await.unwrap();
    assert_works(&locks, &other, &bench.server).await;
}

async fn locks_are_held_renewed_and_handed_over_under_mutual_tls() {
    let bench = Bench::start(Clients::Certified);
    let files = bench.client_files(Validity::Now);
    let short = |tls: Tls| with(tls).watchdog_lease(Duration::from_secs(2));
    let by_files = bench
        .roots()
        .client_certificate_files(&files.certificate, &files.key);
    let address = bench
        .address("localhost")
        .replace("rediss://", "valkeys://");
    let locks = short(by_files).connect(&address).await.unwrap();
    let pem = bench.authority.sign(&["another"], Validity::Now);
    let by_bytes = Tls::new()
        .roots_pem(bench.authority.pem())
        .client_certificate_pem(pem.certificate, pem.key);
    let other = short(by_bytes).connect(&address).await.unwrap();
    assert_works(&locks, &other, &bench.server).await;
}

async fn a_majority_is_spoken_to_under_tls() {
    let benches = [(); 3].map(|()| Bench::start(Clients::Any));
    let tls = benches.iter().fold(Tls::new(), |tls, bench| {
        tls.roots_pem(bench.authority.pem())
    });
    let addresses = benches.iter().map(|bench| bench.address("localhost"));
    let locks = with(tls).quorum(addresses).await.unwrap();
    let guard = locks.lock("a").acquire().await.unwrap();
    for bench in &benches {
        until("each has it", || is_claimed_by(&bench.server, "a", &guard)).await;
    }
    guard.release().await.unwrap();
}

/// A failing case: the address, the settings, and the text of the error.
struct Wrong {
    address: String,
    config: RedisConfig,
    says: &'static str,
}

impl Wrong {
    fn new(address: String, tls: Tls, says: &'static str) -> Self {
        Wrong {
            address,
            config: redis().tls(tls),
            says,
        }
    }
}

/// What is wrong with a server, or with the trust in it.
fn wrong_servers(any: &Bench, over: &Bench, not_yet: &Bench) -> Vec<Wrong> {
    let plain_port = any.server.port();
    vec![
        Wrong::new(any.address("localhost"), Tls::new(), "Tls::roots_file"),
        Wrong::new(
            any.address("localhost"),
            any.roots().server_name("db.example"),
            "not for db.example",
        ),
        Wrong::new(
            over.address("localhost"),
            over.roots(),
            "of the server has expired",
        ),
        Wrong::new(
            not_yet.address("localhost"),
            not_yet.roots(),
            "not valid yet",
        ),
        Wrong::new(
            format!("rediss://:{SECRET}@localhost:{plain_port}/"),
            any.roots(),
            "did not answer TLS",
        ),
        Wrong {
            address: any.address("localhost").replace("rediss://", "redis://"),
            config: redis(),
            says: "rediss://",
        },
    ]
}

/// What is wrong with the certificate of a client, or with its key.
fn wrong_clients(any: &Bench, certified: &Bench) -> Vec<Wrong> {
    let expired = certified.client_files(Validity::Over);
    let strange = Authority::new().sign(&["stranger"], Validity::Now);
    vec![
        Wrong::new(
            certified.address("localhost"),
            certified.roots(),
            "Tls::client_certificate_files",
        ),
        Wrong::new(
            certified.address("localhost"),
            certified
                .roots()
                .client_certificate_files(&expired.certificate, &expired.key),
            "of the client has expired",
        ),
        Wrong::new(
            certified.address("localhost"),
            certified
                .roots()
                .client_certificate_pem(strange.certificate.as_str(), strange.key.as_str()),
            "does not trust the authority",
        ),
        Wrong::new(
            any.address("localhost"),
            any.roots()
                .client_certificate_pem(strange.certificate.as_str(), SECRET),
            "no private key in PEM",
        ),
        Wrong::new(
            any.address("localhost"),
            any.roots().client_certificate_pem(
                strange.certificate.as_str(),
                Authority::new().sign(&["x"], Validity::Now).key,
            ),
            "is not that of the certificate",
        ),
    ]
}

/// What is wrong with files and names of the settings.
fn wrong_settings(any: &Bench) -> Vec<Wrong> {
    vec![
        Wrong::new(
            any.address("localhost"),
            Tls::new().roots_file("/not/there.pem"),
            "/not/there.pem cannot be read",
        ),
        Wrong::new(
            any.address("localhost"),
            Tls::new().roots_pem(SECRET),
            "no certificate in PEM",
        ),
        Wrong::new(
            any.address("localhost"),
            Tls::new().roots_pem(format!("-----BEGIN {SECRET}\n{SECRET}")),
            "not well-formed PEM",
        ),
        Wrong::new(
            any.address("localhost"),
            any.roots().server_name("not a name"),
            "Tls::server_name",
        ),
    ]
}

async fn what_is_wrong_with_a_connection_is_told_with_what_to_do_and_without_secrets() {
    let any = Bench::start(Clients::Any);
    let certified = Bench::start(Clients::Certified);
    let over = Bench::with(Clients::Any, &["localhost"], Validity::Over);
    let not_yet = Bench::with(Clients::Any, &["localhost"], Validity::NotYet);
    let mut cases = wrong_servers(&any, &over, &not_yet);
    cases.extend(wrong_clients(&any, &certified));
    cases.extend(wrong_settings(&any));
    let checks = cases.iter().map(
        |Wrong {
             address,
             config,
             says,
         }| async move {
            let transport = RedisTransport::open(address, config.clone()).unwrap();
            let error = transport.check().await.expect_err(says);
            let told = format!("{error} {error:?} {transport:?} {config:?}");
            assert!(told.contains(says), "{says}: {told}");
            assert!(!told.contains("hunter2"), "{told}");
            assert!(!told.contains("PRIVATE KEY"), "{told}");
            // A caller that requests a lock gets the same error.
            let locks = Locks::builder()
                .redis(config.clone())
                .connect(address)
                .await;
            let error = locks.expect_err(says);
            assert!(error.to_string().contains(says), "{says}: {error}");
        },
    );
    futures_util::future::join_all(checks).await;
}

async fn a_tls_client_of_the_redis_crate_is_taken_as_far_as_it_can_be_read() {
    let bench = Bench::start(Clients::Any);
    let address = bench.address("localhost");
    let client = redis::Client::open(address.as_str()).unwrap();
    let locks = with(bench.roots()).from_redis_client(&client).unwrap();
    take_and_release(&locks).await;
    // The client's own certificates cannot be read.
    let certificates = redis::TlsCertificates {
        client_tls: None,
        root_cert: Some(bench.authority.pem().into_bytes()),
    };
    let client = redis::Client::build_with_tls(address.as_str(), certificates).unwrap();
    let error = settings().from_redis_client(&client).unwrap_err();
    assert!(error.to_string().contains("RedisConfig::tls"), "{error}");
    let locks = with(bench.roots()).from_redis_client(&client).unwrap();
    take_and_release(&locks).await;
    let plain = redis::Client::open(bench.server.address()).unwrap();
    let error = with(bench.roots()).from_redis_client(&plain).unwrap_err();
    assert!(error.to_string().contains("rediss://"), "{error}");
}

async fn a_whole_configuration_of_rustls_is_used_as_it_is() {
    let bench = Bench::start(Clients::Any);
    let credulous = bench
        .locks(Tls::new().dangerously_accept_any_certificate())
        .await;
    let guard = credulous.lock("a").acquire().await.unwrap();
    guard.release().await.unwrap();
    let config = bench.authority.client_config();
    let locks = bench.locks(Tls::from_rustls(config.clone())).await;
    take_and_release(&locks).await;
    let other = with(Tls::from_rustls(config).server_name("db.example"));
    let error = other.connect(bench.address("localhost")).await.unwrap_err();
    assert!(error.to_string().contains("not for db.example"), "{error}");
}

async fn a_server_that_accepts_and_never_answers_is_told_in_time() {
    let mute = tokio::net::TcpListener::bind(("127.0.0.1", 0))
        .await
        .unwrap();
    let address = format!("rediss://{}/", mute.local_addr().unwrap());
    // Certificates that are read from memory, and a time that is long enough to come to the handshake on a busy machine: the system's
    // are read within the same time.
    let config = redis()
        .connect_timeout(Duration::from_secs(2))
        .tls(Tls::from_rustls(Authority::new().client_config()));
    let began = std::time::Instant::now();
    let error = RedisTransport::connect(&address, config).await.unwrap_err();
    assert!(
        matches!(error, NodeConnectError::TimedOut { .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("did not answer TLS"), "{error}");
    assert!(
        began.elapsed() < quorlock_testbed::wait::BOUND,
        "{:?}",
        began.elapsed()
    );
}

async fn the_page_shows_this_program() {
    let page = include_str!("../../../docs/src/how-to/tls.md");
    let program = include_str!("../../src/bin/encrypted.rs");
    let (_, code) = program.split_once("\n\n").unwrap();
    assert_eq!(block(page, "rust,no_run"), code);
}

async fn the_program_of_the_page_locks() {
    let bench = Bench::start(Clients::Certified);
    let files = bench.client_files(Validity::Now);
    let ca = bench.folder.path().join("ca.pem");
    let password = bench.folder.path().join("password");
    std::fs::write(&password, SECRET).unwrap();
    let address = bench
        .address("localhost")
        .replace(&format!(":{SECRET}@"), "");
    let run = |password: &Path| {
        let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_encrypted"));
        let files = [&ca, &files.certificate, &files.key];
        program
            .arg(&address)
            .args(files)
            .arg(password)
            .output()
            .unwrap()
    };
    let output = run(&password);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && printed.contains("is locked"),
        "{output:?}"
    );
    let output = run(Path::new("/not/there"));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        told.contains("/not/there") && !output.status.success(),
        "{told}"
    );
}
