//! The command connection to a server: which one is current, and who makes the next.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quorlock_core::transport::TransportError;
use tokio::sync::watch;

use crate::error;
use crate::link::Link;
use crate::target::Target;
use crate::timer::{self, Instant};

/// What an attempt has come to; `None` while it goes on.
type Outcome = Option<Result<Arc<Link>, TransportError>>;

/// One connection at a time, made when it is first needed and replaced when it has failed.
///
/// All callers that find none share one attempt, which runs in a task of its own: whoever started it may be dropped.
/// After a failed attempt calls fail at once for a while that grows with every further failure.
#[derive(Debug)]
pub(crate) struct Connection {
    target: Arc<Target>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    /// Attempts that failed since the last one that did not.
    failures: u32,
}

#[derive(Debug)]
enum Phase {
    /// There is none, and nobody makes one.
    Down,
    /// There is none, and none is to be made before this time, because of this.
    Resting(Instant, TransportError),
    /// One is being made.
    Connecting(watch::Receiver<Outcome>),
    /// This one.
    Up(Arc<Link>),
}

impl Connection {
    pub(crate) fn new(target: Arc<Target>) -> Arc<Self> {
        Arc::new(Connection {
            target,
            state: Mutex::new(State {
                phase: Phase::Down,
                failures: 0,
            }),
        })
    }

    /// The current connection, if there is a good one.
    pub(crate) fn current(&self, now: Instant) -> Option<Arc<Link>> {
        match &self.lock().phase {
            Phase::Up(link) if self.is_good(link, now) => Some(Arc::clone(link)),
            _ => None,
        }
    }

    /// The current connection, or the next one, if it comes before the deadline.
    pub(crate) async fn next(
        self: &Arc<Self>,
        now: Instant,
        deadline: Instant,
    ) -> Result<Arc<Link>, TransportError> {
        let mut attempt = match self.join(now) {
            Join::Ready(link) => return Ok(link),
            Join::Failed(error) => return Err(error),
            Join::Wait(attempt) => attempt,
        };
        let outcome = timer::by(deadline, attempt.wait_for(Option::is_some)).await;
        match outcome {
            None => Err(error::not_sent()),
            Some(Ok(outcome)) => match &*outcome {
                Some(Ok(link)) => Ok(Arc::clone(link)),
                Some(Err(error)) => Err(error.clone()),
                None => Err(error::unreachable("BUG: an attempt without outcome")),
            },
            Some(Err(_)) => Err(error::unreachable(
                "the runtime that made the connection was shut down",
            )),
        }
    }

    /// Uses this connection no more: its replies could be late, or somebody else's. Calls that wait on it may end.
    pub(crate) fn retire(&self, link: &Arc<Link>) {
        let mut state = self.lock();
        if let Phase::Up(current) = &state.phase
            && Arc::ptr_eq(current, link)
        {
            state.phase = Phase::Down;
        }
    }

    fn join(self: &Arc<Self>, now: Instant) -> Join {
        let mut state = self.lock();
        match &state.phase {
            Phase::Up(link) if self.is_good(link, now) => return Join::Ready(Arc::clone(link)),
            Phase::Resting(until, error) if now < *until => return Join::Failed(error.clone()),
            // An attempt whose sender is gone ended with its runtime.
            Phase::Connecting(attempt) if attempt.has_changed().is_ok() => {
                return Join::Wait(attempt.clone());
            }
            _ => {}
        }
        let (report, attempt) = watch::channel(None);
        state.phase = Phase::Connecting(attempt.clone());
        drop(state);
        timer::spawn(Arc::clone(self).attempt(report));
        Join::Wait(attempt)
    }

    async fn attempt(self: Arc<Self>, report: watch::Sender<Outcome>) {
        let deadline = timer::now() + self.target.config().connect_timeout;
        let outcome = timer::by(deadline, Link::open(&self.target))
            .await
            .unwrap_or_else(|| Err(error::no_handshake()))
            .map(Arc::new);
        let mut state = self.lock();
        match &outcome {
            Ok(link) => {
                state.failures = 0;
                state.phase = Phase::Up(Arc::clone(link));
            }
            Err(error) => {
                state.failures = state.failures.saturating_add(1);
                let until = timer::now() + timer::delay(state.failures);
                state.phase = Phase::Resting(until, error.clone());
            }
        }
        drop(state);
        // Nobody may be waiting any more.
        let _ = report.send(Some(outcome));
    }

    fn is_good(&self, link: &Link, now: Instant) -> bool {
        link.is_good(now, self.target.config().call_timeout)
    }

    /// Held for a few instructions, never across an await.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a caller without a connection does.
enum Join {
    Ready(Arc<Link>),
    Failed(TransportError),
    Wait(watch::Receiver<Outcome>),
}
