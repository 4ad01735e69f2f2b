//! The command connection to a server: which one is current, and who makes the next.

mod attendance;

use std::pin::pin;
use std::sync::{Arc, OnceLock, PoisonError, Weak};

use quorlock_core::transport::{TransportError, Witness};
use tokio::sync::Notify;

pub(crate) use self::attendance::{Attendance, Witnesses};

use crate::error;
use crate::link::{Connection, Ended, Health, LEAST, Probes, Usage};
use crate::source::Wrong;
use crate::sync::{Mutex, MutexGuard};
use crate::target::Target;
use crate::timer::{self, Instant};

/// What an attempt has come to.
type Outcome = Result<Arc<Connection>, TransportError>;

/// One connection at a time, made when it is first needed and replaced when it has failed.
///
/// All callers that find none share one attempt, which runs in a task of its own: the caller that started it may be dropped.
/// They go on in the order in which they came, so that their requests leave in it. After a failed attempt calls fail at
/// once for a while that grows with every further failure.
///
/// While there are witnesses, there is always one that is good, one being made, or a rest after which one is made.
#[derive(Debug)]
pub(crate) struct ConnectionManager {
    target: Arc<Target>,
    state: Mutex<ConnectionState>,
}

#[derive(Debug)]
struct ConnectionState {
    phase: Phase,
    /// Attempts that failed since the last one that did not.
    failures: u32,
    /// Connections that ended before a call was answered on them, since one on which one was.
    unserved: u32,
    /// Told when there is a connection again.
    witnesses: Witnesses,
}

#[derive(Debug)]
enum Phase {
    /// There is none, and no attempt to make one.
    Down,
    /// There is none, and the next attempt is not made before this time, because of this.
    Resting(Instant, TransportError),
    /// One is being made.
    Connecting(Arc<ConnectAttempt>),
    /// This one.
    Up(Arc<Connection>),
}

/// An attempt to connect. (No `tokio::sync::watch`, which wakes those who wait in an order of its own.)
#[derive(Debug, Default)]
struct ConnectAttempt {
    outcome: OnceLock<Outcome>,
    ended: Notify,
}

impl ConnectAttempt {
    fn end(&self, outcome: Outcome) {
        // Only the first counts.
        let _ = self.outcome.set(outcome);
        self.ended.notify_waiters();
    }

    async fn outcome(&self) -> Outcome {
        let mut ended = pin!(self.ended.notified());
        // From here on an end is not missed.
        ended.as_mut().enable();
        if self.outcome.get().is_none() {
            ended.await;
        }
        let outcome = self.outcome.get().cloned();
        outcome.unwrap_or_else(|| Err(error::unreachable("BUG: an attempt without outcome")))
    }
}

