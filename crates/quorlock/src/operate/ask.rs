//! One request to every node, within a bound.

use std::future::poll_fn;
use std::task::Poll;

use quorlock_core::message::{Reply, Request};
use quorlock_core::transport::{Cause, Execution, TransportError};

use crate::calls::Calls;
use crate::locks::Locks;

/// What each node answers, with its address, or why it does not.
pub(super) async fn all<T>(
    locks: &Locks,
    request: &Request,
    mut take: impl FnMut(Reply) -> Option<T>,
) -> Vec<(String, Result<T, TransportError>)> {
    let client = locks.client();
    let patience = client.config.member_timeout(client.config.watchdog_lease);
    let deadline = client.now() + patience;
    let mut calls = Calls::new();
    let mut answers = Vec::new();
    for (index, node) in locks.nodes().iter().enumerate() {
        calls.push(index, node.call(request.clone()));
        answers.push(None);
    }
    let mut timer = client.runtime.timer();
    poll_fn(|cx| {
        calls.poll(cx, |index, result| {
            if let Some(place) = answers.get_mut(index) {
                *place = Some(result.and_then(|reply| take(reply).ok_or_else(strange)));
            }
        });
        if answers.iter().all(Option::is_some) {
            return Poll::Ready(());
        }
        timer.poll_until(cx, deadline)
    })
    .await;
    let addresses = locks.nodes().iter().map(|node| node.address().to_owned());
    let late = || error(Cause::TimedOut, format!("no answer within {patience:?}"));
    let answers = answers
        .into_iter()
        .map(|a| a.unwrap_or_else(|| Err(late())));
    addresses.zip(answers).collect()
}

fn strange() -> TransportError {
    error(
        Cause::Protocol,
        "the transport brought the answer to another request".into(),
    )
}

fn error(cause: Cause, detail: String) -> TransportError {
    TransportError {
        execution: Execution::Indeterminate,
        cause,
        detail,
    }
}
