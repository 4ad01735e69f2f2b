//! The faults of the servers.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};

use quorlock_testbed::cluster::Cluster;
use quorlock_testbed::sentinels::{NAME, SentinelGroup};
use quorlock_testbed::server::Server;
use rand::RngExt;
use rand::rngs::StdRng;

/// The tags of three shards.
const TAGS: [&str; 3] = ["quorlock-10213", "quorlock-13404", "quorlock-22561"];

/// The bound on the time until sentinels agree on a failover.
const VOTES: Duration = Duration::from_secs(300);

/// Causes a fault in a shard or elsewhere, repairs it, and returns its name.
type Fault = fn(&mut World, usize) -> &'static str;

/// Faults that a majority of groups survives.
pub(crate) const SURVIVED: &[Fault] = &[
    World::kill,
    World::kill_with_a_replica_that_lags,
    World::kill_a_majority,
    World::ask_for_a_failover,
    World::take_over_two,
    World::stop,
    World::move_slot,
    World::fail_the_group_over,
    World::restart_the_server,
];

/// Faults that give a name of one cluster to two holders.
pub(crate) const LAGGING: &[Fault] = &[World::kill_with_a_replica_that_lags];

/// Faults that give a name of a majority to two holders: the old primary answers before it has learned of the new one,
/// which has a vote.
pub(crate) const LONG_STOPS: &[Fault] = &[World::stop_for_long];

pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) group: SentinelGroup,
    pub(crate) server: Server,
    pub(crate) random: StdRng,
    /// The faults to choose from.
    pub(crate) faults: &'static [Fault],
    pub(crate) began: Instant,
    /// The faults so far, in order.
    pub(crate) told: Vec<&'static str>,
}

impl World {
    /// Causes a fault, repairs it, and lets the clients work without faults for a while.
    pub(crate) fn fault(&mut self) {
        let fault = self.random.random_range(0..self.faults.len());
        let shard = self.random.random_range(0..3);
        let begins = self.begins();
        let told = self.faults[fault](self, shard);
        println!("{begins} to {} s: {told}", self.began.elapsed().as_secs());
        self.told.push(told);
        // From a moment to longer than a quarantine.
        let millis = self.random.random_range(0..6_000);
        std::thread::sleep(Duration::from_millis(millis));
    }

    /// Returns the present time, also in the form of tokens.
    fn begins(&self) -> String {
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let millis = unix.expect("a clock of today").as_millis();
        format!("{:>5} s (token {millis})", self.began.elapsed().as_secs())
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
        self.cluster.nodes()[primary].kill();
        self.cluster.wait_for_promotion(replica);
        self.cluster.mend();
        "primaries killed"
    }

    /// Kills the primary while the replica lacks the claims and releases of the last seconds.
    ///
    /// A replica that is stopped would not lag: what its primary has sent waits in a buffer of its machine, and is
    /// read before the election. A replica that cannot log in does lag.
    fn kill_with_a_replica_that_lags(&mut self, shard: usize) -> &'static str {
        let primary = self.primary(shard);
        let replica = self.cluster.replica_of(primary);
        let node = &self.cluster.nodes()[replica];
        node.command::<()>(&["CONFIG", "SET", "masterauth", "none"]);
        node.command::<i64>(&["CLIENT", "KILL", "TYPE", "master"]);
        let millis = self.random.random_range(500..3_000);
        std::thread::sleep(Duration::from_millis(millis));
        self.cluster.nodes()[primary].kill();
        self.cluster.wait_for_promotion(replica);
        self.cluster.nodes()[replica].command::<()>(&["CONFIG", "SET", "masterauth", ""]);
        self.cluster.mend();
        "primaries killed whose replicas lagged"
    }

    /// Kills two of three primaries. With one primary left, no replica is elected, so an operator makes two of them
    /// take over.
    fn kill_a_majority(&mut self, shard: usize) -> &'static str {
        let dead = [shard, (shard + 1) % 3].map(|shard| self.primary(shard));
        let replicas = dead.map(|primary| self.cluster.replica_of(primary));
        for primary in dead {
            self.cluster.nodes()[primary].kill();
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

    /// Makes two replicas take over while their primaries live. The primaries learn of it a moment later.
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

    /// Stops a primary for a time that is shorter or longer than the cluster takes to notice. In either case, its
    /// successor has no vote yet when it resumes.
    fn stop(&mut self, shard: usize) -> &'static str {
        let millis = self.random.random_range(200..4_000);
        self.stop_for(shard, Duration::from_millis(millis));
        "primaries stopped for a while"
    }

    fn stop_for_long(&mut self, shard: usize) -> &'static str {
        let millis = self.random.random_range(8_000..12_000);
        self.stop_for(shard, Duration::from_millis(millis));
        "primaries stopped for longer than the longest lease"
    }

    fn stop_for(&mut self, shard: usize, time: Duration) {
        let primary = self.primary(shard);
        self.cluster.nodes()[primary].pause();
        std::thread::sleep(time);
        self.cluster.nodes()[primary].resume();
        self.cluster.mend();
    }

    /// Moves the slot to the primary of another shard, and after a while to the primary without a slot of a shard.
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

    fn fail_the_group_over(&mut self, _: usize) -> &'static str {
        let before = self.group.settle();
        if self.random.random_range(0..2) == 0 {
            self.group.servers()[before].kill();
        }
        // Elections of sentinels may fail for minutes, because each sentinel waits longer for the others. The failover
        // is requested until it succeeds.
        let began = Instant::now();
        let mut asked = 0;
        while self.group.primary().is_none_or(|now| now == before) {
            assert!(began.elapsed() < VOTES, "the group has no new primary");
            let sentinels = self.group.sentinels();
            let _ = sentinels[asked % sentinels.len()]
                .try_command::<()>(&["SENTINEL", "FAILOVER", NAME]);
            asked += 1;
            std::thread::sleep(Duration::from_secs(2));
        }
        self.group.mend();
        "failovers of the group"
    }

    /// Restarts the server without data.
    fn restart_the_server(&mut self, _: usize) -> &'static str {
        self.server.kill();
        let millis = self.random.random_range(0..2_000);
        std::thread::sleep(Duration::from_millis(millis));
        self.server.restart();
        "restarts of the server"
    }
}
