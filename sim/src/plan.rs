//! What is run: everything that a run depends on, in one value.

pub(crate) mod draw;
pub mod fault;
pub mod file;
pub mod generator;
mod lacks;
pub(crate) mod property;
pub mod time;
pub mod variant;

use quorlock::NodeTrust;
use serde::{Deserialize, Serialize};

use crate::plan::fault::{ClientFault, Fault, FaultKind, Kind, NodeFault};
pub use crate::plan::lacks::Lacks;
use crate::plan::property::Property;
use crate::plan::time::Span;
use crate::plan::variant::Variant;

/// One run: with its seed, all there is to know.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Decides latencies, the dice of lossy links, and what clients draw.
    #[serde(default)]
    pub seed: u64,
    /// For how long clients work. Faults end before; what follows only lets everything come to rest.
    #[serde(default = "standard_duration")]
    pub duration: Span,
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
    /// When everything works again: by default when the last fault has ended.
    #[serde(default)]
    pub healed_at: Option<Span>,
    /// How long after that the lock must have been acquired: by default a few leases.
    #[serde(default)]
    pub progress_within: Option<Span>,
    /// What is not demanded of this run, because its faults go beyond what is promised of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_demanded: Vec<Property>,
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

/// The servers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Nodes {
    /// How many.
    pub count: u16,
    /// What one still has after a restart.
    pub persistence: Persistence,
    /// How many replicas each has. A replica answers only once it was promoted.
    pub replicas: u16,
    /// How long a write is on its way to a replica, at least.
    pub replication_lag: Span,
    /// How many replicas must have a claim before a grant or a renewal counts (`WAIT`); without, none.
    pub wait: Option<Wait>,
    /// Without how many replicas it takes no writes (`min-replicas-to-write`); without, it always does.
    pub min_replicas: Option<MinReplicas>,
}

/// How many replicas must have a claim before a grant or a renewal counts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wait {
    /// So many.
    pub replicas: u16,
    /// The answer is an error if they have not confirmed by then.
    pub within: Span,
}

/// A server that takes no writes when too few replicas follow it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MinReplicas {
    /// So many must follow (`min-replicas-to-write`).
    pub count: u16,
    /// It notices this much later that one does not any more (`min-replicas-max-lag`).
    pub max_lag: Span,
}

impl Default for Nodes {
    fn default() -> Self {
        Nodes {
            count: 5,
            persistence: Persistence::EveryWrite,
            replicas: 0,
            replication_lag: Span::millis(1),
            wait: None,
            min_replicas: None,
        }
    }
}

/// What a server still has after a restart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Persistence {
    /// Nothing.
    Memory,
    /// What it had at the last full second (`appendfsync everysec`).
    EverySecond,
    /// Everything (`appendfsync always`).
    #[default]
    EveryWrite,
}

/// How messages travel while nothing is wrong: in order, each for a time drawn between two bounds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Network {
    /// At least so long, one way.
    pub least: Span,
    /// At most so long.
    pub most: Span,
    /// A call ends after this, on the clock of the client.
    pub call_timeout: Span,
    /// A connection attempt ends after this.
    pub connect_timeout: Span,
}

impl Default for Network {
    fn default() -> Self {
        Network {
            least: Span::millis(1),
            most: Span::millis(5),
            call_timeout: Span::secs(2),
            connect_timeout: Span::secs(1),
        }
    }
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
    pub margin: Option<Span>,
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

/// What the clients do.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Workload {
    /// Which work.
    pub kind: WorkloadKind,
    /// How many names there are.
    pub names: u16,
    /// How long a lease is.
    pub lease: Span,
    /// Whether the watchdog renews it.
    pub watchdog: Watchdog,
    /// A section lasts at least
    pub hold_least: Span,
    /// and at most so long.
    pub hold_most: Span,
    /// Between two a client waits at least
    pub think_least: Span,
    /// and at most so long.
    pub think_most: Span,
    /// A waiter looks again after this, even if nothing wakes it.
    pub poll_cap: Span,
    /// No pause between two rounds is longer.
    pub backoff_cap: Span,
    /// How often a section looks whether the lock is still held, besides when it begins.
    pub looks: u16,
}

