//! Waiting for a lock, alone or behind others of the same process.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

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

#[derive(Clone)]
struct Place {
    key: Key,
    waiter: Arc<Waiter>,
    /// The waker that was registered last.
    waker: Waker,
}

impl Place {
    /// As [`Waiter::register`], for the leader: nobody fails on its behalf.
    fn register(&mut self, cx: &Context<'_>) {
        if !self.waker.will_wake(cx.waker()) {
            self.waker.clone_from(cx.waker());
            let _ = self.waiter.register(cx);
        }
    }
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

    fn begin(&mut self) {
        self.state = if self.wanted.patience == Patience::Try {
            State::Trying(attempt(&self.client, &self.wanted))
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
            let waker = Waker::noop().clone();
            State::Queued(Place { key, waiter, waker }, None)
        };
    }

    /// Leaves the queue; the attempt goes to the next waiter, or ends.
    fn leave(&mut self) {
        let (place, attempt) = match std::mem::replace(&mut self.state, State::Done) {
            State::Queued(place, _) => (place, None),
            State::Leading(place, attempt) => (place, Some(attempt)),
            State::New | State::Trying(_) | State::Done => return,
        };
        let left = self.client.queues.leave(&place.key, &place.waiter, attempt);
        drop(left);
    }

    fn step(&mut self, cx: &mut Context<'_>) -> Step {
        match &mut self.state {
            State::New => {
                self.begin();
                Step::Again
            }
            State::Trying(attempt) => match attempt.poll(cx, Time::NEVER) {
                Poll::Pending => Step::Wait,
                Poll::Ready(result) => Step::End(result),
            },
            State::Queued(..) => self.step_queued(cx),
            State::Leading(place, attempt) => {
                place.register(cx);
                let Poll::Ready(result) = attempt.poll(cx, self.give_up_at) else {
                    return Step::Wait;
                };
                if let Err(
                    error @ (AcquireError::NoQuorum { .. }
                    | AcquireError::TooSlow { .. }
                    | AcquireError::OtherMode { .. }),
                ) = &result
                    && attempt.has_given_up()
                {
                    self.client.queues.fail(&place.key, &place.waiter, error);
                }
                Step::End(result)
            }
            State::Done => Step::Wait,
        }
    }

    fn step_queued(&mut self, cx: &mut Context<'_>) -> Step {
        let State::Queued(place, timer) = &mut self.state else {
            return Step::Again;
        };
        if let Some(error) = place.waiter.register(cx) {
            return Step::End(Err(error));
        }
        if let Some(parked) = self.client.queues.lead(&place.key, &place.waiter) {
            let attempt = parked.unwrap_or_else(|| attempt(&self.client, &self.wanted));
            self.state = State::Leading(place.clone(), attempt);
            return Step::Again;
        }
        if self.client.is_closed() {
            return Step::End(Err(AcquireError::Closed));
        }
        if self.give_up_at != Time::NEVER {
            let timer = timer.get_or_insert_with(|| self.client.runtime.timer());
            if timer.poll_until(cx, self.give_up_at).is_ready() {
                let names = self.wanted.layout.title();
                return Step::End(Err(AcquireError::Contended { names }));
            }
        }
        Step::Wait
    }
}

fn attempt(client: &Arc<Client>, wanted: &Wanted) -> Box<Attempt> {
    Box::new(Attempt::new(client.clone(), wanted.clone()))
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
            match this.step(cx) {
                Step::Again => {}
                Step::Wait => return Poll::Pending,
                Step::End(result) => {
                    this.leave();
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
        self.leave();
    }
}
