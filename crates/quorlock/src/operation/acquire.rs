//! Waiting for a lock, alone or behind other waiters of the process.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use quorlock_core::acquisition::Patience;
use quorlock_core::message::Mode;
use quorlock_core::time::Time;

use crate::error::AcquireError;
use crate::operation::attempt::{Attempt, LockRequest, Waits};
use crate::operation::pass;
use crate::operation::queue::{Company, Key, Queue, QueueStep, Queues, Sharing, Waiter};
use crate::runtime::Timer;
use crate::shared::client::Client;
use crate::shared::hold::Hold;
use crate::telemetry;

/// A future that acquires a lock. If it is dropped early, at most one clean-up is left to the keeper, or the whole
/// attempt to the next waiter of the process.
pub(crate) struct Acquiring {
    client: Arc<Client>,
    queues: Arc<Queues>,
    wanted: LockRequest,
    waits: Waits,
    began: telemetry::Began,
    span: telemetry::Span,
    state: AcquiringState,
}

enum AcquiringState {
    New,
    /// One try, which is in no queue because it does not wait.
    Trying(Box<Attempt>),
    Queued(QueueTicket),
    Done,
}

/// A place in a queue.
struct QueueTicket {
    way: Way,
    queue: Arc<Queue>,
    waiter: Arc<Waiter>,
    /// The attempt, while this waiter polls it or after it has ended here.
    attempt: Option<Box<Attempt>>,
    timer: Option<Box<dyn Timer>>,
}

/// How a waiter requests the lock when it leads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// A reader without waiters in front tries once, alone in its queue: readers share the name and need no turn.
    Entering,
    /// Repeats rounds until the lock is won, on behalf of the waiters behind it, too.
    Waiting,
}

impl Acquiring {
    pub(crate) fn new(
        client: Arc<Client>,
        queues: Arc<Queues>,
        wanted: LockRequest,
        waits: Waits,
    ) -> Self {
        Acquiring {
            began: telemetry::begin(|| client.now()),
            span: telemetry::acquire_span(&*wanted.layout),
            client,
            queues,
            wanted,
            waits,
            state: AcquiringState::New,
        }
    }

    fn begin(&mut self) {
        self.state = if self.wanted.patience == Patience::Try {
            AcquiringState::Trying(attempt(&self.client, &self.wanted))
        } else if self.wanted.is_shared() && !self.queues.has_asked(self.key(Sharing::All)) {
            self.enter()
        } else {
            self.join()
        };
    }

    /// Tries once, without waiting behind others.
    fn enter(&self) -> AcquiringState {
        let number = self.client.fresh_owner_id().number;
        self.queue(Way::Entering, Sharing::Entering(number))
    }

    fn key(&self, sharing: Sharing) -> Key {
        (
            self.wanted.layout.key.clone(),
            self.wanted.lease,
            self.wanted.is_watched,
            sharing,
        )
    }

    fn join(&self) -> AcquiringState {
        // A place in a node's queue belongs to one waiter, and only the writer can read under its write lock.
        let is_alone = self.wanted.layout.has(Mode::Fair) || self.wanted.under.is_some();
        let sharing = match is_alone {
            true => Sharing::Alone(self.client.fresh_owner_id().number),
            false if self.wanted.elects => Sharing::Electing,
            false => Sharing::All,
        };
        self.queue(Way::Waiting, sharing)
    }

    fn queue(&self, way: Way, sharing: Sharing) -> AcquiringState {
        let key = self.key(sharing);
        let (queue, waiter) = self.queues.join(key, &self.client.keeper);
        AcquiringState::Queued(QueueTicket {
            way,
            queue,
            waiter,
            attempt: None,
            timer: None,
        })
    }

    /// Leaves the queue. The attempt passes to the next waiter, or ends.
    fn leave(&mut self) {
        if let AcquiringState::Queued(place) =
            std::mem::replace(&mut self.state, AcquiringState::Done)
        {
            drop(
                self.queues
                    .leave(&place.queue, &place.waiter, place.attempt),
            );
            if let Some(hold) = place.waiter.take_given() {
                pass::decline(&self.client, &hold);
            }
        }
    }

