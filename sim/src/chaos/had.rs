//! The faults that are possible on real machines, and the reasons why the others are not.

use super::plain::Plain;
use crate::plan::fault::{
    ClientFault, Fault, FaultKind, Kind, NodeFault, ServerError, Suspended, Trigger,
};
use crate::plan::{LockKind, Plan, WorkloadKind};

/// Returns the reason why a kind of fault is impossible on real servers, or `None` if it is possible.
pub(crate) const fn lacks(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Loss | Kind::Duplicate | Kind::Reorder => {
            Some("TCP sends again what is lost, and delivers everything once and in order")
        }
        Kind::SuspendClient => Some("a process cannot suspend its machine"),
        Kind::ClientRate | Kind::ClientStep => Some("clients read the clock of this machine"),
        Kind::Backup | Kind::FreeBacklog => Some("nodes are not backed up here yet"),
        Kind::IsolatePrimary
        | Kind::SentinelFailover
        | Kind::CrashSentinel
        | Kind::PauseSentinel
        | Kind::StaleSentinel => Some("there are no sentinels here yet"),
        Kind::MigrateSlot | Kind::ClusterFailover => Some("there are no clusters here yet"),
        _ => None,
    }
}

/// Returns the reason why a fault of a plan is impossible on real servers, or `None` if it is possible.
pub(crate) fn lacks_fault(fault: &Fault) -> Option<&'static str> {
    if matches!(fault.when, Trigger::After(_)) {
        return Some("messages are not read on their way");
    }
    match &fault.what {
        // The clock of a stopped process continues, as `CLOCK_BOOTTIME` does in a suspended machine.
        FaultKind::Client {
            fault: ClientFault::Suspend {
                clock: Suspended::Counts,
            },
            ..
        } => None,
        FaultKind::Node {
            replica: Some(_), ..
        } => Some("faults strike the primary here"),
        FaultKind::Node {
            fault: NodeFault::Error {
                error: ServerError::Loading,
            },
            ..
        } => Some("a server loads what little it has at once"),
        _ => lacks(fault.kind()),
    }
}

/// Returns the reason why a plan cannot be run on real servers, or `None` if it can.
pub(crate) fn lacks_plan(plan: &Plan) -> Option<String> {
    let is_had = [
        WorkloadKind::MutualExclusion,
        WorkloadKind::UnfencedWrites,
        WorkloadKind::FencedWrites,
        WorkloadKind::FencedUpdates,
        WorkloadKind::RaisedUpdates,
        WorkloadKind::LongWork,
        WorkloadKind::Fair,
        WorkloadKind::ReadWrite,
    ];
    let kind = plan.workload.kind;
    match plan.lock {
        _ if !is_had.contains(&kind) => {
            let kinds: Vec<&str> = is_had.iter().map(|kind| kind.name()).collect();
            let (kind, kinds) = (kind.name(), kinds.join(", "));
            Some(format!(
                "workload.kind: chaos has no work of kind {kind}, only {kinds}"
            ))
        }
        LockKind::Multi => {
            Some("lock: chaos has no lock of several names; use single or redlock".to_owned())
        }
        LockKind::Redlock if kind == WorkloadKind::Fair => Some(
            "lock: several queues have no common order; a fair lock is one of single".to_owned(),
        ),
        _ if plan.nodes.cluster.is_some() => {
            Some("nodes.cluster: chaos has no clusters; leave it out".to_owned())
        }
        _ if plan.nodes.sentinels.is_some() => {
            Some("nodes.sentinels: chaos has no sentinels; leave them out".to_owned())
        }
        _ if !plan.variant.has_product_clients() && !Plain::HAD.contains(&plan.variant) => {
            let had: Vec<&str> = Plain::HAD.iter().map(|variant| variant.name()).collect();
            let had = had.join(", ");
            Some(format!("variant: chaos has only product, {had}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Sentinels;
    use crate::plan::variant::Variant;

    #[test]
    fn a_plan_that_cannot_be_run_says_which_field_it_is() {
        let said = |change: fn(&mut Plan)| {
            let mut plan = Plan::default();
            change(&mut plan);
            lacks_plan(&plan).map(|why| why.split(':').next().unwrap_or_default().to_owned())
        };
        let said = |change| said(change).unwrap_or_default();
        assert_eq!(said(|_| {}), "");
        assert_eq!(said(|plan| plan.variant = Variant::SetNx), "");
        assert_eq!(said(|plan| plan.variant = Variant::HalfQuorum), "variant");
        assert_eq!(
            said(|plan| plan.workload.kind = WorkloadKind::CompetingTasks),
            "workload.kind"
        );
        assert_eq!(said(|plan| plan.workload.kind = WorkloadKind::Fair), "lock");
        assert_eq!(said(|plan| plan.lock = LockKind::Multi), "lock");
        assert_eq!(
            said(|plan| plan.nodes.sentinels = Some(Sentinels::default())),
            "nodes.sentinels"
        );
    }
}
