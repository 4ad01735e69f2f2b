//! The storms that a command line selects: some classes against some locks.

use std::sync::Arc;
use std::time::Duration;

use super::super::CliError;
use super::asked::{Asked, classes, locks};
use super::control::{control_of, is_of_work, locks_of};
use super::other_library::{self, APART, Library};
use crate::chaos::run::{self as chaos_run, Observed};
use crate::study::matrix::{Candidate, Class, Storm, StormWork};
use crate::study::predicted::Expected;
use crate::study::progress::{self, Counting};
use quorlock_sim_plan::Plan;
use quorlock_sim_plan::fault::Kind;
use quorlock_sim_plan::time::SimTime;

/// The options that select storms.
pub(super) struct Storms {
    pub(super) class: Vec<String>,
    pub(super) work: StormWork,
    /// The library of every second client, if that is not this crate.
    pub(super) beside: Option<Library>,
    /// The locks. If empty, a default set and the control of the class.
    pub(super) lock: Vec<String>,
    pub(super) minutes: f64,
    pub(super) scale: u32,
    pub(super) seed: u64,
}

/// Parses the length of a storm, in minutes.
pub(super) fn minutes(text: &str) -> Result<f64, String> {
    let minutes: f64 = text
        .parse()
        .map_err(|_| format!("{text:?} is not a number of minutes: write for example 5 or 0.5"))?;
    match (0.1..=600.0).contains(&minutes) {
        true => Ok(minutes),
        false => Err("a storm must last at least 0.1 and at most 600 minutes".to_owned()),
    }
}

/// Returns whether real machines support a kind of fault.
fn has(kind: Kind) -> bool {
    kind.lacks_real_servers().is_none()
}

impl Storms {
    /// Returns the storms, class after class, each with its locks. If no locks are named, these are `usual` and the
    /// control of the class.
    pub(super) fn asked(&self, usual: &[&str]) -> Result<Vec<Asked>, CliError> {
        let named = classes().filter(|class| self.class.iter().any(|id| id == class.id));
        let mut asked = Vec::new();
        for class in named {
            if !class.is_had(has) {
                let why = class
                    .kinds()
                    .first()
                    .and_then(|kind| kind.lacks_real_servers());
                let why = format!("{}: {}", class.id, why.unwrap_or_default());
                return Err(CliError::Other(why));
            }
            if let Some(library) = self.beside {
                asked.extend(other_library::asked(
                    library,
                    class,
                    self.storm(self.seed),
                    &self.lock,
                )?);
                continue;
            }
            if self.lock.iter().any(|id| id == APART) {
                let why = format!("{}, {APART}: this lock needs --beside", class.id);
                return Err(CliError::Other(why));
            }
            let is_asked = |lock: &&Candidate| match self.lock.is_empty() {
                true => {
                    locks_of(class.id, self.work, usual).contains(&lock.id)
                        || is_of_work(class.id, self.work, lock.id)
                        || Some(lock.id) == control_of(class.id, self.work)
                }
                false => self.lock.iter().any(|id| id == lock.id),
            };
            let locks: Vec<&Candidate> = locks().filter(is_asked).collect();
            if let Some(lock) = locks.iter().find(|lock| !lock.meets(class)) {
                let why = "elections strike locks on Sentinel groups, cluster failovers and half-moved slots strike locks on clusters, \
                           and all other classes strike locks on servers";
                let why = format!("{}, {}: {why}; choose another lock", class.id, lock.id);
                return Err(CliError::Other(why));
            }
            if let Some(lock) = locks.iter().find(|lock| !lock.does(self.work)) {
                let (class, work) = (class.id, self.work);
                let why = format!(
                    "{class}, {}: this lock does no work of kind {work}; choose another lock",
                    lock.id
                );
                return Err(CliError::Other(why));
            }
            asked.extend(locks.into_iter().map(|lock| self.of(lock, class)));
        }
        Ok(asked)
    }

    fn of(&self, lock: &Candidate, class: &Class) -> Asked {
        Asked {
            lock: lock.id.to_owned(),
            class: self.label(class.id),
            beside: None,
            plan: lock.storm(class, self.storm(self.seed)),
            expected: match control_of(class.id, self.work) == Some(lock.id) {
                true => Expected::Breaks,
                false if lock.keeps_exclusion(class) => Expected::Holds {
                    order: lock.keeps_order(class),
                },
                false => Expected::Anything,
            },
        }
    }

    /// Returns the name of a class with this work in tables.
    pub(super) fn label(&self, class: &str) -> String {
        other_library::label(self.beside, self.work, class)
    }

    pub(super) fn storm(&self, seed: u64) -> Storm {
        let seconds = self.minutes * 60.0 / f64::from(self.scale);
        Storm {
            seed,
            work: self.work,
            lasts: SimTime::from(Duration::from_secs_f64(seconds)),
            has,
        }
    }

