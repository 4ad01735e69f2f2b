//! Records that are not ours, and names that cannot be locked.

use quorlock::{AcquireError, Locks};
use quorlock_store::{Draft, Key, MemoryStore, Store, StoreTransport};

#[tokio::test(start_paused = true)]
async fn a_record_of_a_stranger_or_a_newer_client_is_an_error_that_says_what_to_do() {
    let store = MemoryStore::new();
    let locks = Locks::on_node(StoreTransport::new(store.clone())).unwrap();
    for (name, record, words) in [
        ("a", &b"hello"[..], "another program"),
        ("b", b"quorlock/9 1\n", "newer version"),
        ("c", b"", "another program"),
        ("d", b"\xff\xfe", "another program"),
    ] {
        let key = Key::new(name);
        let draft = Draft {
            record: record.to_vec(),
            number: 1,
            has_news: true,
            useful_until: None,
        };
        store.write_if(&key, None, draft).await.unwrap();
        let error = locks.lock(name).acquire().await.unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        let kept = store.read(&key).await.unwrap().stored.unwrap().record;
        assert_eq!(kept, record, "it is left as it is");
    }
}

#[tokio::test(start_paused = true)]
async fn the_key_of_the_marker_is_no_name() {
    let locks = Locks::on_node(StoreTransport::new(MemoryStore::new())).unwrap();
    for name in ["quorlock_marker", "{quorlock_marker}"] {
        let error = locks.lock(name).acquire().await.unwrap_err();
        assert!(matches!(error, AcquireError::Config(_)), "{error:?}");
        assert!(error.to_string().contains("another name"), "{error}");
    }
    assert!(locks.lock("{quorlock_marker}x").acquire().await.is_ok());
}
