//! Agreement on one token when members handed out different ones.

use std::task::Context;

use quorlock_core::fencing::{Tokens, took_proposal};
use quorlock_core::message::{Claim, Renew, RenewReply, Reply, Request};
use quorlock_core::owner::OwnerId;
use quorlock_core::quorum::MemberId;
use quorlock_core::release::{Confirmation, Confirming};
use quorlock_core::round::{Loss, Outcome, Round};
use quorlock_core::time::Time;

use super::request::LockRequest;
use crate::shared::calls::Calls;
use crate::shared::client::Client;

/// The number of an owner's first request to each member.
pub(super) const FIRST: u64 = 1;

/// How often a higher token is proposed before the round is given up.
const PROPOSALS: u8 = 3;

/// A won round whose members handed out different tokens. It proposes a value above all of them to the members that
/// granted, and a threshold of them must take it. A proposal is a renewal that carries the token.
///
/// Raising the token: the counters are at 5, 1 and 1. A gets 6 and 2 from nodes 1 and 2, and uses 6. Later B gets 3 and 2 from
/// nodes 2 and 3, and uses 3: the store rejects B, the newer holder. With a proposal node 2 stores 7, so B gets 8.
pub(super) struct Raise {
    tokens: Tokens,
    /// The tokens of the proposal in flight.
    proposed: Tokens,
    confirming: Option<Confirming>,
    calls: Calls<MemberId>,
    deadline: Time,
    proposals: u8,
}

impl Raise {
    pub(super) fn new(now: Time, tokens: Tokens, wanted: &LockRequest) -> Self {
        Raise {
            proposed: tokens.clone(),
            tokens,
            confirming: None,
            calls: Calls::of(wanted.layout.members.len()),
            deadline: now + wanted.member_timeout,
            proposals: 0,
        }
    }

    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        client: &Client,
        wanted: &LockRequest,
        owner: OwnerId,
        round: &Round,
    ) -> Outcome {
        loop {
            let mut confirming = match self.confirming.take() {
                Some(confirming) => confirming,
                None if self.proposals == PROPOSALS => return Outcome::Lost(Loss::NoQuorum),
                None => self.propose(client, wanted, owner, round),
            };
            let (tokens, proposed) = (&mut self.tokens, &self.proposed);
            let clock = &*client.runtime;
            self.calls
                .poll(cx, clock, |member, received| match received.result {
                    Ok(Reply::Renew(replies)) => {
                        let group = wanted.layout.place(member).group;
                        match replies.first() {
                            Some(RenewReply::AlreadyYours { token })
                                if !took_proposal(*token, proposed.token(group)) =>
                            {
                                // Raising the token: this member stores a larger one and keeps it, so it has not
                                // taken the proposal. The next proposal is above that. If A settled on a value that
                                // no threshold stores, B could win with members that store less, and the store would
                                // reject B, the newer holder.
                                tokens.outbid(group, *token);
                                confirming.handle_failed(member);
                            }
                            Some(reply) => confirming.handle_renewed(member, *reply),
                            None => confirming.handle_failed(member),
                        }
                    }
                    _ => confirming.handle_failed(member),
                });
            match confirming.outcome() {
                Confirmation::Pending => {
                    self.confirming = Some(confirming);
                    return Outcome::Pending;
                }
                Confirmation::Confirmed => {
                    self.tokens = self.proposed.clone();
                    for group in 0..wanted.layout.parts.len() {
                        self.tokens.settle(group);
                    }
                    // Check the validity again. The proposal took time: the claims may have expired meanwhile, and B
                    // may hold them.
                    return round.outcome(client.now());
                }
                // Too few members still have the claim, so B may hold the name by now.
                Confirmation::NotHeld => return Outcome::Lost(Loss::NoQuorum),
                Confirmation::Unconfirmed => {}
            }
        }
    }

    fn propose(
        &mut self,
        client: &Client,
        wanted: &LockRequest,
        owner: OwnerId,
        round: &Round,
    ) -> Confirming {
        self.proposals += 1;
        self.proposed = self.tokens.clone();
        self.calls = Calls::of(wanted.layout.members.len());
        self.deadline = client.now() + wanted.member_timeout;
        let members = wanted.layout.members.clone();
        let confirming = Confirming::new(members, |member| round.has_granted(member));
        let mut confirming = confirming;
        for (member, place) in wanted.layout.all() {
            if !round.has_granted(member) {
                continue;
            }
            let token = self.tokens.token(place.group);
            if self.tokens.is_group_settled(place.group) {
                confirming.handle_renewed(member, RenewReply::AlreadyYours { token });
                continue;
            }
            let claim = Claim {
                name: place.name.clone(),
                owner,
                count: 1,
                lease: wanted.lease,
                token,
                keep: place.keep(FIRST + u64::from(self.proposals)),
            };
            let request = Request::Renew(Renew {
                mode: place.mode,
                claims: vec![claim],
                retention: place.node.party.retention,
            });
            self.calls.push(member, place.node.call(request));
        }
        confirming
    }

    pub(super) fn poll_timeout(&self) -> Time {
        self.deadline
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        if self.deadline <= now
            && let Some(confirming) = &mut self.confirming
        {
            confirming.handle_timeout();
        }
    }

    pub(super) fn tokens(&self) -> &Tokens {
        &self.tokens
    }
}
