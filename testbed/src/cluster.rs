//! A Redis Cluster of real processes: primaries with their replicas.

mod moves;
mod view;

use std::io;
use std::time::Duration;

use self::view::{KnownNode, Layout, layout, parse, reporter};
use crate::server::{Door, Server, ServerSetup};
use crate::wait::{ELECTED, patiently, within};

/// The number of slots of a cluster.
const SLOTS: u16 = 16_384;

/// How long an order to fail over is in force, and a second more.
const ORDER: Duration = Duration::from_secs(6);

/// Options of the nodes: replicas stay with their primaries and are promoted although their data is old.
const NODE: [&str; 12] = [
    "--cluster-replica-validity-factor",
    "0",
    "--cluster-migration-barrier",
    "100",
    "--cluster-allow-replica-migration",
    "no",
    "--repl-diskless-sync-delay",
    "0",
    "--repl-ping-replica-period",
    "1",
    "--repl-timeout",
    "60",
];

/// The nodes of a cluster.
#[derive(Clone, Debug)]
pub struct ClusterSetup {
    /// The number of nodes that own slots.
    pub primaries: usize,
    /// The number of replicas of each primary.
    pub replicas: usize,
    /// How long a node must be silent to count as failed. Its replica takes over about a second later.
    pub node_timeout: Duration,
    /// Options of the nodes.
    pub options: Vec<String>,
    /// The ports of the nodes.
    pub door: Door,
    /// The primary that owns each slot. Without them, the primaries own equal parts.
    pub owners: Vec<usize>,
}

impl ClusterSetup {
    /// Returns the setup of three primaries with a replica each, which detect quickly that one of them is down.
    #[must_use]
    pub fn new(options: &[&str]) -> ClusterSetup {
        ClusterSetup {
            primaries: 3,
            replicas: 1,
            node_timeout: Duration::from_millis(1_500),
            options: options.iter().copied().map(String::from).collect(),
            door: Door::Plain,
            owners: Vec::new(),
        }
    }

    /// Returns the setup of one node, which owns every slot.
    #[must_use]
    pub fn alone(options: &[&str]) -> ClusterSetup {
        ClusterSetup {
            primaries: 1,
            replicas: 0,
            ..ClusterSetup::new(options)
        }
    }

    /// Returns the primary that owns a slot in equal parts.
    #[must_use]
    pub fn part(&self, slot: u16) -> usize {
        let ends = |primary: usize| usize::from(SLOTS) * (primary + 1) / self.primaries;
        let mut primaries = 0..self.primaries;
        primaries
            .find(|primary| usize::from(slot) < ends(*primary))
            .unwrap_or_default()
    }

    /// Returns the slots of a primary.
    fn slots_of(&self, primary: usize) -> impl Iterator<Item = u16> {
        let owner = move |slot: u16| {
            let owner = self.owners.get(usize::from(slot)).copied();
            owner.unwrap_or_else(|| self.part(slot))
        };
        (0..SLOTS).filter(move |slot| owner(*slot) == primary)
    }
}

/// A cluster of real processes. The first nodes are the primaries at first. Node `i` belongs to the shard
/// `i % primaries` in all roles.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Server>,
    primaries: usize,
    replicas: usize,
}

impl Cluster {
    /// Starts three primaries with a replica each, and waits until they know each other and serve every slot.
    ///
    /// # Panics
    /// Panics if the cluster does not come up.
    #[must_use]
    pub fn start() -> Cluster {
        Cluster::start_with(&[])
    }

    /// Starts a cluster with further options of its nodes.
    ///
    /// # Panics
    /// Panics if the cluster does not come up.
    #[must_use]
    pub fn start_with(options: &[&str]) -> Cluster {
        Cluster::start_by(&ClusterSetup::new(options))
    }

    /// Starts a cluster of one node, which owns every slot.
    ///
    /// # Panics
    /// Panics if the cluster does not come up.
    #[must_use]
    pub fn alone(options: &[&str]) -> Cluster {
        Cluster::start_by(&ClusterSetup::alone(options))
    }

