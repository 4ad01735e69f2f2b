//! Turmoil's hosts, and the messages between them.
//!
//! Every message is held on turmoil's link as soon as it is sent, and is delivered when the world's own link decides.
//! So for the same seed, both lanes have the same latencies, cuts and delays, message by message and direction by
//! direction. If a message is never delivered, its connection is useless, because turmoil's TCP does not retransmit.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use turmoil::{Protocol, Segment, Sim};

use super::{
    Order, SERVERS, STEP, client, client_host, due, node_at, server_host, sockets, step_of,
};
use quorlock_sim_plan::Plan;
use quorlock_sim_plan::draw::{Draw, Purpose};
use quorlock_sim_world::world::id::{ClientId, Id, NodeId, first};
use quorlock_sim_world::world::medium::Driver;
use quorlock_sim_world::world::{World, with};

/// The hosts of one run.
pub(super) struct TurmoilNetwork {
    sim: Sim<'static>,
    hosts: BTreeMap<IpAddr, TurmoilHost>,
    /// The messages on each of turmoil's links that were not delivered yet. Links and messages are in turmoil's order.
    under_way: Vec<VecDeque<InFlightMessage>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TurmoilHost {
    Client(ClientId),
    Servers,
}

/// The ends of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct MessageEnds {
    client: ClientId,
    node: NodeId,
    is_to_node: bool,
}

impl MessageEnds {
    /// Returns the ends of a message between these addresses; `None` if no client and server have them.
    fn of(hosts: &BTreeMap<IpAddr, TurmoilHost>, from: SocketAddr, to: SocketAddr) -> Option<Self> {
        match (hosts.get(&from.ip())?, hosts.get(&to.ip())?) {
            (TurmoilHost::Client(client), TurmoilHost::Servers) => Some(MessageEnds {
                client: *client,
                node: node_at(to.port()),
                is_to_node: true,
            }),
            (TurmoilHost::Servers, TurmoilHost::Client(client)) => Some(MessageEnds {
                client: *client,
                node: node_at(from.port()),
                is_to_node: false,
            }),
            _ => None,
        }
    }
}

/// A message on a link, and when it arrives. `None` means that it never arrives.
#[derive(Clone, Copy, Debug)]
struct InFlightMessage {
    client: ClientId,
    node: NodeId,
    arrives: Option<u64>,
}

/// The number of steps that clients may take to connect before the run begins.
const WARM_UP: usize = 1_000;

impl TurmoilNetwork {
    /// Creates the hosts and connects every client. A run begins with established connections.
    pub(super) fn new(plan: &Plan) -> Self {
        let nodes = with(|world| world.nodes.count());
        let seed = Draw::new(plan.seed, Purpose::Sockets, 0).bits();
        let mut sim = turmoil::Builder::new()
            .rng_seed(seed)
            .tick_duration(Duration::from_nanos(STEP))
            .simulation_duration(Duration::from_secs(u64::from(u32::MAX)))
            .tcp_capacity(1 << 16)
            .build();
        let mut hosts = BTreeMap::new();
        sim.host(SERVERS, move || server_host::run(nodes));
        hosts.insert(sim.lookup(SERVERS), TurmoilHost::Servers);
        for id in first::<ClientId>(plan.clients) {
            sim.host(client_host(id), move || client::run(id));
            hosts.insert(sim.lookup(client_host(id)), TurmoilHost::Client(id));
            sim.hold(client_host(id), SERVERS);
        }
        with(|world| {
            for (ip, host) in &hosts {
                if let TurmoilHost::Client(id) = host {
                    sockets(world).clients.insert(*ip, *id);
                }
            }
        });
        let mut network = TurmoilNetwork {
            sim,
            hosts,
            under_way: Vec::new(),
        };
        let ways = if plan.is_one_cluster() {
            1
        } else {
            plan.nodes.count
        };
        network.warm_up(usize::from(plan.clients) * usize::from(ways));
        network
    }

    fn warm_up(&mut self, connections: usize) {
        for _ in 0..WARM_UP {
            if with(|world| sockets(world).warm == connections) {
                with(|world| sockets(world).has_begun = true);
                return;
            }
            self.go_on();
        }
        panic!("BUG: clients did not connect to nodes that nothing is wrong with");
    }

