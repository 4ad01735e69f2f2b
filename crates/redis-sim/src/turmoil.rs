//! A Redis for [turmoil](https://docs.rs/turmoil): a [`Server`] on a host of a simulation, behind turmoil's sockets.

use std::cell::{RefCell, RefMut};
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;
use turmoil::net::{TcpListener, TcpStream};

use crate::data::{Dataset, WallMicros};
use crate::server::Server;
use crate::session::SessionId;

/// The port on which a [`Redis`] listens.
pub const PORT: u16 = 6379;

/// A server on a host of a turmoil simulation, on port 6379 of IPv4.
///
/// Its clock is that of the host, which begins at the epoch of the simulation. Partitions, held messages, latencies, crashes and restarts
/// come from turmoil. When the host is restarted ([`Sim::crash`](turmoil::Sim::crash) and
/// [`Sim::bounce`](turmoil::Sim::bounce)), the server is another process: all connections, scripts and subscriptions are gone, and all keys
/// as well unless it is [persistent](Self::persistent).
///
/// A run depends on the seed of the server, the seed of the simulation and what clients send.
///
/// ```
/// use redis_sim::turmoil::Redis;
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
/// use turmoil::net::TcpStream;
///
/// let mut sim = turmoil::Builder::new().rng_seed(1).build();
/// sim.host("redis", Redis::new(1).software());
/// sim.client("client", async {
///     let mut redis = TcpStream::connect("redis:6379").await?;
///     redis.write_all(b"SET a 1\r\nGET a\r\n").await?;
///     let mut answers = [0; 12];
///     redis.read_exact(&mut answers).await?;
///     assert_eq!(&answers, b"+OK\r\n$1\r\n1\r\n");
///     Ok(())
/// });
/// sim.run()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Clones are handles to the same server.
#[derive(Clone, Debug)]
pub struct Redis(Rc<RefCell<Process>>);

#[derive(Debug)]
struct Process {
    server: Server,
    is_persistent: bool,
    /// Whether it was started before.
    has_run: bool,
    /// The tasks of the open connections.
    connections: BTreeMap<SessionId, Rc<Notify>>,
}

impl Redis {
    /// Creates a server without keys, which keeps them in memory alone. The seed determines its identities, and nothing else.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Redis::of(Server::new(seed))
    }

    /// Takes a server with settings of its own, such as a [password](Server::with_password).
    #[must_use]
    pub fn of(server: Server) -> Self {
        Redis(Rc::new(RefCell::new(Process {
            server,
            is_persistent: false,
            has_run: false,
            connections: BTreeMap::new(),
        })))
    }

    /// Keeps all keys when the host is restarted, as a server that writes each change to its disk before it answers
    /// (`appendfsync always`).
    #[must_use]
    pub fn persistent(self) -> Self {
        self.0.borrow_mut().is_persistent = true;
        self
    }

    /// Returns the software of the host, for [`Sim::host`](turmoil::Sim::host).
    pub fn software(&self) -> impl Fn() -> Serving + 'static {
        let redis = self.clone();
        move || Box::pin(redis.clone().serve())
    }

    /// The server, for faults that do not come from the network: [`flush`](Server::flush),
    /// [`forget_scripts`](Server::forget_scripts), [`set_condition`](Server::set_condition).
    ///
    /// # Panics
    /// Panics if the value of an earlier call still exists. Do not keep it over an `await`, or over a step of the simulation.
    pub fn server(&self) -> RefMut<'_, Server> {
        RefMut::map(self.0.borrow_mut(), |process| &mut process.server)
    }

    async fn serve(self) -> turmoil::Result {
        self.0.borrow_mut().start();
        let listener = TcpListener::bind(("0.0.0.0", PORT)).await?;
        loop {
            let (stream, _) = listener.accept().await?;
            tokio::task::spawn_local(self.clone().attend(stream));
        }
    }

    /// Serves one connection until one of its ends closes it.
    async fn attend(self, mut stream: TcpStream) {
        let (session, has_output) = self.0.borrow_mut().open();
        // A client that is gone is no error of the server.
        let _ = self.converse(session, &has_output, &mut stream).await;
        self.0.borrow_mut().close(session);
    }

    async fn converse(
        &self,
        session: SessionId,
        has_output: &Notify,
        stream: &mut TcpStream,
    ) -> io::Result<()> {
        let mut request = Vec::with_capacity(4096);
        loop {
            let output = self.server().take_output(session);
            if !output.is_empty() {
                stream.write_all(&output).await?;
                continue;
            }
            if self.server().is_closing(session) {
                return stream.shutdown().await;
            }
            match read_unless(has_output, stream, &mut request).await? {
                None => {}
                Some(0) => return Ok(()),
                Some(_) => {
                    self.0.borrow_mut().receive(session, &request);
                    request.clear();
                }
            }
        }
    }
}

/// Reads what a client sends, and returns the number of bytes; or returns `None` because there is output for it.
async fn read_unless(
    has_output: &Notify,
    stream: &mut TcpStream,
    request: &mut Vec<u8>,
) -> io::Result<Option<usize>> {
    let mut notified = pin!(has_output.notified());
    let mut reading = pin!(stream.read_buf(request));
    poll_fn(|cx| {
        if notified.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(None));
        }
        reading.as_mut().poll(cx).map_ok(Some)
    })
    .await
}

/// The software of a host that runs.
pub type Serving = Pin<Box<dyn Future<Output = turmoil::Result>>>;

impl Process {
    fn start(&mut self) {
        if std::mem::replace(&mut self.has_run, true) {
            let kept = if self.is_persistent {
                self.server.dataset()
            } else {
                Dataset::empty()
            };
            self.server.restart(kept);
            self.connections.clear();
        }
    }

    fn open(&mut self) -> (SessionId, Rc<Notify>) {
        let session = self.server.open_session();
        let has_output = Rc::<Notify>::default();
        self.connections.insert(session, Rc::clone(&has_output));
        (session, has_output)
    }

    fn close(&mut self, session: SessionId) {
        self.server.close_session(session);
        self.connections.remove(&session);
    }

    /// Executes requests, and wakes the connections that got an answer or a message.
    fn receive(&mut self, session: SessionId, bytes: &[u8]) {
        self.server.receive(session, now(), bytes);
        for session in self.server.sessions_with_output() {
            if let Some(has_output) = self.connections.get(&session) {
                has_output.notify_one();
            }
        }
    }
}

/// The wall clock of the host.
fn now() -> WallMicros {
    let since = turmoil::since_epoch().expect("BUG: a host of the simulation");
    WallMicros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}
