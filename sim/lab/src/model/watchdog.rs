//! The watchdog: renews a hold as long as it has guards.

use std::rc::Rc;

use quorlock::runtime::Time;
use quorlock::transport::{AcquireReply, RenewReply, Reply};

use super::hold::ModelHold;
use super::requests::{ConcurrentRequests, MemberReply};
use quorlock_sim_plan::variant::Flaw;

/// Renews the hold every third of its lease until it is over or lost.
pub(super) async fn watch(hold: Rc<ModelHold>) {
    let client = Rc::clone(&hold.client);
    let mut asking = ConcurrentRequests::new(&client);
    let mut latest_pass = client.clock();
    loop {
        let next_pass = client.now() + hold.lease.length() / 3;
        while let Some(answer) = asking.next(next_pass).await {
            if answer.reply.is_err() && client.has(Flaw::RenewalEndsAtError) {
                return;
            }
            handle(&hold, &answer, latest_pass);
        }
        let goes_on = client.has(Flaw::WatchdogOutlivesRelease)
            || !hold.is_over() && (hold.is_held() || client.has(Flaw::FreshGrantRenews));
        if !goes_on {
            return;
        }
        latest_pass = client.clock();
        hold.ask_renewal(&mut asking);
    }
}

/// Records a member's answer to a renewal. A confirmation counts from when its request was sent.
fn handle(hold: &ModelHold, answer: &MemberReply, latest_pass: Time) {
    // The term counts from when the answered request was sent. If the answer were credited to a later request, the
    // term would outlast the node's TTL, and B could win the name while A believes that it holds it.
    let since = if hold.client.has(Flaw::LatestPassCredited) {
        latest_pass
    } else if hold.client.has(Flaw::ExtensionCountsFromReply) {
        hold.client.clock()
    } else {
        answer.sent
    };
    let is_ours = match &answer.reply {
        // A member without the claim does not count, because B may have held the name there in the meantime.
        Ok(Reply::Renew(replies)) => matches!(**replies, [RenewReply::AlreadyYours { .. }]),
        // Only the variant that accepts any grant as a renewal sends an acquire here.
        Ok(Reply::Acquire(reply)) => matches!(reply, AcquireReply::Granted { .. }),
        _ => return,
    };
    if is_ours {
        hold.confirm(answer.member, hold.lease.term(since));
    } else {
        hold.lose(answer.member);
    }
}