    /// Starts a cluster, and waits until its nodes know each other and serve every slot.
    ///
    /// # Panics
    /// Panics if the cluster does not come up.
    #[must_use]
    pub fn start_by(setup: &ClusterSetup) -> Cluster {
        let started = Cluster::try_start(setup, ELECTED);
        started.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Starts a cluster, and waits until its nodes know each other and serve every slot.
    ///
    /// # Errors
    /// Returns the error of a node that does not come up, or what the cluster lacks after `bound`.
    pub fn try_start(setup: &ClusterSetup, bound: Duration) -> io::Result<Cluster> {
        let timeout = setup.node_timeout.as_millis().to_string();
        let own = [
            "--cluster-enabled",
            "yes",
            "--cluster-node-timeout",
            &timeout,
        ];
        let more = setup.options.iter().map(String::as_str);
        let options: Vec<&str> = own.into_iter().chain(NODE).chain(more).collect();
        let mut nodes = Vec::new();
        for _ in 0..setup.primaries * (1 + setup.replicas) {
            nodes.push(Server::try_start(&ServerSetup {
                door: setup.door,
                ..ServerSetup::new(&options)
            })?);
        }
        let cluster = Cluster {
            nodes,
            primaries: setup.primaries,
            replicas: setup.replicas,
        };
        cluster.join(setup, bound)?;
        Ok(cluster)
    }

    /// Divides the slots among the primaries, and connects the nodes.
    fn join(&self, setup: &ClusterSetup, bound: Duration) -> io::Result<()> {
        for (index, node) in self.nodes.iter().enumerate() {
            let epoch = (index + 1).to_string();
            node.order(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch])?;
        }
        for (index, node) in self.nodes.iter().enumerate().take(self.primaries) {
            let slots: Vec<String> = setup.slots_of(index).map(|slot| slot.to_string()).collect();
            let slots: Vec<&str> = slots.iter().map(String::as_str).collect();
            node.order(&[["CLUSTER", "ADDSLOTS"].as_slice(), &slots].concat())?;
        }
        self.introduce(bound)?;
        for (index, replica) in self.nodes.iter().enumerate().skip(self.primaries) {
            let primary = self.nodes.get(index % self.primaries);
            let id = primary.and_then(own).map(|own| own.id);
            let id = id.ok_or_else(|| io::Error::other("a node does not know itself"))?;
            replica.order(&["CLUSTER", "REPLICATE", &id])?;
        }
        self.try_settle(bound)
    }

