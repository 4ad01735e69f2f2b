//! Exempts plans from properties that they break although the lock does all that it states.

use crate::fault::{Fault, Forgets, Kind};
use crate::property::Property;
use crate::servers::NodeKind;
use crate::{Persistence, Plan, WorkloadKind};

/// Adds the exemptions of a plan whose faults are inside the stated assumptions.
pub(super) fn add(plan: &mut Plan) {
    let Plan {
        nodes,
        workload,
        faults,
        not_demanded,
        ..
    } = plan;
    let mut exempt = |property| {
        if !not_demanded.contains(&property) {
            not_demanded.push(property);
        }
    };
    let forgets = |fault: &Fault| match fault.kind().forgets() {
        Forgets::Nothing => false,
        Forgets::Unsaved => nodes.persistence != Persistence::EveryWrite,
        Forgets::Saved => true,
    };
    // A store without a clock believes that of the client which asks for a token.
    let believes_clients = nodes.kinds.contains(&NodeKind::Consensus);
    let is_set = |fault: &Fault| match fault.kind() {
        Kind::NodeStep => true,
        Kind::ClientStep => believes_clients,
        _ => false,
    };
    if faults.iter().any(forgets) && faults.iter().any(is_set) {
        // A token that only a bare majority accepted is lost if one of its nodes loses its counter. After that, the
        // order of tokens depends on the clocks of the nodes.
        exempt(Property::Fencing);
        if workload.kind == WorkloadKind::Leading {
            exempt(Property::Terms);
        }
    }
    // A client that is stopped does not notice the loss of its lock. A store that does not learn of the next token from
    // the first request of its holder accepts a late write of the former one.
    if matches!(
        workload.kind,
        WorkloadKind::UnfencedWrites | WorkloadKind::FencedUpdates
    ) {
        exempt(Property::Usage);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::PlanGenerator;

    /// A client reads and is stopped. Another one acquires and reads. The first one writes, and the other one
    /// overwrites that.
    #[test]
    fn only_work_whose_store_learns_of_a_token_late_may_be_overtaken() {
        for kind in WorkloadKind::ALL {
            let generator = PlanGenerator {
                workload: Some(kind),
                ..PlanGenerator::default()
            };
            let may_be_overtaken = [WorkloadKind::UnfencedWrites, WorkloadKind::FencedUpdates];
            for seed in 0..20 {
                let plan = generator.plan(seed);
                let is_exempt = plan.not_demanded.contains(&Property::Usage);
                assert_eq!(is_exempt, may_be_overtaken.contains(&kind), "{kind:?}");
            }
        }
    }
}
