//! Answers to acquires of a hold that come after its round was won.

use crate::shared::calls::Received;
use crate::shared::hold::Asked;
use crate::shared::layout::Member;
use crate::shared::trust::Sent;
use crate::telemetry;

/// The answer to an acquire that was sent at `sent`: the node is judged by it, the hold takes it in. Returns whether a claim
/// stands there that must be released.
pub(crate) fn answered(asked: &Asked, sent: Sent, received: &Received) -> bool {
    let hold = &asked.hold;
    let Member { node, name, .. } = hold.layout.place(asked.member);
    if let Err(error) = &received.result {
        telemetry::node_missing(name, hold.owner, node.address(), error);
    }
    let voted = node.vote(sent, name, asked.asking, &received.result);
    telemetry::trust_changed(node.address(), voted.change);
    hold.answered(
        received.at,
        asked.member,
        asked.sent,
        asked.lease,
        voted.answer,
    )
}
