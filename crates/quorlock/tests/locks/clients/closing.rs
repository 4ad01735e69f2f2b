//! Clients that are closed, and clients whose runtime ends.

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use quorlock::transport::{Intercept, Transport};
use quorlock::{EmbeddedNode, Guard, Locks, Lost, ReleaseError};
use tokio::runtime::{Builder, Runtime};

fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
}

fn poll_once<F: Future>(future: F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

fn is_not_held(released: Result<(), ReleaseError>) -> bool {
    matches!(released, Err(ReleaseError::NotHeld { .. }))
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_outlives_its_client_was_not_held_when_it_is_released() {
    let node = EmbeddedNode::new();
    let locks = Locks::on_node(node.clone()).unwrap();
    let guard = locks.lock("a").acquire().await.unwrap();
    let again = guard.reenter().await.unwrap();
    locks.close().await;
    assert_eq!(node.names(), []);
    assert!(is_not_held(again.release().await));
    assert!(is_not_held(guard.release().await));
}

/// The claim still exists, and nothing renews it.
#[test]
fn a_guard_whose_runtime_has_ended_was_not_held_when_it_is_released() {
    let (node, guard): (EmbeddedNode, Guard) = runtime().block_on(async {
        let node = EmbeddedNode::new();
        let locks = Locks::on_node(node.clone()).unwrap();
        (node, locks.lock("a").acquire().await.unwrap())
    });
    assert_eq!(node.names().len(), 1);
    assert!(!guard.is_held());
    assert!(is_not_held(runtime().block_on(guard.release())));
}

type Hook = Box<dyn FnOnce() + Send>;

/// A node that runs a hook before its next answer.
fn hooked(node: EmbeddedNode, before_reply: &Arc<Mutex<Option<Hook>>>) -> Intercept<EmbeddedNode> {
    let before_reply = before_reply.clone();
    Intercept::new(node).on_call(move |node, request| {
        let (call, hook) = (node.call(request), before_reply.clone());
        Box::pin(async move {
            let reply = call.await;
            let hook = hook.lock().unwrap().take();
            if let Some(hook) = hook {
                hook();
            }
            reply
        })
    })
}

/// The keeper's runtime ends after the check whether the client is closed, and before the reply that wins the lock:
/// nothing would renew the hold or report its end.
#[test]
fn a_hold_that_is_won_while_the_keepers_runtime_ends_is_lost_at_once() {
    let ending = runtime();
    let before_reply = Arc::default();
    let locks = {
        let _context = ending.enter();
        Locks::on_node(hooked(EmbeddedNode::new(), &before_reply)).unwrap()
    };
    ending.block_on(tokio::task::yield_now());
    *before_reply.lock().unwrap() = Some(Box::new(move || drop(ending)));
    let Poll::Ready(Ok(guard)) = poll_once(locks.lock("a").acquire()) else {
        panic!("the node answers at once");
    };
    assert!(!guard.is_held());
    assert_eq!(poll_once(guard.lost()), Poll::Ready(Lost::Closed));
    let mut polled = 0;
    let work = guard.while_held(async |_| {
        std::future::poll_fn(|_| {
            polled += 1;
            Poll::<()>::Pending
        })
        .await;
    });
    assert_eq!(poll_once(work), Poll::Ready(Err(Lost::Closed)));
    assert_eq!(polled, 0);
    assert_eq!(locks.held(), 0);
}
