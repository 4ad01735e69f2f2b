//! The matrix: every lock against every class of fault, and how often exclusion and fencing break.

mod class;
mod classes;
mod contender;
mod examples;
mod print;
#[cfg(unix)]
mod storm;
#[cfg(unix)]
mod work;

use std::ops::ControlFlow;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

pub use class::Class;
pub use classes::CLASSES;
pub use contender::{CONTENDERS, Candidate, ON_STORES};
pub use examples::Example;
#[cfg(unix)]
pub(crate) use {classes::STORMS_ONLY, contender::STORM_LOCKS, storm::Storm, work::StormWork};

use crate::simulation::run;
use crate::study::pool::share_out;
use crate::study::progress::{self, Counting};
use crate::study::scenario::Interval;
use quorlock_sim_check::check_one;
use quorlock_sim_check::run::Verdict;
use quorlock_sim_plan::Plan;
use quorlock_sim_plan::property::Property;

/// The configuration of a matrix.
#[derive(Clone, Debug)]
pub struct Matrix {
    /// The locks.
    pub contenders: Vec<Candidate>,
    /// The classes of fault.
    pub classes: Vec<Class>,
    /// The number of seeds for each pair of lock and class, from 0. A lock in the lane over sockets gets a tenth of it.
    pub runs: u64,
    /// The number of threads.
    pub jobs: usize,
}

/// The results of a matrix.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MatrixTable {
    /// The number of runs per cell, except for locks in the lane over sockets.
    pub runs: u64,
    /// The cells: for each lock, one cell for each class.
    pub cells: Vec<Cell>,
}

/// The results of one lock under one class of fault.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Cell {
    /// The name of the lock.
    pub lock: String,
    /// The name of the class of fault.
    pub class: String,
    /// The number of runs.
    pub runs: u64,
    /// The number of runs in which no client acquired anything.
    pub vacuous: u64,
    /// The first seed whose run did not end by itself and was stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endless: Option<u64>,
    /// The number of holds that were won.
    pub holds: u64,
    /// The number of faults that had an effect.
    pub effects: u64,
    /// Violations of exclusion: two clients believed that they held the lock at the same time.
    pub exclusion: BreakRate,
    /// Violations of fencing: a token was not larger than the ones before, or a store accepted a token that is smaller
    /// than one that it had seen.
    pub fencing: BreakRate,
}

/// How often a property was broken in a cell.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct BreakRate {
    /// Whether the lock claims that this never happens.
    pub is_claimed_to_hold: bool,
    /// The number of runs that broke the property.
    pub violations: u64,
    /// The share of runs that broke the property.
    pub rate: f64,
    /// The bounds of that share with 95 % confidence (Wilson score interval).
    pub interval: (f64, f64),
    /// The first seed that broke the property.
    pub first_seed: Option<u64>,
}

impl BreakRate {
    fn add(&mut self, seed: u64, is_broken: bool) {
        if is_broken {
            self.violations += 1;
            self.first_seed = Some(self.first_seed.map_or(seed, |first| first.min(seed)));
        }
    }

    fn merge(&mut self, other: &BreakRate) {
        self.violations += other.violations;
        let seeds = self.first_seed.into_iter().chain(other.first_seed);
        self.first_seed = seeds.min();
    }

    fn finish(&mut self, runs: u64, is_claimed_to_hold: bool) {
        let interval = Interval::of(self.violations, runs);
        self.is_claimed_to_hold = is_claimed_to_hold;
        self.rate = interval.share;
        self.interval = (interval.min, interval.max);
    }
}

impl Cell {
    fn add(&mut self, plan: Plan) {
        let seed = plan.seed;
        let run = run(&Rc::new(plan));
        let breaks = |property| check_one(property, &run.history).is_some();
        self.runs += 1;
        self.vacuous += u64::from(run.verdict == Verdict::Vacuous);
        self.holds += u64::from(run.history.holds);
        self.effects += run.effects.iter().map(|n| u64::from(*n)).sum::<u64>();
        if breaks(Property::Termination) {
            self.endless = Some(self.endless.map_or(seed, |first| first.min(seed)));
        }
        self.exclusion.add(seed, breaks(Property::Exclusion));
        self.fencing.add(seed, breaks(Property::Fencing));
    }

