//! A bound on the keeper's requests in flight per server.
//!
//! A server executes one request after another. If everything is sent at once, the last answers come after the callers'
//! time-out. The callers discard them and send again, while the server still executes the earlier requests. With
//! 120,000 holds of one client on one server, all renewals then timed out, and all holds were lost. So requests wait
//! here until earlier ones are answered, and their lease counts from when they are sent.
//!
//! A node that is divided has a window for each of its servers. Suppose it had one for all: a server with 1,700 holds is
//! silent, and the requests to it fill the window until they time out. The renewals for the other servers wait behind
//! them, and healthy holds are lost.

use std::collections::VecDeque;
use std::sync::Arc;

use quorlock_core::name::Name;
use quorlock_core::quorum::MemberId;
use quorlock_core::slot::{ServerNumber, Slot};

use crate::shared::hold::Hold;
use crate::shared::layout::{Node, Place};

/// The largest number of claims in flight to a server at which another one is renewed or re-acquired. A server renews
/// that many within a few milliseconds. With a round trip of 100 ms it is 16,000 per second.
const MOST_ASKED: usize = 1_600;

/// The largest number of claims in flight at which another one is released. It is below [`MOST_ASKED`], so that
/// renewals come first, and far below the number of requests that a connection accepts at once.
const MOST_RELEASED: usize = 1_024;

/// A server of a node, which executes the requests about some of its names.
///
/// A slot may move to another server. A request stays in the window in which it was counted until it ends.
#[derive(Clone)]
pub(super) struct Executor {
    node: Node,
    number: ServerNumber,
}

impl Executor {
    /// Returns the server that executes requests about a name now, as far as it is known.
    pub(super) fn of(node: &Node, name: &Name) -> Self {
        // A node that cannot store the name refuses requests about it by itself.
        let slot = node.slot(name).unwrap_or(Slot::WHOLE);
        Executor {
            node: node.clone(),
            number: node.server(slot),
        }
    }

    /// Returns the server that executes requests about the name of a member now.
    pub(super) fn at(place: &Place) -> Self {
        Executor::of(&place.node, &place.name)
    }

    pub(super) fn node(&self) -> &Node {
        &self.node
    }
}

impl PartialEq for Executor {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number && Arc::ptr_eq(&self.node, &other.node)
    }
}

/// The requests in flight to each server, and those that wait. A window exists only while a server has requests in
/// flight.
#[derive(Default)]
pub(super) struct Windows(Vec<Window>);

struct Window {
    server: Executor,
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

impl Windows {
    /// Queues a renewal or re-acquire. Returns it if it may be sent now, and counts it.
    pub(super) fn ask(
        &mut self,
        server: &Executor,
        hold: Arc<Hold>,
        member: MemberId,
    ) -> Option<Next> {
        let window = self.window(server);
        if window.under_way < MOST_ASKED && window.asks.is_empty() {
            window.under_way += 1;
            return Some(Next::Ask(hold, member));
        }
        window.asks.push_back((hold, member));
        None
    }

    /// Queues the release of an orphan. Returns it if it may be sent now, and counts it.
    pub(super) fn release(&mut self, server: &Executor, orphan: u64) -> Option<Next> {
        let window = self.window(server);
        if window.under_way < MOST_RELEASED && window.releases.is_empty() {
            window.under_way += 1;
            return Some(Next::Release(orphan));
        }
        window.releases.push_back(orphan);
        None
    }

    /// Queues a lower count for a member of a hold. Returns it if it may be sent now, and counts it.
    pub(super) fn lower(
        &mut self,
        server: &Executor,
        hold: Arc<Hold>,
        member: MemberId,
    ) -> Option<Next> {
        let window = self.window(server);
        if window.under_way < MOST_RELEASED && window.lowerings.is_empty() {
            window.under_way += 1;
            return Some(Next::Lower(hold, member));
        }
        window.lowerings.push_back((hold, member));
        None
    }

    /// Counts a release that another part of the client has sent.
    pub(super) fn sent(&mut self, server: &Executor) {
        self.window(server).under_way += 1;
    }

    /// Subtracts claims whose requests have ended.
    pub(super) fn ended(&mut self, server: &Executor, claims: usize) {
        let window = self.window(server);
        window.under_way = window.under_way.saturating_sub(claims);
    }

    /// Removes and returns the next request that may be sent, and counts it.
    pub(super) fn next(&mut self, server: &Executor) -> Option<Next> {
        let index = self.find(server)?;
        let window = self.0.get_mut(index)?;
        let next = if window.under_way < MOST_ASKED
            && let Some((hold, member)) = window.asks.pop_front()
        {
            Some(Next::Ask(hold, member))
        } else if window.under_way < MOST_RELEASED {
            // Releases first: an unreleased name blocks other owners, and a count that is too large does not.
            let release = window.releases.pop_front().map(Next::Release);
            release.or_else(|| {
                let (hold, member) = window.lowerings.pop_front()?;
                Some(Next::Lower(hold, member))
            })
        } else {
            None
        };
        if next.is_some() {
            window.under_way += 1;
        } else if window.under_way == 0 {
            // Remove the window, because it may refer to the node of a dropped client.
            self.0.swap_remove(index);
        }
        next
    }

    fn find(&self, server: &Executor) -> Option<usize> {
        self.0.iter().position(|window| window.server == *server)
    }

    fn window(&mut self, server: &Executor) -> &mut Window {
        let index = self.find(server).unwrap_or_else(|| {
            self.0.push(Window {
                server: server.clone(),
                under_way: 0,
                asks: VecDeque::new(),
                releases: VecDeque::new(),
                lowerings: VecDeque::new(),
            });
            self.0.len() - 1
        });
        self.0.get_mut(index).expect("BUG: a window that was found")
    }
}
