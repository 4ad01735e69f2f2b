//! Writes whose replies are lost, that are executed late, or twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use quorlock_core::message::{AcquireReply, Freshness, ReleaseReply, Reply};
use quorlock_core::transport::{Cause, Execution, TransportError};
use quorlock_store::{Draft, Key, MemoryStore, Store, StoreTransport, Version, WriteCall, Written};
use tokio::time::sleep;

use crate::wrapped::{Wrapped, acquire, another_writes, ask, owner, release};
use crate::{MILLI, SECOND};

fn lost() -> TransportError {
    TransportError::indeterminate(Cause::Closed, "lost")
}

/// A store whose first write meets `fate`; the others are ordinary.
fn first_write(
    store: &MemoryStore,
    fate: impl Fn(&MemoryStore, Key, Option<Version>, Draft) -> WriteCall + Send + Sync + 'static,
) -> Wrapped {
    let count = AtomicUsize::new(0);
    Wrapped::new(store).on_write(move |store, key, version, draft| {
        match count.fetch_add(1, Ordering::SeqCst) {
            0 => fate(store, key.clone(), version.cloned(), draft),
            _ => store.write_if(key, version, draft),
        }
    })
}

fn granted(reply: &Reply) -> Option<Freshness> {
    match reply {
        Reply::Acquire(AcquireReply::Granted { freshness, .. }) => Some(*freshness),
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_was_executed_and_got_no_reply_is_found_by_reading() {
    let store = MemoryStore::new();
    let transport = StoreTransport::new(first_write(&store, |store, key, version, draft| {
        let call = store.write_if(&key, version.as_ref(), draft);
        Box::pin(async move {
            call.await?;
            Err(lost())
        })
    }));
    let reply = ask(&transport, acquire(owner(1, 1), SECOND)).await.unwrap();
    // An acquire that was sent again would be told that the claim is already its own.
    assert_eq!(granted(&reply), Some(Freshness::Anew));
    let reply = ask(&transport, release(owner(1, 1))).await.unwrap();
    assert_eq!(reply, Reply::Release(ReleaseReply::FREED));
}

#[tokio::test(start_paused = true)]
async fn a_write_that_was_not_executed_is_sent_again() {
    let store = MemoryStore::new();
    let transport = StoreTransport::new(first_write(&store, |_, _, _, _| {
        Box::pin(async { Err(lost()) })
    }));
    let reply = ask(&transport, acquire(owner(1, 1), SECOND)).await.unwrap();
    assert_eq!(granted(&reply), Some(Freshness::Anew));
}

/// The first copy comes between the read and the second copy, or after both.
#[tokio::test(start_paused = true)]
async fn of_a_late_write_and_its_repetition_one_is_executed() {
    for late in [0, 1, 2, 10, 500] {
        let store = MemoryStore::new();
        let wrapped = first_write(&store, move |store, key, version, draft| {
            let store = store.clone();
            tokio::spawn(async move {
                sleep(MILLI * late).await;
                store.write_if(&key, version.as_ref(), draft).await.unwrap();
            });
            Box::pin(async { Err(lost()) })
        });
        let wrapped = wrapped.on_read(|store, key| {
            let call = store.read(key);
            Box::pin(async move {
                sleep(MILLI * 2).await;
                call.await
            })
        });
        let transport = StoreTransport::new(wrapped);
        let reply = ask(&transport, acquire(owner(1, 1), 10 * SECOND))
            .await
            .unwrap();
        assert_eq!(granted(&reply), Some(Freshness::Anew), "{late}");
        let reply = ask(&transport, release(owner(1, 1))).await.unwrap();
        assert_eq!(reply, Reply::Release(ReleaseReply::FREED), "{late}");
        sleep(SECOND).await;
        // The late copy names a version that is gone: it does not bring the claim back.
        let reply = ask(&transport, acquire(owner(2, 1), SECOND)).await.unwrap();
        assert_eq!(granted(&reply), Some(Freshness::Anew), "{late}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_the_network_duplicates_is_executed_once() {
    let store = MemoryStore::new();
    let wrapped = Wrapped::new(&store).on_write(|store, key, version, draft| {
        let first = store.write_if(key, version, draft.clone());
        let (store, key, version) = (store.clone(), key.clone(), version.cloned());
        tokio::spawn(async move {
            sleep(MILLI).await;
            let again = store.write_if(&key, version.as_ref(), draft).await;
            assert_eq!(again, Ok(Written::Conflict));
        });
        first
    });
    let transport = StoreTransport::new(wrapped);
    for number in 0..20 {
        let reply = ask(&transport, acquire(owner(1, number), SECOND))
            .await
            .unwrap();
        assert_eq!(granted(&reply), Some(Freshness::Anew));
        let reply = ask(&transport, release(owner(1, number))).await.unwrap();
        assert_eq!(reply, Reply::Release(ReleaseReply::FREED));
        sleep(2 * MILLI).await;
    }
}

/// Whether the first write was executed before the other client's cannot be known.
#[tokio::test(start_paused = true)]
async fn a_lost_reply_that_is_followed_by_another_clients_write_stays_open() {
    for is_executed in [true, false] {
        let store = MemoryStore::new();
        let wrapped = first_write(&store, move |store, key, version, draft| {
            let store = store.clone();
            Box::pin(async move {
                if is_executed {
                    store.write_if(&key, version.as_ref(), draft).await?;
                    another_writes(&store, release(owner(1, 1))).await;
                }
                another_writes(&store, acquire(owner(2, 1), SECOND)).await;
                Err(lost())
            })
        });
        let transport = StoreTransport::new(wrapped);
        let error = ask(&transport, acquire(owner(1, 1), SECOND))
            .await
            .unwrap_err();
        assert_eq!(error.execution, Execution::Indeterminate, "{is_executed}");
        // It is not repeated: the name is not the first client's.
        let reply = ask(&transport, release(owner(1, 1))).await.unwrap();
        assert_eq!(
            reply,
            Reply::Release(ReleaseReply::NotYours),
            "{is_executed}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_outcome_cannot_be_read_stays_open_and_ends_in_time() {
    let store = MemoryStore::new();
    let reads = Arc::new(AtomicUsize::new(0));
    let wrapped = first_write(&store, |_, _, _, _| Box::pin(async { Err(lost()) }));
    let counted = reads.clone();
    let wrapped = wrapped.on_read(
        move |store, key| match counted.fetch_add(1, Ordering::SeqCst) {
            0 => store.read(key),
            _ => Box::pin(async { Err(lost()) }),
        },
    );
    let transport = StoreTransport::new(wrapped);
    let began = tokio::time::Instant::now();
    let error = ask(&transport, acquire(owner(1, 1), SECOND))
        .await
        .unwrap_err();
    assert_eq!(error.execution, Execution::Indeterminate);
    assert!(began.elapsed() <= 2 * SECOND);
    // A read changes nothing, so its failure is definite.
    let error = ask(&transport, acquire(owner(1, 2), SECOND))
        .await
        .unwrap_err();
    assert_eq!(error.execution, Execution::Definite);
    assert!(10 < reads.load(Ordering::SeqCst));
    assert!(reads.load(Ordering::SeqCst) < 100, "the pauses grow");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_hangs_ends_in_time_and_does_not_hold_up_other_names_or_later_calls() {
    let store = MemoryStore::new();
    let transport = StoreTransport::new(first_write(&store, |_, _, _, _| {
        Box::pin(std::future::pending())
    }));
    let hanging = tokio::spawn({
        let transport = transport.clone();
        async move { ask(&transport, acquire(owner(1, 1), 10 * SECOND)).await }
    });
    sleep(SECOND / 2).await;
    let began = tokio::time::Instant::now();
    let reply = ask(&transport, acquire(owner(2, 1), SECOND)).await.unwrap();
    assert_eq!(granted(&reply), None, "the first one was sent again");
    assert!(began.elapsed() < SECOND);
    let reply = hanging.await.unwrap().unwrap();
    assert_eq!(granted(&reply), Some(Freshness::Anew));
}

/// A caller that has stopped waiting is not granted anything later.
#[tokio::test(start_paused = true)]
async fn a_request_that_waits_behind_another_one_for_too_long_is_never_executed() {
    let store = MemoryStore::new();
    let wrapped = Wrapped::new(&store).on_read(|_, _| Box::pin(std::future::pending()));
    let transport = StoreTransport::new(wrapped);
    let first = tokio::spawn({
        let transport = transport.clone();
        async move { ask(&transport, acquire(owner(1, 1), 10 * SECOND)).await }
    });
    let error = first.await.unwrap().unwrap_err();
    assert_eq!(error.cause, Cause::TimedOut);
    assert_eq!(error.execution, Execution::Definite, "nothing was written");
    sleep(10 * SECOND).await;
    assert!(store.is_empty());
}

/// Two processes with the same identity, as after a snapshot of a virtual machine was started twice.
#[tokio::test(start_paused = true)]
async fn two_processes_with_one_owner_do_not_take_each_others_replies_for_their_own() {
    let store = MemoryStore::new();
    let ours = owner(1, 1);
    let wrapped = first_write(&store, move |store, _, _, _| {
        let store = store.clone();
        Box::pin(async move {
            another_writes(&store, acquire(ours, 5 * SECOND)).await;
            Err(lost())
        })
    });
    let transport = StoreTransport::new(wrapped);
    // The other process's claim is there, with the same owner, and it is not this write.
    let error = ask(&transport, acquire(ours, 5 * SECOND))
        .await
        .unwrap_err();
    assert_eq!(error.execution, Execution::Indeterminate);
    let reply = ask(&transport, acquire(ours, 5 * SECOND)).await.unwrap();
    assert_eq!(granted(&reply), Some(Freshness::AlreadyYours));
}
