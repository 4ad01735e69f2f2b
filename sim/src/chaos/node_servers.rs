//! One node of a plan: its primary and its replicas.

use std::io;

use super::clock;
use super::node::{Follows, Node};
use super::preload::Preload;
use super::proxy::{End, Forwarding, Proxy};
use crate::plan::Plan;
use crate::plan::draw::{Draw, Purpose};
use crate::plan::time::SimTime;

/// The servers of one node. The primary changes with each failover.
#[derive(Debug)]
pub(super) struct NodeServers {
    primary: Node,
    replicas: Vec<Node>,
    /// The replication stream of the primary, if the node has replicas.
    feed: Option<Feed>,
}

/// The link from a primary to its replicas.
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
            feed: None,
        };
        if plan.nodes.replicas == 0 {
            return Ok(member);
        }
        let lag = plan.nodes.replication_lag;
        let lag = SimTime::nanos(lag.as_nanos().saturating_mul(u64::from(scale))).as_nanos();
        let usual = Forwarding::Slow { min: lag, max: lag };
        let port = member.primary.port();
        let draw = |way| {
            Draw::new(
                plan.seed,
                Purpose::Latency,
                1 << 32 | u64::from(port) << 1 | way,
            )
        };
        let proxy = Proxy::open(port, usual, [draw(0), draw(1)]).await?;
        for _ in 0..plan.nodes.replicas {
            let mut replica = Node::start(persistence, options, preload).await?;
            replica.follow(Follows::Port(proxy.port())).await?;
            member.replicas.push(replica);
        }
        member.feed = Some(Feed { proxy, usual });
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

    /// Changes how the replication stream travels.
    pub(super) fn slow_down(&self, by: Slowness) {
        let Some(feed) = &self.feed else {
            return;
        };
        let way = match by {
            Slowness::By(nanos) => Forwarding::Slow {
                min: nanos,
                max: nanos,
            },
            Slowness::Held => Forwarding::Held,
            Slowness::Usual => feed.usual,
        };
        feed.proxy.set(End::Client, way);
    }

    /// Promotes a replica, and returns its port. The old primary does not learn of the promotion.
    pub(super) async fn promote(&mut self, replica: u16) -> Option<u16> {
        let place = usize::from(replica).min(self.replicas.len().saturating_sub(1));
        let replica = self.replicas.get_mut(place)?;
        replica.follow(Follows::Nothing).await.ok()?;
        std::mem::swap(&mut self.primary, replica);
        Some(self.primary.port())
    }

    /// Makes the old primary follow the new one. Since the promotion, it is one of the replicas. Data that only the
    /// old primary has is lost.
    pub(super) async fn rejoin(&mut self) -> io::Result<()> {
        let Some(feed) = &self.feed else {
            return Ok(());
        };
        feed.proxy.lead_to(self.primary.port());
        feed.proxy.set(End::Client, feed.usual);
        for replica in &mut self.replicas {
            if !replica.is_alive() {
                replica.restart().await?;
            }
            replica.follow(Follows::Port(feed.proxy.port())).await?;
        }
        clock::sleep(std::time::Duration::from_millis(10)).await;
        Ok(())
    }

    /// Reverts all faults of the node, and restarts servers that are down.
    pub(super) async fn heal(&mut self) -> io::Result<()> {
        self.slow_down(Slowness::Usual);
        for server in self.servers() {
            server.resume();
            if !server.is_alive() {
                server.restart().await?;
            }
        }
        Ok(())
    }

    /// Ends all servers for good, and removes their folders.
    pub(super) async fn end(&mut self) {
        for server in self.servers() {
            server.end().await;
        }
    }
}

/// How the replication stream travels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Slowness {
    Usual,
    /// Each write takes this many nanoseconds.
    By(u64),
    Held,
}
