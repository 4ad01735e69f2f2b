//! Bytes from a server: replies, and the answers of scripts, sentinels and cluster nodes.

use std::time::Duration;

use quorlock_core::fencing::{Fence, Token};
use quorlock_core::lease::Lease;
use quorlock_core::marker::{Act, ConfirmedMarker, Figures, Nonce, Process, Restarts};
use quorlock_core::message::{
    Access, Acquire, Check, Claim, ForceRelease, Inspect, Mode, Release, Renew, Reply, Request,
    Retention,
};
use quorlock_core::name::Name;
use quorlock_core::owner::{ClientId, OwnerId};
use quorlock_core::transport::TransportError;
use redis::Value;

use crate::connect::Endpoint;
use crate::info::Info;
use crate::resp::{Decoder, NoReply};
use crate::script::{self, batch};
use crate::{cluster, error, group};

/// Decodes the bytes as sent by a server.
///
/// # Panics
/// If replies depend on the boundaries of packets, differ from those that the `redis` crate decodes, change when they are
/// written and decoded again, or are accepted as the answer to another request.
pub fn replies(data: &[u8]) {
    let (replies, end) = decode([data]);
    for size in [1, 2, 7] {
        let (again, end_again) = decode(data.chunks(size));
        assert_eq!(again, replies, "in packets of {size}");
        assert_eq!(end_again, end, "in packets of {size}");
    }
    for reply in &replies {
        if let Some(written) = written(reply) {
            let (again, _) = decode([written.as_slice()]);
            assert_eq!(again.as_slice(), std::slice::from_ref(reply));
            let read = redis::parse_redis_value(&written);
            assert_eq!(read.as_ref(), Ok(reply), "as the redis crate reads it");
        }
        take(reply);
    }
}

/// Decodes all replies in these packets. Returns them, and the error that ends them, if any.
fn decode<'a>(packets: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Value>, Option<NoReply>) {
    let mut decoder = Decoder::default();
    let mut replies = Vec::new();
    for packet in packets {
        let mut rest = packet;
        while !rest.is_empty() {
            let decoded = match decoder.decode(rest) {
                Ok(decoded) => decoded,
                Err(end) => return (replies, Some(end)),
            };
            rest = rest.get(decoded.used..).expect("no more than there is");
            assert!(decoded.reply.is_some() || rest.is_empty());
            replies.extend(decoded.reply);
        }
    }
    (replies, None)
}

/// Returns the bytes of a reply; `None` for one that contains an error, whose text the `redis` crate parses.
fn written(reply: &Value) -> Option<Vec<u8>> {
    Some(match reply {
        Value::Nil => b"$-1\r\n".to_vec(),
        Value::Okay => b"+OK\r\n".to_vec(),
        Value::Int(number) => format!(":{number}\r\n").into_bytes(),
        Value::SimpleString(text) => format!("+{text}\r\n").into_bytes(),
        Value::BulkString(text) => {
            let mut bytes = format!("${}\r\n", text.len()).into_bytes();
            bytes.extend_from_slice(text);
            bytes.extend_from_slice(b"\r\n");
            bytes
        }
        Value::Array(values) => {
            let mut bytes = format!("*{}\r\n", values.len()).into_bytes();
            for value in values {
                bytes.extend(written(value)?);
            }
            bytes
        }
        _ => return None,
    })
}

/// Decodes a reply as the answer to every kind of request.
fn take(answer: &Value) {
    for request in requests() {
        match script::decode(&request, answer) {
            Ok(reply) => assert!(answers(&request, &reply), "{reply:?} to {request:?}"),
            Err(error) => check(&error),
        }
    }
    if let batch::Verdict::Replies(replies) = batch::judge(answer.clone(), 2) {
        assert_eq!(replies.len(), 2);
    }
    let asked = Endpoint::Tcp {
        host: "h".to_owned(),
        port: 7,
    };
    match cluster::answer::slots(answer, &asked) {
        Ok(told) => assert!(!told.shares.is_empty()),
        Err(error) => check(&error),
    }
    if let Err(error) = group::answer::endpoint(answer) {
        check(&error);
    }
    if let Err(error) = group::answer::must_be_primary(answer) {
        check(&error);
    }
    group::answer::epoch(answer);
    group::answer::sentinels(answer);
    let mut info = Info::default();
    if info.add(answer) {
        info.field("redis_version");
    }
    if let Value::ServerError(refusal) = answer {
        assert!(!error::server(refusal).detail.is_empty());
        if let Some(words) = refusal.details()
            && let Some((slot, _)) = cluster::answer::redirect(words, &asked)
        {
            assert!(slot.0 < crate::keyslot::SLOTS);
        }
    }
}

/// Checks that an error has a text. (A server's own text has any length.)
fn check(error: &TransportError) {
    assert!(!error.detail.is_empty(), "{error:?}");
}

/// Whether a reply is of the kind of the request.
fn answers(request: &Request, reply: &Reply) -> bool {
    match (request, reply) {
        (Request::Acquire(ask), Reply::Acquire(_)) => ask.check.is_none(),
        (Request::Acquire(ask), Reply::Checked(..)) => ask.check.is_some(),
        (Request::Renew(ask), Reply::Renew(replies)) => ask.claims.len() == replies.len(),
        (Request::Release(_), Reply::Release(_))
        | (Request::Inspect(_), Reply::Inspect(_))
        | (Request::ForceRelease(_), Reply::ForceRelease(_))
        | (Request::Probe(_), Reply::Probe(_)) => true,
        _ => false,
    }
}

fn look(trusted: Option<ConfirmedMarker>) -> Check {
    Check {
        figures: Figures::same(60_000),
        act: Act::Look,
        trusted,
        restarts: Restarts::MayForget,
        known: None,
    }
}

/// Returns one request of each kind that has its own decoder.
fn requests() -> Vec<Request> {
    let name = Name::new("n").expect("a name");
    let owner = OwnerId {
        client: ClientId::from_random(7),
        number: 1,
    };
    let lease = Lease::new(Duration::from_secs(30)).expect("a lease");
    let trusting = look(Some(ConfirmedMarker {
        process: Process(7),
        nonce: Nonce::new(7),
        figures: Figures::same(60_000),
    }));
    let acquire = |check| {
        Request::Acquire(Acquire {
            name: name.clone(),
            access: Access::Plain,
            owner,
            count: 1,
            lease,
            fence: Fence::Carry(Token(1)),
            retention: Retention::Forever,
            keep: None,
            after: None,
            replaces: None,
            continues: None,
            check,
        })
    };
    let claim = Claim {
        name: name.clone(),
        owner,
        count: 1,
        lease,
        token: Token(1),
        keep: None,
    };
    let renew = |claims| {
        Request::Renew(Renew {
            mode: Mode::Plain,
            claims,
            retention: Retention::Forever,
        })
    };
    vec![
        acquire(None),
        acquire(Some(look(None))),
        acquire(Some(trusting)),
        renew(vec![claim.clone()]),
        renew(vec![claim.clone(), claim]),
        Request::Release(Release {
            name: name.clone(),
            mode: Mode::Plain,
            owner,
            count: 0,
        }),
        Request::Inspect(Inspect::of(name.clone())),
        Request::ForceRelease(ForceRelease { name }),
        Request::Probe(look(None)),
        Request::Probe(trusting),
    ]
}
