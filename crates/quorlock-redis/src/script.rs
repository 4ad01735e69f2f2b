//! Encodes a request as a script call.
//!
//! The scripts are files, `lua/*.lua`. The header of each states its keys, arguments and replies.

use std::borrow::Cow;
use std::sync::LazyLock;

use quorlock_core::claim_version::{ClaimVersion, ClockMargin};
use quorlock_core::fencing::Fence;
use quorlock_core::lease::Lease;
use quorlock_core::message::{
    Access, Acquire, Check, Claim, ForceRelease, Inspect, Mode, Release, Renew, Request, Retention,
};
use quorlock_core::owner::OwnerId;
use redis::Cmd;

use self::check::{CHECK_BYTES, encode_check};
use crate::key;

/// Concatenates files under `lua/` when the crate is compiled. The chunks that scripts share, `shared/*.lua`, come
/// before the script.
macro_rules! lua {
    ($($file:literal),+ $(,)?) => {
        concat!(
            $(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/lua/", $file, ".lua")), "\n"),+
        )
    };
}

/// Puts a script inside an outer one, which checks the server and calls the inner one as `execute()`.
macro_rules! around {
    ($outer:literal, $($inner:tt)*) => {
        concat!("local function execute()\n", $($inner)*, "end\n", lua!($outer))
    };
}

/// Puts scripts of an acquire inside the one that passes on the claim that it continues.
macro_rules! continuing {
    ($($file:literal),+) => {
        concat!(
            lua!("shared/clock", "shared/counter"),
            around!("continue", lua!($($file),+))
        )
    };
}

/// Marks a script that makes up the names of keys: those of readers, whose number is not known in advance.
/// Dragonfly accepts such a script only with this first line. (According to its documentation; not tested.)
macro_rules! undeclared {
    ($($script:tt)*) => {
        concat!("--!df flags=allow-undeclared-keys\n", $($script)*)
    };
}

/// Makes both variants of a script that publishes: for single servers, and for the nodes of clusters.
macro_rules! publishing {
    // The mark stays the first line.
    (undeclared!($($script:tt)*)) => {
        Publishing {
            once: Script::new(undeclared!($($script)*)),
            twice: Script::new(undeclared!(lua!("shared/twice"), $($script)*)),
        }
    };
    ($($script:tt)*) => {
        Publishing {
            once: Script::new($($script)*),
            twice: Script::new(concat!(lua!("shared/twice"), $($script)*)),
        }
    };
}

mod answer;
pub(crate) mod batch;
mod check;
mod fair;
mod read_write;

pub(crate) use self::answer::{decode, unpublished};
pub(crate) use self::check::{grants, marker_text};

/// A script, and the digest that identifies it to a server that has loaded it.
struct Script {
    text: &'static str,
    digest: String,
}

impl Script {
    fn new(text: &'static str) -> Self {
        let digest = redis::Script::new(text).get_hash().to_owned();
        Script { text, digest }
    }
}

/// A script that publishes, in its two variants.
struct Publishing {
    once: Script,
    twice: Script,
}

impl Publishing {
    /// Returns the variant for the servers of this home.
    fn at(&self, home: &Home) -> &Script {
        match home.publishes {
            Publishes::Once => &self.once,
            Publishes::Twice => &self.twice,
        }
    }
}

static ACQUIRE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(lua!(
        "shared/clock",
        "shared/counter",
        "shared/value",
        "acquire"
    ))
});
static CHECKED_ACQUIRE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(around!(
        "check",
        lua!("shared/clock", "shared/counter", "shared/value", "acquire")
    ))
});
static CONTINUING_ACQUIRE: LazyLock<Script> =
    LazyLock::new(|| Script::new(continuing!("shared/value", "acquire")));
static CHECKED_CONTINUING_ACQUIRE: LazyLock<Script> =
    LazyLock::new(|| Script::new(around!("check", continuing!("shared/value", "acquire"))));
