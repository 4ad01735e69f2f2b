//! Acquires of plain locks with claim versions and take-over.

use super::keys::Keys;
use super::plain;
use crate::failure::Cause;
use crate::message::{Acquire, AcquireReply};
use crate::time::WallMillis;

/// Executes an acquire of a plain lock. With a clock margin it may replace a claim, and gives its own claim a version.
pub(super) fn acquire(
    keys: &mut Keys,
    now: WallMillis,
    ask: &Acquire,
) -> Result<AcquireReply, Cause> {
    let Some(keep) = ask.keep else {
        return plain::acquire(keys, now, ask);
    };
    // Take-over: C was shown A's claim unchanged for A's lease, so A has stopped relying on it. Only a claim with
    // exactly this version is replaced. If A has renewed since, or B has replaced the claim before C, the number or the
    // owner differs, and C is refused.
    let replaces = ask.replaces.filter(|version| version.owner != ask.owner);
    if replaces.is_some() && replaces == keys.version(now) && !keys.has_queue(now) {
        keys.forget_claim();
    }
    let mut reply = plain::acquire(keys, now, ask)?;
    match &mut reply {
        AcquireReply::Granted { .. } => keys.set_version(ask.owner, ask.lease, keep),
        AcquireReply::Refused { version, .. } => *version = keys.version(now),
        AcquireReply::Queued { .. } | AcquireReply::OtherMode(_) => {}
    }
    Ok(reply)
}
