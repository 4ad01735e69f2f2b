//! The usual paths of each script, as requests that take them.

use std::time::Duration;

use quorlock_core::claim_version::{ClaimVersion, ClockMargin};
use quorlock_core::fencing::Token;
use quorlock_core::lease::Lease;
use quorlock_core::marker::{Act, ConfirmedMarker, Figures, Nonce, Process, Restarts};
use quorlock_core::message::{
    Access, Acquire, Check, Claim, ForceRelease, Inspect, Mode, QueuePlace, Release, Renew,
    Request, Retention,
};
use quorlock_core::name::Name;
use quorlock_tests::requests::{LEASE, RETENTION, acquire, name, owner, wall_clock};

/// The largest number of names in the requests of a path.
pub(super) const MOST_NAMES: u64 = 16;

/// One path through a script.
pub(super) struct Path {
    pub(super) script: &'static str,
    pub(super) when: &'static str,
    /// The earlier requests.
    pub(super) before: Vec<Request>,
    /// The commands of another program after these requests.
    pub(super) planted: Vec<Vec<&'static str>>,
    /// The requests that are sent at the same moment.
    pub(super) requests: Vec<Request>,
}

pub(super) fn name_of(number: u64) -> Name {
    name(&format!("orders/{number}"))
}

fn path(script: &'static str, when: &'static str, before: Vec<Request>, request: Request) -> Path {
    Path {
        script,
        when,
        before,
        planted: Vec::new(),
        requests: vec![request],
    }
}

fn plain(number: u64) -> Acquire {
    acquire(&name_of(1), number)
}

fn beating(number: u64) -> Acquire {
    let margin_millis = 30_000;
    Acquire {
        keep: Some(ClockMargin {
            margin_millis,
            number: 1,
        }),
        ..plain(number)
    }
}

/// Returns a lease that is a second longer than that of the previous number. Whether a TTL is too short must not
/// depend on a millisecond.
fn lease(number: u64) -> Lease {
    Lease::new(LEASE + Duration::from_secs(number)).expect("long enough")
}

fn asks(access: Access, number: u64) -> Request {
    Request::Acquire(Acquire {
        access,
        lease: lease(number),
        ..plain(number)
    })
}

fn fair(number: u64) -> Request {
    let place = QueuePlace::Kept { millis: 30_000 };
    asks(Access::Fair(place), number)
}

fn read(number: u64) -> Request {
    asks(Access::Read { under: None }, number)
}

fn write(number: u64) -> Request {
    asks(Access::Write, number)
}

fn release(mode: Mode, number: u64, count: u32) -> Request {
    Request::Release(Release {
        name: name_of(1),
        mode,
        owner: owner(number),
        count,
    })
}

fn renew(mode: Mode, number: u64, token: u64, seconds: u64) -> Renew {
    Renew {
        mode,
        claims: vec![claim(1, number, token, seconds)],
        retention: Retention::of(RETENTION),
    }
}

fn claim(name: u64, number: u64, token: u64, seconds: u64) -> Claim {
    Claim {
        name: name_of(name),
        owner: owner(number),
        count: 1,
        lease: lease(seconds),
        token: Token(token),
        keep: None,
    }
}

/// A renewal of a claim of owner 1, for a counter that is kept for so long that no renewal looks at its TTL. (It would
/// in the first seconds of each eighth of this time, the next of which is thousands of years away.)
fn renew_without_a_look(token: u64, seconds: u64) -> Renew {
    Renew {
        retention: Retention::Millis(1 << 50),
        ..renew(Mode::Plain, 1, token, seconds)
    }
}

/// A renewal of a claim of owner 1, for a counter that is kept so briefly that each renewal looks at its TTL.
fn renew_with_a_look(token: u64, seconds: u64) -> Renew {
    Renew {
        retention: Retention::of(4 * LEASE),
        ..renew(Mode::Plain, 1, token, seconds)
    }
}

/// Returns the renewals of eight claims in one request.
fn renew_many(token: u64, seconds: u64) -> Renew {
    Renew {
        claims: (1..=8)
            .map(|number| claim(number, number, token, seconds))
            .collect(),
        ..renew_without_a_look(token, seconds)
    }
}

fn confirmed(process: u64, nonce: Nonce) -> ConfirmedMarker {
    ConfirmedMarker {
        process: Process(process),
        nonce,
        figures: Figures::same(60_000),
    }
}

