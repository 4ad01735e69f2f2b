//! Replies in the words of the files.

use quorlock_core::claim_version::ClaimVersion;
use quorlock_core::marker::{MarkerState, Shown, ShownMarker};
use quorlock_core::message::{
    AcquireReply, ForceReleaseReply, Found, Freshness, InspectReply, Mode, ReleaseReply,
    RenewReply, Reply, Ttl,
};
use quorlock_core::transport::Cause;
use serde_json::{Value, json};

/// Returns a reply, or the error of a request that had no effect.
pub(super) fn words(answer: Result<Reply, Cause>) -> Value {
    match answer {
        Ok(Reply::Acquire(reply)) => acquire(reply),
        Ok(Reply::Checked(reply, shown)) => {
            let mut words = acquire(reply);
            words["marker"] = marker(shown);
            words
        }
        Ok(Reply::Renew(replies)) => replies.into_iter().map(renew).collect(),
        Ok(Reply::Release(reply)) => json!(match reply {
            ReleaseReply::Freed { .. } => "freed",
            ReleaseReply::Kept => "kept",
            ReleaseReply::NotYours => "not yours",
            ReleaseReply::Left => "left",
            other => panic!("{other:?} has no words"),
        }),
        Ok(Reply::Inspect(reply)) => inspect(reply),
        Ok(Reply::ForceRelease(reply)) => json!(match reply {
            ForceReleaseReply::Freed => "freed",
            ForceReleaseReply::WasFree => "was free",
            other => panic!("{other:?} has no words"),
        }),
        Ok(Reply::Probe(shown)) => json!({ "marker": marker(shown) }),
        Ok(other) => panic!("{other:?} has no words"),
        Err(Cause::WrongType) => json!({"error": "wrong type"}),
        Err(Cause::LongestLease) => json!({"error": "longest lease"}),
        Err(cause) => panic!("the request failed: {cause:?}"),
    }
}

fn acquire(reply: AcquireReply) -> Value {
    match reply {
        AcquireReply::Granted { freshness, token } => json!({
            "granted": match freshness {
                Freshness::Anew => "anew",
                Freshness::AlreadyYours => "already yours",
            },
            "token": token.0,
        }),
        AcquireReply::Refused { ttl, version: None } => json!({"refused": millis(ttl)}),
        AcquireReply::Refused {
            ttl,
            version: Some(version),
        } => {
            json!({"refused": millis(ttl), "version": version_text(version)})
        }
        AcquireReply::Queued { ttl } => json!({"queued": millis(ttl)}),
        AcquireReply::OtherMode(mode) => json!({"other mode": match mode {
            Mode::Plain => "plain",
            Mode::Fair => "fair",
            Mode::Read => "read",
            Mode::Write => "write",
        }}),
        other => panic!("{other:?} has no words"),
    }
}

fn renew(reply: RenewReply) -> Value {
    match reply {
        RenewReply::AlreadyYours { token } => json!({"extended": token.0}),
        RenewReply::NotYours => json!("not yours"),
        other => panic!("{other:?} has no words"),
    }
}

fn inspect(reply: InspectReply) -> Value {
    let mut words = match reply.found {
        Found::Nothing => json!({"found": "nothing"}),
        Found::Plain { owner, count, ttl } => {
            json!({"found": "plain", "owner": owner, "count": count, "ttl": millis(ttl)})
        }
        Found::ReadWrite {
            writer,
            readers,
            ttl,
        } => {
            let mut words = json!({"found": "read-write", "readers": readers, "ttl": millis(ttl)});
            if let Some((owner, count)) = writer {
                words["writer"] = json!(owner);
                words["count"] = json!(count);
            }
            words
        }
        Found::NotALock => json!({"found": "no lock"}),
        other => panic!("{other:?} has no words"),
    };
    words["waiting"] = json!(reply.waiting);
    if let Some(token) = reply.token {
        words["token"] = json!(token.0);
    }
    words
}

fn marker(shown: Shown) -> Value {
    match shown.marker {
        ShownMarker::Missing => json!("missing"),
        ShownMarker::Anothers => json!("another's"),
        ShownMarker::Own(nonce, state, figures) => {
            let state = match state {
                MarkerState::Confirmed => "ripe",
                MarkerState::Observing => "unripe",
            };
            let mut words = json!({ state: nonce.get() });
            if figures.granted_millis != figures.watched_millis {
                words["figures"] = json!(figures.to_string());
            }
            words
        }
    }
}

pub(super) fn version_text(version: ClaimVersion) -> String {
    format!(
        "{} {} {}",
        version.owner, version.number, version.lease_millis
    )
}

pub(super) fn millis(ttl: Ttl) -> i64 {
    match ttl {
        Ttl::Millis(millis) => i64::try_from(millis).expect("milliseconds"),
        Ttl::Unbounded => -1,
    }
}
