//! Shrinks a failure while it stays the same failure.
//!
//! It first tries fewer faults (delta debugging), then less of everything else (clients, nodes, replicas, names,
//! time), and then smaller and rounder numbers. Each candidate is run, and counts only if it breaks the same property
//! in the same roles. This repeats until no candidate helps, or until the budget of runs is used up.

mod amounts;
mod judge;
mod numbers;
mod recorded;
mod size;
mod structure;

use std::rc::Rc;

use amounts::ProgressBounds;
use judge::{Judge, Runs};
use recorded::Recorded;
pub use size::{Identity, Size, Taken};

use quorlock_sim_check::run::{Run, Verdict};
use quorlock_sim_plan::Plan;
use quorlock_sim_plan::fault::Fault;
use quorlock_sim_plan::property::Property;
use quorlock_sim_plan::time::SimTime;

/// The result of shrinking.
#[derive(Debug)]
pub struct Shrunk {
    /// The smallest run that was found.
    pub run: Run,
    /// What the shrunk failure has in common with the original failure.
    pub identity: Identity,
    /// The size of the original failure.
    pub before: Size,
    /// The size of the shrunk failure.
    pub after: Size,
    /// The number of runs that shrinking took.
    pub runs: u32,
}

/// Shrinks a failure of a user's own clients, as [`shrink_by`] does.
pub(crate) fn shrink_own(
    plan: &Plan,
    least_nodes: u16,
    most_runs: u32,
    run: &dyn Fn(&Rc<Plan>) -> Run,
    watch: &mut dyn FnMut(u32, &Size),
) -> Option<(Shrunk, Vec<Taken>)> {
    // Races in a user's own code are rare and the runs are short, so it pays to try more seeds.
    shrink_by(plan, least_nodes, most_runs, OWN_SEEDS, run, watch)
}

/// Returns the plan to which [`shrink_own`] shrank a plan, without any run. The plan and the accepted candidates
/// determine all candidates.
pub(crate) fn shrink_again(
    plan: &Plan,
    least_nodes: u16,
    runs: u32,
    property: Property,
    taken: &[Taken],
) -> Rc<Plan> {
    let mut recorded = Recorded::new(taken);
    let mut search = Search {
        property,
        best: Rc::new(plan.clone()).spelled_out(),
        size: recorded.size(),
        least_nodes,
        left: runs,
        max: runs,
        many_seeds: OWN_SEEDS,
        judge: &mut recorded,
        watch: &mut |_, _| {},
    };
    search.go();
    search.best
}

/// Shrinks a failure with at most this many runs to no fewer nodes than `least_nodes`. `run` runs each candidate with up to
/// `many_seeds` seeds, and `watch` receives the number of runs so far and the current size. Also returns the candidates that
/// were accepted.
///
/// Returns `None` if the plan does not fail.
pub fn shrink_by(
    plan: &Plan,
    least_nodes: u16,
    most_runs: u32,
    many_seeds: u64,
    run: &dyn Fn(&Rc<Plan>) -> Run,
    watch: &mut dyn FnMut(u32, &Size),
) -> Option<(Shrunk, Vec<Taken>)> {
    let first = run(&Rc::new(plan.clone()));
    let Verdict::Violated(violation) = &first.verdict else {
        return None;
    };
    let identity = Identity::of(violation);
    let before = Size::of(&first);
    let mut runs = Runs::new(run, first, identity);
    let mut search = Search {
        property: runs.identity().property,
        best: runs.plan(),
        size: before,
        least_nodes,
        left: most_runs,
        max: most_runs,
        many_seeds,
        judge: &mut runs,
        watch,
    };
    search.go();
    let (after, used) = (search.size, search.max - search.left);
    let (run, identity, taken) = runs.end();
    let shrunk = Shrunk {
        run,
        identity,
        before,
        after,
        runs: used,
    };
    Some((shrunk, taken))
}

struct Search<'a> {
    property: Property,
    best: Rc<Plan>,
    size: Size,
    least_nodes: u16,
    left: u32,
    max: u32,
    many_seeds: u64,
    judge: &'a mut dyn Judge,
    watch: &'a mut dyn FnMut(u32, &Size),
}

/// The number of other seeds with which a smaller plan is tried. Any change of a plan changes the random numbers that
/// clients draw, so a smaller plan may fail only with another seed.
const SEEDS: u64 = 12;

/// The number of other seeds for a user's own clients.
const OWN_SEEDS: u64 = 300;

