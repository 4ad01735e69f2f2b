//! A bound on the keeper's requests in flight per node.
//!
//! A node executes one request after another. If everything is sent at once, the last answers come after the callers'
//! time-out. The callers discard them and send again, while the node still executes the earlier requests. With
//! 120,000 holds of one client on one server, all renewals then timed out, and all holds were lost. So requests wait
//! here until earlier ones are answered, and their lease counts from when they are sent.

use std::collections::VecDeque;
use std::sync::Arc;

use quorlock_core::quorum::MemberId;

use crate::shared::hold::Hold;
use crate::shared::layout::Node;

/// The largest number of claims in flight to a node at which another one is renewed or re-acquired. A server renews
/// that many within a few milliseconds. With a round trip of 100 ms it is 16,000 per second.
const MOST_ASKED: usize = 1_600;

/// The largest number of claims in flight at which another one is released. It is below [`MOST_ASKED`], so that
/// renewals come first, and far below the number of requests that a connection accepts at once.
const MOST_RELEASED: usize = 1_024;

/// The requests in flight to each node, and those that wait. A lane exists only while a node has requests in flight.
#[derive(Default)]
pub(super) struct Lanes(Vec<Lane>);

struct Lane {
    node: Node,
    /// The number of claims in requests that have not been answered.
    under_way: usize,
    /// Members whose renewals are due.
    asks: VecDeque<(Arc<Hold>, MemberId)>,
    /// Orphans whose releases are due.
    releases: VecDeque<u64>,
    /// Members whose count must be lowered, because a guard was dropped and others are left.
    lowerings: VecDeque<(Arc<Hold>, MemberId)>,
}

/// A request that may be sent now.
pub(super) enum Next {
    Ask(Arc<Hold>, MemberId),
    Release(u64),
    Lower(Arc<Hold>, MemberId),
}

impl Lanes {
    /// Queues a renewal or re-acquire. Returns it if it may be sent now, and counts it.
    pub(super) fn ask(&mut self, node: &Node, hold: Arc<Hold>, member: MemberId) -> Option<Next> {
        let lane = self.lane(node);
        if lane.under_way < MOST_ASKED && lane.asks.is_empty() {
            lane.under_way += 1;
            return Some(Next::Ask(hold, member));
        }
        lane.asks.push_back((hold, member));
        None
    }

    /// Queues the release of an orphan. Returns it if it may be sent now, and counts it.
    pub(super) fn release(&mut self, node: &Node, orphan: u64) -> Option<Next> {
        let lane = self.lane(node);
        if lane.under_way < MOST_RELEASED && lane.releases.is_empty() {
            lane.under_way += 1;
            return Some(Next::Release(orphan));
        }
        lane.releases.push_back(orphan);
        None
    }

    /// Queues a lower count for a member of a hold. Returns it if it may be sent now, and counts it.
    pub(super) fn lower(&mut self, node: &Node, hold: Arc<Hold>, member: MemberId) -> Option<Next> {
        let lane = self.lane(node);
        if lane.under_way < MOST_RELEASED && lane.lowerings.is_empty() {
            lane.under_way += 1;
            return Some(Next::Lower(hold, member));
        }
        lane.lowerings.push_back((hold, member));
        None
    }

    /// Counts a release that another part of the client has sent.
    pub(super) fn sent(&mut self, node: &Node) {
        self.lane(node).under_way += 1;
    }

    /// Subtracts claims whose requests have ended.
    pub(super) fn ended(&mut self, node: &Node, claims: usize) {
        let lane = self.lane(node);
        lane.under_way = lane.under_way.saturating_sub(claims);
    }

    /// Removes and returns the next request that may be sent, and counts it.
    pub(super) fn next(&mut self, node: &Node) -> Option<Next> {
        let index = self.find(node)?;
        let lane = self.0.get_mut(index)?;
        let next = if lane.under_way < MOST_ASKED
            && let Some((hold, member)) = lane.asks.pop_front()
        {
            Some(Next::Ask(hold, member))
        } else if lane.under_way < MOST_RELEASED {
            // Releases first: an unreleased name blocks other owners, and a count that is too large does not.
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
            // Remove the lane, because it may refer to the node of a dropped client.
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