impl Default for Workload {
    fn default() -> Self {
        Workload {
            kind: WorkloadKind::MutualExclusion,
            names: 1,
            lease: Span::secs(10),
            watchdog: Watchdog::Off,
            hold_least: Span::millis(20),
            hold_most: Span::millis(20),
            think_least: Span::millis(7),
            think_most: Span::millis(13),
            poll_cap: Span::secs(5),
            backoff_cap: Span::secs(1),
            looks: 2,
        }
    }
}

/// Whether leases are renewed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Watchdog {
    /// They end by themselves.
    #[default]
    Off,
    /// They are renewed every third of their length.
    On,
}

/// What clients do, again and again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadKind {
    /// Acquire, stay a while, release.
    #[default]
    MutualExclusion,
    /// Enter a hold again, through the guard and through its owner, and leave it step by step.
    Reentrant,
    /// Overlapping sets of names, named in different orders.
    Overlapping,
    /// Write to a store that takes every write.
    UnfencedWrites,
    /// Write to a store that rejects smaller tokens than it has seen.
    FencedWrites,
    /// Work for longer than a lease, under the watchdog, which is cancelled when the lock is lost.
    LongWork,
    /// Try without waiting, many at once.
    TryStorm,
    /// Wait for one's turn at a fair lock, give up at times, and try without waiting.
    Fair,
    /// Read beside others, write alone, read beside one's own writing, and ask to write while reading.
    ReadWrite,
    /// Extend a hold in one task and enter it again in another, beside the watchdog.
    Extending,
    /// Read from a store, work, and write back what came of it: the write alone is fenced.
    FencedUpdates,
    /// The same, but the read raises the largest token of the store, too.
    RaisedUpdates,
    /// Be a candidate, lead for some time, step down, resign or lose, and be a candidate again.
    Leading,
}

impl WorkloadKind {
    /// Every kind. **Append only**.
    pub const ALL: [WorkloadKind; 13] = [
        WorkloadKind::MutualExclusion,
        WorkloadKind::Reentrant,
        WorkloadKind::Overlapping,
        WorkloadKind::UnfencedWrites,
        WorkloadKind::FencedWrites,
        WorkloadKind::LongWork,
        WorkloadKind::TryStorm,
        WorkloadKind::Fair,
        WorkloadKind::ReadWrite,
        WorkloadKind::Extending,
        WorkloadKind::FencedUpdates,
        WorkloadKind::RaisedUpdates,
        WorkloadKind::Leading,
    ];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            WorkloadKind::MutualExclusion => "mutual-exclusion",
            WorkloadKind::Reentrant => "reentrant",
            WorkloadKind::Overlapping => "overlapping",
            WorkloadKind::UnfencedWrites => "unfenced-writes",
            WorkloadKind::FencedWrites => "fenced-writes",
            WorkloadKind::LongWork => "long-work",
            WorkloadKind::TryStorm => "try-storm",
            WorkloadKind::Fair => "fair",
            WorkloadKind::ReadWrite => "read-write",
            WorkloadKind::Extending => "extending",
            WorkloadKind::FencedUpdates => "fenced-updates",
            WorkloadKind::RaisedUpdates => "raised-updates",
            WorkloadKind::Leading => "leading",
        }
    }
}

fn standard_duration() -> Span {
    Span::secs(2)
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
            healed_at: None,
            progress_within: None,
            not_demanded: Vec::new(),
        }
    }
}

impl Plan {
    /// When the last fault has ended.
    #[must_use]
    pub fn heals_at(&self) -> Span {
        let ends = self.faults.iter().map(Fault::ends);
        self.healed_at.or(ends.max()).unwrap_or(Span::ZERO)
    }

    /// The longest lease of any client.
    pub(crate) fn longest_lease(&self) -> Span {
        let lease = self.workload.lease;
        match self.workload.kind {
            WorkloadKind::Extending => lease.plus(lease),
            _ => lease,
        }
    }

