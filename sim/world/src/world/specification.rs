//! How a node executes a request: as the specification does, or with the flaw of a variant.

mod modes;
pub(crate) mod server;

use std::time::Duration;

use quorlock::runtime::WallMillis;
use quorlock::transport::{Acquire, AcquireReply, Release, Renew, Reply, Request};
use quorlock_core::fencing::Fence;
use quorlock_core::lease::Lease;
use quorlock_core::message::{Access, Mode, Ttl};
use quorlock_core::node::{Applied, Held, Node};

use quorlock_sim_plan::variant::{Flaw, Variant};

/// Executes a request as a node of this variant does.
pub(crate) fn apply(
    keys: &mut Node,
    now: WallMillis,
    request: &Request,
    variant: Variant,
) -> Applied {
    if variant.flaws().is_empty() {
        return keys.apply(now, request);
    }
    if variant.has_product_clients() {
        return modes::apply(keys, now, request, variant);
    }
    match request {
        Request::Acquire(ask) => acquire(keys, now, ask.clone(), variant),
        Request::Renew(ask) => renew(keys, now, ask.clone(), variant),
        Request::Release(ask) => release(keys, now, ask.clone(), variant),
        _ => keys.apply(now, request),
    }
}

fn acquire(keys: &mut Node, now: WallMillis, mut ask: Acquire, variant: Variant) -> Applied {
    if let Some((Held::Plain { owner, count }, ttl)) = keys.held(now, &ask.name)
        && owner == ask.owner
    {
        if variant.has(Flaw::SetNx) {
            return Applied {
                reply: Ok(Reply::Acquire(AcquireReply::Refused { ttl, version: None })),
                published: None,
            };
        }
        if variant.has(Flaw::Increments) {
            ask.count = count.saturating_add(1);
        }
    }
    keys.apply(now, &Request::Acquire(ask))
}

fn renew(keys: &mut Node, now: WallMillis, mut ask: Renew, variant: Variant) -> Applied {
    if variant.has(Flaw::ExpireUnchecked) && ask.claims.iter().all(|c| c.count == 0) {
        return expire(keys, now, ask);
    }
    if variant.has(Flaw::RenewalAdds) {
        for claim in &mut ask.claims {
            if let Some((_, Ttl::Millis(left))) = keys.held(now, &claim.name) {
                let longer = claim.lease.millis().saturating_add(left);
                let longer = Lease::new(Duration::from_millis(longer));
                claim.lease = longer.unwrap_or(claim.lease);
            }
        }
    }
    keys.apply(now, &Request::Renew(ask))
}

fn release(keys: &mut Node, now: WallMillis, mut ask: Release, variant: Variant) -> Applied {
    if let Some((Held::Plain { owner, count }, _)) = keys.held(now, &ask.name) {
        if variant.has(Flaw::DeleteUnchecked) {
            (ask.owner, ask.count) = (owner, 0);
        }
        if variant.has(Flaw::Increments) {
            ask.count = count.saturating_sub(1);
        }
    }
    keys.apply(now, &Request::Release(ask))
}

/// Sets the TTL of keys that exist, as `PEXPIRE` does. A claim cannot be shortened, so each is made again.
fn expire(keys: &mut Node, now: WallMillis, mut ask: Renew) -> Applied {
    for claim in &mut ask.claims {
        let Some((Held::Plain { owner, count }, _)) = keys.held(now, &claim.name) else {
            continue;
        };
        (claim.owner, claim.count) = (owner, count);
        let (name, mode) = (claim.name.clone(), Mode::Plain);
        let free = Release {
            name,
            mode,
            owner,
            count: 0,
        };
        // No client sees this release: the key only gets another TTL.
        let _ = keys.apply(now, &Request::Release(free));
        let again = Acquire {
            name: claim.name.clone(),
            access: Access::Plain,
            owner,
            count,
            lease: claim.lease,
            fence: Fence::Carry(claim.token),
            retention: ask.retention,
            keep: None,
            after: None,
            replaces: None,
            continues: None,
            check: None,
        };
        let _ = keys.apply(now, &Request::Acquire(again));
    }
    keys.apply(now, &Request::Renew(ask))
}

