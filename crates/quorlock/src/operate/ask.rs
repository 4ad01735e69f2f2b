//! One request to every node, within a bound.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use quorlock_core::message::{Reply, Request};
use quorlock_core::transport::{Cause, TransportError};

use crate::error::Quarantine;
use crate::locks::Locks;
use crate::shared::calls::Calls;
use crate::shared::layout::Node;
use crate::telemetry;

/// What each node answers, with its address, or why it does not.
pub(super) async fn all<T>(
    locks: &Locks,
    request: &Request,
    mut take: impl FnMut(Reply) -> Option<T>,
) -> Vec<(String, Result<T, TransportError>)> {
    let requests = |_: &Node| Some((request.clone(), ()));
    let answers = each(locks, requests, |_, (), result| {
        result.and_then(|reply| take(reply).ok_or_else(strange))
    });
    let answers = answers.await.into_iter();
    let patience = patience(locks);
    let late = || error(Cause::TimedOut, format!("no answer within {patience:?}"));
    let addresses = locks.nodes().iter().map(|node| node.address().to_owned());
    addresses
        .zip(answers.map(|answer| answer.unwrap_or_else(|| Err(late()))))
        .collect()
}

/// Asks each node what it shows of itself, if they are watched, and says why those are quarantined that are.
pub(super) async fn about_themselves(locks: &Locks) -> Vec<Option<Quarantine>> {
    let seen = each(
        locks,
        |node| node.look(),
        |node, sent, result| {
            let change = node.seen(sent, &result);
            telemetry::trust_changed(node.address(), change);
        },
    );
    seen.await;
    let nodes = locks.nodes().iter();
    nodes.map(|node| node.quarantine()).collect()
}

/// How long each node is given.
fn patience(locks: &Locks) -> Duration {
    let config = &locks.client().config;
    config.member_timeout(config.watchdog_lease)
}

/// One request to each node, with what is to be remembered of it, and what was made of the results of those that answered in time.
async fn each<S: Copy, T>(
    locks: &Locks,
    request: impl Fn(&Node) -> Option<(Request, S)>,
    mut take: impl FnMut(&Node, S, Result<Reply, TransportError>) -> T,
) -> Vec<Option<T>> {
    let client = locks.client();
    let deadline = client.now() + patience(locks);
    let mut calls = Calls::of(locks.nodes().len());
    let mut answers = Vec::new();
    for (index, node) in locks.nodes().iter().enumerate() {
        if let Some((request, sent)) = request(node) {
            calls.push((index, node, sent), node.call(request));
        }
        answers.push(None);
    }
    let mut timer = client.runtime.timer();
    poll_fn(|cx| {
        let clock = &*client.runtime;
        calls.poll(cx, clock, |(index, node, sent), received| {
            if let Some(place) = answers.get_mut(index) {
                *place = Some(take(node, sent, received.result));
            }
        });
        if calls.is_empty() {
            return Poll::Ready(());
        }
        timer.poll_until(cx, deadline)
    })
    .await;
    answers
}

fn strange() -> TransportError {
    error(
        Cause::Protocol,
        "the transport brought the answer to another request".into(),
    )
}

fn error(cause: Cause, detail: String) -> TransportError {
    TransportError::indeterminate(cause, detail)
}