    /// Whether it is a lock that has remedies.
    pub(crate) fn has_remedies(&self) -> bool {
        let is_product = self.variant.has_product_clients();
        is_product && self.lock == LockKind::Redlock && 1 < self.nodes.count
    }

    pub(crate) fn node_trust(&self) -> NodeTrust {
        if !self.has_remedies() || !self.remedies.trust {
            return NodeTrust::Unwatched;
        }
        match self.remedies.restarts {
            AssertedRestarts::MayForget => NodeTrust::Watched,
            AssertedRestarts::KeepEverything => NodeTrust::AssertedDurable,
        }
    }

    /// For how much longer than its lease a node keeps a claim.
    pub(crate) fn clock_margin(&self) -> Span {
        match self.has_remedies() {
            true => self.remedies.margin.unwrap_or(self.longest_lease()),
            // One node keeps claims for longer only where that is asked for.
            false if self.variant.has_product_clients() => {
                self.remedies.margin.unwrap_or(Span::ZERO)
            }
            false => Span::ZERO,
        }
    }

    /// For how long nodes may be quarantined after the last fault.
    fn quarantine(&self) -> Span {
        let looks_new = |fault: &Fault| {
            let kinds = [Kind::CrashNode, Kind::Flush, Kind::Failover, Kind::Backup];
            kinds.contains(&fault.kind())
        };
        match self.node_trust() != NodeTrust::Unwatched && self.faults.iter().any(looks_new) {
            // A client that begins to watch later needs not wait for the whole of it again.
            true => self.longest_lease().plus(self.longest_lease()),
            false => Span::ZERO,
        }
    }

    /// For how long a waiter of a fair lock that is not heard of keeps its place.
    fn place(&self) -> Span {
        let workload = &self.workload;
        match workload.kind {
            WorkloadKind::Fair => {
                let seldom = Span::nanos(workload.poll_cap.as_nanos().saturating_mul(4));
                workload.lease.max(seldom)
            }
            _ => Span::ZERO,
        }
    }

    /// How long after the end of all work the last claim must be gone: a lease, a call, a few repetitions.
    pub(crate) fn rest_bound(&self) -> Span {
        let lease = self.longest_lease();
        let drift = Span::nanos(lease.as_nanos() / 50).plus(Span::millis(10));
        let patience = self.network.call_timeout.plus(Span::secs(1));
        lease
            .plus(self.clock_margin())
            .plus(drift)
            .plus(patience)
            .plus(self.place())
            .plus(self.clock_slack())
    }

    /// By how much clocks that are set, or run slowly, may delay the end of a claim or what a client waits for.
    fn clock_slack(&self) -> Span {
        let has_replicas = 0 < self.nodes.replicas;
        let slack = |fault: &Fault| match &fault.what {
            // A promoted replica expires what it has by its own clock, which was not set.
            FaultKind::Node {
                fault: NodeFault::Step { by },
                ..
            } if Span::ZERO < fault.at => {
                let by = by.as_nanos();
                (by < 0 || has_replicas).then_some(by.unsigned_abs())
            }
            FaultKind::Node {
                fault: NodeFault::Rate { rate_ppm },
                ..
            }
            | FaultKind::Client {
                fault: ClientFault::Rate { rate_ppm },
                ..
            } => {
                let rate = u64::from(rate_ppm.min(&0).unsigned_abs());
                let span = self.longest_lease().plus(self.workload.poll_cap).as_nanos();
                Some(span / 500_000 * rate)
            }
            _ => None,
        };
        Span::nanos(self.faults.iter().filter_map(slack).sum())
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

    /// How long after that the lock must have been acquired.
    #[must_use]
    pub fn progress_bound(&self) -> Span {
        let workload = &self.workload;
        let waits = workload.poll_cap.plus(workload.backoff_cap);
        let lease = self.longest_lease();
        let bound = lease.plus(lease).plus(workload.hold_most);
        let bound = bound
            .plus(self.network.call_timeout)
            .plus(waits)
            .plus(waits)
            .plus(self.quarantine())
            .plus(self.place())
            .plus(self.clock_slack());
        self.progress_within.unwrap_or(bound)
    }
}