    /// Makes all nodes know all others. An introduction may be lost on a busy machine, so it is repeated rarely.
    fn introduce(&self, bound: Duration) -> io::Result<()> {
        let meet = || {
            for (index, node) in self.nodes.iter().enumerate() {
                for other in self.nodes.iter().skip(index + 1) {
                    let (port, bus) = (other.port().to_string(), other.bus_port().to_string());
                    let _ = node.order(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
                }
            }
            let all_known = || {
                let ids: Vec<String> = self
                    .nodes
                    .iter()
                    .filter_map(own)
                    .map(|own| own.id)
                    .collect();
                // During the handshake a node is known by an id of its own, which later changes.
                let knows_all = |node| {
                    let known = known_by(node);
                    let knows =
                        |id: &String| known.iter().any(|known| known.is_linked && known.id == *id);
                    known.len() == self.nodes.len() && ids.iter().all(knows)
                };
                let is_done = ids.len() == self.nodes.len() && self.nodes.iter().all(knows_all);
                is_done.then_some(())
            };
            within(Duration::from_secs(5), all_known)
        };
        let why = || io::Error::other("the nodes of a cluster do not find each other");
        within(bound, meet).ok_or_else(why)
    }

    /// Restarts killed nodes, resumes stopped ones, gives up moves that a test has not ended, and waits until the cluster is
    /// healthy.
    ///
    /// # Panics
    /// Panics if that does not happen.
    pub fn mend(&self) {
        self.nodes.iter().for_each(Server::mend);
        self.give_up_moves();
        self.settle();
    }

    /// Waits until all nodes serve every slot and agree on the owners, and each primary has a replica that follows it.
    ///
    /// # Panics
    /// Panics if that does not happen.
    pub fn settle(&self) {
        self.try_settle(ELECTED)
            .unwrap_or_else(|error| panic!("{error}"));
    }

    /// Waits until all nodes serve every slot and agree on the owners, and each primary has a replica that follows it.
    ///
    /// # Errors
    /// Returns how the nodes see each other after `bound`.
    pub fn try_settle(&self, bound: Duration) -> io::Result<()> {
        let settled = within(bound, || self.is_settled().then_some(()));
        let layouts = || self.nodes.iter().map(|node| layout(&known_by(node)));
        let why = || {
            let layouts: Vec<Layout> = layouts().collect();
            io::Error::other(format!("the nodes of a cluster do not agree: {layouts:?}"))
        };
        settled.ok_or_else(why)
    }

    fn is_settled(&self) -> bool {
        let serves = |node: &Server| {
            let ask = |words: &[&str]| node.try_command::<String>(words).unwrap_or_default();
            let is_linked = || {
                let replication = ask(&["INFO", "replication"]);
                let words = ["state=online", "master_link_status:up"];
                words.iter().any(|word| replication.contains(word))
            };
            ask(&["CLUSTER", "INFO"]).contains("cluster_state:ok")
                && (self.replicas == 0 || is_linked())
        };
        if !self.nodes.iter().all(serves) {
            return false;
        }
        let mut layouts = self.nodes.iter().map(|node| layout(&known_by(node)));
        let Some(first) = layouts.next() else {
            return true;
        };
        let primaries = first.iter().filter(|(_, slots, ..)| !slots.is_empty());
        let is_followed = |port: u16| first.iter().any(|(.., follows)| *follows == Some(port));
        first.len() == self.nodes.len()
            && primaries.clone().count() == self.primaries
            && (self.replicas == 0 || primaries.into_iter().all(|(port, ..)| is_followed(*port)))
            && layouts.all(|layout| layout == first)
    }

    /// Returns the address of the cluster, with all nodes in this order.
    #[must_use]
    pub fn address(&self) -> String {
        self.address_by(&self.nodes.iter().collect::<Vec<_>>())
    }

    /// Returns the address of the cluster with only these nodes.
    #[must_use]
    pub fn address_by(&self, nodes: &[&Server]) -> String {
        let places = nodes
            .iter()
            .map(|node| format!("127.0.0.1:{}", node.port()));
        format!("redis+cluster://{}", places.collect::<Vec<_>>().join(","))
    }

    /// Returns the nodes of the cluster.
    #[must_use]
    pub fn nodes(&self) -> &[Server] {
        &self.nodes
    }

    /// Returns the slot of a name.
    ///
    /// # Panics
    /// Panics if no node answers.
    #[must_use]
    pub fn slot_of(&self, name: &str) -> u16 {
        let mut nodes = self.nodes.iter();
        let ask = |node: &Server| node.try_command(&["CLUSTER", "KEYSLOT", name]).ok();
        nodes.find_map(ask).expect("a node answers")
    }

    /// Returns the indices of the nodes that own slots, in the order of their first slots, according to the nodes
    /// themselves.
    #[must_use]
    pub fn primaries(&self) -> Vec<usize> {
        let nodes = self.nodes.iter().enumerate();
        let primaries = nodes.filter_map(|(index, node)| {
            let own = own(node).filter(KnownNode::is_primary)?;
            Some((own.first_slot()?, index))
        });
        let mut primaries: Vec<(u16, usize)> = primaries.collect();
        primaries.sort_unstable();
        primaries.into_iter().map(|(_, index)| index).collect()
    }

    /// Returns whether a node is the primary of a shard, according to itself.
    #[must_use]
    pub fn is_primary(&self, node: usize) -> bool {
        let node = self.nodes.get(node);
        let own = node.and_then(own);
        own.is_some_and(|own| own.is_primary())
    }

    /// Returns the index of the node that owns the slot of a name, according to the node itself.
    #[must_use]
    pub fn owner_of(&self, name: &str) -> Option<usize> {
        self.owner_of_slot(self.slot_of(name))
    }

    /// Returns the index of the node that owns a slot, according to the node itself.
    #[must_use]
    pub fn owner_of_slot(&self, slot: u16) -> Option<usize> {
        let mut nodes = self.nodes.iter();
        nodes.position(|node| own(node).is_some_and(|own| own.owns(slot)))
    }

    /// Returns the index of the replica of a primary.
    ///
    /// # Panics
    /// Panics if the primary has none.
    #[must_use]
    pub fn replica_of(&self, primary: usize) -> usize {
        patiently("the primary has a replica", || self.follows(primary))
    }

    fn follows(&self, primary: usize) -> Option<usize> {
        let known = known_by(self.nodes.get(primary)?);
        let id = &reporter(&known)?.id;
        let mut replicas = known.iter();
        let replica = replicas.find(|node| node.follows.as_ref() == Some(id))?;
        let mut nodes = self.nodes.iter();
        nodes.position(|node| node.port() == replica.port)
    }

    /// Returns a name in a slot of this node: `prefix` and a number.
    ///
    /// # Panics
    /// Panics if there is none.
    #[must_use]
    pub fn name_on(&self, primary: usize, prefix: &str) -> String {
        let own = own(&self.nodes[primary]).expect("a node knows itself");
        let mut names = (0..10_000).map(|number| format!("{prefix}{number}"));
        let is_there = |name: &String| own.owns(self.slot_of(name));
        names.find(is_there).expect("it owns the slot of some name")
    }

    /// Promotes the replica of a primary as an operator does, and waits until the promotion is done. The servers forget an
    /// order after five seconds, for example without a vote: a primary votes for one replica of a shard within twice the
    /// time after which a node counts as failed. So the order is repeated.
    ///
    /// # Panics
    /// Panics if that does not happen.
    pub fn fail_over(&self, primary: usize) -> usize {
        let replica = self.replica_of(primary);
        patiently("the replica is promoted on request", || {
            // A node that is a primary by now refuses.
            let _ = self.nodes[replica].order(&["CLUSTER", "FAILOVER"]);
            within(ORDER, || self.is_primary(replica).then_some(()))
        });
        replica
    }

    /// Waits until a replica has taken the place of its primary, according to the replica itself.
    ///
    /// # Panics
    /// Panics if that does not happen.
    pub fn wait_for_promotion(&self, replica: usize) {
        patiently("the replica is promoted", || {
            self.is_primary(replica).then_some(())
        });
    }
}

/// Returns the nodes of the cluster as one of them knows them.
fn known_by(node: &Server) -> Vec<KnownNode> {
    let text: String = node.try_command(&["CLUSTER", "NODES"]).unwrap_or_default();
    parse(&text)
}

/// Returns a node as it knows itself.
fn own(node: &Server) -> Option<KnownNode> {
    reporter(&known_by(node)).cloned()
}
