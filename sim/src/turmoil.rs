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
mod desk;
mod network;
mod operator;
mod outage;
mod station;
mod transport;

use std::any::Any;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::task::{Context, Poll, Waker};

pub use crate::plan::Lacks;
pub(crate) use network::Network;
pub(crate) use transport::{SocketCall, subscribe};

use crate::plan::Plan;
use crate::world::World;
use crate::world::slab::Slab;
use cable::Plug;
use desk::{Desk, Listening, Posted};
use station::Station;

/// How long one step of turmoil is, in nanoseconds: the timers of its hosts are no finer.
pub(crate) const STEP: u64 = 1_000_000;

/// Where servers listen.
const PORT: u16 = 6379;

/// The step that is nearest to a time.
fn step_of(at: u64) -> u64 {
    (at + STEP / 2) / STEP * STEP
}

fn node_host(node: u16) -> String {
    format!("node-{node}")
}

fn client_host(client: u16) -> String {
    format!("client-{client}")
}

/// What of this lane is in the world: its servers, and what clients have left for them.
#[derive(Debug, Default)]
pub(crate) struct Sockets {
    posted: Slab<Posted>,
    listening: Slab<Listening>,
    /// Client after client.
    desks: Vec<Desk>,
    /// Node after node, the replicas last.
    stations: Vec<Station>,
    plugs: Slab<Plug>,
    /// Where clients are on turmoil's network.
    clients: BTreeMap<IpAddr, u16>,
    /// Tasks of hosts that wait for a time of the world.
    waiting: Vec<(u64, Waker)>,
    orders: Vec<Order>,
    /// Connections that are there before the run begins.
    warm: usize,
    /// Whether it has: until then no time passes.
    has_begun: bool,
}

/// Something to be done to a host, between two steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    /// The process of this client has ended.
    Kill(u16),
    /// It is started again.
    Boot(u16),
    /// What is under way between this client and this node is lost.
    Lose(u16, u16),
}

impl Sockets {
    /// For the clients of a plan and so many nodes.
    pub(crate) fn new(plan: &Plan, nodes: usize) -> Self {
        let stations = (0..nodes).map(|node| Station::new(plan.seed, node));
        Sockets {
            desks: (0..plan.clients).map(|_| Desk::default()).collect(),
            stations: stations.collect(),
            ..Sockets::default()
        }
    }

    fn desk(&mut self, client: u16) -> &mut Desk {
        self.desks
            .get_mut(usize::from(client))
            .expect("BUG: no such client")
    }

    fn station(&mut self, node: u16) -> &mut Station {
        self.stations
            .get_mut(usize::from(node))
            .expect("BUG: no such node")
    }
}

impl World {
    fn sockets(&mut self) -> &mut Sockets {
        self.find_sockets().expect("BUG: it is the other lane")
    }

    /// What of this lane is in the world, unless the run is over: then the last of its users come after it.
    fn find_sockets(&mut self) -> Option<&mut Sockets> {
        let servers: &mut dyn Any = &mut *self.servers;
        servers.downcast_mut()
    }

    /// Whether it is this time; if not, the task is woken when it is.
    fn poll_time(&mut self, at: u64, cx: &Context<'_>) -> Poll<()> {
        if at <= self.now {
            return Poll::Ready(());
        }
        self.sockets().waiting.push((at, cx.waker().clone()));
        Poll::Pending
    }

    /// Whether a client is not paused; if it is, the task is woken when it goes on.
    fn poll_running(&mut self, client: u16, cx: &Context<'_>) -> Poll<()> {
        let until = self.client(client).paused_until;
        self.poll_time(until, cx)
    }

    /// The tasks of hosts that wait for this time, or for what is to be done by now.
    fn due(&mut self) -> Vec<Waker> {
        let now = self.now;
        let sockets = self.sockets();
        let waiting = std::mem::take(&mut sockets.waiting);
        let (due, later): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|(at, _)| *at <= now);
        sockets.waiting = later;
        let mut wakers: Vec<Waker> = due.into_iter().map(|(_, waker)| waker).collect();
        for desk in &mut sockets.desks {
            wakers.extend(desk.called(now));
        }
        wakers
    }
}
