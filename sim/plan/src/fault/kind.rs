//! Kinds of fault, by their names.

use serde::{Deserialize, Serialize};

use super::{ClientFault, Fault, FaultKind, LinkFault, NodeFault};

/// A kind of fault, with its name on the command line. **Append only**: plans are drawn kind by kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "each variant has the name of its fault")]
pub enum Kind {
    Cut,
    Loss,
    Delay,
    HoldBack,
    Duplicate,
    Reorder,
    Reset,
    PauseClient,
    PauseInside,
    CrashClient,
    SuspendClient,
    Cancel,
    ClientRate,
    ClientStep,
    PauseNode,
    CrashNode,
    Flush,
    Evict,
    ServerError,
    ForgetScripts,
    NodeRate,
    NodeStep,
    SlowReplication,
    Failover,
    Backup,
    IsolatePrimary,
    SentinelFailover,
    CrashSentinel,
    PauseSentinel,
    StaleSentinel,
    StopInside,
    PowerLoss,
    Swallow,
    StallNode,
    FreeBacklog,
    Misroute,
    MigrateSlot,
    ClusterFailover,
    RevokeKeys,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 39] = [
        Kind::Cut,
        Kind::Loss,
        Kind::Delay,
        Kind::HoldBack,
        Kind::Duplicate,
        Kind::Reorder,
        Kind::Reset,
        Kind::PauseClient,
        Kind::PauseInside,
        Kind::CrashClient,
        Kind::SuspendClient,
        Kind::Cancel,
        Kind::ClientRate,
        Kind::ClientStep,
        Kind::PauseNode,
        Kind::CrashNode,
        Kind::Flush,
        Kind::Evict,
        Kind::ServerError,
        Kind::ForgetScripts,
        Kind::NodeRate,
        Kind::NodeStep,
        Kind::SlowReplication,
        Kind::Failover,
        Kind::Backup,
        Kind::IsolatePrimary,
        Kind::SentinelFailover,
        Kind::CrashSentinel,
        Kind::PauseSentinel,
        Kind::StaleSentinel,
        Kind::StopInside,
        Kind::PowerLoss,
        Kind::Swallow,
        Kind::StallNode,
        Kind::FreeBacklog,
        Kind::Misroute,
        Kind::MigrateSlot,
        Kind::ClusterFailover,
        Kind::RevokeKeys,
    ];

    /// The kinds that need groups with sentinels.
    pub const OF_GROUPS: [Kind; 5] = [
        Kind::IsolatePrimary,
        Kind::SentinelFailover,
        Kind::CrashSentinel,
        Kind::PauseSentinel,
        Kind::StaleSentinel,
    ];

    /// The kinds that need a cluster.
    pub const OF_CLUSTERS: [Kind; 2] = [Kind::MigrateSlot, Kind::ClusterFailover];

    /// Returns whether the fault may strike a replica instead of its primary.
    pub const fn strikes_replicas(self) -> bool {
        matches!(
            self,
            Kind::PauseNode | Kind::CrashNode | Kind::NodeRate | Kind::NodeStep
        )
    }

    /// Returns every kind except these, in the same order.
    ///
    /// # Panics
    /// Panics unless `N` is the number of kinds that are left.
    #[expect(
        clippy::indexing_slicing,
        reason = "a constant function cannot use iterators"
    )]
    pub const fn all_but<const N: usize>(left_out: &[Kind]) -> [Kind; N] {
        let mut rest = [Kind::Cut; N];
        let (mut from, mut to) = (0, 0);
        while from < Kind::ALL.len() {
            let kind = Kind::ALL[from];
            let mut index = 0;
            while index < left_out.len() && left_out[index] as u8 != kind as u8 {
                index += 1;
            }
            if index == left_out.len() {
                rest[to] = kind;
                to += 1;
            }
            from += 1;
        }
        assert!(to == N);
        rest
    }

    /// Returns the name of the kind.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Cut => "cut",
            Kind::Loss => "loss",
            Kind::Delay => "delay",
            Kind::HoldBack => "hold-back",
            Kind::Duplicate => "duplicate",
            Kind::Reorder => "reorder",
            Kind::Reset => "reset",
            Kind::PauseClient => "pause-client",
            Kind::PauseInside => "pause-inside",
            Kind::CrashClient => "crash-client",
            Kind::SuspendClient => "suspend-client",
            Kind::Cancel => "cancel",
            Kind::ClientRate => "client-rate",
            Kind::ClientStep => "client-step",
            Kind::PauseNode => "pause-node",
            Kind::CrashNode => "crash-node",
            Kind::Flush => "flush",
            Kind::Evict => "evict",
            Kind::ServerError => "server-error",
            Kind::ForgetScripts => "forget-scripts",
            Kind::NodeRate => "node-rate",
            Kind::NodeStep => "node-step",
            Kind::SlowReplication => "slow-replication",
            Kind::Failover => "failover",
            Kind::Backup => "backup",
            Kind::IsolatePrimary => "isolate-primary",
            Kind::SentinelFailover => "sentinel-failover",
            Kind::CrashSentinel => "crash-sentinel",
            Kind::PauseSentinel => "pause-sentinel",
            Kind::StaleSentinel => "stale-sentinel",
            Kind::StopInside => "stop-inside",
            Kind::PowerLoss => "power-loss",
            Kind::Swallow => "swallow",
            Kind::StallNode => "stall-node",
            Kind::FreeBacklog => "free-backlog",
            Kind::Misroute => "misroute",
            Kind::MigrateSlot => "migrate-slot",
            Kind::ClusterFailover => "cluster-failover",
            Kind::RevokeKeys => "revoke-keys",
        }
    }
}

