//! The election of a primary: when sentinels vote, for which leader, and which server it promotes.

use super::failover::{FailoverState, Mandate, UnannouncedPromotion};
use super::sentinel::Sentinel;
use super::view::View;
use super::{Deed, ElectionGroup};
use crate::world::id::NodeId;
use crate::world::node::Role;

impl ElectionGroup {
    pub(super) fn elect(&mut self, now: u64, view: &impl View) -> Option<Deed> {
        match self.stage {
            FailoverState::Calm => {
                let (leader, primary) = self.candidate(now, view)?;
                self.stage = FailoverState::Electing {
                    leader,
                    primary,
                    mandate: Mandate::Vote,
                    ends: now + self.rules.election.as_nanos(),
                };
                None
            }
            FailoverState::Electing { ends, .. } if now < ends => None,
            FailoverState::Electing {
                leader,
                primary,
                mandate,
                ..
            } => {
                self.stage = FailoverState::Calm;
                let voters = self.voters(leader, view);
                let has_majority = usize::from(self.rules.majority()) <= voters;
                let may = view.is_awake(leader) && (has_majority || mandate == Mandate::Order);
                may.then_some(Deed::Promote { leader, primary })
            }
        }
    }

    /// Returns how many sentinels reach this one, including itself.
    fn voters(&self, leader: NodeId, view: &impl View) -> usize {
        let hear = |sentinel: &&Sentinel| {
            view.is_awake(sentinel.id) && !self.is_apart(leader, sentinel.id)
        };
        self.electorate().filter(hear).count()
    }

    /// Returns the sentinel that a majority would vote for, and the primary that a quorum considers down.
    fn candidate(&self, now: u64, view: &impl View) -> Option<(NodeId, NodeId)> {
        let awake = self.electorate().filter(|s| view.is_awake(s.id));
        awake.into_iter().find_map(|leader| {
            let agrees = |other: &&Sentinel| {
                other.names == leader.names
                    && view.is_awake(other.id)
                    && !self.is_apart(leader.id, other.id)
                    && self.takes_for_down(other, leader.names, now)
            };
            let agree = self.electorate().filter(agrees).count();
            // A sentinel that has missed a failover gets no vote from those that know of it. Otherwise, a moment after
            // the promotion, it would depose the new primary, which it does not know, because the old one is down.
            let knows_more = |other: &Sentinel| {
                leader.epoch < other.epoch
                    && view.is_awake(other.id)
                    && !self.is_apart(leader.id, other.id)
            };
            let is_up_to_date = !self.sentinels.iter().any(knows_more);
            let is_elected = is_up_to_date
                && self.takes_for_down(leader, leader.names, now)
                && usize::from(self.rules.quorum()) <= agree
                && usize::from(self.rules.majority()) <= self.voters(leader.id, view);
            is_elected.then_some((leader.id, leader.names))
        })
    }

    pub(super) fn takes_for_down(&self, sentinel: &Sentinel, server: NodeId, now: u64) -> bool {
        let mut heard = self.servers.iter().zip(&sentinel.heard);
        let heard = heard.find(|(known, _)| **known == server);
        heard.is_some_and(|(_, heard)| heard + self.rules.down_after.as_nanos() <= now)
    }

    /// Returns the servers that a sentinel could promote in place of the primary.
    pub(crate) fn candidates(
        &self,
        leader: NodeId,
        primary: NodeId,
        view: &impl View,
    ) -> Vec<NodeId> {
        let servers = self.servers.iter().copied();
        let is_one = |server: &NodeId| {
            *server != primary
                && view.is_awake(*server)
                && matches!(view.role(*server), Role::ReplicaOf(_))
                && !self.is_apart(leader, *server)
        };
        servers.filter(is_one).collect()
    }

    /// Records that a sentinel has promoted a server. Returns the epoch of the new configuration.
    pub fn promoted(&mut self, leader: NodeId, primary: NodeId, now: u64) -> u64 {
        let leader = self.herald(leader, primary);
        let last = self.sentinels.iter().map(|sentinel| sentinel.epoch).max();
        let epoch = last.unwrap_or(0) + 1;
        for sentinel in self.sentinels.iter_mut().filter(|s| s.id == leader) {
            (sentinel.names, sentinel.epoch) = (primary, epoch);
            sentinel.heard.fill(now);
        }
        self.news = Some(UnannouncedPromotion {
            spreads: now + self.rules.gossip.as_nanos(),
            untold: Some(leader),
        });
        epoch
    }
}
