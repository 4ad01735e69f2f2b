//! A few seeds of every workload with every lock, deployment and lane: in the lane over sockets, which takes far more
//! time, a third of the combinations. `sim/sweep.sh` runs all of them with many seeds.

use std::num::NonZeroUsize;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};

use quorlock_sim_check::run::Verdict;
use quorlock_sim_lab::simulation::run;
use quorlock_sim_plan::generator::{Deployment, PlanGenerator};
use quorlock_sim_plan::{Lane, LockKind, WorkloadKind};

/// Returns the generators of all combinations that a lane supports. Some work needs an owner or one queue, which not every
/// lock has.
fn combinations(lane: Lane) -> Vec<PlanGenerator> {
    let mut all = Vec::new();
    for lock in [LockKind::Single, LockKind::Multi, LockKind::Redlock] {
        for deployment in [
            Deployment::Servers,
            Deployment::Groups,
            Deployment::Clusters,
            Deployment::Stores,
        ] {
            for workload in WorkloadKind::ALL {
                let workload = Some(workload);
                all.push(PlanGenerator {
                    lane,
                    deployment,
                    lock,
                    workload,
                    ..PlanGenerator::default()
                });
            }
        }
    }
    all.retain(|generator| {
        generator.check().is_ok() && quorlock_sim_plan::check(&generator.plan(0)).is_ok()
    });
    all
}

/// Runs each combination with this many seeds of its own, none of which may break a property.
fn run_each(all: &[PlanGenerator], seeds: u64) {
    let (next, holds) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        while let Some((index, generator)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            all.get(index).map(|generator| (index as u64, generator))
        } {
            // Not the same seeds for all: many choices depend on the seed alone.
            for seed in (index * seeds..).take(seeds as usize) {
                let plan = generator.plan(seed);
                quorlock_sim_plan::check(&plan).expect("a plan that can be run");
                let ended = run(&Rc::new(plan));
                let is_fine = !matches!(ended.verdict, Verdict::Violated(_));
                assert!(is_fine, "seed {seed} of {generator:?}: {:?}", ended.verdict);
                holds.fetch_add(ended.history.holds as usize, Ordering::Relaxed);
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    assert!(all.len() < holds.into_inner(), "too few holds");
}

#[test]
fn no_combination_in_the_fast_lane_breaks_a_property() {
    let mut servers = combinations(Lane::Fast);
    servers.retain(|generator| generator.deployment == Deployment::Servers);
    assert_eq!(servers.len(), 48);
    run_each(&servers, 10);
}

#[test]
fn no_combination_on_stores_breaks_a_property() {
    let mut stores = combinations(Lane::Fast);
    stores.retain(|generator| generator.deployment == Deployment::Stores);
    assert_eq!(stores.len(), 48);
    run_each(&stores, 2);
}

#[test]
fn no_combination_over_sockets_breaks_a_property() {
    let all = combinations(Lane::Turmoil);
    assert_eq!(all.len(), 129);
    let of = |kind| {
        let all = all.iter().filter(move |it| it.workload == Some(kind));
        all.step_by(3).cloned()
    };
    let some: Vec<_> = WorkloadKind::ALL.into_iter().flat_map(of).collect();
    run_each(&some, 1);
}
