//! Waiters: what wakes them, what they leave, and in which order they are served.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quorlock::transport::{
    Intercept, Listener, ReleaseReply, Reply, Request, Transport as _, Wake,
};
use quorlock::{EmbeddedNode, Guard, Locks, Semaphore};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::{SOON, all_of, name_of, release};
use crate::failures::support::{
    LATENCY, assert_empty, client, millis, nodes, poll_once, poll_times, secs, settle,
};

/// The numbers and the guards of waiters that have a permit.
type Entered = mpsc::UnboundedReceiver<(usize, Guard)>;

/// Waiters that come at once.
fn waiters(semaphores: impl IntoIterator<Item = Semaphore>) -> Entered {
    let (sender, entered) = mpsc::unbounded_channel();
    for (number, semaphore) in semaphores.into_iter().enumerate() {
        let sender = sender.clone();
        tokio::spawn(async move {
            let guard = semaphore.acquire().await.unwrap();
            let _ = sender.send((number, guard));
        });
    }
    entered
}

/// Waiters of which each begins to wait before the next one comes.
async fn waiters_in_order(semaphores: Vec<Semaphore>) -> Entered {
    let (sender, entered) = mpsc::unbounded_channel();
    for (number, semaphore) in semaphores.into_iter().enumerate() {
        let sender = sender.clone();
        tokio::spawn(async move {
            let guard = semaphore.acquire().await.unwrap();
            let _ = sender.send((number, guard));
        });
        settle().await;
    }
    entered
}

#[tokio::test(start_paused = true)]
async fn a_waiter_is_woken_by_the_release_of_any_permit() {
    for many in [1, 3] {
        for permit in 0..5 {
            let nodes = nodes(many);
            let (holder, other) = (client(&nodes), client(&nodes));
            let mut held = all_of(&holder.semaphore("s", 5)).await;
            for locks in [holder, other] {
                let mut entered = waiters([locks.semaphore("s", 5)]);
                settle().await;
                assert!(entered.is_empty());
                let guard = held.remove(permit);
                let name = name_of(&guard);
                guard.release().await.unwrap();
                let (_, guard) = timeout(SOON, entered.recv()).await.unwrap().unwrap();
                assert_eq!(name_of(&guard), name);
                held.insert(permit, guard);
            }
            release(held).await;
            settle().await;
            assert_empty(&nodes);
        }
    }
}

/// Waiters of one process, and of processes of their own.
#[tokio::test(start_paused = true)]
async fn permits_that_are_released_at_one_moment_wake_as_many_waiters() {
    for (many, processes) in [(1, 1), (1, 5), (3, 1), (3, 5)] {
        let nodes = nodes(many);
        let held = all_of(&client(&nodes).semaphore("s", 3)).await;
        let clients: Vec<_> = (0..processes).map(|_| client(&nodes)).collect();
        let semaphores = (0..5).map(|number| clients[number % processes].semaphore("s", 3));
        let mut entered = waiters(semaphores);
        settle().await;
        let mut waiting = 5;
        let mut holding = held;
        while 0 < waiting {
            release(holding).await;
            holding = Vec::new();
            for _ in 0..waiting.min(3) {
                let within = SOON * if processes == 1 { 1 } else { 3 };
                let (_, guard) = timeout(within, entered.recv()).await.unwrap().unwrap();
                holding.push(guard);
            }
            waiting -= holding.len();
            settle().await;
            assert!(entered.is_empty());
        }
        release(holding).await;
        settle().await;
        assert_empty(&nodes);
    }
}

/// One waiter requests both permits that are released, and the next one gets the second grant: nothing is given back and
/// requested again.
#[tokio::test(start_paused = true)]
async fn what_a_waiter_does_not_need_passes_to_the_next() {
    let acquires = Arc::new(AtomicU64::new(0));
    let (node, counted) = (nodes(1).remove(0), acquires.clone());
    let counting = Intercept::new(node.clone()).on_call(move |node, request| {
        if matches!(request, Request::Acquire(_)) {
            counted.fetch_add(1, Ordering::SeqCst);
        }
        node.call(request)
    });
    let waiting = Locks::on_node(counting).unwrap().semaphore("s", 2);
    let held = all_of(&client(&[node]).semaphore("s", 2)).await;
    let mut entered = waiters_in_order(vec![waiting; 2]).await;
    let before = acquires.load(Ordering::SeqCst);
    release(held).await;
    let mut guards = Vec::new();
    for number in 0..2 {
        let (waiter, guard) = timeout(SOON, entered.recv()).await.unwrap().unwrap();
        assert_eq!(waiter, number);
        guards.push(guard);
    }
    assert_eq!(acquires.load(Ordering::SeqCst) - before, 2);
    assert_ne!(name_of(&guards[0]), name_of(&guards[1]));
}

/// The waiter is dropped after every possible number of polls, while all permits are released.
#[tokio::test(start_paused = true)]
async fn a_waiter_that_is_dropped_leaves_no_claim() {
    for many in [1, 3] {
        let mut polls = 1;
        loop {
            let nodes = nodes(many);
            let held = all_of(&client(&nodes).semaphore("s", 3)).await;
            let locks = client(&nodes);
            let semaphore = locks.semaphore("s", 3);
            let mut waiter = Box::pin(async move { semaphore.acquire().await.unwrap() });
            let releasing = tokio::spawn(async move {
                sleep(millis(30)).await;
                release(held).await;
            });
            let is_over = poll_times(&mut waiter, polls).await.is_some();
            drop(waiter);
            releasing.await.unwrap();
            settle().await;
            assert_empty(&nodes);
            let _all = timeout(SOON, all_of(&locks.semaphore("s", 3)))
                .await
                .unwrap();
            if is_over {
                break;
            }
            polls += 1;
        }
        assert!(5 < polls, "{polls} polls are few");
    }
}

