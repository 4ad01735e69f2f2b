//! The lane in which messages are bytes: the production adapter and servers that run the real Lua scripts, over
//! turmoil's TCP.
//!
//! What clients do, their clocks, and what goes wrong with them is the world's as in the other lane, and so are the
//! plan, the history and the checkers. Only what is between a request and its answer is different: a client process
//! leaves the request at its `client`, the adapter on its turmoil host takes it from there within a
//! millisecond, and a `station` on another host executes what comes out of its sockets. Each step of
//! turmoil is one event of the engine, a millisecond after the one before.

mod cable;
mod client;
mod cluster;
mod desk;
mod network;
mod operator;
mod outage;
mod station;
mod swaps;
mod transport;

use std::any::Any;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use quorlock::transport::Transport;
use redis_sim::{Place, Watch};

pub use crate::plan::Lacks;

use crate::plan::Plan;
use crate::world::World;
use crate::world::by_id::ById;
use crate::world::id::{ClientId, Id, NodeId, ProcessId, Seat, first};
use crate::world::medium::{Driver, Medium};
use crate::world::server::Servers;
use crate::world::slab::Slab;
use cable::StreamHandle;
use desk::{Listening, Outbox, Posted};
use network::TurmoilNetwork;
use station::ServerHost;
use transport::SocketTransport;

/// Messages are bytes.
pub(crate) struct Bytes;

impl Medium for Bytes {
    fn servers(&self, plan: &Plan, nodes: usize) -> Box<dyn Servers> {
        Box::new(Sockets::new(plan, nodes))
    }

    fn driver(&self, plan: &Plan) -> Option<Box<dyn Driver>> {
        Some(Box::new(TurmoilNetwork::new(plan)))
    }

    fn transport(&self, who: ProcessId, seat: Seat) -> Arc<dyn Transport> {
        Arc::new(SocketTransport::new(who, seat))
    }
}

/// How long one step of turmoil is, in nanoseconds: the timers of its hosts are no finer.
const STEP: u64 = 1_000_000;

/// Where servers listen.
const PORT: u16 = 6379;

/// The step that is nearest to a time.
fn step_of(at: u64) -> u64 {
    (at + STEP / 2) / STEP * STEP
}

fn node_host(node: NodeId) -> String {
    format!("node-{node}")
}

/// The name of a node of the plan, whichever server answers for it now.
fn seat_host(seat: Seat) -> String {
    format!("seat-{seat}")
}

/// What sentinels call the group that a node of the plan is.
fn group_name(seat: Seat) -> String {
    format!("group-{seat}")
}

/// Where a node listens, as sentinels announce it.
fn place(node: NodeId) -> Place {
    (node_host(node), PORT)
}

fn client_host(client: ClientId) -> String {
    format!("client-{client}")
}

/// Whether a text stands somewhere in these bytes.
fn contains(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len().max(1)).any(|part| part == text)
}

/// What of this lane is in the world: its servers, and what clients have left for them.
#[derive(Debug, Default)]
struct Sockets {
    posted: Slab<Posted>,
    listening: Slab<Listening>,
    desks: ById<ClientId, Outbox>,
    stations: ById<NodeId, ServerHost>,
    plugs: Slab<StreamHandle>,
    /// Where clients are on turmoil's network.
    clients: BTreeMap<IpAddr, ClientId>,
    /// Tasks of hosts that wait for a time of the world.
    waiting: Vec<(u64, Waker)>,
    orders: Vec<Order>,
    /// Connections that are there before the run begins.
    warm: usize,
    /// Whether it has: until then no time passes.
    has_begun: bool,
    /// The tags under which the shards of a cluster keep names: none where clients see it as one node.
    tags: Vec<String>,
}

/// Something to be done to a host, between two steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    /// The process of this client has ended.
    Kill(ClientId),
    /// It is started again.
    Boot(ClientId),
    /// What is under way between this client and this node is lost.
    Lose(ClientId, NodeId),
}

impl Sockets {
    /// For the clients of a plan and so many nodes.
    fn new(plan: &Plan, nodes: usize) -> Self {
        let servers = usize::from(plan.nodes.count + plan.nodes.count * plan.nodes.replicas);
        let tags = cluster::tags(plan);
        let stations = (0..servers.min(nodes)).map(|node| ServerHost::new(plan, node, &tags));
        let watches = watches(plan).into_iter().zip(servers..);
        let sentinels = watches.map(|(watch, node)| ServerHost::sentinel(plan.seed, node, watch));
        Sockets {
            desks: (0..plan.clients).map(|_| Outbox::default()).collect(),
            stations: stations.chain(sentinels).collect(),
            tags,
            ..Sockets::default()
        }
    }

    fn desk(&mut self, client: ClientId) -> &mut Outbox {
        self.desks.get_mut(client).expect("BUG: no such client")
    }

    fn station(&mut self, node: NodeId) -> &mut ServerHost {
        self.stations.get_mut(node).expect("BUG: no such node")
    }
}

/// What each sentinel watches at the beginning, in the order of their nodes.
fn watches(plan: &Plan) -> Vec<Watch> {
    let many = plan.nodes.sentinels.as_ref().map_or(0, |s| s.count);
    let servers = plan.nodes.count + plan.nodes.count * plan.nodes.replicas;
    let mut watches = Vec::new();
    for seat in first::<Seat>(plan.nodes.count) {
        let begin = servers + seat.get() * many;
        let all: Vec<Place> = (begin..begin + many)
            .map(|n| place(NodeId::new(n)))
            .collect();
        watches.extend((0..all.len()).map(|own| {
            let others = all.iter().enumerate().filter(|(at, _)| *at != own);
            Watch {
                name: group_name(seat),
                primary: place(seat.first_node()),
                epoch: 1,
                sentinels: others.map(|(_, other)| other.clone()).collect(),
            }
        }));
    }
    watches
}

fn sockets(world: &mut World) -> &mut Sockets {
    find_sockets(world).expect("BUG: it is the other lane")
}

/// What of this lane is in the world, unless the run is over: then the last of its users come after it.
fn find_sockets(world: &mut World) -> Option<&mut Sockets> {
    let servers: &mut dyn Any = &mut *world.servers;
    servers.downcast_mut()
}

/// Whether it is this time; if not, the task is woken when it is.
fn poll_time(world: &mut World, at: u64, cx: &Context<'_>) -> Poll<()> {
    if at <= world.now() {
        return Poll::Ready(());
    }
    sockets(world).waiting.push((at, cx.waker().clone()));
    Poll::Pending
}

/// Whether a client is not paused; if it is, the task is woken when it goes on.
fn poll_running(world: &mut World, client: ClientId, cx: &Context<'_>) -> Poll<()> {
    let until = world.client(client).paused_until();
    poll_time(world, until, cx)
}

/// The tasks of hosts that wait for this time, or for work that is due.
fn due(world: &mut World) -> Vec<Waker> {
    let now = world.now();
    let lane = sockets(world);
    let waiting = std::mem::take(&mut lane.waiting);
    let (due, later): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|(at, _)| *at <= now);
    lane.waiting = later;
    let mut wakers: Vec<Waker> = due.into_iter().map(|(_, waker)| waker).collect();
    for desk in lane.desks.values_mut() {
        wakers.extend(desk.called(now));
    }
    wakers
}
