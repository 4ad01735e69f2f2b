//! Decides which nodes' votes count: those that were watched for the longest lease since their process started.
//!
//! A process that has just started may have forgotten claims. Every claim that it may have forgotten was requested
//! before it started. Therefore no client relies on any of them once the longest lease of all clients has passed since
//! a client first saw the new process. This time is measured on the client's own clock, from the receipt of the first
//! reply that showed the marker's nonce to the sending of the request that confirms it. Until then the node is
//! *quarantined*: it receives requests, so that it learns which owner holds a name, but its fresh grants do not count.

use std::fmt;
use std::time::Duration;

use crate::lease::drift;
use crate::marker::{MarkerState, Nonce, Process, Shown, ShownMarker};
use crate::time::Time;

/// The trust of one client in one node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Trust {
    /// How long a process is watched: the longest lease and its drift allowance.
    watch: Duration,
    state: State,
    /// The nonce of the watch that was trusted last. It is kept when trust is withdrawn.
    known: Option<Nonce>,
    /// When trust was last withdrawn. The reply to a request sent before this time does not restore trust.
    withdrawn: Option<Time>,
    /// When to request the confirmation of the marker.
    due: Time,
    is_confirming: bool,
    /// When the next request is sent as if the node were not trusted, so that the node checks its marker.
    look_due: Time,
}

