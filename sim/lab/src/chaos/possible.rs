//! The faults that are possible on real machines, and the reasons why the others are not.

use super::simple_locks::Plain;
use quorlock_sim_plan::fault::{Fault, FaultKind, Kind, Needs, Trigger};
use quorlock_sim_plan::variant::Variant;
use quorlock_sim_plan::{LockKind, Nodes, Plan, WorkloadKind};

/// Returns the reason why a fault is impossible on real servers with these nodes, or `None` if it is possible.
pub(crate) fn lacks_fault(fault: &Fault, nodes: &Nodes) -> Option<&'static str> {
    if matches!(fault.when, Trigger::After(_)) {
        return Some("messages are not read in transit here");
    }
    let kind = fault.kind();
    kind.lacks_real_servers().or(match &fault.what {
        FaultKind::Node { .. } | FaultKind::Nodes { .. } if !nodes.are_groups() => None,
        FaultKind::Node { replica, .. } if replica.is_some() => {
            Some("faults of groups and shards strike their primaries")
        }
        FaultKind::Node { .. } | FaultKind::Nodes { .. } if !is_of_elected(kind) => Some(
            "a Sentinel group or a cluster has only faults that lead to elections, and moved slots",
        ),
        FaultKind::Node { .. }
        | FaultKind::Nodes { .. }
        | FaultKind::Link { .. }
        | FaultKind::Client { .. } => None,
    })
}

/// Returns whether real nodes that elect their primaries have a kind of fault, unless the other deployment needs it.
fn is_of_elected(kind: Kind) -> bool {
    kind.leads_to_election() || matches!(kind.needs(), Needs::Sentinels | Needs::Cluster)
}

/// Returns a fault of one node of each kind that needs what `is_met` accepts, and whether the fault is possible.
#[cfg(test)]
pub(super) fn drawn_where(
    nodes: &Nodes,
    is_met: impl Fn(Needs) -> bool,
) -> Vec<(quorlock_sim_plan::fault::NodeFault, bool)> {
    use quorlock_sim_plan::draw::{Draw, Purpose};
    let plan = Plan::default();
    let kinds = Kind::ALL.into_iter().filter(|kind| is_met(kind.needs()));
    let drawn = kinds.filter_map(|kind| {
        let mut generator = quorlock_sim_plan::generator::FaultGenerator {
            draw: &mut Draw::new(1, Purpose::Plan, 0),
            plan: &plan,
            inside: false,
        };
        let drawn = generator.fault(kind);
        let is_possible = lacks_fault(&drawn, nodes).is_none();
        match drawn.what {
            FaultKind::Node { fault, .. } => Some((fault, is_possible)),
            _ => None,
        }
    });
    drawn.collect()
}

/// The kinds of work that clients of storms do.
const WORK: [WorkloadKind; 10] = [
    WorkloadKind::MutualExclusion,
    WorkloadKind::UnfencedWrites,
    WorkloadKind::FencedWrites,
    WorkloadKind::FencedUpdates,
    WorkloadKind::RaisedUpdates,
    WorkloadKind::LongWork,
    WorkloadKind::Fair,
    WorkloadKind::ReadWrite,
    WorkloadKind::Overlapping,
    WorkloadKind::Leading,
];

/// Returns the reason why a plan cannot be run on real servers, or `None` if it can.
pub(crate) fn lacks_plan(plan: &Plan) -> Option<String> {
    let kind = plan.workload.kind;
    match plan.lock {
        _ if !WORK.contains(&kind) => {
            let kinds: Vec<&str> = WORK.iter().map(|kind| kind.name()).collect();
            let (kind, kinds) = (kind.name(), kinds.join(", "));
            Some(format!(
                "workload.kind: chaos has no work of kind {kind}, only {kinds}"
            ))
        }
        LockKind::Multi if !plan.variant.has_product_clients() => Some(
            "variant: only the clients of the product lock names on different nodes together".to_owned(),
        ),
        LockKind::Multi if kind == WorkloadKind::Leading => {
            Some("lock: a leader holds one name; use single or redlock".to_owned())
        }
        LockKind::Redlock if kind == WorkloadKind::Fair => Some(
            "lock: the queues of several nodes have no common order; use single for a fair lock"
                .to_owned(),
        ),
        _ if plan.nodes.sentinels.is_some() && !plan.variant.has_product_clients() => Some(
            "variant: only the clients of the product find the primary of a Sentinel group".to_owned(),
        ),
        _ if plan.nodes.sentinels.is_some() && plan.faults.iter().any(is_link) => Some(
            "nodes.sentinels: clients reach the servers of a Sentinel group directly; leave out faults of links"
                .to_owned(),
        ),
        _ if plan.nodes.cluster.is_some() && !plan.variant.has_product_clients() => Some(
            "variant: only the clients of the product find the owners of the slots of a cluster".to_owned(),
        ),
        _ if plan.nodes.cluster.is_some() && plan.faults.iter().any(is_link) => Some(
            "nodes.cluster: clients reach the nodes of a cluster directly; leave out faults of links"
                .to_owned(),
        ),
        _ if !OURS.contains(&plan.variant) && !Plain::HAD.contains(&plan.variant) => {
            let had = OURS.iter().chain(&Plain::HAD);
            let had: Vec<&str> = had.map(|variant| variant.name()).collect();
            Some(format!("variant: chaos has only {}", had.join(", ")))
        }
        _ if plan.variant == Variant::WriterBesideReaders && kind != WorkloadKind::ReadWrite => {
            Some("variant: readers and writers are in work of kind read-write only".to_owned())
        }
        _ if Plain::HAD.contains(&plan.variant) && Plain::LACKS.contains(&kind) => Some(format!(
            "variant: {} has no work of kind {}",
            plan.variant,
            kind.name()
        )),
        _ => None,
    }
}

