//! Re-entry and extension of a hold.

use std::time::Duration;

use quorlock::transport::{AcquireReply, Freshness, Reply};
use quorlock::{ConfirmError, Lost};
use quorlock_core::fencing::Fence;
use quorlock_core::lease::Lease;

use super::hold::ModelHold;
use super::requests::ConcurrentRequests;

pub(super) async fn enter(hold: &ModelHold) -> Result<(), ConfirmError> {
    confirm(hold, hold.count() + 1, hold.lease).await
}

pub(super) async fn extend(hold: &ModelHold, lease: Duration) -> Result<(), ConfirmError> {
    let lease = Lease::new(lease).expect("the plan was checked");
    confirm(hold, hold.count(), lease).await
}

/// Sends the count to every member. A threshold of the members must answer that they had the claim.
async fn confirm(hold: &ModelHold, count: u32, lease: Lease) -> Result<(), ConfirmError> {
    let client = &hold.client;
    let lost = || ConfirmError::Lost {
        names: hold.layout.text(),
        lost: Lost::Expired,
    };
    if !hold.is_held() {
        return Err(lost());
    }
    let mut asking = ConcurrentRequests::new(client);
    for (member, index) in hold.layout.members.iter().zip(0..) {
        let fence = Fence::Carry(hold.token(member.group));
        let request = client.acquire(member, hold.owner, count, lease, fence);
        asking.ask(index, member, request);
    }
    let deadline = client.now() + client.member_timeout(lease);
    let mut confirmed: Vec<usize> = Vec::new();
    while !asking.is_empty() && !hold.layout.is_quorum(|member| confirmed.contains(&member)) {
        let Some(answer) = asking.next(deadline).await else {
            break;
        };
        // A fresh grant does not count: the claim was missing, so B may have held the name in the meantime.
        if let Ok(Reply::Acquire(AcquireReply::Granted {
            freshness: Freshness::AlreadyYours,
            ..
        })) = answer.reply
        {
            hold.confirm(answer.member, lease.term(answer.sent));
            confirmed.push(answer.member);
        }
    }
    if !hold.is_held() {
        Err(lost())
    } else if hold.layout.is_quorum(|member| confirmed.contains(&member)) {
        Ok(())
    } else {
        Err(ConfirmError::Unconfirmed {
            names: hold.layout.text(),
            nodes: Vec::new(),
        })
    }
}