/// How often a client makes a node check its marker, so that a marker in use does not expire.
const LOOK: Duration = Duration::from_secs(60 * 60);

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum State {
    /// There is no marker to watch.
    Unmarked(Why),
    /// This nonce was first shown at this time, and nothing else since.
    Watching(Nonce, Time),
    Trusted(Process, Nonce),
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
    /// Returns the trust in a node that has not been contacted. No client of the deployment requests longer leases than
    /// `longest`.
    #[must_use]
    pub fn new(longest: Duration) -> Self {
        Trust {
            watch: longest.saturating_add(drift(longest)),
            state: State::Unmarked(Why::Unknown),
            known: None,
            withdrawn: None,
            due: Time::NEVER,
            is_confirming: false,
            look_due: Time::ZERO,
        }
    }

    /// Handles what the reply to a request sent at `sent` showed.
    ///
    /// Any reply may withdraw trust. Only a request that was sent after the last withdrawal restores it: the state that
    /// an earlier one shows may be older than the state that withdrew it.
    pub fn handle_shown(&mut self, now: Time, sent: Time, shown: Shown) -> Counts {
        match shown.marker {
            ShownMarker::Own(nonce, MarkerState::Confirmed) => {
                let trusted = State::Trusted(shown.process, nonce);
                if self.is_twin(shown.process) {
                    return Counts::No;
                }
                // A's request reaches the old process, and its reply is delayed. Meanwhile the node restarts, and
                // another reply withdraws trust. The late reply shows a process that no longer exists, and must not
                // restore trust.
                if self.state != trusted && self.withdrawn.is_some_and(|at| sent < at) {
                    return Counts::No;
                }
                self.state = trusted;
                self.known = Some(nonce);
                self.due = Time::NEVER;
                return Counts::Yes;
            }
            ShownMarker::Own(nonce, MarkerState::Observing) => {
                // The watch begins at the receipt of the first reply with this nonce, not when its request was sent: in
                // between the previous process may have granted claims that this one has forgotten.
                if !matches!(self.state, State::Watching(watched, _) if watched == nonce) {
                    self.state = State::Watching(nonce, now);
                    self.due = now + self.watch;
                }
            }
            ShownMarker::Missing => self.unmark(Why::Missing),
            ShownMarker::Anothers => self.unmark(Why::Restarted),
        }
        self.withdrawn = Some(now);
        Counts::No
    }

    fn unmark(&mut self, why: Why) {
        self.state = State::Unmarked(why);
        self.due = Time::NEVER;
    }

    /// Records that another address of the same quorum shows the same process. One of the two must not count, or one
    /// server would have two votes.
    pub fn handle_twin(&mut self, now: Time, process: Process) {
        self.state = State::Twin(process);
        self.withdrawn = Some(now);
        self.due = Time::NEVER;
    }

    /// Records that no other address leads to this process any more. If one did, the votes of the process count again
    /// from its next reply.
    ///
    /// For example, two shards A and B of one cluster have their slots on one primary, and B does not count. Then A's
    /// slot moves to another primary.
    pub fn handle_single(&mut self, process: Process) {
        if self.is_twin(process) {
            self.unmark(Why::Unknown);
        }
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

    /// Returns the process and nonce that a request sent now states as trusted. The first request of every hour states
    /// none, so that the node checks its marker.
    pub fn next_trusted(&mut self, now: Time) -> Option<(Process, Nonce)> {
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

    /// Returns the nonce to confirm now, if it was watched for long enough. The confirmation then counts as under way.
    pub fn next_confirmation(&mut self, now: Time) -> Option<Nonce> {
        // The marker: node 1 restarts empty and has forgotten A's claim. A relies on it for at most one longest lease
        // after the restart. If B confirmed the marker earlier, node 1 would count, and its grant would give B a
        // majority with 4 and 5 while A has one with 1, 2 and 3.
        match self.state {
            State::Watching(nonce, _) if self.due <= now && !self.is_confirming => {
                self.is_confirming = true;
                Some(nonce)
            }
            _ => None,
        }
    }

    /// Handles the end of the request of [`Trust::next_confirmation`]. If it was answered, the answer is passed to
    /// [`Trust::handle_shown`]. While trust is not restored, another confirmation follows after a pause.
    pub fn handle_end(&mut self, now: Time) {
        self.is_confirming = false;
        if let State::Watching(..) = self.state {
            let pause = (self.watch / 60).max(Duration::from_millis(1));
            self.due = self.due.max(now + pause);
        }
    }

    /// Returns when to call [`Trust::next_confirmation`].
    #[must_use]
    pub fn poll_timeout(&self) -> Time {
        if self.is_confirming {
            Time::NEVER
        } else {
            self.due
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

    /// Returns the watch of the process that is trusted. A watch that differs from an earlier one means that it is
    /// another process, or that the node was quarantined in between.
    #[must_use]
    pub fn trusted(&self) -> Option<(Process, Nonce)> {
        match self.state {
            State::Trusted(process, nonce) => Some((process, nonce)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With the drift allowance of 1 % and 2 ms, a process is watched for 10.102 s.
    const LONGEST: Duration = Duration::from_secs(10);

    fn ms(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    fn nonce(number: u64) -> Nonce {
        Nonce::new(number)
    }

    fn shown(process: u64, marker: ShownMarker) -> Shown {
        let process = Process(process);
        Shown { process, marker }
    }

    fn confirmed(process: u64, number: u64) -> Shown {
        shown(
            process,
            ShownMarker::Own(nonce(number), MarkerState::Confirmed),
        )
    }

    fn observing(process: u64, number: u64) -> Shown {
        shown(
            process,
            ShownMarker::Own(nonce(number), MarkerState::Observing),
        )
    }

    fn trusted() -> Trust {
        let mut trust = Trust::new(LONGEST);
        assert_eq!(
            trust.handle_shown(ms(2), ms(1), confirmed(1, 1)),
            Counts::Yes
        );
        trust
    }

    #[test]
    fn a_confirmed_marker_of_the_process_itself_is_trusted_at_once() {
        let trust = trusted();
        assert_eq!(trust.quarantine(), None);
        assert!(!trust.wants_marker());
        assert_eq!(trust.poll_timeout(), Time::NEVER);
    }

    #[test]
    fn an_observing_nonce_is_watched_from_the_receipt_of_the_first_reply_that_showed_it() {
        let mut trust = Trust::new(LONGEST);
        for at in [5, 1_000, 10_000] {
            let counts = trust.handle_shown(ms(at), ms(at - 4), observing(1, 7));
            assert_eq!(counts, Counts::No);
        }
        assert_eq!(trust.quarantine(), Some((Why::Watched, Some(ms(10_107)))));
        assert_eq!(trust.poll_timeout(), ms(10_107));
        assert_eq!(trust.next_confirmation(ms(10_106)), None);
        assert_eq!(trust.next_confirmation(ms(10_107)), Some(nonce(7)));
        assert_eq!(
            trust.next_confirmation(ms(10_107)),
            None,
            "it was asked for"
        );
        trust.handle_end(ms(10_110));
        let counts = trust.handle_shown(ms(10_110), ms(10_107), confirmed(1, 7));
        assert_eq!(counts, Counts::Yes);
    }

    #[test]
    fn another_nonce_or_none_begins_the_watch_again() {
        let missing = shown(1, ShownMarker::Missing);
        let anothers = shown(1, ShownMarker::Anothers);
        for between in [observing(1, 8), missing, anothers] {
            let mut trust = Trust::new(LONGEST);
            trust.handle_shown(ms(5), ms(1), observing(1, 7));
            trust.handle_shown(ms(9_000), ms(8_999), between);
            trust.handle_shown(ms(9_500), ms(9_499), observing(1, 7));
            assert_eq!(trust.next_confirmation(ms(19_601)), None);
            assert_eq!(trust.next_confirmation(ms(19_602)), Some(nonce(7)));
        }
    }

    #[test]
    fn a_confirmation_without_an_answer_is_asked_for_again() {
        let mut trust = Trust::new(LONGEST);
        trust.handle_shown(ms(5), ms(1), observing(1, 7));
        assert_eq!(trust.next_confirmation(ms(11_000)), Some(nonce(7)));
        assert_eq!(trust.poll_timeout(), Time::NEVER);
        trust.handle_end(ms(12_000));
        assert!(ms(12_000) < trust.poll_timeout());
        assert_eq!(trust.next_confirmation(ms(12_000)), None);
        assert_eq!(
            trust.next_confirmation(trust.poll_timeout()),
            Some(nonce(7))
        );
    }

    #[test]
    fn any_reply_withdraws_trust_and_only_a_later_request_restores_it() {
        for (marker, why) in [
            (ShownMarker::Missing, Why::Missing),
            (ShownMarker::Anothers, Why::Restarted),
        ] {
            let mut trust = trusted();
            let counts = trust.handle_shown(ms(20), ms(3), shown(1, marker));
            assert_eq!(counts, Counts::No);
            assert_eq!(trust.quarantine(), Some((why, None)));
            assert!(trust.wants_marker());
            let old = trust.handle_shown(ms(30), ms(19), confirmed(1, 1));
            assert_eq!(old, Counts::No, "it was sent before the withdrawal");
            let new = trust.handle_shown(ms(30), ms(21), confirmed(1, 1));
            assert_eq!(new, Counts::Yes);
        }
    }

    #[test]
    fn the_nonce_that_was_trusted_last_is_known_until_another_is_trusted() {
        let mut trust = Trust::new(LONGEST);
        trust.handle_shown(ms(2), ms(1), observing(1, 1));
        assert_eq!(trust.known(), None, "it is not trusted yet");
        trust.handle_shown(ms(4), ms(3), confirmed(1, 1));
        let others = [ShownMarker::Missing, ShownMarker::Anothers];
        for (at, marker) in (5..).zip(others) {
            trust.handle_shown(ms(at), ms(at), shown(2, marker));
            assert_eq!(trust.known(), Some(nonce(1)), "{marker:?}");
        }
        trust.handle_shown(ms(8), ms(8), observing(2, 2));
        assert_eq!(trust.known(), Some(nonce(1)));
        trust.handle_shown(ms(9), ms(9), confirmed(2, 2));
        assert_eq!(trust.known(), Some(nonce(2)));
    }

    /// A client that was suspended sees another process, whose marker another client has confirmed.
    #[test]
    fn another_process_that_others_have_watched_is_another_watch() {
        let mut trust = trusted();
        let before = trust.trusted();
        assert_eq!(
            trust.handle_shown(ms(90), ms(80), confirmed(2, 9)),
            Counts::Yes
        );
        assert!(trust.trusted().is_some() && trust.trusted() != before);
    }

    #[test]
    fn of_two_addresses_of_one_server_one_does_not_count() {
        let mut trust = trusted();
        trust.handle_twin(ms(10), Process(1));
        assert_eq!(
            trust.handle_shown(ms(90), ms(80), confirmed(1, 1)),
            Counts::No
        );
        assert_eq!(trust.quarantine(), Some((Why::SameServer, None)));
        let moved = trust.handle_shown(ms(99), ms(95), confirmed(2, 1));
        assert_eq!(moved, Counts::Yes, "the address leads elsewhere now");
    }

    #[test]
    fn a_twin_whose_other_address_leads_elsewhere_counts_again() {
        let mut trust = trusted();
        trust.handle_twin(ms(10), Process(1));
        trust.handle_single(Process(2));
        assert!(trust.is_twin(Process(1)), "that is another process");
        trust.handle_single(Process(1));
        assert_eq!(
            trust.handle_shown(ms(20), ms(9), confirmed(1, 1)),
            Counts::No
        );
        assert_eq!(
            trust.handle_shown(ms(20), ms(11), confirmed(1, 1)),
            Counts::Yes
        );
    }
}
