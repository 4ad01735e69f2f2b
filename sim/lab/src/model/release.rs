//! Releases of claims.

use std::rc::Rc;

use quorlock::OwnerId;
use quorlock::runtime::Time;
use quorlock::transport::{Inspect, ReleaseReply, Reply, Request};
use quorlock_core::message::{Found, Mode};

use super::client::LockClient;
use super::layout::Layout;
use super::requests::{ConcurrentRequests, MemberReply};
use quorlock_sim_plan::variant::Flaw;

/// A release. It states to members that the owner's count is now `left`.
pub(super) struct Release {
    pub(super) client: Rc<LockClient>,
    pub(super) layout: Rc<Layout>,
    pub(super) owner: OwnerId,
    pub(super) left: u32,
}

/// The members that answered a release, and those that had the claim.
#[derive(Default)]
pub(super) struct MemberStatements {
    pub(super) ours: Vec<usize>,
    pub(super) answered: Vec<usize>,
}

impl Release {
    /// Sends the release to these members, and waits for each answer until the transport gives up.
    pub(super) async fn tell(&self, members: impl IntoIterator<Item = usize>) -> MemberStatements {
        let mut asking = ConcurrentRequests::new(&self.client);
        for index in members {
            self.ask(&mut asking, index);
        }
        let mut said = MemberStatements::default();
        while !asking.is_empty() {
            let Some(answer) = asking.next(Time::NEVER).await else {
                break;
            };
            if self.is_ours_after_get(&answer) {
                self.ask_release(&mut asking, answer.member);
            }
            if let Ok(Reply::Release(reply)) = answer.reply {
                said.answered.push(answer.member);
                if reply != ReleaseReply::NotYours {
                    said.ours.push(answer.member);
                }
            }
        }
        said
    }

    /// Sends the release to one member after another, until one has no claim. Returns that member.
    pub(super) async fn tell_until_lost(&self) -> Option<usize> {
        for member in 0..self.layout.members.len() {
            let said = self.tell([member]).await;
            if said.answered.contains(&member) && !said.ours.contains(&member) {
                return Some(member);
            }
        }
        None
    }

    fn ask(&self, asking: &mut ConcurrentRequests<'_>, index: usize) {
        if !self.client.has(Flaw::GetBeforeDelete) {
            self.ask_release(asking, index);
        } else if let Some(member) = self.layout.members.get(index) {
            let name = member.name.clone();
            asking.ask(index, member, Request::Inspect(Inspect::of(name)));
        }
    }

    fn ask_release(&self, asking: &mut ConcurrentRequests<'_>, index: usize) {
        if let Some(member) = self.layout.members.get(index) {
            let request = Request::Release(quorlock::transport::Release {
                name: member.name.clone(),
                mode: Mode::Plain,
                owner: self.owner,
                count: self.left,
            });
            asking.ask(index, member, request);
        }
    }

    /// Returns whether the answer to a `GET` shows that the claim is the owner's.
    fn is_ours_after_get(&self, answer: &MemberReply) -> bool {
        let Ok(Reply::Inspect(reply)) = &answer.reply else {
            return false;
        };
        matches!(&reply.found, Found::Plain { owner, .. } if *owner == self.owner.to_string())
    }
}
