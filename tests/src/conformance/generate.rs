//! Generates random sequences from a seed.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::{BoxedStrategy, Just, Strategy, any, prop_oneof};
use proptest::sample::{select, subsequence};

use quorlock_core::claim_version::{ClaimVersion, ClockMargin};
use quorlock_core::fencing::{Fence, Token};
use quorlock_core::lease::Lease;
use quorlock_core::marker::{Act, ConfirmedMarker, Figures, Nonce, Process, Restarts};
use quorlock_core::message::{
    Access, Acquire, Check, Claim, ForceRelease, Inspect, Mode, QueuePlace, Release, Renew,
    Request, Retention,
};
use quorlock_core::name::Name;
use quorlock_core::node::{Held, KeyKind};
use quorlock_core::owner::{ClientId, OwnerId};
use quorlock_core::time::{WallMillis, millis_of};

use super::names::{OWNERS, TWIN, many_names, named, owner_of};
use super::step::{Plant, Step};

/// The unit in which time passes. Everything expires half a unit away from a step, so no key is ever near its end, and
/// a few milliseconds of real time make no difference.
const STEP: Duration = Duration::from_secs(100);

/// A placeholder for the process of the server that is queried, because each server has a different one.
pub(super) const OWN: Process = Process(u64::MAX);

/// A process that no server has.
const OTHER: Process = Process((1 << 52) - 1);

/// Generates sequences of up to 24 steps about one or two names, on a node whose clock is about `now`. Most use one kind
/// of lock, some mix them. Some are about twins.
pub fn sequences(now: WallMillis) -> impl Strategy<Value = Vec<Step>> {
    drawn(now, false)
}

/// Generates sequences during which the server evicts keys, of plain and of fair locks.
pub fn evicting_sequences(now: WallMillis) -> impl Strategy<Value = Vec<Step>> {
    drawn(now, true)
}

fn drawn(now: WallMillis, evicts: bool) -> impl Strategy<Value = Vec<Step>> {
    use Mode::{Fair, Plain, Read, Write};
    let modes = prop_oneof![
        2 => Just(vec![Plain]),
        3 => Just(vec![Fair]),
        3 => Just(vec![Read, Write]),
        2 => Just(vec![Plain, Fair]),
        1 => Just(vec![Plain, Fair, Read, Write]),
    ];
    modes.prop_flat_map(move |modes| {
        let is_shared = modes.contains(&Read);
        let usual = named(["orders/42", "{tag}:stock 7", "a}b{c", "заказ/🔒"]);
        let usual = subsequence(usual, 1..=2).prop_map(move |names| (names, !evicts));
        // The leases of readers would be one key for twins, because here the owners of both are the same. And they
        // would outlive an evicted claim.
        let twins = Just((named(["orders/42", TWIN]), false));
        let twins = if is_shared {
            usual.clone().boxed()
        } else {
            twins.boxed()
        };
        let modes = modes.clone();
        prop_oneof![4 => usual, 1 => twins].prop_flat_map(move |(names, reads)| {
            let one = step(names.clone(), modes.clone(), is_shared || reads, now);
            let evicted = evict(select(names)).prop_map(Step::Plant);
            let weight = u32::from(evicts && !is_shared);
            vec(prop_oneof![9 => one, weight => evicted], 1..=24)
        })
    })
}

/// Generates the eviction of any keys of a name.
fn evict(name: impl Strategy<Value = Name>) -> impl Strategy<Value = Plant> {
    use KeyKind::{Alive, Claim, Queue, Timeouts, Token};
    let kinds = vec![Claim, Token, Queue, Alive, Timeouts];
    let kinds = subsequence(kinds, 1..=5);
    (name, kinds).prop_map(|(name, kinds)| Plant::Evict { name, kinds })
}

/// Generates sequences of up to 24 steps about many names, on a node whose clock is about `now`. Most steps are
/// requests for plain locks that callers send at the same moment.
pub fn gathered_sequences(now: WallMillis) -> impl Strategy<Value = Vec<Step>> {
    let names = many_names();
    let one = step(names.clone(), vec![Mode::Plain], false, now);
    let together = subsequence(names.clone(), 2..=names.len()).prop_shuffle();
    let together = together.prop_flat_map(move |names| {
        // The requests of a call that is refused as a whole are sent again, after those of later calls. The order of
        // requests for twins shows in their tokens, so none of their requests checks the server's process.
        let stems: BTreeSet<_> = names.iter().map(Name::stem).collect();
        let checks = stems.len() == names.len();
        let requests = names.iter().map(|name| joining(name.clone(), now, checks));
        let requests: Vec<_> = requests.collect();
        requests.prop_map(Step::AskTogether)
    });
    vec(prop_oneof![1 => one, 1 => together], 1..=24)
}

