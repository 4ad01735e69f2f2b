//! Renewals with many claims in one request.

use std::collections::BTreeMap;
use std::sync::Arc;

use quorlock_core::message::{Claim, Mode, Renew, RenewReply, Reply, Request};
use quorlock_core::quorum::MemberId;
use quorlock_core::renewal::Status;
use quorlock_core::slot::Slot;
use quorlock_core::time::Time;
use quorlock_core::transport::{Call, TransportError};

use super::windows::Executor;
use crate::shared::calls::Received;
use crate::shared::hold::{Asked, Hold};
use crate::shared::layout::Place;
use crate::telemetry;

/// The largest size of one renewal. It is small enough not to block a server, which runs one script at a time.
const BATCH: u32 = 100;

/// Returns the size of a claim in a renewal: each entry of a reader has a lease of its own.
fn size(mode: Mode, claim: &Claim) -> u32 {
    match mode {
        Mode::Read => claim.count,
        _ => 1,
    }
}

/// Returns how many of the first claims go into one renewal: at least one, and others up to this size.
fn fit<'a>(mode: Mode, most: u32, claims: impl Iterator<Item = &'a Claim>) -> usize {
    let mut sum = 0u32;
    let others = claims.take_while(|claim| {
        sum = sum.saturating_add(size(mode, claim));
        sum <= most
    });
    others.count().max(1)
}

/// The renewals that are due, by server and mode.
pub(super) struct Batches {
    list: Vec<Batch>,
    /// The largest size of one renewal.
    most: u32,
}

struct Batch {
    server: Executor,
    mode: Mode,
    /// The claims by slot: if one part of a node is down, the claims in its other parts are still renewed.
    claims: BTreeMap<Slot, Vec<(Claim, Asked)>>,
}

impl Batches {
    /// Claims that are renewed together.
    pub(super) fn new() -> Self {
        Batches {
            list: Vec::new(),
            most: BATCH,
        }
    }

    /// Claims that are renewed one by one, because a renewal of all of them was refused.
    pub(super) fn of_one() -> Self {
        Batches {
            list: Vec::new(),
            most: 1,
        }
    }

    /// Adds a claim that was counted in the window of this server.
    pub(super) fn add(&mut self, server: Executor, place: &Place, claim: Claim, asked: Asked) {
        let mode = match place.mode {
            Mode::Fair => Mode::Plain,
            mode => mode,
        };
        let is_known = |batch: &&mut Batch| batch.mode == mode && batch.server == server;
        // A name that the node cannot store has no claims there.
        let slot = place.node.slot(&place.name).unwrap_or(Slot::WHOLE);
        match self.list.iter_mut().find(is_known) {
            Some(batch) => batch.claims.entry(slot).or_default().push((claim, asked)),
            None => self.list.push(Batch {
                server,
                mode,
                claims: BTreeMap::from([(slot, vec![(claim, asked)])]),
            }),
        }
    }

    /// Sends the renewals. Returns each call with its server and its claims.
    pub(super) fn send(self) -> impl Iterator<Item = (Executor, Vec<Asked>, Call)> {
        let most = self.most;
        self.list.into_iter().flat_map(move |batch| {
            let Batch {
                server,
                mode,
                claims,
            } = batch;
            claims.into_values().flat_map(move |claims| {
                let server = server.clone();
                let mut claims = claims.into_iter();
                std::iter::from_fn(move || {
                    claims.as_slice().first()?;
                    let len = fit(mode, most, claims.as_slice().iter().map(|(claim, _)| claim));
                    let (claims, renewing): (Vec<_>, Vec<_>) = claims.by_ref().take(len).unzip();
                    let node = server.node();
                    let call = node.call(Request::Renew(Renew {
                        mode,
                        claims,
                        retention: node.party.retention,
                    }));
                    Some((server.clone(), renewing, call))
                })
            })
        })
    }
}

