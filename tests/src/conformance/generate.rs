//! Random sequences, from a seed.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::{select, subsequence};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use quorlock_core::fencing::{Fence, Token};
use quorlock_core::lease::Lease;
use quorlock_core::message::{
    Acquire, Claim, ForceRelease, Inspect, Mode, Release, Renew, Request, Retention,
};
use quorlock_core::name::Name;
use quorlock_core::node::Held;
use quorlock_core::owner::{ClientId, OwnerId};
use quorlock_core::time::WallMillis;

use super::step::{Plant, Step};

/// Time passes in steps of this, and everything expires half a step off: so no key is ever near its end, and a few
/// milliseconds of real time make no difference.
const STEP: Duration = Duration::from_secs(100);

/// How many sequences to try, and which.
#[derive(Clone, Copy, Debug)]
pub struct Cases {
    /// How many: `QUORLOCK_CONFORMANCE_CASES`, or 300.
    pub count: u32,
    /// The seed: `QUORLOCK_CONFORMANCE_SEED`, or 1.
    pub seed: u64,
}

impl Cases {
    /// Reads the two variables.
    ///
    /// # Panics
    /// When one is not a number.
    #[must_use]
    pub fn from_environment() -> Self {
        let number = |variable: &str, default: u32| {
            std::env::var(variable).map_or(u64::from(default), |text| {
                let number = text.parse();
                number.unwrap_or_else(|_| panic!("{variable} is not a number: {text:?}"))
            })
        };
        Cases {
            count: u32::try_from(number("QUORLOCK_CONFORMANCE_CASES", 300)).unwrap_or(u32::MAX),
            seed: number("QUORLOCK_CONFORMANCE_SEED", 1),
        }
    }

    /// Runs the test for each sequence, and shrinks the first for which it fails.
    ///
    /// # Panics
    /// When it fails, with the least sequence that shows it.
    pub fn run(
        self,
        sequences: &impl Strategy<Value = Vec<Step>>,
        test: impl Fn(&[Step]) -> Result<(), String>,
    ) {
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&self.seed.to_le_bytes());
        let config = Config {
            cases: self.count,
            failure_persistence: None,
            ..Config::default()
        };
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
        let ended = TestRunner::new_with_rng(config, rng).run(sequences, |steps| {
            test(&steps).map_err(proptest::test_runner::TestCaseError::fail)
        });
        if let Err(failure) = ended {
            panic!("with QUORLOCK_CONFORMANCE_SEED={}: {failure}", self.seed);
        }
    }
}

/// The names in the sequences.
///
/// # Panics
/// Never: they are well-formed.
#[must_use]
pub fn names() -> Vec<Name> {
    ["orders/42", "{tag}:stock 7", "a}b{c", "заказ/🔒"]
        .map(|name| Name::new(name).expect("a well-formed name"))
        .to_vec()
}

/// Sequences of up to 20 steps about one or two names, on a node whose clock is about `now`.
pub fn sequences(now: WallMillis) -> impl Strategy<Value = Vec<Step>> {
    subsequence(names(), 1..=2).prop_flat_map(move |names| vec(step(names, now), 1..=20))
}

fn step(names: Vec<Name>, now: WallMillis) -> impl Strategy<Value = Step> {
    let names = || select(names.clone());
    prop_oneof![
        8 => acquire(names(), now).prop_map(Step::Ask),
        4 => renew(names(), now).prop_map(Step::Ask),
        5 => release(names()).prop_map(Step::Ask),
        3 => names().prop_map(|name| Step::Ask(Request::Inspect(Inspect { name }))),
        2 => names().prop_map(|name| Step::Ask(Request::ForceRelease(ForceRelease { name }))),
        3 => Just(Step::AskAgain),
        2 => (1..=3u32).prop_map(|steps| Step::Pass(steps * STEP)),
        2 => plant_key(names()).prop_map(Step::Plant),
        1 => plant_token(names(), now).prop_map(Step::Plant),
    ]
}