    fn merge(&mut self, other: &Cell) {
        self.runs += other.runs;
        self.vacuous += other.vacuous;
        self.endless = self.endless.into_iter().chain(other.endless).min();
        self.holds += other.holds;
        self.effects += other.effects;
        self.exclusion.merge(&other.exclusion);
        self.fencing.merge(&other.fencing);
    }
}

impl MatrixTable {
    /// Returns the cells in which a property was broken that the lock claims to keep.
    pub fn surprises(&self) -> impl Iterator<Item = &Cell> {
        let is_one = |broken: &BreakRate| broken.is_claimed_to_hold && 0 < broken.violations;
        let cells = self.cells.iter();
        cells.filter(move |cell| is_one(&cell.exclusion) || is_one(&cell.fencing))
    }

    /// Returns the cell of a lock and a class.
    #[must_use]
    pub fn cell(&self, lock: &str, class: &str) -> Option<&Cell> {
        let mut cells = self.cells.iter();
        cells.find(|cell| cell.lock == lock && cell.class == class)
    }
}

/// The number of seeds that a thread takes at a time.
const BATCH: u64 = 50;

impl Matrix {
    /// Creates the complete matrix: all locks but those on stores, and all classes.
    #[must_use]
    pub fn new(runs: u64, jobs: usize) -> Self {
        Matrix {
            contenders: CONTENDERS.to_vec(),
            classes: CLASSES.to_vec(),
            runs,
            jobs,
        }
    }

