//! Candidates in which one number is smaller or rounder.

use super::amounts::{Amount, ProgressBounds, amounts};
use quorlock_sim_plan::Plan;

/// The shortest length in nanoseconds, apart from zero. Shorter lengths do not make a story easier to read.
const SHORTEST: u64 = 1_000_000;

/// Returns plans in which the `place`-th amount is rounder, the roundest first. Returns `None` if there are no more
/// amounts.
pub(super) fn rounder(plan: &Plan, place: usize, bounds: ProgressBounds) -> Option<Vec<Plan>> {
    let simpler = nth(&mut plan.clone(), place, bounds).map(|amount| simpler(&amount))?;
    let plans = simpler.into_iter().filter_map(|number| {
        let mut changed = plan.clone();
        nth(&mut changed, place, bounds)?.set(number);
        Some(changed)
    });
    Some(plans.collect())
}

/// Returns the amount at this index among those that can be simpler.
fn nth(plan: &mut Plan, place: usize, bounds: ProgressBounds) -> Option<Amount<'_>> {
    let all = amounts(plan, bounds).into_iter();
    all.filter(|amount| !simpler(amount).is_empty()).nth(place)
}

/// Returns simpler numbers for an amount, the simplest first.
fn simpler(amount: &Amount<'_>) -> Vec<i64> {
    let number = amount.number();
    let mut rounder = rounder_than(number.unsigned_abs());
    // A step forwards is treated as a length; a step backwards may be arbitrarily short.
    let is_length = match amount {
        Amount::Span(_) => true,
        Amount::Step(_) => 0 < number,
        Amount::Small(_) | Amount::Large(_) | Amount::Rate(_) => false,
    };
    if is_length {
        rounder.retain(|n| *n == 0 || SHORTEST <= *n);
    }
    let signed = rounder.into_iter().map(|size| with_sign(size, number));
    signed.collect()
}

fn with_sign(size: u64, like: i64) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX) * like.signum()
}

/// Returns how plain a number is. A number with fewer digits before its trailing zeros is plainer; among those, the
/// smaller number is.
fn plainness(number: u64) -> (u32, u64) {
    let mut digits = number;
    while digits != 0 && digits.is_multiple_of(10) {
        digits /= 10;
    }
    (digits.checked_ilog10().map_or(0, |log| log + 1), number)
}

/// Returns plainer numbers, the plainest first.
fn rounder_than(number: u64) -> Vec<u64> {
    let keep = |number: u64, digits: u32, up: u64| {
        let length = number.checked_ilog10().unwrap_or(0);
        let unit = 10u64.saturating_pow(length.saturating_sub(digits - 1));
        (number / unit + up) * unit
    };
    let mut numbers = vec![0, keep(number / 2, 1, 0)];
    for digits in 1..=3 {
        numbers.extend([keep(number, digits, 0), keep(number, digits, 1)]);
    }
    numbers.retain(|other| plainness(*other) < plainness(number));
    numbers.dedup();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_get_rounder_and_never_grow_for_ever() {
        assert_eq!(rounder_than(0), [] as [u64; 0]);
        assert_eq!(rounder_than(1), [0]);
        assert!(rounder_than(1_234_567).contains(&1_000_000));
        assert!(rounder_than(1_234_567).contains(&1_300_000));
        for number in [7, 99, 1_234, 500_000, 343_000_000] {
            for rounder in rounder_than(number) {
                assert!(plainness(rounder) < plainness(number));
            }
        }
    }

    #[test]
    fn every_amount_of_a_plan_comes_up_and_nothing_else() {
        let plan = Plan::default();
        let mut place = 0;
        let mut changed = Vec::new();
        while let Some(plans) = rounder(&plan, place, ProgressBounds::Shrink) {
            assert!(!plans.is_empty());
            changed.extend(plans);
            place += 1;
        }
        assert!(
            changed
                .iter()
                .any(|p| p.workload.lease < plan.workload.lease)
        );
        assert!(changed.iter().any(|p| p.network.max < plan.network.max));
        assert!(changed.iter().all(|p| p.clients == plan.clients));
        assert!(changed.iter().all(|p| p.nodes.count == plan.nodes.count));
    }
}
