//! The action of a step, and the requests that it stands for.

use std::collections::BTreeMap;
use std::time::Duration;

use quorlock_core::claim_version::{ClaimVersion, ClockMargin};
use quorlock_core::fencing::{Fence, Token};
use quorlock_core::lease::Lease;
use quorlock_core::marker::{Act as MarkerAct, ConfirmedMarker, Figures, Nonce, Process, Restarts};
use quorlock_core::message::{
    Access, Acquire, Check, Claim, ForceRelease, Inspect, Mode, QueuePlace, Release, Renew,
    Request, Retention,
};
use quorlock_core::name::Name;
use quorlock_core::owner::OwnerId;
use quorlock_core::time::WallMillis;
use serde::Deserialize;

/// The action of a step.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Act {
    /// A claim is requested.
    Acquire(Box<Ask>),
    /// Claims are extended.
    Renew(Vec<Extended>),
    /// A count is lowered.
    Release(Lowered),
    /// A name is inspected.
    Inspect(Named),
    /// A name is freed.
    ForceRelease(Named),
    /// The marker is read, and possibly changed.
    Probe(Looked),
    /// Requests about different names that arrive at the same moment are executed.
    Together(Vec<Act>),
    /// Another program writes a key.
    Put(Put),
    /// The node becomes another process, and keeps all its keys.
    Restart {},
    /// Only time passes.
    Wait {},
}

/// A request for a claim.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    #[serde(default = "plain")]
    mode: String,
    #[serde(default = "name")]
    name: String,
    owner: String,
    #[serde(default = "one")]
    count: u32,
    #[serde(default = "lease")]
    lease: u64,
    floor: Option<Floor>,
    slack: Option<u64>,
    carry: Option<u64>,
    after: Option<u64>,
    #[serde(default = "retention")]
    retention: u64,
    margin: Option<u64>,
    number: Option<u64>,
    replaces: Option<String>,
    continues: Option<String>,
    place: Option<u64>,
    under: Option<String>,
    check: Option<Looked>,
}

/// The floor of a token: a number, or a difference from the node's clock.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged)]
enum Floor {
    Fixed(u64),
    Clock { clock: i64 },
}

/// A claim to extend.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Extended {
    #[serde(default = "plain")]
    mode: String,
    #[serde(default = "name")]
    name: String,
    owner: String,
    #[serde(default = "one")]
    count: u32,
    #[serde(default = "lease")]
    lease: u64,
    token: u64,
    #[serde(default = "retention")]
    retention: u64,
    margin: Option<u64>,
    number: Option<u64>,
}

/// A claim to release, or whose count is lowered.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lowered {
    #[serde(default = "plain")]
    mode: String,
    #[serde(default = "name")]
    name: String,
    owner: String,
    #[serde(default)]
    count: u32,
}

/// A name to inspect or to free.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    #[serde(default = "name")]
    name: String,
}

/// What to do with the marker.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Looked {
    #[serde(default = "look")]
    act: String,
    #[serde(default)]
    nonce: u64,
    #[serde(default = "longest")]
    longest: u64,
    figures: Option<String>,
    trusted: Option<u64>,
    trusted_figures: Option<String>,
    #[serde(default)]
    keep: bool,
    known: Option<u64>,
}

/// What another program writes. The key is deleted first.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Put {
    /// The key.
    pub key: String,
    /// A text to store.
    pub string: Option<String>,
    /// Fields and values to store.
    pub hash: Option<BTreeMap<String, String>>,
    /// Elements to store.
    pub list: Option<Vec<String>>,
    /// Members to store, each with the difference of its score from the node's time.
    pub zset: Option<BTreeMap<String, i64>>,
    /// The TTL in milliseconds. Without it, the key does not expire.
    pub ttl: Option<u64>,
}

fn plain() -> String {
    "plain".to_owned()
}

fn look() -> String {
    "look".to_owned()
}

fn name() -> String {
    "orders/42".to_owned()
}

const fn one() -> u32 {
    1
}

const fn lease() -> u64 {
    10_000
}

const fn longest() -> u64 {
    60_000
}

const fn retention() -> u64 {
    86_400_000
}

/// The context that requests need in addition to their texts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub(super) process: Process,
    /// The clock of the node when the sequence began.
    pub(super) clock_millis: u64,
}

impl Act {
    /// Returns the requests of the action, if it has any.
    pub(super) fn requests(&self, setting: Setting) -> Vec<Request> {
        match self {
            Act::Acquire(ask) => vec![Request::Acquire(ask.request(setting))],
            Act::Renew(claims) => vec![renew(claims)],
            Act::Release(ask) => vec![Request::Release(Release {
                name: checked(&ask.name),
                mode: mode(&ask.mode),
                owner: owner(&ask.owner),
                count: ask.count,
            })],
            Act::Inspect(named) => vec![Request::Inspect(Inspect::of(checked(&named.name)))],
            Act::ForceRelease(named) => vec![Request::ForceRelease(ForceRelease {
                name: checked(&named.name),
            })],
            Act::Probe(looked) => vec![Request::Probe(looked.check(setting))],
            Act::Together(acts) => acts.iter().flat_map(|act| act.requests(setting)).collect(),
            Act::Put(_) | Act::Restart {} | Act::Wait {} => Vec::new(),
        }
    }

