//! Ending a guard whose hold continues in another process.

use super::{DroppedBy, Guard};
use crate::error::HandOverError;
use crate::operation::hand_over::hand_over;
use crate::ticket::Ticket;

impl Guard {
    /// Ends this guard and returns a ticket, with which another process goes on holding the lock: a web request locks, and a
    /// job releases.
    ///
    /// Nothing is sent, and nothing is renewed from now on. For [`Guard::validity`] the ticket can be
    /// [adopted](crate::Locks::adopt) and no one else gets the lock; [`Guard::extend`] makes this time longer. After that, the lock
    /// goes to the client that asks first. The [lost signal](Guard::lost) is ready, with [`Lost::Released`](crate::Lost::Released): this
    /// process must not use the lock any more. If it does, a resource that compares tokens notices, because the adopted guard has
    /// a larger [token](Guard::fencing_token). What [`at_least`](crate::Lock::at_least) demands is not passed on.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use quorlock::{EmbeddedNode, Locks, Ticket};
    /// # let node = EmbeddedNode::new();
    /// # let (web, worker) = (Locks::on_node(node.clone())?, Locks::on_node(node)?);
    /// let guard = web.lock("orders/42").acquire().await?;
    /// let message = guard.hand_over()?.to_string(); // put it into the queue of jobs
    ///
    /// let ticket: Ticket = message.parse()?; // in the other process
    /// match worker.adopt(&ticket).await? {
    ///     Some(guard) => guard.release().await?, // after the job
    ///     None => println!("too late, or another process has it"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`HandOverError`](crate::errors::HandOverError) with this guard if the lock is lost, a read lock, of several clients, or has other guards.
    pub fn hand_over(mut self) -> Result<Ticket, HandOverError<Guard>> {
        match hand_over(&self.client, &self.hold) {
            Ok(ticket) => {
                self.is_dropped_by = DroppedBy::Us;
                self.span.ended("handed over");
                Ok(ticket)
            }
            Err(problem) => Err(HandOverError {
                names: self.hold.layout.title(),
                guard: self,
                problem,
            }),
        }
    }
}
