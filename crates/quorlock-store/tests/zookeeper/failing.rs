//! Sessions that end, and data that change behind the clients.

use quorlock_store::{Key, Store, Written};
use quorlock_testbed::zookeeper::Zookeeper;

use crate::databases::{SECOND, bare, draft, patient, store};
use crate::operator;

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
