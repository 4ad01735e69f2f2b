//! Plans of one cluster each, drawn from the law under the condition of a stratum.

use super::deployment::Deployment;
use super::length::unit;
use super::process::seconds;
use super::strata::{Reach, Strata, Stratum, Strike};
use quorlock_sim_plan::Plan;
use quorlock_sim_plan::draw::{Draw, Purpose};
use quorlock_sim_plan::time::SimTime;

/// Returns the plan of a seed: a cluster of a stratum, after a time in which the system warms up, and before one in which
/// its effects pass.
pub(super) fn cluster(deployment: &Deployment, strata: &Strata, index: usize, seed: u64) -> Plan {
    let mut plan = quiet(deployment, seed);
    let Some(stratum) = strata.all.get(index) else {
        return plan;
    };
    let mut draw = Draw::new(seed, Purpose::Strikes, index as u64);
    let mut at = first(deployment, &mut draw);
    let mut ends = at;
    for (nth, strike) in order(stratum, &mut draw).into_iter().enumerate() {
        if 0 < nth {
            at = at.plus(gap(deployment, strata, &mut draw));
        }
        if let Some(strike) = strata.strikes.get(strike) {
            let lasts = put(deployment, &mut plan, *strike, at, &mut draw);
            ends = ends.max(at.plus(lasts));
        }
    }
    plan.duration = ends.plus(deployment.window);
    plan
}

/// Returns the plan of a seed without any strike, as long as that of a cluster of one.
pub(super) fn quiet(deployment: &Deployment, seed: u64) -> Plan {
    let window = deployment.window;
    Plan {
        seed,
        duration: window.plus(window).plus(window),
        ..deployment.plan.clone()
    }
}

/// Draws when the first strike happens. The arrivals of a Poisson process see the system as it is at a random time: the
/// times of the work of the clients since their start are spread over a lease and a turn of work.
fn first(deployment: &Deployment, draw: &mut Draw) -> SimTime {
    let work = &deployment.plan.workload;
    let spread = deployment
        .plan
        .longest_lease()
        .plus(work.hold_max)
        .plus(work.think_max);
    let spread = spread.min(deployment.window);
    deployment
        .window
        .plus(SimTime::nanos(draw.between(0, spread.as_nanos())))
}

/// Draws the order of the strikes of a stratum. Their kinds are independent, so every order is equally probable.
fn order(stratum: &Stratum, draw: &mut Draw) -> Vec<usize> {
    let strikes = stratum.counts.iter().enumerate();
    let mut order: Vec<usize> = strikes
        .flat_map(|(strike, count)| std::iter::repeat_n(strike, *count))
        .collect();
    for last in (1..order.len()).rev() {
        order.swap(last, draw.index(last + 1));
    }
    order
}

/// Draws the time between two strikes of a cluster: exponential, and less than the window.
fn gap(deployment: &Deployment, strata: &Strata, draw: &mut Draw) -> SimTime {
    let joined = -libm::expm1(-strata.per_second * seconds(deployment.window));
    let gap = -libm::log1p(-unit(draw) * joined) / strata.per_second;
    SimTime::nanos((gap * 1e9) as u64).min(deployment.window)
}

/// Adds the faults of a strike to a plan. Returns how long they last.
pub(super) fn put(
    deployment: &Deployment,
    plan: &mut Plan,
    strike: Strike,
    at: SimTime,
    draw: &mut Draw,
) -> SimTime {
    let Some(process) = deployment.processes.get(strike.process) else {
        return SimTime::ZERO;
    };
    let lasts = process.length.draw(draw, deployment.longest);
    let all: Vec<u16> = (0..process.targets(&deployment.plan)).collect();
    let targets = match strike.reach {
        Reach::All => all,
        Reach::One => vec![u16::try_from(draw.index(all.len())).unwrap_or(0)],
    };
    plan.faults
        .extend(deployment.strike(process, &targets, at, lasts));
    lasts
}
