//! Compares an arm with the specification.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::{Duration, Instant};

use quorlock_core::marker::{ConfirmedMarker, MarkerState, Process, ShownMarker};
use quorlock_core::message::{
    Acquire, AcquireReply, Channel, ForceReleaseReply, Found, Freshness, Mode, ReleaseReply,
    RenewReply, Reply, Request, Ttl, Wake,
};
use quorlock_core::name::Name;
use quorlock_core::owner::OwnerId;
use quorlock_core::time::millis_of;
use quorlock_core::transport::Cause;

use super::arm::{Arm, Looks};
use super::generate::OWN;
use super::spec_arm::SpecArm;
use super::step::Step;
use crate::wire;

/// The limit on the real time of one sequence. After this time, keys would expire too early.
///
/// The steps of time and the leases of a sequence are chosen so that no key comes closer than this to its end.
const FASTER_THAN: Duration = Duration::from_secs(40);

/// Runs a sequence through the specification and the arm, and compares them after each step.
///
/// # Errors
/// Returns the first step at which they differ, and the difference.
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
                last.as_slice()
            }
            Step::AskAgain => last.as_slice(),
            Step::AskTogether(requests) => requests,
            Step::Pass(span) => {
                spec.pass(*span);
                arm.pass(*span);
                &[]
            }
            Step::Plant(plant) => {
                spec.plant(plant);
                arm.plant(plant);
                &[]
            }
        };
        let differ = |what, said: &dyn Debug, expected: &dyn Debug| {
            Err(difference(at, step, what, said, expected))
        };
        let asks: Vec<_> = asked.iter().map(|r| told(r, arm.process())).collect();
        let answers = arm.apply_together(&asks);
        assert_eq!(answers.len(), asked.len());
        for (request, said) in asked.iter().zip(answers) {
            let (before, expected) = (spec.look(names), spec.apply(&told(request, spec.process())));
            let expected = listened(request, expected, arm.told());
            coverage.count(&expected);
            coverage.count_replaced(&before, request, &expected);
            coverage.count_trusted(request, &expected);
            if !is_same_reply(&expected, &said, start.elapsed()) {
                return differ("other replies", &said, &expected);
            }
        }
        if !asked.is_empty() {
            let (expected, said) = (in_order(spec.published()), in_order(arm.published()));
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

fn difference(
    at: usize,
    step: &Step,
    what: &str,
    said: &dyn Debug,
    expected: &dyn Debug,
) -> String {
    format!("step {at}, {step:?}: {what}\n  the specification: {expected:?}\n  the arm: {said:?}")
}

/// Returns the kind of an answer to an acquire.
fn kind_of(reply: &AcquireReply) -> &'static str {
    match reply {
        AcquireReply::Granted { freshness, .. } => match freshness {
            Freshness::Anew => "granted anew",
            Freshness::AlreadyYours => "granted again",
        },
        AcquireReply::Refused {
            version: Some(_), ..
        } => "refused with a claim version",
        AcquireReply::Refused { ttl, .. } => match ttl {
            Ttl::Millis(_) => "refused for a time",
            Ttl::Unbounded => "refused without end",
        },
        AcquireReply::Queued { .. } => "queued",
        AcquireReply::OtherMode(_) => "other mode",
        _ => UNLISTED,
    }
}

/// Returns the reply of a node whose channels have this many listeners.
fn listened(
    request: &Request,
    mut reply: Result<Reply, Cause>,
    listening: u32,
) -> Result<Reply, Cause> {
    if let (Request::Release(ask), Ok(Reply::Release(ReleaseReply::Freed { told }))) =
        (request, &mut reply)
        && ask.mode == Mode::Plain
    {
        *told = listening;
    }
    reply
}

/// Returns the messages as they are on the wire, where twins have the same channels, and sorts them. The order of
/// messages about different names does not matter.
fn in_order(published: Vec<(Channel, Wake)>) -> Vec<(String, Wake)> {
    let published = published.into_iter();
    let mut published: Vec<_> = published
        .map(|(channel, wake)| (wire::channel_of(&channel), wake))
        .collect();
    published.sort_by_key(|(channel, wake)| (channel.clone(), format!("{wake:?}")));
    published
}

/// Returns the request as it reaches a server that is this process.
fn told(request: &Request, process: Process) -> Request {
    let mut request = request.clone();
    if let Request::Probe(check)
    | Request::Acquire(Acquire {
        check: Some(check), ..
    }) = &mut request
        && let Some(ConfirmedMarker {
            process: trusted, ..
        }) = &mut check.trusted
        && *trusted == OWN
    {
        *trusted = process;
    }
    request
}

