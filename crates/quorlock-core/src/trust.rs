//! Decides which nodes' votes count: those that were watched for the longest lease since their process started.
//!
//! A process that has just started may have forgotten claims. Every claim that it may have forgotten was requested
//! before it started. Therefore no client relies on any of them once the longest lease of all clients has passed since
//! a client first saw the new process. This time is measured on the client's own clock, from the receipt of the first
//! reply that showed the marker's nonce to the sending of the request that confirms it. Until then the node is
//! *quarantined*: it receives requests, so that it learns which owner holds a name, but its fresh grants do not count.
//!
//! A watch begins without any lock. Suppose it began with the first acquire: after a rolling restart at night, all nodes
//! would be quarantined from the first lock of the morning on, although no client relies on anything any more. So the
//! client *probes* each node: at once when it knows nothing or less than before, when the node can be reached again,
//! when the watch is over, and now and then while all is well.

use std::fmt;
use std::time::Duration;

use crate::backoff::Backoff;
use crate::longest_lease::{LongestLease, SHORTEST_PAUSE};
use crate::marker::{ConfirmedMarker, MarkerState, Nonce, Process, Shown, ShownMarker};
use crate::time::Time;

/// The trust of one client in one node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Trust {
    /// How long a process is watched: the longest lease that is known and its drift allowance.
    watch: Duration,
    /// How long a process must have been watched for its votes to count, in milliseconds.
    needed_millis: u64,
    state: State,
    /// The nonce of the watch that was trusted last. It is kept when trust is withdrawn.
    known: Option<Nonce>,
    /// When trust was last withdrawn. The reply to a request sent before this time does not restore trust.
    withdrawn: Option<Time>,
    /// When the current trust began.
    trusted_since: Time,
    /// When the next probe is due.
    due: Time,
    /// The longest pause between two probes of a trusted node.
    longest_pause: Duration,
    /// The current pause between two probes of a trusted node.
    pause: Duration,
    /// The pauses between probes that led to neither trust nor a watch.
    pauses: Backoff,
    is_probing: bool,
    /// When the node was last found to be reachable again, if it was not probed since.
    returned: Option<Time>,
    /// When the next request is sent as if the node were not trusted, so that the node checks its marker.
    look_due: Time,
}

/// How often a client makes a node check its marker, so that a marker in use does not expire.
const LOOK: Duration = Duration::from_secs(60 * 60);

/// The request that a client sends to learn about a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Probe {
    /// The check that an acquire sent now would make, without the acquire.
    Check,
    /// The confirmation of this nonce, which was watched for long enough.
    Confirm(Nonce),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum State {
    /// There is no marker to watch.
    Unmarked(Why),
    /// This nonce was first shown at this time, and nothing else since.
    Watching(Nonce, Time),
    Trusted(ConfirmedMarker),
    /// Another address of the same quorum leads to this process.
    Twin(Process),
}

/// Why the votes of a node do not count.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Why {
    /// The node has not answered yet.
    Unknown,
    /// The node has no marker: it is new, or has forgotten everything.
    Missing,
    /// The node's marker names another process: the node was restarted, or took over from another.
    Restarted,
    /// The node's marker is not confirmed: the process is being watched.
    Watched,
    /// The node's process was watched for too short a time, by a client with a shorter longest lease.
    WatchedTooShort,
    /// The node does not grant leases that are this long yet: the longest lease of the deployment is being raised.
    Raising,
    /// The node is the same server as another node of the quorum.
    SameServer,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::Unknown => "it has not answered yet",
            Why::Missing => "it is new, or has forgotten everything",
            Why::Restarted => "it was restarted, or took over from another",
            Why::Watched => {
                "it is watched for one longest lease, because it is new or was restarted"
            }
            Why::WatchedTooShort => {
                "it was restarted, and watched by a client with a shorter longest_lease: it is watched again"
            }
            Why::Raising => {
                "the lease is longer than it grants: shorten it, or set longest_lease, which is granted when every node was up for one former longest_lease"
            }
            Why::SameServer => {
                "it is the same server as another node: give one address of it, or move the slot of a shard to another primary"
            }
        })
    }
}

/// Whether the vote in a reply counts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Counts {
    /// The vote counts.
    Yes,
    /// The vote does not count, because the node is quarantined.
    No,
}

impl Trust {
    /// Returns the trust in a node that has not been contacted.
    #[must_use]
    pub fn new(longest: &LongestLease) -> Self {
        let watch = longest.watch();
        let longest_pause = pause_within(longest.probed_within());
        Trust {
            watch,
            needed_millis: longest.needed_millis(),
            state: State::Unmarked(Why::Unknown),
            known: None,
            withdrawn: None,
            trusted_since: Time::ZERO,
            due: Time::ZERO,
            longest_pause,
            pause: longest_pause,
            pauses: Backoff::new((watch / 60).max(Duration::from_millis(1)), longest_pause),
            is_probing: false,
            returned: None,
            look_due: Time::ZERO,
        }
    }

