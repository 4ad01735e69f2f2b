//! The command connection to a server: the current one, and the attempt that makes the next one.

mod attendance;

use std::pin::pin;
use std::sync::{Arc, OnceLock, PoisonError, Weak};
use std::time::Duration;

use quorlock_core::transport::{TransportError, Witness};
use tokio::sync::Notify;

pub(crate) use self::attendance::{Attendance, Witnesses};

use crate::error;
use crate::link::{Connection, Ended, Health, LEAST, Probes, Usage};
use crate::source::Wrong;
use crate::sync::{Mutex, MutexGuard};
use crate::target::Target;
use crate::timer::{self, Instant};

/// The result of a connection attempt.
type Outcome = Result<Arc<Connection>, TransportError>;

/// Keeps one connection at a time. It is made when it is first needed, and replaced when it has failed.
///
/// All callers without a connection share one attempt. It runs in its own task, so the caller that started it may be
/// dropped. The callers continue in the order of their arrival, and send their requests in this order. After a failed
/// attempt, calls fail at once for a pause that grows with every further failure, but not beyond the longest pause of a call: a
/// client whose lease is 900 ms would lose its lock while it waits for the end of a second.
///
/// While there are witnesses, there is always a good connection, an attempt, or a pause after which an attempt begins.
#[derive(Debug)]
pub(crate) struct ConnectionManager {
    target: Arc<Target>,
    state: Mutex<ConnectionState>,
}

#[derive(Debug)]
struct ConnectionState {
    phase: Phase,
    /// Failed attempts since the last successful one.
    failures: u32,
    /// Connections that ended before a call was answered on them, since the last connection with an answered call.
    unserved: u32,
    /// The witnesses to notify when there is a connection again.
    witnesses: Witnesses,
}

#[derive(Debug)]
enum Phase {
    /// There is no connection, and no attempt.
    Down,
    /// There is no connection, and no attempt begins during this pause, unless a call cannot wait for its end.
    Resting(Pause),
    /// An attempt is in progress.
    Connecting(Arc<ConnectAttempt>),
    /// This connection is current.
    Up(Arc<Connection>),
}

/// The pause after a failed attempt.
#[derive(Debug)]
struct Pause {
    since: Instant,
    until: Instant,
    error: TransportError,
}

impl Pause {
    fn new(length: Duration, error: TransportError) -> Self {
        let since = timer::now();
        let until = since + length;
        Pause {
            since,
            until,
            error,
        }
    }

    /// Whether a call fails at once that stands pauses of this length.
    fn lasts(&self, now: Instant, longest: Duration) -> bool {
        let end = self.since.checked_add(longest);
        now < end.map_or(self.until, |end| end.min(self.until))
    }
}

/// An attempt to connect. (Not a `tokio::sync::watch`, which wakes waiters in a different order.)
#[derive(Debug, Default)]
struct ConnectAttempt {
    outcome: OnceLock<Outcome>,
    ended: Notify,
}

impl ConnectAttempt {
    fn end(&self, outcome: Outcome) {
        // Only the first outcome counts.
        let _ = self.outcome.set(outcome);
        self.ended.notify_waiters();
    }

    async fn outcome(&self) -> Outcome {
        let mut ended = pin!(self.ended.notified());
        // From here on, `end` is not missed, even if it is called between the check and the wait.
        ended.as_mut().enable();
        if self.outcome.get().is_none() {
            ended.await;
        }
        let outcome = self.outcome.get().cloned();
        outcome.unwrap_or_else(|| Err(error::unreachable("BUG: an attempt without outcome")))
    }
}

/// Ends an attempt when its runtime is shut down, if it has not ended before.
struct Reporter(Arc<ConnectAttempt>);

impl Drop for Reporter {
    fn drop(&mut self) {
        self.0.end(Err(error::unreachable(
            "the runtime that made the connection was shut down",
        )));
    }
}

impl ConnectionManager {
    pub(crate) fn new(target: Arc<Target>) -> Arc<Self> {
        Arc::new(ConnectionManager {
            target,
            state: Mutex::new(ConnectionState {
                phase: Phase::Down,
                failures: 0,
                unserved: 0,
                witnesses: Witnesses::default(),
            }),
        })
    }

    /// Returns the current connection, if there is a good one.
    pub(crate) fn current(&self, now: Instant) -> Option<Arc<Connection>> {
        match &self.lock().phase {
            Phase::Up(link) if self.is_good(link, now) => Some(Arc::clone(link)),
            _ => None,
        }
    }

    /// Returns the current connection, or the next one if it is made before the deadline.
    pub(crate) async fn next(
        self: &Arc<Self>,
        now: Instant,
        deadline: Instant,
        longest_pause: Duration,
    ) -> Result<Arc<Connection>, TransportError> {
        let attempt = match self.join(now, longest_pause) {
            Join::Ready(link) => return Ok(link),
            Join::Failed(error) => return Err(error),
            Join::Wait(attempt) => attempt,
            Join::Begin(attempt) => {
                self.begin(Arc::clone(&attempt));
                attempt
            }
        };
        let outcome = timer::by(deadline, attempt.outcome()).await;
        outcome.unwrap_or_else(|| Err(self.target.source().told(error::not_sent())))
    }

