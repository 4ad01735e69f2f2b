//! What an acquisition costs under TLS, beside the same without: one caller, one server on loopback, by turns.
//!
//! `cargo bench -p quorlock-tests --bench encrypted`. The plain client takes part twice, so that the noise of the machine can be seen.

use std::time::{Duration, Instant};

use quorlock::Locks;
use quorlock::transport::{RedisConfig, Tls};
use quorlock_tests::certificates::{Authority, Validity};
use quorlock_tests::server::Server;

/// How many acquisitions a client makes before it is the next one's turn.
const TURN: usize = 200;

/// How many turns each has; the first is not counted.
const TURNS: usize = 40;

/// At most so many times what an acquisition takes without TLS.
const BAR: f64 = 1.15;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let authority = Authority::new();
    let folder = tempfile::tempdir().expect("a folder");
    let path = |path: &std::path::Path| path.display().to_string();
    let ca = path(&authority.write(folder.path()));
    let server = authority.sign(&["localhost"], Validity::Now);
    let server = server.write(folder.path(), "server");
    let server = Server::start_encrypted(&[
        "--tls-ca-cert-file",
        &ca,
        "--tls-cert-file",
        &path(&server.certificate),
        "--tls-key-file",
        &path(&server.key),
        "--tls-auth-clients",
        "no",
    ]);
    let tls = RedisConfig::default().tls(Tls::new().roots_file(&ca));
    let address = format!("rediss://localhost:{}/", server.tls_port());
    let encrypted = Locks::builder().redis(tls).connect(address).await;
    let plain = [(); 2].map(|()| Locks::builder().connect(server.address()));
    let [one, other] = plain;
    let clients = [
        ("plain", one.await.expect("a client")),
        ("plain again", other.await.expect("a client")),
        ("TLS", encrypted.expect("a client")),
    ];
    let mut spans: [Vec<Duration>; 3] = Default::default();
    for turn in 0..TURNS {
        for ((_, locks), spans) in clients.iter().zip(&mut spans) {
            let lock = locks.lock("orders/42");
            for _ in 0..TURN {
                let began = Instant::now();
                let guard = lock.acquire().await.expect("it is free");
                if 0 < turn {
                    spans.push(began.elapsed());
                }
                guard.release().await.expect("it is held");
            }
        }
    }
    let medians = spans.map(|mut spans| {
        spans.sort_unstable();
        spans[spans.len() / 2]
    });
    let [plain, again, encrypted] = medians.map(|median| median.as_secs_f64());
    for ((name, _), median) in clients.iter().zip(medians) {
        println!("{name:12} {:7.1} us", median.as_secs_f64() * 1e6);
    }
    println!("plain again / plain {:.3}", again / plain);
    println!("TLS / plain         {:.3} (bar: {BAR})", encrypted / plain);
}