/// Generates a request that can usually be batched with others. The request has no effect that other requests see.
/// `checks` is whether it may check the server's process.
fn joining(name: Name, now: WallMillis, checks: bool) -> impl Strategy<Value = Request> {
    let (plain, named) = (|| Just(Mode::Plain), move || Just(name.clone()));
    let asks = prop_oneof![
        3 => acquire(named(), plain(), now),
        1 => renew(named(), plain(), now),
        2 => release(named(), plain()),
    ];
    (asks, any::<bool>()).prop_map(move |(mut request, is_trusting)| {
        match &mut request {
            Request::Acquire(ask) => {
                ask.check = ask
                    .check
                    .filter(|check| checks && is_trusting && check.trusted.is_some());
                if let Some(check) = &mut ask.check {
                    check.act = Act::Look;
                }
            }
            Request::Renew(ask) => ask.claims.truncate(1),
            _ => {}
        }
        request
    })
}

/// Generates a step. `reads` is whether another program may write the claims of readers.
fn step(
    names: Vec<Name>,
    modes: Vec<Mode>,
    reads: bool,
    now: WallMillis,
) -> impl Strategy<Value = Step> {
    let plants = plant_key(names.clone(), reads);
    let names = || select(names.clone());
    let modes = || select(modes.clone());
    prop_oneof![
        10 => acquire(names(), modes(), now).prop_map(Step::Ask),
        3 => take_over(names(), modes(), now).prop_map(Step::Ask),
        1 => hand_over(names(), modes(), now).prop_map(Step::Ask),
        2 => check().prop_map(|check| Step::Ask(Request::Probe(check))),
        4 => renew(names(), modes(), now).prop_map(Step::Ask),
        7 => release(names(), modes()).prop_map(Step::Ask),
        2 => names().prop_map(|name| Step::Ask(Request::Inspect(Inspect::of(name)))),
        1 => names().prop_map(|name| Step::Ask(Request::ForceRelease(ForceRelease { name }))),
        3 => Just(Step::AskAgain),
        2 => (1..=3u32).prop_map(|steps| Step::Pass(steps * STEP)),
        2 => plants.prop_map(Step::Plant),
        1 => plant_token(names(), now).prop_map(Step::Plant),
        2 => Just(Step::Plant(Plant::Restart)),
    ]
}

fn acquire(
    name: impl Strategy<Value = Name>,
    mode: impl Strategy<Value = Mode>,
    now: WallMillis,
) -> impl Strategy<Value = Request> {
    let check = prop_oneof![Just(None), check().prop_map(Some)];
    let access = mode.prop_flat_map(access);
    let parts = (name, owner(), 1..=3u32, lease(), fence(now), retention());
    let after = prop_oneof![Just(None), token(now).prop_map(Some)];
    let more = (access, keep(), replaces(), check, after);
    (parts, more).prop_map(|(parts, (access, keep, replaces, check, after))| {
        let (name, owner, count, lease, fence, retention) = parts;
        let (keep, replaces) = versioned(access.mode(), keep, replaces);
        Request::Acquire(Acquire {
            name,
            access,
            owner,
            count,
            lease,
            fence,
            retention,
            keep,
            after: after.filter(|_| access == Access::Plain),
            replaces,
            continues: None,
            check,
        })
    })
}

/// Generates the check of a request. Usually no lease exceeds its longest lease; sometimes some leases do.
fn check() -> impl Strategy<Value = Check> {
    let figures = || prop_oneof![9 => Just(same(4 * STEP)), 1 => Just(same(STEP)), 3 => raising()];
    let nonce = || select(vec![1, 7, (1 << 53) - 1]).prop_map(Nonce::new);
    let act = prop_oneof![
        2 => Just(Act::Look),
        2 => nonce().prop_map(Act::Mark),
        1 => nonce().prop_map(Act::MarkAnew),
        1 => nonce().prop_map(Act::MarkFresh),
        3 => nonce().prop_map(Act::Confirm),
        2 => Just(Act::Restate),
    ];
    let process = prop_oneof![5 => Just(OWN), 1 => Just(OTHER)];
    let trusted = (process, nonce(), figures()).prop_map(|(process, nonce, figures)| {
        Some(ConfirmedMarker {
            process,
            nonce,
            figures,
        })
    });
    let trusted = prop_oneof![1 => Just(None), 2 => trusted];
    let restarts = select(vec![Restarts::MayForget, Restarts::KeepEverything]);
    let known = prop_oneof![Just(None), nonce().prop_map(Some)];
    let parts = (figures(), act, trusted, restarts, known);
    parts.prop_map(|(figures, act, trusted, restarts, known)| Check {
        figures,
        act,
        trusted,
        restarts,
        known,
    })
}