fn check(act: Act, trusted: Option<ConfirmedMarker>) -> Check {
    Check {
        figures: Figures::same(60_000),
        act,
        trusted,
        restarts: Restarts::MayForget,
        known: None,
    }
}

pub(super) fn all(process: u64) -> Vec<Path> {
    let mut all = of_plain_acquires();
    all.extend(of_plain_renewals());
    all.extend(of_plain_releases());
    all.extend(of_checks(process));
    all.push(of_batches(process));
    all.extend(of_fair_locks());
    all.extend(of_read_write_locks());
    all.extend(of_operators());
    all
}

fn of_plain_acquires() -> Vec<Path> {
    let ask = Request::Acquire;
    let held = || vec![ask(plain(1))];
    let replacing = Acquire {
        replaces: Some(ClaimVersion {
            owner: owner(1),
            number: 1,
            lease_millis: 30_000,
        }),
        ..beating(2)
    };
    let versions = || vec![ask(beating(1))];
    vec![
        path("acquire", "The name is free", vec![], ask(plain(1))),
        path(
            "acquire",
            "The owner already holds it",
            held(),
            ask(again()),
        ),
        path("acquire", "Another owner holds it", held(), ask(plain(2))),
        path(
            "acquire",
            "The same with a clock margin",
            versions(),
            ask(beating(2)),
        ),
        path(
            "acquire",
            "A claim that was unchanged for a lease is replaced",
            versions(),
            ask(replacing),
        ),
    ]
}

fn of_plain_renewals() -> Vec<Path> {
    let ask = Request::Acquire;
    let held = || vec![ask(plain(1))];
    let far = wall_clock().0 + 10_000;
    vec![
        path(
            "renew",
            "The counter is written: the hold's token is larger",
            held(),
            Request::Renew(renew(Mode::Plain, 1, far, 5)),
        ),
        path(
            "renew",
            "The counter is not written: it has this token, and its TTL is not looked at now",
            vec![ask(plain(1)), Request::Renew(renew_without_a_look(far, 5))],
            Request::Renew(renew_without_a_look(far, 6)),
        ),
        path(
            "renew",
            "The counter is not written: it has this token, and less than half of its retention has passed",
            vec![ask(plain(1)), Request::Renew(renew_with_a_look(far, 5))],
            Request::Renew(renew_with_a_look(far, 6)),
        ),
        path(
            "renew",
            "Eight claims, whose counters are not written",
            (1..=8)
                .map(|number| ask(acquire(&name_of(number), number)))
                .chain([Request::Renew(renew_many(far, 5))])
                .collect(),
            Request::Renew(renew_many(far, 6)),
        ),
        path(
            "renew",
            "The claim does not belong to the owner",
            held(),
            Request::Renew(renew(Mode::Plain, 2, far, 5)),
        ),
    ]
}

fn of_plain_releases() -> Vec<Path> {
    let held = || vec![Request::Acquire(plain(1))];
    let twice = vec![Request::Acquire(again())];
    vec![
        path(
            "release",
            "The name is freed",
            held(),
            release(Mode::Plain, 1, 0),
        ),
        path(
            "release",
            "A re-entry ends",
            twice,
            release(Mode::Plain, 1, 1),
        ),
        path(
            "release",
            "The claim does not belong to the owner",
            held(),
            release(Mode::Plain, 2, 0),
        ),
    ]
}

/// Returns the acquire of a re-entry.
fn again() -> Acquire {
    Acquire {
        count: 2,
        lease: lease(1),
        ..plain(1)
    }
}

fn of_checks(process: u64) -> Vec<Path> {
    let nonce = Nonce::new(7);
    let fresh = Request::Probe(check(Act::MarkFresh(nonce), None));
    let observing = Request::Probe(check(Act::Mark(nonce), None));
    let trusting = Acquire {
        check: Some(check(Act::Look, Some(confirmed(process, nonce)))),
        ..beating(1)
    };
    let marking = Acquire {
        check: Some(check(Act::Mark(nonce), None)),
        ..beating(1)
    };
    let confirmation = Request::Probe(check(Act::Confirm(nonce), None));
    let looking = Request::Probe(check(Act::Look, None));
    vec![
        path(
            "check",
            "An acquire of a client that trusts this process",
            vec![fresh.clone()],
            Request::Acquire(trusting),
        ),
        path(
            "check",
            "An acquire that writes a marker, because there is none",
            vec![],
            Request::Acquire(marking),
        ),
        path(
            "check",
            "A watch ends, and the marker is confirmed",
            vec![observing],
            confirmation,
        ),
        path("check", "The marker is only read", vec![fresh], looking),
    ]
}