impl Fault {
    /// Returns the kind of the fault.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match &self.what {
            FaultKind::Link { fault, .. } => fault.kind(),
            FaultKind::Client { fault, .. } => fault.kind(),
            FaultKind::Node { fault, .. } => fault.kind(),
            FaultKind::Backup { .. } => Kind::Backup,
        }
    }
}

impl LinkFault {
    fn kind(self) -> Kind {
        match self {
            LinkFault::Cut => Kind::Cut,
            LinkFault::Loss { .. } => Kind::Loss,
            LinkFault::Delay { .. } => Kind::Delay,
            LinkFault::HoldBack => Kind::HoldBack,
            LinkFault::Duplicate { .. } => Kind::Duplicate,
            LinkFault::Reorder { .. } => Kind::Reorder,
            LinkFault::Reset { .. } => Kind::Reset,
            LinkFault::Swallow => Kind::Swallow,
        }
    }
}

impl ClientFault {
    fn kind(self) -> Kind {
        match self {
            ClientFault::Pause => Kind::PauseClient,
            ClientFault::PauseInside { .. } => Kind::PauseInside,
            ClientFault::StopInside { .. } => Kind::StopInside,
            ClientFault::Crash => Kind::CrashClient,
            ClientFault::Suspend { .. } => Kind::SuspendClient,
            ClientFault::Cancel { .. } => Kind::Cancel,
            ClientFault::Rate { .. } => Kind::ClientRate,
            ClientFault::Step { .. } => Kind::ClientStep,
        }
    }
}

impl NodeFault {
    fn kind(&self) -> Kind {
        match self {
            NodeFault::Pause => Kind::PauseNode,
            NodeFault::Crash => Kind::CrashNode,
            NodeFault::PowerLoss { .. } => Kind::PowerLoss,
            NodeFault::Flush => Kind::Flush,
            NodeFault::Evict { .. } => Kind::Evict,
            NodeFault::Error { .. } => Kind::ServerError,
            NodeFault::ForgetScripts => Kind::ForgetScripts,
            NodeFault::Rate { .. } => Kind::NodeRate,
            NodeFault::Step { .. } => Kind::NodeStep,
            NodeFault::SlowReplication { .. } => Kind::SlowReplication,
            NodeFault::Failover { .. } => Kind::Failover,
            NodeFault::IsolatePrimary { .. } => Kind::IsolatePrimary,
            NodeFault::SentinelFailover => Kind::SentinelFailover,
            NodeFault::CrashSentinel { .. } => Kind::CrashSentinel,
            NodeFault::PauseSentinel { .. } => Kind::PauseSentinel,
            NodeFault::StaleSentinel { .. } => Kind::StaleSentinel,
            NodeFault::Stall { .. } => Kind::StallNode,
            NodeFault::FreeBacklog => Kind::FreeBacklog,
            NodeFault::Misroute { .. } => Kind::Misroute,
            NodeFault::MigrateSlot { .. } => Kind::MigrateSlot,
            NodeFault::ClusterFailover { .. } => Kind::ClusterFailover,
            NodeFault::RevokeKeys { .. } => Kind::RevokeKeys,
        }
    }
}
