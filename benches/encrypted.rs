//! Measures an acquisition with and without TLS, with one caller and one server on loopback. The clients take turns.
//!
//! `cargo bench -p quorlock-bench --bench encrypted`. The plain client takes part twice, to show the noise of the
//! machine. Two bare clients use the same libraries (tokio, `tokio-rustls`) without our code: a single task sends a
//! script with as many bytes as an acquisition, and reads as many back. The additional time of the bare client under
//! TLS is spent in the server, the cryptography and the kernel. Every client needs that time.

use std::path::Path;
use std::time::{Duration, Instant};

use quorlock::Locks;
use quorlock::redis::{RedisConfig, Tls};
use quorlock_testbed::certificates::{Authority, Validity};
use quorlock_testbed::server::Server;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

/// The number of acquisitions in a turn of one client.
const TURN: usize = 200;

/// The number of turns of each client. The first turn does not count.
const TURNS: usize = 40;

/// The bound on the time of an acquisition under TLS, divided by the time without, if the server itself does not take
/// that time.
const BAR: f64 = 1.15;

/// The number of bytes that an acquisition sends. The reply is a token of 16 bytes.
const REQUEST: usize = 273;

/// A script whose reply has as many bytes as a token.
const SCRIPT: &str = "return 1795401294012";

/// A client that takes turns.
enum Client {
    Ours(Locks),
    Bare(Box<dyn Stream>),
}

trait Stream: AsyncRead + AsyncWrite + Unpin {}

impl<S: AsyncRead + AsyncWrite + Unpin> Stream for S {}

impl Client {
    /// Runs one turn. Returns how long each acquisition took.
    async fn turn(&mut self, request: &[u8]) -> Vec<Duration> {
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
                    exchange(stream, request).await;
                    spans.push(began.elapsed());
                }
            }
        }
        spans
    }
}

/// Returns a request of the size of an acquisition.
fn request() -> Vec<u8> {
    let head = format!(
        "*4\r\n$4\r\nEVAL\r\n${}\r\n{SCRIPT}\r\n$1\r\n0\r\n",
        SCRIPT.len()
    );
    let padding = REQUEST - head.len() - "$999\r\n\r\n".len();
    format!("{head}${padding}\r\n{}\r\n", "x".repeat(padding)).into_bytes()
}

async fn exchange(stream: &mut dyn Stream, request: &[u8]) {
    stream.write_all(request).await.expect("it is sent");
    stream.flush().await.expect("it is sent");
    let mut answer = [0; 64];
    let read = stream.read(&mut answer).await.expect("an answer");
    assert_eq!(&answer[..read], b":1795401294012\r\n");
}

async fn socket(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).await;
    let stream = stream.expect("the server listens");
    stream.set_nodelay(true).expect("a socket");
    stream
}

/// Returns the processor time of the first thread of a process, which serves the clients.
fn used_by(pid: u32) -> Duration {
    let path = format!("/proc/{pid}/task/{pid}/schedstat");
    let stat = std::fs::read_to_string(path).expect("a process on Linux");
    let nanos = stat.split_whitespace().next().expect("its first field");
    Duration::from_nanos(nanos.parse().expect("nanoseconds"))
}

fn micros(span: Duration) -> f64 {
    span.as_secs_f64() * 1e6
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let authority = Authority::new();
    let folder = tempfile::tempdir().expect("a folder");
    let path = |path: &Path| path.display().to_string();
    let ca = path(&authority.write(folder.path()));
    let certificate = authority.sign(&["localhost"], Validity::Now);
    let files = certificate.write(folder.path(), "server");
    let server = Server::start_encrypted(&[
        "--tls-ca-cert-file",
        &ca,
        "--tls-cert-file",
        &path(&files.certificate),
        "--tls-key-file",
        &path(&files.key),
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
    let connector = TlsConnector::from(authority.client_config());
    let bare = connector.connect(name, socket(server.tls_port()).await);
    let mut clients = [
        ("plain", plain().await),
        ("plain again", plain().await),
        ("TLS", Client::Ours(encrypted.expect("a client"))),
        ("bare", Client::Bare(Box::new(socket(server.port()).await))),
        (
            "bare, TLS",
            Client::Bare(Box::new(bare.await.expect("a handshake"))),
        ),
    ];
    let request = request();
    let mut spans: [Vec<Duration>; 5] = Default::default();
    let mut used = [Duration::ZERO; 5];
    for turn in 0..TURNS {
        for (((_, client), spans), used) in clients.iter_mut().zip(&mut spans).zip(&mut used) {
            let before = used_by(server.pid());
            let took = client.turn(&request).await;
            if 0 < turn {
                *used += used_by(server.pid()) - before;
                spans.extend(took);
            }
        }
    }
    let medians = spans.map(|mut spans| {
        spans.sort_unstable();
        micros(spans[spans.len() / 2])
    });
    report(&clients, medians, used);
}

fn report(clients: &[(&str, Client); 5], medians: [f64; 5], used: [Duration; 5]) {
    println!("             a median of   on the server's processor, a request");
    for (((name, client), median), used) in clients.iter().zip(medians).zip(used) {
        // Our acquisition is followed by its release.
        let requests = match client {
            Client::Ours(_) => 2,
            Client::Bare(_) => 1,
        };
        let requests = u32::try_from(requests * TURN * (TURNS - 1)).expect("a few thousand");
        let used = micros(used / requests);
        println!("{name:12} {median:8.1} us   {used:8.1} us");
    }
    let [plain, again, encrypted, bare, bare_encrypted] = medians;
    println!("plain again / plain {:6.3}", again / plain);
    println!("TLS / plain         {:6.3} (bar: {BAR})", encrypted / plain);
    println!("TLS - plain         {:6.1} us", encrypted - plain);
    println!("bare TLS - bare     {:6.1} us", bare_encrypted - bare);
}