fn same(longest: Duration) -> Figures {
    Figures::same(millis_of(longest))
}

/// Figures of a raise that is under way.
fn raising() -> impl Strategy<Value = Figures> {
    (any::<bool>()).prop_map(|is_needed| {
        let watched = same(8 * STEP);
        Figures {
            granted_millis: millis_of(4 * STEP),
            needed_millis: millis_of(if is_needed { 8 * STEP } else { 4 * STEP }),
            ..watched
        }
    })
}

fn access(mode: Mode) -> BoxedStrategy<Access> {
    let kept = |span| QueuePlace::Kept {
        millis: millis_of(span),
    };
    match mode {
        Mode::Plain => Just(Access::Plain).boxed(),
        Mode::Fair => prop_oneof![1 => Just(QueuePlace::None), 4 => half_steps().prop_map(kept)]
            .prop_map(Access::Fair)
            .boxed(),
        Mode::Read => prop_oneof![2 => Just(None), 1 => owner().prop_map(Some)]
            .prop_map(|under| Access::Read { under })
            .boxed(),
        Mode::Write => Just(Access::Write).boxed(),
    }
}

fn renew(
    name: impl Strategy<Value = Name>,
    mode: impl Strategy<Value = Mode>,
    now: WallMillis,
) -> impl Strategy<Value = Request> {
    let parts = (name, owner(), 1..=3u32, lease(), token(now));
    let claim = parts.prop_map(|(name, owner, count, lease, token)| Claim {
        name,
        owner,
        count,
        lease,
        token,
        keep: None,
    });
    let renewing = (mode, vec(claim, 1..=3), keep(), retention());
    renewing.prop_map(|(mode, mut claims, keep, retention)| {
        let (keep, _) = versioned(mode, keep, None);
        for claim in &mut claims {
            claim.keep = keep;
        }
        Request::Renew(Renew {
            mode,
            claims,
            retention,
        })
    })
}

/// Generates margins and claim versions. Fair locks have neither, and read-write locks have no claim versions.
fn versioned(
    mode: Mode,
    keep: Option<ClockMargin>,
    replaces: Option<ClaimVersion>,
) -> (Option<ClockMargin>, Option<ClaimVersion>) {
    match mode {
        Mode::Plain => (keep, replaces),
        Mode::Fair => (None, None),
        Mode::Read | Mode::Write => (keep, None),
    }
}

fn keep() -> impl Strategy<Value = Option<ClockMargin>> {
    let keep = (1..=2u32, number()).prop_map(|(steps, number)| ClockMargin {
        margin_millis: millis_of(steps * STEP),
        number,
    });
    prop_oneof![Just(None), keep.prop_map(Some)]
}

/// Often generates the claim version of the first request of the most frequent owner.
fn replaces() -> impl Strategy<Value = Option<ClaimVersion>> {
    let version = (owner(), number(), lease()).prop_map(|(owner, number, lease)| ClaimVersion {
        owner,
        number,
        lease_millis: lease.millis(),
    });
    prop_oneof![1 => Just(None), 3 => version.prop_map(Some)]
}

/// Generates a take-over: the first round of one client has the name with a claim version, or the other client takes
/// it over.
fn take_over(
    name: impl Strategy<Value = Name>,
    mode: impl Strategy<Value = Mode>,
    now: WallMillis,
) -> impl Strategy<Value = Request> {
    let owner = |client, number| OwnerId {
        client: ClientId::from_random(client),
        number,
    };
    (acquire(name, mode, now), any::<bool>()).prop_map(move |(request, is_first)| match request {
        Request::Acquire(ask) if ask.access == Access::Plain => Request::Acquire(Acquire {
            owner: if is_first { owner(1, 1) } else { owner(2, 1) },
            keep: Some(ClockMargin {
                margin_millis: millis_of(STEP),
                number: 1,
            }),
            replaces: Some(ClaimVersion {
                owner: owner(1, 1),
                number: 1,
                lease_millis: ask.lease.millis(),
            }),
            ..ask
        }),
        other => other,
    })
}