    /// Returns the names in the action.
    pub(super) fn names(&self) -> Vec<Name> {
        match self {
            Act::Acquire(ask) => vec![checked(&ask.name)],
            Act::Renew(claims) => claims.iter().map(|claim| checked(&claim.name)).collect(),
            Act::Release(ask) => vec![checked(&ask.name)],
            Act::Inspect(named) | Act::ForceRelease(named) => vec![checked(&named.name)],
            Act::Together(acts) => acts.iter().flat_map(Act::names).collect(),
            Act::Probe(_) | Act::Put(_) | Act::Restart {} | Act::Wait {} => Vec::new(),
        }
    }
}

impl Ask {
    fn request(&self, setting: Setting) -> Acquire {
        let access = match mode(&self.mode) {
            Mode::Plain => Access::Plain,
            Mode::Fair => Access::Fair(match self.place {
                None => QueuePlace::None,
                Some(millis) => QueuePlace::Kept { millis },
            }),
            Mode::Read => Access::Read {
                under: self.under.as_deref().map(owner),
            },
            Mode::Write => Access::Write,
        };
        let floor = match self.floor {
            None => 1,
            Some(Floor::Fixed(floor)) => floor,
            Some(Floor::Clock { clock }) => setting.clock_millis.saturating_add_signed(clock),
        };
        let fence = match self.carry {
            Some(token) => Fence::Carry(Token(token)),
            None => Fence::Mint {
                floor: WallMillis(floor),
                slack_millis: self.slack.unwrap_or((1 << 53) - 1),
            },
        };
        Acquire {
            name: checked(&self.name),
            access,
            owner: owner(&self.owner),
            count: self.count,
            lease: length(self.lease),
            fence,
            retention: kept(self.retention),
            keep: keep(self.margin, self.number),
            after: self.after.map(Token),
            replaces: self.replaces.as_deref().map(version),
            continues: self.continues.as_deref().map(owner),
            check: self.check.as_ref().map(|looked| looked.check(setting)),
        }
    }
}

/// All claims of a request have the mode and the retention of the first one.
fn renew(claims: &[Extended]) -> Request {
    let first = claims.first().expect("a claim");
    Request::Renew(Renew {
        mode: mode(&first.mode),
        retention: kept(first.retention),
        claims: claims
            .iter()
            .map(|claim| {
                assert_eq!(
                    (&claim.mode, claim.retention),
                    (&first.mode, first.retention)
                );
                Claim {
                    name: checked(&claim.name),
                    owner: owner(&claim.owner),
                    count: claim.count,
                    lease: length(claim.lease),
                    token: Token(claim.token),
                    keep: keep(claim.margin, claim.number),
                }
            })
            .collect(),
    })
}

impl Looked {
    /// Returns the figures of a text; without one, the longest lease.
    fn figures(&self, text: Option<&str>) -> Figures {
        text.map_or(Figures::same(self.longest), |text| {
            text.parse().expect("figures")
        })
    }

    fn check(&self, setting: Setting) -> Check {
        let nonce = Nonce::new(self.nonce);
        Check {
            figures: self.figures(self.figures.as_deref()),
            act: match self.act.as_str() {
                "look" => MarkerAct::Look,
                "mark" => MarkerAct::Mark(nonce),
                "mark fresh" => MarkerAct::MarkFresh(nonce),
                "mark anew" => MarkerAct::MarkAnew(nonce),
                "ripen" => MarkerAct::Confirm(nonce),
                "restate" => MarkerAct::Restate,
                other => panic!("{other:?} is nothing to do with a marker"),
            },
            trusted: self.trusted.map(|nonce| ConfirmedMarker {
                process: setting.process,
                nonce: Nonce::new(nonce),
                figures: self.figures(self.trusted_figures.as_deref()),
            }),
            restarts: match self.keep {
                true => Restarts::KeepEverything,
                false => Restarts::MayForget,
            },
            known: self.known.map(Nonce::new),
        }
    }
}

fn mode(text: &str) -> Mode {
    match text {
        "plain" => Mode::Plain,
        "fair" => Mode::Fair,
        "read" => Mode::Read,
        "write" => Mode::Write,
        other => panic!("{other:?} is no mode"),
    }
}

fn checked(text: &str) -> Name {
    Name::new(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

pub(super) fn owner(text: &str) -> OwnerId {
    text.parse()
        .unwrap_or_else(|_| panic!("{text:?} is no owner"))
}

fn length(millis: u64) -> Lease {
    Lease::new(Duration::from_millis(millis)).expect("a lease")
}

fn kept(millis: u64) -> Retention {
    match millis {
        0 => Retention::Forever,
        millis => Retention::Millis(millis),
    }
}

fn keep(margin: Option<u64>, number: Option<u64>) -> Option<ClockMargin> {
    assert_eq!(margin.is_some(), number.is_some(), "both or none");
    Some(ClockMargin {
        margin_millis: margin?,
        number: number?,
    })
}

/// Parses `owner number lease`.
fn version(text: &str) -> ClaimVersion {
    let words: Vec<_> = text.split(' ').collect();
    let [owner, number, lease] = words.as_slice() else {
        panic!("{text:?} is no claim version");
    };
    ClaimVersion {
        owner: self::owner(owner),
        number: number.parse().expect("a number"),
        lease_millis: lease.parse().expect("milliseconds"),
    }
}
