//! Servers that do not answer, and those that refuse.

use etcd_client::{AlarmAction, AlarmOptions, AlarmType};
use futures_util::future::join_all;
use quorlock::Locks;
use quorlock_core::transport::Execution;
use quorlock_store::{Cause, Draft, Key, Store, StoreTransport, TransportError, Written};
use quorlock_testbed::etcd::Etcd;

use crate::databases::{SECOND, bare, patient, store};

fn draft(bytes: usize) -> Draft {
    Draft {
        record: vec![b'x'; bytes],
        number: 7,
        has_news: false,
        useful_until: None,
    }
}

async fn refused(store: &dyn Store, bytes: usize) -> Option<TransportError> {
    let key = Key::new(format!("{bytes}"));
    let found = store.read(&key).await.unwrap().stored;
    let version = found.as_ref().map(|stored| &stored.version);
    let written = store.write_if(&key, version, draft(bytes)).await;
    written.err()
}

pub(crate) async fn a_server_that_stood_still_during_a_write_is_asked_what_became_of_it(
    server: Etcd,
) {
    let transport = StoreTransport::new(store(&server).await).call_timeout(8 * SECOND);
    let builder = Locks::builder().member_timeout(9 * SECOND);
    let locks = builder.on_node(transport).unwrap();
    let guard = locks.lock("a").acquire().await.unwrap();
    guard.release().await.unwrap();
    server.stop();
    let acquiring = tokio::spawn(async move { locks.lock("a").acquire().await.unwrap() });
    // The call of the store, which is given half of the time, has ended without an answer.
    tokio::time::sleep(5 * SECOND).await;
    assert!(!acquiring.is_finished());
    server.go_on();
    let guard = acquiring.await.unwrap();
    let others = patient(bare(&server)).lock("a");
    assert!(others.try_acquire().await.unwrap().is_none());
    guard.release().await.unwrap();
}

pub(crate) async fn a_full_database_is_said(server: Etcd) {
    drop(server);
    let mut server = Etcd::start_with(&["--quota-backend-bytes=500000"]);
    let store = store(&server).await;
    let locks = patient(store.clone());
    let guard = locks.lock("a").acquire().await.unwrap();
    let mut error = None;
    // Each record is another one, as those of locks are.
    for more in 0..1000 {
        error = refused(&*store, 30_000 + more).await;
        if error.is_some() {
            break;
        }
    }
    let error = error.unwrap();
    assert_eq!(error.cause, Cause::OutOfMemory, "{error:?}");
    // The server may answer so also to a write that it has executed, so the record was read.
    assert_eq!(error.execution, Execution::Definite);
    assert!(error.to_string().contains("alarm disarm"), "{error}");
    // A claim stays, and can be read.
    let others = patient(bare(&server)).lock("a");
    assert!(others.try_acquire().await.unwrap().is_none());
    let refused_again = guard.release().await.unwrap_err().to_string();
    assert!(refused_again.contains("alarm disarm"), "{refused_again}");
    server.kill();
    server.launch_with(&[]);
    let mut operator = crate::operator(&server).await;
    let alarms = operator.alarm(AlarmAction::Get, AlarmType::Nospace, None);
    for alarm in alarms.await.unwrap().alarms() {
        let mut options = AlarmOptions::new();
        options.with_member(alarm.member_id());
        let disarmed = operator.alarm(AlarmAction::Deactivate, AlarmType::Nospace, Some(options));
        disarmed.await.unwrap();
    }
    assert!(refused(&*store, 30_000).await.is_none());
}

/// The server looks for space when it is asked, and again when it executes a write, which it then does in any case.
pub(crate) async fn what_is_told_of_writes_that_fill_the_database_is_true(server: Etcd) {
    drop(server);
    let server = Etcd::start_with(&["--quota-backend-bytes=1000000"]);
    let store = store(&server).await;
    let write = |number: u64| {
        let record = [number.to_string().into_bytes(), vec![b'x'; 30_000]].concat();
        let draft = Draft { record, ..draft(0) };
        store.write_if(&Key::new(number.to_string()), None, draft)
    };
    let mut told = Vec::new();
    // The server learns how large its database is ten times a second.
    for round in 0..100 {
        told.extend(join_all((0..16).map(|number| write(16 * round + number))).await);
        if told.iter().any(Result::is_err) {
            break;
        }
    }
    let mut refused = 0;
    for (number, told) in told.into_iter().enumerate() {
        let found = store.read(&Key::new(number.to_string())).await.unwrap();
        match told {
            Ok(written) => {
                let stored = found.stored.map(|stored| stored.version);
                assert!(
                    matches!(written, Written::Stored { version, .. } if Some(&version) == stored.as_ref())
                );
            }
            Err(error) => {
                assert_eq!(error.execution, Execution::Definite, "{error:?}");
                assert_eq!(error.cause, Cause::OutOfMemory, "{error:?}");
                assert!(found.stored.is_none(), "{number}");
                refused += 1;
            }
        }
    }
    assert!(0 < refused);
}

pub(crate) async fn a_record_that_is_too_large_is_a_definite_error(server: Etcd) {
    let store = store(&server).await;
    for bytes in [1_600_000, 3_000_000] {
        let error = refused(&*store, bytes).await.unwrap();
        assert_eq!(error.execution, Execution::Definite, "{error:?}");
        assert!(error.to_string().contains("--max-request-bytes"), "{error}");
    }
    let written = store.write_if(&Key::new("a"), None, draft(700_000)).await;
    assert!(matches!(written, Ok(Written::Stored { .. })), "{written:?}");
}
