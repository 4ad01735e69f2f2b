//! The decisions of the wrapper: what it tells the guardian about the validity, and when it kills the group itself.
//! Time is an input, as in [`guarding`](super::guarding).

use std::time::Duration;

use super::clock::Moment;
use super::guarding::OnLoss;
use super::link::Order;

/// Whether the lock was held for as long as the command ran.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HoldThen {
    Held,
    Lost,
}

/// Whether the end of the validity has moved since it was last read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Moved {
    Yes,
    No,
}

/// Two readings of the same validity differ by less than this, unless the process was not scheduled in between.
const JITTER: Duration = Duration::from_millis(1);

/// The wrapper of one run.
///
/// Its property: the time that the guardian was told last is never later than the end of the validity that was read
/// last.
#[derive(Debug)]
pub(super) struct Holding {
    until: Moment,
    /// Time from KILL to the end of the validity.
    reserve: Duration,
    on_loss: OnLoss,
    hold: HoldThen,
}

impl Holding {
    /// Returns the wrapper of a command whose guardian was told this end of the validity.
    pub(super) fn new(until: Moment, reserve: Duration, on_loss: OnLoss) -> Self {
        Holding {
            until,
            reserve,
            on_loss,
            hold: HoldThen::Held,
        }
    }

    /// Returns the end of the validity, as sent to the guardian.
    pub(super) fn until(&self) -> Moment {
        self.until
    }

    pub(super) fn hold(&self) -> HoldThen {
        self.hold
    }

    /// Handles a reading of the end of the validity. Returns what the guardian must learn.
    ///
    /// A reading is never later than the true end, but may be earlier by as long as the process was not scheduled
    /// between its two clocks. If the end has not moved, the later of two readings is the better one. If it has, an
    /// earlier reading is passed on, however small the difference is, and also after TERM was sent: KILL moves with it.
    pub(super) fn handle_validity(&mut self, read: Moment, moved: Moved) -> Option<Order> {
        let is_later = self.hold == HoldThen::Held && JITTER < read.since(self.until);
        let is_earlier = moved == Moved::Yes && read < self.until;
        if !is_later && !is_earlier {
            return None;
        }
        self.until = read;
        Some(Order::Until(read))
    }

    /// Handles the loss of the lock. Returns what the guardian must learn.
    pub(super) fn handle_lost(&mut self, now: Moment) -> Order {
        self.hold = HoldThen::Lost;
        self.until = self.until.min(now);
        Order::Lost
    }

    /// Handles the guardian's report that it ends the command because the lock was not renewed. Returns the state of
    /// the hold before.
    pub(super) fn handle_ending(&mut self) -> HoldThen {
        std::mem::replace(&mut self.hold, HoldThen::Lost)
    }

    /// Returns whether the guardian is late, so that this process has to kill the group. The guardian may be stopped,
    /// or the machine so busy that it is not scheduled.
    pub(super) fn is_late(&self, now: Moment) -> bool {
        self.last_resort().is_some_and(|late| late <= now)
    }

    /// Returns when the guardian is late: half of the reserve is left then.
    pub(super) fn last_resort(&self) -> Option<Moment> {
        let late = self.until.before(self.reserve / 2);
        (self.on_loss == OnLoss::Kill).then_some(late)
    }

    /// Returns when to look again, at the latest after `tick`.
    pub(super) fn poll_timeout(&self, now: Moment, tick: Duration) -> Moment {
        let at = now.after(tick);
        let late = self.last_resort().filter(|late| now < *late);
        late.map_or(at, |late| late.min(at))
    }
}