fn is_same_reply(
    expected: &Result<Reply, Cause>,
    said: &Result<Reply, Cause>,
    passed: Duration,
) -> bool {
    match (expected, said) {
        (
            Ok(Reply::Acquire(AcquireReply::Refused { ttl, version })),
            Ok(Reply::Acquire(AcquireReply::Refused {
                ttl: said,
                version: said_version,
            })),
        ) => version == said_version && is_same_ttl(*ttl, *said, passed),
        (
            Ok(Reply::Acquire(AcquireReply::Queued { ttl: expected })),
            Ok(Reply::Acquire(AcquireReply::Queued { ttl: said })),
        ) => is_same_ttl(*expected, *said, passed),
        // Each server is a different process.
        (Ok(Reply::Probe(expected)), Ok(Reply::Probe(said))) => expected.marker == said.marker,
        (Ok(Reply::Checked(expected, expected_shown)), Ok(Reply::Checked(said, said_shown))) => {
            let (expected, said) = (Reply::Acquire(*expected), Reply::Acquire(*said));
            expected_shown.marker == said_shown.marker
                && is_same_reply(&Ok(expected), &Ok(said), passed)
        }
        (Ok(Reply::Inspect(expected)), Ok(Reply::Inspect(said))) => {
            expected.token == said.token
                && expected.waiting == said.waiting
                && is_same_found(&expected.found, &said.found, passed)
        }
        _ => expected == said,
    }
}

