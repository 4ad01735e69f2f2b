//! Servers that do not answer, and data that change behind the clients.

use std::fs;

use quorlock_core::transport::Execution;
use quorlock_store::{Cause, Draft, Key, Store, Written, open};
use quorlock_testbed::proxy::{Draw, Forwarding, Proxy};
use quorlock_testbed::s3::S3;

use crate::databases::{SECOND, bare, check, patient, store};

fn draft(number: u64, record: &[u8]) -> Draft {
    Draft {
        record: record.to_vec(),
        number,
        has_news: true,
        useful_until: None,
    }
}

pub(crate) async fn a_write_without_a_reply_is_in_doubt(mut server: S3) {
    let store = store(&server).await;
    server.stop();
    let write = tokio::spawn(store.write_if(&Key::new("a"), None, draft(7, b"x")));
    tokio::time::sleep(SECOND / 10).await;
    server.kill();
    let error = write.await.unwrap().unwrap_err();
    assert_eq!(error.cause, Cause::Closed, "{error:?}");
    assert_eq!(error.execution, Execution::Indeterminate);
    // Nothing was sent.
    let error = store.write_if(&Key::new("a"), None, draft(7, b"x")).await;
    let error = error.unwrap_err();
    assert_eq!(error.cause, Cause::Unreachable, "{error:?}");
    assert_eq!(error.execution, Execution::Definite);
    server.launch();
    server.stop();
    let late = store.write_if(&Key::new("b"), None, draft(7, b"x")).await;
    let error = late.unwrap_err();
    assert_eq!(error.cause, Cause::TimedOut, "{error:?}");
    assert_eq!(error.execution, Execution::Indeterminate);
}

pub(crate) async fn a_write_whose_reply_is_lost_is_found_by_reading(server: S3) {
    let shortest = || -> Draw { Box::new(|min, _| min) };
    let draws = [shortest(), shortest()];
    let proxy = Proxy::open(server.port(), Forwarding::Open, draws).await;
    let proxy = proxy.unwrap();
    let address = format!("s3://locks?endpoint=http://127.0.0.1:{}", proxy.port());
    let locks = patient(open(&address).unwrap());
    let object = server.object("quorlock/a");
    let written = || fs::read_to_string(&object).unwrap();
    // The write of a name that is remembered is one call.
    let guard = locks.lock("a").acquire().await.unwrap();
    guard.release().await.unwrap();
    let before = written();
    proxy.lose_replies();
    let acquiring = tokio::spawn(async move { locks.lock("a").acquire().await.unwrap() });
    while written() == before {
        tokio::time::sleep(SECOND / 50).await;
    }
    let once = written();
    proxy.carry_replies();
    proxy.cut();
    let guard = acquiring.await.unwrap();
    assert_eq!(written(), once, "nothing else was written");
    let others = patient(bare(&server)).lock("a");
    assert!(others.try_acquire().await.unwrap().is_none());
    guard.release().await.unwrap();
}

pub(crate) async fn a_connection_that_has_ended_is_replaced(mut server: S3) {
    let store = store(&server).await;
    let locks = patient(store.clone());
    let guard = locks.lock("a").acquire().await.unwrap();
    server.kill();
    server.launch();
    // No call fails, whether it reads or writes.
    guard.release().await.unwrap();
    server.kill();
    server.launch();
    check(&*store).await.unwrap();
    drop(locks.lock("a").acquire().await.unwrap());
}

/// A copy has lost what was written since. A version that is a counter would come back with other records.
pub(crate) async fn a_copy_that_returns_makes_no_client_overwrite_a_claim(mut server: S3) {
    let writer = store(&server).await;
    let key = Key::new("a");
    writer.write_if(&key, None, draft(1, b"one")).await.unwrap();
    server.keep_copy();
    let version = writer.read(&key).await.unwrap().stored.unwrap().version;
    let written = writer.write_if(&key, Some(&version), draft(2, b"free"));
    written.await.unwrap();
    let remembered = writer.read(&key).await.unwrap().stored.unwrap().version;
    server.return_to_copy();
    let other = bare(&server);
    let written = other.write_if(&key, Some(&version), draft(3, b"claim"));
    assert!(matches!(written.await, Ok(Written::Stored { .. })));
    let late = bare(&server).write_if(&key, Some(&remembered), draft(4, b"mine"));
    assert_eq!(late.await, Ok(Written::Conflict));
    let found = other.read(&key).await.unwrap().stored.unwrap();
    assert_eq!(found.record, b"claim");
}

pub(crate) async fn another_process_is_noticed_after_a_minute(server: S3) {
    let store = store(&server).await;
    let process = async || store.read(&Key::new("a")).await.unwrap().stamp.process;
    let before = process().await;
    fs::remove_file(server.object("quorlock.id")).unwrap();
    assert_eq!(process().await, before);
    tokio::time::sleep(60 * SECOND).await;
    assert_ne!(process().await, before);
}
