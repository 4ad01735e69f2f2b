//! A hold ends here and continues in another client.

use std::sync::Arc;

use crate::error::HandOverProblem;
use crate::shared::client::Client;
use crate::shared::hold::Hold;
use crate::shared::keeper::CleanUp;
use crate::telemetry;
use crate::ticket::{Ticket, TicketPart};

/// Ends the hold of one guard, whose place at the keeper is freed, and returns the ticket with which a client continues it.
pub(crate) fn hand_over(client: &Client, hold: &Arc<Hold>) -> Result<Ticket, HandOverProblem> {
    let now = client.now();
    let is_watched = hold.hand_over(now)?;
    telemetry::leaked();
    // A claim from an acquire that was not answered is no part of what is handed over. Left to itself it could keep the name
    // locked at a node after the next client's release. The keeper ends it: transports may need its runtime.
    let late = hold.take_late().into_iter();
    let late = late.filter(|late| !hold.may_stand_on(late.member));
    let orphans = late.map(|late| CleanUp::of(hold, late.member, now, Some(late.call)));
    client.keeper.leave(now, orphans.collect());
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
