//! The clients that hold a lock, by their labels, for the error of a wait that they outlasted.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use quorlock_core::message::{Inspect, Reply, Request};

use crate::error::{AcquireError, Holder};
use crate::operation::attempt::Waits;
use crate::shared::calls::Calls;
use crate::shared::client::Client;
use crate::shared::layout::Layout;

/// The largest number of holders that are looked for.
const MOST: usize = 8;

/// The shortest time for which a look waits.
const SHORTEST: Duration = Duration::from_millis(100);

/// Adds to the error of a wait which clients hold the lock, as far as the nodes and the user's rights tell it.
///
/// A client looks if it has a label itself, because each look costs a server a list of its connections; and no more often than a client
/// may ([`Client::may_look_for_holders`]), because a thousand waits may end at once. The look lasts for at most a tenth of the wait, or
/// 100 ms if that is longer.
pub(crate) async fn add_holders(
    client: &Client,
    layouts: &[Arc<Layout>],
    waits: Waits,
    mut error: AcquireError,
) -> AcquireError {
    let AcquireError::Contended {
        holder: Holder::Others,
        clients,
        ..
    } = &mut error
    else {
        return error;
    };
    let (Some(since), Some(until)) = (waits.since, waits.until) else {
        return error;
    };
    if !client.may_look_for_holders() {
        return error;
    }
    let waited = until.since(since);
    *clients = look(client, layouts, SHORTEST.max(waited / 10)).await;
    error
}

/// Asks the nodes for the client of each holder, until each was named by one node.
async fn look(client: &Client, layouts: &[Arc<Layout>], patience: Duration) -> Vec<String> {
    let deadline = client.now() + patience;
    let parts = layouts.iter().flat_map(|layout| &layout.parts).take(MOST);
    let mut found: Vec<Option<String>> = Vec::new();
    let mut calls = Calls::of(MOST);
    for part in parts {
        for node in part.nodes.iter() {
            let request = Request::Inspect(Inspect {
                name: part.name.clone(),
                finds_client: true,
            });
            calls.push(found.len(), node.call(request));
        }
        found.push(None);
    }
    let mut timer = client.runtime.timer();
    poll_fn(|cx| {
        calls.poll(cx, &*client.runtime, |part, received| {
            if let Ok(Reply::Inspect(reply)) = received.result
                && let Some(holder) = found.get_mut(part)
            {
                *holder = holder.take().or(reply.client);
            }
        });
        match calls.is_empty() || found.iter().all(Option::is_some) {
            true => Poll::Ready(()),
            false => timer.poll_until(cx, deadline),
        }
    })
    .await;
    let mut holders: Vec<String> = Vec::new();
    for holder in found.into_iter().flatten() {
        if !holders
            .iter()
            .any(|known| without_port(known) == without_port(&holder))
        {
            holders.push(holder);
        }
    }
    holders
}

/// Each node sees another port of the same client.
fn without_port(client: &str) -> &str {
    client.rsplit_once(':').map_or(client, |(client, _)| client)
}