/// Ends an attempt together with its runtime, if nothing else did.
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

    /// The current connection, if there is a good one.
    pub(crate) fn current(&self, now: Instant) -> Option<Arc<Connection>> {
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
    ) -> Result<Arc<Connection>, TransportError> {
        let attempt = match self.join(now) {
            Join::Ready(link) => return Ok(link),
            Join::Failed(error) => return Err(error),
            Join::Wait(attempt) => attempt,
            Join::Begin(attempt) => {
                self.begin(Arc::clone(&attempt));
                attempt
            }
        };
        let outcome = timer::by(deadline, attempt.outcome()).await;
        outcome.unwrap_or_else(|| Err(error::not_sent()))
    }

    /// The server on this connection is the wrong one, as it says by refusing a call: asks the source anew.
    pub(crate) fn refuse(self: &Arc<Self>, link: &Arc<Connection>) {
        self.retire(link);
        self.target.source().was_wrong(link.whence(), Wrong::Call);
    }

    /// Uses this connection no more: its replies could be late, or those to other requests. Calls that wait on it may end.
    pub(crate) fn retire(self: &Arc<Self>, link: &Arc<Connection>) {
        let mut state = self.lock();
        if let Phase::Up(current) = &state.phase
            && Arc::ptr_eq(current, link)
        {
            state.phase = Phase::Down;
            self.connect_if_awaited(state);
        }
    }

    /// Tells the witness when there is a connection again, and now if there is one.
    ///
    /// A waiter's call fails, the connection is made again, and only then the waiter gets here: it is told of what it has
    /// missed. A connection on which a reply is owed says nothing of its server, and what becomes of it will be told.
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
            // The end of the rest is waited for already.
            drop(state);
        }
        if is_reachable {
            witness.reachable();
        }
        Attendance::new(Arc::clone(self), number)
    }

    /// Whether the last attempt to connect has failed.
    pub(crate) fn is_failing(&self) -> bool {
        0 < self.lock().failures
    }

    /// Ends an attendance.
    fn leave(&self, number: u64) {
        let left = self.lock().witnesses.remove(number);
        // Outside of the lock, because dropping it may run code of the witness's.
        drop(left);
    }

    /// Sees to it that there will be a connection, if there is a witness. What is under way already is left alone.
    fn connect_if_awaited(self: &Arc<Self>, mut state: MutexGuard<'_, ConnectionState>) {
        if state.witnesses.is_empty() {
            return;
        }
        let now = timer::now();
        if let Phase::Resting(until, _) = &state.phase
            && now < *until
        {
            let until = *until;
            drop(state);
            timer::spawn(connect_after(Arc::downgrade(self), until));
        } else if let Join::Begin(attempt) = self.join_in(&mut state, now) {
            drop(state);
            self.begin(attempt);
        }
    }

    /// Sees to it that there will be another connection if the current one has ended, and there is a witness.
    ///
    /// A server that takes connections and ends them by itself would be connected to all the time: each that ended before a call
    /// was answered on it makes the next one wait longer.
    fn replace_ended(self: &Arc<Self>, mut state: MutexGuard<'_, ConnectionState>) {
        if let Phase::Up(link) = &state.phase
            && link.is_closed()
            && !state.witnesses.is_empty()
        {
            if link.has_served() {
                state.unserved = 0;
            } else {
                state.unserved = state.unserved.saturating_add(1);
                let until = timer::now() + self.target.source().rest(state.unserved);
                let why = error::unreachable("the server ended the connection before a call");
                state.phase = Phase::Resting(until, why);
            }
        }
        self.connect_if_awaited(state);
    }

    fn join(self: &Arc<Self>, now: Instant) -> Join {
        self.join_in(&mut self.lock(), now)
    }

    fn join_in(&self, state: &mut ConnectionState, now: Instant) -> Join {
        match &state.phase {
            Phase::Up(link) if self.is_good(link, now) => return Join::Ready(Arc::clone(link)),
            Phase::Resting(until, error) if now < *until => return Join::Failed(error.clone()),
            // One that has ended and left it at that ended with its runtime.
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
                let until = timer::now() + self.target.source().rest(state.failures);
                state.phase = Phase::Resting(until, error.clone());
            }
        }
        let is_up = outcome.is_ok();
        let witnesses = state.witnesses.all();
        // It may have ended already.
        self.replace_ended(state);
        reporter.0.end(outcome);
        if is_up {
            witnesses.iter().for_each(|witness| witness.reachable());
        }
    }

    /// A connection whose server has answered, and knows the scripts.
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

    /// What a connection does when it is silent for too long: it tries another one, for as long as the transport lives.
    fn probes(self: &Arc<Self>, hesitation: u32) -> Probes {
        let connection = Arc::downgrade(self);
        let begin = move |silent, hesitation| {
            let connection = connection.upgrade()?;
            Some(Box::pin(connection.probe(silent, hesitation)) as _)
        };
        Probes::new(begin, hesitation)
    }

    /// What happens when a connection has ended by itself.
    fn ended(self: &Arc<Self>) -> Ended {
        let connection = Arc::downgrade(self);
        Box::new(move || {
            if let Some(connection) = connection.upgrade() {
                connection.replace_ended(connection.lock());
            }
        })
    }

    /// Connects, and replaces the silent connection when the server has answered on the new one alone.
    async fn probe(self: Arc<Self>, silent: Arc<Health>, hesitation: u32) {
        let Some(link) = self.beside(hesitation).await else {
            return;
        };
        // A server that stood still answers both at the same time: the old one first, if it gets the time.
        timer::sleep_until(timer::now() + LEAST).await;
        self.replace(&silent, link);
    }

    /// A connection beside the current one, if the server answers on it.
    async fn beside(self: &Arc<Self>, hesitation: u32) -> Option<Arc<Connection>> {
        let deadline = timer::now() + self.target.config().connect_timeout;
        let opened = timer::by(deadline, self.open(hesitation, deadline)).await?;
        opened.ok().map(Arc::new)
    }

    /// Uses this connection from now on, if the current one is the silent one. Calls that wait on that are ended: a
    /// renewal is not sent again before it has come to its end, and its lease would run out meanwhile.
    fn replace(&self, silent: &Arc<Health>, by: Arc<Connection>) {
        let mut state = self.lock();
        let replaced = match &mut state.phase {
            Phase::Up(current) if current.has(silent) => std::mem::replace(current, by),
            _ => return,
        };
        let witnesses = state.witnesses.all();
        drop(state);
        replaced.close(&error::closed(
            "the server was silent on it and answered on another one",
        ));
        witnesses.iter().for_each(|witness| witness.reachable());
    }

    fn is_good(&self, link: &Connection, now: Instant) -> bool {
        link.is_good(now, self.target.config().call_bound())
    }

    /// Held for a few instructions, never across an await.
    fn lock(&self) -> MutexGuard<'_, ConnectionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a caller without a connection does.
enum Join {
    Ready(Arc<Connection>),
    Failed(TransportError),
    Wait(Arc<ConnectAttempt>),
    /// None is under way, and this one has to be begun.
    Begin(Arc<ConnectAttempt>),
}

/// Connects after a rest, if there is a witness then and nothing has come between.
async fn connect_after(connection: Weak<ConnectionManager>, until: Instant) {
    timer::sleep_until(until).await;
    let Some(connection) = connection.upgrade() else {
        return;
    };
    let state = connection.lock();
    // A witness that came meanwhile has set a time of its own for a later rest.
    if matches!(&state.phase, Phase::Resting(at, _) if *at == until) {
        connection.connect_if_awaited(state);
    }
}

#[cfg(test)]
mod tests;

#[cfg(all(test, shuttle))]
mod threads;