    /// Retires a connection whose server has refused a call as the wrong one. The source is queried again.
    pub(crate) fn refuse(self: &Arc<Self>, link: &Arc<Connection>) {
        self.retire(link);
        self.target.source().was_wrong(link.whence(), Wrong::Call);
    }

    /// Stops using a connection whose replies could be late, or belong to other requests. Calls in flight on it may
    /// end.
    pub(crate) fn retire(self: &Arc<Self>, link: &Arc<Connection>) {
        let mut state = self.lock();
        if let Phase::Up(current) = &state.phase
            && Arc::ptr_eq(current, link)
        {
            state.phase = Phase::Down;
            self.connect_if_awaited(state);
        }
    }

    /// Notifies the witness when there is a connection again, or immediately if there is one.
    ///
    /// Suppose a waiter's call fails, and the connection is made again before the waiter gets here: without an
    /// immediate notification it would wait for an event that has passed. A connection that owes a reply proves
    /// nothing about its server; the witness is notified when it is replaced.
    pub(crate) fn attend(self: &Arc<Self>, witness: Arc<dyn Witness>) -> Attendance {
        let now = timer::now();
        let mut state = self.lock();
        let is_first = state.witnesses.is_empty();
        let number = state.witnesses.add(Arc::clone(&witness));
        let (is_reachable, is_resting) = match &state.phase {
            Phase::Up(link) => (self.is_good(link, now) && link.owes_nothing(), false),
            Phase::Resting(..) => (false, true),
            Phase::Down | Phase::Connecting(_) => (false, false),
        };
        if is_first || !is_resting {
            self.connect_if_awaited(state);
        } else {
            // The task that waits for the end of the pause is already running.
            drop(state);
        }
        if is_reachable {
            witness.reachable();
        }
        Attendance::new(Arc::clone(self), number)
    }

    /// Whether the last attempt to connect failed.
    pub(crate) fn is_failing(&self) -> bool {
        0 < self.lock().failures
    }

    /// Removes a witness.
    fn leave(&self, number: u64) {
        let left = self.lock().witnesses.remove(number);
        // Outside the mutex, because the drop may run the witness's code, which may call this manager again.
        drop(left);
    }

    /// Makes sure that there will be a connection, if there is a witness. Does nothing if an attempt or a pause is in
    /// progress.
    fn connect_if_awaited(self: &Arc<Self>, mut state: MutexGuard<'_, ConnectionState>) {
        if state.witnesses.is_empty() {
            return;
        }
        let now = timer::now();
        if let Phase::Resting(pause) = &state.phase
            && now < pause.until
        {
            let until = pause.until;
            drop(state);
            timer::spawn(connect_after(Arc::downgrade(self), until));
        } else if let Join::Begin(attempt) = self.join_in(&mut state, now, Duration::MAX) {
            drop(state);
            self.begin(attempt);
        }
    }

    /// Makes sure that there will be another connection if the current one has ended and there is a witness.
    ///
    /// Without a pause, the client would reconnect in a tight loop to a server that accepts connections and closes
    /// them. So each connection that ends before a call was answered on it lengthens the pause before the next one.
    fn replace_ended(self: &Arc<Self>, mut state: MutexGuard<'_, ConnectionState>) {
        if let Phase::Up(link) = &state.phase
            && link.is_closed()
            && !state.witnesses.is_empty()
        {
            if link.has_served() {
                state.unserved = 0;
            } else {
                state.unserved = state.unserved.saturating_add(1);
                let length = self.target.source().rest(state.unserved);
                let why = error::unreachable("the server ended the connection before a call");
                state.phase = Phase::Resting(Pause::new(length, why));
            }
        }
        self.connect_if_awaited(state);
    }

    fn join(self: &Arc<Self>, now: Instant, longest_pause: Duration) -> Join {
        self.join_in(&mut self.lock(), now, longest_pause)
    }

    fn join_in(&self, state: &mut ConnectionState, now: Instant, longest_pause: Duration) -> Join {
        match &state.phase {
            Phase::Up(link) if self.is_good(link, now) => return Join::Ready(Arc::clone(link)),
            Phase::Resting(pause) if pause.lasts(now, longest_pause) => {
                return Join::Failed(pause.error.clone());
            }
            // An attempt that has ended but is still the current phase has ended with its runtime.
            Phase::Connecting(attempt) if attempt.outcome.get().is_none() => {
                return Join::Wait(Arc::clone(attempt));
            }
            _ => {}
        }
        let attempt = Arc::<ConnectAttempt>::default();
        state.phase = Phase::Connecting(Arc::clone(&attempt));
        Join::Begin(attempt)
    }

    fn begin(self: &Arc<Self>, attempt: Arc<ConnectAttempt>) {
        let reporter = Reporter(attempt);
        timer::spawn(Arc::clone(self).attempt(reporter));
    }

