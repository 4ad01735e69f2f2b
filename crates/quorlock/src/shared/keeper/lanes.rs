//! How much the keeper asks of a node at once.
//!
//! A node does one thing after the other. Asked for everything at once, it answers the last of it later than callers
//! wait; they throw the answer away and ask again, while the node still does what was asked before: with 120,000 holds
//! of one client on one server no renewal was answered in time any more, and all were lost. What waits here is sent when
//! what was sent before is answered, and its lease counts from then.

use std::collections::VecDeque;
use std::sync::Arc;

use quorlock_core::quorum::MemberId;

use crate::shared::hold::Hold;
use crate::shared::layout::Node;

/// How many claims of a node may be under way when one more is renewed or acquired again. A server renews so many within
/// a few milliseconds, and on a way of 100 ms there and back it is 16,000 a second.
const MOST_ASKED: usize = 1_600;

/// How many may be under way when one more is released: renewals come first. Far from the number of requests that a
/// connection takes at once.
const MOST_RELEASED: usize = 1_024;

/// What is under way to each node, and what waits to be sent there. Only nodes to which something is have a lane.
#[derive(Default)]
pub(super) struct Lanes(Vec<Lane>);

struct Lane {
    node: Node,
    /// Claims about which a request of the keeper has no answer.
    under_way: usize,
    /// Whose renewals are due.
    asks: VecDeque<(Arc<Hold>, MemberId)>,
    /// Orphans whose releases are due.
    releases: VecDeque<u64>,
    /// Holds of which a guard was dropped and others are left.
    lowerings: VecDeque<(Arc<Hold>, MemberId)>,
}

/// What may be sent now.
pub(super) enum Next {
    Ask(Arc<Hold>, MemberId),
    Release(u64),
    Lower(Arc<Hold>, MemberId),
}

impl Lanes {
    /// A member of a hold waits to be asked: `Some` when it may be now, and is counted.
    pub(super) fn ask(&mut self, node: &Node, hold: Arc<Hold>, member: MemberId) -> Option<Next> {
        let lane = self.lane(node);
        if lane.under_way < MOST_ASKED && lane.asks.is_empty() {
            lane.under_way += 1;
            return Some(Next::Ask(hold, member));
        }
        lane.asks.push_back((hold, member));
        None
    }

    /// An orphan waits to be released: `Some` when it may be now, and is counted.
    pub(super) fn release(&mut self, node: &Node, orphan: u64) -> Option<Next> {
        let lane = self.lane(node);
        if lane.under_way < MOST_RELEASED && lane.releases.is_empty() {
            lane.under_way += 1;
            return Some(Next::Release(orphan));
        }
        lane.releases.push_back(orphan);
        None
    }

    /// A hold's member must be told of a smaller count: `Some` when it may be now, and is counted.
    pub(super) fn lower(&mut self, node: &Node, hold: Arc<Hold>, member: MemberId) -> Option<Next> {
        let lane = self.lane(node);
        if lane.under_way < MOST_RELEASED && lane.lowerings.is_empty() {
            lane.under_way += 1;
            return Some(Next::Lower(hold, member));
        }
        lane.lowerings.push_back((hold, member));
        None
    }

    /// A release that another part of the client has sent.
    pub(super) fn sent(&mut self, node: &Node) {
        self.lane(node).under_way += 1;
    }

    /// Requests about so many claims have come to their end.
    pub(super) fn ended(&mut self, node: &Node, claims: usize) {
        let lane = self.lane(node);
        lane.under_way = lane.under_way.saturating_sub(claims);
    }

    /// What waits and may be sent now, which is counted.
    pub(super) fn next(&mut self, node: &Node) -> Option<Next> {
        let index = self.find(node)?;
        let lane = self.0.get_mut(index)?;
        let next = if lane.under_way < MOST_ASKED
            && let Some((hold, member)) = lane.asks.pop_front()
        {
            Some(Next::Ask(hold, member))
        } else if lane.under_way < MOST_RELEASED {
            // A name that waits for its release keeps others waiting, a count keeps none.
            let release = lane.releases.pop_front().map(Next::Release);
            release.or_else(|| {
                let (hold, member) = lane.lowerings.pop_front()?;
                Some(Next::Lower(hold, member))
            })
        } else {
            None
        };
        if next.is_some() {
            lane.under_way += 1;
        } else if lane.under_way == 0 {
            // It may be the node of a client that is gone.
            self.0.swap_remove(index);
        }
        next
    }

    fn find(&self, node: &Node) -> Option<usize> {
        self.0.iter().position(|lane| Arc::ptr_eq(&lane.node, node))
    }

    fn lane(&mut self, node: &Node) -> &mut Lane {
        let index = self.find(node).unwrap_or_else(|| {
            self.0.push(Lane {
                node: node.clone(),
                under_way: 0,
                asks: VecDeque::new(),
                releases: VecDeque::new(),
                lowerings: VecDeque::new(),
            });
            self.0.len() - 1
        });
        self.0.get_mut(index).expect("BUG: a lane that was found")
    }
}
