//! Claims that pass from one owner to another.

use std::collections::BTreeMap;

use super::held::{Held, ReadWrite};
use super::keys::Keys;
use crate::failure::Cause;
use crate::fencing::mint;
use crate::message::{Acquire, AcquireReply, Freshness, Mode, Ttl};
use crate::owner::OwnerId;
use crate::time::WallMillis;

/// Executes an acquire that may continue the hold of another owner, by executing it with the claim as its owner's.
pub(super) fn acquire(
    keys: &mut Keys,
    now: WallMillis,
    ask: &Acquire,
    execute: impl FnOnce(&mut Keys) -> Result<AcquireReply, Cause>,
) -> Result<AcquireReply, Cause> {
    let Some(before) = ask.continues else {
        return execute(keys);
    };
    match whose(keys, now, ask, before)? {
        Whose::Ours => execute(keys),
        Whose::Theirs => {
            pass_on(keys, now, ask);
            let reply = execute(keys)?;
            Ok(match reply {
                AcquireReply::Granted { token, .. } => AcquireReply::Granted {
                    freshness: Freshness::Anew,
                    token,
                },
                other => other,
            })
        }
        Whose::Others => {
            let ttl = keys.claim(now).map_or(Ttl::Millis(0), |key| key.ttl(now));
            Ok(AcquireReply::Refused { ttl, version: None })
        }
    }
}

enum Whose {
    /// The request was executed before.
    Ours,
    /// The claim is the one that is handed over.
    Theirs,
    /// There is no claim of either.
    Others,
}

fn whose(keys: &mut Keys, now: WallMillis, ask: &Acquire, before: OwnerId) -> Result<Whose, Cause> {
    let Some(claim) = exclusive(keys, now, ask)? else {
        return Ok(Whose::Others);
    };
    Ok(if *claim.owner == ask.owner {
        Whose::Ours
    } else if *claim.owner == before {
        Whose::Theirs
    } else {
        Whose::Others
    })
}

fn pass_on(keys: &mut Keys, now: WallMillis, ask: &Acquire) {
    if let Ok(Some(claim)) = exclusive(keys, now, ask) {
        (*claim.owner, *claim.count) = (ask.owner, ask.count);
        // The writer before has let them in, and has stopped reading. The release of a reader may be lost.
        if let Some(readers) = claim.readers {
            readers.clear();
        }
    }
    // The version is that of the owner before. The acquire states its own.
    keys.version = None;
    let token = mint(keys.token(now), ask.fence, now);
    keys.store_token(now, token, ask.retention);
}

struct Exclusive<'a> {
    owner: &'a mut OwnerId,
    count: &'a mut u32,
    /// The readers beside a writer.
    readers: Option<&'a mut BTreeMap<OwnerId, u32>>,
}

/// Returns the exclusive claim in the mode of the request.
fn exclusive<'a>(
    keys: &'a mut Keys,
    now: WallMillis,
    ask: &Acquire,
) -> Result<Option<Exclusive<'a>>, Cause> {
    let Some(key) = keys.claim_mut(now) else {
        return Ok(None);
    };
    match (&mut key.value, ask.access.mode()) {
        (Held::NotALock, _) => Err(Cause::WrongType),
        (Held::Plain { owner, count }, Mode::Plain | Mode::Fair) => Ok(Some(Exclusive {
            owner,
            count,
            readers: None,
        })),
        (Held::ReadWrite(ReadWrite { writer, readers }), Mode::Write) => {
            Ok(writer.as_mut().map(|(owner, count)| Exclusive {
                owner,
                count,
                readers: Some(readers),
            }))
        }
        _ => Ok(None),
    }
}
