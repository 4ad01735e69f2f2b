//! Servers that do not answer, sessions that end, and data that change behind the clients.

use quorlock_core::transport::Execution;
use quorlock_store::{Cause, Key, Store, Written, open};
use quorlock_testbed::proxy::{Draw, Forwarding, Proxy};
use quorlock_testbed::zookeeper::Zookeeper;

use crate::databases::{SECOND, bare, check, patient, store};
use crate::{draft, operator};

pub(crate) async fn a_write_without_a_reply_is_in_doubt(mut server: Zookeeper) {
    let store = store(&server).await;
    server.stop();
    let write = tokio::spawn(store.write_if(&Key::new("a"), None, draft(7, b"x")));
    tokio::time::sleep(SECOND / 10).await;
    server.kill();
    let error = write.await.unwrap().unwrap_err();
    assert_eq!(error.cause, Cause::Closed, "{error:?}");
    assert_eq!(error.execution, Execution::Indeterminate);
}

pub(crate) async fn a_write_whose_reply_is_lost_is_found_by_reading(server: Zookeeper) {
    let shortest = || -> Draw { Box::new(|min, _| min) };
    let draws = [shortest(), shortest()];
    let proxy = Proxy::open(server.port(), Forwarding::Open, draws).await;
    let proxy = proxy.unwrap();
    let store = open(&format!("zk://127.0.0.1:{}", proxy.port())).unwrap();
    check(&*store).await.unwrap();
    let locks = patient(store);
    drop(locks.lock("other").acquire().await.unwrap());
    let operator = operator(&server).await;
    let writes = async || operator.get_data("/quorlock/a").await.unwrap().1.version;
    // The write of a name that is remembered is one call.
    let guard = locks.lock("a").acquire().await.unwrap();
    guard.release().await.unwrap();
    let before = writes().await;
    proxy.lose_replies();
    let acquiring = tokio::spawn(async move { locks.lock("a").acquire().await.unwrap() });
    while writes().await == before {
        tokio::time::sleep(SECOND / 50).await;
    }
    proxy.carry_replies();
    proxy.cut();
    let guard = acquiring.await.unwrap();
    assert_eq!(writes().await, before + 1, "it was not sent again");
    let others = patient(bare(&server)).lock("a");
    assert!(others.try_acquire().await.unwrap().is_none());
    guard.release().await.unwrap();
}

pub(crate) async fn a_connection_that_has_ended_is_replaced(mut server: Zookeeper) {
    let store = store(&server).await;
    let locks = patient(store.clone());
    let guard = locks.lock("a").acquire().await.unwrap();
    server.kill();
    server.launch();
    guard.release().await.unwrap();
    server.kill();
    server.launch();
    check(&*store).await.unwrap();
    drop(locks.lock("a").acquire().await.unwrap());
}

/// The server is away for longer than it keeps a session.
pub(crate) async fn a_session_that_has_expired_is_replaced(mut server: Zookeeper) {
    let locks = patient(store(&server).await);
    let guard = locks.lock("a").lease(60 * SECOND).acquire().await.unwrap();
    let waiting = tokio::spawn({
        let locks = patient(bare(&server));
        async move { locks.lock("a").acquire().await.unwrap() }
    });
    server.kill();
    tokio::time::sleep(20 * SECOND).await;
    server.launch();
    assert!(guard.is_held());
    guard.release().await.unwrap();
    waiting.await.unwrap().release().await.unwrap();
}

pub(crate) async fn a_prefix_that_was_deleted_is_made_again(server: Zookeeper) {
    let store = store(&server).await;
    operator(&server)
        .await
        .delete("/quorlock", None)
        .await
        .unwrap();
    let written = store.write_if(&Key::new("a"), None, draft(7, b"x")).await;
    assert!(matches!(written, Ok(Written::Stored { .. })), "{written:?}");
}

/// A copy has lost what was written since. A version that is a counter would come back with other records.
pub(crate) async fn a_copy_that_returns_makes_no_client_overwrite_a_claim(mut server: Zookeeper) {
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
    assert_eq!(
        other.read(&key).await.unwrap().stored.unwrap().record,
        b"claim"
    );
}

pub(crate) async fn a_record_that_was_deleted_makes_no_client_overwrite_a_claim(server: Zookeeper) {
    let store = store(&server).await;
    let key = Key::new("a");
    store.write_if(&key, None, draft(1, b"free")).await.unwrap();
    let remembered = store.read(&key).await.unwrap().stored.unwrap().version;
    let operator = operator(&server).await;
    operator
        .delete("/quorlock/a/0000000000000001", None)
        .await
        .unwrap();
    operator.delete("/quorlock/a", None).await.unwrap();
    store
        .write_if(&key, None, draft(2, b"claim"))
        .await
        .unwrap();
    let late = store.write_if(&key, Some(&remembered), draft(3, b"mine"));
    assert_eq!(late.await, Ok(Written::Conflict));
}