    /// Handles what the client knows now about the longest lease. Call it before [`Trust::handle_shown`] of any node.
    pub fn handle_longest(&mut self, now: Time, longest: &LongestLease) {
        self.needed_millis = longest.needed_millis();
        if self.watch != longest.watch() {
            self.watch = longest.watch();
            if let State::Watching(_, since) = self.state {
                self.due = since + self.watch;
            }
        }
        let longest_pause = pause_within(longest.probed_within());
        if longest_pause < self.longest_pause {
            self.pause = self.pause.min(longest_pause);
            self.due = self.due.min(now + self.pause);
        }
        self.longest_pause = longest_pause;
    }

    /// Handles what the reply to a request sent at `sent` showed.
    ///
    /// Any reply may withdraw trust. Only a request that was sent after the last withdrawal restores it: the state that
    /// an earlier one shows may be older than the state that withdrew it.
    pub fn handle_shown(&mut self, now: Time, sent: Time, shown: Shown) -> Counts {
        match shown.marker {
            // The next probe marks the node anew.
            ShownMarker::Own(_, _, figures) if figures.watched_millis < self.needed_millis => {
                self.unmark(now, Why::WatchedTooShort);
            }
            ShownMarker::Own(nonce, MarkerState::Confirmed, figures) => {
                if self.is_twin(shown.process) {
                    return Counts::No;
                }
                let is_same = self.is_trusted(shown.process, nonce);
                // A's request reaches the old process, and its reply is delayed. Meanwhile the node restarts, and
                // another reply withdraws trust. The late reply shows a process that no longer exists, and must not
                // restore trust.
                if !is_same && self.withdrawn.is_some_and(|at| sent < at) {
                    return Counts::No;
                }
                if !is_same {
                    self.trusted_since = now;
                }
                self.state = State::Trusted(ConfirmedMarker {
                    process: shown.process,
                    nonce,
                    figures,
                });
                self.known = Some(nonce);
                // An acquire shows as much as a probe, so a client in use sends no probes.
                self.due = now + self.pause;
                return Counts::Yes;
            }
            // At the end of a watch, A sends an acquire, which the node executes, and then the confirmation, whose reply overtakes
            // that of the acquire. The late reply shows the state before the confirmation, and must not begin another watch. The
            // claim in it does not count: the node may have granted it before the end of the watch.
            ShownMarker::Own(nonce, MarkerState::Observing, _)
                if self.is_trusted(shown.process, nonce) && sent < self.trusted_since =>
            {
                return Counts::No;
            }
            ShownMarker::Own(nonce, MarkerState::Observing, _) => {
                // The watch begins at the receipt of the first reply with this nonce, not when its request was sent: in
                // between the previous process may have granted claims that this one has forgotten.
                if !matches!(self.state, State::Watching(watched, _) if watched == nonce) {
                    self.state = State::Watching(nonce, now);
                    self.due = now + self.watch;
                }
            }
            ShownMarker::Missing => self.unmark(now, Why::Missing),
            ShownMarker::Anothers => self.unmark(now, Why::Restarted),
        }
        self.withdrawn = Some(now);
        Counts::No
    }

    /// Forgets what was known of the node. The next probe writes a marker, unless an acquire does so first.
    fn unmark(&mut self, now: Time, why: Why) {
        if !matches!(self.state, State::Unmarked(_)) {
            self.due = now;
        }
        self.state = State::Unmarked(why);
    }

    /// Records that another address of the same quorum shows the same process. One of the two must not count, or one
    /// server would have two votes.
    pub fn handle_twin(&mut self, now: Time, process: Process) {
        self.state = State::Twin(process);
        self.withdrawn = Some(now);
        self.due = now + self.pause;
    }

    /// Records that no other address leads to this process any more. If one did, the votes of the process count again
    /// from its next reply.
    ///
    /// For example, two shards A and B of one cluster have their slots on one primary, and B does not count. Then A's
    /// slot moves to another primary.
    pub fn handle_single(&mut self, now: Time, process: Process) {
        if self.is_twin(process) {
            self.unmark(now, Why::Unknown);
        }
    }

    /// Records that the node can be reached again. It may be another process than before, so a probe is due.
    pub fn handle_return(&mut self, now: Time) {
        self.returned = Some(now);
    }

    /// Returns whether another address of the quorum has led to this process.
    #[must_use]
    pub fn is_twin(&self, process: Process) -> bool {
        self.state == State::Twin(process)
    }

    /// Returns whether requests should write a marker where there is none.
    #[must_use]
    pub fn wants_marker(&self) -> bool {
        !matches!(self.state, State::Trusted(..))
    }

