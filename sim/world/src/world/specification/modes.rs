//! Flawed nodes: deviations from the specification in fair queues and read-write locks.

use std::collections::BTreeMap;

use quorlock::runtime::WallMillis;
use quorlock::transport::{
    Acquire, AcquireReply, Channel, Release, ReleaseReply, Renew, Reply, Request,
};
use quorlock::{Name, OwnerId};
use quorlock_core::fencing::Fence;
use quorlock_core::message::{Access, Mode, QueuePlace, Ttl};
use quorlock_core::node::{Applied, Held, Node, ReadWrite};

use quorlock_sim_plan::variant::{Flaw, Variant};

/// How long a place in a queue lasts unless it is given up, in milliseconds: the default wait of Redisson.
const MINUTES: u64 = 5 * 60 * 1_000;

/// Executes a request as a node of this variant does.
pub(super) fn apply(
    keys: &mut Node,
    now: WallMillis,
    request: &Request,
    variant: Variant,
) -> Applied {
    match request {
        Request::Acquire(ask) => match ask.access {
            Access::Fair(place) => fair_acquire(keys, now, ask, place, variant),
            Access::Read { .. } => {
                let applied = keys.apply(now, request);
                if variant.has(Flaw::OneLeaseForReaders) && was_granted(&applied) {
                    share_lease(keys, now, &ask.name, ask.kept_millis());
                }
                applied
            }
            Access::Write if variant.has(Flaw::WriterJoinsReaders) => join_readers(keys, now, ask),
            _ => keys.apply(now, request),
        },
        Request::Renew(ask) if ask.mode == Mode::Read => renew_readers(keys, now, ask, variant),
        Request::Release(ask) if ask.mode == Mode::Fair => fair_release(keys, now, ask, variant),
        _ => keys.apply(now, request),
    }
}

fn was_granted(applied: &Applied) -> bool {
    matches!(
        applied.reply,
        Ok(Reply::Acquire(AcquireReply::Granted { .. })
            | Reply::Checked(AcquireReply::Granted { .. }, _))
    )
}

/// Returns the waiters in order, each with the number of milliseconds for which it still counts as alive.
fn waiting(keys: &Node, now: WallMillis, name: &Name) -> Vec<(OwnerId, u64)> {
    let queue = keys.queue(now, name).into_iter();
    let millis = |ttl| match ttl {
        Ttl::Millis(millis) => millis,
        Ttl::Unbounded => u64::MAX,
    };
    queue.map(|(owner, ttl)| (owner, millis(ttl))).collect()
}

fn fair_acquire(
    keys: &mut Node,
    now: WallMillis,
    ask: &Acquire,
    place: QueuePlace,
    variant: Variant,
) -> Applied {
    let mut ask = ask.clone();
    if variant.has(Flaw::ClientsTimePlaces)
        && let Fence::Mint { floor, .. } = ask.fence
    {
        for (owner, millis) in waiting(keys, now, &ask.name) {
            if owner == ask.owner || floor.0 < now.0.saturating_add(millis) {
                break;
            }
            leave(keys, now, &ask.name, Mode::Fair, owner);
        }
        if let QueuePlace::Kept { millis } = place {
            let until = floor.0.saturating_add(millis);
            let millis = until.saturating_sub(now.0);
            ask.access = Access::Fair(QueuePlace::Kept { millis });
        }
    }
    if variant.has(Flaw::PlaceOutlivesWaiter) && place != QueuePlace::None {
        ask.access = Access::Fair(QueuePlace::Kept { millis: MINUTES });
    }
    if variant.has(Flaw::NewestIsNext) && keys.held(now, &ask.name).is_none() {
        return serve_newest(keys, now, &ask);
    }
    keys.apply(now, &Request::Acquire(ask))
}

