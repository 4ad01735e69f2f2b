//! States the present count of holds to members: a lower one after a guard has ended, or the same to find out whether a claim is
//! there.

use std::sync::Arc;

use quorlock_core::message::{ReleaseReply, Reply};
use quorlock_core::quorum::MemberId;
use quorlock_core::renewal::Status;
use quorlock_core::time::Time;
use quorlock_core::transport::{Cause, TransportError};

use super::batches::tell_of_gone;
use super::task::KeeperTask;
use super::under_way::Of;
use super::windows::Executor;
use crate::shared::calls::Received;
use crate::shared::hold::{Asked, Hold, requests};
use crate::shared::trust::Purpose;

impl KeeperTask {
    /// Sends the current count of a hold to a member. The caller must have counted the request in the server's window.
    pub(super) fn lower(&mut self, server: Executor, hold: Arc<Hold>, member: MemberId, now: Time) {
        let count = hold.count();
        if count == 0 || hold.status(now) != Status::Held {
            // The hold was released or lost while this waited in the window.
            self.windows.ended(&server, 1);
            return;
        }
        let request = requests::release(&hold, member, count);
        let call = server.node().call(request);
        let asked = Asked {
            asking: Purpose::Missing,
            lease: hold.lease(),
            sent: now,
            member,
            hold,
        };
        self.call(Of::Lowering(server, asked), call);
    }

    /// Handles the answer of a member to a count.
    pub(super) fn lowered(&mut self, server: &Executor, asked: &Asked, received: &Received) {
        let Received { result, at: now } = received;
        let now = *now;
        if is_gone(result) {
            tell_of_gone(&asked.hold, asked.member, now);
            asked.hold.not_yours(now, asked.member, asked.sent);
            self.after(&asked.hold, now);
        } else if result.is_err() {
            // The server may not tell of the loss again.
            asked.hold.watch_again(asked.member, now);
            self.keeper.reschedule(&asked.hold);
        }
        self.ended(server, 1, now);
    }
}

/// Whether the answer to a lower count says that the claim is not there.
fn is_gone(result: &Result<Reply, TransportError>) -> bool {
    match result {
        Ok(reply) => *reply == Reply::Release(ReleaseReply::NotYours),
        Err(error) => error.cause == Cause::WrongType,
    }
}