    async fn attempt(self: Arc<Self>, reporter: Reporter) {
        let deadline = timer::now() + self.target.config().connect_timeout;
        let outcome = timer::by(deadline, self.open(0, deadline))
            .await
            .unwrap_or_else(|| Err(self.target.source().told(error::no_handshake())))
            .map(Arc::new);
        let mut state = self.lock();
        match &outcome {
            Ok(link) => {
                state.failures = 0;
                state.phase = Phase::Up(Arc::clone(link));
            }
            Err(error) => {
                state.failures = state.failures.saturating_add(1);
                let length = self.target.source().rest(state.failures);
                state.phase = Phase::Resting(Pause::new(length, error.clone()));
            }
        }
        let is_up = outcome.is_ok();
        let witnesses = state.witnesses.all();
        // The new connection may have ended already.
        self.replace_ended(state);
        // The phase is set before the attempt ends. Otherwise a caller that is woken by a failure and tries again
        // immediately would find neither a connection nor a pause, and would begin the next attempt without a pause.
        reporter.0.end(outcome);
        if is_up {
            witnesses.iter().for_each(|witness| witness.reachable());
        }
    }

    /// Opens a connection, and checks that its server answers and has the scripts.
    async fn open(
        self: &Arc<Self>,
        hesitation: u32,
        deadline: Instant,
    ) -> Result<Connection, TransportError> {
        let open = |lead| async {
            let usage = Usage::Calls {
                probes: self.probes(hesitation),
                ended: self.ended(),
            };
            let link = Connection::open(&self.target, lead, usage, deadline).await?;
            link.greet(&self.target).await?;
            link.serves();
            Ok(link)
        };
        self.target.open(deadline, open).await
    }

    /// Returns the probes of a connection: when it is silent for too long, they try another one, for as long as
    /// the transport exists.
    fn probes(self: &Arc<Self>, hesitation: u32) -> Probes {
        let connection = Arc::downgrade(self);
        let begin = move |silent, hesitation| {
            let connection = connection.upgrade()?;
            Some(Box::pin(connection.probe(silent, hesitation)) as _)
        };
        Probes::new(begin, hesitation)
    }

    /// Returns what runs when a connection has ended by itself.
    fn ended(self: &Arc<Self>) -> Ended {
        let connection = Arc::downgrade(self);
        Box::new(move || {
            if let Some(connection) = connection.upgrade() {
                connection.replace_ended(connection.lock());
            }
        })
    }

    /// Connects again, and replaces the silent connection if the server answers only on the new one.
    async fn probe(self: Arc<Self>, silent: Arc<Health>, hesitation: u32) {
        let Some(link) = self.beside(hesitation).await else {
            return;
        };
        // A server that was suspended answers both connections at the same time. This pause lets the old one answer
        // first.
        timer::sleep_until(timer::now() + LEAST).await;
        self.replace(&silent, link);
    }

    /// Opens a connection in addition to the current one. Returns `None` if the server does not answer on it.
    async fn beside(self: &Arc<Self>, hesitation: u32) -> Option<Arc<Connection>> {
        let deadline = timer::now() + self.target.config().connect_timeout;
        let opened = timer::by(deadline, self.open(hesitation, deadline)).await?;
        opened.ok().map(Arc::new)
    }

    /// Makes this connection the current one, if the silent one still is. Calls in flight on the silent one end.
    /// Otherwise a renewal would wait there until its lease runs out, because it is not sent again before its call
    /// has ended.
    fn replace(&self, silent: &Arc<Health>, by: Arc<Connection>) {
        let mut state = self.lock();
        let replaced = match &mut state.phase {
            Phase::Up(current) if current.has(silent) => std::mem::replace(current, by),
            _ => return,
        };
        let witnesses = state.witnesses.all();
        // Outside the mutex: callers and witnesses run code that may call this manager again.
        drop(state);
        replaced.close(&error::closed(
            "the server was silent on it and answered on another one",
        ));
        witnesses.iter().for_each(|witness| witness.reachable());
    }

    fn is_good(&self, link: &Connection, now: Instant) -> bool {
        link.is_good(now, self.target.config().call_bound())
    }

    /// The mutex is held for a few instructions, never across an await.
    fn lock(&self) -> MutexGuard<'_, ConnectionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a caller without a connection does next.
enum Join {
    Ready(Arc<Connection>),
    Failed(TransportError),
    Wait(Arc<ConnectAttempt>),
    /// No attempt is in progress: the caller begins this one.
    Begin(Arc<ConnectAttempt>),
}

/// Connects after a pause, if there is a witness then and the phase is still that pause.
async fn connect_after(connection: Weak<ConnectionManager>, until: Instant) {
    timer::sleep_until(until).await;
    let Some(connection) = connection.upgrade() else {
        return;
    };
    let state = connection.lock();
    // A witness that was added during the pause has started its own task for a later pause.
    if matches!(&state.phase, Phase::Resting(pause) if pause.until == until) {
        connection.connect_if_awaited(state);
    }
}

#[cfg(test)]
mod tests;

#[cfg(all(test, shuttle))]
mod threads;
