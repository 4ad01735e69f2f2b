//! Concurrent requests to several members.

use std::future::poll_fn;
use std::task::Poll;

use quorlock::runtime::{Runtime, Time};
use quorlock::transport::{Call, Reply, Request, Transport, TransportError};

use super::LockClient;
use super::member::Member;

/// Requests in flight whose answers are awaited together.
pub(super) struct ConcurrentRequests<'a> {
    client: &'a LockClient,
    calls: Vec<PendingMember>,
}

struct PendingMember {
    member: usize,
    sent: Time,
    call: Call,
}

/// A member's answer, or the failure to get one.
pub(super) struct MemberReply {
    pub(super) member: usize,
    /// When the request was sent, on the clock that deadlines are compared with.
    pub(super) sent: Time,
    pub(super) reply: Result<Reply, TransportError>,
}

impl<'a> ConcurrentRequests<'a> {
    pub(super) fn new(client: &'a LockClient) -> Self {
        ConcurrentRequests {
            client,
            calls: Vec::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    pub(super) fn ask(&mut self, index: usize, member: &Member, request: Request) {
        let sent = self.client.clock();
        let call = member.node.call(request);
        self.calls.push(PendingMember {
            member: index,
            sent,
            call,
        });
    }

    /// Returns the next answer, or `None` when the monotonic clock has reached `until`.
    pub(super) async fn next(&mut self, until: Time) -> Option<MemberReply> {
        let mut timer = self.client.runtime().timer();
        poll_fn(|cx| {
            for index in 0..self.calls.len() {
                let Some(asked) = self.calls.get_mut(index) else {
                    break;
                };
                if let Poll::Ready(reply) = asked.call.as_mut().poll(cx) {
                    let asked = self.calls.remove(index);
                    return Poll::Ready(Some(MemberReply {
                        member: asked.member,
                        sent: asked.sent,
                        reply,
                    }));
                }
            }
            timer.poll_until(cx, until).map(|()| None)
        })
        .await
    }
}
