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

use std::path::Path;

use serde::Serialize;

pub use class::Class;
pub use classes::CLASSES;
pub use contender::{CONTENDERS, Candidate, contenders};
pub use examples::Example;
#[cfg(unix)]
pub(crate) use {classes::STORMS_ONLY, contender::STORM_LOCKS, storm::Storm, work::StormWork};

use crate::study::interval::Interval;
use crate::study::law::Law;
use crate::study::results::{ResultsError, Stored, Tallies, Tally};
use crate::study::runs::{self, Runs};
use quorlock_sim_plan::property::Property;

/// The configuration of a matrix.
#[derive(Clone, Debug)]
pub struct Matrix {
    /// The locks.
    pub contenders: Vec<Candidate>,
    /// The classes of fault.
    pub classes: Vec<Class>,
    /// The number of seeds for each pair of lock and class. A lock in the lane over sockets gets a tenth of it.
    pub runs: u64,
    /// The first seed of each pair.
    pub first_seed: u64,
}

/// The results of a matrix.
#[derive(Clone, PartialEq, Debug)]
pub struct MatrixTable {
    /// The number of runs per cell, except for locks in the lane over sockets.
    pub runs: u64,
    /// The cells: for each lock, one cell for each class.
    pub cells: Vec<Cell>,
}

/// The results of one lock under one class of fault.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Cell {
    /// The name of the lock.
    pub lock: String,
    /// The name of the class of fault.
    pub class: String,
    /// The sum of the rows.
    #[serde(flatten)]
    pub tally: Tally,
    /// Violations of exclusion: two clients believed that they held the lock at the same time.
    pub exclusion: BreakRate,
    /// Violations of fencing: a token was not larger than the ones before, or a store accepted a token that is smaller
    /// than one that it had seen.
    pub fencing: BreakRate,
}

/// How often a property was broken in a cell.
#[derive(Clone, PartialEq, Debug, Serialize)]
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
    fn of(property: Property, tally: &Tally, is_claimed_to_hold: bool) -> Self {
        let violations = tally.broken(property);
        let interval = Interval::of(violations, tally.runs);
        BreakRate {
            is_claimed_to_hold,
            violations,
            rate: interval.share,
            interval: (interval.min, interval.max),
            first_seed: tally.first_seed(property),
        }
    }
}

impl Cell {
    /// The first seed whose run did not end by itself and was stopped.
    #[must_use]
    pub fn endless(&self) -> Option<u64> {
        self.tally.first_seed(Property::Termination)
    }

    /// Returns the name of the cell in rows.
    #[must_use]
    pub fn name(&self) -> String {
        name(&self.lock, &self.class)
    }

    fn of(contender: &Candidate, class: &Class, tally: Tally) -> Self {
        let keeps = [
            contender.keeps_exclusion(class),
            contender.keeps_order(class),
        ];
        let [exclusion, fencing] = keeps;
        Cell {
            lock: contender.id.to_owned(),
            class: class.id.to_owned(),
            exclusion: BreakRate::of(Property::Exclusion, &tally, exclusion),
            fencing: BreakRate::of(Property::Fencing, &tally, fencing),
            tally,
        }
    }
}

fn name(lock: &str, class: &str) -> String {
    format!("{lock} under {class}")
}

impl MatrixTable {
    /// Reads the results of a matrix from their folder.
    ///
    /// # Errors
    /// Returns [`ResultsError`] if it has no results of a matrix.
    pub fn read(folder: &Path) -> Result<Self, ResultsError> {
        let stored = Stored::read(folder)?;
        let Law::Matrix {
            locks,
            classes,
            runs,
            first_seed,
        } = Law::of(&stored)?
        else {
            return Err(ResultsError::Foreign {
                path: folder.to_owned(),
                reason: "they are not of the command `matrix`".to_owned(),
            });
        };
        let matrix = Matrix::of(&locks, &classes, runs, first_seed);
        Ok(matrix.table(Tallies::read(&[stored])?))
    }

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

impl Matrix {
    /// Creates the complete matrix: all locks and all classes.
    #[must_use]
    pub fn new(runs: u64) -> Self {
        Matrix {
            contenders: contenders(),
            classes: CLASSES.to_vec(),
            runs,
            first_seed: 0,
        }
    }

    /// Returns the matrix of a law.
    #[must_use]
    pub fn of(locks: &[String], classes: &[String], runs: u64, first_seed: u64) -> Self {
        let is_asked = |id: &str, asked: &[String]| asked.iter().any(|name| name == id);
        let mut contenders = contenders();
        contenders.retain(|lock| is_asked(lock.id, locks));
        let of_law = CLASSES.iter().filter(|class| is_asked(class.id, classes));
        Matrix {
            contenders,
            classes: of_law.copied().collect(),
            runs,
            first_seed,
        }
    }

