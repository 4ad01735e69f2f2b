//! Agreeing on a token with members that handed out different ones.

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

/// The number of the first request of an owner to each member.
pub(super) const FIRST: u64 = 1;

/// How often a higher token is proposed before the round is given up.
const PROPOSALS: u8 = 3;

/// A won round whose members handed out different tokens: a value above all of them is proposed to those that granted,
/// and a threshold must take it. A proposal is a renewal that carries it.
pub(super) struct Raise {
    tokens: Tokens,
    /// As the proposal under way states them.
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
                    // Validity is checked once more: the proposal took time.
                    return round.outcome(client.now());
                }
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
