//! The sending end of one connection.

use std::sync::Arc;
use std::time::Duration;

use quorlock_core::transport::{Cause, Execution, TransportError};
use redis::{Cmd, Value};

use super::Health;
use crate::error;
use crate::multiplexer::{Answer, Multiplexer, Native, Owes};
use crate::target::Target;
use crate::timer::{self, Instant};

/// The near end of a connection. Cheap to clone; it does not keep the connection alive.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    pub(super) multiplexer: Arc<Multiplexer>,
    pub(super) health: Arc<Health>,
}

impl Wire {
    pub(super) fn new() -> Self {
        Wire {
            multiplexer: Multiplexer::new(),
            health: Arc::new(Health::new(timer::now())),
        }
    }

    /// Returns what the driver calls when queued requests are sent.
    pub(super) fn owes(&self) -> Owes {
        let health = Arc::clone(&self.health);
        Box::new(move |patience| health.owes_an_answer(timer::now(), patience))
    }

    /// Sends a command, and waits for its reply until the deadline.
    ///
    /// # Errors
    /// A definite error if nothing was sent.
    pub(super) fn send(
        &self,
        now: Instant,
        cmd: &Cmd,
        deadline: Instant,
        patience: Duration,
    ) -> Result<Answer, TransportError> {
        // The request is dated, and its reply noted as owed, before the request can leave. Otherwise the driver, on
        // another thread, could receive the reply first. The reply would then be owed for ever, and the connection
        // would be replaced for no reason.
        let owes = || self.health.owes_an_answer(now, patience);
        self.multiplexer.send(cmd, deadline, owes)
    }

    /// Like [`Wire::send`], for the commands of a request without a script, whose replies are one array.
    ///
    /// # Errors
    /// A definite error if nothing was sent.
    pub(super) fn send_native(
        &self,
        now: Instant,
        native: Native,
        deadline: Instant,
        patience: Duration,
    ) -> Result<Answer, TransportError> {
        let owes = || self.health.owes_an_answer(now, patience);
        self.multiplexer.send_native(native, deadline, owes)
    }

    /// Like [`Wire::send`], directly after another command whose reply is discarded.
    ///
    /// # Errors
    /// A definite error if nothing was sent.
    pub(super) fn send_behind(
        &self,
        first: &Cmd,
        now: Instant,
        cmd: &Cmd,
        deadline: Instant,
        patience: Duration,
    ) -> Result<Answer, TransportError> {
        let owes = || self.health.owes_an_answer(now, patience);
        self.multiplexer.send_behind(first, cmd, deadline, owes)
    }

    /// Sends a command while the connection is being made. Its errors state that there is no connection.
    pub(super) async fn ask(&self, target: &Target, cmd: &Cmd) -> Result<Value, TransportError> {
        let now = timer::now();
        let patience = target.config().connect_timeout;
        let answer = self.send(now, cmd, now + patience, patience)?;
        answer.await.map_err(|error| match error.cause {
            Cause::TimedOut => error::no_handshake(),
            Cause::Closed if target.is_for_all_to_read() => error::closed_at_once(&error.detail),
            Cause::Closed => error::unreachable(error.detail),
            _ => error.with_execution(Execution::Definite),
        })
    }
}
