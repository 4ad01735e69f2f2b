//! Continuing the hold of another process.

use std::sync::Arc;

use quorlock_core::acquisition::Patience;
use quorlock_core::name::Name;

use super::Lock;
use crate::error::AcquireError;
use crate::guard::Guard;
use crate::operation::attempt::{LockRequest, Waits};
use crate::shared::hold::Continued;
use crate::ticket::Ticket;

impl Lock {
    /// Continues the hold of this ticket, which is for this lock.
    pub(crate) async fn adopt(&self, ticket: &Ticket) -> Result<Guard, AcquireError> {
        let layout = self.layout()?.clone();
        let token = |given: &Name| {
            let mut parts = ticket.parts.iter();
            parts
                .find(|part| part.name == *given)
                .map(|part| part.token)
        };
        let tokens = layout.given().map(|given| token(given).unwrap_or_default());
        let continued = Continued {
            owner: ticket.owner,
            tokens: tokens.collect(),
        };
        let wanted = LockRequest {
            continues: Some(Arc::new(continued)),
            ..self.request(layout, Patience::Try, None)?
        };
        self.won(wanted, Waits::UNBOUNDED).await
    }
}
