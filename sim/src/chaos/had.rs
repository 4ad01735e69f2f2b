//! Which faults there are on real machines, and why others are not.

use crate::plan::fault::{
    ClientFault, Fault, FaultKind, Kind, NodeFault, ServerError, Suspended, Trigger,
};

/// Why a kind of fault cannot be had here; `None` where it can.
pub(crate) const fn lacks(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Loss | Kind::Duplicate | Kind::Reorder => {
            Some("TCP sends again what is lost, and delivers everything once and in order")
        }
        Kind::SuspendClient => Some("a process cannot suspend its machine"),
        Kind::ClientRate | Kind::ClientStep => Some("clients read the clock of this machine"),
        Kind::SlowReplication | Kind::Failover => Some("there are no replicas here yet"),
        Kind::Backup | Kind::FreeBacklog => Some("nodes are not backed up here yet"),
        Kind::IsolatePrimary
        | Kind::SentinelFailover
        | Kind::CrashSentinel
        | Kind::PauseSentinel
        | Kind::StaleSentinel => Some("there are no sentinels here yet"),
        _ => None,
    }
}

/// Why a fault of a plan cannot be had here; `None` where it can.
pub(crate) fn lacks_fault(fault: &Fault) -> Option<&'static str> {
    if matches!(fault.when, Trigger::After(_)) {
        return Some("messages are not read on their way");
    }
    match &fault.what {
        // The clock of a stopped process goes on, as CLOCK_BOOTTIME does in a machine that is suspended.
        FaultKind::Client {
            fault: ClientFault::Suspend {
                clock: Suspended::Counts,
            },
            ..
        } => None,
        FaultKind::Node {
            replica: Some(_), ..
        } => Some("there are no replicas here yet"),
        FaultKind::Node {
            fault: NodeFault::Error {
                error: ServerError::Loading,
            },
            ..
        } => Some("a server loads what little it has at once"),
        _ => lacks(fault.kind()),
    }
}
