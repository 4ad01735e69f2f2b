//! The production adapter over turmoil's network, with a simulated server that misbehaves: what happens to requests,
//! replies, wake-ups and connections.

mod returns;
mod sentinels;
mod town;
mod two_hosts;

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use quorlock::transport::{
    AcquireReply, Cause, Execution, Freshness, ReleaseReply, Reply, Request, Transport,
};
use quorlock_core::message::{Found, InspectReply};
use two_hosts::{Heard, Office, acquire, inspect, name, pass, release, until};

/// The time-out of a call in these tests.
const PATIENCE: Duration = two_hosts::CALL_TIMEOUT;

#[test]
fn a_subscription_comes_back_when_its_server_was_restarted() {
    let two_hosts = Office::open();
    let (transport, name) = (two_hosts.transport(), name("a"));
    let heard = Heard::nothing();
    let listener = Arc::clone(&heard);
    let server = two_hosts.server();
    two_hosts.run(async move {
        let _subscription = transport.subscribe(&name.clone().into(), listener);
        until("messages flow", || heard.lives() == 1).await;
        server.crash();
        pass(Duration::from_millis(300)).await;
        server.restart();
        until("messages flow again", || heard.lives() == 2).await;
        acquire(&transport, &name, 1).await.unwrap();
        release(&transport, &name, 1).await.unwrap();
        until("a release of after the restart is heard", || {
            heard.wakes() == 1
        })
        .await;
    });
}

#[test]
fn a_cut_link_costs_one_time_out_and_is_replaced_when_it_is_healed() {
    let two_hosts = Office::open();
    let (transport, name) = (two_hosts.transport(), name("a"));
    let server = two_hosts.server();
    two_hosts.run(async move {
        acquire(&transport, &name, 1).await.unwrap();
        assert_eq!(server.accepted(), 1);
        turmoil::partition(two_hosts::CLIENT, two_hosts::SERVER);
        let began = turmoil::elapsed();
        let error = acquire(&transport, &name, 1).await.unwrap_err();
        assert_eq!(error.cause, Cause::TimedOut);
        assert_eq!(error.execution, Execution::Indeterminate);
        assert!(turmoil::elapsed() - began < PATIENCE + Duration::from_millis(10));
        turmoil::repair(two_hosts::CLIENT, two_hosts::SERVER);
        // What was in flight is lost forever, and the connection with it.
        let reply = acquire(&transport, &name, 1).await.unwrap();
        assert!(matches!(
            reply,
            AcquireReply::Granted {
                freshness: Freshness::AlreadyYours,
                ..
            }
        ));
        assert_eq!(server.accepted(), 2);
    });
}

/// The lease of the requests whose connection is swallowed.
const SHORT: Duration = Duration::from_millis(1500);

#[test]
fn a_connection_that_swallows_everything_is_replaced_well_within_the_lease() {
    let two_hosts = Office::open();
    let (transport, name) = (two_hosts.transport_with(Duration::from_secs(2)), name("a"));
    let server = two_hosts.server();
    two_hosts.run(async move {
        let acquire = || Request::Acquire(two_hosts::acquire_for(&name, SHORT));
        transport.call(acquire()).await.unwrap();
        turmoil::partition(two_hosts::CLIENT, two_hosts::SERVER);
        let began = turmoil::elapsed();
        let swallowed = tokio::task::spawn_local(transport.call(acquire()));
        pass(Duration::from_millis(250)).await;
        turmoil::repair(two_hosts::CLIENT, two_hosts::SERVER);
        // The caller gets an error and may try again. The adapter does not repeat a renewal before it has ended.
        let error = swallowed.await.unwrap().unwrap_err();
        assert_eq!(error.execution, Execution::Indeterminate);
        let took = turmoil::elapsed() - began;
        assert!(took < SHORT / 3, "{took:?}: {error}");
        transport.call(acquire()).await.unwrap();
        assert_eq!(server.accepted(), 2);
    });
}

