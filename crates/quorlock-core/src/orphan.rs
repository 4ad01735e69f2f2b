//! Cleans up a claim that a member may hold for an owner that has given up.

use std::time::Duration;

use crate::failure::Execution;
use crate::message::ReleaseReply;
use crate::round::Answer;
use crate::time::Time;

/// How many releases are sent for one orphan if they keep failing. After that the claim ends with its TTL.
const TRIES: u8 = 5;

/// The pause after a failed release, multiplied by the number of failures.
const RETRY: Duration = Duration::from_millis(200);

/// A possible claim that no hold will renew, until it is certainly gone.
///
/// A release is sent at once, whether or not the acquire was answered: on the same connection the node executes it
/// after the acquire. The release may still overtake the acquire and find nothing. If the acquire is then answered
/// and the claim may exist, another release follows.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Orphan {
    acquire: ReplyStatus,
    release: ReleaseStatus,
    tries: u8,
    gone: Time,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum ReplyStatus {
    Pending,
    Answered,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum ReleaseStatus {
    /// To be sent at this time.
    Due(Time),
    /// Sent. The value states whether the acquire had been answered before.
    Sent(ReplyStatus),
    /// It found nothing, but the node may execute the acquire later.
    Overtook,
    /// No further release is needed.
    Done,
}

impl Orphan {
    /// Returns an orphan whose acquire is no longer under way. The claim has expired by itself at `gone`: after its lease,
    /// the clock margin and the drift.
    #[must_use]
    pub fn new(now: Time, gone: Time) -> Self {
        Orphan {
            acquire: ReplyStatus::Answered,
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
        self.acquire = ReplyStatus::Answered;
        match answer {
            Answer::Refused(_) | Answer::OtherMode(_) | Answer::Failed(Execution::Definite) => {
                self.release = ReleaseStatus::Done;
            }
            Answer::Granted(_)
            | Answer::Quarantined(_)
            | Answer::Queued(_)
            | Answer::Failed(Execution::Indeterminate) => {
                if self.release == ReleaseStatus::Overtook {
                    self.release = ReleaseStatus::Due(now);
                }
            }
        }
    }

    /// Handles the reply to a release.
    pub fn handle_release(&mut self, now: Time, reply: ReleaseReply) {
        let ReleaseStatus::Sent(before) = self.release else {
            return;
        };
        // Orphans: A gives up while its acquire is still under way, and its release finds nothing. If this release were
        // the last one, the claim that the acquire creates afterwards would keep B out until its TTL ends.
        self.release = match (reply, before, self.acquire) {
            (ReleaseReply::NotYours, ReplyStatus::Pending, ReplyStatus::Pending) => {
                ReleaseStatus::Overtook
            }
            (ReleaseReply::NotYours, ReplyStatus::Pending, ReplyStatus::Answered) => {
                ReleaseStatus::Due(now)
            }
            _ => ReleaseStatus::Done,
        };
    }

    /// Handles a release without a reply. Silence is not refusal: the claim may still exist.
    pub fn handle_failed(&mut self, now: Time) {
        if let ReleaseStatus::Sent(_) = self.release {
            self.release = if self.tries < TRIES {
                ReleaseStatus::Due(now + RETRY * u32::from(self.tries))
            } else {
                ReleaseStatus::Done
            };
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

    #[test]
    fn a_refused_acquire_leaves_nothing_to_release() {
        let mut orphan = Orphan::unanswered(ms(0), GONE);
        orphan.handle_acquire(ms(1), Answer::Refused(Ttl::Millis(5)));
        assert!(!orphan.next_release(ms(1)) && orphan.is_done(ms(1)));
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
