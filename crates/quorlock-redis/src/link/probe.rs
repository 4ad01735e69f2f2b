//! Detects that packets of a silent connection are lost, by trying another connection beside it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use quorlock_core::lease::Lease;
use quorlock_core::message::Request;

use super::Health;
use crate::timer::{self, Instant, Sleep};

/// The shortest silence that is suspicious. A server that forks, or runs a long script, is silent for up to this time.
pub(crate) const LEAST: Duration = Duration::from_millis(25);

/// How long a server may be silent after this request before the connection is suspected; `None` if the request
/// states no lease.
///
/// The patience is a sixth of the shortest lease. A watchdog renews after a third of the lease. If that renewal is
/// lost on the network, this patience and the attempt to connect leave time for several more renewals before the
/// lease ends. The default member time-out is a twentieth of the lease, so a server that is merely slow but still
/// useful is not suspected.
pub(crate) fn patience(request: &Request) -> Option<Duration> {
    lease_of(request).map(|lease| (lease.length() / 6).max(LEAST))
}

/// How long calls like this request may fail at once after a failed attempt to connect: a twelfth of the shortest lease.
///
/// Suppose A was cut off for less than half of its lease just after a renewal, so about a fifth of the lease is left when the
/// server can be reached again. This pause, the attempt to connect and the time to the next try of a renewal fit into it.
pub(crate) fn longest_pause(request: &Request) -> Duration {
    lease_of(request).map_or(Duration::MAX, |lease| (lease.length() / 12).max(LEAST))
}

/// The shortest lease that the request states.
fn lease_of(request: &Request) -> Option<Lease> {
    match request {
        Request::Acquire(acquire) => Some(acquire.lease),
        Request::Renew(renew) => renew.claims.iter().map(|claim| claim.lease).min(),
        _ => None,
    }
}

/// One probe. It ends when the silent connection has been replaced, or could not be.
pub(crate) type ProbeAttempt = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Begins a probe beside the silent connection of this health. The number is the hesitation of the new connection:
/// how many times its patience is doubled. `None` if the transport is gone.
type Begin = Box<dyn Fn(Arc<Health>, u32) -> Option<ProbeAttempt> + Send + Sync>;

/// The probes of a connection.
pub(crate) struct Probes {
    begin: Begin,
    /// How many times the patience is doubled: the number of replacements in a row on which the server did not answer
    /// either.
    hesitation: u32,
    timer: Option<Pin<Box<Sleep>>>,
    /// No probe begins before this time.
    rests_until: Option<Instant>,
    failures: u32,
    under_way: Option<Probe>,
}

struct Probe {
    /// The silence that the probe examines.
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
                    // If it had succeeded, this connection would no longer be in use.
                    self.failures = self.failures.saturating_add(1);
                    let longest = (health.patience() / 2).max(LEAST);
                    let pause = timer::delay(self.failures).min(longest);
                    self.rests_until = Some(timer::now() + pause);
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
            // Without this delay, the client would reconnect in a tight loop to a server that answers each new
            // connection and then falls silent.
            due += timer::delay(self.hesitation);
        }
        Some(self.rests_until.map_or(due, |until| until.max(due)))
    }

    /// Ready when the probe is due.
    fn poll_timer(&mut self, cx: &mut Context<'_>, due: Instant) -> Poll<()> {
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(timer::sleep_until(due)));
        // Reset rarely: every request moves the time at which the probe is due.
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
