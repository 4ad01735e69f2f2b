//! Waiting for a lock, alone or behind others of the same process.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use quorlock_core::acquisition::Patience;
use quorlock_core::message::Mode;
use quorlock_core::time::Time;

use crate::attempt::{Attempt, Wanted};
use crate::client::Client;
use crate::error::AcquireError;
use crate::hold::Hold;
use crate::queue::{Key, Waiter};
use crate::runtime::Timer;
use crate::telemetry;

/// A future that wins the lock. Dropped early, it leaves at most one clean-up to the keeper, or its whole attempt to
/// the next waiter of the process.
pub(crate) struct Acquiring {
    client: Arc<Client>,
    wanted: Wanted,
    give_up_at: Time,
    began: telemetry::Began,
    state: State,
}

enum State {
    New,
    /// A try stands in no queue: it does not wait.
    Trying(Box<Attempt>),
    Queued(Place, Option<Box<dyn Timer>>),
    Leading(Place, Box<Attempt>),
    Done,
}

struct Place {
    key: Key,
    waiter: Arc<Waiter>,
}

impl Acquiring {
    pub(crate) fn new(client: Arc<Client>, wanted: Wanted, give_up_at: Time) -> Self {
        Acquiring {
            began: telemetry::begin(&client),
            client,
            wanted,
            give_up_at,
            state: State::New,
        }
    }

    fn attempt(&self) -> Box<Attempt> {
        Box::new(Attempt::new(self.client.clone(), self.wanted.clone()))
    }

    fn begin(&mut self) {
        self.state = if self.wanted.patience == Patience::Try {
            State::Trying(self.attempt())
        } else {
            // A place in a node's queue is one waiter's, and only its writer reads under a write lock.
            let is_alone = self.wanted.layout.has(Mode::Fair) || self.wanted.under.is_some();
            let alone = match is_alone {
                true => self.client.next_owner().number,
                false => 0,
            };
            let key = (
                self.wanted.layout.key.clone(),
                self.wanted.lease,
                self.wanted.is_watched,
                alone,
            );
            let waiter = self.client.queues.join(&key);
            State::Queued(Place { key, waiter }, None)
        };
    }

    /// Leaves the queue; the attempt goes to the next waiter, or ends.
    fn leave(&mut self, place: &Place, attempt: Option<Box<Attempt>>) {
        let left = self.client.queues.leave(&place.key, &place.waiter, attempt);
        drop(left);
    }

    fn poll_queued(
        &mut self,
        cx: &mut Context<'_>,
        place: Place,
        mut timer: Option<Box<dyn Timer>>,
    ) -> Step {
        if let Some(error) = place.waiter.register(cx) {
            return Step::End(Err(error));
        }
        if let Some(parked) = self.client.queues.lead(&place.key, &place.waiter) {
            let attempt = parked.unwrap_or_else(|| self.attempt());
            self.state = State::Leading(place, attempt);
            return Step::Again;
        }
        if self.client.is_closed() {
            self.leave(&place, None);
            return Step::End(Err(AcquireError::Closed));
        }
        if self.give_up_at != Time::NEVER {
            let timer = timer.get_or_insert_with(|| self.client.runtime.timer());
            if timer.poll_until(cx, self.give_up_at).is_ready() {
                self.leave(&place, None);
                let names = self.wanted.layout.title();
                return Step::End(Err(AcquireError::Contended { names }));
            }
        }
        self.state = State::Queued(place, timer);
        Step::Wait
    }

    fn poll_leading(
        &mut self,
        cx: &mut Context<'_>,
        place: Place,
        mut attempt: Box<Attempt>,
    ) -> Step {
        // Nobody fails on behalf of the leader.
        let _ = place.waiter.register(cx);
        match attempt.poll(cx, self.give_up_at) {
            Poll::Pending => {
                self.state = State::Leading(place, attempt);
                Step::Wait
            }
            Poll::Ready(result) => {
                if let Err(
                    error @ (AcquireError::NoQuorum { .. }
                    | AcquireError::TooSlow { .. }
                    | AcquireError::OtherMode { .. }),
                ) = &result
                    && attempt.has_given_up()
                {
                    self.client.queues.fail(&place.key, &place.waiter, error);
                }
                self.leave(&place, Some(attempt));
                Step::End(result)
            }
        }
    }
}

enum Step {
    Again,
    Wait,
    End(Result<Arc<Hold>, AcquireError>),
}

impl Future for Acquiring {
    type Output = Result<Arc<Hold>, AcquireError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        loop {
            let step = match std::mem::replace(&mut this.state, State::Done) {
                State::New => {
                    this.begin();
                    Step::Again
                }
                State::Trying(mut attempt) => match attempt.poll(cx, Time::NEVER) {
                    Poll::Pending => {
                        this.state = State::Trying(attempt);
                        Step::Wait
                    }
                    Poll::Ready(result) => Step::End(result),
                },
                State::Queued(place, timer) => this.poll_queued(cx, place, timer),
                State::Leading(place, attempt) => this.poll_leading(cx, place, attempt),
                State::Done => Step::Wait,
            };
            match step {
                Step::Again => {}
                Step::Wait => return Poll::Pending,
                Step::End(result) => {
                    let told = result.as_deref();
                    telemetry::acquired(&this.client, this.began, &this.wanted.layout, told);
                    return Poll::Ready(result);
                }
            }
        }
    }
}

impl Drop for Acquiring {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.state, State::Done) {
            State::Queued(place, _) => self.leave(&place, None),
            State::Leading(place, attempt) => self.leave(&place, Some(attempt)),
            State::New | State::Trying(_) | State::Done => {}
        }
    }
}
