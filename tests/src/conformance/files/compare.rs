//! Compares a lock server with a sequence.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use quorlock_core::name::Name;
use serde_json::{Value, json};

use super::act::{Act, Setting};
use super::bench::Bench;
use super::reply::words;
use super::sequence::Sequence;

/// The limit on the real time of one sequence. After this time, keys would expire too early. No key of a file comes
/// closer than this to its end, or to the point at which it would be dropped.
const FASTER_THAN: Duration = Duration::from_millis(900);

/// How often a sequence is started again because the machine was too slow.
const TRIES: usize = 20;

impl Sequence {
    /// Returns the names in the sequence.
    #[must_use]
    pub fn names(&self) -> Vec<Name> {
        let names = self.steps.iter().flat_map(|step| step.act.names());
        let names: std::collections::BTreeSet<_> = names.collect();
        names.into_iter().collect()
    }
}

/// Runs a sequence, and compares after each step. Returns `false` if this server cannot run the sequence.
///
/// # Errors
/// Returns the first step with another reply, other messages or other keys.
pub async fn agree_on(sequence: &Sequence, bench: &mut impl Bench) -> Result<bool, String> {
    if !bench.can(sequence) {
        return Ok(false);
    }
    for _ in 0..TRIES {
        bench.begin();
        bench.published();
        let start = Instant::now();
        let agreed = run(sequence, bench, start).await;
        if start.elapsed() < FASTER_THAN {
            return agreed.map(|()| true);
        }
    }
    Err(format!("{}: the machine is too slow", sequence.name))
}

async fn run(sequence: &Sequence, bench: &mut impl Bench, start: Instant) -> Result<(), String> {
    let setting = Setting {
        process: bench.process(),
        clock_millis: bench.clock_millis(),
    };
    let mut now = 0;
    for (at, step) in sequence.steps.iter().enumerate() {
        let passes = step.at.checked_sub(now).expect("time goes forward");
        if 0 < passes {
            bench.pass(Duration::from_millis(passes));
        }
        now = step.at;
        match &step.act {
            Act::Put(put) => bench.put(put),
            Act::Restart {} => bench.restart(),
            _ => {}
        }
        let requests = step.act.requests(setting);
        let mut answers = bench.ask(&requests).await.into_iter().map(words);
        let said = match &step.act {
            Act::Together(_) => answers.collect(),
            _ => answers.next().unwrap_or_default(),
        };
        let passed = start.elapsed().as_millis() as i64 + 1;
        let differ = |what: &str, said: &dyn std::fmt::Debug, expected: &dyn std::fmt::Debug| {
            let name = &sequence.name;
            Err(format!(
                "{name}, step {at}: {what}\n  said: {said:?}\n  expected: {expected:?}"
            ))
        };
        if !is_same(&step.reply, &said, passed, setting.clock_millis) {
            return differ("another reply", &said, &step.reply);
        }
        let (mut said, mut expected) = (bench.published(), step.published.clone());
        said.sort();
        expected.sort();
        if said != expected {
            return differ("other messages", &said, &expected);
        }
        if let Some(keys) = &step.keys {
            let (said, expected) = (bench.keys(), bench.expected(keys));
            let passed = start.elapsed().as_millis() as i64 + 1;
            if !is_same_keys(&expected, &said, passed, setting.clock_millis) {
                return differ("other keys", &said, &expected);
            }
        }
    }
    Ok(())
}

fn is_same_keys(
    expected: &BTreeMap<String, Value>,
    said: &BTreeMap<String, Value>,
    passed: i64,
    clock_millis: u64,
) -> bool {
    expected.len() == said.len()
        && expected.iter().zip(said).all(|(expected, said)| {
            expected.0 == said.0 && is_same(expected.1, said.1, passed, clock_millis)
        })
}

/// Returns whether the values are the same, apart from the time that has passed. The files do not contain that time.
fn is_same(expected: &Value, said: &Value, passed: i64, clock_millis: u64) -> bool {
    match (expected, said) {
        (Value::Object(expected), Value::Object(said)) => {
            expected.len() == said.len()
                && expected.iter().all(|(field, expected)| {
                    said.get(field).is_some_and(|said| match field.as_str() {
                        "refused" | "queued" | "ttl" => is_same_time(expected, said, passed),
                        "zset" => is_same_members(expected, said, passed),
                        "token" => is_same_token(expected, said, passed, clock_millis),
                        _ => is_same(expected, said, passed, clock_millis),
                    })
                })
        }
        (Value::Array(expected), Value::Array(said)) => {
            let mut pairs = expected.iter().zip(said);
            expected.len() == said.len()
                && pairs.all(|(expected, said)| is_same(expected, said, passed, clock_millis))
        }
        _ => expected == said,
    }
}

/// Compares two remaining times. The time that has passed is subtracted. A missing TTL (-1) stays as it is.
fn is_same_time(expected: &Value, said: &Value, passed: i64) -> bool {
    match (expected.as_i64(), said.as_i64()) {
        (Some(expected @ 0..), Some(said @ 0..)) => (expected - passed..=expected).contains(&said),
        _ => expected == said,
    }
}

/// Compares the members of a sorted set. A score may be in the past.
fn is_same_members(expected: &Value, said: &Value, passed: i64) -> bool {
    let (Some(expected), Some(said)) = (expected.as_object(), said.as_object()) else {
        return false;
    };
    expected.len() == said.len()
        && expected.iter().all(|(member, left)| {
            let left = left.as_i64().expect("a number");
            let said = said.get(member).and_then(Value::as_i64);
            // In memory, a waiter whose time has run out has zero left.
            said.is_some_and(|said| (left - passed..=left.max(0)).contains(&said))
        })
}

/// Compares two tokens. A token is a number, or a difference from the node's clock at the beginning.
fn is_same_token(expected: &Value, said: &Value, passed: i64, clock_millis: u64) -> bool {
    let Some(from_clock) = expected.get("clock").and_then(Value::as_i64) else {
        return expected == said;
    };
    let least = clock_millis.saturating_add_signed(from_clock);
    let most = least.saturating_add_signed(passed);
    said.as_u64()
        .is_some_and(|said| (least..=most).contains(&said))
        && *said != json!(0)
}
