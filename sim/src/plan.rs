//! What is run: everything that a run depends on, in one value.

mod bounds;
mod cluster;
pub(crate) mod draw;
pub mod fault;
pub mod file;
pub mod generator;
mod lacks;
mod outage;
pub(crate) mod property;
mod servers;
pub mod time;
pub mod variant;
mod workload;

use std::rc::Rc;

use quorlock::NodeTrust;
use serde::{Deserialize, Serialize};

pub use crate::plan::cluster::{Cluster, Coverage};
use crate::plan::fault::{Fault, Trigger};
pub use crate::plan::lacks::Lacks;
pub use crate::plan::outage::{Outage, OutageKind};
use crate::plan::property::Property;
pub use crate::plan::servers::{
    Connections, MinReplicas, Network, Nodes, Persistence, Sentinels, Wait,
};
use crate::plan::time::SimTime;
use crate::plan::variant::{Flaw, Variant};
pub(crate) use crate::plan::workload::name_of;
pub use crate::plan::workload::{Watchdog, Workload, WorkloadKind};

/// One run: with its seed, all there is to know.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Decides latencies, the dice of lossy links, and what clients draw.
    #[serde(default)]
    pub seed: u64,
    /// For how long clients work. Faults end before; what follows only lets everything come to rest.
    #[serde(default = "standard_duration")]
    pub duration: SimTime,
    /// What carries messages.
    #[serde(default, skip_serializing_if = "Lane::is_fast")]
    pub lane: Lane,
    /// Which lock is put to the test.
    #[serde(default)]
    pub lock: LockKind,
    /// Whose lock: the product's, or one of the simulator's own that is wrong on purpose.
    #[serde(default)]
    pub variant: Variant,
    /// How many clients work.
    #[serde(default = "three")]
    pub clients: u16,
    /// The servers.
    #[serde(default)]
    pub nodes: Nodes,
    /// How messages travel while nothing is wrong.
    #[serde(default)]
    pub network: Network,
    /// What the product does beyond the published algorithm.
    #[serde(default)]
    pub remedies: Remedies,
    /// What the clients do.
    #[serde(default)]
    pub workload: Workload,
    /// What goes wrong.
    #[serde(default)]
    pub faults: Vec<Fault>,
    /// What goes wrong with resources of a user's own beside the lock.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<Outage>,
    /// When everything works again: by default when the last fault has ended.
    #[serde(default)]
    pub healed_at: Option<SimTime>,
    /// How long after that the lock must have been acquired: by default a few leases.
    #[serde(default)]
    pub progress_within: Option<SimTime>,
    /// While a client waits for a lock, it is acquired at least as often as this. Without, that is not demanded: faults may
    /// keep it from being so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_within: Option<SimTime>,
    /// A lock that was released is acquired again within this time while a client waits for it. Without, that is not
    /// demanded. It says nothing of locks whose holds are nested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_within: Option<SimTime>,
    /// Whether holds that are renewed last until they are released: faults leave each renewal the time for it. Without, that
    /// is not demanded.
    #[serde(default, skip_serializing_if = "is_no")]
    pub holds_last: bool,
    /// What is not demanded of this run, because its faults go beyond what is promised of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_demanded: Vec<Property>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn is_no(value: &bool) -> bool {
    !*value
}

/// What carries messages between clients and nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lane {
    /// The engine itself: requests and replies as they are, to nodes that run the executable specification.
    #[default]
    Fast,
    /// turmoil's TCP: the bytes of the production adapter, to simulated servers that run the real Lua scripts.
    Turmoil,
}

impl Lane {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde asks for a reference"
    )]
    fn is_fast(&self) -> bool {
        *self == Lane::Fast
    }
}

/// Which lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LockKind {
    /// Of one node. More nodes are not used.
    Single,
    /// Several names together, each on one of the nodes.
    Multi,
    /// A majority of the nodes.
    #[default]
    Redlock,
}

/// What the product does beyond the published algorithm, on a majority of nodes. Each can be left out, to see what it
/// buys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Remedies {
    /// A node that was restarted is quarantined for one lease.
    pub trust: bool,
    /// What clients are told that a node has after a restart, whether it is so or not ([`Nodes::persistence`]).
    pub restarts: AssertedRestarts,
    /// For how much longer than its lease a node keeps a claim. Without, for one lease more on a majority of nodes, and
    /// no longer on one node.
    pub margin: Option<SimTime>,
}

impl Default for Remedies {
    fn default() -> Self {
        Remedies {
            trust: true,
            restarts: AssertedRestarts::MayForget,
            margin: None,
        }
    }
}

