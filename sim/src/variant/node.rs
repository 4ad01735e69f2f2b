//! What nodes do otherwise, where the fault lies in the script.

use quorlock::WallMillis;
use quorlock::transport::{AcquireReply, Applied, Held, Node, Reply, Request};

use super::{Flaw, Variant};

/// Executes a request as the node of this variant does.
pub(crate) fn apply(
    keys: &mut Node,
    now: WallMillis,
    request: &Request,
    variant: Variant,
) -> Applied {
    if variant.flaws().is_empty() {
        return keys.apply(now, request);
    }
    match request {
        Request::Acquire(ask) => {
            let Some((Held::Plain { owner, count }, ttl)) = keys.held(now, &ask.name) else {
                return keys.apply(now, request);
            };
            if owner == ask.owner && variant.has(Flaw::SetNx) {
                return Applied {
                    reply: Ok(Reply::Acquire(AcquireReply::Refused { ttl })),
                    published: None,
                };
            }
            let mut ask = ask.clone();
            if owner == ask.owner && variant.has(Flaw::Increments) {
                ask.count = count.saturating_add(1);
            }
            keys.apply(now, &Request::Acquire(ask))
        }
        Request::Release(ask) => {
            let Some((Held::Plain { owner, count }, _)) = keys.held(now, &ask.name) else {
                return keys.apply(now, request);
            };
            let mut ask = ask.clone();
            if variant.has(Flaw::DeleteUnchecked) {
                (ask.owner, ask.count) = (owner, 0);
            }
            if variant.has(Flaw::Increments) {
                ask.count = count.saturating_sub(1);
            }
            keys.apply(now, &Request::Release(ask))
        }
        _ => keys.apply(now, request),
    }
}