fn acquire(name: impl Strategy<Value = Name>, now: WallMillis) -> impl Strategy<Value = Request> {
    let parts = (name, owner(), 1..=3u32, lease(), fence(now), retention());
    parts.prop_map(|(name, owner, count, lease, fence, retention)| {
        Request::Acquire(Acquire {
            name,
            owner,
            count,
            lease,
            fence,
            retention,
        })
    })
}

fn renew(name: impl Strategy<Value = Name>, now: WallMillis) -> impl Strategy<Value = Request> {
    let parts = (name, owner(), 1..=3u32, lease(), token(now));
    let claim = parts.prop_map(|(name, owner, count, lease, token)| Claim {
        name,
        owner,
        count,
        lease,
        token,
    });
    (vec(claim, 1..=3), retention())
        .prop_map(|(claims, retention)| Request::Renew(Renew { claims, retention }))
}

fn release(name: impl Strategy<Value = Name>) -> impl Strategy<Value = Request> {
    let count = prop_oneof![3 => Just(0), 2 => 1..=3u32];
    (name, owner(), count)
        .prop_map(|(name, owner, count)| Request::Release(Release { name, owner, count }))
}

fn plant_key(name: impl Strategy<Value = Name>) -> impl Strategy<Value = Plant> {
    let held = prop_oneof![
        (owner(), 1..=3u32).prop_map(|(owner, count)| Held::Plain { owner, count }),
        select(vec![Mode::Read, Mode::Write]).prop_map(Held::Mode),
        Just(Held::NotALock),
    ];
    (name, held, ttl()).prop_map(|(name, held, ttl)| Plant::Key { name, held, ttl })
}

fn plant_token(name: impl Strategy<Value = Name>, now: WallMillis) -> impl Strategy<Value = Plant> {
    (name, token(now), ttl()).prop_map(|(name, token, ttl)| Plant::Token { name, token, ttl })
}

/// Two rounds of one client, and one of another; most requests are the first's.
fn owner() -> impl Strategy<Value = OwnerId> {
    let owner = |client, number| {
        Just(OwnerId {
            client: ClientId::from_random(client),
            number,
        })
    };
    prop_oneof![3 => owner(1, 1), 1 => owner(1, 2), 1 => owner(2, (1 << 63) - 1)]
}

fn half_steps() -> impl Strategy<Value = Duration> {
    (0..=2u32).prop_map(|steps| steps * STEP + STEP / 2)
}

fn lease() -> impl Strategy<Value = Lease> {
    half_steps().prop_map(|length| Lease::new(length).expect("long enough"))
}

fn ttl() -> impl Strategy<Value = Option<Duration>> {
    prop_oneof![half_steps().prop_map(Some), Just(None)]
}

fn retention() -> impl Strategy<Value = Retention> {
    prop_oneof![
        half_steps().prop_map(Retention::of),
        Just(Retention::of(864 * STEP + STEP / 2)),
        Just(Retention::Forever),
    ]
}

/// A floor near the clock, and a slack in which all the time of a sequence has room.
fn fence(now: WallMillis) -> impl Strategy<Value = Fence> {
    let mint = (0..10u64).prop_map(move |millis| Fence::Mint {
        floor: now.plus(millis),
        slack_millis: 86_400_000,
    });
    prop_oneof![3 => mint, 1 => token(now).prop_map(Fence::Carry)]
}

/// Small ones, such near the clock, and such that a double just tells apart.
fn token(now: WallMillis) -> impl Strategy<Value = Token> {
    let largest = (1u64 << 53) - 100;
    prop_oneof![
        2 => (1..5u64).prop_map(Token),
        4 => (0..20u64).prop_map(move |millis| Token(now.plus(millis).0)),
        1 => any::<u8>().prop_map(move |near| Token(largest - u64::from(near))),
    ]
}
