//! Whether a connection that is silent has been swallowed by the network: another one is tried beside it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use quorlock_core::message::Request;

use super::Health;
use crate::timer::{self, Instant, Sleep};

/// The shortest silence that is suspicious. A server that forks, or runs another's script, is silent as long as that.
pub(crate) const LEAST: Duration = Duration::from_millis(25);

/// How long a server may be silent that was sent this request, before that is suspicious; `None` when the request says
/// nothing about it.
///
/// It is a sixth of the shortest lease. A watchdog renews when a third of the lease is over: the renewal that is
/// swallowed, this, and the attempt to connect leave time for several renewals that are not. The default member
/// time-out is a twentieth, so a server that is merely slow to answer and still of use is not suspected.
pub(crate) fn patience(request: &Request) -> Option<Duration> {
    let lease = match request {
        Request::Acquire(acquire) => Some(acquire.lease),
        Request::Renew(renew) => renew.claims.iter().map(|claim| claim.lease).min(),
        _ => None,
    };
    lease.map(|lease| (lease.length() / 6).max(LEAST))
}

/// One attempt to find out: it ends when the silent connection has been replaced, or could not be.
pub(crate) type ProbeAttempt = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Begins an attempt beside the silent connection of this health, and says how hesitant the new one is: by how many
/// doublings its own patience is longer. `None` when the transport is gone.
type Begin = Box<dyn Fn(Arc<Health>, u32) -> Option<ProbeAttempt> + Send + Sync>;

/// The attempts to find out.
pub(crate) struct Probes {
    begin: Begin,
    /// By how many doublings the patience is longer: replacements, one after another, none of which was heard either.
    hesitation: u32,
    timer: Option<Pin<Box<Sleep>>>,
    /// None is made before this.
    rests_until: Option<Instant>,
    failures: u32,
    under_way: Option<Probe>,
}

struct Probe {
    /// The silence that it is about.
    asked: u64,
    attempt: ProbeAttempt,
}

impl Probes {
    pub(crate) fn new(
        begin: impl Fn(Arc<Health>, u32) -> Option<ProbeAttempt> + Send + Sync + 'static,
        hesitation: u32,
    ) -> Self {
        Probes {
            begin: Box::new(begin),
            hesitation,
            timer: None,
            rests_until: None,
            failures: 0,
            under_way: None,
        }
    }

    /// Probes when the silence has become suspicious.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, health: &Arc<Health>) {
        loop {
            if let Some(probe) = &mut self.under_way {
                if probe.asked == health.asked() {
                    if probe.attempt.as_mut().poll(cx).is_pending() {
                        return;
                    }
                    // Had it come off, this connection would be in use no more.
                    self.failures = self.failures.saturating_add(1);
                    self.rests_until = Some(timer::now() + timer::delay(self.failures));
                } else {
                    // The server was merely slow.
                    self.failures = 0;
                }
                self.under_way = None;
            }
            let Some(due) = self.due(health) else {
                return;
            };
            if self.poll_timer(cx, due).is_pending() {
                return;
            }
            let hesitation = if health.has_served() {
                0
            } else {
                self.hesitation.saturating_add(1)
            };
            let Some(attempt) = (self.begin)(Arc::clone(health), hesitation) else {
                return;
            };
            self.under_way = Some(Probe {
                asked: health.asked(),
                attempt,
            });
        }
    }

    fn due(&self, health: &Health) -> Option<Instant> {
        let mut due = health.suspicious_at()?;
        if !health.has_served() && 0 < self.hesitation {
            // A server that answers each new connection and then keeps silent would be connected to all the time.
            due += timer::delay(self.hesitation);
        }
        Some(self.rests_until.map_or(due, |until| until.max(due)))
    }

    /// Ready when it is due.
    fn poll_timer(&mut self, cx: &mut Context<'_>, due: Instant) -> Poll<()> {
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(timer::sleep_until(due)));
        // Reset as seldom as possible: with every request what is due moves on.
        if due < timer.deadline() || timer.is_elapsed() {
            timer.as_mut().reset(due);
        }
        if timer.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        if timer::now() < due {
            timer.as_mut().reset(due);
            return timer.as_mut().poll(cx);
        }
        Poll::Ready(())
    }
}

impl std::fmt::Debug for Probes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Probes")
            .field("hesitation", &self.hesitation)
            .field("failures", &self.failures)
            .finish_non_exhaustive()
    }
}