#[test]
fn a_swallowed_request_behind_one_that_is_answered_is_found_out_too() {
    let two_hosts = Office::open();
    let (transport, name) = (two_hosts.transport_with(Duration::from_secs(2)), name("a"));
    let server = two_hosts.server();
    two_hosts.run(async move {
        let acquire = || Request::Acquire(two_hosts::acquire_for(&name, SHORT));
        transport.call(acquire()).await.unwrap();
        server.holds_replies(true);
        let answered = tokio::task::spawn_local(transport.call(acquire()));
        pass(Duration::from_millis(50)).await;
        turmoil::partition_oneway(two_hosts::CLIENT, two_hosts::SERVER);
        let swallowed = tokio::task::spawn_local(transport.call(acquire()));
        pass(Duration::from_millis(50)).await;
        server.holds_replies(false);
        answered.await.unwrap().unwrap();
        turmoil::repair_oneway(two_hosts::CLIENT, two_hosts::SERVER);
        let began = turmoil::elapsed();
        swallowed.await.unwrap().unwrap_err();
        let took = turmoil::elapsed() - began;
        assert!(took < SHORT / 3, "{took:?}");
        assert_eq!(server.accepted(), 2);
    });
}

#[test]
fn a_server_that_is_slow_keeps_its_connection() {
    let two_hosts = Office::open();
    let (transport, name) = (two_hosts.transport_with(Duration::from_secs(2)), name("a"));
    let server = two_hosts.server();
    two_hosts.run(async move {
        let acquire = || Request::Acquire(two_hosts::acquire_for(&name, SHORT));
        transport.call(acquire()).await.unwrap();
        for _ in 0..3 {
            // The server is paused for new connections as well.
            server.holds_replies(true);
            let slow = tokio::task::spawn_local(transport.call(acquire()));
            pass(Duration::from_millis(700)).await;
            server.holds_replies(false);
            slow.await.unwrap().unwrap();
        }
        transport.call(acquire()).await.unwrap();
        // There are at most two attempts of 200 ms for each pause. None of them replaced the first connection.
        assert!(server.accepted() <= 7, "{}", server.accepted());
    });
}

#[test]
fn a_link_that_is_cut_in_one_direction_is_replaced_too() {
    for (from, to) in [
        (two_hosts::CLIENT, two_hosts::SERVER),
        (two_hosts::SERVER, two_hosts::CLIENT),
    ] {
        let two_hosts = Office::open();
        let (transport, name) = (two_hosts.transport(), name("a"));
        two_hosts.run(async move {
            acquire(&transport, &name, 1).await.unwrap();
            turmoil::partition_oneway(from, to);
            let error = release(&transport, &name, 1).await.unwrap_err();
            assert_eq!(error.execution, Execution::Indeterminate, "{from} to {to}");
            turmoil::repair_oneway(from, to);
            // The client cannot know whether the release was executed; only the server can answer that.
            let left = inspect(&transport, &name).await.unwrap();
            assert_eq!(
                left.found != Found::Nothing,
                from == two_hosts::CLIENT,
                "{from} to {to}"
            );
        });
    }
}

#[test]
fn a_wake_up_connection_that_went_silent_is_found_out() {
    let two_hosts = Office::open();
    let (transport, name) = (two_hosts.transport(), name("a"));
    let heard = Heard::nothing();
    let listener = Arc::clone(&heard);
    two_hosts.run(async move {
        let _subscription = transport.subscribe(&name.clone().into(), listener);
        until("messages flow", || heard.lives() == 1).await;
        turmoil::partition(two_hosts::CLIENT, two_hosts::SERVER);
        pass(Duration::from_millis(20)).await;
        turmoil::repair(two_hosts::CLIENT, two_hosts::SERVER);
        // Neither the server nor the client notices this. A ping is lost first.
        turmoil::partition(two_hosts::CLIENT, two_hosts::SERVER);
        pass(two_hosts::PING + PATIENCE).await;
        turmoil::repair(two_hosts::CLIENT, two_hosts::SERVER);
        until("messages flow again", || heard.lives() == 2).await;
    });
}

#[test]
fn a_reply_that_comes_after_its_time_out_is_nobody_else_s() {
    let two_hosts = Office::open();
    let (transport, name) = (two_hosts.transport(), name("a"));
    let server = two_hosts.server();
    two_hosts.run(async move {
        acquire(&transport, &name, 1).await.unwrap();
        server.holds_replies(true);
        let error = acquire(&transport, &name, 2).await.unwrap_err();
        assert_eq!(error.execution, Execution::Indeterminate);
        let next = transport.call(Request::Release(two_hosts::release_of(&name, 1)));
        let mut next = next;
        // The request is sent while the previous reply is still held back. Then both replies arrive.
        poll_fn(|cx| Poll::Ready(next.as_mut().poll(cx).is_pending())).await;
        server.holds_replies(false);
        assert_eq!(next.await.unwrap(), Reply::Release(ReleaseReply::FREED));
    });
}

