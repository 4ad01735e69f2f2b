//! Decodes the reply of a script.

use quorlock_core::claim_version::ClaimVersion;
use quorlock_core::fencing::Token;
use quorlock_core::marker::{MarkerState, Nonce, Process, Shown, ShownMarker};
use quorlock_core::message::{
    Acquire, AcquireReply, Check, ForceReleaseReply, Found, Freshness, InspectReply, Mode,
    ReleaseReply, RenewReply, Reply, Request, Ttl,
};
use quorlock_core::transport::TransportError;
use redis::{ServerError, Value};

use crate::error;

/// Decodes a script's reply to `request`.
///
/// # Errors
/// A protocol error if the script never returns this reply. The request may have been executed nevertheless.
pub(crate) fn decode(request: &Request, answer: &Value) -> Result<Reply, TransportError> {
    let answer = released(request, answer).map_or(answer, |(reply, _)| reply);
    match request {
        Request::Acquire(Acquire { check: None, .. }) => {
            decode_acquire(answer).map(|reply| reply.map(Reply::Acquire))
        }
        Request::Acquire(Acquire {
            check: Some(check), ..
        }) => decode_checked(*check, answer),
        Request::Probe(check) => {
            Ok(decode_shown(*check, answer).map(|(_, shown)| Reply::Probe(shown)))
        }
        Request::Renew(ask) => Ok(decode_renew(answer, ask.claims.len()).map(Reply::Renew)),
        Request::Release(_) => Ok(decode_release(answer).map(Reply::Release)),
        Request::Inspect(_) => Ok(decode_inspect(answer).map(Reply::Inspect)),
        Request::ForceRelease(_) => Ok(decode_force_release(answer).map(Reply::ForceRelease)),
    }?
    .ok_or_else(|| error::nonsense(answer))
}

/// Returns why the server has published no message for this release, which it has executed.
pub(crate) fn unpublished<'a>(request: &Request, answer: &'a Value) -> Option<&'a ServerError> {
    released(request, answer).map(|(_, refusal)| refusal)
}

/// Splits the reply to a release whose message was refused: the reply of a release, and the refusal.
fn released<'a>(request: &Request, answer: &'a Value) -> Option<(&'a Value, &'a ServerError)> {
    let (Request::Release(_) | Request::ForceRelease(_), Value::Array(parts)) = (request, answer)
    else {
        return None;
    };
    match parts.as_slice() {
        [reply, Value::ServerError(refusal)] => Some((reply, refusal)),
        _ => None,
    }
}

fn decode_acquire(answer: &Value) -> Result<Option<AcquireReply>, TransportError> {
    Ok(match answer {
        Value::Int(token) => granted(Freshness::Anew, *token),
        Value::BulkString(text) => match mode(text) {
            Some(mode) => Some(AcquireReply::OtherMode(mode)),
            None => return Err(error::strange_mode(text)),
        },
        Value::Array(parts) => match parts.as_slice() {
            [Value::Int(2), Value::Int(token)] => granted(Freshness::AlreadyYours, *token),
            [Value::Int(3), Value::Int(left)] => ttl(*left).map(|ttl| AcquireReply::Queued { ttl }),
            [Value::Int(0), Value::Int(left)] | [Value::Int(0), Value::Int(left), Value::Nil] => {
                refused(*left, None)
            }
            // A version that another program wrote and that does not parse counts as none.
            [Value::Int(0), Value::Int(left), Value::BulkString(text)] => {
                refused(*left, version(text))
            }
            _ => None,
        },
        _ => None,
    })
}

fn granted(freshness: Freshness, value: i64) -> Option<AcquireReply> {
    token(value).map(|token| AcquireReply::Granted { freshness, token })
}

fn refused(left: i64, version: Option<ClaimVersion>) -> Option<AcquireReply> {
    ttl(left).map(|ttl| AcquireReply::Refused { ttl, version })
}

fn version(text: &[u8]) -> Option<ClaimVersion> {
    let mut words = std::str::from_utf8(text).ok()?.split(' ');
    let version = ClaimVersion {
        owner: words.next()?.parse().ok()?,
        number: words.next()?.parse().ok()?,
        lease_millis: words.next()?.parse().ok()?,
    };
    words.next().is_none().then_some(version)
}

