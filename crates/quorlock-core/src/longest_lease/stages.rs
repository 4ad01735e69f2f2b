//! The three stages by which a longer lease is introduced.

use std::time::Duration;

use super::{LongestLease, SHORTEST_PAUSE, Seen};
use crate::lease::drift;
use crate::marker::{ConfirmedMarker, Figures};
use crate::time::Time;

/// A request by which a client continues a raise.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    /// Look at the node: what it has shown may be older than the marker of another node.
    Look,
    /// Write these figures into this marker.
    Restate(ConfirmedMarker, Figures),
}

/// How long a client waits before it tries a step again, at first: a step whose request was lost delays a raise by no
/// more. The pause doubles up to that of probes, so that a node that is down is not asked more often than by these.
const NEXT_TRY: Duration = Duration::from_secs(1);

/// What the nodes have to state next, and from when on.
struct Stage {
    /// The marker of every node must have been shown by a request that was sent at this time or later.
    seen_after: Time,
    begins: Time,
    figures: fn(before: Figures, longest_millis: u64) -> Figures,
    wanted_millis: u64,
}

impl LongestLease {
    /// Returns whether the client wants longer leases than a node grants.
    #[must_use]
    pub fn is_raising(&self) -> bool {
        let mut nodes = self.nodes.iter().flatten();
        self.raises && nodes.any(|seen| seen.figures.granted_millis < self.own_millis)
    }

    /// The longest lease that the deployment shall have: the client's own, or what others have announced already. What a
    /// node is only being watched for does not count: a client with a wrong setting may have written it, and be gone.
    fn wanted_millis(&self, known: Figures) -> u64 {
        self.own_millis.max(known.watched_millis)
    }

    /// Returns when the next step on any node is due.
    #[must_use]
    pub fn next_timeout(&self) -> Time {
        let nodes = 0..self.nodes.len();
        let due = nodes.map(|node| self.poll_timeout(node)).min();
        due.unwrap_or(Time::NEVER)
    }

    /// Returns when the next step on a node is due.
    #[must_use]
    pub fn poll_timeout(&self, node: usize) -> Time {
        let due = self.stage().and_then(|stage| self.step(&stage, node));
        let next_try = self.next_tries.get(node);
        match (due, next_try) {
            (Some((due, _)), Some((next_try, _))) => due.max(*next_try),
            _ => Time::NEVER,
        }
    }

    /// Returns the step on a node that is due.
    pub fn next_step(&mut self, now: Time, node: usize) -> Option<Step> {
        if now < self.poll_timeout(node) {
            return None;
        }
        let (_, step) = self.step(&self.stage()?, node)?;
        let longest_pause = (self.probed_within() / 2).max(NEXT_TRY);
        if let Some((next_try, pause)) = self.next_tries.get_mut(node) {
            *pause = (2 * *pause).clamp(NEXT_TRY, longest_pause);
            *next_try = now + *pause;
        }
        Some(step)
    }

    /// Returns when nodes begin to grant longer leases, if that is known.
    #[must_use]
    pub fn granted_from(&self) -> Option<Time> {
        let stage = self.stage()?;
        (Time::ZERO < stage.begins).then_some(stage.begins)
    }

    /// Returns the present stage, if the client wants longer leases than the nodes grant, and knows the confirmed
    /// markers of all of them.
    fn stage(&self) -> Option<Stage> {
        let known = self.known.filter(|_| self.is_raising())?;
        let nodes: Option<Vec<Seen>> = self.nodes.iter().copied().collect();
        let nodes = nodes.filter(|nodes| are_apart(nodes))?;
        let granted = nodes.iter().map(|seen| seen.figures.granted_millis);
        let longest = self.wanted_millis(known);
        let former = granted.filter(|millis| *millis < longest).max()?;
        let all = |is: fn(Figures) -> u64| nodes.iter().all(|seen| longest <= is(seen.figures));
        if !all(|figures| figures.watched_millis) {
            // A node whose watch was shorter than what others need is watched again, not announced: Trust decides.
            let is_short = |seen: &Seen| seen.figures.watched_millis < known.needed_millis;
            if nodes.iter().any(is_short) {
                return None;
            }
            // Suppose the client used what it knew before. It sees 60 s on node 2. Then another client completes a
            // raise, A claims 1 and 2 for 120 s, and node 1 restarts empty and is watched for 60 s by a client that
            // knows no better. If this client announced 120 s on node 1 now, its vote would count. A look at 2 that is
            // sent after node 1 has shown its new marker shows that 120 s are granted.
            let seen_after = nodes.iter().map(|seen| seen.since).max()?;
            return Some(Stage {
                seen_after,
                begins: Time::ZERO,
                wanted_millis: longest,
                figures: |before, longest_millis| Figures {
                    watched_millis: longest_millis,
                    ..before
                },
            });
        }
        if !all(|figures| figures.needed_millis) {
            return Some(Stage {
                seen_after: Time::ZERO,
                begins: Time::ZERO,
                wanted_millis: longest,
                figures: |before, longest_millis| Figures {
                    needed_millis: longest_millis,
                    watched_millis: longest_millis,
                    ..before
                },
            });
        }
        // Every node stated this at the same time: at `since` it had shown it, and a request that was sent later found
        // the same watch. Whatever a node loses later is watched for as long, or is not counted by any client that has
        // heard another node since.
        let since = nodes.iter().map(|seen| seen.needed_since).max()?;
        Some(Stage {
            seen_after: since,
            begins: since + wait(former),
            wanted_millis: longest,
            figures: |_, longest_millis| Figures::same(longest_millis),
        })
    }

    /// Returns what a stage has left to do on a node, and from when on.
    fn step(&self, stage: &Stage, node: usize) -> Option<(Time, Step)> {
        let seen = (*self.nodes.get(node)?)?;
        let mut nodes = self.nodes.iter().flatten();
        if nodes.any(|seen| seen.sent < stage.seen_after) {
            let is_old = seen.sent < stage.seen_after;
            return is_old.then_some((stage.begins, Step::Look));
        }
        let figures = seen
            .figures
            .larger((stage.figures)(seen.figures, stage.wanted_millis));
        let marker = ConfirmedMarker {
            process: seen.process,
            nonce: seen.nonce,
            figures: seen.figures,
        };
        (figures != seen.figures).then_some((stage.begins, Step::Restate(marker, figures)))
    }
}

/// Returns how long the announcement must have been shown on all nodes: within this time each client has probed each of
/// them at least once.
fn wait(granted_millis: u64) -> Duration {
    let granted = Duration::from_millis(granted_millis).max(2 * SHORTEST_PAUSE);
    granted + drift(granted)
}

/// Whether each node is another process.
fn are_apart(nodes: &[Seen]) -> bool {
    let mut processes: Vec<_> = nodes.iter().map(|seen| seen.process).collect();
    processes.sort_unstable();
    processes.windows(2).all(|pair| match pair {
        [one, next] => one != next,
        _ => true,
    })
}