/// What the operator says that a node has after a restart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AssertedRestarts {
    /// Nothing: it is quarantined.
    #[default]
    MayForget,
    /// Everything that it acknowledged: it is trusted at once if it has its marker
    /// ([`NodeTrust::AssertedDurable`]).
    KeepEverything,
}

fn standard_duration() -> SimTime {
    SimTime::secs(2)
}

fn three() -> u16 {
    3
}

impl Default for Plan {
    /// The reference workload: five nodes, three clients, 1 to 5 ms one way, 20 ms in the section, 7 to 13 ms between.
    fn default() -> Self {
        Plan {
            seed: 0,
            duration: standard_duration(),
            lane: Lane::default(),
            lock: LockKind::default(),
            variant: Variant::default(),
            clients: three(),
            nodes: Nodes::default(),
            network: Network::default(),
            remedies: Remedies::default(),
            workload: Workload::default(),
            faults: Vec::new(),
            outages: Vec::new(),
            healed_at: None,
            progress_within: None,
            idle_within: None,
            free_within: None,
            holds_last: false,
            not_demanded: Vec::new(),
        }
    }
}

impl Plan {
    /// The plan that is run: each fault that comes again and again is as many faults.
    #[must_use]
    pub(crate) fn spelled_out(self: &Rc<Plan>) -> Rc<Plan> {
        let repeats = |fault: &Fault| matches!(fault.when, Trigger::Every { .. });
        if !self.faults.iter().any(repeats) {
            return Rc::clone(self);
        }
        Rc::new(Plan {
            faults: self.faults.iter().flat_map(Fault::spelled_out).collect(),
            ..Plan::clone(self)
        })
    }

    /// The longest lease of any client.
    pub(crate) fn longest_lease(&self) -> SimTime {
        let lease = self.workload.lease;
        match self.workload.kind {
            WorkloadKind::Extending => lease.plus(lease),
            WorkloadKind::Together => SimTime::nanos(4 * lease.as_nanos()),
            _ => lease,
        }
    }

    /// The lease of a client, and the longest of those that it knows of.
    pub(crate) fn lease_of(&self, client: u16) -> SimTime {
        let lease = self.workload.lease;
        match self.clients <= client.saturating_add(self.workload.longer) {
            true => SimTime::nanos(3 * lease.as_nanos()),
            false => lease,
        }
    }

    /// Whether clients see the nodes of a cluster as one.
    pub(crate) fn is_one_cluster(&self) -> bool {
        self.nodes.cluster.is_some() && self.lock == LockKind::Single
    }

    /// The longest lease of the clients that keep a node: where several take part in one lock, they need not agree.
    pub(crate) fn longest_lease_on(&self, node: u16) -> SimTime {
        match self.workload.kind {
            WorkloadKind::Together if node % 2 == 1 => self.workload.lease,
            _ => self.longest_lease(),
        }
    }

    /// Whether it is a lock that has remedies.
    pub(crate) fn has_remedies(&self) -> bool {
        let is_product = self.variant.has_product_clients();
        is_product && self.lock == LockKind::Redlock && 1 < self.nodes.count
    }

    pub(crate) fn node_trust(&self) -> NodeTrust {
        // What the longest lease of a client is worth shows where its nodes are watched.
        let is_together = self.workload.kind == WorkloadKind::Together;
        if !(self.has_remedies() || is_together) || !self.remedies.trust {
            return NodeTrust::Unwatched;
        }
        match self.remedies.restarts {
            AssertedRestarts::MayForget => NodeTrust::Watched,
            AssertedRestarts::KeepEverything => NodeTrust::AssertedDurable,
        }
    }

    /// For how much longer than its lease a node keeps a claim.
    pub(crate) fn clock_margin(&self) -> SimTime {
        match self.has_remedies() {
            true => self.remedies.margin.unwrap_or(self.longest_lease()),
            // One node keeps claims for longer only where that is asked for.
            false if self.variant.has_product_clients() => {
                self.remedies.margin.unwrap_or(SimTime::ZERO)
            }
            false => SimTime::ZERO,
        }
    }

    /// For which replicas the clients wait before a grant or renewal counts, if they do.
    pub(crate) fn awaited(&self) -> Option<&Wait> {
        let wait = self.nodes.wait.as_ref();
        wait.filter(|_| !self.variant.has(Flaw::ReplicasNotAwaited))
    }

    /// A node as people call it: the replicas come after all primaries.
    #[must_use]
    pub fn node_name(&self, node: u16) -> String {
        let nodes = &self.nodes;
        match node.checked_sub(nodes.count) {
            None => format!("node {node}"),
            Some(rest) if nodes.replicas == 1 => format!("replica of {rest}"),
            Some(rest) => {
                let replicas = nodes.replicas.max(1);
                format!("replica {} of {}", rest % replicas, rest / replicas)
            }
        }
    }
}
