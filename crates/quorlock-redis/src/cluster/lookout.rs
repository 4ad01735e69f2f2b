//! The task that queries the nodes of a cluster for the slot map.

use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use quorlock_core::transport::TransportError;

use super::Cluster;
use super::answer::{self, ClusterView};
use super::hints::ClusterHints;
use super::map::SlotMap;
use super::node::Node;
use crate::connect::{Endpoint, race};
use crate::error;
use crate::link::Connection;
use crate::source::fixed::Fixed;
use crate::source::refusals::Refusals;
use crate::sync::Mutex;
use crate::timer::{self, Instant};

/// The maximum age of the slot map. After this time, a node that has received slots is found without a redirect.
const REFRESH: Duration = Duration::from_secs(60);

/// The pause before the nodes are queried again. Promoting a replica takes seconds.
const AGAIN: Duration = Duration::from_millis(100);

/// The maximum number of nodes that are queried in turn, apart from those of the address.
const MOST_ASKED: usize = 32;

impl Cluster {
    /// Queries the slot map after each hint and once a minute, for as long as the cluster exists.
    pub(super) async fn follow(hints: Arc<ClusterHints>, cluster: Weak<Cluster>) {
        loop {
            // Both a hint and the time-out start a look.
            let _ = timer::by(timer::now() + REFRESH, hints.given()).await;
            let Some(cluster) = cluster.upgrade() else {
                return;
            };
            let until = cluster.look().await;
            drop(cluster);
            timer::sleep_until(until).await;
        }
    }

    /// Queries the slot map. Returns when the next look may begin.
    async fn look(&self) -> Instant {
        let deadline = timer::now() + self.config.connect_timeout;
        let found = timer::by(deadline, self.search()).await;
        let rest = match found.unwrap_or_else(|| Err(error::no_handshake())) {
            Ok((told, by)) => {
                self.accept(told, &by);
                AGAIN
            }
            Err(error) => {
                let mut state = self.lock();
                state.trouble = Some(error);
                state.failures = state.failures.saturating_add(1);
                timer::delay(state.failures)
            }
        };
        let until = timer::now() + rest;
        self.lock().rests_until = Some(until);
        self.looked.notify_waiters();
        until
    }

    /// Queries one node after another, until one has an answer.
    async fn search(&self) -> Result<(ClusterView, Endpoint), TransportError> {
        let opinions = self.hints.take_opinions();
        let mut asked = self.lock().asked.clone();
        asked.sort_by_key(|asked| opinions.rank(asked));
        let refusals = Mutex::new(Refusals::default());
        let none = || error::unreachable("there is no node to query");
        let found = race::race(asked, none(), |endpoint| {
            let refusals = &refusals;
            async move {
                match self.ask(&endpoint).await {
                    Ok(told) => Ok((told, endpoint)),
                    Err(error) => {
                        let mut refusals = refusals.lock().unwrap_or_else(PoisonError::into_inner);
                        refusals.push(&endpoint, error);
                        Err(none())
                    }
                }
            }
        });
        found.await.map_err(|_| {
            let refusals = refusals
                .into_inner()
                .unwrap_or_else(PoisonError::into_inner);
            refusals.into_error("no node returned the slot map of the cluster")
        })
    }

    /// Queries one node, on the connection for requests if there is one.
    async fn ask(&self, endpoint: &Endpoint) -> Result<ClusterView, TransportError> {
        let now = timer::now();
        let mut slots = redis::cmd("CLUSTER");
        slots.arg("SLOTS");
        if let Some(node) = self.known_node(endpoint)
            && let Some(link) = node.server.connection.current(now)
        {
            let answer = link.ask(&node.server.target, &slots).await?;
            return answer::slots(&answer, endpoint);
        }
        // Do not use the node's own source: a failure here must not request another look.
        let target = self.target(endpoint, Arc::new(Fixed(endpoint.clone())));
        let link = Connection::trial(&target, now + self.config.connect_timeout).await?;
        answer::slots(&link.ask(&target, &slots).await?, endpoint)
    }