    /// Returns whether requests should replace the node's marker, because the process was watched for too short a time.
    #[must_use]
    pub fn wants_new_marker(&self) -> bool {
        self.state == State::Unmarked(Why::WatchedTooShort)
    }

    /// Returns the marker that a request sent now states as trusted. The first request of every hour states none, so
    /// that the node checks its marker.
    pub fn next_trusted(&mut self, now: Time) -> Option<ConfirmedMarker> {
        let trusted = self.trusted()?;
        if now < self.look_due {
            return Some(trusted);
        }
        self.look_due = now + LOOK;
        None
    }

    /// Returns the nonce of the watch that was trusted last, even if nothing is trusted now.
    ///
    /// Suppose the client trusts server 1, whose address now leads to server 2. Server 2 shows the marker of its own
    /// previous process, and trust is withdrawn. If the client forgot the nonce of server 1 at the same time, its next
    /// request would let server 2 inherit that marker.
    #[must_use]
    pub fn known(&self) -> Option<Nonce> {
        self.known
    }

    /// Returns the probe that is due. It then counts as under way until [`Trust::handle_end`].
    pub fn next_probe(&mut self, now: Time) -> Option<Probe> {
        if now < self.poll_timeout() {
            return None;
        }
        self.begin_probe();
        // The marker: node 1 restarts empty and has forgotten A's claim. A relies on it for at most one longest lease
        // after the restart. If B confirmed the marker earlier, node 1 would count, and its grant would give B a
        // majority with 4 and 5 while A has one with 1, 2 and 3.
        match self.state {
            State::Watching(nonce, since) if since + self.watch <= now => {
                Some(Probe::Confirm(nonce))
            }
            _ => Some(Probe::Check),
        }
    }

    /// Records that a probe is under way until [`Trust::handle_end`], whether or not it was due.
    pub fn begin_probe(&mut self) {
        self.is_probing = true;
        self.returned = None;
    }

    /// Returns whether a probe is under way.
    #[must_use]
    pub fn is_probing(&self) -> bool {
        self.is_probing
    }

    /// Handles the end of the probe of [`Trust::next_probe`]. If it was answered, the answer is passed to
    /// [`Trust::handle_shown`] first. `random` is any 64 random bits. They keep clients that were started together
    /// from probing together.
    pub fn handle_end(&mut self, now: Time, random: u64) {
        self.is_probing = false;
        self.due = match self.state {
            State::Watching(_, since) if now < since + self.watch => {
                self.pauses.reset();
                since + self.watch
            }
            State::Trusted(..) | State::Twin(_) => {
                self.pauses.reset();
                self.pause = self.longest_pause / 2 + part(self.longest_pause / 2, random);
                now + self.pause
            }
            // The node did not answer, or it answered and is not watched yet.
            State::Watching(..) | State::Unmarked(_) => {
                now + self.pauses.next(random, Duration::ZERO)
            }
        };
    }

    /// Returns when to call [`Trust::next_probe`].
    #[must_use]
    pub fn poll_timeout(&self) -> Time {
        match self.returned {
            _ if self.is_probing => Time::NEVER,
            Some(returned) => self.due.min(returned),
            None => self.due,
        }
    }

    /// Returns why the node's votes do not count, and the earliest time at which they will if that is known; `None` if
    /// they count.
    #[must_use]
    pub fn quarantine(&self) -> Option<(Why, Option<Time>)> {
        match self.state {
            State::Trusted(..) => None,
            State::Unmarked(why) => Some((why, None)),
            State::Watching(_, since) => Some((Why::Watched, Some(since + self.watch))),
            State::Twin(_) => Some((Why::SameServer, None)),
        }
    }

    /// Returns the marker that is trusted. Another process or nonce than before means that it is another process, or
    /// that the node was quarantined in between.
    #[must_use]
    pub fn trusted(&self) -> Option<ConfirmedMarker> {
        match self.state {
            State::Trusted(marker) => Some(marker),
            _ => None,
        }
    }

    fn is_trusted(&self, process: Process, nonce: Nonce) -> bool {
        self.trusted()
            .is_some_and(|marker| (marker.process, marker.nonce) == (process, nonce))
    }
}

/// Returns the longest pause between two probes of a trusted node that is probed once in this time.
///
/// A flush that breaks no connection is noticed by a probe only, and the watch begins with it. Half of a longest
/// lease keeps it shorter than the watch itself. Two to four probes in that time cost a server little, even from a
/// thousand clients (docs/src/operating.md, "What idle clients cost").
fn pause_within(time: Duration) -> Duration {
    (time / 2).clamp(SHORTEST_PAUSE, LOOK)
}

/// Returns a random part of a time span.
fn part(span: Duration, random: u64) -> Duration {
    let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    let below = (u128::from(nanos) * u128::from(random)) >> 64;
    Duration::from_nanos(u64::try_from(below).unwrap_or(nanos))
}

#[cfg(test)]
mod tests;
