//! The future that runs rounds until a lock is won.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use quorlock_core::acquisition::{Acquisition, GiveUp, Patience, Step};
use quorlock_core::message::Mode;
use quorlock_core::owner::OwnerId;
use quorlock_core::round::{Loss, Order, Outcome, Round};
use quorlock_core::time::Time;

use crate::error::{AcquireError, Holder};
use crate::runtime::Timer;
use crate::shared::client::Client;
use crate::shared::hold::{ClaimWatch, Hold};
use crate::shared::keeper::{CleanUp, LastAcquire};
use crate::shared::wake_ups::WakeUps;
use crate::telemetry;

mod losses;
mod raise;
mod request;
mod round;

use losses::Losses;
pub(crate) use request::{LockRequest, Waits};
use round::RunningRound;

/// An acquisition in progress. It can pass from one caller to another at any time. Dropping it releases what nodes
/// may have granted.
pub(crate) struct Attempt {
    client: Arc<Client>,
    wanted: LockRequest,
    machine: Acquisition,
    /// The owner of the present round. It stays the same while it has a place in a queue; otherwise each round has a
    /// new one.
    owner: Option<OwnerId>,
    has_place: bool,
    /// By themselves, like the ears: memory of less than a kilobyte is allocated much faster.
    running: Option<Box<RunningRound>>,
    ears: Option<Box<WakeUps>>,
    timer: Box<dyn Timer>,
    losses: Losses,
    /// When the first round began.
    began: Option<Time>,
    is_over: bool,
}

/// The largest number of holds with which a client is warned that it waits for its own lock. The check looks through
/// all holds under the keeper's mutex, and with 10,000 of them renewals would be late.
const MOST_LOOKED_THROUGH: usize = 1_000;

impl Attempt {
    pub(crate) fn new(client: Arc<Client>, wanted: LockRequest) -> Self {
        wanted
            .layout
            .parties()
            .for_each(|party| party.begin_attempt());
        let mut machine = Acquisition::new(
            client.config.retry,
            wanted.patience,
            wanted.member_timeout,
            wanted.layout.members.clone(),
        );
        let mut parts = wanted.layout.parts.iter();
        let ears = match parts.position(|part| part.mode == Mode::Fair) {
            Some(fair) => {
                machine.queue_at(fair);
                None
            }
            None if wanted.patience == Patience::Wait => {
                let known = client.keeper.contended().take(&wanted.layout.key);
                let ears = known.and_then(|known| known.begin(&mut machine, client.now()));
                ears.map(Box::new)
            }
            None => {
                let contended = client.keeper.contended();
                if contended.has_collided(client.now(), &wanted.layout.key) {
                    machine.expect_collision_of_tries();
                }
                None
            }
        };
        Attempt {
            timer: client.runtime.timer(),
            owner: None,
            has_place: false,
            client,
            wanted,
            machine,
            running: None,
            ears,
            losses: Losses::new(),
            began: None,
            is_over: false,
        }
    }

