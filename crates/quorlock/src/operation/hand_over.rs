//! A hold ends here and continues in another client.

use std::sync::Arc;

use crate::error::HandOverProblem;
use crate::operation::release::hear_late;
use crate::shared::client::Client;
use crate::shared::hold::Hold;
use crate::telemetry;
use crate::ticket::{Ticket, TicketPart};

/// Ends the hold of one guard, whose place at the keeper is freed, and returns the ticket with which a client continues it.
pub(crate) fn hand_over(client: &Client, hold: &Arc<Hold>) -> Result<Ticket, HandOverProblem> {
    let now = client.now();
    let is_watched = hold.hand_over(now)?;
    telemetry::leaked();
    // What was not answered is no part of what is handed over. Left to itself it could keep the name locked at a node
    // after the next client's release.
    let orphans = hear_late(client, hold);
    client.keeper.unreserve(Some(hold));
    client.keeper.leave(now, orphans);
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
