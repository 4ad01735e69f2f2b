//! The requests to the members of a hold.

use quorlock_core::fencing::Fence;
use quorlock_core::message::{Access, Acquire, Claim, Mode, QueuePlace, Release, Request};
use quorlock_core::quorum::MemberId;

use super::{Hold, Statement};
use crate::shared::trust::Sent;

/// A release that sets the claim's count on one member; 0 frees the name.
pub(crate) fn release(hold: &Hold, member: MemberId, count: u32) -> Request {
    let place = hold.layout.place(member);
    Request::Release(Release {
        name: place.name.clone(),
        mode: place.mode,
        owner: hold.owner,
        count,
    })
}

/// The claim to renew on one member.
pub(crate) fn claim(hold: &Hold, member: MemberId, stated: Statement) -> Claim {
    let place = hold.layout.place(member);
    Claim {
        name: place.name.clone(),
        owner: hold.owner,
        count: stated.count,
        lease: stated.lease,
        token: hold.carried(place.group),
        keep: place.keep(stated.number),
    }
}

/// A re-acquire that carries the hold's token, for one member that does not count. It must be sent immediately.
pub(crate) fn reacquire(hold: &Hold, member: MemberId, stated: Statement) -> (Request, Sent) {
    let place = hold.layout.place(member);
    let question = place.node.ask(None);
    // Suppose B has adopted A's hold, and 3 did not answer. A's claim stays on 3 for its lease and the margin, unless it passes on,
    // too. If 3 is free, nothing passes on. So every second request to a member continues A's hold.
    let continued = hold.continued.as_ref().filter(|_| stated.continues);
    let request = Request::Acquire(Acquire {
        name: place.name.clone(),
        access: match place.mode {
            Mode::Plain => Access::Plain,
            Mode::Fair => Access::Fair(QueuePlace::None),
            Mode::Read => Access::Read { under: hold.under },
            Mode::Write => Access::Write,
        },
        owner: hold.owner,
        count: stated.count,
        lease: stated.lease,
        fence: Fence::Carry(hold.carried(place.group)),
        retention: place.node.party.retention,
        keep: place.keep(stated.number),
        after: None,
        replaces: None,
        continues: continued.map(|before| before.owner),
        check: question.check,
    });
    (request, question.sent)
}
