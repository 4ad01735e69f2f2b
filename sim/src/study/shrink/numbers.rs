//! Plans that are like another, with one number that is smaller or rounder.

use serde_json::Value;

use crate::plan::Plan;
use crate::plan::time::{Span, Step};

/// Numbers that are places in lists, choices, or counted by other means.
const NOT_AMOUNTS: [&str; 9] = [
    "seed", "client", "clients", "node", "nodes", "count", "name", "names", "replica",
];

/// Nothing is made shorter than a millisecond, unless it vanishes: that makes no story easier to read.
const SHORTEST: u64 = 1_000_000;

/// Plans in which the `place`-th number is rounder, the roundest first; `None` when there are no more numbers.
pub(super) fn rounder(plan: &Plan, place: usize, is_liveness: bool) -> Option<Vec<Plan>> {
    let whole = serde_json::to_value(plan).ok()?;
    let mut paths = Vec::new();
    collect(&whole, &mut String::new(), &mut paths);
    // When a failure is one to make progress, the bound of progress is what makes it one.
    paths.retain(|path| {
        let is_bound = path == "/progress_within" || path == "/healed_at";
        !is_bound || !is_liveness
    });
    let path = paths.get(place)?;
    let simpler = whole.pointer(path).map_or_else(Vec::new, simpler);
    let plans = simpler.into_iter().filter_map(|number| {
        let mut changed = whole.clone();
        *changed.pointer_mut(path)? = number;
        serde_json::from_value(changed).ok()
    });
    Some(plans.collect())
}

fn collect(value: &Value, path: &mut String, paths: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(k, v)| (k.clone(), v)).collect(),
        Value::Array(list) => list
            .iter()
            .enumerate()
            .map(|(i, v)| (i.to_string(), v))
            .collect(),
        _ if !simpler(value).is_empty() => {
            paths.push(path.clone());
            return;
        }
        _ => return,
    };
    for (key, child) in children {
        // The servers and the faults are under names that are amounts elsewhere.
        let is_amount = !NOT_AMOUNTS.contains(&key.as_str()) || child.is_object();
        if is_amount {
            let length = path.len();
            path.push('/');
            path.push_str(&key);
            collect(child, path, paths);
            path.truncate(length);
        }
    }
}

/// Simpler values of the same kind, the simplest first.
fn simpler(value: &Value) -> Vec<Value> {
    if let Some(number) = value.as_i64() {
        let rounder = rounder_than(number.unsigned_abs());
        let signed = rounder.into_iter().map(|size| with_sign(size, number));
        return signed.map(Value::from).collect();
    }
    let Some(text) = value.as_str() else {
        return Vec::new();
    };
    if let Ok(span) = text.parse::<Span>() {
        let is_readable = |n: &u64| *n == 0 || SHORTEST <= *n;
        let rounder = rounder_than(span.as_nanos()).into_iter();
        return rounder
            .filter(is_readable)
            .map(|n| Span::nanos(n).to_string().into())
            .collect();
    }
    if let Ok(step) = text.parse::<Step>() {
        let nanos = step.as_nanos();
        let rounder = rounder_than(nanos.unsigned_abs()).into_iter();
        let steps = rounder.map(|n| Step::nanos(with_sign(n, nanos)));
        return steps.map(|step| step.to_string().into()).collect();
    }
    Vec::new()
}

fn with_sign(size: u64, like: i64) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX) * like.signum()
}

/// How plain a number is: the fewer digits before its zeros the better, then the smaller the better.
fn plainness(number: u64) -> (u32, u64) {
    let mut digits = number;
    while digits != 0 && digits.is_multiple_of(10) {
        digits /= 10;
    }
    (digits.checked_ilog10().map_or(0, |log| log + 1), number)
}

/// Plainer numbers, the plainest first.
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
        while let Some(plans) = rounder(&plan, place, false) {
            assert!(!plans.is_empty());
            changed.extend(plans);
            place += 1;
        }
        assert!(
            changed
                .iter()
                .any(|p| p.workload.lease < plan.workload.lease)
        );
        assert!(changed.iter().any(|p| p.network.most < plan.network.most));
        assert!(changed.iter().all(|p| p.clients == plan.clients));
        assert!(changed.iter().all(|p| p.nodes.count == plan.nodes.count));
    }
}