fn is_same_found(expected: &Found, said: &Found, passed: Duration) -> bool {
    let with_ttl = |found: &Found, new: Ttl| {
        let mut found = found.clone();
        if let Found::Plain { ttl, .. } | Found::ReadWrite { ttl, .. } = &mut found {
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
        Found::Plain { ttl, .. } | Found::ReadWrite { ttl, .. } => Some(*ttl),
        _ => None,
    }
}

fn is_same_state(expected: &Looks, said: &Looks, passed: Duration) -> bool {
    let is_same_marker = match (expected.marker, said.marker) {
        (Some((expected, expected_ttl)), Some((said, said_ttl))) => {
            expected == said && is_same_ttl(expected_ttl, said_ttl, passed)
        }
        (expected, said) => expected.is_none() && said.is_none(),
    };
    is_same_marker
        && expected.versions == said.versions
        && is_same_map(&expected.claims, &said.claims, passed)
        && is_same_map(&expected.tokens, &said.tokens, passed)
        && is_same_leases(&expected.leases, &said.leases, passed)
        && is_same_queues(&expected.queues, &said.queues, passed)
}

fn is_same_leases(
    expected: &BTreeMap<(Name, OwnerId), Ttl>,
    said: &BTreeMap<(Name, OwnerId), Ttl>,
    passed: Duration,
) -> bool {
    expected.len() == said.len()
        && expected.iter().zip(said).all(|(expected, said)| {
            expected.0 == said.0 && is_same_ttl(*expected.1, *said.1, passed)
        })
}

fn is_same_queues(
    expected: &BTreeMap<Name, Vec<(OwnerId, Ttl)>>,
    said: &BTreeMap<Name, Vec<(OwnerId, Ttl)>>,
    passed: Duration,
) -> bool {
    expected.len() == said.len()
        && expected.iter().zip(said).all(|(expected, said)| {
            let ((name, queue), (said_name, said_queue)) = (expected, said);
            let same = |((owner, ttl), (said_owner, said_ttl)): (&_, &_)| {
                owner == said_owner && is_same_ttl(*ttl, *said_ttl, passed)
            };
            name == said_name
                && queue.len() == said_queue.len()
                && queue.iter().zip(said_queue).all(same)
        })
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

/// Compares two TTLs. The clock of the specification stands still; a real server's has run for the time of the
/// sequence so far.
fn is_same_ttl(expected: Ttl, said: Ttl, passed: Duration) -> bool {
    match (expected, said) {
        (Ttl::Millis(expected), Ttl::Millis(said)) => {
            let least = expected.saturating_sub(millis_of(passed) + 1);
            least <= said && said <= expected
        }
        _ => expected == said,
    }
}

/// The name under which answers of an unknown kind are counted. A new kind must be generated and counted as well.
const UNLISTED: &str = "an answer of a new kind";

/// How often each kind of answer occurred. Sequences in which a kind does not occur prove nothing about it.
#[derive(Clone, Debug, Default)]
pub struct Coverage(BTreeMap<&'static str, usize>);

impl Coverage {
    const KINDS: [&str; 28] = [
        "refused with a claim version",
        "a claim replaced",
        "no marker seen",
        "another's marker seen",
        "an observing marker seen",
        "a confirmed marker seen",
        "the trusted marker seen",
        "a longer lease than is granted",
        "granted anew",
        "granted again",
        "refused for a time",
        "refused without end",
        "queued",
        "other mode",
        "renewed",
        "not renewed",
        "freed",
        "kept",
        "left",
        "not released",
        "wrong type",
        "two or more renewals at once",
        "seen free",
        "seen held",
        "seen shared",
        "seen to be no lock",
        "force-released",
        "force-released when free",
    ];

    /// Counts an acquire that was granted again although another owner held the name.
    fn count_replaced(&mut self, before: &Looks, request: &Request, reply: &Result<Reply, Cause>) {
        let (Request::Acquire(ask), Ok(Reply::Acquire(reply) | Reply::Checked(reply, _))) =
            (request, reply)
        else {
            return;
        };
        let anew = Freshness::Anew;
        let is_anew =
            matches!(reply, AcquireReply::Granted { freshness, .. } if *freshness == anew);
        if is_anew && before.claims.contains_key(&ask.name) {
            *self.0.entry("a claim replaced").or_default() += 1;
        }
    }

    /// Counts a server that showed that it is still the trusted process.
    fn count_trusted(&mut self, request: &Request, reply: &Result<Reply, Cause>) {
        if let (Request::Acquire(ask), Ok(Reply::Checked(_, shown))) = (request, reply)
            && let Some(trusted) = ask.check.and_then(|check| check.trusted)
            && trusted.process == OWN
            && shown.marker
                == ShownMarker::Own(trusted.nonce, MarkerState::Confirmed, trusted.figures)
        {
            *self.0.entry("the trusted marker seen").or_default() += 1;
        }
    }

    fn count(&mut self, reply: &Result<Reply, Cause>) {
        let mut add = |kind| *self.0.entry(kind).or_default() += 1;
        if let Ok(Reply::Checked(_, shown) | Reply::Probe(shown)) = reply {
            add(match shown.marker {
                ShownMarker::Missing => "no marker seen",
                ShownMarker::Anothers => "another's marker seen",
                ShownMarker::Own(_, MarkerState::Observing, _) => "an observing marker seen",
                ShownMarker::Own(_, MarkerState::Confirmed, _) => "a confirmed marker seen",
            });
        }
        match reply {
            Ok(Reply::Probe(_)) => {}
            Err(Cause::LongestLease) => add("a longer lease than is granted"),
            Ok(Reply::Acquire(reply) | Reply::Checked(reply, _)) => add(kind_of(reply)),
            Ok(Reply::Renew(replies)) => {
                for reply in replies {
                    add(match reply {
                        RenewReply::AlreadyYours { .. } => "renewed",
                        RenewReply::NotYours => "not renewed",
                        _ => UNLISTED,
                    });
                }
                if 2 <= replies.len() {
                    add("two or more renewals at once");
                }
            }
            Ok(Reply::Release(reply)) => add(match reply {
                ReleaseReply::Freed { .. } => "freed",
                ReleaseReply::Kept => "kept",
                ReleaseReply::Left => "left",
                ReleaseReply::NotYours => "not released",
                _ => UNLISTED,
            }),
            Ok(Reply::Inspect(reply)) => add(match reply.found {
                Found::Nothing => "seen free",
                Found::Plain { .. } => "seen held",
                Found::ReadWrite { .. } => "seen shared",
                Found::NotALock => "seen to be no lock",
                _ => UNLISTED,
            }),
            Ok(Reply::ForceRelease(reply)) => add(match reply {
                ForceReleaseReply::Freed => "force-released",
                ForceReleaseReply::WasFree => "force-released when free",
                _ => UNLISTED,
            }),
            Err(Cause::WrongType) => add("wrong type"),
            Err(_) => add("another error"),
            Ok(_) => add(UNLISTED),
        }
    }

    /// Checks that every kind of answer occurred at least `least` times.
    ///
    /// # Panics
    /// Panics if one did not (the message has all counts), or if there was an answer of an unknown kind.
    pub fn assert_each_occurred(&self, least: usize) {
        assert!(!self.0.contains_key(UNLISTED), "{UNLISTED}: give it a name");
        for kind in Coverage::KINDS {
            let count = self.0.get(kind).copied().unwrap_or(0);
            assert!(least <= count, "{kind}: only {count} times in {:?}", self.0);
        }
    }
}
