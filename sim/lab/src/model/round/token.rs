//! The tokens of a round that was won.

use quorlock::Token;
use quorlock::transport::{RenewReply, Reply};
use quorlock_core::fencing::{Agreement, agreement, took_proposal};

use super::super::member::Member;
use super::super::requests::ConcurrentRequests;
use super::{Round, Vote};
use quorlock_sim_plan::variant::Flaw;

/// The number of proposals after which the round fails.
const PROPOSALS: u32 = 3;

/// Returns one token for each name: the token that all members of the name handed out, or else a larger one that a
/// threshold of them accepts. Returns `None` if no proposal is accepted.
pub(super) async fn of(round: &Round) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    for group in 0..round.layout.names.len() {
        let members = round.layout.members.iter().zip(&round.votes);
        let of_group = members.filter(|(member, _)| member.group == group);
        let handed_out: Vec<Option<Token>> = of_group
            .map(|(_, vote)| match vote {
                Vote::Granted(token, _) => Some(*token),
                _ => None,
            })
            .collect();
        let token = match agreement(handed_out.iter().copied()) {
            Agreement::Unanimous(token) => token,
            Agreement::Propose(_) if round.client.has(Flaw::MaximumIsToken) => {
                handed_out.into_iter().flatten().max()?
            }
            // If the largest value were the token, A could have 6 of 6 and 2, and the later B could have 3 of 3 and 2.
            Agreement::Propose(token) => raise(round, group, token).await?,
        };
        tokens.push(token);
    }
    Some(tokens)
}

/// Proposes a token to the members that granted, until a threshold accepts it.
async fn raise(round: &Round, group: usize, mut proposal: Token) -> Option<Token> {
    let client = &round.client;
    for _ in 0..PROPOSALS {
        let mut asking = ConcurrentRequests::new(client);
        for (member, index) in round.layout.members.iter().zip(0..) {
            if member.group == group && round.is_granted(index) {
                let request = member.renew(round.owner, 1, round.lease, proposal);
                asking.ask(index, member, request);
            }
        }
        let deadline = client.now() + client.member_timeout(round.lease);
        let mut taken: Vec<usize> = Vec::new();
        let mut largest = proposal;
        let is_taken = |taken: &[usize]| {
            let elsewhere = |index| {
                let member: Option<&Member> = round.layout.members.get(index);
                member.is_some_and(|member| member.group != group)
            };
            round
                .layout
                .is_quorum(|member| elsewhere(member) || taken.contains(&member))
        };
        while !asking.is_empty() && !is_taken(&taken) {
            let Some(answer) = asking.next(deadline).await else {
                break;
            };
            if let Ok(Reply::Renew(replies)) = &answer.reply
                && let [RenewReply::AlreadyYours { token }] = **replies
            {
                largest = largest.max(token);
                if took_proposal(token, proposal) {
                    taken.push(answer.member);
                }
            }
        }
        if is_taken(&taken) {
            return Some(proposal);
        }
        proposal = Token(largest.0 + 1);
    }
    None
}