static PROBE: LazyLock<Script> = LazyLock::new(|| Script::new(around!("check", "return false\n")));
static RENEW: LazyLock<Script> = LazyLock::new(|| {
    Script::new(lua!(
        "shared/clock",
        "shared/counter",
        "shared/retention",
        "shared/look",
        "shared/value",
        "renew"
    ))
});
static RELEASE: LazyLock<Publishing> = LazyLock::new(|| publishing!(lua!("release")));
static INSPECT: LazyLock<Script> = LazyLock::new(|| {
    Script::new(undeclared!(lua!(
        "shared/clock",
        "shared/counter",
        "inspect"
    )))
});
static FORCE_RELEASE: LazyLock<Publishing> = LazyLock::new(|| {
    publishing!(undeclared!(lua!(
        "shared/clock",
        "shared/queue",
        "force_release"
    )))
});

/// Whether the script uses only keys that its call names. (The scripts of read-write locks derive the names of other
/// readers' lease keys from the fields of the claim.)
pub(crate) fn declares_its_keys(request: &Request) -> bool {
    match request {
        Request::Acquire(ask) => matches!(ask.access, Access::Plain | Access::Fair(_)),
        Request::Renew(ask) => ask.mode != Mode::Read,
        Request::Release(ask) => matches!(ask.mode, Mode::Plain | Mode::Fair),
        Request::Inspect(_) | Request::ForceRelease(_) => false,
        Request::Probe(_) => true,
    }
}

/// How a call identifies its script.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum By {
    /// By its digest: short, but a server may not have loaded the script.
    Digest,
    /// By its text, which the server then keeps.
    Text,
}

/// The largest number of milliseconds on the wire, just below 2^53, because Lua compares numbers as doubles.
/// Redis also refuses an expiry that exceeds 64 bits once the time of day is added, which would be an error
/// after the first write.
const MOST_MILLIS: u64 = (1 << 53) - 1;

fn wire(millis: u64) -> u64 {
    millis.min(MOST_MILLIS)
}

fn kept(retention: Retention) -> u64 {
    match retention {
        // On the wire, zero means "for ever".
        Retention::Millis(millis) => wire(millis).max(1),
        Retention::Forever => 0,
    }
}

/// The part of a request's encoding that depends only on the servers that it goes to.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    /// The key of the marker, behind the namespace. Scripts can use it because it is in the same slot as the names.
    marker: Cow<'static, str>,
    /// The namespace of all names.
    pub(crate) namespace: Cow<'static, [u8]>,
    /// The listeners that releases are published to.
    pub(crate) publishes: Publishes,
}

/// How a release is published.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Publishes {
    /// To all listeners of the channel, with one message: a single server has only one kind of channel.
    Once,
    /// On a cluster: once to the listeners of the channel on all nodes, and once to those on the shard.
    Twice,
}

impl Home {
    /// The home of requests to a single server.
    pub(crate) const PLAIN: Home = Home {
        marker: Cow::Borrowed(key::MARKER),
        namespace: Cow::Borrowed(&[]),
        publishes: Publishes::Once,
    };

    /// The home of requests to a whole cluster, which has no marker because it is not watched.
    pub(crate) const CLUSTER: Home = Home {
        publishes: Publishes::Twice,
        ..Home::PLAIN
    };

    /// The home of requests for the keys under a tag in a cluster.
    pub(crate) fn under(tag: &str) -> Home {
        Home {
            marker: key::marker_under(tag).into(),
            ..Home::CLUSTER
        }
    }

    /// The same home, for names in this namespace.
    pub(crate) fn within(&self, namespace: &[u8]) -> Home {
        Home {
            namespace: namespace.to_vec().into(),
            ..self.clone()
        }
    }

    /// Returns the key of the marker for names in this namespace.
    pub(crate) fn marker(&self, namespace: &[u8]) -> Vec<u8> {
        [namespace, self.marker.as_bytes()].concat()
    }
}

