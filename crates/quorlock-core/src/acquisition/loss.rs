//! What an acquisition does after a lost round.

use std::time::Duration;

use super::contention::Refusal;
use super::{Acquisition, Because, GiveUp, Patience, Step};
use crate::round::{Loss, Order};
use crate::time::Time;

impl Acquisition {
    /// Handles the loss of a round that began at `began`. `random` is any 64 random bits.
    pub fn handle_loss(&mut self, now: Time, began: Time, loss: Loss, random: u64) {
        let took = now.since(began);
        self.pauses.handle_loss(random);
        self.note(&loss, began, took);
        let rivals = std::mem::take(&mut self.has_rivals);
        self.step = match loss {
            Loss::OtherMode(_) | Loss::Denied => Step::GiveUp(give_up(&loss)),
            // A has 1, B has 2 and C has 3, because all of them try at the same moment, as jobs do that are started by a clock.
            // If each gave up, none would run. In first-member order one of them passes.
            Loss::Refused { .. }
                if rivals && self.patience == Patience::Try && self.lost_rounds == 1 =>
            {
                self.after_collision(now, took)
            }
            _ if self.patience == Patience::Try => Step::GiveUp(give_up(&loss)),
            Loss::NoQuorum | Loss::TooSlow => {
                let at = self.pauses.after_loss(now, took);
                Step::BackOff(at.min(self.returns.end_of_pause(now, random)))
            }
            Loss::Quarantined { until } => {
                self.wake_ups.wait_for(Vec::new());
                match until.filter(|until| now < *until) {
                    Some(until) => Step::Sleep(until.min(now + self.policy.poll_cap)),
                    None => Step::BackOff(self.pauses.after_loss(now, took)),
                }
            }
            Loss::Postponed => {
                // The competitor that has the first member is asking the rest, or holds the lock already.
                self.wake_ups.wait_for(self.members.all().collect());
                let at = self.pauses.after_postponement(now, took);
                self.sleep(now, at)
            }
            Loss::Refused {
                free_after,
                split,
                refused,
            } => {
                self.wake_ups.wait_for(refused);
                self.after_claims(now, took, (split, rivals), free_after)
            }
        };
    }

    /// Handles claims in the way. The votes may be split, and the claims may be those of rivals, none of which holds the lock.
    fn after_claims(
        &mut self,
        now: Time,
        took: Duration,
        (split, rivals): (bool, bool),
        free_after: Option<Duration>,
    ) -> Step {
        if !self.is_listening {
            self.is_listening = true;
            return self.listen(now + self.member_timeout);
        }
        if rivals && self.members.groups().count() == 1 {
            return self.after_collision(now, took);
        }
        let is_collision = split && !self.may_be_held();
        let vote = if split {
            Refusal::Split
        } else {
            Refusal::Whole
        };
        self.contention.handle_vote(vote);
        if is_collision && 2 <= self.lost_places {
            return Step::BackOff(self.pauses.after_lost_places(now, took));
        }
        if is_collision {
            return Step::BackOff(self.pauses.after_loss(now, took));
        }
        if vote == Refusal::Whole && self.lost_places == 0 {
            self.pauses.reset();
        }
        self.after_refusal(now, free_after)
    }

    /// Records what a lost round reveals about members and competitors, whatever the next step is.
    fn note(&mut self, loss: &Loss, began: Time, took: Duration) {
        // One member is not a quorum. Suppose only the first member answers. Competitors in first-member order are
        // refused by it from time to time, and if that counted as the answer of a quorum they would wait for ever.
        let is_unheard = *loss == Loss::Postponed && self.failing_since.is_some();
        if !is_unheard {
            self.last_loss = Some(give_up(loss));
            self.failing_since = match loss {
                Loss::NoQuorum | Loss::TooSlow => self.failing_since.or(Some(began)),
                _ => {
                    self.returns.reset();
                    None
                }
            };
        }
        self.lost_rounds = self.lost_rounds.saturating_add(1);
        self.last_round = took.min(self.member_timeout);
        self.is_postponed = *loss == Loss::Postponed;
        let is_outrun = self.last_because == Because::Woken && matches!(loss, Loss::Refused { .. });
        // With a single member there are no others to ask after it.
        if is_outrun && 1 < self.members.len() {
            self.contention.handle_outrun();
        }
        if self.last_order == Order::FirstMember && self.member_timeout <= took {
            self.contention.handle_silent_first_member();
        }
    }

    /// Handles a collision: several owners have claims, and none has enough. Each gives back its claims within a round
    /// trip or two, and the lock should not stay idle for longer. From now on all of them use first-member order, so a
    /// round that is started by a wake-up splits no vote.
    fn after_collision(&mut self, now: Time, took: Duration) -> Step {
        self.contention.handle_vote(Refusal::Split);
        self.contention.handle_outrun();
        let at = self.pauses.after_collision(now, took);
        self.sleep(now, at)
    }

    /// Returns whether a split vote may have another cause than a collision: one holder may have every member that
    /// refused, without having all members. This is assumed once. A second split in a row is a collision. So is a
    /// second lost place in a queue, whatever happened in between, because the queues keep colliding owners in step.
    fn may_be_held(&self) -> bool {
        self.contention.last_vote() == Refusal::Whole
            && self.lost_places < 2
            && self.members.groups().all(|group| {
                let members = group.members();
                let refused = members.filter(|m| self.wake_ups.refused().contains(m));
                let refused = refused.count();
                refused == 0 || group.threshold().spare() < refused
            })
    }

    fn after_refusal(&mut self, now: Time, free_after: Option<Duration>) -> Step {
        // Subscribe again only to members that refused. Suppose a fair lock was granted and given back because another
        // lock was refused: no wake-up is expected from it. Subscribing again whenever its subscription has ended would
        // acquire it and give it back in a loop, without a pause.
        let mut refused = self.wake_ups.refused().iter();
        if refused.any(|member| self.deaf.contains(member)) {
            return self.listen(now + self.member_timeout);
        }
        // A claim still exists in the millisecond in which its TTL ends; one millisecond later it is gone.
        let free = free_after.map_or(Duration::MAX, |d| {
            d.saturating_add(Duration::from_millis(1))
        });
        self.sleep(now, now + free.min(self.policy.poll_cap))
    }
}

fn give_up(loss: &Loss) -> GiveUp {
    match loss {
        Loss::TooSlow => GiveUp::TooSlow,
        Loss::NoQuorum | Loss::Quarantined { .. } => GiveUp::NoQuorum,
        Loss::Denied => GiveUp::Denied,
        Loss::Refused { .. } | Loss::Postponed => GiveUp::Contended,
        Loss::OtherMode(mode) => GiveUp::OtherMode(*mode),
    }
}
