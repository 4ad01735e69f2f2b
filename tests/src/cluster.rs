//! A Redis Cluster of real processes: three primaries, each with a replica.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::server::Server;
use crate::wait::{BOUND, wait_until};

/// The number of slots of a cluster.
const SLOTS: u16 = 16_384;

/// The number of nodes that own slots.
const PRIMARIES: usize = 3;

/// The number of nodes.
const NODES: usize = 2 * PRIMARIES;

/// How long a node must be silent to count as failed. Its replica takes over about a second later.
const NODE_TIMEOUT: Duration = Duration::from_millis(1_500);

/// A cluster whose nodes detect quickly that one of them is down.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Server>,
}

/// For each node: its port, its slots, the port of the primary that it follows, and the epoch of its slots.
type View = Vec<(u16, Vec<String>, Option<u16>, u64)>;

/// What a node reports about another node, or about itself.
struct NodeLine {
    id: String,
    port: u16,
    flags: String,
    primary: String,
    epoch: u64,
    is_linked: bool,
    slots: Vec<String>,
}

impl Cluster {
    /// Starts a cluster, and waits until its nodes know each other and serve every slot.
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
        let timeout = NODE_TIMEOUT.as_millis().to_string();
        let own = [
            "--cluster-node-timeout",
            &timeout,
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
        let options = [&own, options].concat();
        let nodes = (0..NODES).map(|_| Server::start_in_cluster(&options));
        let cluster = Cluster {
            nodes: nodes.collect(),
        };
        cluster.join();
        cluster
    }

    fn join(&self) {
        for (epoch, node) in (1..).zip(&self.nodes) {
            let epoch: u64 = epoch;
            node.command::<()>(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch.to_string()]);
        }
        for (index, node) in self.nodes.iter().take(PRIMARIES).enumerate() {
            let bound = |index: usize| usize::from(SLOTS) * index / PRIMARIES;
            let (first, last) = (bound(index), bound(index + 1) - 1);
            let (first, last) = (first.to_string(), last.to_string());
            node.command::<()>(&["CLUSTER", "ADDSLOTSRANGE", &first, &last]);
        }
        for (index, node) in self.nodes.iter().enumerate() {
            for other in self.nodes.iter().skip(index + 1) {
                let (port, bus) = (other.port().to_string(), other.bus_port().to_string());
                node.command::<()>(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
            }
        }
        wait_until("every node knows all", || {
            let knows_all = |node| {
                let lines = self.lines(node);
                lines.len() == NODES && lines.iter().all(|line| line.is_linked)
            };
            self.nodes.iter().all(knows_all)
        });
        for (index, replica) in self.nodes.iter().skip(PRIMARIES).enumerate() {
            let primary: String = self.nodes[index].command(&["CLUSTER", "MYID"]);
            replica.command::<()>(&["CLUSTER", "REPLICATE", &primary]);
        }
        self.settle();
    }

    /// Restarts killed nodes, resumes stopped ones, ends moves of slots, and waits until the cluster is healthy.
    ///
    /// # Panics
    /// Panics if that does not happen.
    pub fn mend(&mut self) {
        for node in &mut self.nodes {
            if node.is_killed() {
                node.restart();
            } else {
                node.resume();
            }
        }
        self.settle();
    }