    fn step(&mut self, cx: &mut Context<'_>) -> Step {
        match &mut self.state {
            AcquiringState::New => {
                self.begin();
                Step::Again
            }
            AcquiringState::Trying(attempt) => match attempt.poll(cx, self.waits) {
                Poll::Pending => Step::Wait,
                Poll::Ready(result) => Step::End(result),
            },
            AcquiringState::Queued(place) => match place.queue.turn(&place.waiter, cx) {
                QueueStep::Lead(attempt, company) => self.lead(cx, attempt, company),
                QueueStep::Follow(failing_since) => self.follow(cx, failing_since),
                QueueStep::Take(hold) if pass::take(&self.client, &hold) => Step::End(Ok(hold)),
                // It came too late for what it was given.
                QueueStep::Rejoin | QueueStep::Take(_) => {
                    self.leave();
                    self.begin();
                    Step::Again
                }
                QueueStep::Enter => {
                    self.leave();
                    self.state = self.enter();
                    Step::Again
                }
                QueueStep::Fail(error) => Step::End(Err(error)),
            },
            AcquiringState::Done => Step::Wait,
        }
    }

    /// Polls the attempt, which the first waiter holds only during the poll.
    fn lead(
        &mut self,
        cx: &mut Context<'_>,
        attempt: Option<Box<Attempt>>,
        company: Company,
    ) -> Step {
        let AcquiringState::Queued(place) = &mut self.state else {
            return Step::Again;
        };
        let way = place.way;
        let attempt = attempt.unwrap_or_else(|| match way {
            Way::Waiting => self::attempt(&self.client, &self.wanted),
            Way::Entering => {
                let wanted = LockRequest {
                    patience: Patience::Try,
                    ..self.wanted.clone()
                };
                self::attempt(&self.client, &wanted)
            }
        });
        let attempt = place.attempt.insert(attempt);
        let polled = match company {
            Company::Alone => attempt.poll(cx, self.waits),
            Company::Followed => {
                let queue = Waker::from(place.queue.clone());
                attempt.poll(&mut Context::from_waker(&queue), self.waits)
            }
        };
        let Poll::Ready(result) = polled else {
            if let Some(attempt) = place.attempt.take() {
                place.queue.put_back(attempt, &place.waiter);
            }
            return Step::Wait;
        };
        if way == Way::Entering {
            return self.entered(result);
        }
        if let Err(error) = &result
            && attempt.has_given_up()
        {
            self.queues.fail(&place.queue, &place.waiter, error);
        }
        if result.is_ok() && self.wanted.is_shared() {
            // The writer has left. If readers were let in one after the other, the last of 200 would wait for 200
            // rounds.
            self.queues.open(&place.queue, &place.waiter);
        }
        Step::End(result)
    }

    /// Handles the end of a reader's single try.
    fn entered(&mut self, result: Result<Arc<Hold>, AcquireError>) -> Step {
        let now = self.client.now();
        match &result {
            Ok(_) | Err(AcquireError::Closed | AcquireError::Config(_)) => Step::End(result),
            Err(_) if self.waits.until.is_some_and(|until| until <= now) => Step::End(result),
            Err(_) => {
                // A writer is in the way, or too few nodes answer. From now on one waiter asks on behalf of all.
                self.leave();
                self.state = self.join();
                Step::Again
            }
        }
    }

    fn follow(&mut self, cx: &mut Context<'_>, failing_since: Option<Time>) -> Step {
        let AcquiringState::Queued(place) = &mut self.state else {
            return Step::Again;
        };
        if self.client.is_closed() || self.wanted.layout.is_closed() {
            return Step::End(Err(AcquireError::Closed));
        }
        self.waits.since.get_or_insert_with(|| self.client.now());
        let retry = &self.client.config.retry;
        let at = retry.gives_up_at(self.waits.limit(), failing_since);
        if at == Time::NEVER {
            return Step::Wait;
        }
        let timer = place
            .timer
            .get_or_insert_with(|| self.client.runtime.timer());
        if timer.poll_until(cx, at).is_pending() {
            return Step::Wait;
        }
        // Look once more: a grant may have arrived since the first waiter's last poll, and only the attempt knows the
        // nodes' errors.
        let Some(attempt) = place.queue.borrow() else {
            // Another thread is polling it, or the next first waiter is about to begin.
            cx.waker().wake_by_ref();
            return Step::Wait;
        };
        let queue = Waker::from(place.queue.clone());
        let attempt = place.attempt.insert(attempt);
        let result = attempt.look(&mut Context::from_waker(&queue), self.waits);
        // Leaving the queue puts the attempt back.
        Step::End(result)
    }
}

fn attempt(client: &Arc<Client>, wanted: &LockRequest) -> Box<Attempt> {
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
        let span = this.span.clone();
        loop {
            match span.within(|| this.step(cx)) {
                Step::Again => {}
                Step::Wait => return Poll::Pending,
                Step::End(result) => {
                    this.leave();
                    let told = result.as_ref().map(|hold| (hold.owner, hold.token(0)));
                    let now = || this.client.now();
                    span.acquired(told);
                    telemetry::acquired(&this.began, now, &this.wanted.layout, told);
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
