//! The host of all servers: the sockets of each simulated server.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::JoinSet;
use turmoil::net::{TcpListener, TcpStream};

use super::operator::receive;
use super::{contains, find_sockets, listening_port, poll_time, sockets};
use crate::redis::RedisServer;
use quorlock_sim_plan::Plan;
use quorlock_sim_plan::draw::{Draw, Purpose, stream};
use quorlock_sim_world::world::id::{ClientId, NodeId, first};
use quorlock_sim_world::world::{World, with};
use redis_sim::{Server, SessionId, Watch};

/// A server and its connections.
#[derive(Debug)]
pub(super) struct ServerHost {
    pub(super) redis: RedisServer,
    pub(super) callers: BTreeMap<SessionId, ClientConnection>,
    acceptor: Option<Waker>,
}

/// The server's end of a connection of a client.
#[derive(Debug)]
pub(super) struct ClientConnection {
    pub(super) client: ClientId,
    /// Bytes to send.
    outgoing: Vec<u8>,
    is_closed: bool,
    waker: Option<Waker>,
}

impl ServerHost {
    pub(super) fn new(plan: &Plan, node: usize, tags: &[String]) -> Self {
        let seed = Draw::new(plan.seed, Purpose::Sockets, 1 + node as u64).bits();
        let process = Server::new(stream(seed, Purpose::ServerIds, 0));
        ServerHost {
            redis: RedisServer::of_run(process).under(tags, node),
            callers: BTreeMap::new(),
            acceptor: None,
        }
    }

    /// Creates a sentinel. The run does not read the keys of sentinels.
    pub(super) fn sentinel(seed: u64, node: usize, watch: Watch) -> Self {
        let seed = Draw::new(seed, Purpose::Sockets, 1 + node as u64).bits();
        let process = Server::new(stream(seed, Purpose::ServerIds, 0));
        ServerHost {
            redis: RedisServer::new(process.watching(watch)),
            callers: BTreeMap::new(),
            acceptor: None,
        }
    }

    /// Closes the connections of one client, or of all clients.
    pub(super) fn hang_up(&mut self, client: Option<ClientId>) {
        for caller in self.callers.values_mut() {
            if client.is_none_or(|client| client == caller.client) {
                caller.is_closed = true;
                caller.ring();
            }
        }
    }

    /// Wakes the acceptor, because the node may have started or stopped listening.
    pub(super) fn call_acceptor(&mut self) {
        if let Some(acceptor) = self.acceptor.take() {
            acceptor.wake();
        }
    }

    /// Distributes the server's output to its connections.
    pub(super) fn pass_on(&mut self) {
        let server = &mut self.redis.process;
        for session in server.sessions_with_output().collect::<Vec<_>>() {
            if let Some(caller) = self.callers.get_mut(&session) {
                caller.outgoing.extend(server.take_output(session));
                caller.ring();
            }
        }
    }

    /// Returns whether the unsent output of a connection contains this text.
    pub(super) fn says(&self, session: SessionId, text: &[u8]) -> bool {
        let caller = self.callers.get(&session);
        caller.is_some_and(|caller| contains(&caller.outgoing, text))
    }
}