/// Encodes a request as a command.
pub(crate) fn encode(request: &Request, home: &Home, by: By) -> Cmd {
    match request {
        Request::Acquire(ask) => match ask.access {
            Access::Plain => encode_acquire(ask, home, by),
            Access::Fair(place) => fair::encode_acquire(ask, place, home, by),
            Access::Read { under } => read_write::encode_read(ask, under, home, by),
            Access::Write => read_write::encode_write(ask, home, by),
        },
        Request::Renew(ask) => match ask.mode {
            Mode::Plain | Mode::Fair => encode_renew(ask, by),
            Mode::Read => read_write::encode_read_renew(ask, by),
            Mode::Write => read_write::encode_write_renew(ask, by),
        },
        Request::Release(ask) => match ask.mode {
            Mode::Plain => encode_release(ask, home, by),
            Mode::Fair => fair::encode_release(ask, home, by),
            Mode::Read => read_write::encode_read_release(ask, home, by),
            Mode::Write => read_write::encode_write_release(ask, home, by),
        },
        Request::Inspect(inspect) => encode_inspect(inspect, by),
        Request::ForceRelease(force) => encode_force_release(force, home, by),
        Request::Probe(check) => encode_probe(*check, home, by),
    }
}

/// Begins `EVALSHA digest keys` or `EVAL text keys`. `args` and `bytes` are the number and size of the arguments
/// that follow, so that the buffer is allocated once.
fn command(script: &Script, by: By, keys: usize, args: usize, bytes: usize) -> Cmd {
    let (verb, script) = match by {
        By::Digest => ("EVALSHA", script.digest.as_str()),
        By::Text => ("EVAL", script.text),
    };
    let mut cmd = Cmd::with_capacity(3 + keys + args, 32 + script.len() + bytes);
    cmd.arg(verb).arg(script).arg(keys);
    cmd
}

/// Returns the commands that load the scripts that every client needs. The scripts for operators are loaded when
/// they are first used.
pub(crate) fn load() -> impl Iterator<Item = Cmd> {
    let scripts = [&ACQUIRE, &RENEW, &RELEASE.once, &batch::BATCH];
    scripts.into_iter().map(|script| {
        let mut cmd = redis::cmd("SCRIPT");
        cmd.arg("LOAD").arg(script.text);
        cmd
    })
}

/// Capacity for an owner and the numbers of one claim, in bytes.
const CLAIM_BYTES: usize = 160;

fn encode_acquire(ask: &Acquire, home: &Home, by: By) -> Cmd {
    let name = &ask.name;
    let (script, keys) = match (ask.check, ask.continues) {
        (None, None) => (&ACQUIRE, 3),
        (Some(_), None) => (&CHECKED_ACQUIRE, 4),
        (None, Some(_)) => (&CONTINUING_ACQUIRE, 3),
        (Some(_), Some(_)) => (&CHECKED_CONTINUING_ACQUIRE, 4),
    };
    let bytes = 3 * name.as_bytes().len() + 4 * CLAIM_BYTES + CHECK_BYTES;
    let mut cmd = command(script, by, keys, 19, bytes);
    cmd.arg(name.as_bytes())
        .arg(key::token(name))
        .arg(key::queue(name));
    if ask.check.is_some() {
        cmd.arg(home.marker(name.split().0));
    }
    if let Some(before) = ask.continues {
        owner(&mut cmd, before);
        encode_continues(&mut cmd, ask);
    }
    owner(&mut cmd, ask.owner);
    cmd.arg(ask.count)
        .arg(wire(ask.kept_millis()))
        .arg(kept(ask.retention));
    fence(&mut cmd, ask.fence);
    // The arguments of a check are the last ones. Without one, those that are empty may be left out.
    if ask.keep.is_some() || ask.check.is_some() {
        let version = ask.keep.map(|keep| version_text(keep, ask.lease));
        cmd.arg(version.unwrap_or_default());
        let replaces = ask.keep.and(ask.replaces).map(shown_text);
        cmd.arg(replaces.unwrap_or_default());
    }
    if let Some(check) = ask.check {
        after(&mut cmd, ask);
        encode_check(&mut cmd, check, ask.lease.millis());
    }
    cmd
}

/// Appends the token that the client has seen. It counts on a process that the client trusts.
fn after(cmd: &mut Cmd, ask: &Acquire) {
    match ask.check.and(ask.after) {
        Some(token) => cmd.arg(wire(token.0)),
        None => cmd.arg(""),
    };
}

/// Appends the arguments of `continue.lua` that follow the owner before.
fn encode_continues(cmd: &mut Cmd, ask: &Acquire) {
    fence(cmd, ask.fence);
    cmd.arg(kept(ask.retention));
}

