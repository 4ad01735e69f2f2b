//! The curve of a violation: how likely it was at each instant of the run.

use std::fmt;
use std::ops::ControlFlow;
use std::rc::Rc;

use serde::Serialize;

use super::{Explained, Why, must_hold_until};
use crate::simulation::run;
use crate::study::interval::clopper_pearson;
use crate::study::pool::share_out;
use quorlock_sim_check::run::branched;
use quorlock_sim_plan::draw::{Purpose, stream};
use quorlock_sim_plan::time::SimTime;

/// How likely the violation was at an instant: in how many runs that are the same until then the property is broken.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Likelihood {
    /// The instant. What follows is drawn anew in each run.
    pub at: SimTime,
    /// The number of runs.
    pub runs: u64,
    /// The number of runs that break the property.
    pub broken: u64,
    /// The lower bound of the probability (95 %, Clopper and Pearson).
    pub least: f64,
    /// The upper bound of the probability (95 %, Clopper and Pearson).
    pub most: f64,
}

/// The period in which the probability rose the most.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Decided {
    /// The instant before, with its probability.
    pub from: Likelihood,
    /// The instant behind, with its probability.
    pub until: Likelihood,
}

/// The largest number of instants. More would not be seen in a picture, and each costs as many runs as the others.
const INSTANTS: usize = 40;

/// The number of runs that a thread takes at a time.
const BATCH: u64 = 10;

impl Likelihood {
    fn of(at: u64, runs: u64, broken: u64) -> Self {
        let (least, most) = clopper_pearson(broken, runs, 0.05);
        Likelihood {
            at: SimTime::nanos(at),
            runs,
            broken,
            least,
            most,
        }
    }

    /// Returns the share of runs that break the property.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.broken as f64 / self.runs.max(1) as f64
    }
}

impl fmt::Display for Likelihood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [share, least, most] = [self.share(), self.least, self.most].map(|part| 100.0 * part);
        write!(
            f,
            "drawn anew from {} on, {} of {} runs break it: {share:.1} % ({least:.1} to {most:.1} %)",
            self.at, self.broken, self.runs
        )
    }
}

impl Why {
    /// Returns between which neighbours of the curve the probability rose the most. `None` if it never rose.
    #[must_use]
    pub fn decided(&self) -> Option<Decided> {
        let rise = |decided: &Decided| decided.until.share() - decided.from.share();
        let pairs = self.curve.iter().zip(self.curve.iter().skip(1));
        let pairs = pairs.map(|(from, until)| Decided {
            from: *from,
            until: *until,
        });
        let most = pairs.max_by(|one, other| rise(one).total_cmp(&rise(other)));
        most.filter(|decided| 0.0 < rise(decided))
    }

    /// Returns the instants of the curve: the beginning of the run and of the slice, and when a fault of the slice begins or a message of it
    /// is sent, evenly thinned out.
    fn instants(&self) -> Vec<u64> {
        let (since, until) = (self.since.as_nanos(), self.violation.at.as_nanos());
        let inside = self.causes().filter(|cause| cause.is_in_slice);
        let inside = inside.map(|cause| cause.at.as_nanos());
        let mut all: Vec<u64> = inside.filter(|at| (since..until).contains(at)).collect();
        all.extend([0, since, until]);
        all.sort_unstable();
        all.dedup();
        let (last, most) = (all.len() - 1, INSTANTS.min(all.len()) - 1);
        let nth = (0..=most).filter_map(|nth| all.get(nth * last / most.max(1)));
        nth.copied().collect()
    }
}

impl Explained {
    /// Draws the curve: at each instant, the run is the same until then, and what happens by chance behind it is drawn anew, in this
    /// number of runs on this number of threads. That is latencies, losses, and the random numbers of clients and of their work; faults
    /// begin when the plan says. A run breaks the property if it does so until as long behind the violation as the slice is long.
    /// `tick` receives the numbers of runs that have ended, and of all.
    ///
    /// The runs follow from the plan alone, so the curve is the same on any number of threads.
    pub fn draw_curve(&mut self, runs: u64, jobs: usize, mut tick: impl FnMut(u64, u64) + Send) {
        let instants = self.why.instants();
        let violation = &self.why.violation;
        let until = must_hold_until(self.why.since.as_nanos(), violation.at.as_nanos());
        let plan = (*self.run.plan).clone();
        let is_broken = |at: u64, nth: u64| {
            let seed = stream(plan.seed, Purpose::Branches, nth);
            let ran = branched(at, seed, || run(&Rc::new(plan.clone())));
            let broken = ran.violated.get(&violation.property);
            broken.is_some_and(|at| *at <= until)
        };
        let all = runs * instants.len() as u64;
        let batches = (0..runs.div_ceil(BATCH)).map(|nth| nth * BATCH..runs.min((nth + 1) * BATCH));
        let batches: Vec<_> = batches.collect();
        let of_instant = |index: usize| batches.iter().map(move |nths| (index, nths.clone()));
        let pieces: Vec<_> = (0..instants.len()).flat_map(of_instant).collect();
        let mut broken = vec![0; instants.len()];
        let mut ended = 0;
        let work = |(index, nths): (usize, std::ops::Range<u64>)| {
            let at = instants.get(index).copied().unwrap_or(0);
            let some = nths.clone().filter(|nth| is_broken(at, *nth)).count() as u64;
            (index, some, nths.end - nths.start)
        };
        let take = |(index, some, many): (usize, u64, u64)| {
            if let Some(sum) = broken.get_mut(index) {
                *sum += some;
            }
            ended += many;
            tick(ended, all);
            ControlFlow::Continue(())
        };
        share_out(jobs, pieces.into_iter(), work, take);
        let points = instants.iter().zip(broken);
        self.why.curve = points
            .map(|(at, broken)| Likelihood::of(*at, runs, broken))
            .collect();
    }
}
