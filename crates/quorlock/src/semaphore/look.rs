//! Which permits are free.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use quorlock_core::message::{Found, Inspect, InspectReply, Reply, Request};
use quorlock_core::time::Time;

use crate::operation::attempt::Waits;
use crate::shared::calls::Calls;
use crate::shared::client::Client;
use crate::shared::layout::Layout;

/// What the nodes show.
#[derive(Default)]
pub(super) struct Seen {
    /// The permits that may be free, in random order: first those that are free on enough nodes.
    pub(super) free: Vec<usize>,
    /// The permits about which too few nodes answered, in random order: a user may be allowed to lock and not to look.
    pub(super) unknown: Vec<usize>,
    /// Whether a node shows a holder.
    pub(super) has_holder: bool,
}

/// Looks at all permits, which are asked for at once.
///
/// The answers describe the past, so that only a try shows whether a permit is free. But one that is left out was held on so many
/// nodes that a try would have been refused.
pub(super) async fn look(client: &Client, permits: &[Arc<Layout>], waits: Waits) -> Seen {
    let (mut look, mut calls) = PermitLook::ask(permits);
    let config = &client.config;
    let deadline = client.now() + config.member_timeout(config.watchdog_lease);
    let deadline = deadline.min(waits.until.unwrap_or(Time::NEVER));
    let mut timer = client.runtime.timer();
    poll_fn(|cx| {
        calls.poll(cx, &*client.runtime, |permit, received| {
            if let Ok(Reply::Inspect(reply)) = received.result {
                look.add(permit, &reply);
            }
        });
        match calls.is_empty() || look.is_over() {
            true => Poll::Ready(()),
            false => timer.poll_until(cx, deadline),
        }
    })
    .await;
    look.seen(|| client.runtime.random())
}

/// The answers of nodes.
struct PermitLook {
    votes: Vec<Votes>,
    has_holder: bool,
    /// How many nodes a lock needs.
    needed: usize,
    /// How many nodes it does without.
    spare: usize,
}

/// The number of nodes on which a permit is free, and on which it is not.
#[derive(Clone, Copy, Default)]
struct Votes {
    free: usize,
    held: usize,
}

impl PermitLook {
    /// Sends the requests, which a connection writes together.
    fn ask(permits: &[Arc<Layout>]) -> (Self, Calls<usize>) {
        let mut calls = Calls::of(permits.len());
        let (mut nodes, mut needed) = (0, 0);
        for (permit, layout) in permits.iter().enumerate() {
            for part in &layout.parts {
                (nodes, needed) = (part.nodes.len(), part.threshold.needed());
                for node in part.nodes.iter() {
                    let name = part.name.clone();
                    calls.push(permit, node.call(Request::Inspect(Inspect::of(name))));
                }
            }
        }
        let look = PermitLook {
            votes: vec![Votes::default(); permits.len()],
            has_holder: false,
            needed,
            spare: nodes.saturating_sub(needed),
        };
        (look, calls)
    }

    fn add(&mut self, permit: usize, reply: &InspectReply) {
        let Some(votes) = self.votes.get_mut(permit) else {
            return;
        };
        match reply.found {
            Found::Nothing if reply.waiting == 0 => votes.free += 1,
            // It will never be free, so that nothing is said about a wait.
            Found::NotALock => votes.held += 1,
            _ => {
                votes.held += 1;
                self.has_holder = true;
            }
        }
    }

    /// Whether the answers suffice. A silent node is not waited for if a permit is free on enough others.
    fn is_over(&self) -> bool {
        let mut all = self.votes.iter();
        let is_answered = all.all(|votes| self.needed <= votes.free + votes.held);
        let is_free = |votes: &Votes| self.needed <= votes.free;
        is_answered
            && (self.votes.iter().any(is_free)
                || self.votes.iter().all(|votes| self.spare < votes.held))
    }

    fn seen(&self, random: impl Fn() -> u64) -> Seen {
        // A permit that more than the spare nodes show as held cannot be granted by enough of the others.
        let all = self.votes.iter().enumerate();
        let some = all.filter(|(_, votes)| votes.held <= self.spare);
        let mut some: Vec<_> = some
            .map(|(permit, votes)| (votes.free < self.needed, random(), votes.free, permit))
            .collect();
        some.sort_unstable();
        let permits = some.into_iter().map(|(.., free, permit)| (free, permit));
        let (free, unknown): (Vec<_>, Vec<_>) = permits.partition(|(free, _)| 0 < *free);
        let permits =
            |list: Vec<(usize, usize)>| list.into_iter().map(|(_, permit)| permit).collect();
        Seen {
            free: permits(free),
            unknown: permits(unknown),
            has_holder: self.has_holder,
        }
    }
}