#[test]
fn a_server_that_forgot_its_scripts_gets_them_again() {
    let two_hosts = Office::open();
    let (transport, name) = (two_hosts.transport(), name("a"));
    let server = two_hosts.server();
    two_hosts.run(async move {
        acquire(&transport, &name, 1).await.unwrap();
        server.forget_scripts();
        let reply = acquire(&transport, &name, 1).await.unwrap();
        assert!(matches!(
            reply,
            AcquireReply::Granted {
                freshness: Freshness::AlreadyYours,
                ..
            }
        ));
        server.crash();
        server.restart();
        let freed = until_ok(|| release(&transport, &name, 1)).await;
        assert_eq!(freed, ReleaseReply::NotYours, "its memory was all it had");
    });
}

/// Repeats a request until it succeeds.
async fn until_ok<T, E, F: Future<Output = Result<T, E>>>(mut ask: impl FnMut() -> F) -> T {
    loop {
        if let Ok(answer) = ask().await {
            return answer;
        }
        pass(Duration::from_millis(10)).await;
    }
}

#[test]
fn a_server_that_answers_half_a_reply_and_stalls_is_left() {
    let two_hosts = Office::open();
    let (transport, name) = (two_hosts.transport(), name("a"));
    let server = two_hosts.server();
    two_hosts.run(async move {
        acquire(&transport, &name, 1).await.unwrap();
        server.answers_halves(true);
        let error = acquire(&transport, &name, 1).await.unwrap_err();
        assert_eq!(
            (error.cause, error.execution),
            (Cause::TimedOut, Execution::Indeterminate)
        );
        server.answers_halves(false);
        let reply = acquire(&transport, &name, 1).await.unwrap();
        assert!(matches!(
            reply,
            AcquireReply::Granted {
                freshness: Freshness::AlreadyYours,
                ..
            }
        ));
        assert_eq!(
            server.accepted(),
            2,
            "the rest of the old reply is never read"
        );
    });
}

#[test]
fn calls_under_way_when_a_connection_dies_are_indeterminate_and_not_sent_again() {
    let two_hosts = Office::open();
    let (transport, name) = (two_hosts.transport(), name("a"));
    let server = two_hosts.server();
    two_hosts.run(async move {
        acquire(&transport, &name, 1).await.unwrap();
        let before = server.commands();
        server.holds_replies(true);
        let calls: Vec<_> = (0..20)
            .map(|_| transport.call(Request::Acquire(two_hosts::acquire_of(&name, 1))))
            .map(tokio::task::spawn_local)
            .collect();
        // The other calls wait for a reply to one of these.
        let executed = 4;
        until("some of them were executed", || {
            server.commands() == before + executed
        })
        .await;
        server.hangs_up();
        for (number, call) in calls.into_iter().enumerate() {
            let error = call.await.unwrap().unwrap_err();
            let execution = if number < executed {
                Execution::Indeterminate
            } else {
                Execution::Definite
            };
            assert_eq!((error.cause, error.execution), (Cause::Closed, execution));
        }
        server.holds_replies(false);
        acquire(&transport, &name, 1).await.unwrap();
        assert_eq!(server.commands(), before + executed + 1);
    });
}

#[test]
fn who_missed_a_wake_up_while_it_connected_again_is_told_that_there_was_a_gap() {
    let two_hosts = Office::open();
    let (transport, name) = (two_hosts.transport(), name("a"));
    let other = two_hosts.transport();
    let heard = Heard::nothing();
    let listener = Arc::clone(&heard);
    let server = two_hosts.server();
    two_hosts.run(async move {
        acquire(&other, &name, 1).await.unwrap();
        let _subscription = transport.subscribe(&name.clone().into(), listener);
        until("messages flow", || heard.lives() == 1).await;
        server.hangs_up_on_listeners();
        release(&other, &name, 1).await.unwrap();
        until("messages flow again", || heard.lives() == 2).await;
        assert_eq!(heard.wakes(), 0, "nobody heard the release");
        let InspectReply { found, .. } = inspect(&transport, &name).await.unwrap();
        assert_eq!(found, Found::Nothing, "who looks now finds it free");
    });
}