    /// Returns from what the plans follow.
    #[must_use]
    pub fn law(&self) -> Law {
        let locks = self.contenders.iter().map(|lock| lock.id.to_owned());
        let classes = self.classes.iter().map(|class| class.id.to_owned());
        Law::Matrix {
            locks: locks.collect(),
            classes: classes.collect(),
            runs: self.runs,
            first_seed: self.first_seed,
        }
    }

    /// Returns the cells: for each lock, one for each class.
    #[must_use]
    pub fn cells(&self) -> Vec<runs::Cell<'_>> {
        let cells = self.pairs().map(|(lock, class)| runs::Cell {
            name: name(lock.id, class.id),
            seeds: self.first_seed..self.first_seed + lock.runs_of(self.runs),
            plan: Box::new(|seed| lock.plan(class, seed)),
            measure: None,
            is_last: None,
        });
        cells.collect()
    }

    /// Returns the table of the sums of all cells.
    #[must_use]
    pub fn table(&self, tallies: Tallies) -> MatrixTable {
        let cells = self.pairs().zip(tallies.0);
        let cells = cells.map(|((lock, class), tally)| Cell::of(lock, class, tally));
        MatrixTable {
            runs: self.runs,
            cells: cells.collect(),
        }
    }

    /// Runs the matrix on this number of threads, and records nothing else.
    #[must_use]
    pub fn run(&self, jobs: usize) -> MatrixTable {
        let runs = Runs::all(self.cells(), jobs);
        let mut tallies = Tallies::new(runs.cells.len());
        runs.run(&mut |cell, row| tallies.add(cell, &row));
        self.table(tallies)
    }

    fn pairs(&self) -> impl Iterator<Item = (&Candidate, &Class)> {
        let contenders = self.contenders.iter();
        contenders.flat_map(|lock| self.classes.iter().map(move |class| (lock, class)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(locks: &[&str], classes: &[&str], runs: u64, jobs: usize) -> MatrixTable {
        let all = Matrix::new(runs);
        let is_asked = |id: &str, ids: &[&str]| ids.contains(&id);
        let matrix = Matrix {
            contenders: contenders()
                .into_iter()
                .filter(|c| is_asked(c.id, locks))
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
        matrix.run(jobs)
    }

    #[test]
    fn the_same_table_comes_of_it_on_one_thread_and_on_three() {
        let (locks, classes) = (["published", "ours"], ["delays", "restarts, amnesia"]);
        let alone = some(&locks, &classes, 60, 1);
        assert_eq!(alone, some(&locks, &classes, 60, 3));
        let runs: Vec<u64> = alone.cells.iter().map(|cell| cell.tally.runs).collect();
        assert_eq!(runs, [60; 4]);
        assert!(alone.cells.iter().all(|cell| 60 <= cell.tally.effects()));
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
        assert_eq!((partitions.tally.runs, restarts.tally.runs), (20, 20));
        assert!(partitions.exclusion.is_claimed_to_hold && 20 <= partitions.tally.effects());
        assert_eq!(partitions.exclusion.violations, 0);
        assert!(!restarts.exclusion.is_claimed_to_hold);
        assert!(0 < restarts.exclusion.violations);
    }

    /// A lock that no client ever acquires breaks no property, and proves nothing.
    #[test]
    fn every_lock_is_held_where_nothing_goes_wrong() {
        let all = contenders().into_iter();
        let ids: Vec<&str> = all.map(|contender| contender.id).collect();
        for cell in some(&ids, &["quiet"], 6, 2).cells {
            assert_eq!(cell.tally.vacuous, 0, "{}", cell.lock);
            let (lock, holds) = (&cell.lock, cell.tally.holds);
            assert!(cell.tally.runs * 5 <= holds, "{lock}: {holds} holds");
        }
    }

    #[test]
    fn a_surprise_is_a_claim_that_broke() {
        let mut table = some(&["ours"], &["quiet"], 1, 1);
        assert_eq!(table.surprises().count(), 0);
        table.cells[0].fencing.violations = 2;
        assert_eq!(table.surprises().count(), 1);
        table.cells[0].fencing.is_claimed_to_hold = false;
        assert_eq!(table.surprises().count(), 0);
    }

    #[test]
    fn every_plan_can_be_run() {
        for contender in contenders() {
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