impl ClientConnection {
    fn ring(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// Runs the host of this many servers.
pub(super) async fn run(nodes: u16) -> turmoil::Result {
    let mut servers = JoinSet::new();
    for node in first::<NodeId>(nodes) {
        servers.spawn_local(listen(node));
    }
    // A server listens until the run is over, so one that ends has failed.
    while let Some(ended) = servers.join_next().await {
        ended??;
    }
    Ok(())
}

/// Accepts the connections of one server, and listens again after it was down.
async fn listen(node: NodeId) -> std::io::Result<()> {
    loop {
        let up = |cx: &mut Context<'_>| with(|world| is_listening(world, node, cx));
        poll_fn(|cx| {
            if up(cx) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
        let listener = TcpListener::bind(("0.0.0.0", listening_port(node))).await?;
        while let Some((stream, from)) = accept(node, &listener).await? {
            if let Some(session) = with(|world| admit(world, node, from)) {
                tokio::task::spawn_local(serve(node, session, stream));
            }
        }
    }
}

/// Accepts the next connection, or returns `None` when the node goes down.
async fn accept(
    node: NodeId,
    listener: &TcpListener,
) -> std::io::Result<Option<(TcpStream, IpAddr)>> {
    let mut next = pin!(listener.accept());
    poll_fn(|cx| {
        if !with(|world| is_listening(world, node, cx)) {
            return Poll::Ready(Ok(None));
        }
        let next = next.as_mut().poll(cx);
        next.map_ok(|(stream, from)| Some((stream, from.ip())))
    })
    .await
}

/// Serves one connection until one of its ends closes it.
async fn serve(node: NodeId, session: SessionId, mut stream: TcpStream) {
    let mut line = OutgoingLine {
        node,
        session,
        outgoing: Vec::new(),
        sent: 0,
    };
    poll_fn(|cx| line.poll(&mut stream, cx)).await;
    let caller = with(|world| dismiss(world, node, session));
    drop(caller);
}

/// What a server does next with a connection.
enum Attention {
    /// Nothing for now, because the node is paused.
    Later,
    /// Send these bytes, then read.
    Speak(Vec<u8>),
    /// Close the connection.
    Gone,
}

struct OutgoingLine {
    node: NodeId,
    session: SessionId,
    outgoing: Vec<u8>,
    sent: usize,
}

impl OutgoingLine {
    fn poll(&mut self, stream: &mut TcpStream, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match with(|world| attend(world, self.node, self.session, cx)) {
                Attention::Later => return Poll::Pending,
                Attention::Gone => return Poll::Ready(()),
                Attention::Speak(bytes) => self.outgoing.extend(bytes),
            }
            while let Some(rest) = self.outgoing.get(self.sent..)
                && !rest.is_empty()
            {
                match Pin::new(&mut *stream).poll_write(cx, rest) {
                    Poll::Ready(Ok(count)) => self.sent += count,
                    Poll::Ready(Err(_)) => return Poll::Ready(()),
                    Poll::Pending => return Poll::Pending,
                }
            }
            self.outgoing.clear();
            self.sent = 0;
            // The buffer is not zeroed, because a connection is polled far more often than it has something to read.
            let mut room = [MaybeUninit::uninit(); 16 * 1024];
            let mut room = ReadBuf::uninit(&mut room);
            match Pin::new(&mut *stream).poll_read(cx, &mut room) {
                Poll::Ready(Ok(())) if !room.filled().is_empty() => {
                    with(|world| receive(world, self.node, self.session, room.filled()));
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

/// Returns whether a node accepts connections. The task is woken when this changes.
fn is_listening(world: &mut World, node: NodeId, cx: &Context<'_>) -> bool {
    sockets(world).station(node).acceptor = Some(cx.waker().clone());
    world.node(node).is_up()
}

fn admit(world: &mut World, node: NodeId, from: IpAddr) -> Option<SessionId> {
    let lane = sockets(world);
    let client = *lane.clients.get(&from)?;
    let station = lane.station(node);
    let session = station.redis.process.open_session();
    station.callers.insert(
        session,
        ClientConnection {
            client,
            outgoing: Vec::new(),
            is_closed: false,
            waker: None,
        },
    );
    Some(session)
}

fn attend(world: &mut World, node: NodeId, session: SessionId, cx: &Context<'_>) -> Attention {
    let until = world.node(node).paused_until();
    let station = sockets(world).station(node);
    let is_closing = station.redis.process.is_closing(session);
    let Some(caller) = station.callers.get_mut(&session) else {
        return Attention::Gone;
    };
    if caller.is_closed || (is_closing && caller.outgoing.is_empty()) {
        return Attention::Gone;
    }
    caller.waker = Some(cx.waker().clone());
    if poll_time(world, until, cx).is_pending() {
        return Attention::Later;
    }
    let caller = sockets(world).station(node).callers.get_mut(&session);
    let outgoing = caller.map(|caller| std::mem::take(&mut caller.outgoing));
    Attention::Speak(outgoing.unwrap_or_default())
}

fn dismiss(world: &mut World, node: NodeId, session: SessionId) -> Option<ClientConnection> {
    let station = find_sockets(world)?.station(node);
    station.redis.process.close_session(session);
    station.callers.remove(&session)
}
