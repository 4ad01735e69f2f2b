//! Claims that pass from one owner to another.

use super::held::{Held, ReadWrite};
use super::keys::Keys;
use crate::failure::Cause;
use crate::message::{Acquire, Mode};
use crate::time::WallMillis;

/// Passes the claim that an acquire continues to its owner. Returns whether the acquire may go on: it continues none, or
/// the owner has the claim now, perhaps since the request was executed before.
pub(super) fn pass_on(keys: &mut Keys, now: WallMillis, ask: &Acquire) -> Result<bool, Cause> {
    let Some(before) = ask.continues else {
        return Ok(true);
    };
    let Some(key) = keys.claim_mut(now) else {
        return Ok(false);
    };
    let (owner, count) = match (&mut key.value, ask.access.mode()) {
        (Held::NotALock, _) => return Err(Cause::WrongType),
        (Held::Plain { owner, count }, Mode::Plain | Mode::Fair) => (owner, count),
        (Held::ReadWrite(ReadWrite { writer, readers }), Mode::Write) => match writer {
            // The owner before reads beside its write claim, and would go on beside that of the next owner.
            Some((owner, _)) if *owner == before && !readers.is_empty() => return Ok(false),
            Some((owner, count)) => (owner, count),
            None => return Ok(false),
        },
        _ => return Ok(false),
    };
    let passes = *owner == before;
    if passes {
        (*owner, *count) = (ask.owner, ask.count);
    }
    let is_ours = *owner == ask.owner;
    if passes {
        // The version is that of the owner before. The acquire states its own.
        keys.version = None;
    }
    Ok(is_ours)
}
