//! The network between clients and a server: a TCP proxy whose directions can be slow, held back or lossy.

use std::io;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use crate::server::Server;

/// How messages travel in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Forwarding {
    /// Messages pass at once.
    Open,
    /// Each message takes a time between these bounds. Messages do not overtake each other.
    Slow {
        /// The shortest time.
        min: Duration,
        /// The longest time.
        max: Duration,
    },
    /// Messages wait until this state ends, like lost packets that TCP resends.
    Held,
    /// Messages are lost, and neither end notices.
    Lost,
}

/// The end of a link that receives messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The server, which receives requests.
    Server,
    /// The client, which receives replies.
    Client,
}

/// Chooses how long a slow message takes, between two bounds.
pub type Draw = Box<dyn FnMut(Duration, Duration) -> Duration + Send>;

/// Carries connections to a server, until it is dropped. It needs the runtime on which it was created.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    wire: Arc<Wire>,
    accepting: AbortHandle,
}

#[derive(Debug)]
struct Wire {
    to_server: Direction,
    to_client: Direction,
    /// The port of the server to which new connections lead.
    leads_to: AtomicU16,
    opened: AtomicUsize,
    /// Connections with a number up to this one swallow every message.
    swallows: AtomicUsize,
    pumps: Mutex<Vec<AbortHandle>>,
}

struct Direction {
    way: watch::Sender<Forwarding>,
    draw: Mutex<Draw>,
    /// The number of bytes that were delivered.
    sent: AtomicUsize,
    /// The number of bytes that were lost.
    lost: AtomicUsize,
}

impl std::fmt::Debug for Direction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.way.fmt(f)
    }
}

impl Direction {
    fn new(way: Forwarding, draw: Draw) -> Direction {
        Direction {
            way: watch::Sender::new(way),
            draw: Mutex::new(draw),
            sent: AtomicUsize::new(0),
            lost: AtomicUsize::new(0),
        }
    }

    /// Waits until messages can pass. Returns when a message that is sent now arrives, or `None` if it is lost.
    async fn due(&self) -> Option<Instant> {
        let mut ways = self.way.subscribe();
        // The sender lives as long as this value.
        let way = ways.wait_for(|way| *way != Forwarding::Held).await;
        let way = way.map_or(Forwarding::Held, |way| *way);
        match way {
            Forwarding::Open => Some(Instant::now()),
            Forwarding::Slow { min, max } => {
                let mut draw = self.draw.lock().unwrap_or_else(PoisonError::into_inner);
                Some(Instant::now() + draw(min, max))
            }
            Forwarding::Held | Forwarding::Lost => None,
        }
    }
}

impl Proxy {
    /// Creates a network without faults to this server.
    ///
    /// # Panics
    /// Panics if no port is free.
    pub async fn to(server: &Server) -> Proxy {
        let shortest = || -> Draw { Box::new(|min, _| min) };
        let opened = Proxy::open(server.port(), Forwarding::Open, [shortest(), shortest()]);
        opened.await.expect("a port")
    }