/// The variants with the product's clients. Servers run the product's own scripts, so flaws of nodes are not available,
/// except that a writer which does not exclude readers can be had by locking another name.
const OURS: [Variant; 2] = [Variant::Product, Variant::WriterBesideReaders];

fn is_link(fault: &Fault) -> bool {
    matches!(fault.what, FaultKind::Link { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorlock_sim_plan::fault::{Direction, LinkFault};
    use quorlock_sim_plan::time::SimTime;
    use quorlock_sim_plan::{Cluster, Sentinels};

    /// Returns the field that a changed plan lacks, or nothing.
    fn said(change: impl FnOnce(&mut Plan)) -> String {
        let mut plan = Plan::default();
        change(&mut plan);
        let why = lacks_plan(&plan).unwrap_or_default();
        why.split(':').next().unwrap_or_default().to_owned()
    }

    #[test]
    fn a_plan_that_cannot_be_run_says_which_field_it_is() {
        assert_eq!(said(|_| {}), "");
        assert_eq!(said(|plan| plan.variant = Variant::SetNx), "");
        assert_eq!(said(|plan| plan.variant = Variant::HalfQuorum), "variant");
        assert_eq!(
            said(|plan| plan.workload.kind = WorkloadKind::CompetingTasks),
            "workload.kind"
        );
        assert_eq!(said(|plan| plan.workload.kind = WorkloadKind::Fair), "lock");
        // A flaw of nodes needs nodes that have it.
        assert_eq!(
            said(|plan| plan.variant = Variant::ZombieReaders),
            "variant"
        );
        let beside = |plan: &mut Plan| plan.variant = Variant::WriterBesideReaders;
        assert_eq!(said(beside), "variant");
        let beside_readers = |plan: &mut Plan| {
            plan.variant = Variant::WriterBesideReaders;
            plan.workload.kind = WorkloadKind::ReadWrite;
        };
        assert_eq!(said(beside_readers), "");
        let without_modes = |plan: &mut Plan| {
            plan.variant = Variant::SetNx;
            plan.workload.kind = WorkloadKind::ReadWrite;
        };
        assert_eq!(said(without_modes), "variant");
        for kind in [WorkloadKind::Leading, WorkloadKind::Overlapping] {
            assert_eq!(said(|plan| plan.workload.kind = kind), "", "{kind:?}");
        }
    }

    #[test]
    fn groups_and_clusters_have_no_faults_of_links() {
        assert_eq!(
            said(|plan| plan.nodes.sentinels = Some(Sentinels::default())),
            ""
        );
        assert_eq!(
            said(|plan| plan.nodes.cluster = Some(Cluster::default())),
            ""
        );
        let without_product = |plan: &mut Plan| {
            plan.nodes.cluster = Some(Cluster::default());
            plan.variant = Variant::SetNx;
        };
        assert_eq!(said(without_product), "variant");
        let cut = Fault {
            when: Trigger::At(SimTime::ZERO),
            lasts: SimTime::millis(1),
            what: FaultKind::Link {
                clients: vec![0],
                nodes: vec![0],
                direction: Direction::Both,
                fault: LinkFault::Cut,
            },
        };
        let of_group = said(|plan| {
            plan.nodes.sentinels = Some(Sentinels::default());
            plan.faults.push(cut.clone());
        });
        assert_eq!(of_group, "nodes.sentinels");
        let of_cluster = said(|plan| {
            plan.nodes.cluster = Some(Cluster::default());
            plan.faults.push(cut.clone());
        });
        assert_eq!(of_cluster, "nodes.cluster");
        assert_eq!(said(|plan| plan.faults.push(cut)), "");
    }

    #[test]
    fn only_the_product_locks_names_on_different_nodes() {
        let plan = Plan {
            lock: LockKind::Multi,
            ..Plan::default()
        };
        assert_eq!(lacks_plan(&plan), None);
        let mut leading = plan.clone();
        leading.workload.kind = WorkloadKind::Leading;
        assert!(lacks_plan(&leading).is_some_and(|why| why.starts_with("lock: a leader")));
        let simple = Plan {
            variant: Variant::SetNx,
            ..plan
        };
        assert!(lacks_plan(&simple).is_some_and(|why| why.starts_with("variant")));
    }

    #[test]
    fn faults_of_a_cluster_are_possible_unless_they_cut_its_nodes_apart() {
        for kind in Kind::ALL {
            let lacks = kind.lacks_real_servers();
            match kind.needs() {
                Needs::Cluster => assert_eq!(lacks, None, "{kind:?}"),
                Needs::Elections => assert!(lacks.is_some(), "{kind:?}"),
                _ => {}
            }
        }
    }
}
