//! One request to every node, with a bound on the wait.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use quorlock_core::message::{Reply, Request};
use quorlock_core::transport::{Cause, TransportError};

use crate::error::Quarantine;
use crate::locks::source::LockSource;
use crate::shared::calls::Calls;
use crate::shared::layout::Node;
use crate::telemetry;

/// Sends a request to each node. Returns its address, and its answer or the error.
pub(crate) async fn all<T>(
    source: &LockSource,
    request: &Request,
    mut take: impl FnMut(Reply) -> Option<T>,
) -> Vec<(String, Result<T, TransportError>)> {
    let requests = |_: &Node| Some((request.clone(), ()));
    let answers = each(source, requests, |_, (), result| {
        result.and_then(|reply| take(reply).ok_or_else(strange))
    });
    let answers = answers.await.into_iter();
    let patience = patience(source);
    let late = || {
        error(Cause::TimedOut, format!("no answer within {patience:?}"))
            .advised("the server or the network is slow or stopped")
    };
    let addresses = source.nodes().iter().map(|node| node.address().to_owned());
    addresses
        .zip(answers.map(|answer| answer.unwrap_or_else(|| Err(late()))))
        .collect()
}

/// Reads the marker of each watched node. Returns why nodes are quarantined, for those that are.
pub(super) async fn about_themselves(source: &LockSource) -> Vec<Option<Quarantine>> {
    let seen = each(
        source,
        |node| node.look(),
        |node, sent, result| {
            let change = node.seen(sent, &result);
            telemetry::trust_changed(node.address(), change);
        },
    );
    seen.await;
    let nodes = source.nodes().iter();
    nodes.map(|node| node.quarantine()).collect()
}

/// How long each node has to answer.
fn patience(source: &LockSource) -> Duration {
    let config = &source.client().config;
    config.member_timeout(config.watchdog_lease)
}

/// Sends one request to each node, with a value for its handler. Returns the handler's output for the results that
/// arrived in time.
async fn each<S: Copy, T>(
    source: &LockSource,
    request: impl Fn(&Node) -> Option<(Request, S)>,
    mut take: impl FnMut(&Node, S, Result<Reply, TransportError>) -> T,
) -> Vec<Option<T>> {
    let client = source.client();
    let deadline = client.now() + patience(source);
    let mut calls = Calls::of(source.nodes().len());
    let mut answers = Vec::new();
    for (index, node) in source.nodes().iter().enumerate() {
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
