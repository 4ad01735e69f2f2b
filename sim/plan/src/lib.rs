//! Plans: everything that a run depends on, in one value.

mod bounds;
mod check;
mod cluster;
pub mod draw;
pub mod fault;
pub mod generator;
mod lane_limits;
mod outage;
pub mod property;
mod servers;
pub mod time;
pub mod variant;
mod workload;

use std::rc::Rc;

use quorlock::NodeTrust;
use serde::{Deserialize, Serialize};

pub use crate::check::{PlanError, check};
pub use crate::cluster::{Cluster, Coverage};
use crate::fault::{Fault, Trigger};
pub use crate::lane_limits::Lacks;
pub use crate::outage::{Outage, OutageKind};
use crate::property::Property;
pub use crate::servers::{
    Connections, MinReplicas, Network, NodeKind, Nodes, Persistence, Sentinels, Wait,
};
use crate::time::SimTime;
use crate::variant::{Flaw, Variant};
pub use crate::workload::name_of;
pub use crate::workload::{Watchdog, Workload, WorkloadKind};

/// A complete description of one run, including its seed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The seed of all randomness in the run: latencies, losses on links, and the random numbers of clients.
    #[serde(default)]
    pub seed: u64,
    /// How long clients work. All faults end before that. After this time, the run only continues until everything is
    /// at rest.
    #[serde(default = "standard_duration")]
    pub duration: SimTime,
    /// The transport of messages: the engine itself, or simulated TCP.
    #[serde(default, skip_serializing_if = "Lane::is_fast")]
    pub lane: Lane,
    /// The kind of lock that is tested.
    #[serde(default)]
    pub lock: LockKind,
    /// The implementation of the lock: the product's, or one of the simulator's own variants with deliberate flaws.
    #[serde(default)]
    pub variant: Variant,
    /// The number of clients.
    #[serde(default = "three")]
    pub clients: u16,
    /// The nodes, and the servers of each node.
    #[serde(default)]
    pub nodes: Nodes,
    /// How the network carries messages in the absence of faults.
    #[serde(default)]
    pub network: Network,
    /// The product's remedies, which are not part of the published algorithm.
    #[serde(default)]
    pub remedies: Remedies,
    /// The work of the clients.
    #[serde(default)]
    pub workload: Workload,
    /// The faults.
    #[serde(default)]
    pub faults: Vec<Fault>,
    /// The outages of a user's own resources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<Outage>,
    /// When all faults have ended. By default, this is the end of the last fault.
    #[serde(default)]
    pub healed_at: Option<SimTime>,
    /// How long after `healed_at` the lock must be acquired at the latest. By default, this is a few leases.
    #[serde(default)]
    pub progress_within: Option<SimTime>,
    /// The longest time for which a lock may go without being acquired while a client waits for it. If `None`, there
    /// is no such bound, because faults may prevent acquisitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_within: Option<SimTime>,
    /// The longest time for which a released lock may stay free while a client waits for it. If `None`, there is no
    /// such bound. The bound does not apply to locks whose holds are nested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_within: Option<SimTime>,
    /// Whether a hold that is renewed must last until it is released. Set this if the faults leave enough time for
    /// each renewal.
    #[serde(default, skip_serializing_if = "is_no")]
    pub holds_last: bool,
    /// Properties that this run is not required to have, because its faults exceed what the lock promises to survive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_demanded: Vec<Property>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
fn is_no(value: &bool) -> bool {
    !*value
}

/// The transport of messages between clients and nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lane {
    /// The engine itself. It passes requests and replies as values to nodes that run the executable specification.
    #[default]
    Fast,
    /// turmoil's TCP. The bytes of the production adapter travel to simulated servers that run the real Lua scripts.
    Turmoil,
}

impl Lane {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde calls it with a reference"
    )]
    fn is_fast(&self) -> bool {
        *self == Lane::Fast
    }
}

/// The kind of a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LockKind {
    /// A lock on one node. Other nodes are not used.
    Single,
    /// A lock on several names together, each on one of the nodes.
    Multi,
    /// A lock on a majority of the nodes.
    #[default]
    Redlock,
}

/// The product's remedies on a majority of nodes, which are not part of the published algorithm. Each remedy can be
/// turned off to show what it contributes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Remedies {
    /// Whether a node that was restarted is quarantined for one lease.
    pub trust: bool,
    /// The assumption about a node after a restart with which the clients are configured. It may be false:
    /// [`Nodes::persistence`] is what really happens.
    pub restarts: AssertedRestarts,
    /// How much longer than its lease a node keeps a claim. The default is one more lease on a majority of nodes, and
    /// nothing on one node.
    pub margin: Option<SimTime>,
    /// Whether a hold learns at once that its claim was removed, on any number of nodes. Only in the fast lane and on real
    /// servers: simulated servers on sockets report no changes of keys.
    #[serde(skip_serializing_if = "is_off")]
    pub watch_claims: bool,
}

