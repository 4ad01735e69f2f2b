//! Time bounds: how long after the faults the lock must make progress, and how long after the clients everything must
//! be at rest.

use quorlock::NodeTrust;

use super::{Cluster, LockKind, Outage, Plan, WorkloadKind};
use crate::fault::{ClientFault, Fault, FaultKind, Kind, NodeFault, Trigger};
use crate::time::SimTime;

impl Plan {
    /// Returns when the last fault has ended.
    #[must_use]
    pub fn heals_at(&self) -> SimTime {
        // If the end of a fault is not known before the run, the fault ends with the run at the latest.
        let ends = self.faults.iter();
        let ends = ends.map(|fault| fault.ends().unwrap_or(self.duration));
        let ends = ends.chain(self.outages.iter().map(Outage::ends));
        self.healed_at.or(ends.max()).unwrap_or(SimTime::ZERO)
    }

    /// Returns how long nodes may still be quarantined after the last fault.
    fn quarantine(&self) -> SimTime {
        let looks_new = |fault: &Fault| {
            let kind = fault.kind();
            (self.nodes.cluster.is_some() && kind.leads_to_election()) || kind.looks_new()
        };
        match self.node_trust() != NodeTrust::Unwatched && self.faults.iter().any(looks_new) {
            // Two leases, not one: a client that begins to watch later must not wait for the whole quarantine again.
            true => self.longest_lease().plus(self.longest_lease()),
            false => SimTime::ZERO,
        }
    }

    /// Returns how long a waiter of a fair lock keeps its place without renewing it.
    fn place(&self) -> SimTime {
        if !self.has_fair_locks() {
            return SimTime::ZERO;
        }
        // A node keeps a place for a lease or four polls, whichever is longer.
        let workload = &self.workload;
        let seldom = SimTime::nanos(workload.poll_cap.as_nanos().saturating_mul(4));
        workload.lease.max(seldom)
    }

    /// Returns how long a client may stay in a section while its calls take no longer than usual.
    fn longest_stay(&self) -> SimTime {
        let workload = &self.workload;
        let trip = self.network.max.plus(self.network.max);
        let names = match self.lock {
            LockKind::Multi => u64::from(workload.names.max(2)),
            LockKind::Single | LockKind::Redlock => 1,
        };
        let checks = u64::from(workload.checks.max(1));
        // How many calls the client waits for inside, and how many times its longest stay without them it is there.
        let (calls, stays) = match workload.kind {
            WorkloadKind::UnfencedWrites | WorkloadKind::FencedWrites => (checks * names, 1),
            WorkloadKind::FencedUpdates | WorkloadKind::RaisedUpdates => (2 * names, names),
            _ => (0, 1),
        };
        let stays = SimTime::nanos(stays.saturating_mul(workload.hold_max.as_nanos()));
        stays.plus(SimTime::nanos(calls.saturating_mul(trip.as_nanos())))
    }

    /// Returns how long clients that do not wait may pause before one of them finds the lock free.
    fn longest_pauses(&self) -> SimTime {
        let pause = self.workload.think_max;
        match self.workload.kind {
            // Counted twice: a try may be in vain just before the name becomes free.
            WorkloadKind::TryStorm => pause.plus(pause),
            // A lock that was handed over and is never adopted stays locked for a lease.
            WorkloadKind::HandingOver => self
                .longest_lease()
                .plus(self.clock_margin())
                .plus(pause)
                .plus(pause),
            _ => SimTime::ZERO,
        }
    }

    /// Returns how long after the end of all work the last claim may remain: a lease, a call, and a few retries.
    pub fn rest_bound(&self) -> SimTime {
        let lease = self
            .longest_lease()
            .max(self.lease_of(self.clients.saturating_sub(1)));
        // More than the drift allowance of 1 % and 2 ms, by which a claim may outlast its lease.
        let drift = SimTime::nanos(lease.as_nanos() / 50).plus(SimTime::millis(10));
        let patience = self.network.call_timeout.plus(SimTime::secs(1));
        lease
            .plus(self.clock_margin())
            .plus(drift)
            .plus(patience)
            .plus(self.place())
            .plus(self.stops())
            .plus(self.clock_slack())
            .plus(self.election())
    }