#[cfg(test)]
mod tests {
    use quorlock::transport::{Claim, ReleaseReply};
    use quorlock::{Name, OwnerId};
    use quorlock_core::message::Retention;
    use quorlock_core::owner::ClientId;

    use super::*;

    const NOW: WallMillis = WallMillis(1_000_000);

    fn owner(number: u64) -> OwnerId {
        OwnerId {
            client: ClientId::from_random(7),
            number,
        }
    }

    fn name() -> Name {
        Name::new("a").unwrap()
    }

    fn acquire(number: u64) -> Request {
        Request::Acquire(Acquire {
            name: name(),
            access: Access::Plain,
            owner: owner(number),
            count: 1,
            lease: Lease::new(Lease::SHORTEST).unwrap(),
            fence: Fence::Carry(quorlock::Token(1)),
            retention: Retention::Forever,
            keep: None,
            after: None,
            replaces: None,
            continues: None,
            check: None,
        })
    }

    fn release(number: u64) -> Request {
        Request::Release(Release {
            name: name(),
            mode: Mode::Plain,
            owner: owner(number),
            count: 0,
        })
    }

    /// Returns the claim that is left after these requests, and the last reply.
    fn after(variant: Variant, requests: &[Request]) -> (Option<(OwnerId, u32)>, Reply) {
        let mut keys = Node::new();
        let applied = requests
            .iter()
            .map(|request| apply(&mut keys, NOW, request, variant));
        let reply = applied.last().unwrap().reply.unwrap();
        let held = match keys.held(NOW, &name()) {
            Some((Held::Plain { owner, count }, _)) => Some((owner, count)),
            _ => None,
        };
        (held, reply)
    }

    #[test]
    fn a_node_that_counts_takes_a_request_twice() {
        let twice = [acquire(1), acquire(1)];
        assert_eq!(after(Variant::Increments, &twice).0, Some((owner(1), 2)));
        assert_eq!(after(Variant::Published, &twice).0, Some((owner(1), 1)));
        let released = [acquire(1), acquire(1), release(1)];
        assert_eq!(after(Variant::Increments, &released).0, Some((owner(1), 1)));
        assert_eq!(after(Variant::Published, &released).0, None);
    }

    #[test]
    fn a_plain_delete_takes_the_claim_of_anybody() {
        let requests = [acquire(1), release(2)];
        let freed = Reply::Release(ReleaseReply::FREED);
        assert_eq!(after(Variant::PlainDelete, &requests), (None, freed));
        let kept = Reply::Release(ReleaseReply::NotYours);
        let claim = Some((owner(1), 1));
        assert_eq!(after(Variant::Published, &requests), (claim, kept));
    }

    #[test]
    fn an_expiry_sets_the_ttl_of_anybodys_claim() {
        let expire = |millis| {
            Request::Renew(Renew {
                mode: Mode::Plain,
                claims: vec![Claim {
                    name: name(),
                    owner: owner(2),
                    count: 0,
                    lease: Lease::new(Duration::from_millis(millis)).unwrap(),
                    token: quorlock::Token(1),
                    keep: None,
                }],
                retention: Retention::Forever,
            })
        };
        let mut keys = Node::new();
        for (request, left) in [
            (expire(9), None),
            (acquire(1), Some(5)),
            (expire(90), Some(90)),
            (expire(7), Some(7)),
        ] {
            let applied = apply(&mut keys, NOW, &request, Variant::RedissonRedLock);
            assert!(applied.reply.is_ok());
            assert_eq!(applied.published, None);
            let held = keys.held(NOW, &name());
            let claim = Held::Plain {
                owner: owner(1),
                count: 1,
            };
            assert_eq!(held, left.map(|left| (claim, Ttl::Millis(left))));
        }
    }

    #[test]
    fn set_nx_refuses_the_owner_too() {
        let (held, reply) = after(Variant::SetNx, &[acquire(1), acquire(1)]);
        assert_eq!(held, Some((owner(1), 1)));
        let is_refused = matches!(reply, Reply::Acquire(AcquireReply::Refused { .. }));
        assert!(is_refused, "{reply:?}");
    }
}
