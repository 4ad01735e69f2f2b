//! A network between a client and a server that fails as the test requests.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

use crate::server::Server;

/// Carries connections to a server, until it is dropped.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    wire: Arc<Wire>,
    accepting: AbortHandle,
}

#[derive(Debug, Default)]
struct Wire {
    opened: AtomicUsize,
    sent: AtomicUsize,
    loses_replies: AtomicBool,
    lost: AtomicUsize,
    swallowing: AtomicUsize,
    pumps: Mutex<Vec<AbortHandle>>,
}

impl Proxy {
    /// Creates a network without faults.
    ///
    /// # Panics
    /// Panics if no port is free.
    pub async fn to(server: &Server) -> Proxy {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let port = listener.local_addr().expect("a port").port();
        let wire = Arc::<Wire>::default();
        let accepting = tokio::spawn(accept(listener, server.port(), wire.clone())).abort_handle();
        Proxy {
            port,
            wire,
            accepting,
        }
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

    /// Returns how many bytes clients have sent so far.
    #[must_use]
    pub fn sent(&self) -> usize {
        self.wire.sent.load(Ordering::SeqCst)
    }

    /// Loses all replies from now on. Requests still arrive.
    pub fn lose_replies(&self) {
        self.wire.loses_replies.store(true, Ordering::SeqCst);
    }

    /// Loses everything on the existing connections from now on, in both directions and without notice to either end.
    /// New connections work.
    pub fn swallow(&self) {
        self.wire.swallowing.store(self.opened(), Ordering::SeqCst);
    }

    /// Returns how many bytes of replies were lost so far.
    #[must_use]
    pub fn lost(&self) -> usize {
        self.wire.lost.load(Ordering::SeqCst)
    }

    /// Delivers replies again from now on.
    pub fn carry_replies(&self) {
        self.wire.loses_replies.store(false, Ordering::SeqCst);
    }

    /// Closes all connections. New connections are accepted.
    pub fn cut(&self) {
        for pump in self.wire.pumps().drain(..) {
            pump.abort();
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

impl Wire {
    fn is_swallowing(&self, connection: usize) -> bool {
        connection <= self.swallowing.load(Ordering::SeqCst)
    }

    fn pumps(&self) -> std::sync::MutexGuard<'_, Vec<AbortHandle>> {
        self.pumps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn accept(listener: TcpListener, server: u16, wire: Arc<Wire>) {
    while let Ok((client, _)) = listener.accept().await {
        let number = wire.opened.fetch_add(1, Ordering::SeqCst) + 1;
        let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await else {
            continue;
        };
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        let requests = tokio::spawn(carry_requests(from_client, to_server, wire.clone(), number));
        let replies = tokio::spawn(carry_replies(from_server, to_client, wire.clone(), number));
        wire.pumps()
            .extend([requests.abort_handle(), replies.abort_handle()]);
    }
}

async fn carry_requests(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    wire: Arc<Wire>,
    number: usize,
) {
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        if wire.is_swallowing(number) {
            continue;
        }
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
        wire.sent.fetch_add(length, Ordering::SeqCst);
    }
}

async fn carry_replies(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    wire: Arc<Wire>,
    number: usize,
) {
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        if wire.loses_replies.load(Ordering::SeqCst) || wire.is_swallowing(number) {
            wire.lost.fetch_add(length, Ordering::SeqCst);
        } else if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
