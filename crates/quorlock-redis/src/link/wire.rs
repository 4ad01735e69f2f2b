//! What requests of one connection go through.

use std::sync::Arc;
use std::time::Duration;

use quorlock_core::transport::{Cause, Execution, TransportError};
use redis::{Cmd, Value};

use super::Health;
use crate::error;
use crate::multiplexer::{Answer, Multiplexer, Owes};
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

    /// What the driver says when requests go out that have waited.
    pub(super) fn owes(&self) -> Owes {
        let health = Arc::clone(&self.health);
        Box::new(move |patience| health.owes_an_answer(timer::now(), patience))
    }

    /// Sends a command, whose reply is waited for until the deadline.
    ///
    /// # Errors
    /// A definite one when nothing was sent.
    pub(super) fn send(
        &self,
        now: Instant,
        cmd: &Cmd,
        deadline: Instant,
        patience: Duration,
    ) -> Result<Answer, TransportError> {
        // The driver, on another thread, would hear the answer before it is noted as owed, which it then is for ever: the
        // connection is probed and replaced for nothing.
        let owes = || self.health.owes_an_answer(now, patience);
        self.multiplexer.send(cmd, deadline, owes)
    }

    /// As [`Wire::send`], right behind another command, whose reply no caller takes.
    ///
    /// # Errors
    /// A definite one when nothing was sent.
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

    /// Sends a command while the connection is being made: an error says that there is none.
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