/// Half of the names are acquired and half of them released.
fn of_batches(process: u64) -> Path {
    let nonce = Nonce::new(7);
    let ask = |number, check| {
        let name = name_of(number);
        let ask = beating(1);
        Request::Acquire(Acquire { name, check, ..ask })
    };
    let half = MOST_NAMES / 2;
    let mut before = vec![Request::Probe(check(Act::MarkFresh(nonce), None))];
    before.extend((1..=half).map(|number| ask(number, None)));
    let trusting = check(Act::Look, Some(confirmed(process, nonce)));
    let acquires = (half + 1..=MOST_NAMES).map(|number| ask(number, Some(trusting)));
    let releases = (1..=half).map(|number| {
        Request::Release(Release {
            name: name_of(number),
            mode: Mode::Plain,
            owner: owner(1),
            count: 0,
        })
    });
    Path {
        before,
        requests: acquires.chain(releases).collect(),
        ..path(
            "batch",
            "Eight acquires of free names by a client that trusts this process, and eight releases",
            vec![],
            fair(1),
        )
    }
}

fn of_fair_locks() -> Vec<Path> {
    vec![
        path(
            "fair_acquire",
            "The name is free, and no owner waits",
            vec![],
            fair(1),
        ),
        path(
            "fair_acquire",
            "Another owner holds it",
            vec![fair(1)],
            fair(2),
        ),
        path(
            "fair_acquire",
            "The name is free, and the owner is the first waiter",
            vec![fair(1), fair(2), release(Mode::Fair, 1, 0)],
            fair(2),
        ),
        path(
            "fair_release",
            "The name is freed, and an owner waits",
            vec![fair(1), fair(2)],
            release(Mode::Fair, 1, 0),
        ),
        path(
            "fair_release",
            "The name is freed, and no owner waits",
            vec![fair(1)],
            release(Mode::Fair, 1, 0),
        ),
        path(
            "fair_release",
            "An owner gives up its place in the queue",
            vec![fair(1), fair(2)],
            release(Mode::Fair, 2, 0),
        ),
    ]
}

fn of_read_write_locks() -> Vec<Path> {
    vec![
        path("read_acquire", "No owner holds it", vec![], read(1)),
        path(
            "read_acquire",
            "Another owner reads",
            vec![read(1)],
            read(2),
        ),
        path(
            "read_acquire",
            "Another owner writes",
            vec![write(1)],
            read(2),
        ),
        path(
            "read_renew",
            "The owner reads",
            vec![read(1)],
            Request::Renew(renew(Mode::Read, 1, 1, 5)),
        ),
        path(
            "read_release",
            "The last reader leaves",
            vec![read(1)],
            release(Mode::Read, 1, 0),
        ),
        path(
            "read_release",
            "Another owner still reads",
            vec![read(1), read(2)],
            release(Mode::Read, 1, 0),
        ),
        path("write_acquire", "No owner holds it", vec![], write(1)),
        path(
            "write_acquire",
            "Another owner writes",
            vec![write(1)],
            write(2),
        ),
        path(
            "write_acquire",
            "Another owner reads",
            vec![read(1)],
            write(2),
        ),
        path(
            "write_renew",
            "The owner writes, and the hold's token is larger than the counter",
            vec![write(1)],
            Request::Renew(renew(Mode::Write, 1, wall_clock().0 + 10_000, 5)),
        ),
        path(
            "write_release",
            "The name is freed",
            vec![write(1)],
            release(Mode::Write, 1, 0),
        ),
    ]
}

fn of_operators() -> Vec<Path> {
    let name = name_of(1);
    let inspect = || Request::Inspect(Inspect::of(name.clone()));
    let force = || Request::ForceRelease(ForceRelease { name: name.clone() });
    let held = || vec![Request::Acquire(beating(1))];
    vec![
        path("inspect", "A plain lock is held", held(), inspect()),
        path("inspect", "An owner reads", vec![read(1)], inspect()),
        path("inspect", "The name is free", vec![], inspect()),
        path("force_release", "A plain lock is held", held(), force()),
        path("force_release", "An owner reads", vec![read(1)], force()),
        path("force_release", "The name is free", vec![], force()),
    ]
}