    /// Runs the matrix. The results do not depend on the number of threads.
    #[must_use]
    pub fn run(&self) -> MatrixTable {
        let pairs: Vec<_> = self
            .contenders
            .iter()
            .flat_map(|contender| self.classes.iter().map(move |class| (contender, class)))
            .collect();
        let pieces = pairs.iter().enumerate().flat_map(|(pair, both)| {
            let batches = both.0.runs_of(self.runs).div_ceil(BATCH);
            (0..batches).map(move |batch| (pair, both, batch * BATCH))
        });
        let mut cells = vec![Cell::default(); pairs.len()];
        let all = pairs
            .iter()
            .map(|(contender, _)| contender.runs_of(self.runs));
        let bar = progress::bar(all.sum(), Counting::Runs);
        let work = |(pair, (contender, class), from): (usize, &(&Candidate, &Class), u64)| {
            let mut cell = Cell::default();
            for seed in from..contender.runs_of(self.runs).min(from + BATCH) {
                cell.add(contender.plan(class, seed));
            }
            bar.inc(cell.runs);
            (pair, cell)
        };
        let take = |(pair, cell): (usize, Cell)| {
            if let Some(place) = cells.get_mut(pair) {
                place.merge(&cell);
            }
            ControlFlow::Continue(())
        };
        share_out(self.jobs, pieces, work, take);
        bar.finish_and_clear();
        for (cell, (contender, class)) in cells.iter_mut().zip(pairs) {
            cell.lock = contender.id.to_owned();
            cell.class = class.id.to_owned();
            let runs = cell.runs;
            cell.exclusion
                .finish(runs, contender.keeps_exclusion(class));
            cell.fencing.finish(runs, contender.keeps_order(class));
        }
        MatrixTable {
            runs: self.runs,
            cells,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(locks: &[&str], classes: &[&str], runs: u64, jobs: usize) -> MatrixTable {
        let all = Matrix::new(runs, jobs);
        let is_asked = |id: &str, ids: &[&str]| ids.contains(&id);
        let matrix = Matrix {
            contenders: CONTENDERS
                .iter()
                .chain(ON_STORES)
                .filter(|c| is_asked(c.id, locks))
                .copied()
                .collect(),
            classes: CLASSES
                .iter()
                .filter(|c| is_asked(c.id, classes))
                .copied()
                .collect(),
            ..all
        };
        assert_eq!(
            (matrix.contenders.len(), matrix.classes.len()),
            (locks.len(), classes.len())
        );
        matrix.run()
    }

    #[test]
    fn the_same_table_comes_of_it_on_one_thread_and_on_three() {
        let (locks, classes) = (["published", "ours"], ["delays", "restarts, amnesia"]);
        let alone = some(&locks, &classes, 60, 1);
        assert_eq!(alone, some(&locks, &classes, 60, 3));
        let runs: Vec<u64> = alone.cells.iter().map(|cell| cell.runs).collect();
        assert_eq!(runs, [60; 4]);
        assert!(alone.cells.iter().all(|cell| 60 <= cell.effects));
        let csv = alone.csv();
        assert_eq!(csv.lines().count(), 1 + 2 * 4);
        assert!(
            csv.lines().all(|line| line.matches(',').count() >= 12),
            "{csv}"
        );
        assert!(alone.markdown().contains("| restarts, amnesia |"));
    }

    #[test]
    fn what_is_known_to_break_breaks_and_what_a_remedy_is_for_holds() {
        let breaks = |lock: &str, class: &str| {
            let cell = some(&[lock], &[class], 150, 2).cells.swap_remove(0);
            (0 < cell.exclusion.violations, 0 < cell.fencing.violations)
        };
        assert!(breaks("SET NX, DEL", "client pauses").0);
        assert!(breaks("published", "restarts, amnesia").0);
        assert!(breaks("published, counters", "restarts, amnesia").1);
        assert!(breaks("ours", "suspend, clock stops").0);
        for class in ["restarts, amnesia", "steps", "suspend", "client pauses"] {
            assert_eq!(breaks("ours", class), (false, false), "{class}");
        }
    }

    #[test]
    fn a_group_keeps_what_no_election_touches_and_has_a_tenth_of_the_runs() {
        let group = "ours, a Sentinel group";
        let table = some(&[group], &["partitions", "restarts, amnesia"], 200, 2);
        let [partitions, restarts] = table.cells.as_slice() else {
            panic!("{} cells", table.cells.len());
        };
        assert_eq!((partitions.runs, restarts.runs), (20, 20));
        assert!(partitions.exclusion.is_claimed_to_hold && 20 <= partitions.effects);
        assert_eq!(partitions.exclusion.violations, 0);
        assert!(!restarts.exclusion.is_claimed_to_hold);
        assert!(0 < restarts.exclusion.violations);
    }

    /// A lock that no client ever acquires breaks no property, and proves nothing.
    #[test]
    fn every_lock_is_held_where_nothing_goes_wrong() {
        let all = CONTENDERS.iter().chain(ON_STORES);
        let ids: Vec<&str> = all.map(|contender| contender.id).collect();
        for cell in some(&ids, &["quiet"], 6, 2).cells {
            assert_eq!(cell.vacuous, 0, "{}", cell.lock);
            let (lock, holds) = (&cell.lock, cell.holds);
            assert!(cell.runs * 5 <= holds, "{lock}: {holds} holds");
        }
    }

    #[test]
    fn a_surprise_is_a_claim_that_broke() {
        let mut table = some(&["ours"], &["quiet"], 1, 1);
        assert_eq!(table.surprises().count(), 0);
        table.cells[0].fencing.add(7, true);
        table.cells[0].fencing.add(3, true);
        assert_eq!(table.surprises().count(), 1);
        assert_eq!(table.cells[0].fencing.first_seed, Some(3));
        table.cells[0].fencing.is_claimed_to_hold = false;
        assert_eq!(table.surprises().count(), 0);
    }

    #[test]
    fn every_plan_can_be_run() {
        for contender in CONTENDERS.iter().chain(ON_STORES) {
            for class in CLASSES {
                for seed in 0..12 {
                    let plan = contender.plan(class, seed);
                    let checked = quorlock_sim_plan::check(&plan);
                    assert!(
                        checked.is_ok(),
                        "{} {}: {checked:?}",
                        contender.id,
                        class.id
                    );
                }
            }
        }
    }
}
