//! The lane in which messages are bytes. The production adapter communicates over turmoil's TCP with servers that run
//! the real Lua scripts.
//!
//! The work of clients, their clocks and their faults are those of the world, as in the other lane. So are the plan,
//! the history and the checkers. Only the path from a request to its answer differs. A client process leaves the
//! request in its `outbox`. The adapter on the turmoil host of that `client` takes it from there within a millisecond.
//! A `server_host` executes what arrives on its sockets. Each step of turmoil is one event of the engine and advances
//! time by a millisecond.

mod client;
mod cluster;
mod network;
mod operator;
mod outage;
mod outbox;
mod server_host;
mod stream;
mod swaps;
mod transport;

use std::any::Any;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use quorlock::Name;
use quorlock::redis::{RedisConfig, RedisTransport};
use quorlock::transport::{Slot, Transport, UnfitName};
use redis_sim::{Place, Watch};

pub use quorlock_sim_plan::Lacks;

#[cfg(unix)]
pub(crate) use cluster::tags;
use network::TurmoilNetwork;
use outbox::{Listening, Outbox, Posted};
use quorlock_sim_plan::Plan;
use quorlock_sim_world::world::World;
use quorlock_sim_world::world::by_id::ById;
use quorlock_sim_world::world::id::{ClientId, Id, NodeId, ProcessId, Seat, first};
use quorlock_sim_world::world::medium::{Driver, Medium};
use quorlock_sim_world::world::server::Servers;
use quorlock_sim_world::world::slab::Slab;
use server_host::ServerHost;
use stream::StreamHandle;
use transport::SocketTransport;

/// The medium in which messages are bytes.
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

/// The length of one step of turmoil, in nanoseconds. The timers of its hosts have this resolution.
const STEP: u64 = 1_000_000;

/// The port in the addresses of servers. On turmoil's network the servers share a host: see [`listening_port`].
const PORT: u16 = 6379;

/// The host of all servers. A step of turmoil pays for each host and for each pair of hosts, so one host for all servers
/// takes two thirds of the time that a host for each server takes.
const SERVERS: &str = "servers";

/// Returns the time of the nearest step.
fn step_of(at: u64) -> u64 {
    (at + STEP / 2) / STEP * STEP
}

fn node_host(node: NodeId) -> String {
    format!("node-{node}")
}

/// Returns the port on which a node listens on the host of all servers.
fn listening_port(node: NodeId) -> u16 {
    PORT + node.get()
}

/// Returns the node that listens on a port of the host of all servers.
fn node_at(port: u16) -> NodeId {
    NodeId::new(port - PORT)
}

/// Returns the host name of a node of the plan, whichever server is the node's primary now.
fn seat_host(seat: Seat) -> String {
    format!("seat-{seat}")
}

/// Returns the name under which sentinels watch the group of a node of the plan.
fn group_name(seat: Seat) -> String {
    format!("group-{seat}")
}

/// Returns the address of a node, as sentinels announce it.
fn place(node: NodeId) -> Place {
    (node_host(node), PORT)
}

fn client_host(client: ClientId) -> String {
    format!("client-{client}")
}

/// Returns whether these bytes contain a text.
fn contains(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len().max(1)).any(|part| part == text)
}

/// This lane's part of the world: its servers, and the requests that clients have left for the adapter.
#[derive(Debug, Default)]
struct Sockets {
    posted: Slab<Posted>,
    listening: Slab<Listening>,
    desks: ById<ClientId, Outbox>,
    stations: ById<NodeId, ServerHost>,
    plugs: Slab<StreamHandle>,
    /// The clients, by their addresses on turmoil's network.
    clients: BTreeMap<IpAddr, ClientId>,
    /// The tasks of hosts that wait for a time, with that time.
    waiting: Vec<(u64, Waker)>,
    orders: Vec<Order>,
    /// The number of connections that were made before the run began.
    warm: usize,
    /// Whether the run has begun. No time passes before that.
    has_begun: bool,
    /// The hash tags under which the shards of a cluster keep names. Empty if clients see the cluster as one node.
    tags: Vec<String>,
    /// The adapter's transport to each node that clients see, which tells the slot of a name. Empty without a cluster.
    transports: Vec<RedisTransport>,
}

/// An order for a host. It is executed between two steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    /// Stop the host of this client, whose process has ended.
    Kill(ClientId),
    /// Start the host of this client again.
    Boot(ClientId),
    /// Drop all messages that are in flight between this client and this node.
    Lose(ClientId, NodeId),
}

impl Sockets {
    /// Creates this lane's part of the world for the clients of a plan and this many nodes.
    fn new(plan: &Plan, nodes: usize) -> Self {
        let servers = usize::from(plan.nodes.count + plan.nodes.count * plan.nodes.replicas);
        let transports = match &plan.nodes.cluster {
            Some(_) => cluster::transports(plan, RedisConfig::default()),
            None => Vec::new(),
        };
        let tags = cluster::tags(plan);
        let stations = (0..servers.min(nodes)).map(|node| ServerHost::new(plan, node, &tags));
        let watches = watches(plan).into_iter().zip(servers..);
        let sentinels = watches.map(|(watch, node)| ServerHost::sentinel(plan.seed, node, watch));
        Sockets {
            desks: (0..plan.clients).map(|_| Outbox::default()).collect(),
            stations: stations.chain(sentinels).collect(),
            tags,
            transports,
            ..Sockets::default()
        }
    }

    /// Returns the slot of a name at a node that clients see.
    fn slot(&self, seat: Seat, name: &Name) -> Result<Slot, UnfitName> {
        let transport = self.transports.get(seat.index());
        transport.map_or(Ok(Slot::WHOLE), |transport| transport.slot(name))
    }

    fn desk(&mut self, client: ClientId) -> &mut Outbox {
        self.desks.get_mut(client).expect("BUG: no such client")
    }

    fn station(&mut self, node: NodeId) -> &mut ServerHost {
        self.stations.get_mut(node).expect("BUG: no such node")
    }
}

/// Returns what each sentinel watches at the beginning, in the order of their nodes.
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

/// Returns this lane's part of the world, or `None` when the run is over. Tasks that are dropped after the run may
/// still call this.
fn find_sockets(world: &mut World) -> Option<&mut Sockets> {
    let servers: &mut dyn Any = &mut *world.servers;
    servers.downcast_mut()
}

/// Resolves when a time has come. Before that, the task is registered to be woken at that time.
fn poll_time(world: &mut World, at: u64, cx: &Context<'_>) -> Poll<()> {
    if at <= world.now() {
        return Poll::Ready(());
    }
    sockets(world).waiting.push((at, cx.waker().clone()));
    Poll::Pending
}

/// Resolves if the client is not paused. Otherwise, the task is registered to be woken when the pause ends.
fn poll_running(world: &mut World, client: ClientId, cx: &Context<'_>) -> Poll<()> {
    let until = world.client(client).paused_until();
    poll_time(world, until, cx)
}

/// Takes the wakers of the tasks of hosts that are due now, because of a time or of work.
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
