//! What an acquisition costs under TLS, beside the same without: one caller, one server on loopback, by turns.
//!
//! `cargo bench -p quorlock-tests --bench encrypted`. The plain client takes part twice, so that the noise of the machine can be
//! seen. Two bare clients, blocking sockets without an event loop or any code of ours, send a script with as many bytes to and
//! fro: what TLS costs them is the server and the cryptography, and no client can do without.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use quorlock::Locks;
use quorlock::transport::{RedisConfig, Tls};
use quorlock_tests::certificates::{Authority, Validity, rustls_config};
use quorlock_tests::server::Server;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConnection, StreamOwned};

/// How many acquisitions a client makes before it is the next one's turn.
const TURN: usize = 200;

/// How many turns each has; the first is not counted.
const TURNS: usize = 40;

/// At most so many times what an acquisition takes without TLS, where the server does not take that itself.
const BAR: f64 = 1.15;

/// How many bytes an acquisition sends; its answer is a token of 16.
const REQUEST: usize = 273;

/// Answers with as many bytes as a token has.
const SCRIPT: &str = "return 1795401294012";

/// A client that takes turns.
enum Client {
    Ours(Locks),
    Bare(Box<dyn Stream>),
}

trait Stream: Read + Write {}

impl<S: Read + Write> Stream for S {}

impl Client {
    /// One turn: how long each acquisition took.
    async fn turn(&mut self) -> Vec<Duration> {
        let mut spans = Vec::new();
        for _ in 0..TURN {
            let began = Instant::now();
            match self {
                Client::Ours(locks) => {
                    let guard = locks.lock("orders/42").acquire().await;
                    let guard = guard.expect("it is free");
                    spans.push(began.elapsed());
                    guard.release().await.expect("it is held");
                }
                Client::Bare(stream) => {
                    exchange(stream);
                    spans.push(began.elapsed());
                }
            }
        }
        spans
    }
}

/// Sends a request of the size of an acquisition, and takes its answer.
fn exchange(stream: &mut dyn Stream) {
    let head = format!(
        "*4\r\n$4\r\nEVAL\r\n${}\r\n{SCRIPT}\r\n$1\r\n0\r\n",
        SCRIPT.len()
    );
    let padding = REQUEST - head.len() - "$999\r\n\r\n".len();
    let request = format!("{head}${padding}\r\n{}\r\n", "x".repeat(padding));
    stream.write_all(request.as_bytes()).expect("it is sent");
    stream.flush().expect("it is sent");
    let mut answer = [0; 64];
    let read = stream.read(&mut answer).expect("an answer");
    assert_eq!(&answer[..read], b":1795401294012\r\n");
}

fn socket(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
    stream.set_nodelay(true).expect("a socket");
    stream
}

/// How much processor time a process has used, in clock ticks.
fn ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("a process");
    let (_, fields) = stat.rsplit_once(')').expect("a command in parentheses");
    // User and system time are the 14th and 15th field of all.
    let times = fields.split_whitespace().skip(11).take(2);
    times
        .map(|ticks| ticks.parse::<u64>().expect("ticks"))
        .sum()
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let authority = Authority::new();
    let folder = tempfile::tempdir().expect("a folder");
    let path = |path: &Path| path.display().to_string();
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
    let plain = || async {
        let connected = Locks::builder().connect(server.address()).await;
        Client::Ours(connected.expect("a client"))
    };
    let tls = RedisConfig::default().tls(Tls::new().roots_file(&ca));
    let address = format!("rediss://localhost:{}/", server.tls_port());
    let encrypted = Locks::builder().redis(tls).connect(address).await;
    let name = ServerName::try_from("localhost").expect("a name");
    let session = ClientConnection::new(rustls_config(&authority), name).expect("a session");
    let mut clients = [
        ("plain", plain().await),
        ("plain again", plain().await),
        ("TLS", Client::Ours(encrypted.expect("a client"))),
        ("bare", Client::Bare(Box::new(socket(server.port())))),
        (
            "bare, TLS",
            Client::Bare(Box::new(StreamOwned::new(
                session,
                socket(server.tls_port()),
            ))),
        ),
    ];
    let mut spans: [Vec<Duration>; 5] = Default::default();
    let mut used = [0; 5];
    for turn in 0..TURNS {
        for (((_, client), spans), used) in clients.iter_mut().zip(&mut spans).zip(&mut used) {
            let before = ticks(server.pid());
            let took = client.turn().await;
            if 0 < turn {
                *used += ticks(server.pid()) - before;
                spans.extend(took);
            }
        }
    }
    let medians = spans.map(|mut spans| {
        spans.sort_unstable();
        spans[spans.len() / 2].as_secs_f64() * 1e6
    });
    for (((name, client), median), used) in clients.iter().zip(medians).zip(used) {
        // An acquisition of ours is followed by its release.
        let requests = match client {
            Client::Ours(_) => 2,
            Client::Bare(_) => 1,
        };
        let requests = requests * TURN * (TURNS - 1);
        #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
        let own = used as f64 * 1e4 / requests as f64;
        println!("{name:12} {median:7.1} us; the server's own time for a request {own:5.1} us");
    }
    let [plain, again, encrypted, bare, bare_encrypted] = medians;
    println!("plain again / plain {:.3}", again / plain);
    println!("TLS / plain         {:.3} (bar: {BAR})", encrypted / plain);
    println!("TLS - plain         {:5.1} us", encrypted - plain);
    println!("bare TLS - bare     {:5.1} us", bare_encrypted - bare);
}
