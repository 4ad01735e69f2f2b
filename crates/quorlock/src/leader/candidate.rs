//! A candidate and its settings.

use std::future::Future;
use std::time::Duration;

use super::candidacy::{Candidacy, LeaderEvent};
use super::leadership::Leadership;
use crate::error::AcquireError;
use crate::lock::Lock;

/// A candidate for the leadership of a name. See [`Locks::leader`](crate::Locks::leader).
///
/// Cheap to clone. Two campaigns are two candidates, even if one `Candidate` started both.
#[derive(Clone, Debug)]
#[must_use]
pub struct Candidate {
    lock: Lock,
    rest: Option<Duration>,
}

impl Candidate {
    pub(crate) fn new(lock: Lock) -> Self {
        Candidate { lock, rest: None }
    }

    /// Sets the lease of the leader, which the watchdog renews after every third of it. Default:
    /// [`LocksBuilder::watchdog_lease`](crate::LocksBuilder::watchdog_lease), 30 s.
    ///
    /// When the leader dies, the name has no leader for up to one lease. On a majority of nodes it is one lease after
    /// a candidate first saw the leader's last renewal. A leader that reaches too few nodes stops leading within a
    /// lease.
    pub fn watchdog_lease(mut self, lease: Duration) -> Self {
        self.lock = self.lock.watchdog_lease(lease);
        self
    }

    /// Sets how long a leader that [stepped down](Leadership::step_down) is no candidate. Default: a tenth of the
    /// lease.
    ///
    /// The rest lets other candidates win: the release wakes them, and their requests need a round trip. If no other
    /// candidate waits, the name has no leader for this time. With zero the same candidate may win again at once.
    pub fn rest(mut self, rest: Duration) -> Self {
        self.rest = Some(rest);
        self
    }

    /// Starts a candidacy, which lasts until the stream is dropped. Nothing is sent before the stream is polled.
    pub fn campaign(&self) -> Candidacy {
        let rest = self.rest.unwrap_or(self.lock.lease_length() / 10);
        Candidacy::new(self.lock.clone(), rest)
    }

    /// Runs `work` in every term of this candidate until the work completes, then releases the leadership.
    ///
    /// At the end of a term the work is dropped at its current await point, before the name is released. The
    /// candidate then campaigns again, and `work` is called again in its next term. The term is checked before and
    /// after every poll of the work. If the work completes too late, its output is dropped, and it runs again.
    /// [`Leadership::step_down`] ends a term on purpose, from within the work or from another task.
    ///
    /// To stop, drop the future: the work is dropped first, and the name is released in the background.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use quorlock::{EmbeddedNode, Locks};
    /// # async fn schedule(term: quorlock::Token) -> usize { 7 }
    /// # let locks = Locks::on_node(EmbeddedNode::new())?;
    /// let done = locks
    ///     .leader("scheduler")
    ///     .run_while_leader(|leadership| schedule(leadership.term()))
    ///     .await?;
    /// # assert_eq!(done, 7);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`AcquireError::Config`] and [`AcquireError::Closed`], which waiting cannot cure. After other errors the
    /// candidate tries again; the `tracing` events report them.
    ///
    /// # Cancel safety
    /// If the future is dropped early, the work is dropped at its current await point, and then the name is released
    /// in the background.
    pub async fn run_while_leader<F: Future>(
        self,
        mut work: impl FnMut(Leadership) -> F,
    ) -> Result<F::Output, AcquireError> {
        let mut candidacy = self.campaign();
        loop {
            match candidacy.next().await {
                Some(LeaderEvent::Elected { leadership, .. }) => {
                    if let Some(output) = candidacy.lead(work(leadership)).await {
                        // The work was done in time, so a failed release does not take its output away.
                        let _ = candidacy.resign().await;
                        return Ok(output);
                    }
                }
                Some(LeaderEvent::Failed { error }) if candidacy.is_over() => return Err(error),
                Some(_) => {}
                None => return Err(AcquireError::Closed),
            }
        }
    }
}
