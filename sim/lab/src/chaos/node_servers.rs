//! One node of a plan: its primary and its replicas.

use std::io;
use std::time::Duration;

use quorlock_testbed::proxy::{End, Forwarding, Proxy};

use super::clock;
use super::node::{Follows, Node};
use super::preload::Preload;
use super::proxies::drawn;
use quorlock_sim_plan::Plan;
use quorlock_sim_plan::draw::{Draw, Purpose};

/// The servers of one node. The primary changes with each failover.
#[derive(Debug)]
pub(super) struct NodeServers {
    primary: Node,
    replicas: Vec<Node>,
    /// The replication streams: one for each replica, in the same order.
    feeds: Vec<Feed>,
    /// The ports of the servers that were the replicas at the beginning, in the order of the plan.
    numbered: Vec<u16>,
}

/// The link from a primary to one replica.
#[derive(Debug)]
struct Feed {
    proxy: Proxy,
    /// How writes travel without faults.
    usual: Forwarding,
}

impl NodeServers {
    pub(super) async fn start(
        plan: &Plan,
        scale: u32,
        options: &[String],
        preload: Option<&Preload>,
    ) -> io::Result<NodeServers> {
        let persistence = plan.nodes.persistence;
        let primary = Node::start(persistence, options, preload).await?;
        let mut member = NodeServers {
            primary,
            replicas: Vec::new(),
            feeds: Vec::new(),
            numbered: Vec::new(),
        };
        let lag = plan.nodes.replication_lag;
        let lag = Duration::from_nanos(lag.as_nanos().saturating_mul(u64::from(scale)));
        let usual = Forwarding::Slow { min: lag, max: lag };
        let port = member.primary.port();
        for number in 0..u64::from(plan.nodes.replicas) {
            let draw = |way| {
                let stream = (1 + number) << 32 | u64::from(port) << 1 | way;
                drawn(Draw::new(plan.seed, Purpose::Latency, stream))
            };
            let proxy = Proxy::open(port, usual, [draw(0), draw(1)]).await?;
            let replica = Node::start(persistence, options, preload).await?;
            replica.follow(Follows::Port(proxy.port())).await?;
            member.numbered.push(replica.port());
            member.replicas.push(replica);
            member.feeds.push(Feed { proxy, usual });
        }
        Ok(member)
    }

    /// Returns the current primary.
    pub(super) fn primary(&mut self) -> &mut Node {
        &mut self.primary
    }

    /// Returns all servers of the node.
    pub(super) fn servers(&mut self) -> impl Iterator<Item = &mut Node> {
        std::iter::once(&mut self.primary).chain(&mut self.replicas)
    }

    /// Returns the server that a fault strikes: the primary, or a replica as numbered at the beginning of the run,
    /// whatever its role is now.
    pub(super) fn server(&mut self, replica: Option<u16>) -> &mut Node {
        let port = replica.and_then(|replica| self.numbered.get(usize::from(replica)));
        let is_it = |server: &Node| port.is_some_and(|port| server.port() == *port);
        let mut replicas = self.replicas.iter_mut();
        replicas
            .find(|server| is_it(server))
            .unwrap_or(&mut self.primary)
    }

    /// Changes how the replication stream travels to one replica, as numbered at the beginning of the run, or to all.
    pub(super) fn slow_down(&self, replica: Option<u16>, by: Slowness) {
        let port = replica.and_then(|replica| self.numbered.get(usize::from(replica)));
        for (server, feed) in self.replicas.iter().zip(&self.feeds) {
            if port.is_some_and(|port| server.port() != *port) {
                continue;
            }
            let way = match by {
                Slowness::By(lag) => Forwarding::Slow { min: lag, max: lag },
                Slowness::Held => Forwarding::Held,
                Slowness::Usual => feed.usual,
            };
            feed.proxy.set(End::Client, way);
        }
    }

    /// Promotes a replica, as numbered at the beginning of the run, and returns its port. If that server is the primary
    /// already, the first primary is promoted. The old primary does not learn of the promotion.
    pub(super) async fn promote(&mut self, replica: u16) -> Option<u16> {
        let port = self.numbered.get(usize::from(replica)).copied();
        let place = |is_it: &dyn Fn(u16) -> bool| {
            let mut replicas = self.replicas.iter();
            replicas.position(|server| is_it(server.port()))
        };
        let numbered = place(&|server| Some(server) == port);
        let place = numbered.or_else(|| place(&|server| !self.numbered.contains(&server)))?;
        let replica = self.replicas.get_mut(place)?;
        replica.follow(Follows::Nothing).await.ok()?;
        std::mem::swap(&mut self.primary, replica);
        Some(self.primary.port())
    }

    /// Makes the old primary follow the new one. Since the promotion, it is one of the replicas. Data that only the
    /// old primary has is lost.
    pub(super) async fn rejoin(&mut self) -> io::Result<()> {
        for (replica, feed) in self.replicas.iter_mut().zip(&self.feeds) {
            feed.proxy.lead_to(self.primary.port());
            feed.proxy.set(End::Client, feed.usual);
            if !replica.is_alive() {
                replica.restart().await?;
            }
            replica.follow(Follows::Port(feed.proxy.port())).await?;
        }
        clock::sleep(Duration::from_millis(10)).await;
        Ok(())
    }

    /// Reverts all faults of the node, and restarts servers that are down.
    pub(super) async fn heal(&mut self) -> io::Result<()> {
        self.slow_down(None, Slowness::Usual);
        for server in self.servers() {
            server.resume();
            if !server.is_alive() {
                server.restart().await?;
            }
        }
        Ok(())
    }

    /// Ends all servers for good.
    pub(super) async fn end(&mut self) {
        for server in self.servers() {
            server.kill().await;
        }
    }
}

/// How the replication stream travels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Slowness {
    Usual,
    /// Each write takes this long.
    By(Duration),
    Held,
}