fn fence(cmd: &mut Cmd, fence: Fence) {
    match fence {
        Fence::Mint {
            floor,
            slack_millis,
        } => cmd.arg(wire(floor.0)).arg(wire(slack_millis)),
        Fence::Carry(token) => cmd.arg(token.0).arg(""),
    };
}

/// Formats the claim version that a request writes, as it is stored behind the hold count.
fn version_text(keep: ClockMargin, lease: Lease) -> String {
    format!("{} {}", keep.number, wire(lease.millis()))
}

/// Formats a claim version as a refusal shows it.
fn shown_text(version: ClaimVersion) -> String {
    let lease_millis = wire(version.lease_millis);
    format!("{} {} {lease_millis}", version.owner, version.number)
}

fn encode_probe(check: Check, home: &Home, by: By) -> Cmd {
    let mut cmd = command(&PROBE, by, 1, 6, CHECK_BYTES);
    cmd.arg(home.marker(&home.namespace));
    encode_check(&mut cmd, check, 0);
    cmd
}

fn encode_renew(ask: &Renew, by: By) -> Cmd {
    let claims = ask.claims.len();
    let bytes: usize = ask
        .claims
        .iter()
        .map(|claim| 2 * claim.name.as_bytes().len() + 2 * CLAIM_BYTES)
        .sum();
    let mut cmd = command(&RENEW, by, 2 * claims, 5 + 3 * claims, bytes);
    for claim in &ask.claims {
        cmd.arg(claim.name.as_bytes());
    }
    for claim in &ask.claims {
        cmd.arg(key::token(&claim.name));
    }
    encode_claims(&mut cmd, ask.retention, &ask.claims);
    cmd
}

/// Appends the arguments of `renew.lua`: neighbouring claims with the same terms are a group.
fn encode_claims(cmd: &mut Cmd, retention: Retention, claims: &[Claim]) {
    let terms = |claim: &Claim| (claim.count, wire(claim.kept_millis()), claim.keep.is_some());
    cmd.arg(kept(retention));
    for group in claims.chunk_by(|one, next| terms(one) == terms(next)) {
        let Some((count, kept_millis, has_versions)) = group.first().map(terms) else {
            continue;
        };
        cmd.arg(group.len()).arg(count).arg(kept_millis);
        cmd.arg(if has_versions { "versions" } else { "" });
        for claim in group {
            owner(cmd, claim.owner);
            cmd.arg(claim.token.0);
            if let Some(keep) = claim.keep {
                cmd.arg(version_text(keep, claim.lease));
            }
        }
    }
}

fn encode_release(ask: &Release, home: &Home, by: By) -> Cmd {
    let name = &ask.name;
    let mut cmd = command(
        RELEASE.at(home),
        by,
        1,
        3,
        2 * name.as_bytes().len() + CLAIM_BYTES,
    );
    cmd.arg(name.as_bytes());
    owner(&mut cmd, ask.owner);
    cmd.arg(ask.count).arg(key::channel(name));
    cmd
}

fn encode_inspect(ask: &Inspect, by: By) -> Cmd {
    let name = &ask.name;
    let mut cmd = command(&INSPECT, by, 3, 1, 4 * name.as_bytes().len() + CLAIM_BYTES);
    cmd.arg(name.as_bytes())
        .arg(key::token(name))
        .arg(key::queue(name))
        .arg(key::leases(name));
    cmd
}

fn encode_force_release(ask: &ForceRelease, home: &Home, by: By) -> Cmd {
    let name = &ask.name;
    let mut cmd = command(
        FORCE_RELEASE.at(home),
        by,
        4,
        3,
        7 * name.as_bytes().len() + 2 * CLAIM_BYTES,
    );
    cmd.arg(name.as_bytes())
        .arg(key::queue(name))
        .arg(key::timeouts(name))
        .arg(key::alive(name))
        .arg(key::channel(name))
        .arg(key::read_write_channel(name))
        .arg(key::leases(name));
    cmd
}

fn owner(cmd: &mut Cmd, owner: OwnerId) {
    let mut text = [0; OwnerId::MOST_BYTES];
    cmd.arg(owner.write_to(&mut text));
}

#[cfg(test)]
mod tests;
