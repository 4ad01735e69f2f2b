//! Cleans up a claim that a member may hold for an owner that has given up.

use std::time::Duration;

use crate::failure::Execution;
use crate::message::ReleaseReply;
use crate::round::Answer;
use crate::time::Time;

/// How many releases are sent for one orphan if none settles it. After that the claim ends with its TTL.
const TRIES: u8 = 5;

/// The pause after a release that settles nothing, multiplied by their number.
const RETRY: Duration = Duration::from_millis(200);

/// A possible claim that no hold will renew, until it is certainly gone.
///
/// A release is sent at once, whether or not the acquire was answered: on the same connection the node executes it
/// after the acquire. The release may still overtake the acquire and find nothing. If the acquire is then answered
/// and the claim may exist, another release follows.
///
/// An acquire whose connection ended is never answered, and the network or the node may still have it when a release
/// arrives on the next connection. Releases that find nothing are then sent again like those that fail.
///
/// A release that ends something shows that the acquire was executed before it, unless the owner had asked the node
/// before: a waiter of a fair lock repeats its acquire, and the release may end the place that an earlier one was given.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Orphan {
    /// The last acquire of the owner.
    acquire: ReplyStatus,
    /// Whether an earlier acquire may have given the owner a place in the queue of the node.
    has_place: bool,
    release: ReleaseStatus,
    tries: u8,
    gone: Time,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum ReplyStatus {
    Pending,
    /// It will not be answered. The node may still execute it.
    Lost,
    Answered,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum ReleaseStatus {
    /// To be sent at this time.
    Due(Time),
    /// Sent. The value states whether the acquire had been answered before.
    Sent(ReplyStatus),
    /// It may have overtaken the acquire, which the node may execute later.
    Overtook,
    /// No further release is needed.
    Done,
}

impl Orphan {
    /// Returns an orphan whose acquire was answered. The claim has expired by itself at `gone`: after its lease, the clock
    /// margin and the drift.
    #[must_use]
    pub fn new(now: Time, gone: Time) -> Self {
        Orphan {
            acquire: ReplyStatus::Answered,
            has_place: false,
            release: ReleaseStatus::Due(now),
            tries: 0,
            gone,
        }
    }

    /// Returns an orphan whose acquire has not been answered.
    #[must_use]
    pub fn unanswered(now: Time, gone: Time) -> Self {
        Orphan {
            acquire: ReplyStatus::Pending,
            ..Orphan::new(now, gone)
        }
    }

    /// Returns an orphan whose acquire ended without an answer that rules out a claim.
    #[must_use]
    pub fn lost(now: Time, gone: Time) -> Self {
        Orphan {
            acquire: ReplyStatus::Lost,
            ..Orphan::new(now, gone)
        }
    }

    /// Makes this the orphan of an owner that may have a place in the queue of the node from an earlier acquire.
    #[must_use]
    pub fn with_place(mut self) -> Self {
        self.has_place = true;
        self
    }

    /// Returns whether a release is due now.
    #[must_use]
    pub fn is_due(&self, now: Time) -> bool {
        matches!(self.release, ReleaseStatus::Due(at) if at <= now) && now < self.gone
    }

    /// Returns whether to send a release now. If so, it counts as sent.
    pub fn next_release(&mut self, now: Time) -> bool {
        let is_due = self.is_due(now);
        if is_due {
            self.release = ReleaseStatus::Sent(self.acquire);
            self.tries += 1;
        }
        is_due
    }

    /// Handles the answer to the acquire.
    pub fn handle_acquire(&mut self, now: Time, answer: Answer) {
        let before = self.acquire;
        self.acquire = match answer {
            Answer::Failed(Execution::Indeterminate) => ReplyStatus::Lost,
            _ => ReplyStatus::Answered,
        };
        let has_overtaken = self.release == ReleaseStatus::Overtook;
        self.release = match answer {
            // The place that an earlier acquire was given is still to be released.
            Answer::Refused(_) | Answer::OtherMode(_) | Answer::Failed(Execution::Definite)
                if before == ReplyStatus::Pending && self.has_place && !has_overtaken =>
            {
                self.release
            }
            Answer::Refused(_) | Answer::OtherMode(_) | Answer::Failed(Execution::Definite) => {
                ReleaseStatus::Done
            }
            Answer::Granted(_)
            | Answer::Quarantined(_)
            | Answer::Queued(_)
            | Answer::Failed(Execution::Indeterminate)
                if has_overtaken =>
            {
                ReleaseStatus::Due(now)
            }
            _ => self.release,
        };
    }

    /// Handles the reply to a release.
    pub fn handle_release(&mut self, now: Time, reply: ReleaseReply) {
        let ReleaseStatus::Sent(before) = self.release else {
            return;
        };
        // Orphans: A gives up while its acquire is still under way, and its release finds nothing. If this release were
        // the last one, the claim that the acquire creates afterwards would keep B out until its TTL ends. The same
        // happens if A waits in a queue and repeats its acquire: its release ends A's place, and the acquire that
        // arrives afterwards gives A another place, in front of B.
        let has_overtaken = match before {
            ReplyStatus::Answered => false,
            // The release may have ended the place alone.
            ReplyStatus::Pending | ReplyStatus::Lost => {
                self.has_place || reply == ReleaseReply::NotYours
            }
        };
        self.release = match self.acquire {
            _ if !has_overtaken => ReleaseStatus::Done,
            ReplyStatus::Answered => ReleaseStatus::Due(now),
            ReplyStatus::Pending => ReleaseStatus::Overtook,
            // A's connection is reset while its acquire is under way. A's release, on the next connection, finds
            // nothing, and after it the node executes the acquire.
            ReplyStatus::Lost => self.later(now),
        };
    }

    /// Handles a release without a reply. Silence is not refusal: the claim may still exist.
    pub fn handle_failed(&mut self, now: Time) {
        if let ReleaseStatus::Sent(_) = self.release {
            self.release = self.later(now);
        }
    }

    fn later(&self, now: Time) -> ReleaseStatus {
        if self.tries < TRIES {
            ReleaseStatus::Due(now + RETRY * u32::from(self.tries))
        } else {
            ReleaseStatus::Done
        }
    }

    /// Extends the time until the claim is gone, because others keep it alive. Releases are tried again until `gone`.
    pub fn keep_alive(&mut self, gone: Time) {
        self.gone = self.gone.max(gone);
        self.tries = self.tries.min(TRIES - 2);
    }

    /// Returns whether nothing is left to do.
    #[must_use]
    pub fn is_done(&self, now: Time) -> bool {
        match self.release {
            ReleaseStatus::Done => true,
            ReleaseStatus::Sent(_) => false,
            ReleaseStatus::Due(_) | ReleaseStatus::Overtook => self.gone <= now,
        }
    }

    /// Returns when to check [`Orphan::next_release`] and [`Orphan::is_done`] again.
    #[must_use]
    pub fn poll_timeout(&self) -> Time {
        match self.release {
            ReleaseStatus::Due(at) => at.min(self.gone),
            ReleaseStatus::Overtook => self.gone,
            ReleaseStatus::Sent(_) | ReleaseStatus::Done => Time::NEVER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fencing::Token;
    use crate::message::Ttl;

    const GRANTED: Answer = Answer::Granted(Token(1));
    const GONE: Time = Time::from_millis(10_000);

    fn ms(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    #[test]
    fn one_release_that_frees_is_enough() {
        let mut orphan = Orphan::new(ms(0), GONE);
        assert!(orphan.next_release(ms(0)));
        assert!(!orphan.next_release(ms(0)));
        assert!(!orphan.is_done(ms(1)));
        orphan.handle_release(ms(1), ReleaseReply::FREED);
        assert!(orphan.is_done(ms(1)));
    }

    #[test]
    fn a_release_that_overtook_its_acquire_is_sent_again() {
        for acquire_first in [false, true] {
            let mut orphan = Orphan::unanswered(ms(0), GONE);
            assert!(orphan.next_release(ms(0)));
            if acquire_first {
                orphan.handle_acquire(ms(1), GRANTED);
                orphan.handle_release(ms(2), ReleaseReply::NotYours);
            } else {
                orphan.handle_release(ms(1), ReleaseReply::NotYours);
                assert!(!orphan.next_release(ms(1)) && !orphan.is_done(ms(1)));
                orphan.handle_acquire(ms(2), GRANTED);
            }
            assert!(orphan.next_release(ms(2)));
            orphan.handle_release(ms(3), ReleaseReply::FREED);
            assert!(orphan.is_done(ms(3)));
        }
    }

    /// A node that executes the messages of a waiter in any order. The waiter has a place in its queue.
    #[test]
    fn a_repeated_acquire_leaves_no_place_behind_whatever_overtakes_what() {
        let queued = Answer::Queued(Ttl::Millis(1));
        for [acquired, released, heard_acquire, heard_release] in
            [[0, 1, 2, 3], [0, 1, 3, 2], [1, 0, 2, 3], [1, 0, 3, 2]]
        {
            let mut orphan = Orphan::unanswered(ms(0), GONE).with_place();
            let mut has_place = true;
            assert!(orphan.next_release(ms(0)));
            for step in 0..4 {
                match step {
                    at if at == acquired => has_place = true,
                    at if at == released => has_place = false,
                    at if at == heard_acquire => orphan.handle_acquire(ms(1), queued),
                    at if at == heard_release => orphan.handle_release(ms(1), ReleaseReply::Left),
                    _ => {}
                }
            }
            while orphan.next_release(ms(2)) {
                has_place = false;
                orphan.handle_release(ms(2), ReleaseReply::NotYours);
            }
            assert!(orphan.is_done(ms(2)) && !has_place);
        }
    }

    #[test]
    fn a_repeated_acquire_that_is_not_executed_leaves_its_place_to_release() {
        let definite = Answer::Failed(Execution::Definite);
        let mut orphan = Orphan::unanswered(ms(0), GONE).with_place();
        orphan.handle_acquire(ms(1), definite);
        assert!(orphan.next_release(ms(1)));
        orphan.handle_release(ms(2), ReleaseReply::Left);
        assert!(orphan.is_done(ms(2)));

        // The acquire and its release are lost with their connection.
        let mut orphan = Orphan::unanswered(ms(0), GONE).with_place();
        assert!(orphan.next_release(ms(0)));
        orphan.handle_acquire(ms(1), definite);
        orphan.handle_failed(ms(1));
        assert!(!orphan.is_done(ms(1)) && orphan.next_release(ms(300)));

        let mut orphan = Orphan::unanswered(ms(0), GONE).with_place();
        assert!(orphan.next_release(ms(0)));
        orphan.handle_release(ms(1), ReleaseReply::Left);
        orphan.handle_acquire(ms(2), definite);
        assert!(orphan.is_done(ms(2)));
    }

    #[test]
    fn a_refused_acquire_leaves_nothing_to_release() {
        let mut orphan = Orphan::unanswered(ms(0), GONE);
        orphan.handle_acquire(ms(1), Answer::Refused(Ttl::Millis(5)));
        assert!(!orphan.next_release(ms(1)) && orphan.is_done(ms(1)));
    }

    /// A's connection ends while its acquire is under way. The node executes the acquire after some releases.
    #[test]
    fn a_lost_acquire_is_released_although_the_node_executes_it_after_a_release() {
        let mut ended_meanwhile = Orphan::unanswered(ms(0), GONE);
        ended_meanwhile.handle_acquire(ms(0), Answer::Failed(Execution::Indeterminate));
        for orphan in [Orphan::lost(ms(0), GONE), ended_meanwhile] {
            for overtaking in 0..TRIES {
                let mut orphan = orphan.clone();
                let mut now = ms(0);
                for _ in 0..overtaking {
                    assert!(orphan.next_release(now));
                    orphan.handle_release(now, ReleaseReply::NotYours);
                    assert!(!orphan.next_release(now) && !orphan.is_done(now));
                    now = orphan.poll_timeout();
                }
                assert!(orphan.next_release(now));
                orphan.handle_release(now, ReleaseReply::FREED);
                assert!(orphan.is_done(now));
            }
        }
    }

    #[test]
    fn an_acquire_that_is_never_executed_is_looked_for_a_few_times() {
        let mut orphan = Orphan::lost(ms(0), GONE);
        let mut now = ms(0);
        for _ in 0..TRIES {
            assert!(!orphan.is_done(now) && orphan.next_release(now));
            orphan.handle_release(now, ReleaseReply::NotYours);
            now = orphan.poll_timeout().min(GONE);
        }
        assert!(orphan.is_done(ms(2_000)));
    }

    #[test]
    fn failing_releases_are_tried_a_few_times_and_never_after_the_lease() {
        let mut orphan = Orphan::new(ms(0), GONE);
        let mut now = ms(0);
        let mut sent = 0;
        while orphan.next_release(now) {
            sent += 1;
            orphan.handle_failed(now);
            now = orphan.poll_timeout().min(GONE);
        }
        assert_eq!(sent, usize::from(TRIES));
        assert!(orphan.is_done(now));

        let mut late = Orphan::new(ms(0), GONE);
        assert!(!late.next_release(GONE) && late.is_done(GONE));
    }

    /// Every order of four events with every kind of answer. Each ends either with a release that was sent after the
    /// acquire was known to have been granted, or without the need for one.
    #[test]
    fn every_short_history_ends_without_a_claim_left_behind() {
        for acquire in [
            GRANTED,
            Answer::Refused(Ttl::Millis(1)),
            Answer::Failed(Execution::Definite),
        ] {
            for reply in [ReleaseReply::FREED, ReleaseReply::NotYours] {
                for acquire_first in [false, true] {
                    let mut orphan = Orphan::unanswered(ms(0), GONE);
                    let mut releases = u32::from(orphan.next_release(ms(0)));
                    if acquire_first {
                        orphan.handle_acquire(ms(1), acquire);
                    }
                    orphan.handle_release(ms(1), reply);
                    if !acquire_first {
                        orphan.handle_acquire(ms(1), acquire);
                    }
                    while orphan.next_release(ms(2)) {
                        releases += 1;
                        orphan.handle_release(ms(2), ReleaseReply::FREED);
                    }
                    assert!(orphan.is_done(ms(2)));
                    let stood = acquire == GRANTED && reply == ReleaseReply::NotYours;
                    assert_eq!(releases, if stood { 2 } else { 1 });
                }
            }
        }
    }
}
