//! Encodes requests of many callers as one script call.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, LazyLock};

use quorlock_core::fencing::Fence;
use quorlock_core::marker::ConfirmedMarker;
use quorlock_core::message::{Access, Acquire, Claim, Mode, Release, Renew, Request};
use quorlock_core::transport::{Cause, Execution};
use redis::{Cmd, ServerErrorKind, Value};

use super::check::{CHECK_BYTES, grants, marker_text};
use super::{
    By, CLAIM_BYTES, Home, Script, command, encode_claims, kept, owner, version_text, wire,
};
use crate::{error, key};

/// The largest number of requests in one call.
///
/// A server runs one script at a time, and all other clients wait meanwhile. A pair of acquire and release takes it
/// about 8 µs, so a call of 32 requests blocks it for 1/8 to 1/4 of a millisecond. With half as many requests in a
/// call it executes 8 % more instructions for each request, with twice as many 4 % fewer. Lua's `unpack` accepts
/// some 8,000 values, and no list of a call has more than two for each request.
pub(crate) const MOST_CLAIMS: usize = 32;

/// The largest number of bytes of keys and arguments in one call: 32 requests with names of 40 bytes, or fewer with
/// longer ones. A larger call would block the server for longer.
const MOST_BYTES: usize = 16 * 1024;

pub(super) static BATCH: LazyLock<Script> = LazyLock::new(|| {
    Script::new(concat!(
        lua!("shared/clock", "shared/counter", "shared/value"),
        "local function acquire(KEYS, ARGV)\n",
        lua!("acquire"),
        "end\nlocal function renew(KEYS, ARGV)\n",
        lua!("shared/retention", "shared/look", "renew"),
        "end\n",
        lua!("batch")
    ))
});

/// A request that can be sent together with others: it is for a plain lock, has one claim, and is of the common form.
#[derive(Clone, Debug)]
pub(crate) struct BatchMember {
    request: Arc<Request>,
    /// Hash of the stem of the name. Two requests with the same hash go in two calls, because a counter must not occur
    /// twice in one: the second request would get a token that is older than the first one's.
    digest: u64,
    bytes: usize,
}

impl BatchMember {
    /// Returns the request as a member of a batch, if it can be sent together with others.
    pub(crate) fn of(request: &Arc<Request>) -> Option<BatchMember> {
        let (name, keys) = match &**request {
            Request::Acquire(ask) if may_join(ask) => (&ask.name, 3),
            Request::Renew(Renew {
                mode: Mode::Plain,
                claims,
                ..
            }) => match claims.as_slice() {
                [claim] => (&claim.name, 2),
                _ => return None,
            },
            Request::Release(Release {
                name,
                mode: Mode::Plain,
                count: 0,
                ..
            }) => (name, 2),
            _ => return None,
        };
        let mut hasher = DefaultHasher::new();
        name.stem().hash(&mut hasher);
        Some(BatchMember {
            request: Arc::clone(request),
            digest: hasher.finish(),
            bytes: keys * name.as_bytes().len() + CLAIM_BYTES,
        })
    }

    pub(crate) fn request(&self) -> &Request {
        &self.request
    }

    /// The process that the request requires the server to be.
    fn trusted(&self) -> Option<ConfirmedMarker> {
        let Request::Acquire(Acquire {
            check: Some(check), ..
        }) = &*self.request
        else {
            return None;
        };
        check.trusted
    }
}

/// Whether an acquire is of the common form. An acquire that takes over or continues a claim, carries a token along, or trusts
/// no process is rare and is sent alone.
fn may_join(ask: &Acquire) -> bool {
    let is_usual = matches!(ask.fence, Fence::Mint { .. })
        && ask.replaces.is_none()
        && ask.continues.is_none();
    let is_trusting = ask.check.is_none_or(|check| {
        let trusted = check.trusted;
        trusted.is_some_and(|marker| grants(marker, ask.lease.millis()))
    });
    ask.access == Access::Plain && is_usual && is_trusting
}

/// The requests of one call.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    members: Vec<BatchMember>,
    trusted: Option<ConfirmedMarker>,
    bytes: usize,
}

impl Batch {
    /// Whether the call has room for this request. No other request may be for its name or the twin of it, and all that trust a
    /// process must trust the same one, because the script checks the process once for all of them.
    pub(crate) fn takes(&self, member: &BatchMember) -> bool {
        let is_same = match (self.trusted, member.trusted()) {
            (Some(ours), Some(its)) => ours == its,
            _ => true,
        };
        let is_first = self.members.is_empty();
        is_first
            || (is_same
                && self.members.len() < MOST_CLAIMS
                && self.bytes + member.bytes <= MOST_BYTES
                && self.members.iter().all(|m| m.digest != member.digest))
    }

    pub(crate) fn push(&mut self, member: BatchMember) {
        self.bytes += member.bytes;
        self.trusted = self.trusted.or(member.trusted());
        self.members.push(member);
    }

    pub(crate) fn members(&self) -> &[BatchMember] {
        &self.members
    }

    /// Returns the indices of the requests in the order of their replies.
    pub(crate) fn order(&self) -> Vec<usize> {
        let places = |is: fn(&Request) -> bool| {
            let members = self.members.iter().enumerate();
            members.filter_map(move |(place, member)| is(member.request()).then_some(place))
        };
        places(|request| matches!(request, Request::Acquire(_)))
            .chain(places(|request| matches!(request, Request::Renew(_))))
            .chain(places(|request| matches!(request, Request::Release(_))))
            .collect()
    }

