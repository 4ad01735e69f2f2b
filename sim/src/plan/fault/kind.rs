//! Kinds of fault, by their names.

use serde::{Deserialize, Serialize};

use super::Fault;

/// A kind of fault, as named on the command line. **Append only**: plans are drawn kind by kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "each is the kind of the fault of its name")]
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
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 25] = [
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
    ];

    /// Its name.
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
        }
    }
}

impl Fault {
    /// Which kind it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Fault::Cut { .. } => Kind::Cut,
            Fault::Loss { .. } => Kind::Loss,
            Fault::Delay { .. } => Kind::Delay,
            Fault::HoldBack { .. } => Kind::HoldBack,
            Fault::Duplicate { .. } => Kind::Duplicate,
            Fault::Reorder { .. } => Kind::Reorder,
            Fault::Reset { .. } => Kind::Reset,
            Fault::PauseClient { .. } => Kind::PauseClient,
            Fault::PauseInside { .. } => Kind::PauseInside,
            Fault::CrashClient { .. } => Kind::CrashClient,
            Fault::SuspendClient { .. } => Kind::SuspendClient,
            Fault::Cancel { .. } => Kind::Cancel,
            Fault::ClientRate { .. } => Kind::ClientRate,
            Fault::ClientStep { .. } => Kind::ClientStep,
            Fault::PauseNode { .. } => Kind::PauseNode,
            Fault::CrashNode { .. } => Kind::CrashNode,
            Fault::Flush { .. } => Kind::Flush,
            Fault::Evict { .. } => Kind::Evict,
            Fault::ServerError { .. } => Kind::ServerError,
            Fault::ForgetScripts { .. } => Kind::ForgetScripts,
            Fault::NodeRate { .. } => Kind::NodeRate,
            Fault::NodeStep { .. } => Kind::NodeStep,
            Fault::SlowReplication { .. } => Kind::SlowReplication,
            Fault::Failover { .. } => Kind::Failover,
            Fault::Backup { .. } => Kind::Backup,
        }
    }
}