    /// Runs rounds until the lock is won or given up, or the caller's wait is over.
    ///
    /// It can be polled again for the next caller. After a time-out it continues with the requests in flight; after a
    /// win or a give-up it begins again. Subscriptions are kept, so that no wake-up is missed in between.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        waits: Waits,
    ) -> Poll<Result<Arc<Hold>, AcquireError>> {
        if self.is_over {
            self.is_over = false;
            let lease = self.wanted.lease.length();
            self.machine = self.machine.begin_again(self.client.now(), lease);
            self.losses = Losses::new();
            self.began = None;
        }
        let polled = self.poll_steps(cx, waits);
        if let Poll::Ready(result) = &polled {
            self.is_over = result.is_ok() || self.has_given_up();
        }
        polled
    }

    /// Returns what has arrived so far, for a caller whose wait is over. Sends no further requests.
    pub(crate) fn look(
        &mut self,
        cx: &mut Context<'_>,
        waits: Waits,
    ) -> Result<Arc<Hold>, AcquireError> {
        let is_under_way = !self.is_over && (self.running.is_some() || !self.is_asking());
        if is_under_way && let Poll::Ready(result) = self.poll(cx, waits) {
            return result;
        }
        Err(self.timed_out(waits))
    }

    fn is_asking(&self) -> bool {
        matches!(self.machine.step(), Step::Ask(_))
    }

    /// Whether one of the lock's clients was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.client.is_closed() || self.wanted.layout.is_closed()
    }

    /// When the first failed round since the last answer of a quorum began.
    pub(crate) fn failing_since(&self) -> Option<Time> {
        self.machine.failing_since()
    }

    /// Whether the attempt itself has ended without the lock. A time-out of its caller does not end it.
    pub(crate) fn has_given_up(&self) -> bool {
        matches!(self.machine.step(), Step::GiveUp(_))
    }

    fn poll_steps(
        &mut self,
        cx: &mut Context<'_>,
        waits: Waits,
    ) -> Poll<Result<Arc<Hold>, AcquireError>> {
        loop {
            if self.is_closed() {
                return Poll::Ready(Err(AcquireError::Closed));
            }
            if let Some(ears) = &mut self.ears {
                let machine = &mut self.machine;
                let client = &self.client;
                if ears.listen(cx, |member| machine.handle_wake(client.now(), member)) {
                    machine.handle_live();
                }
                if ears.take_return() {
                    machine.handle_return(client.now(), client.runtime.random());
                }
            }
            let at = match *self.machine.step() {
                Step::Ask(order) => match self.poll_round(cx, order) {
                    Poll::Ready(Some(hold)) => return Poll::Ready(Ok(hold)),
                    Poll::Ready(None) => continue,
                    Poll::Pending => self
                        .running
                        .as_ref()
                        .map_or(Time::NEVER, |running| running.poll_timeout()),
                },
                Step::Listen(at) => {
                    let owner = self.owner();
                    let layout = &self.wanted.layout;
                    let ears = self
                        .ears
                        .get_or_insert_with(|| Box::new(WakeUps::new(layout)));
                    if ears.subscribe(layout, owner) {
                        continue;
                    }
                    at
                }
                Step::Sleep(at) | Step::BackOff(at) => at,
                Step::GiveUp(why) => return Poll::Ready(Err(self.error(why, waits))),
            };
            let give_up_at = match self.wanted.patience {
                // A reader that waits first tries once. Its wait bounds this try, too.
                Patience::Try => waits.until.unwrap_or(Time::NEVER),
                Patience::Wait => self.machine.gives_up_at(waits.limit()),
            };
            if self.timer.poll_until(cx, at.min(give_up_at)).is_pending() {
                return Poll::Pending;
            }
            let now = self.client.now();
            if give_up_at <= now {
                return Poll::Ready(Err(self.timed_out(waits)));
            }
            self.machine.handle_timeout(now);
            if let Some(running) = &mut self.running {
                running.handle_timeout(now);
            }
        }
    }

    /// Ready with the hold if the round is won; ready with `None` if it is lost and the next step is due.
    fn poll_round(&mut self, cx: &mut Context<'_>, order: Order) -> Poll<Option<Arc<Hold>>> {
        let owner = self.owner();
        let running = self.running.get_or_insert_with(|| {
            let now = self.client.now();
            self.began.get_or_insert(now);
            let mute = self.machine.mute();
            Box::new(RunningRound::begin(now, owner, &self.wanted, order, mute))
        });
        let outcome = running.poll(cx, &self.client, &self.wanted);
        match outcome {
            Outcome::Pending => Poll::Pending,
            Outcome::Won => Poll::Ready(self.win()),
            Outcome::Lost(loss) => {
                self.lose(loss);
                Poll::Ready(None)
            }
        }
    }

    fn win(&mut self) -> Option<Arc<Hold>> {
        let mut running = self.running.take()?;
        self.has_place = false;
        self.stop_attending();
        self.begin_as_another();
        let Client { runtime, .. } = &*self.client;
        // Take in what has arrived. Later answers must not wake this task, so the waker does nothing.
        let mut cx = Context::from_waker(Waker::noop());
        running.hear(&mut cx, &**runtime, &self.wanted);
        let now = self.client.now();
        self.machine.handle_win(now, running.began);
        if let Some(was_there) = self.machine.was_passed() {
            let contended = self.client.keeper.contended();
            contended.passed(&self.wanted.layout.key, was_there);
        }
        telemetry::won(now.since(running.began));
        let watch = match self.client.config.watches_claims {
            true => ClaimWatch::begin(now),
            false => ClaimWatch::none(),
        };
        let hold = Arc::new(Hold::new(running.into_won(now, &self.wanted, watch)));
        self.client.keeper.keep(now, &hold);
        Some(hold)
    }

    fn lose(&mut self, mut loss: Loss) {
        let Some(mut running) = self.running.take() else {
            return;
        };
        let now = self.client.now();
        let is_first_refusal = self.losses.add(&loss, &running, now, &self.wanted.layout);
        if matches!(loss, Loss::Refused { .. } | Loss::Postponed) {
            let LockRequest { layout, .. } = &self.wanted;
            self.client.waiters.in_the_way(&layout.key);
            if self.client.waiters.wait_for_others(&layout.key)
                && let Some(rival) = layout.rival_key()
            {
                self.client.waiters.in_the_way(&rival.into());
            }
            if is_first_refusal {
                self.tell_of_itself();
            }
        }
        let began = running.began;
        if self.wanted.layout.has(Mode::Fair) && running.round.is_waiting() {
            // Keep the owner: a new one would start at the end of the queue.
            self.has_place = self.wanted.patience == Patience::Wait;
        } else {
            if let Some(member) = running.round.queued() {
                // A is granted X and waits at Y; B is granted Y and waits at X. Each releases its grant, and begins
                // the next round with the group where it was not first. If they collide again, `split` makes random
                // pauses separate them.
                let place = self.wanted.layout.place(member);
                self.machine.handle_lost_place(place.group);
                if let Loss::Refused { split, .. } = &mut loss {
                    *split = true;
                }
            }
            self.give_back(&mut running, now, Send::Now);
            self.begin_as_another();
        }
        self.machine.handle_silence(&running.round);
        // What was passed on is released: nothing is left that a second round could continue.
        let is_repeatable = self.wanted.continues.is_none();
        let may_collide = is_repeatable && self.may_collide(&loss, &running.round);
        if may_collide {
            let contended = self.client.keeper.contended();
            contended.collided(now, &self.wanted.layout.key);
        }
        if is_repeatable && running.round.has_rivals() || may_collide {
            self.machine.handle_rivals();
        }
        let random = self.client.runtime.random();
        self.machine.handle_loss(now, began, loss, random);
        if self.machine.failing_since().is_none() {
            self.stop_attending();
        } else if matches!(self.machine.step(), Step::BackOff(_)) {
            // Watch the nodes during the pause. Otherwise, when a primary dies and its replica is promoted after 100
            // ms, A sleeps for the rest of its back-off although a quorum is up.
            let layout = &self.wanted.layout;
            self.ears
                .get_or_insert_with(|| Box::new(WakeUps::new(layout)))
                .attend(layout);
        }
    }

    fn stop_attending(&mut self) {
        if let Some(ears) = &mut self.ears {
            ears.leave();
        }
    }

    /// Ends the attempt in its present state.
    fn abandon(&mut self) {
        if let Some(mut running) = self.running.take() {
            let now = self.client.now();
            self.give_back(&mut running, now, Send::Later);
        } else if let Some(owner) = self.owner.filter(|_| self.has_place) {
            let now = self.client.now();
            let kept = self.wanted.kept(Mode::Fair, &self.client);
            let orphans = self.wanted.layout.fair();
            let orphans = orphans
                .map(|(_, place)| CleanUp::new(place, owner, now, kept, LastAcquire::Answered));
            self.client.keeper.leave(now, orphans.collect());
        }
        self.has_place = false;
    }

    /// The owner of the next round.
    fn owner(&mut self) -> OwnerId {
        *self
            .owner
            .get_or_insert_with(|| self.client.fresh_owner_id())
    }

    /// Makes the next round use a new owner. A fresh number: suppose it kept the old one, and A's acquire of the first
    /// round is slow. A's release overtakes it and is tried again. This second release would end the claim that A was
    /// granted in the second round.
    fn begin_as_another(&mut self) {
        self.owner = None;
        let fair = self.wanted.layout.fair().map(|(member, _)| member);
        let fair: Vec<_> = fair.collect();
        if let Some(ears) = &mut self.ears {
            // The channel of a fair lock belongs to the owner; all other channels stay.
            ears.unsubscribe(&fair);
        }
        self.machine.handle_deaf(fair);
    }

    /// Releases every member that did not definitely refuse. Silence is not refusal: the acquire may be executed
    /// later, and its claim, which no client knows of, would keep B out for a lease.
    fn give_back(&mut self, running: &mut RunningRound, now: Time, send: Send) {
        let had_place = std::mem::take(&mut self.has_place);
        let orphans = self.wanted.layout.all().filter(|(m, place)| {
            running.round.may_hold(*m) || had_place && place.mode == Mode::Fair
        });
        let orphans = orphans.map(|(member, place)| {
            let acquire = match running.calls.take(|(asked, _)| *asked == member) {
                Some(call) => LastAcquire::Unanswered(call),
                None if running.round.is_mute(member) => LastAcquire::Lost,
                None => LastAcquire::Answered,
            };
            let clean_up = if had_place && place.mode == Mode::Fair {
                CleanUp::of_waiter
            } else {
                CleanUp::new
            };
            let kept = self.wanted.kept(place.mode, &self.client);
            let mut orphan = clean_up(place, running.owner, now, kept, acquire);
            if send == Send::Now {
                orphan.send_release(now, &*self.client.runtime);
            }
            orphan
        });
        self.client.keeper.leave(now, orphans.collect());
    }

    fn error(&self, why: GiveUp, waits: Waits) -> AcquireError {
        let now = self.client.now();
        let tried = now.since(waits.since.or(self.began).unwrap_or(now));
        self.losses
            .error(why, &self.wanted, tried, || self.holder())
    }

    /// Tells if the wait that begins now is for a lock that this client holds.
    fn tell_of_itself(&self) {
        let keeper = &self.client.keeper;
        if self.wanted.patience == Patience::Wait
            && telemetry::hears_of_itself()
            && keeper.len() <= MOST_LOOKED_THROUGH
            && keeper.holds_some_of(&self.wanted.layout)
        {
            telemetry::waits_for_itself(&*self.wanted.layout);
        }
    }

    /// Whether this client or others hold the lock. A try does not check.
    fn holder(&self) -> Holder {
        let keeper = &self.client.keeper;
        if self.wanted.patience == Patience::Wait && keeper.holds_some_of(&self.wanted.layout) {
            Holder::ThisClient
        } else {
            Holder::Others
        }
    }

    /// Whether a lost try may have collided with another one: it had a part of the members, or of the groups, for itself. Repeating
    /// it in vain costs a round.
    fn may_collide(&self, loss: &Loss, round: &Round) -> bool {
        self.wanted.patience == Patience::Try
            && match loss {
                Loss::Refused { split: true, .. } if !round.has_holder() => true,
                Loss::Refused { .. } => round.is_divided(),
                _ => false,
            }
    }

    /// The error when the caller's wait is over: the loss of the last finished round, or the state of the first
    /// round if none has finished. A round without a refusal counts as no quorum, because silence is not contention.
    fn timed_out(&mut self, waits: Waits) -> AcquireError {
        let why = match (self.machine.last_loss(), &self.running) {
            (Some(why), _) => why,
            (None, Some(running)) if !running.round.has_refused() => {
                self.losses.problems = running.missing(&self.wanted.layout);
                GiveUp::NoQuorum
            }
            (None, _) => GiveUp::Contended,
        };
        self.error(why, waits)
    }
}

/// When the releases of a lost round are sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Send {
    /// Now, before the requests of the next round. Otherwise a member would refuse those because of this client's own
    /// claim.
    Now,
    /// When the keeper's task runs.
    Later,
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.abandon();
        if let Some(ears) = self.ears.take()
            && ears.is_live()
            && !self.wanted.layout.has(Mode::Fair)
        {
            let key = &self.wanted.layout.key;
            self.client.keeper.rest(self.client.now(), key, *ears);
        }
        for party in self.wanted.layout.parties() {
            // A ends this attempt after B was closed. A's keeper has already released its holds on B's nodes, and
            // would not notice the orphans that this attempt has just left there.
            if party.is_closed() && !Arc::ptr_eq(party, &self.client.party) {
                self.client.keeper.close_others();
            }
            party.end_attempt();
        }
    }
}

impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt")
            .field("wanted", &self.wanted)
            .field("machine", &self.machine)
            .finish_non_exhaustive()
    }
}
