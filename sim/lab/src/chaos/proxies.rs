//! The links between all clients and nodes.

use std::io;
use std::time::Duration;

use quorlock_testbed::proxy::{self, End, Forwarding, Proxy};

use quorlock_sim_plan::Plan;
use quorlock_sim_plan::draw::{Draw, Purpose};
use quorlock_sim_plan::fault::Direction;
use quorlock_sim_plan::time::SimTime;

/// The proxies: one for each pair of client and node, ordered by client.
#[derive(Debug)]
pub(super) struct Proxies {
    nodes: u16,
    /// How messages travel without faults.
    usual: Forwarding,
    proxies: Vec<Proxy>,
}

impl Proxies {
    pub(super) async fn open(plan: &Plan, scale: u32, servers: &[u16]) -> io::Result<Proxies> {
        let longer = |span: SimTime| span.as_nanos().saturating_mul(u64::from(scale));
        let (min, max) = (longer(plan.network.min), longer(plan.network.max));
        // The loopback interface and the proxy themselves take that long.
        let usual = match max < 2_000_000 {
            true => Forwarding::Open,
            false => Forwarding::Slow {
                min: Duration::from_nanos(min),
                max: Duration::from_nanos(max),
            },
        };
        let mut proxies = Vec::new();
        for client in 0..u64::from(plan.clients) {
            for (node, server) in (0u64..).zip(servers) {
                let link = 2 * (client * 1_000 + node);
                let draw = |way| drawn(Draw::new(plan.seed, Purpose::Latency, link + way));
                proxies.push(Proxy::open(*server, usual, [draw(0), draw(1)]).await?);
            }
        }
        let nodes = u16::try_from(servers.len()).unwrap_or(u16::MAX);
        Ok(Proxies {
            nodes,
            usual,
            proxies,
        })
    }

    fn link(&self, client: u16, node: u16) -> Option<&Proxy> {
        let place = usize::from(client) * usize::from(self.nodes) + usize::from(node);
        self.proxies.get(place).filter(|_| node < self.nodes)
    }

    /// Returns the links between some clients and some nodes.
    pub(super) fn between<'a>(
        &'a self,
        clients: &'a [u16],
        nodes: &'a [u16],
    ) -> impl Iterator<Item = &'a Proxy> {
        let pairs = clients
            .iter()
            .flat_map(move |client| nodes.iter().map(move |node| (client, node)));
        pairs.filter_map(|(client, node)| self.link(*client, *node))
    }

    /// Returns the ports under which a client reaches the nodes.
    pub(super) fn ports(&self, client: u16) -> Vec<u16> {
        let links = (0..self.nodes).filter_map(|node| self.link(client, node));
        links.map(Proxy::port).collect()
    }

    /// Returns how messages travel without faults.
    pub(super) fn usual(&self) -> Forwarding {
        self.usual
    }

    /// Reverts all faults of links.
    pub(super) fn heal(&self) {
        for proxy in &self.proxies {
            proxy.set(End::Server, self.usual);
            proxy.set(End::Client, self.usual);
        }
    }
}

/// Returns the ends that receive messages in a direction.
pub(super) fn ends(direction: Direction) -> &'static [End] {
    match direction {
        Direction::Both => &[End::Server, End::Client],
        Direction::ToNode => &[End::Server],
        Direction::ToClient => &[End::Client],
    }
}

/// Returns times of messages that are drawn from a stream of the plan.
pub(super) fn drawn(mut draw: Draw) -> proxy::Draw {
    let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    Box::new(move |min, max| Duration::from_nanos(draw.between(nanos(min), nanos(max))))
}