    fn known_node(&self, endpoint: &Endpoint) -> Option<Arc<Node>> {
        let state = self.lock();
        let mut nodes = state.nodes.iter();
        nodes.find(|node| node.endpoint == *endpoint).cloned()
    }

    /// Accepts a node's answer as the new slot map.
    fn accept(&self, told: ClusterView, by: &Endpoint) {
        let mut state = self.lock();
        let mut map = SlotMap::new();
        for share in &told.shares {
            let owner = self.node(&mut state, &share.owner);
            map.assign(share.first, share.last, &owner);
        }
        let owners: Vec<_> = map.owners().cloned().collect();
        state.has_changed |= !map.is_like(&state.map);
        let before = std::mem::replace(&mut state.map, map);
        let retired = std::mem::replace(&mut state.nodes, owners);
        let mut asked: Vec<_> = state
            .nodes
            .iter()
            .map(|node| node.endpoint.clone())
            .collect();
        asked.extend(told.replicas);
        // The next look queries another node first: this one may be cut off from the rest without noticing it.
        asked.sort_by_key(|asked| asked == by);
        asked.truncate(MOST_ASKED);
        let seeds = self.seeds.iter().filter(|seed| !asked.contains(seed));
        let seeds: Vec<_> = seeds.cloned().collect();
        asked.extend(seeds);
        state.asked = asked;
        (state.trouble, state.failures) = (None, 0);
        let has_changed = std::mem::take(&mut state.has_changed);
        let witnesses = if has_changed {
            state.witnesses.all()
        } else {
            Vec::new()
        };
        drop(state);
        // Outside the mutex: new subscriptions and witnesses run code that may call the cluster again.
        self.ears.settle(|slot| self.server_of(slot));
        // Outside the mutex: their drop ends connections, which runs other code.
        drop((before, retired));
        witnesses.iter().for_each(|witness| witness.reachable());
    }
}

#[cfg(test)]
mod tests {
    use quorlock_core::message::{Channel, Wake};
    use quorlock_core::name::Name;
    use quorlock_core::transport::Listener;

    use super::*;
    use crate::address::tests::cluster;
    use crate::config::RedisConfig;
    use crate::route::Routes;
    use crate::{key, keyslot};

    struct Deaf;

    impl Listener for Deaf {
        fn live(&self) {}

        fn wake(&self, _: Wake) {}
    }

    fn endpoint(port: u16) -> Endpoint {
        let host = "127.0.0.1".to_owned();
        Endpoint::Tcp { host, port }
    }

    /// Nothing is awaited in this test, so there is neither a connection nor a look.
    #[tokio::test]
    async fn listeners_follow_a_redirect_before_the_next_look() {
        let address = cluster("redis+cluster://127.0.0.1:1");
        let cluster = Cluster::at(address, RedisConfig::default());
        let channel = Channel::Lock(Name::new("n").unwrap());
        let slot = keyslot::of_key(key::channel_of(&channel));
        cluster.learn(slot, &endpoint(1));
        let _subscription = cluster.subscribe(&channel, Arc::new(Deaf));
        let is_at_owner = || {
            let owner = cluster.server_of(slot).unwrap();
            cluster.ears.is_at(1, &owner)
        };
        let before = cluster.server_of(slot).unwrap();
        assert!(is_at_owner());
        cluster.learn(slot, &endpoint(2));
        assert!(is_at_owner());
        assert!(!cluster.ears.is_at(1, &before));
    }

    #[test]
    fn a_node_that_knows_of_a_change_is_queried_first() {
        let hints = ClusterHints::default();
        hints.distrust(&endpoint(1));
        hints.distrust(&endpoint(3));
        hints.believe(&endpoint(3));
        let opinions = hints.take_opinions();
        let mut asked = [1, 2, 3].map(endpoint);
        asked.sort_by_key(|asked| opinions.rank(asked));
        assert_eq!(asked, [3, 2, 1].map(endpoint));
        let none = hints.take_opinions();
        assert_eq!(none.rank(&endpoint(1)), none.rank(&endpoint(3)));
    }
}
