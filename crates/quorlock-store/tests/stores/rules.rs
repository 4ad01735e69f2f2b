//! The test of a store finds what breaks the rules.

use std::sync::Arc;

use quorlock_store::{Key, MemoryStore, Store, conformance};

use crate::wrapped::Wrapped;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_store_in_memory_keeps_the_rules() {
    let checked = conformance::check(Arc::new(MemoryStore::new()), "test/").await;
    assert_eq!(checked, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_breaks_a_rule_is_found() {
    let store = || Wrapped::new(&MemoryStore::new());
    let lower = |key: &Key| Key::new(key.as_bytes().to_ascii_lowercase());
    let unconditional = store().on_write(|store, key, _, draft| {
        let (store, key) = (store.clone(), key.clone());
        Box::pin(async move {
            let stored = store.read(&key).await?.stored;
            let version = stored.map(|stored| stored.version);
            store.write_if(&key, version.as_ref(), draft).await
        })
    });
    let without_case = store()
        .on_read(move |store, key| store.read(&lower(key)))
        .on_write(move |store, key, version, draft| store.write_if(&lower(key), version, draft));
    let silent = store().on_watch(|store, key, _| store.watch(key, Arc::new(Deaf)));
    for (broken, rule) in [
        (
            unconditional,
            "a write that names a version conflicts where there is no record",
        ),
        (
            without_case,
            "keys that differ in any byte are different keys",
        ),
        (silent, "a watcher is told that reports begin"),
    ] {
        let checked = conformance::check(Arc::new(broken), "").await;
        assert_eq!(checked.map_err(|broken| broken.rule), Err(rule));
    }
}

struct Deaf;

impl quorlock_store::Watcher for Deaf {
    fn live(&self) {}

    fn changed(&self, _: Option<&[u8]>) {}
}
