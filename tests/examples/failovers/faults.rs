//! What is done to the servers.

use std::collections::BTreeMap;
use std::time::Duration;

use quorlock_tests::cluster::Cluster;
use quorlock_tests::sentinels::{NAME, SentinelGroup};
use quorlock_tests::server::Server;
use rand::RngExt;
use rand::rngs::StdRng;

/// The tags of three shards.
const TAGS: [&str; 3] = ["quorlock-10213", "quorlock-13404", "quorlock-22561"];

pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) group: SentinelGroup,
    pub(crate) server: Server,
    pub(crate) random: StdRng,
    /// What was done, in order.
    pub(crate) told: Vec<&'static str>,
}

impl World {
    /// Does something, mends it, and leaves the clients alone for a while.
    pub(crate) fn fault(&mut self) {
        let fault = self.random.random_range(0..9);
        let shard = self.random.random_range(0..3);
        let told = match fault {
            0 => self.kill(shard),
            1 => self.kill_with_a_replica_that_lags(shard),
            2 => self.kill_a_majority(shard),
            3 => self.ask_for_a_failover(shard),
            4 => self.take_over_two(shard),
            5 => self.stop(shard),
            6 => self.move_slot(shard),
            7 => self.fail_the_group_over(),
            _ => self.restart_the_server(),
        };
        self.told.push(told);
        // From a moment to longer than a quarantine.
        let millis = self.random.random_range(0..6_000);
        std::thread::sleep(Duration::from_millis(millis));
    }

    pub(crate) fn summary(&self) -> String {
        let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
        for told in &self.told {
            *counts.entry(told).or_default() += 1;
        }
        let counts = counts.iter().map(|(what, many)| format!("{many} {what}"));
        counts.collect::<Vec<_>>().join(", ")
    }

    fn primary(&self, shard: usize) -> usize {
        let owner = self.cluster.owner_of(TAGS[shard]);
        owner.expect("the slot has an owner")
    }

    fn kill(&mut self, shard: usize) -> &'static str {
        let primary = self.primary(shard);
        let replica = self.cluster.replica_of(primary);
        self.cluster.node_mut(primary).kill();
        self.cluster.wait_for_promotion(replica);
        self.cluster.mend();
        "primaries killed"
    }

    /// What was claimed and released in the last seconds has not come to the replica.
    ///
    /// A replica that is stopped does not lag: what its primary has sent waits in a buffer of its machine, and is read before the election.
    /// One that cannot log in does.
    fn kill_with_a_replica_that_lags(&mut self, shard: usize) -> &'static str {
        let primary = self.primary(shard);
        let replica = self.cluster.replica_of(primary);
        let node = &self.cluster.nodes()[replica];
        node.command::<()>(&["CONFIG", "SET", "masterauth", "none"]);
        node.command::<i64>(&["CLIENT", "KILL", "TYPE", "master"]);
        let millis = self.random.random_range(500..3_000);
        std::thread::sleep(Duration::from_millis(millis));
        self.cluster.node_mut(primary).kill();
        self.cluster.wait_for_promotion(replica);
        self.cluster.nodes()[replica].command::<()>(&["CONFIG", "SET", "masterauth", ""]);
        self.cluster.mend();
        "primaries killed whose replicas lagged"
    }

    /// No replica is elected while one primary of three is left: an operator has two of them take over.
    fn kill_a_majority(&mut self, shard: usize) -> &'static str {
        let dead = [shard, (shard + 1) % 3].map(|shard| self.primary(shard));
        let replicas = dead.map(|primary| self.cluster.replica_of(primary));
        for primary in dead {
            self.cluster.node_mut(primary).kill();
        }
        for replica in replicas {
            let takeover = ["CLUSTER", "FAILOVER", "TAKEOVER"];
            self.cluster.nodes()[replica].command::<()>(&takeover);
            self.cluster.wait_for_promotion(replica);
        }
        self.cluster.mend();
        "majorities killed"
    }

    fn ask_for_a_failover(&mut self, shard: usize) -> &'static str {
        let primary = self.primary(shard);
        self.cluster.fail_over(primary);
        self.cluster.settle();
        "failovers on request"
    }

    /// The primaries live, and hear of it a moment later.
    fn take_over_two(&mut self, shard: usize) -> &'static str {
        for shard in [shard, (shard + 1) % 3] {
            let replica = self.cluster.replica_of(self.primary(shard));
            let takeover = ["CLUSTER", "FAILOVER", "TAKEOVER"];
            self.cluster.nodes()[replica].command::<()>(&takeover);
            self.cluster.wait_for_promotion(replica);
        }
        self.cluster.settle();
        "take-overs of two at once"
    }

    /// For less than the cluster takes to notice, or for longer.
    fn stop(&mut self, shard: usize) -> &'static str {
        let primary = self.primary(shard);
        self.cluster.nodes()[primary].pause();
        let millis = self.random.random_range(200..8_000);
        std::thread::sleep(Duration::from_millis(millis));
        self.cluster.nodes()[primary].resume();
        self.cluster.mend();
        "primaries stopped for a while"
    }

    /// To the primary of another shard, and after a while to the one that has none.
    fn move_slot(&mut self, shard: usize) -> &'static str {
        let [from, to] = [shard, (shard + 1) % 3].map(|shard| self.primary(shard));
        let slot = self.cluster.slot_of(TAGS[shard]);
        self.cluster.move_slot(slot, from, to);
        let millis = self.random.random_range(0..6_000);
        std::thread::sleep(Duration::from_millis(millis));
        self.cluster.move_slot(slot, to, from);
        self.cluster.settle();
        "slots moved and moved back"
    }

    fn fail_the_group_over(&mut self) -> &'static str {
        let before = self.group.settle();
        if self.random.random_range(0..2) == 0 {
            self.group.server_mut(before).kill();
        } else {
            let words = ["SENTINEL", "FAILOVER", NAME];
            let _ = self.group.sentinels()[0].try_command::<()>(&words);
        }
        let _ = self.group.wait_for_another(before);
        self.group.mend();
        "failovers of the group"
    }

    /// It comes back with nothing.
    fn restart_the_server(&mut self) -> &'static str {
        self.server.kill();
        let millis = self.random.random_range(0..2_000);
        std::thread::sleep(Duration::from_millis(millis));
        self.server.restart();
        "restarts of the server"
    }
}
