//! A hold ends here and continues in another client.

use std::sync::Arc;

use crate::error::HandOverProblem;
use crate::shared::client::Client;
use crate::shared::hold::Hold;
use crate::telemetry;
use crate::ticket::{Ticket, TicketPart};

/// Ends the hold of one guard, whose place at the keeper is freed, and returns the ticket with which a client continues it.
pub(crate) fn hand_over(client: &Client, hold: &Arc<Hold>) -> Result<Ticket, HandOverProblem> {
    let now = client.now();
    let is_watched = hold.hand_over(now)?;
    telemetry::leaked();
    // The answers that are still missing are not waited for, and nothing is released: whatever was granted passes on, too, now or
    // when the next client re-acquires its missing members.
    drop(hold.take_late());
    client.keeper.unreserve(Some(hold));
    let parts = hold.layout.parts.iter().enumerate();
    let parts = parts.map(|(group, part)| TicketPart {
        name: part.given.clone(),
        mode: part.mode,
        token: hold.token(group),
    });
    Ok(Ticket {
        owner: hold.owner,
        lease: hold.lease(),
        is_watched,
        parts: parts.collect(),
    })
}