/// Whether a renewal of several claims failed in a way that may concern only one of them. The others are renewed if each
/// has a call of its own: A holds 50 names, and its user loses the right to one of them. The server refuses the call
/// about all 50, and without another call A would lose the other 49, too.
pub(super) fn is_refused_together(renewing: &[Asked], received: &Received) -> bool {
    let may_be_of_one = |error: &TransportError| error.cause.may_be_of_one_name();
    1 < renewing.len() && received.result.as_ref().is_err_and(may_be_of_one)
}

/// Reports that a member has said that the claim of a hold is not there.
pub(super) fn tell_of_gone(hold: &Hold, member: MemberId, now: Time) {
    if hold.status(now) == Status::Held {
        let Place { node, name, .. } = hold.layout.place(member);
        telemetry::claim_gone(name, hold.owner, node.address());
    }
}

/// Handles the replies to a renewal of these claims. Calls `changed` once per hold, for consecutive claims of one
/// hold.
pub(super) fn handle_renewed(
    renewing: Vec<Asked>,
    received: &Received,
    mut changed: impl FnMut(&Arc<Hold>),
) {
    let Received { result, at: now } = received;
    let now = *now;
    let replies = match result {
        Ok(Reply::Renew(replies)) => replies.as_slice(),
        _ => {
            if let Some(asked) = renewing.first() {
                let node = &asked.hold.layout.place(asked.member).node;
                let error = result.as_ref().err();
                telemetry::renewal_failed(node.address(), error, renewing.len());
            }
            &[]
        }
    };
    let mut replies = replies.iter();
    let mut renewing = renewing.into_iter().peekable();
    while let Some(asked) = renewing.next() {
        // Many names of one hold may have been renewed at once.
        let next = renewing.peek();
        let is_last = next.is_none_or(|next| !Arc::ptr_eq(&next.hold, &asked.hold));
        let Asked {
            hold,
            member,
            lease,
            sent,
            ..
        } = asked;
        match replies.next() {
            Some(reply) => {
                if *reply == RenewReply::NotYours {
                    tell_of_gone(&hold, member, now);
                }
                hold.renewed(now, member, sent, lease, *reply);
            }
            None => hold.failed(now, member),
        }
        // After the answer, as with a re-acquisition.
        hold.end_ask(member);
        if is_last {
            changed(&hold);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use quorlock_core::fencing::Token;
    use quorlock_core::lease::Lease;
    use quorlock_core::name::Name;
    use quorlock_core::owner::{ClientId, OwnerId};

    use super::*;

    fn claim(count: u32) -> Claim {
        Claim {
            name: Name::new("a").unwrap(),
            owner: OwnerId {
                client: ClientId::from_random(1),
                number: 1,
            },
            count,
            lease: Lease::new(Duration::from_secs(10)).unwrap(),
            token: Token(1),
            keep: None,
        }
    }

    fn sizes(mode: Mode, counts: &[u32]) -> Vec<usize> {
        let claims: Vec<_> = counts.iter().map(|count| claim(*count)).collect();
        let mut rest = claims.as_slice();
        let mut sizes = Vec::new();
        while !rest.is_empty() {
            let len = fit(mode, BATCH, rest.iter());
            sizes.push(len);
            rest = &rest[len..];
        }
        sizes
    }

    /// A server extends each entry of a reader. A hundred readers with a thousand entries each blocked it 270 times as long
    /// as a hundred with one entry.
    #[test]
    fn a_renewal_has_a_hundred_claims_or_entries_of_readers() {
        assert_eq!(sizes(Mode::Plain, &[1_000; 250]), [100, 100, 50]);
        assert_eq!(sizes(Mode::Read, &[1; 250]), [100, 100, 50]);
        assert_eq!(sizes(Mode::Read, &[1_000; 3]), [1, 1, 1]);
        assert_eq!(sizes(Mode::Read, &[40, 40, 40, 101, 1]), [2, 1, 1, 1]);
    }
}