/// Generates a request that continues the hold of any owner. A reader's request never does.
fn hand_over(
    name: impl Strategy<Value = Name>,
    mode: impl Strategy<Value = Mode>,
    now: WallMillis,
) -> impl Strategy<Value = Request> {
    (acquire(name, mode, now), owner()).prop_map(|(request, before)| match request {
        Request::Acquire(ask) if ask.access.mode() != Mode::Read => Request::Acquire(Acquire {
            continues: Some(before),
            ..ask
        }),
        other => other,
    })
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![4 => Just(1), 1 => Just(2)]
}

fn release(
    name: impl Strategy<Value = Name>,
    mode: impl Strategy<Value = Mode>,
) -> impl Strategy<Value = Request> {
    let count = prop_oneof![3 => Just(0), 2 => 1..=3u32];
    let parts = (name, mode, owner(), count);
    parts.prop_map(|(name, mode, owner, count)| {
        Request::Release(Release {
            name,
            mode,
            owner,
            count,
        })
    })
}

fn plant_key(names: Vec<Name>, reads: bool) -> impl Strategy<Value = Plant> {
    let name = select(names);
    let held = prop_oneof![
        (owner(), 1..=3u32).prop_map(|(owner, count)| Held::Plain { owner, count }),
        (owner(), entries()).prop_map(move |(owner, count)| match reads {
            true => Held::read(owner, count),
            false => Held::NotALock,
        }),
        (owner(), 1..=3u32).prop_map(|(owner, count)| Held::write(owner, count)),
        Just(Held::NotALock),
    ];
    (name, held, ttl()).prop_map(|(name, held, ttl)| Plant::Key { name, held, ttl })
}

/// Generates a number of entries, sometimes so large that scripts do not check them one by one.
fn entries() -> impl Strategy<Value = u32> {
    prop_oneof![9 => 1..=3u32, 1 => Just(1_001), 1 => Just(u32::MAX)]
}

fn plant_token(name: impl Strategy<Value = Name>, now: WallMillis) -> impl Strategy<Value = Plant> {
    (name, token(now), ttl()).prop_map(|(name, token, ttl)| Plant::Token { name, token, ttl })
}

/// Generates two rounds of one client, and one round of another. Most requests belong to the first round.
fn owner() -> impl Strategy<Value = OwnerId> {
    let [first, second, third] = OWNERS.map(|owner| Just(owner_of(owner)));
    prop_oneof![4 => first, 2 => second, 3 => third]
}

fn half_steps() -> impl Strategy<Value = Duration> {
    (0..=2u32).prop_map(|steps| steps * STEP + STEP / 2)
}

fn lease() -> impl Strategy<Value = Lease> {
    let length = prop_oneof![2 => Just(STEP + STEP / 2), 1 => half_steps()];
    length.prop_map(|length| Lease::new(length).expect("long enough"))
}

fn ttl() -> impl Strategy<Value = Option<Duration>> {
    prop_oneof![half_steps().prop_map(Some), Just(None)]
}

/// Generates times for which counters are kept: so briefly that each renewal looks at the TTL of the counter, for 139
/// years, and for ever.
///
/// For a day it would depend on the hour whether a renewal looks at the TTL (rule T7), and the clock of a real server
/// does not advance with the steps of time, as that of the specification does. The next eighth of 139 years begins in
/// 2039.
fn retention() -> impl Strategy<Value = Retention> {
    prop_oneof![
        half_steps().prop_map(Retention::of),
        Just(Retention::Millis(1 << 42)),
        Just(Retention::Forever),
    ]
}

/// Generates a floor near the clock, and a slack that covers the whole time of a sequence.
fn fence(now: WallMillis) -> impl Strategy<Value = Fence> {
    let mint = (0..10u64).prop_map(move |millis| Fence::Mint {
        floor: now.plus(millis),
        slack_millis: 86_400_000,
    });
    prop_oneof![3 => mint, 1 => token(now).prop_map(Fence::Carry)]
}

/// Generates small tokens, tokens near the clock, and the largest token that a double still distinguishes.
fn token(now: WallMillis) -> impl Strategy<Value = Token> {
    let largest = (1u64 << 53) - 100;
    prop_oneof![
        2 => (1..5u64).prop_map(Token),
        4 => (0..20u64).prop_map(move |millis| Token(now.plus(millis).0)),
        1 => any::<u8>().prop_map(move |near| Token(largest - u64::from(near))),
    ]
}