    fn acquires(&self) -> impl Iterator<Item = &Acquire> {
        self.members
            .iter()
            .filter_map(|member| match member.request() {
                Request::Acquire(ask) => Some(ask),
                _ => None,
            })
    }

    fn renewals(&self) -> impl Iterator<Item = (&Renew, &Claim)> {
        self.members
            .iter()
            .filter_map(|member| match member.request() {
                Request::Renew(ask) => Some((ask, ask.claims.first()?)),
                _ => None,
            })
    }

    fn releases(&self) -> impl Iterator<Item = &Release> {
        self.members
            .iter()
            .filter_map(|member| match member.request() {
                Request::Release(ask) => Some(ask),
                _ => None,
            })
    }

    /// Encodes the requests as one command.
    pub(crate) fn encode(&self, by: By) -> Cmd {
        let (renewals, releases) = (self.renewals().count(), self.releases().count());
        let acquires = self.members.len() - renewals - releases;
        let has_marker = self.trusted.is_some();
        let keys = 3 * acquires + 2 * renewals + releases + usize::from(has_marker);
        let args = 4 + 9 * acquires + 8 * renewals + 2 * releases;
        let mut cmd = command(&BATCH, by, keys, args, self.bytes + CHECK_BYTES);
        self.encode_keys(&mut cmd);
        match self.trusted {
            Some(marker) => cmd.arg(marker_text(marker)),
            None => cmd.arg(""),
        };
        let asks: Vec<&Acquire> = self.acquires().collect();
        cmd.arg(acquires).arg(renewals).arg(releases);
        for group in asks.chunk_by(|one, next| Terms::of(one) == Terms::of(next)) {
            encode_group(&mut cmd, group, has_marker);
        }
        for (ask, claim) in self.renewals() {
            encode_claims(&mut cmd, ask.retention, std::slice::from_ref(claim));
        }
        for ask in self.releases() {
            owner(&mut cmd, ask.owner);
            cmd.arg(key::channel(&ask.name));
        }
        cmd
    }

    fn encode_keys(&self, cmd: &mut Cmd) {
        for ask in self.acquires() {
            let name = &ask.name;
            cmd.arg(name.as_bytes()).arg(key::queue(name));
        }
        for ask in self.acquires() {
            cmd.arg(key::token(&ask.name));
        }
        for (_, claim) in self.renewals() {
            let name = &claim.name;
            cmd.arg(name.as_bytes()).arg(key::token(name));
        }
        for ask in self.releases() {
            cmd.arg(ask.name.as_bytes());
        }
        if self.trusted.is_some() {
            // All names of a connection are in one namespace.
            let names = self.acquires().map(|ask| ask.name.split().0);
            cmd.arg(Home::PLAIN.marker(names.last().unwrap_or_default()));
        }
    }
}

/// The arguments that the acquires of one group share.
#[derive(PartialEq, Eq)]
struct Terms {
    count: u32,
    kept_millis: u64,
    retention_millis: u64,
    fence: Fence,
    has_versions: bool,
}

impl Terms {
    fn of(ask: &Acquire) -> Terms {
        Terms {
            count: ask.count,
            kept_millis: wire(ask.kept_millis()),
            retention_millis: kept(ask.retention),
            fence: ask.fence,
            has_versions: ask.keep.is_some(),
        }
    }
}

fn encode_group(cmd: &mut Cmd, group: &[&Acquire], has_marker: bool) {
    let Some(terms) = group.first().map(|ask| Terms::of(ask)) else {
        return;
    };
    cmd.arg(group.len())
        .arg(terms.count)
        .arg(terms.kept_millis)
        .arg(terms.retention_millis);
    super::fence(cmd, terms.fence);
    cmd.arg(if terms.has_versions { "versions" } else { "" });
    for ask in group {
        owner(cmd, ask.owner);
        if let Some(keep) = ask.keep {
            cmd.arg(version_text(keep, ask.lease));
        }
        if has_marker {
            super::after(cmd, ask);
        }
    }
}

/// The outcome of a call of several requests.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// The reply to each request, in order.
    Replies(Vec<Value>),
    /// The same error for each request.
    Error(Value),
    /// Nothing was done, and each request may be sent alone.
    Alone(Why),
    /// The script never returns this reply.
    Nonsense(Value),
}

/// Why the requests of a call are sent alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Why {
    /// The server has not loaded the script.
    UnknownScript,
    /// The server is not the process that the client trusts. Sent alone, each request gets a reply that shows
    /// the process.
    Untrusted,
    /// The user may not use one of the keys, or a command that only batches use, or the keys belong to several nodes.
    Refused,
}

/// Judges the reply to a call of `members` requests.
pub(crate) fn judge(answer: Value, members: usize) -> Verdict {
    match answer {
        Value::Array(replies) if replies.len() == members => Verdict::Replies(replies),
        Value::Nil => Verdict::Alone(Why::Untrusted),
        Value::ServerError(refusal) if refusal.kind() == Some(ServerErrorKind::NoScript) => {
            Verdict::Alone(Why::UnknownScript)
        }
        Value::ServerError(refusal) if refusal.code() == "UNDONE" => Verdict::Alone(Why::Refused),
        Value::ServerError(refusal) => {
            let error = error::server(&refusal);
            // Redis checks all keys of a call before it executes the call, so the refusal of one key concerns
            // every request.
            let is_whole = matches!(error.cause, Cause::NoPermission | Cause::Cluster)
                && error.execution == Execution::Definite;
            if is_whole {
                Verdict::Alone(Why::Refused)
            } else {
                Verdict::Error(Value::ServerError(refusal))
            }
        }
        other => Verdict::Nonsense(other),
    }
}
