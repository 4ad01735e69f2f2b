//! The network between one client and one node: a TCP proxy that applies faults to each direction.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{AbortHandle, spawn_local};

use super::clock;
use quorlock_sim_plan::draw::Draw;

/// How messages travel in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Forwarding {
    /// Messages pass at once.
    Open,
    /// Each message takes a time between these bounds, in nanoseconds. Messages do not overtake each other.
    Slow { min: u64, max: u64 },
    /// Messages wait until this state ends, like lost packets that TCP resends.
    Held,
}

/// The link between one client and one node.
#[derive(Debug)]
pub(super) struct Proxy {
    port: u16,
    wire: Rc<Wire>,
}

#[derive(Debug)]
struct Wire {
    to_node: DirectionPipe,
    to_client: DirectionPipe,
    /// The port of the server to which new connections lead.
    leads_to: Cell<u16>,
    /// Connections with a number up to this one swallow every message.
    swallows: Cell<u64>,
    opened: Cell<u64>,
    pumps: RefCell<Vec<AbortHandle>>,
}

#[derive(Debug)]
struct DirectionPipe {
    way: Cell<Forwarding>,
    changed: Notify,
    draw: RefCell<Draw>,
}

impl DirectionPipe {
    /// Waits until messages can pass. Returns when a message that is sent now arrives.
    async fn due(&self) -> u64 {
        loop {
            let changed = self.changed.notified();
            match self.way.get() {
                Forwarding::Open => return clock::now(),
                Forwarding::Slow { min, max } => {
                    return clock::now() + self.draw.borrow_mut().between(min, max);
                }
                Forwarding::Held => changed.await,
            }
        }
    }

    fn set(&self, way: Forwarding) {
        self.way.set(way);
        self.changed.notify_waiters();
    }
}

/// The end of a link that receives messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    Node,
    Client,
}

impl Proxy {
    pub(super) async fn open(server: u16, way: Forwarding, draws: [Draw; 2]) -> io::Result<Proxy> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let [to_node, to_client] = draws.map(|draw| DirectionPipe {
            way: Cell::new(way),
            changed: Notify::new(),
            draw: RefCell::new(draw),
        });
        let wire = Rc::new(Wire {
            to_node,
            to_client,
            leads_to: Cell::new(server),
            swallows: Cell::new(0),
            opened: Cell::new(0),
            pumps: RefCell::default(),
        });
        spawn_local(accept(listener, Rc::clone(&wire)));
        Ok(Proxy { port, wire })
    }

    /// Returns the port under which the client reaches the node.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn set(&self, towards: End, way: Forwarding) {
        match towards {
            End::Node => self.wire.to_node.set(way),
            End::Client => self.wire.to_client.set(way),
        }
    }

    /// Makes the existing connections swallow every message from now on. Neither end is notified.
    pub(super) fn swallow(&self) {
        self.wire.swallows.set(self.wire.opened.get());
    }

    /// Ends the existing connections. Messages in flight are lost.
    pub(super) fn reset(&self) {
        for pump in self.wire.pumps.borrow_mut().drain(..) {
            pump.abort();
        }
    }

    /// Routes new connections to the server on this port, and ends the existing connections.
    pub(super) fn lead_to(&self, server: u16) {
        self.wire.leads_to.set(server);
        self.reset();
    }
}

async fn accept(listener: TcpListener, wire: Rc<Wire>) {
    while let Ok((client, _)) = listener.accept().await {
        wire.opened.set(wire.opened.get() + 1);
        let number = wire.opened.get();
        let carried = spawn_local(carry(client, Rc::clone(&wire), number));
        let mut pumps = wire.pumps.borrow_mut();
        pumps.retain(|pump| !pump.is_finished());
        pumps.push(carried.abort_handle());
    }
}

/// Carries one connection until one end has closed it.
async fn carry(client: TcpStream, wire: Rc<Wire>, number: u64) {
    // While messages are held, a new connection is accepted but hangs.
    wire.to_node.due().await;
    let server = TcpStream::connect(("127.0.0.1", wire.leads_to.get())).await;
    let Ok(server) = server else {
        return;
    };
    let is_set = client.set_nodelay(true).and(server.set_nodelay(true));
    if is_set.is_err() {
        return;
    }
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let requests = spawn_local(pump(
        from_client,
        to_server,
        Rc::clone(&wire),
        End::Node,
        number,
    ));
    let replies = spawn_local(pump(
        from_server,
        to_client,
        Rc::clone(&wire),
        End::Client,
        number,
    ));
    let mut pumps = wire.pumps.borrow_mut();
    pumps.extend([requests.abort_handle(), replies.abort_handle()]);
}

async fn pump(from: OwnedReadHalf, to: OwnedWriteHalf, wire: Rc<Wire>, towards: End, number: u64) {
    let (taken, due) = unbounded_channel();
    let delivery = spawn_local(deliver(due, to));
    let _end = AbortOnDrop(delivery.abort_handle());
    take(from, &taken, &wire, towards, number).await;
    // The other end reads what is still in flight before it reads the end of the stream.
    drop(taken);
    let _ = delivery.await;
}

struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn take(
    mut from: OwnedReadHalf,
    taken: &UnboundedSender<(u64, Vec<u8>)>,
    wire: &Wire,
    towards: End,
    number: u64,
) {
    let mut buffer = vec![0; 16 * 1024];
    let mut last = 0;
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        if number <= wire.swallows.get() {
            continue;
        }
        let line = match towards {
            End::Node => &wire.to_node,
            End::Client => &wire.to_client,
        };
        last = line.due().await.max(last);
        let bytes = buffer.get(..length).unwrap_or_default().to_vec();
        if number <= wire.swallows.get() || taken.send((last, bytes)).is_err() {
            continue;
        }
    }
    // The end of a swallowed connection is not forwarded either.
    if number <= wire.swallows.get() {
        clock::sleep(Duration::from_secs(3_600)).await;
    }
}

async fn deliver(mut due: UnboundedReceiver<(u64, Vec<u8>)>, mut to: OwnedWriteHalf) {
    while let Some((at, bytes)) = due.recv().await {
        clock::sleep_until(at).await;
        if to.write_all(&bytes).await.is_err() {
            return;
        }
    }
}
