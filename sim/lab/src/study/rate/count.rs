//! Plain counting, to check the estimate: long runs in which faults strike by the law, without clusters and weights.

use serde::Serialize;

use super::deployment::Deployment;
use super::length::unit;
use super::process::seconds;
use super::sample::{put, quiet};
use super::strata::Strata;
use crate::study::interval::poisson;
use crate::study::results::{CellSeeds, Manifest, Row};
use crate::study::runs::{Cell, Runs, RunsError, Session};
use quorlock_sim_plan::Plan;
use quorlock_sim_plan::draw::{Draw, Purpose};
use quorlock_sim_plan::fault::Fault;
use quorlock_sim_plan::time::SimTime;

/// Long runs of a deployment.
#[derive(Debug)]
pub struct Count<'a> {
    /// The deployment. With its real rates, violations may be too rare to be counted.
    pub deployment: &'a Deployment,
    /// The number of runs.
    pub runs: u64,
    /// The number of threads.
    pub jobs: usize,
}

/// What was counted.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Counted {
    /// The number of runs that ended with a violation.
    pub violations: u64,
    /// How long faults struck before a violation or the end, in seconds of all runs together.
    pub seconds: f64,
    /// The expected number of violations in the horizon.
    pub rate: f64,
    /// Its lower bound (95 %, the exact interval of a Poisson count).
    pub lower: f64,
    /// Its upper bound.
    pub upper: f64,
}

/// For how many windows faults strike in a run. It is many, because a cluster that the end cuts off is not whole.
const WINDOWS: u64 = 50;

/// The name of the cell of these runs.
const LONG: &str = "long runs";

impl Count<'_> {
    /// Returns the manifest of the results.
    #[must_use]
    pub fn manifest(&self, law: &impl Serialize, flags: Vec<String>) -> Manifest {
        let runs = Runs::all(vec![self.cell()], 1);
        let mut manifest = runs.manifest(law, flags);
        manifest.cells = vec![CellSeeds {
            cell: LONG.to_owned(),
            seeds: 0..self.runs,
        }];
        manifest
    }

    /// Runs and counts. A run counts up to the end of the cluster of its first violation, as the estimate counts a cluster
    /// once: runs are then sequences of clusters and the times between them, whose expected numbers have the ratio of the
    /// rate (Wald's equation).
    ///
    /// # Errors
    /// Returns [`RunsError`] if results cannot be read or written.
    pub fn run(&self, session: &mut Session) -> Result<Counted, RunsError> {
        let (mut violations, mut nanos) = (0, 0);
        let strata = Strata::of(self.deployment);
        let mut take = |_, row: Row| {
            let at = row.violated.get(&self.deployment.property);
            violations += u64::from(at.is_some());
            nanos += match at {
                Some(at) => self.until_over(&strata, row.seed, *at),
                None => self.exposed().as_nanos(),
            };
        };
        session.run(&Runs::all(vec![self.cell()], self.jobs), &mut take)?;
        let exposed = nanos as f64 / 1e9;
        let horizons = exposed / seconds(self.deployment.horizon);
        let (least, most) = poisson(violations, 0.05);
        Ok(Counted {
            violations,
            seconds: exposed,
            rate: violations as f64 / horizons,
            lower: least / horizons,
            upper: most / horizons,
        })
    }

    /// Returns from the beginning of the strikes to the end of the cluster in which a violation at this time is, in
    /// nanoseconds.
    fn until_over(&self, strata: &Strata, seed: u64, at: u64) -> u64 {
        let window = self.deployment.window;
        let plan = self.plan(strata, seed);
        let mut strikes = plan.faults.iter().map(Fault::begins).collect::<Vec<_>>();
        strikes.retain(|strike| window <= *strike);
        let mut last = SimTime::ZERO;
        for strike in strikes {
            let is_before = strike.as_nanos() <= at;
            if !is_before && last.plus(window) <= strike {
                break;
            }
            last = strike;
        }
        // A cluster ends a window after its last strike, and strikes begin a window after the run.
        last.as_nanos()
    }

    /// Returns for how long faults strike in a run.
    fn exposed(&self) -> SimTime {
        SimTime::nanos(WINDOWS * self.deployment.window.as_nanos())
    }

    fn cell(&self) -> Cell<'_> {
        let strata = Strata::of(self.deployment);
        Cell {
            name: LONG.to_owned(),
            seeds: 0..self.runs,
            plan: Box::new(move |seed| self.plan(&strata, seed)),
            measure: None,
            is_last: None,
        }
    }

    /// Returns a plan in which strikes of all kinds arrive at exponential times, from the end of the first window on.
    fn plan(&self, strata: &Strata, seed: u64) -> Plan {
        let deployment = self.deployment;
        let mut plan = quiet(deployment, seed);
        let ends = deployment.window.plus(self.exposed());
        strike_by_law(deployment, strata, &mut plan, deployment.window, ends);
        plan.duration = ends.plus(deployment.window).plus(deployment.longest);
        plan
    }
}

/// Adds strikes of all kinds to a plan, which arrive at exponential times.
pub(in crate::study) fn strike_by_law(
    deployment: &Deployment,
    strata: &Strata,
    plan: &mut Plan,
    from: SimTime,
    ends: SimTime,
) {
    for (index, strike) in strata.strikes.iter().enumerate() {
        // Streams behind those of the strata.
        let stream = u64::MAX - index as u64;
        let mut draw = Draw::new(plan.seed, Purpose::Strikes, stream);
        let mut at = from;
        loop {
            let gap = -libm::log1p(-unit(&mut draw)) / strike.per_second;
            at = at.plus(SimTime::nanos((gap * 1e9) as u64));
            if ends <= at {
                break;
            }
            put(deployment, plan, *strike, at, &mut draw);
        }
    }
    plan.faults.sort_by_key(|fault| fault.begins());
}