    /// Waits until all nodes serve every slot and agree on the owners, and each primary has a replica that follows it.
    ///
    /// # Panics
    /// Panics if that does not happen.
    pub fn settle(&self) {
        let until = Instant::now() + 3 * BOUND;
        while !self.is_settled() {
            let nodes = || self.nodes.iter().map(|node| self.view(node));
            assert!(
                Instant::now() < until,
                "the cluster is not well: {:#?}",
                nodes().collect::<Vec<_>>()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn is_settled(&self) -> bool {
        let is_well = self.nodes.iter().all(|node| {
            let ask = |words: &[&str]| node.try_command::<String>(words).unwrap_or_default();
            let replication = ask(&["INFO", "replication"]);
            let is_linked = ["state=online", "master_link_status:up"];
            ask(&["CLUSTER", "INFO"]).contains("cluster_state:ok")
                && is_linked.iter().any(|word| replication.contains(word))
        });
        let views: BTreeSet<View> = self.nodes.iter().map(|node| self.view(node)).collect();
        let is_whole = |view: &View| {
            let primaries = view.iter().filter(|(_, slots, ..)| !slots.is_empty());
            let mut primaries = primaries.map(|(port, ..)| port);
            view.len() == NODES
                && primaries.clone().count() == PRIMARIES
                && primaries.all(|port| view.iter().any(|(_, _, of, _)| of == &Some(*port)))
        };
        is_well && views.len() == 1 && views.iter().all(is_whole)
    }

    /// Returns the nodes as one of them sees them.
    fn view(&self, node: &Server) -> View {
        let lines = self.lines(node);
        let port_of = |id: &str| lines.iter().find(|line| line.id == id).map(|l| l.port);
        let of_line = |line: &NodeLine| {
            let epoch = if line.slots.is_empty() { 0 } else { line.epoch };
            let primary = port_of(&line.primary);
            (line.port, line.slots.clone(), primary, epoch)
        };
        let mut view: Vec<_> = lines.iter().map(of_line).collect();
        view.sort();
        view
    }

    fn lines(&self, node: &Server) -> Vec<NodeLine> {
        let text: String = node.try_command(&["CLUSTER", "NODES"]).unwrap_or_default();
        let line = |line: &str| {
            let mut words = line.split(' ').map(String::from);
            let mut word = || words.next();
            let (id, place, flags, primary) = (word()?, word()?, word()?, word()?);
            let (_, _, epoch, link) = (word()?, word()?, word()?.parse().ok()?, word()?);
            let port = place.split('@').next()?.rsplit(':').next()?.parse().ok()?;
            Some(NodeLine {
                id,
                port,
                flags,
                primary,
                epoch,
                is_linked: link == "connected",
                slots: words.collect(),
            })
        };
        text.lines().filter_map(line).collect()
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

    /// Returns one of the nodes.
    ///
    /// # Panics
    /// Panics if there is no such node.
    pub fn node_mut(&mut self, index: usize) -> &mut Server {
        self.nodes.get_mut(index).expect("there is such a node")
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
        let mut primaries: Vec<(u16, usize)> = Vec::new();
        for (index, node) in self.nodes.iter().enumerate() {
            let lines = self.lines(node);
            let Some(own) = lines.iter().find(|line| line.flags.contains("myself")) else {
                continue;
            };
            let first = own
                .slots
                .iter()
                .find_map(|slots| slots.split('-').next()?.parse().ok());
            if let Some(first) = first
                && own.flags.contains("master")
            {
                primaries.push((first, index));
            }
        }
        primaries.sort_unstable();
        primaries.into_iter().map(|(_, index)| index).collect()
    }

    /// Returns the index of the node that owns the slot of a name, according to the node itself.
    #[must_use]
    pub fn owner_of(&self, name: &str) -> Option<usize> {
        let slot = self.slot_of(name);
        (0..self.nodes.len()).find(|index| self.owns(*index, slot))
    }

    /// Returns whether a node reports that it owns a slot.
    fn owns(&self, index: usize, slot: u16) -> bool {
        let lines = self.lines(&self.nodes[index]);
        let own = lines.iter().find(|line| line.flags.contains("myself"));
        own.is_some_and(|own| own.flags.contains("master") && has(&own.slots, slot))
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
        let lines = self.lines(&self.nodes[primary]);
        let id = &lines.iter().find(|line| line.flags.contains("myself"))?.id;
        let port = lines.iter().find(|line| line.primary == *id)?.port;
        self.nodes.iter().position(|node| node.port() == port)
    }

    /// Returns a name in a slot of this node: `prefix` and a number.
    ///
    /// # Panics
    /// Panics if there is none.
    #[must_use]
    pub fn name_on(&self, primary: usize, prefix: &str) -> String {
        let lines = self.lines(&self.nodes[primary]);
        let own = lines.iter().find(|line| line.flags.contains("myself"));
        let slots = &own.expect("a node knows itself").slots;
        let mut names = (0..10_000).map(|number| format!("{prefix}{number}"));
        let is_there = |name: &String| has(slots, self.slot_of(name));
        names.find(is_there).expect("it owns the slot of some name")
    }

    /// Begins to move a slot from one node to another. After that, its keys can be moved.
    ///
    /// The nodes must first agree on the owners. A node that gets a slot takes the next epoch after those that it
    /// knows, and a late message with a higher epoch would take the slot back.
    ///
    /// # Panics
    /// Panics if the nodes refuse.
    pub fn begin_move(&self, slot: u16, from: usize, to: usize) {
        self.settle();
        let (from, to) = (&self.nodes[from], &self.nodes[to]);
        let slot = slot.to_string();
        let id = |node: &Server| node.command::<String>(&["CLUSTER", "MYID"]);
        to.command::<()>(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &id(from)]);
        from.command::<()>(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &id(to)]);
    }

    /// Moves these keys of a slot.
    ///
    /// # Panics
    /// Panics if the nodes refuse.
    pub fn move_keys(&self, from: usize, to: usize, keys: &[&str]) {
        let port = self.nodes[to].port().to_string();
        let mut words = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"];
        words.extend(keys);
        self.nodes[from].command::<String>(&words);
    }

    /// Returns the keys of a slot at a node.
    ///
    /// # Panics
    /// Panics if the node refuses.
    #[must_use]
    pub fn keys_of(&self, node: usize, slot: u16) -> Vec<String> {
        let slot = slot.to_string();
        self.nodes[node].command(&["CLUSTER", "GETKEYSINSLOT", &slot, "1000"])
    }

    /// Moves the remaining keys of a slot, and informs all nodes about the new owner.
    ///
    /// # Panics
    /// Panics if the nodes refuse.
    pub fn end_move(&self, slot: u16, from: usize, to: usize) {
        let keys = self.keys_of(from, slot);
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        if !keys.is_empty() {
            self.move_keys(from, to, &keys);
        }
        let id: String = self.nodes[to].command(&["CLUSTER", "MYID"]);
        let slot = slot.to_string();
        let others = (0..self.nodes.len()).filter(|index| *index != from && *index != to);
        for index in [to, from].into_iter().chain(others) {
            // Replicas refuse the command, and learn of the new owner from their primaries.
            let told =
                self.nodes[index].try_command::<()>(&["CLUSTER", "SETSLOT", &slot, "NODE", &id]);
            assert!(told.is_ok() || PRIMARIES <= index || index != to);
        }
    }

    /// Moves a slot with all of its keys.
    ///
    /// # Panics
    /// Panics if the nodes refuse.
    pub fn move_slot(&self, slot: u16, from: usize, to: usize) {
        self.begin_move(slot, from, to);
        self.end_move(slot, from, to);
    }

    /// Promotes the replica of a primary as an operator does, and waits until the promotion is done.
    ///
    /// # Panics
    /// Panics if that does not happen.
    pub fn fail_over(&self, primary: usize) -> usize {
        let replica = self.replica_of(primary);
        self.nodes[replica].command::<()>(&["CLUSTER", "FAILOVER"]);
        self.wait_for_promotion(replica);
        replica
    }

    /// Waits until a replica has taken the place of its primary, according to the replica itself.
    ///
    /// # Panics
    /// Panics if that does not happen.
    pub fn wait_for_promotion(&self, replica: usize) {
        patiently("the replica is promoted", || {
            self.primaries().contains(&replica).then_some(())
        });
    }
}

/// Returns whether a slot is in one of these ranges. A slot that is being moved is in brackets.
fn has(slots: &[String], slot: u16) -> bool {
    slots.iter().any(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        match (first.parse::<u16>(), last.parse::<u16>()) {
            (Ok(first), Ok(last)) => first <= slot && slot <= last,
            _ => false,
        }
    })
}

/// Waits for something that requires an election.
fn patiently<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + 3 * BOUND;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(
            Instant::now() < until,
            "{:?} were not enough: {what}",
            3 * BOUND
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}
