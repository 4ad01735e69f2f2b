//! What an acquisition does after a lost round.

use std::time::Duration;

use super::contention::Refusal;
use super::{Acquisition, Because, GiveUp, Patience, Step};
use crate::round::{Loss, Order};
use crate::time::Time;

impl Acquisition {
    /// A round that began at `began` was lost. `random` is any 64 random bits.
    pub fn handle_loss(&mut self, now: Time, began: Time, loss: Loss, random: u64) {
        let took = now.since(began);
        self.pauses.handle_loss(random);
        self.note(&loss, began, took);
        self.step = match loss {
            Loss::OtherMode(_) | Loss::Denied => Step::GiveUp(give_up(&loss)),
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
                // The competitor that has the first member asks the rest, or has it all.
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
                let rivals = std::mem::take(&mut self.has_rivals);
                if !self.is_listening {
                    self.is_listening = true;
                    self.listen(now + self.member_timeout)
                } else if rivals && self.members.groups().count() == 1 {
                    self.after_collision(now, took)
                } else {
                    let is_collision = split && !self.may_be_held();
                    let vote = if split {
                        Refusal::Split
                    } else {
                        Refusal::Whole
                    };
                    self.contention.handle_vote(vote);
                    if is_collision {
                        Step::BackOff(self.pauses.after_loss(now, took))
                    } else {
                        if vote == Refusal::Whole && self.lost_places == 0 {
                            self.pauses.reset();
                        }
                        self.after_refusal(now, free_after)
                    }
                }
            }
        };
    }

    /// What a lost round says of the members and of competitors, whatever is done next.
    fn note(&mut self, loss: &Loss, began: Time, took: Duration) {
        // One member is no quorum. Where the first one alone answers, competitors that ask it first would be refused by
        // it every now and then, and would go on for ever.
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
        // One member cannot be asked before the rest.
        if is_outrun && 1 < self.members.len() {
            self.contention.handle_outrun();
        }
        if self.last_order == Order::FirstMember && self.member_timeout <= took {
            self.contention.handle_silent_first_member();
        }
    }

    /// Several have claims, and none has enough of them: each gives back what it has within a round trip or two, and no
    /// longer is the lock to stand idle. From now on all of them ask the first member before the rest, so that a round that
    /// a wake-up begins splits no vote.
    fn after_collision(&mut self, now: Time, took: Duration) -> Step {
        self.contention.handle_vote(Refusal::Split);
        self.contention.handle_outrun();
        let at = self.pauses.after_collision(now, took);
        self.sleep(now, at)
    }

    /// Whether a vote that split need not be a collision: one holder may have every member that refused, with fewer
    /// members than all. That is believed once; a second split in a row is a collision. So is a second place that was
    /// lost, whatever came between: the queues keep those who collide in step.
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
        // Only members that refused are listened to again. A fair lock that was granted, and given back for the sake
        // of another that was not, has nothing to say: asking anew whenever its subscription is gone would
        // take it, and give it back, without a pause.
        let mut refused = self.wake_ups.refused().iter();
        if refused.any(|member| self.deaf.contains(member)) {
            return self.listen(now + self.member_timeout);
        }
        // A claim exists until its TTL has passed, so one millisecond more finds it gone.
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