    /// Returns how long after the last fault a group may have two primaries, or none that clients can find.
    fn election(&self) -> SimTime {
        let cluster = self.nodes.cluster.as_ref();
        let rejoining = cluster.map_or(SimTime::ZERO, Cluster::rejoining);
        self.nodes.elections().map_or(rejoining, |group| {
            // Two elections: one that began earlier may promote a server that has failed since, and then another
            // election follows.
            let network = &self.network;
            let found = network.connect_timeout.plus(network.connect_timeout);
            let settled = group.settling().plus(group.settling()).plus(found);
            settled.plus(rejoining)
        })
    }

    /// Returns how long clients may be stopped in the middle of steps. If several stops of one client are due at the
    /// same time, they follow one another. An operation that the client has begun ends after the last of them.
    fn stops(&self) -> SimTime {
        let stops = self
            .faults
            .iter()
            .filter(|fault| fault.kind() == Kind::StopInside);
        stops.fold(SimTime::ZERO, |sum, stop| sum.plus(stop.lasts))
    }

    /// Returns by how much clocks that are set or run slowly may delay the end of a claim or of a wait.
    fn clock_slack(&self) -> SimTime {
        let has_replicas = 0 < self.nodes.replicas;
        let slack = |fault: &Fault| match &fault.what {
            // A promoted replica expires its keys by its own clock, which was not set.
            FaultKind::Node {
                fault: NodeFault::Step { by },
                replica,
                ..
            } if replica.is_some() || fault.when != Trigger::At(SimTime::ZERO) => {
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
                // Only a clock that runs slowly delays an end: each wait for a claim or a poll takes longer.
                let rate = u64::from(rate_ppm.min(&0).unsigned_abs());
                let span = self.longest_lease().plus(self.workload.poll_cap).as_nanos();
                Some(span / 500_000 * rate)
            }
            _ => None,
        };
        SimTime::nanos(self.faults.iter().filter_map(slack).sum())
    }

    /// Returns how long after the last fault the lock must be acquired at the latest.
    #[must_use]
    pub fn progress_bound(&self) -> SimTime {
        let workload = &self.workload;
        // Counted twice: a waiter may ask just before the name becomes free, and its next attempt may split the votes.
        let waits = workload.poll_cap.plus(workload.backoff_cap);
        let lease = self.longest_lease();
        // Nodes keep a claim that is left behind for its lease and for the clock margin, by default another lease.
        let kept = lease.plus(lease.max(self.clock_margin()));
        let bound = kept.plus(self.longest_stay());
        let bound = bound.plus(self.longest_pauses());
        let bound = bound
            .plus(self.network.call_timeout)
            .plus(waits)
            .plus(waits)
            .plus(self.quarantine())
            .plus(self.place())
            .plus(self.clock_slack())
            .plus(self.election());
        self.progress_within.unwrap_or(bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_of_one_client_may_come_one_after_another_before_everything_is_at_rest() {
        let mut plan = Plan::default();
        let without = plan.rest_bound();
        let stop = Fault::of_client(SimTime::ZERO, 0, ClientFault::StopInside { nth: 1 });
        plan.faults = vec![stop.lasting(SimTime::millis(600)); 16];
        assert_eq!(plan.rest_bound(), without.plus(SimTime::millis(9_600)));
    }

    #[test]
    fn a_client_that_writes_often_may_stay_in_its_section_for_much_longer_than_its_pauses_take() {
        let mut plan = Plan::default();
        let without = plan.progress_bound();
        plan.workload.checks = 40;
        assert_eq!(plan.progress_bound(), without);
        // Each of 40 writes takes up to 5 ms to the store, and as long back.
        plan.workload.kind = WorkloadKind::FencedWrites;
        assert_eq!(plan.progress_bound(), without.plus(SimTime::millis(400)));
        plan.lock = LockKind::Multi;
        plan.workload.names = 3;
        assert_eq!(plan.progress_bound(), without.plus(SimTime::millis(1_200)));
    }

    #[test]
    fn a_claim_that_is_left_behind_stays_for_a_margin_that_is_longer_than_its_lease() {
        let mut plan = Plan::default();
        let lease = plan.longest_lease();
        plan.remedies.margin = Some(lease);
        let without = plan.progress_bound();
        plan.remedies.margin = Some(lease.plus(SimTime::millis(300)));
        assert_eq!(plan.progress_bound(), without.plus(SimTime::millis(300)));
    }

    #[test]
    fn clients_that_do_not_wait_may_all_pause_when_the_name_becomes_free() {
        let mut plan = Plan::default();
        let without = plan.progress_bound();
        plan.workload.kind = WorkloadKind::TryStorm;
        let pauses = SimTime::millis(2 * 13);
        assert_eq!(plan.progress_bound(), without.plus(pauses));
    }
}