fn decode_checked(check: Check, answer: &Value) -> Result<Option<Reply>, TransportError> {
    let Some((answer, shown)) = decode_shown(check, answer) else {
        return Ok(None);
    };
    let reply = decode_acquire(answer)?;
    Ok(reply.map(|reply| Reply::Checked(reply, shown)))
}

/// Decodes the reply of `check.lua`: the reply of the inner script, and the process and marker of the server. A
/// server that is the trusted process returns the inner reply alone.
fn decode_shown(check: Check, answer: &Value) -> Option<(&Value, Shown)> {
    let parts = match answer {
        Value::Array(parts) => parts.as_slice(),
        _ => &[],
    };
    let [
        answer,
        Value::Int(process),
        Value::Int(state),
        Value::Int(nonce),
        Value::BulkString(figures),
    ] = parts
    else {
        let trusted = check.trusted?;
        let marker = ShownMarker::Own(trusted.nonce, MarkerState::Confirmed, trusted.figures);
        let process = trusted.process;
        return Some((answer, Shown { process, marker }));
    };
    let nonce = Nonce::new(u64::try_from(*nonce).ok()?);
    let own = |state| {
        let figures = std::str::from_utf8(figures).ok()?.parse().ok()?;
        Some(ShownMarker::Own(nonce, state, figures))
    };
    let marker = match state {
        0 => ShownMarker::Missing,
        1 => ShownMarker::Anothers,
        2 => own(MarkerState::Observing)?,
        3 => own(MarkerState::Confirmed)?,
        _ => return None,
    };
    let process = Process(u64::try_from(*process).ok()?);
    Some((answer, Shown { process, marker }))
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
        Value::Int(1) => Some(ReleaseReply::FREED),
        Value::Int(2) => Some(ReleaseReply::Kept),
        Value::Int(3) => Some(ReleaseReply::Left),
        // No server has 2^32 clients. A larger number is the token in the reply to another request: a proxy has lost
        // a reply between the two.
        Value::Int(told @ 4..) => {
            let told = u32::try_from(told - 3).ok()?;
            Some(ReleaseReply::Freed { told })
        }
        _ => None,
    }
}

fn decode_inspect(answer: &Value) -> Option<InspectReply> {
    let Value::Array(parts) = answer else {
        return None;
    };
    let [stored, Value::Int(waiting), found @ ..] = parts.as_slice() else {
        return None;
    };
    let token = match stored {
        Value::Nil => None,
        Value::Int(value) => Some(token(*value)?),
        _ => return None,
    };
    let found = match found {
        [] => Found::Nothing,
        [Value::Int(left)] => ttl(*left).map(|_| Found::NotALock)?,
        [
            Value::Int(left),
            writer,
            Value::Int(count),
            Value::Int(readers),
        ] => Found::ReadWrite {
            writer: match writer {
                Value::Nil => None,
                Value::BulkString(owner) => Some((text(owner), u64::try_from(*count).ok()?)),
                _ => return None,
            },
            readers: u64::try_from(*readers).ok()?,
            ttl: ttl(*left)?,
        },
        [
            Value::Int(left),
            Value::BulkString(owner),
            Value::Int(count),
        ] => Found::Plain {
            owner: text(owner),
            count: u64::try_from(*count).ok()?,
            ttl: ttl(*left)?,
        },
        _ => return None,
    };
    let waiting = u64::try_from(*waiting).ok()?;
    Some(InspectReply::new(found, waiting, token))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn decode_force_release(answer: &Value) -> Option<ForceReleaseReply> {
    match answer {
        Value::Int(0) => Some(ForceReleaseReply::WasFree),
        Value::Int(1) => Some(ForceReleaseReply::Freed),
        _ => None,
    }
}

fn ttl(left: i64) -> Option<Ttl> {
    match left {
        -1 => Some(Ttl::Unbounded),
        left => u64::try_from(left).ok().map(Ttl::Millis),
    }
}

fn mode(text: &[u8]) -> Option<Mode> {
    match text {
        b"plain" => Some(Mode::Plain),
        b"fair" => Some(Mode::Fair),
        b"read" => Some(Mode::Read),
        b"write" => Some(Mode::Write),
        _ => None,
    }
}

fn token(value: i64) -> Option<Token> {
    u64::try_from(value).ok().map(Token)
}