    /// Returns `many` storms of the same class and lock for the simulator, with consecutive seeds. The
    /// simulator has only the clients of this crate, and no control of another library.
    pub(super) fn simulated(&self, asked: &Asked, many: u64) -> impl Iterator<Item = Plan> {
        let class = classes().find(|class| self.label(class.id) == asked.class);
        let lock = locks().find(|lock| lock.id == asked.lock);
        let pair = class.zip(lock);
        let seeds = self.seed..self.seed.saturating_add(many);
        seeds.filter_map(move |seed| {
            let (class, lock) = pair?;
            Some(lock.storm(class, self.storm(seed)))
        })
    }

    /// Runs all these storms at the same time.
    pub(super) fn side_by_side(&self, cells: &[Asked]) -> Result<Vec<Observed>, CliError> {
        side_by_side(cells, self.scale)
    }
}

/// Runs plans on real servers, all at the same time, with a progress bar on the terminal.
pub(super) fn side_by_side(cells: &[Asked], scale: u32) -> Result<Vec<Observed>, CliError> {
    let command = other_library::prepare(cells)?;
    let seconds = |asked: &Asked| (asked.plan.duration.as_duration() * scale).as_secs();
    let bar = Arc::new(progress::bar(
        cells.iter().map(seconds).max().unwrap_or(0),
        Counting::Seconds,
    ));
    if let Some(first) = cells.first() {
        bar.set_message(first.class.clone());
    }
    let observed = std::thread::scope(|scope| {
        let run = |asked: &Asked| {
            let (plan, bar) = (asked.plan.clone(), Arc::clone(&bar));
            let others = other_library::clients(asked, command.as_deref());
            let tick = move |second| bar.set_position(second);
            scope.spawn(move || chaos_run::run(&plan, scale, others, tick))
        };
        let running: Vec<_> = cells.iter().map(run).collect();
        let ended = running.into_iter().map(|cell| {
            let ended = cell.join();
            ended.unwrap_or_else(|_| Err("BUG: a cell panicked".to_owned()))
        });
        ended.collect::<Result<Vec<Observed>, String>>()
    });
    bar.finish_and_clear();
    observed.map_err(CliError::Other)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::chaos::possible;
    use crate::study::predicted::Simulated;
    use quorlock_sim_plan::fault::{FaultKind, NodeFault};

    fn storms(class: &str, lock: &[&str]) -> Storms {
        Storms {
            class: vec![class.to_owned()],
            work: StormWork::Plain,
            beside: None,
            lock: lock.iter().map(|id| (*id).to_owned()).collect(),
            minutes: 1.0,
            scale: 10,
            seed: 3,
        }
    }

    fn storms_of(work: StormWork, class: &str, lock: &[&str]) -> Storms {
        Storms {
            work,
            ..storms(class, lock)
        }
    }

    #[test]
    fn every_storm_is_a_plan_that_real_machines_and_the_simulator_can_run() {
        let mut many = BTreeMap::new();
        for work in StormWork::ALL {
            for class in classes().filter(|class| class.is_had(has)) {
                for lock in locks().filter(|lock| lock.meets(class) && lock.does(work)) {
                    let asked = storms_of(work, class.id, &[lock.id]).asked(&[]).unwrap();
                    for asked in &asked {
                        let place = format!("{}, {}", asked.class, lock.id);
                        let checked = quorlock_sim_plan::check(&asked.plan);
                        assert!(checked.is_ok(), "{place}: {checked:?}");
                        assert_eq!(possible::lacks_plan(&asked.plan), None, "{place}");
                        *many.entry(work.to_string()).or_insert(0) += 1;
                    }
                }
            }
        }
        assert_eq!(many.len(), StormWork::ALL.len());
        assert!(many.values().all(|many| 60 < *many), "{many:?}");
    }

    #[test]
    fn every_work_has_a_lock_that_must_hold_and_a_control_that_must_break() {
        let usual = ["ours"];
        for work in StormWork::ALL {
            // A fair lock claims nothing where its only server loses data or has a wrong clock.
            let classes: &[&str] = match work {
                StormWork::Fair => &["client pauses", "restarts"],
                _ => &["restarts, amnesia", "client pauses", "steps"],
            };
            for class in classes {
                let asked = storms_of(work, class, &[]).asked(&usual).unwrap();
                let expected: Vec<Expected> = asked.iter().map(|asked| asked.expected).collect();
                let place = work.label(class);
                // Several names may also be on different nodes.
                let locks = if work == StormWork::Several { 3 } else { 2 };
                assert_eq!(expected.len(), locks, "{place}");
                assert!(expected.contains(&Expected::Breaks), "{place}");
                let holds = Expected::Holds { order: true };
                assert!(expected.contains(&holds), "{place}");
            }
        }
    }

    /// The control breaks and the lock holds in the simulator, too, so that the comparison with real servers says
    /// something.
    #[test]
    fn simulated_storms_of_every_work_break_the_control_and_not_the_lock() {
        for work in StormWork::ALL {
            let storms = storms_of(work, "restarts, amnesia", &[]);
            for asked in storms.asked(&["ours"]).unwrap() {
                let simulated = Simulated::of(1, storms.simulated(&asked, 3));
                let (place, broke) = (format!("{}, {}", asked.class, asked.lock), simulated);
                match asked.expected {
                    Expected::Breaks => assert!(0 < broke.exclusion, "{place}"),
                    // One node without trust claims nothing here.
                    Expected::Anything => {}
                    Expected::Holds { .. } => {
                        assert_eq!((broke.exclusion, broke.fencing), (0, 0), "{place}")
                    }
                }
                assert_eq!(simulated.runs, 3, "{place}");
            }
        }
    }

    /// A hold that is renewed every third of its lease outlasts a clock that is 20 % wrong. So a storm in which every hold
    /// is renewed does not predict what happens to the others.
    #[test]
    fn holds_that_are_not_renewed_break_under_drift_beyond_the_bound_and_not_within() {
        let broke = |class| {
            let storms = storms(class, &["ours, one node"]);
            let asked = storms.asked(&[]).unwrap();
            Simulated::of(1, storms.simulated(&asked[0], 5)).exclusion
        };
        assert!(0 < broke("drift beyond 1 %"));
        assert_eq!(broke("drift"), 0);
    }

    #[test]
    fn a_lock_refuses_work_that_it_cannot_do() {
        for (work, lock) in [
            (StormWork::Fair, "ours"),
            (StormWork::ReadWrite, "SET NX, DEL"),
            (StormWork::Plain, "ours, one node, writers beside readers"),
        ] {
            let refused = storms_of(work, "delays", &[lock]).asked(&[]);
            let why = refused.err().map(|error| error.to_string());
            assert!(why.is_some_and(|why| why.contains("choose another lock")));
        }
    }

    #[test]
    fn elections_strike_a_majority_of_groups_and_a_control_of_one_group() {
        let asked = storms("elections", &[]).asked(&["ours"]).unwrap();
        let locks: Vec<(&str, Expected)> = asked
            .iter()
            .map(|asked| (asked.lock.as_str(), asked.expected))
            .collect();
        let holds = Expected::Holds { order: true };
        assert_eq!(
            locks,
            [
                ("ours, a Sentinel group", Expected::Breaks),
                ("ours, a majority of Sentinel groups", holds)
            ]
        );
        let kinds = |kind| {
            let faults = asked.iter().flat_map(|asked| &asked.plan.faults);
            faults.filter(|fault| fault.kind() == kind).count()
        };
        for kind in [
            Kind::CrashNode,
            Kind::PauseNode,
            Kind::SentinelFailover,
            Kind::CrashSentinel,
        ] {
            assert!(2 <= kinds(kind), "{kind:?}: {}", kinds(kind));
        }
    }

    #[test]
    fn cluster_failovers_strike_one_shard_of_a_majority_and_of_a_control() {
        let asked = storms("cluster failovers", &[]).asked(&["ours"]).unwrap();
        let locks: Vec<(&str, Expected)> = asked
            .iter()
            .map(|asked| (asked.lock.as_str(), asked.expected))
            .collect();
        let holds = Expected::Holds { order: true };
        assert_eq!(
            locks,
            [
                ("ours, a cluster", Expected::Breaks),
                ("ours, a majority of shards", holds)
            ]
        );
        let mut kinds = BTreeSet::new();
        for seed in 0..20 {
            for asked in &asked {
                let storms = storms("cluster failovers", &[&asked.lock]);
                let plan = storms.simulated(asked, 20).nth(seed).unwrap();
                assert_eq!((plan.nodes.count, plan.nodes.replicas), (3, 1));
                assert!(4 < plan.faults.len(), "{}", plan.faults.len());
                let mut owner = 0;
                for fault in &plan.faults {
                    kinds.insert(fault.kind().name());
                    let FaultKind::Node { node, fault, .. } = &fault.what else {
                        panic!("{fault:?}");
                    };
                    assert_eq!(*node, 0);
                    if let NodeFault::MigrateSlot { to, .. } = fault {
                        // Each move leaves the shard with the faults, or comes back.
                        assert_ne!(*to == 0, owner == 0);
                        owner = *to;
                    } else {
                        assert_eq!(owner, 0);
                    }
                }
            }
        }
        let all = [
            "cluster-failover",
            "crash-node",
            "migrate-slot",
            "pause-node",
        ];
        assert_eq!(kinds, BTreeSet::from(all));
    }

    #[test]
    fn a_class_refuses_a_lock_that_it_cannot_strike() {
        for (class, lock) in [
            ("elections", "ours"),
            ("delays", "ours, a Sentinel group"),
            ("cluster failovers", "ours"),
            ("elections", "ours, a majority of shards"),
        ] {
            let refused = storms(class, &[lock]).asked(&[]).map(|asked| asked.len());
            let why = refused.err().map(|error| error.to_string());
            assert!(why.is_some_and(|why| why.contains("choose another lock")));
        }
    }
}