    fn go_on(&mut self) {
        self.gather();
        self.obey();
        self.deliver();
        for waker in with(due) {
            waker.wake();
        }
        self.sim.step().expect("BUG: a host has ended");
    }

    fn obey(&mut self) {
        for order in with(|world| std::mem::take(&mut sockets(world).orders)) {
            match order {
                Order::Kill(client) => {
                    self.sim.crash(client_host(client));
                    let left = with(|world| sockets(world).desk(client).clear());
                    drop(left);
                }
                Order::Boot(client) => self.sim.bounce(client_host(client)),
                Order::Lose(client, node) => {
                    let all = self.under_way.iter_mut().flatten();
                    let theirs = all.filter(|m| m.client == client && m.node == node);
                    theirs.for_each(|message| message.arrives = None);
                }
            }
        }
    }

    /// Decides when each message that was sent since the last step arrives.
    fn gather(&mut self) {
        let hosts = &self.hosts;
        let under_way = &mut self.under_way;
        self.sim.links(|links| {
            for (place, link) in links.enumerate() {
                if under_way.len() <= place {
                    under_way.push(VecDeque::new());
                }
                let Some(held) = under_way.get_mut(place) else {
                    continue;
                };
                let mut new: Vec<_> = link.skip(held.len()).enumerate().collect();
                // The messages are sorted by connection. When a host ends, tokio drops its tasks and their streams in
                // an order that depends on previous runs.
                new.sort_by_key(|(_, sent)| sent.pair());
                let mut new: Vec<(usize, InFlightMessage)> = new
                    .into_iter()
                    .map(|(index, sent)| {
                        let (from, to) = sent.pair();
                        let ends =
                            MessageEnds::of(hosts, from, to).expect("BUG: a message of no host");
                        let message = with(|world| hand_over(world, ends, sent.protocol()));
                        (index, message)
                    })
                    .collect();
                new.sort_by_key(|(index, _)| *index);
                held.extend(new.into_iter().map(|(_, message)| message));
            }
        });
    }

    /// Delivers the messages that are due.
    fn deliver(&mut self) {
        let now = with(|world| {
            if sockets(world).has_begun {
                world.now()
            } else {
                u64::MAX
            }
        });
        let under_way = &mut self.under_way;
        self.sim.links(|links| {
            for (mut link, held) in links.zip(under_way) {
                held.retain(|message| match link.next() {
                    Some(sent) if message.arrives.is_some_and(|at| at <= now) => {
                        sent.deliver();
                        false
                    }
                    _ => true,
                });
            }
        });
    }
}

impl Driver for TurmoilNetwork {
    /// Advances all sockets by a millisecond.
    fn step(&mut self) -> u64 {
        self.go_on();
        STEP
    }
}

/// Passes a message through the world's link.
fn hand_over(world: &mut World, ends: MessageEnds, protocol: &Protocol) -> InFlightMessage {
    let MessageEnds {
        client,
        node,
        is_to_node,
    } = ends;
    world.note(u64::from(client.get()) << 16 | u64::from(node.get()) | digest(protocol) << 32);
    // The message was sent in the previous step.
    let departs = world.now().saturating_sub(STEP);
    let link = world.links.get_mut(client, node);
    let link = link.expect("BUG: no such link");
    let passage = if is_to_node {
        link.send_to_node(departs, &mut world.faults)
    } else {
        link.send_to_client(departs, &mut world.faults)
    };
    // A request has already waited for its step, so its arrival is rounded down to make up for that.
    let arrives = passage.first().map(|at| {
        if is_to_node {
            at / STEP * STEP
        } else {
            step_of(at)
        }
    });
    InFlightMessage {
        client,
        node,
        arrives,
    }
}

/// Returns a number for the trace that depends on the message.
fn digest(protocol: &Protocol) -> u64 {
    let Protocol::Tcp(segment) = protocol else {
        return 0;
    };
    match segment {
        Segment::Syn(_) => 1,
        Segment::Fin(sequence) => 2 | sequence << 8,
        Segment::Rst => 3,
        Segment::Data(sequence, bytes) => bytes.iter().fold(4 | sequence << 8, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        }),
    }
}
