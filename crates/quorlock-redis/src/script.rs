//! A request as a script call, and the script's reply as a reply.
//!
//! The scripts are files of their own, `lua/*.lua`, whose headers say what goes in and out.

use std::sync::LazyLock;

use quorlock_core::fencing::{Fence, Token};
use quorlock_core::message::{
    Acquire, AcquireReply, Freshness, Mode, Release, ReleaseReply, Renew, RenewReply, Reply,
    Request, Retention, Ttl,
};
use quorlock_core::transport::TransportError;
use redis::{Cmd, Value};

use crate::{error, key};

/// A script and the digest by which a server that has seen it knows it.
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

static ACQUIRE: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("../lua/acquire.lua")));
static RENEW: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("../lua/renew.lua")));
static RELEASE: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("../lua/release.lua")));

/// How a call names its script.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum By {
    /// By its digest: short, but the server may not know it.
    Digest,
    /// By its text, which the server keeps.
    Text,
}

/// Milliseconds on the wire stay below 2^53: Lua compares them as doubles, and Redis refuses an expiry that leaves
/// 64 bits when the time of day is added, which would be an error after the first write.
const MOST_MILLIS: u64 = (1 << 53) - 1;

fn wire(millis: u64) -> u64 {
    millis.min(MOST_MILLIS)
}

fn kept(retention: Retention) -> u64 {
    match retention {
        // Zero says "for ever" on the wire.
        Retention::Millis(millis) => wire(millis).max(1),
        Retention::Forever => 0,
    }
}

/// The command that carries a request.
pub(crate) fn encode(request: &Request, by: By) -> Cmd {
    match request {
        Request::Acquire(acquire) => encode_acquire(acquire, by),
        Request::Renew(renew) => encode_renew(renew, by),
        Request::Release(release) => encode_release(release, by),
    }
}

/// `EVALSHA digest keys` or `EVAL text keys`; `args` and `bytes` are what follows, so that it is allocated once.
fn command(script: &Script, by: By, keys: usize, args: usize, bytes: usize) -> Cmd {
    let (verb, script) = match by {
        By::Digest => ("EVALSHA", script.digest.as_str()),
        By::Text => ("EVAL", script.text),
    };
    let mut cmd = Cmd::with_capacity(3 + keys + args, 32 + script.len() + bytes);
    cmd.arg(verb).arg(script).arg(keys);
    cmd
}

/// Room for an owner and the numbers of one claim.
const CLAIM_BYTES: usize = 160;

fn encode_acquire(ask: &Acquire, by: By) -> Cmd {
    let name = ask.name.as_str();
    let mut cmd = command(&ACQUIRE, by, 2, 6, 2 * name.len() + CLAIM_BYTES);
    cmd.arg(name).arg(key::token(name));
    owner(&mut cmd, ask.owner);
    cmd.arg(ask.count)
        .arg(wire(ask.lease.millis()))
        .arg(kept(ask.retention));
    match ask.fence {
        Fence::Mint {
            floor,
            slack_millis,
        } => cmd.arg(wire(floor.0)).arg(wire(slack_millis)),
        Fence::Carry(token) => cmd.arg(token.0),
    };
    cmd
}

fn encode_renew(ask: &Renew, by: By) -> Cmd {
    let claims = ask.claims.len();
    let bytes: usize = ask
        .claims
        .iter()
        .map(|claim| 2 * claim.name.as_str().len() + CLAIM_BYTES)
        .sum();
    let mut cmd = command(&RENEW, by, 2 * claims, 1 + 4 * claims, bytes);
    for claim in &ask.claims {
        let name = claim.name.as_str();
        cmd.arg(name).arg(key::token(name));
    }
    cmd.arg(kept(ask.retention));
    for claim in &ask.claims {
        owner(&mut cmd, claim.owner);
        cmd.arg(claim.count)
            .arg(wire(claim.lease.millis()))
            .arg(claim.token.0);
    }
    cmd
}

fn encode_release(ask: &Release, by: By) -> Cmd {
    let name = ask.name.as_str();
    let mut cmd = command(&RELEASE, by, 1, 3, 2 * name.len() + CLAIM_BYTES);
    cmd.arg(name);
    owner(&mut cmd, ask.owner);
    cmd.arg(ask.count).arg(key::channel(name));
    cmd
}

fn owner(cmd: &mut Cmd, owner: quorlock_core::owner::OwnerId) {
    use redis::RedisWrite as _;
    cmd.write_arg_fmt(owner);
}

/// The reply that a script's answer to `request` stands for.
///
/// # Errors
/// A protocol error when the answer is none of those the script gives: the request may have been executed all the
/// same.
pub(crate) fn decode(request: &Request, answer: &Value) -> Result<Reply, TransportError> {
    match request {
        Request::Acquire(_) => decode_acquire(answer).map(|reply| reply.map(Reply::Acquire)),
        Request::Renew(ask) => Ok(decode_renew(answer, ask.claims.len()).map(Reply::Renew)),
        Request::Release(_) => Ok(decode_release(answer).map(Reply::Release)),
    }?
    .ok_or_else(|| error::nonsense(answer))
}

fn decode_acquire(answer: &Value) -> Result<Option<AcquireReply>, TransportError> {
    Ok(match answer {
        Value::Int(left) => match (left, u64::try_from(*left)) {
            (-1, _) => Some(AcquireReply::Refused {
                ttl: Ttl::Unbounded,
            }),
            (_, Ok(left)) => Some(AcquireReply::Refused {
                ttl: Ttl::Millis(left),
            }),
            _ => None,
        },
        Value::BulkString(mode) => match mode.as_slice() {
            b"read" => Some(AcquireReply::OtherMode(Mode::Read)),
            b"write" => Some(AcquireReply::OtherMode(Mode::Write)),
            _ => return Err(error::strange_mode(mode)),
        },
        Value::Array(parts) => match parts.as_slice() {
            [Value::Int(freshness), Value::Int(value)] => {
                let freshness = match freshness {
                    1 => Some(Freshness::Anew),
                    2 => Some(Freshness::AlreadyYours),
                    _ => None,
                };
                freshness
                    .zip(token(*value))
                    .map(|(freshness, token)| AcquireReply::Granted { freshness, token })
            }
            _ => None,
        },
        _ => None,
    })
}

fn decode_renew(answer: &Value, claims: usize) -> Option<Vec<RenewReply>> {
    let Value::Array(answers) = answer else {
        return None;
    };
    if answers.len() != claims {
        return None;
    }
    answers
        .iter()
        .map(|answer| match answer {
            Value::Int(-1) => Some(RenewReply::NotYours),
            Value::Int(value) => token(*value).map(|token| RenewReply::AlreadyYours { token }),
            _ => None,
        })
        .collect()
}

fn decode_release(answer: &Value) -> Option<ReleaseReply> {
    match answer {
        Value::Int(0) => Some(ReleaseReply::NotYours),
        Value::Int(1) => Some(ReleaseReply::Freed),
        Value::Int(2) => Some(ReleaseReply::Kept),
        _ => None,
    }
}

fn token(value: i64) -> Option<Token> {
    u64::try_from(value).ok().map(Token)
}
