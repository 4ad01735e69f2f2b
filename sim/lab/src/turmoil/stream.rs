//! The streams of a client: turmoil's TCP, delayed by pauses of the process and by faults.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use quorlock::redis::{ByteStream, Connect, Connecting, Endpoint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use turmoil::net::TcpStream;

use super::swaps::Swaps;
use super::{SERVERS, find_sockets, listening_port, poll_running, poll_time, sockets, step_of};
use quorlock_sim_world::world::id::{ClientId, Id, NodeId, Seat};
use quorlock_sim_world::world::link::Passage;
use quorlock_sim_world::world::slab::Key;
use quorlock_sim_world::world::{World, with};

/// Connects one client to nodes.
#[derive(Debug)]
pub(super) struct SimStreams {
    pub(super) client: ClientId,
    pub(super) swaps: Swaps,
}

impl Connect for SimStreams {
    fn connect(&self, to: &Endpoint) -> Connecting {
        let client = self.client;
        let swaps = self.swaps.clone();
        let destination = Destination::of(to);
        Box::pin(async move {
            let destination = destination.ok_or(io::ErrorKind::AddrNotAvailable)?;
            // A paused process connects after its pause.
            poll_fn(|cx| with(|world| poll_running(world, client, cx))).await;
            let node = with(|world| destination.node(world, client));
            let connected = TcpStream::connect((SERVERS, listening_port(node))).await;
            come_back(client, node).await;
            let key = with(|world| plug_in(world, client, node));
            Ok(Box::new(SimStream {
                client,
                key,
                stream: connected?,
                swaps,
            }) as Box<dyn ByteStream>)
        })
    }
}

/// The destination of a connection.
#[derive(Clone, Copy, Debug)]
enum Destination {
    /// The server that currently serves a node of the plan.
    Seat(Seat),
    /// The server or sentinel that another server has named.
    Node(NodeId),
}

impl Destination {
    /// Parses an endpoint. The simulated network has no other addresses.
    fn of(endpoint: &Endpoint) -> Option<Self> {
        let Endpoint::Tcp { host, .. } = endpoint else {
            return None;
        };
        let (kind, number) = host.split_once('-')?;
        let number = number.parse().ok()?;
        match kind {
            "seat" => Some(Destination::Seat(Seat::new(number))),
            "node" => Some(Destination::Node(NodeId::new(number))),
            _ => None,
        }
    }

    fn node(self, world: &World, client: ClientId) -> NodeId {
        match self {
            Destination::Seat(seat) => world.links.route(client, seat),
            Destination::Node(node) => node,
        }
    }
}

/// Waits for the answer to a connection attempt. Turmoil reports it at once, but here it takes as long as any message.
async fn come_back(client: ClientId, node: NodeId) {
    let passage = with(|world| {
        if !sockets(world).has_begun {
            return Passage::Once(0);
        }
        world.send_to_client(client, node)
    });
    match passage.first() {
        Some(at) => {
            let at = step_of(at);
            poll_fn(|cx| with(|world| poll_time(world, at, cx))).await;
        }
        None => std::future::pending().await,
    }
}

/// The client's end of a connection.
struct SimStream {
    client: ClientId,
    key: Key<StreamHandle>,
    stream: TcpStream,
    swaps: Swaps,
}

/// The world's view of a connection.
#[derive(Debug)]
pub(super) struct StreamHandle {
    pub(super) client: ClientId,
    pub(super) node: NodeId,
    is_reset: bool,
    reader: Option<Waker>,
}

impl StreamHandle {
    pub(super) fn reset(&mut self) {
        self.is_reset = true;
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

impl AsyncRead for SimStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if with(|world| is_reset(world, self.key, cx)) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        let read = buf.filled_mut().get_mut(before..);
        self.swaps.incoming(read.unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for SimStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(with(|world| poll_running(world, self.client, cx)));
        match self.swaps.outgoing(buf) {
            Some(swapped) => Pin::new(&mut self.stream).poll_write(cx, &swapped),
            None => Pin::new(&mut self.stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl Drop for SimStream {
    fn drop(&mut self) {
        let plug = with(|world| find_sockets(world)?.plugs.remove(self.key));
        drop(plug);
    }
}

fn plug_in(world: &mut World, client: ClientId, node: NodeId) -> Key<StreamHandle> {
    sockets(world).plugs.insert(StreamHandle {
        client,
        node,
        is_reset: false,
        reader: None,
    })
}

/// Returns whether a fault has reset a connection. If not, the task is woken when one does.
fn is_reset(world: &mut World, key: Key<StreamHandle>, cx: &Context<'_>) -> bool {
    let Some(plug) = sockets(world).plugs.get_mut(key) else {
        return true;
    };
    plug.reader = Some(cx.waker().clone());
    plug.is_reset
}