impl Search<'_> {
    fn go(&mut self) {
        loop {
            let before = Rc::clone(&self.best);
            self.cut_the_end();
            self.fewer_faults();
            self.less_of_each();
            self.sooner();
            if self.many_seeds == OWN_SEEDS {
                self.shorter();
            }
            self.plainer();
            if self.left == 0 || before == self.best {
                return;
            }
        }
    }

    fn plan(&self) -> Plan {
        Plan::clone(&self.best)
    }

    /// Runs a candidate. It becomes the best plan if it fails in the same way.
    fn attempt(&mut self, plan: Plan) -> bool {
        self.attempt_if(plan, |_| true)
    }

    fn attempt_if(&mut self, plan: Plan, is_better: impl Fn(&Size) -> bool) -> bool {
        let is_possible =
            self.least_nodes <= plan.nodes.count && quorlock_sim_plan::check(&plan).is_ok();
        if self.left == 0 || plan == *self.best || !is_possible {
            return false;
        }
        self.left -= 1;
        let attempt = self.max - self.left;
        let taken = self.judge.judge(attempt, &Rc::new(plan), &is_better);
        let is_taken = taken.is_some();
        if let Some((plan, size)) = taken {
            self.best = plan;
            self.size = size;
        }
        (self.watch)(attempt, &self.size);
        is_taken
    }

    /// Tries a plan, and accepts it only if its run does not get longer: smaller numbers can lead to more events.
    fn attempt_no_longer(&mut self, plan: Plan) -> bool {
        let (operations, events) = (self.size.operations, self.size.events);
        self.attempt_if(plan, |size| {
            size.operations <= operations && size.events <= events
        })
    }

    /// Tries a plan with its own seed, then with others.
    fn attempt_with_seeds(&mut self, plan: &Plan) -> bool {
        self.attempt_with(plan, SEEDS)
    }

    fn attempt_with(&mut self, plan: &Plan, seeds: u64) -> bool {
        if self.attempt(plan.clone()) {
            return true;
        }
        (0..seeds).any(|seed| {
            let mut plan = plan.clone();
            plan.seed = seed;
            self.attempt(plan)
        })
    }

    /// Ends the plan 1 ms after the violation. A failure to make progress needs the end of its run, so it is not cut.
    fn cut_the_end(&mut self) {
        if self.property.is_liveness() {
            return;
        }
        let end = self.size.at.plus(SimTime::millis(1));
        let mut plan = self.plan();
        structure::end_at(&mut plan, end);
        plan.progress_within = Some(SimTime::ZERO);
        self.attempt(plan);
    }

    /// Delta debugging: leaves out large parts of the list first, then smaller ones, then each.
    fn fewer_faults(&mut self) {
        let mut part = self.best.faults.len().div_ceil(2);
        while 0 < part {
            let mut begin = 0;
            let mut has_helped = false;
            while begin < self.best.faults.len() && 0 < self.left {
                let mut plan = self.plan();
                let end = plan.faults.len().min(begin + part);
                plan.faults.drain(begin..end);
                // Other seeds are tried as well before a single fault is kept.
                let is_gone = match part {
                    1 => self.attempt_with_seeds(&plan),
                    _ => self.attempt(plan),
                };
                if is_gone {
                    has_helped = true;
                } else {
                    begin += part;
                }
            }
            part = match part {
                1 if has_helped => 1,
                part => part / 2,
            };
        }
    }

    /// Tries fewer clients, nodes, replicas and names, and fewer of them in each fault.
    fn less_of_each(&mut self) {
        let mut has_helped = true;
        while has_helped && 0 < self.left {
            has_helped = false;
            for candidate in structure::smaller(&self.best) {
                if self.attempt_with_seeds(&candidate) {
                    has_helped = true;
                    break;
                }
            }
        }
    }

    /// Moves the faults, and the violation with them, towards the beginning, and tries other seeds for that.
    fn sooner(&mut self) {
        for divisor in [1, 2, 4, 8] {
            let times = self.best.faults.iter().map(Fault::begins);
            let times = times.chain(self.best.outages.iter().map(|outage| outage.at));
            let first = times.filter(|at| SimTime::ZERO < *at).min();
            let by = first.unwrap_or_default().as_nanos() / divisor;
            let mut plan = self.plan();
            structure::move_faults(&mut plan, SimTime::nanos(by));
            if self.attempt_with(&plan, self.many_seeds) {
                self.cut_the_end();
            }
        }
        for seed in 0..self.many_seeds {
            let (operations, at) = (self.size.operations, self.size.at);
            let mut plan = self.plan();
            plan.seed = seed;
            if self.attempt_if(plan, |size| (size.operations, size.at) < (operations, at)) {
                self.cut_the_end();
            }
        }
    }

    /// Shortens faults and leases. In the remaining time, a user's own clients would only add noise.
    fn shorter(&mut self) {
        for divisor in [2, 4, 8, 16] {
            let mut place = 0;
            while let Some(plan) = structure::shorter(&self.best, place, divisor) {
                let operations = self.size.operations;
                let mut has_helped = false;
                for seed in [self.best.seed].into_iter().chain(0..SEEDS) {
                    let plan = Plan {
                        seed,
                        ..plan.clone()
                    };
                    has_helped = self.attempt_if(plan, |size| size.operations < operations);
                    if has_helped {
                        break;
                    }
                }
                if !has_helped || self.left == 0 {
                    place += 1;
                }
            }
        }
        self.cut_the_end();
    }

    /// Tries smaller and rounder numbers, and common choices instead of special ones.
    fn plainer(&mut self) {
        for candidate in structure::plainer(&self.best) {
            let mut plan = self.plan();
            candidate(&mut plan);
            self.attempt_no_longer(plan);
        }
        let bounds = if self.property.is_liveness() {
            ProgressBounds::Stay
        } else {
            ProgressBounds::Shrink
        };
        let mut place = 0;
        while let Some(candidates) = numbers::rounder(&self.best, place, bounds) {
            let helped = candidates
                .into_iter()
                .any(|plan| self.attempt_no_longer(plan));
            // A number that was halved once may be halved again.
            if !helped || self.left == 0 {
                place += 1;
            }
        }
    }
}
