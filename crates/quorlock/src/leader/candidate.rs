//! A candidate, and its settings.

use std::future::Future;
use std::time::Duration;

use super::candidacy::{Candidacy, LeaderEvent};
use super::leadership::Leadership;
use crate::error::AcquireError;
use crate::lock::Lock;

/// A candidate for the leadership of a name. See [`Locks::leader`](crate::Locks::leader).
///
/// Cheap to clone; two campaigns are two candidates, also of one `Candidate`.
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

    /// The lease of the leader, which is renewed every third of it for as long as it leads. Default
    /// [`LocksBuilder::watchdog_lease`](crate::LocksBuilder::watchdog_lease), 30 s.
    ///
    /// It is how long the name has no leader when the leader dies, and on a majority of nodes a lease after a candidate has first
    /// seen the last renewal. A leader that reaches too few nodes leads for less than a lease.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lock = self.lock.renewed_lease(lease);
        self
    }

    /// How long a leader that [stepped down](Leadership::step_down) is no candidate, so that others get their turn. Default a
    /// tenth of the lease: waiters are woken by the release, and need a round trip. Where no other candidate waits, the name has
    /// no leader for that long. With zero it may win again at once.
    pub fn rest(mut self, rest: Duration) -> Self {
        self.rest = Some(rest);
        self
    }

    /// Becomes a candidate, until the stream is dropped. Nothing happens before the stream is polled.
    pub fn campaign(&self) -> Candidacy {
        let rest = self.rest.unwrap_or(self.lock.lease_length() / 10);
        Candidacy::new(self.lock.clone(), rest)
    }

    /// Runs `work` in every term in which this candidate leads, until it ends by itself, and gives the leadership back then.
    ///
    /// At the end of a term the work is dropped where it stands, before the name is released, and the candidate runs again: `work` is called
    /// anew in the next term. Whether the term lasts is looked at before every poll of the work and after the last one;
    /// what work returns that ended too late is dropped, and it runs again. [`Leadership::step_down`], from within the work or
    /// from another task, ends a term on purpose.
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
    /// [`AcquireError::Config`] and [`AcquireError::Closed`], which no waiting cures. Nodes that do not answer, or refuse,
    /// are asked again; the `tracing` events tell of them.
    ///
    /// # Cancel safety
    /// Dropped early, the work is dropped where it stands, and then the name is released in the background.
    pub async fn run_while_leader<F: Future>(
        self,
        mut work: impl FnMut(Leadership) -> F,
    ) -> Result<F::Output, AcquireError> {
        let mut candidacy = self.campaign();
        loop {
            match candidacy.next().await {
                Some(LeaderEvent::Elected { leadership, .. }) => {
                    if let Some(output) = candidacy.lead(work(leadership)).await {
                        // The work was done in time: what becomes of the release does not take its result away.
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
