//! Answers to acquires of a hold that arrive after its round was won.

use crate::shared::calls::Received;
use crate::shared::hold::Asked;
use crate::shared::layout::Place;
use crate::shared::trust::Sent;
use crate::telemetry;

/// Passes the answer to an acquire to the node's trust and to the hold. Returns whether the member has a claim that
/// must be released.
pub(crate) fn answered(asked: &Asked, sent: Sent, received: &Received) -> bool {
    let hold = &asked.hold;
    let Place { node, name, .. } = hold.layout.place(asked.member);
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
