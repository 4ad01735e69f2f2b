//! Whether an arm agrees with the specification.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::{Duration, Instant};

use quorlock_core::message::{
    AcquireReply, ForceReleaseReply, Found, Freshness, ReleaseReply, RenewReply, Reply, Ttl,
};
use quorlock_core::name::Name;
use quorlock_core::time::millis_of;
use quorlock_core::transport::Cause;

use super::arm::{Arm, Looks};
use super::spec_arm::SpecArm;
use super::step::Step;

/// Within one sequence so much real time must not pass: then keys would expire that should not.
///
/// The steps of time and the leases of a sequence are chosen such that no key comes nearer to its end than this.
const FASTER_THAN: Duration = Duration::from_secs(40);

/// Runs a sequence through the specification and the arm, and compares after each step.
///
/// # Errors
/// The first step at which they differ, and in what.
pub fn agree(
    steps: &[Step],
    names: &[Name],
    spec: &mut SpecArm,
    arm: &mut impl Arm,
    coverage: &mut Coverage,
) -> Result<(), String> {
    spec.begin();
    arm.begin();
    let start = Instant::now();
    let mut last = None;
    for (at, step) in steps.iter().enumerate() {
        let asked = match step {
            Step::Ask(request) => {
                last = Some(request.clone());
                last.as_ref()
            }
            Step::AskAgain => last.as_ref(),
            Step::Pass(span) => {
                spec.pass(*span);
                arm.pass(*span);
                None
            }
            Step::Plant(plant) => {
                spec.plant(plant);
                arm.plant(plant);
                None
            }
        };
        let differ = |what: &str, said: &dyn Debug, expected: &dyn Debug| {
            Err(format!(
                "step {at}, {step:?}: {what}\n  the specification: {expected:?}\n  the arm: {said:?}"
            ))
        };
        if let Some(request) = asked {
            let (expected, said) = (spec.apply(request), arm.apply(request));
            coverage.count(&expected);
            if !is_same_reply(&expected, &said, start.elapsed()) {
                return differ("other replies", &said, &expected);
            }
            let (expected, said) = (spec.published(), arm.published());
            if said != expected {
                return differ("other wake-ups", &said, &expected);
            }
        }
        let (expected, said) = (spec.look(names), arm.look(names));
        if !is_same_state(&expected, &said, start.elapsed()) {
            return differ("other keys", &said, &expected);
        }
    }
    assert!(start.elapsed() < FASTER_THAN, "the machine is too slow");
    Ok(())
}

fn is_same_reply(
    expected: &Result<Reply, Cause>,
    said: &Result<Reply, Cause>,
    passed: Duration,
) -> bool {
    match (expected, said) {
        (
            Ok(Reply::Acquire(AcquireReply::Refused { ttl: expected })),
            Ok(Reply::Acquire(AcquireReply::Refused { ttl: said })),
        ) => is_same_ttl(*expected, *said, passed),
        (Ok(Reply::Inspect(expected)), Ok(Reply::Inspect(said))) => {
            expected.token == said.token && is_same_found(&expected.found, &said.found, passed)
        }
        _ => expected == said,
    }
}

fn is_same_found(expected: &Found, said: &Found, passed: Duration) -> bool {
    let with_ttl = |found: &Found, new: Ttl| {
        let mut found = found.clone();
        if let Found::Plain { ttl, .. } | Found::OtherMode { ttl, .. } = &mut found {
            *ttl = new;
        }
        found
    };
    match (ttl_of(expected), ttl_of(said)) {
        (Some(expected_ttl), Some(said_ttl)) => {
            is_same_ttl(expected_ttl, said_ttl, passed) && *expected == with_ttl(said, expected_ttl)
        }
        _ => expected == said,
    }
}

fn ttl_of(found: &Found) -> Option<Ttl> {
    match found {
        Found::Plain { ttl, .. } | Found::OtherMode { ttl, .. } => Some(*ttl),
        Found::Nothing | Found::NotALock => None,
    }
}

