//! Servers that return to an earlier state.

use quorlock_store::{Key, Store};
use quorlock_testbed::etcd::Etcd;

use crate::databases::{SECOND, bare, patient, store};
use crate::operator;

/// Returns the revision at which a key was written last.
async fn written_at(server: &Etcd, name: &str) -> i64 {
    let found = operator(server).await.get(name, None).await.unwrap();
    found.kvs()[0].mod_revision()
}

/// B remembers a free record by a revision that A's claim gets after the return: the revisions are counted by the store.
pub(crate) async fn a_copy_that_returns_makes_no_client_overwrite_a_claim(mut server: Etcd) {
    let (a, b) = (patient(bare(&server)), patient(bare(&server)));
    let hold = async || b.lock("a").acquire().await.unwrap().release().await;
    hold().await.unwrap();
    server.keep_copy();
    let kept = written_at(&server, "quorlock/a").await;
    hold().await.unwrap();
    let remembered = written_at(&server, "quorlock/a").await;
    server.return_to_copy();
    assert_eq!(written_at(&server, "quorlock/a").await, kept);
    let mut operator = operator(&server).await;
    for _ in kept + 2..remembered {
        operator.put("other", "x", None).await.unwrap();
    }
    operator.put("other", "x", None).await.unwrap();
    let guard = a.lock("a").acquire().await.unwrap();
    assert_eq!(written_at(&server, "quorlock/a").await, remembered);
    assert!(b.lock("a").try_acquire().await.unwrap().is_none());
    guard.extend(60 * SECOND).await.unwrap();
    guard.release().await.unwrap();
}

async fn process(store: &dyn Store) -> u64 {
    let snapshot = store.read(&Key::new("a")).await.unwrap();
    snapshot.stamp.process.0
}

pub(crate) async fn a_cluster_that_is_restored_is_another_process(mut server: Etcd) {
    let first = store(&server).await;
    let guard = patient(first.clone()).lock("a").acquire().await.unwrap();
    let before = process(&*first).await;
    let mut snapshot = operator(&server).await.snapshot().await.unwrap();
    let mut bytes = Vec::new();
    while let Some(part) = snapshot.message().await.unwrap() {
        bytes.extend_from_slice(part.blob());
    }
    server.kill();
    server.launch();
    assert_eq!(process(&*first).await, before);
    let restored = Etcd::restored(&bytes, "again");
    let second = bare(&restored);
    let after = process(&*second).await;
    assert_ne!(after, before);
    assert!(after < 1 << 52 && before < 1 << 52);
    // It has the claims of the snapshot.
    let other = patient(second);
    assert!(other.lock("a").try_acquire().await.unwrap().is_none());
    drop(guard);
}