    /// Creates a network to the server on this port. Slow requests and slow replies take the times that the two
    /// functions choose.
    ///
    /// # Errors
    /// Returns the error of the operating system if no port is free.
    pub async fn open(server: u16, way: Forwarding, draws: [Draw; 2]) -> io::Result<Proxy> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let [to_server, to_client] = draws.map(|draw| Direction::new(way, draw));
        let wire = Arc::new(Wire {
            to_server,
            to_client,
            leads_to: AtomicU16::new(server),
            opened: AtomicUsize::new(0),
            swallows: AtomicUsize::new(0),
            pumps: Mutex::default(),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&wire))).abort_handle();
        Ok(Proxy {
            port,
            wire,
            accepting,
        })
    }

    /// Returns the port under which clients reach the server.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the server's address through this network.
    #[must_use]
    pub fn address(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Returns how many connections clients have made so far.
    #[must_use]
    pub fn opened(&self) -> usize {
        self.wire.opened.load(Ordering::SeqCst)
    }

    /// Returns how many bytes of requests have reached the server so far.
    #[must_use]
    pub fn sent(&self) -> usize {
        self.wire.to_server.sent.load(Ordering::SeqCst)
    }

    /// Returns how many bytes of replies were lost so far.
    #[must_use]
    pub fn lost(&self) -> usize {
        self.wire.to_client.lost.load(Ordering::SeqCst)
    }

    /// Changes how messages travel towards one end from now on.
    pub fn set(&self, towards: End, way: Forwarding) {
        self.wire.towards(towards).way.send_replace(way);
    }

    /// Loses all replies from now on. Requests still arrive.
    pub fn lose_replies(&self) {
        self.set(End::Client, Forwarding::Lost);
    }

    /// Delivers replies again from now on.
    pub fn carry_replies(&self) {
        self.set(End::Client, Forwarding::Open);
    }

    /// Loses everything on the existing connections from now on, in both directions and without notice to either end.
    /// New connections work.
    pub fn swallow(&self) {
        self.wire.swallows.store(self.opened(), Ordering::SeqCst);
    }

    /// Ends all connections. Messages in flight are lost. New connections are accepted.
    pub fn cut(&self) {
        for pump in self.wire.pumps().drain(..) {
            pump.abort();
        }
    }

    /// Routes new connections to the server on this port, and ends the existing connections.
    pub fn lead_to(&self, server: u16) {
        self.wire.leads_to.store(server, Ordering::SeqCst);
        self.cut();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

impl Wire {
    fn swallows(&self, connection: usize) -> bool {
        connection <= self.swallows.load(Ordering::SeqCst)
    }

    fn towards(&self, end: End) -> &Direction {
        match end {
            End::Server => &self.to_server,
            End::Client => &self.to_client,
        }
    }

    fn pumps(&self) -> MutexGuard<'_, Vec<AbortHandle>> {
        self.pumps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn accept(listener: TcpListener, wire: Arc<Wire>) {
    while let Ok((client, _)) = listener.accept().await {
        let number = wire.opened.fetch_add(1, Ordering::SeqCst) + 1;
        let mut pumps = wire.pumps();
        pumps.retain(|pump| !pump.is_finished());
        // The pump is known before it runs, so that a cut ends it.
        pumps.push(tokio::spawn(carry(client, Arc::clone(&wire), number)).abort_handle());
    }
}

/// Carries one connection until both ends have closed it. While messages are held, a new connection is accepted but
/// hangs.
async fn carry(client: TcpStream, wire: Arc<Wire>, number: usize) {
    let _ = wire.to_server.due().await;
    let server = TcpStream::connect(("127.0.0.1", wire.leads_to.load(Ordering::SeqCst))).await;
    let Ok(server) = server else {
        return;
    };
    if client
        .set_nodelay(true)
        .and(server.set_nodelay(true))
        .is_err()
    {
        return;
    }
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::join!(
        pump(from_client, to_server, &wire, End::Server, number),
        pump(from_server, to_client, &wire, End::Client, number),
    );
}

/// Carries one direction of a connection. The other end reads what is still in flight before it reads the end of the
/// stream.
async fn pump(from: OwnedReadHalf, to: OwnedWriteHalf, wire: &Wire, towards: End, number: usize) {
    let (taken, due) = unbounded_channel();
    tokio::join!(
        take(from, taken, wire, towards, number),
        deliver(due, to, &wire.towards(towards).sent),
    );
}

/// A message, and when it arrives.
type Message = (Instant, Vec<u8>);

async fn take(
    mut from: OwnedReadHalf,
    taken: UnboundedSender<Message>,
    wire: &Wire,
    towards: End,
    number: usize,
) {
    let direction = wire.towards(towards);
    let mut buffer = vec![0; 16 * 1024];
    let mut last = Instant::now();
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let due = match wire.swallows(number) {
            true => None,
            false => direction.due().await,
        };
        match due.filter(|_| !wire.swallows(number)) {
            Some(due) => {
                last = due.max(last);
                let bytes = buffer.get(..length).unwrap_or_default().to_vec();
                if taken.send((last, bytes)).is_err() {
                    return;
                }
            }
            None => {
                direction.lost.fetch_add(length, Ordering::SeqCst);
            }
        }
    }
    // The end of a swallowed connection is lost, too.
    if wire.swallows(number) {
        std::future::pending::<()>().await;
    }
}

async fn deliver(mut due: UnboundedReceiver<Message>, mut to: OwnedWriteHalf, sent: &AtomicUsize) {
    while let Some((at, bytes)) = due.recv().await {
        // A sleep lasts a millisecond at least.
        if Instant::now() < at {
            sleep_until(at).await;
        }
        if to.write_all(&bytes).await.is_err() {
            return;
        }
        sent.fetch_add(bytes.len(), Ordering::SeqCst);
    }
}