impl Default for Remedies {
    fn default() -> Self {
        Remedies {
            trust: true,
            restarts: AssertedRestarts::MayForget,
            margin: None,
            watch_claims: false,
        }
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_off(switch: &bool) -> bool {
    !switch
}

/// The operator's assertion about the data that a node has after a restart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AssertedRestarts {
    /// The node may have lost data: it is quarantined.
    #[default]
    MayForget,
    /// The node has everything that it acknowledged. It is trusted at once if it has its marker
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
    /// Returns the reference workload: five nodes, three clients, a latency of 1 to 5 ms one way, 20 ms in each
    /// section, and pauses of 7 to 13 ms between sections.
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
    /// Returns the plan with each repeated fault replaced by its single faults. This is the plan that is run.
    #[must_use]
    pub fn spelled_out(self: &Rc<Plan>) -> Rc<Plan> {
        let repeats = |fault: &Fault| matches!(fault.when, Trigger::Every { .. });
        if !self.faults.iter().any(repeats) {
            return Rc::clone(self);
        }
        Rc::new(Plan {
            faults: self.faults.iter().flat_map(Fault::spelled_out).collect(),
            ..Plan::clone(self)
        })
    }

    /// Returns the longest lease of any client.
    pub fn longest_lease(&self) -> SimTime {
        let lease = self.workload.lease;
        match self.workload.kind {
            WorkloadKind::Extending => lease.plus(lease),
            WorkloadKind::Together => SimTime::nanos(4 * lease.as_nanos()),
            _ => lease,
        }
    }

    /// Returns the lease of a client. It is also the longest lease that the client knows of.
    pub fn lease_of(&self, client: u16) -> SimTime {
        let lease = self.workload.lease;
        match self.clients <= client.saturating_add(self.workload.longer) {
            true => SimTime::nanos(3 * lease.as_nanos()),
            false => lease,
        }
    }

    /// Returns whether clients see the nodes of a cluster as one node.
    pub fn is_one_cluster(&self) -> bool {
        self.nodes.cluster.is_some() && self.lock == LockKind::Single
    }

    /// Returns the longest lease of the clients that use a node. The leases of the clients that take part in one lock
    /// may differ.
    pub fn longest_lease_on(&self, node: u16) -> SimTime {
        match self.workload.kind {
            WorkloadKind::Together if node % 2 == 1 => self.workload.lease,
            _ => self.longest_lease(),
        }
    }

    /// Returns whether the remedies apply to this lock.
    pub fn has_remedies(&self) -> bool {
        let is_product = self.variant.has_product_clients();
        is_product && self.lock == LockKind::Redlock && 1 < self.nodes.count
    }

    /// Returns how the clients are configured to treat a node after a restart.
    pub fn node_trust(&self) -> NodeTrust {
        // The workload `Together` tests the longest lease of a client, which matters only for watched nodes.
        let is_together = self.workload.kind == WorkloadKind::Together;
        if !(self.has_remedies() || is_together) || !self.remedies.trust {
            return NodeTrust::Unwatched;
        }
        match self.remedies.restarts {
            AssertedRestarts::MayForget => NodeTrust::Watched,
            AssertedRestarts::KeepEverything => NodeTrust::AssertedDurable,
        }
    }

    /// Returns whether some of the locks are fair.
    pub(crate) fn has_fair_locks(&self) -> bool {
        matches!(
            self.workload.kind,
            WorkloadKind::Fair | WorkloadKind::Together
        )
    }

    /// Returns how much longer than its lease a node keeps a claim. A fair lock has no margin.
    pub fn clock_margin(&self) -> SimTime {
        match self.has_remedies() {
            true => self.remedies.margin.unwrap_or(self.longest_lease()),
            // A single node keeps claims longer only if the plan states a margin.
            false if self.variant.has_product_clients() => {
                self.remedies.margin.unwrap_or(SimTime::ZERO)
            }
            false => SimTime::ZERO,
        }
    }

    /// Returns the replicas that must have a claim before a grant or renewal counts, if the plan requires any.
    pub fn awaited(&self) -> Option<&Wait> {
        let wait = self.nodes.wait.as_ref();
        wait.filter(|_| !self.variant.has(Flaw::ReplicasNotAwaited))
    }

    /// Returns the display name of a node. Replicas are numbered after all primaries.
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