/// Grants a free name to the newest live waiter, and to no other.
fn serve_newest(keys: &mut Node, now: WallMillis, ask: &Acquire) -> Applied {
    let queue = waiting(keys, now, &ask.name);
    let Some((newest, millis)) = queue.iter().rfind(|(_, millis)| 0 < *millis) else {
        return keys.apply(now, &Request::Acquire(ask.clone()));
    };
    if *newest != ask.owner {
        let ttl = Ttl::Millis(*millis);
        return Applied {
            reply: Ok(Reply::Acquire(AcquireReply::Queued { ttl })),
            published: None,
        };
    }
    let others = queue.iter().filter(|(owner, _)| owner != newest);
    let others: Vec<_> = others.collect();
    for (owner, _) in &others {
        leave(keys, now, &ask.name, Mode::Fair, *owner);
    }
    let applied = keys.apply(now, &Request::Acquire(ask.clone()));
    for (owner, millis) in others {
        let again = Acquire {
            owner: *owner,
            access: Access::Fair(QueuePlace::Kept { millis: *millis }),
            ..ask.clone()
        };
        let _ = keys.apply(now, &Request::Acquire(again));
    }
    applied
}

fn fair_release(keys: &mut Node, now: WallMillis, ask: &Release, variant: Variant) -> Applied {
    let holds = matches!(keys.held(now, &ask.name), Some((Held::Plain { owner, .. }, _)) if owner == ask.owner);
    if variant.has(Flaw::PlaceOutlivesWaiter) && !holds {
        return Applied {
            reply: Ok(Reply::Release(ReleaseReply::NotYours)),
            published: None,
        };
    }
    let mut applied = keys.apply(now, &Request::Release(ask.clone()));
    if variant.has(Flaw::NewestIsNext)
        && let Some((Channel::Waiter(_, owner), _)) = &mut applied.published
        && let Some((newest, _)) = waiting(keys, now, &ask.name).last()
    {
        *owner = *newest;
    }
    applied
}

/// Removes the claim and the place of an owner.
fn leave(keys: &mut Node, now: WallMillis, name: &Name, mode: Mode, owner: OwnerId) {
    let release = Release {
        name: name.clone(),
        mode,
        owner,
        count: 0,
    };
    let _ = keys.apply(now, &Request::Release(release));
}

fn renew_readers(keys: &mut Node, now: WallMillis, ask: &Renew, variant: Variant) -> Applied {
    if variant.has(Flaw::ReadersRenewAll) {
        let mut all = ask.clone();
        for claim in &ask.claims {
            for (owner, count, _) in keys.readers(now, &claim.name) {
                let mut claim = claim.clone();
                (claim.owner, claim.count) = (owner, count);
                all.claims.push(claim);
            }
        }
        let _ = keys.apply(now, &Request::Renew(all));
    }
    let applied = keys.apply(now, &Request::Renew(ask.clone()));
    if variant.has(Flaw::OneLeaseForReaders) {
        for claim in &ask.claims {
            share_lease(keys, now, &claim.name, claim.kept_millis());
        }
    }
    applied
}

/// Makes the claims of all readers expire at the same time.
fn share_lease(keys: &mut Node, now: WallMillis, name: &Name, millis: u64) {
    let living = keys.readers(now, name).into_iter();
    let readers: BTreeMap<_, _> = living.map(|(owner, count, _)| (owner, count)).collect();
    let Some((Held::ReadWrite(held), _)) = keys.held(now, name) else {
        return;
    };
    let held = ReadWrite { readers, ..held };
    keys.put(name, Held::ReadWrite(held), Some(now.plus(millis)));
}

/// Grants a writer although there are readers.
fn join_readers(keys: &mut Node, now: WallMillis, ask: &Acquire) -> Applied {
    let reading = keys.readers(now, &ask.name);
    let is_written = matches!(keys.held(now, &ask.name), Some((Held::ReadWrite(held), _)) if held.writer.is_some());
    if reading.is_empty() || is_written {
        return keys.apply(now, &Request::Acquire(ask.clone()));
    }
    for (owner, _, _) in &reading {
        leave(keys, now, &ask.name, Mode::Read, *owner);
    }
    let applied = keys.apply(now, &Request::Acquire(ask.clone()));
    if let Some((Held::ReadWrite(mut held), _)) = keys.held(now, &ask.name) {
        let readers = reading.into_iter().map(|(owner, count, _)| (owner, count));
        held.readers = readers.collect();
        let expires = Some(now.plus(ask.kept_millis()));
        keys.put(&ask.name, Held::ReadWrite(held), expires);
    }
    applied
}