fn is_same_state(expected: &Looks, said: &Looks, passed: Duration) -> bool {
    is_same_map(&expected.claims, &said.claims, passed)
        && is_same_map(&expected.tokens, &said.tokens, passed)
}

fn is_same_map<V: PartialEq>(
    expected: &BTreeMap<Name, (V, Ttl)>,
    said: &BTreeMap<Name, (V, Ttl)>,
    passed: Duration,
) -> bool {
    expected.len() == said.len()
        && expected.iter().zip(said).all(|(expected, said)| {
            let ((name, (value, ttl)), (said_name, (said_value, said_ttl))) = (expected, said);
            name == said_name && value == said_value && is_same_ttl(*ttl, *said_ttl, passed)
        })
}

/// The clock of the specification stands still, a real server's ran for as long as the sequence took so far.
fn is_same_ttl(expected: Ttl, said: Ttl, passed: Duration) -> bool {
    match (expected, said) {
        (Ttl::Millis(expected), Ttl::Millis(said)) => {
            let least = expected.saturating_sub(millis_of(passed) + 1);
            least <= said && said <= expected
        }
        _ => expected == said,
    }
}

/// How often each kind of answer occurred: sequences in which nothing happens prove nothing.
#[derive(Clone, Debug, Default)]
pub struct Coverage(BTreeMap<&'static str, usize>);

impl Coverage {
    const KINDS: [&str; 19] = [
        "granted anew",
        "granted again",
        "refused for a time",
        "refused without end",
        "other mode",
        "renewed",
        "not renewed",
        "freed",
        "kept",
        "not released",
        "wrong type",
        "two or more renewals at once",
        "seen free",
        "seen held",
        "seen in another mode",
        "seen to be no lock",
        "force-released",
        "force-released when free",
        "not force-released",
    ];

    fn count(&mut self, reply: &Result<Reply, Cause>) {
        let mut add = |kind| *self.0.entry(kind).or_default() += 1;
        match reply {
            Ok(Reply::Acquire(reply)) => add(match reply {
                AcquireReply::Granted { freshness, .. } => match freshness {
                    Freshness::Anew => "granted anew",
                    Freshness::AlreadyYours => "granted again",
                },
                AcquireReply::Refused { ttl } => match ttl {
                    Ttl::Millis(_) => "refused for a time",
                    Ttl::Unbounded => "refused without end",
                },
                AcquireReply::OtherMode(_) => "other mode",
            }),
            Ok(Reply::Renew(replies)) => {
                for reply in replies {
                    add(match reply {
                        RenewReply::AlreadyYours { .. } => "renewed",
                        RenewReply::NotYours => "not renewed",
                    });
                }
                if 2 <= replies.len() {
                    add("two or more renewals at once");
                }
            }
            Ok(Reply::Release(reply)) => add(match reply {
                ReleaseReply::Freed => "freed",
                ReleaseReply::Kept => "kept",
                ReleaseReply::NotYours => "not released",
            }),
            Ok(Reply::Inspect(reply)) => add(match reply.found {
                Found::Nothing => "seen free",
                Found::Plain { .. } => "seen held",
                Found::OtherMode { .. } => "seen in another mode",
                Found::NotALock => "seen to be no lock",
            }),
            Ok(Reply::ForceRelease(reply)) => add(match reply {
                ForceReleaseReply::Freed => "force-released",
                ForceReleaseReply::WasFree => "force-released when free",
                ForceReleaseReply::OtherMode(_) => "not force-released",
            }),
            Err(Cause::WrongType) => add("wrong type"),
            Err(_) => add("another error"),
        }
    }

    /// Checks that every kind of answer occurred at least so often.
    ///
    /// # Panics
    /// When one did not, with the counts of all.
    pub fn assert_each_occurred(&self, least: usize) {
        for kind in Coverage::KINDS {
            let count = self.0.get(kind).copied().unwrap_or(0);
            assert!(least <= count, "{kind}: only {count} times in {:?}", self.0);
        }
    }
}