/// A waiter that is woken and not polled is passed over at every permit.
#[tokio::test(start_paused = true)]
async fn a_waiter_that_is_not_polled_does_not_keep_the_next_one_out() {
    for many in [1, 3] {
        let nodes = nodes(many);
        let held = all_of(&client(&nodes).semaphore("s", 2)).await;
        let semaphore = client(&nodes).semaphore("s", 2);
        let lazy = semaphore.clone();
        let mut lazy = Box::pin(async move { lazy.acquire().await.unwrap() });
        assert!(poll_times(&mut lazy, 8).await.is_none());
        sleep(LATENCY * 2).await;
        assert!(poll_once(&mut lazy).is_pending());
        let mut entered = waiters([semaphore.clone(), semaphore]);
        settle().await;
        release(held).await;
        for _ in 0..2 {
            let guard = timeout(millis(500), entered.recv()).await.unwrap();
            guard.unwrap().1.leak();
        }
        drop(lazy);
    }
}

#[tokio::test(start_paused = true)]
async fn waiters_of_a_process_are_served_in_order() {
    for many in [1, 3] {
        let nodes = nodes(many);
        let locks = client(&nodes);
        let mut holding = all_of(&client(&nodes).semaphore("s", 3)).await;
        let mut entered = waiters_in_order(vec![locks.semaphore("s", 3); 20]).await;
        for expected in 0..20 {
            // Any of them, now this one and now that one.
            let freed = holding.remove(expected % 2);
            freed.release().await.unwrap();
            let (waiter, guard) = timeout(SOON, entered.recv()).await.unwrap().unwrap();
            assert_eq!(waiter, expected);
            holding.push(guard);
        }
        release(holding).await;
    }
}

/// A client that receives messages of releases 10 ms late, so that a releasing client can be faster than any waiter. Its
/// releases are told that so many other clients listen, as a server would tell.
fn hard_of_hearing(nodes: &[EmbeddedNode], told: u32) -> Locks {
    struct Late(Arc<dyn Listener>);
    impl Listener for Late {
        fn live(&self) {
            self.0.live();
        }

        fn wake(&self, message: Wake) {
            let listener = self.0.clone();
            tokio::spawn(async move {
                sleep(millis(10)).await;
                listener.wake(message);
            });
        }
    }
    let nodes = nodes.iter().map(|node| {
        let late = |listener| Arc::new(Late(listener));
        Intercept::new(node.clone())
            .on_call(move |node, request| {
                let call = node.call(request);
                Box::pin(async move {
                    Ok(match call.await? {
                        Reply::Release(ReleaseReply::Freed { .. }) => {
                            Reply::Release(ReleaseReply::Freed { told })
                        }
                        other => other,
                    })
                })
            })
            .on_subscribe(move |node, channel, listener| node.subscribe(channel, late(listener)))
    });
    let locks = Locks::builder().trust_fresh_nodes();
    locks.on_nodes(nodes).unwrap()
}

/// Callers that release and acquire again at once, in the process of a waiter or in another one, let it pass.
#[tokio::test(start_paused = true)]
async fn callers_that_ask_again_at_once_do_not_starve_a_waiter() {
    for (many, is_apart) in [(1, false), (1, true), (3, false), (3, true)] {
        let nodes = nodes(many);
        let busy = hard_of_hearing(&nodes, u32::from(is_apart));
        let waiting = if is_apart {
            hard_of_hearing(&nodes, 1)
        } else {
            busy.clone()
        };
        let semaphore = busy.semaphore("s", 2);
        let tasks = [semaphore.clone(), semaphore].map(|semaphore| {
            tokio::spawn(async move {
                loop {
                    let guard = semaphore.acquire().await.unwrap();
                    sleep(millis(20)).await;
                    guard.release().await.unwrap();
                }
            })
        });
        settle().await;
        for _ in 0..20 {
            let began = Instant::now();
            let guard = timeout(secs(60), waiting.semaphore("s", 2).acquire()).await;
            let waited = began.elapsed();
            assert!(waited < millis(300), "{many} {is_apart}: {waited:?}");
            guard.unwrap().unwrap().release().await.unwrap();
        }
        tasks.iter().for_each(JoinHandle::abort);
    }
}

/// One request for each permit, although 50 tasks come at once: one of them looks, and one waits on behalf of all.
#[tokio::test(start_paused = true)]
async fn tasks_that_come_at_once_do_not_all_ask_for_all_permits() {
    let node = EmbeddedNode::new().latency(LATENCY);
    let _held = all_of(&client(std::slice::from_ref(&node)).semaphore("s", 10)).await;
    let semaphore = client(std::slice::from_ref(&node)).semaphore("s", 10);
    let before = node.executed();
    let _entered = waiters((0..50).map(|_| semaphore.clone()));
    settle().await;
    // A try of each, a look at each permit, and two requests for each permit, of which the second follows the subscription.
    let requests = node.executed() - before;
    assert!(requests <= 50 + 10 + 20, "{requests}");
}
