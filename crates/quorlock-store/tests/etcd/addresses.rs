//! Clients that are made from addresses.

use quorlock::{ConnectError, Locks};
use quorlock_store::{Cause, EtcdStore, Key, Store};
use quorlock_testbed::etcd::Etcd;

use crate::databases::{self, SECOND, bare, draft, problem, refused, store};
use crate::operator;

pub(crate) async fn what_is_wrong_with_an_address_is_said(_: Etcd) {
    for (address, words) in [
        ("etcd:h/s3cret", "does not begin with etcd://"),
        ("etcd://u:s3c@ret@h", "%40"),
        ("etcd://u:2379/s3c@h", "%2F"),
        ("etcd://u:s3c?ret@h", "%3F"),
        ("etcd://u:s3c#ret@h", "%23"),
        ("etcd://u:s3cret,x@h", "%25"),
        ("etcd://s3cret@h", "a user without a password"),
        ("etcd://:s3cret@h", "names no user"),
        ("etcd://u:%ffs3cret@h", "not UTF-8"),
        ("etcd://u:s3cret@", "names no host"),
        ("etcd://u:s3cret@a,,b", "names no host"),
        ("etcd://u:s3cret@h:port", "port"),
        ("etcd://u:s3cret@h:0", "port"),
        ("etcd://u:s3cret@[::1", "port"),
        ("etcd://u:s3cret@[h]", "version 6"),
        ("etcd://u:s3cret@a b", "no name and no address"),
        ("etcd://h/a?mode=s3cret", "means nothing here"),
        ("etcd://h/a#s3cret", "means nothing here"),
        ("etcd://u:s3cret@h/a b", "percent-encoded"),
    ] {
        let error = refused(address).await;
        let is_of_address = matches!(error, ConnectError::StoreAddress(_));
        assert!(is_of_address, "{address}: {error:?}");
        assert!(error.to_string().contains(words), "{address}: {error}");
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("s3c"), "{shown}");
    }
    let store = EtcdStore::new("etcd://u:s3cret@b,a:1/x").unwrap();
    assert_eq!(store.address(), "etcd://a:1,b:2379/x");
    assert_eq!(format!("{store:?}"), "EtcdStore(\"etcd://a:1,b:2379/x\")");
}

pub(crate) async fn what_is_wrong_with_a_server_is_said(mut server: Etcd) {
    // One of the members is another server.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = listener.local_addr().unwrap();
    let both = format!("{},{silent}", server.address());
    let locks = Locks::connect(&both).await.unwrap();
    drop(locks.lock("a").acquire().await.unwrap());
    let (cause, said) = problem(refused(&format!("etcd://{silent}")).await);
    assert_eq!(cause, Cause::TimedOut, "{said}");
    assert!(said.contains("check that the members run"), "{said}");
    server.kill();
    let (cause, said) = problem(refused(&server.address()).await);
    assert_eq!(cause, Cause::Unreachable, "{said}");
    assert!(said.contains("check that the members run"), "{said}");
    assert!(said.contains("refused"), "{said}");
}

pub(crate) async fn a_client_is_made_from_an_address(server: Etcd) {
    let address = server.address();
    assert!(!Locks::init(&address).await.unwrap(), "it has no table");
    assert_eq!(Locks::schema(&address).unwrap(), None);
    let (one, other) = (Locks::connect(&address), Locks::connect(&address));
    let (one, other) = (one.await.unwrap(), other.await.unwrap());
    let elsewhere = Locks::connect(format!("{address}/jobs")).await.unwrap();
    let guard = one.lock("a").acquire().await.unwrap();
    assert!(other.lock("a").try_acquire().await.unwrap().is_none());
    let apart = elsewhere.lock("a").try_acquire().await.unwrap();
    assert!(apart.is_some(), "other keys are other locks");
    guard.release().await.unwrap();
    let guard = other.lock("a").try_acquire().await.unwrap();
    guard.unwrap().release().await.unwrap();
    let mut operator = operator(&server).await;
    for name in ["quorlock/a", "jobs/a"] {
        let found = operator.get(name, None).await.unwrap();
        let record = found.kvs()[0].value_str().unwrap();
        assert!(record.starts_with("quorlock/1 "), "{record}");
    }
}

pub(crate) async fn a_majority_of_unlike_stores_is_made_from_addresses(mut server: Etcd) {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| format!("sqlite:{}", folder.path().join(name).display());
    let addresses = [server.address(), file("a"), file("b")];
    for address in &addresses {
        Locks::init(address).await.unwrap();
    }
    let builder = Locks::builder().member_timeout(9 * SECOND);
    let locks = builder.trust_fresh_nodes().quorum(&addresses).await;
    databases::survives_the_loss_of(&mut server, &locks.unwrap()).await;
    server.launch();
    // Two prefixes of one cluster fail together.
    let twice = [
        server.address(),
        format!("{}/other", server.address()),
        file("a"),
    ];
    let error = Locks::quorum(&twice).await.unwrap_err();
    assert!(error.to_string().contains("same"), "{error}");
}

pub(crate) async fn keys_are_listed_in_pages(server: Etcd) {
    let store = store(&server).await;
    for number in 0..1005_u64 {
        let key = Key::new(format!("{number:04}"));
        store
            .write_if(&key, None, draft(number, b"x"))
            .await
            .unwrap();
    }
    // Beside the prefix, not below it.
    let mut operator = operator(&server).await;
    for name in ["quorlock", "quorlock/", "quorlock0", "a", "z"] {
        operator.put(name, "x", None).await.unwrap();
    }
    let first = store.keys(None).await.unwrap();
    assert_eq!(first.len(), 1000);
    assert_eq!(first[0], Key::new("0000"));
    let second = store.keys(first.last()).await.unwrap();
    assert_eq!(second.len(), 5);
    assert_eq!(second[4], Key::new("1004"));
    assert_eq!(store.keys(second.last()).await.unwrap(), []);
}

pub(crate) async fn a_value_that_is_no_record_is_said_and_stays(server: Etcd) {
    let locks = Locks::connect(server.address()).await.unwrap();
    let mut operator = operator(&server).await;
    for (name, value, words) in [
        ("later", "quorlock/2 0000000000000001\n", "newer"),
        ("strange", "hello", "another program"),
    ] {
        let key = format!("quorlock/{name}");
        operator.put(&*key, value, None).await.unwrap();
        let error = locks.lock(name).acquire().await.unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        let found = operator.get(&*key, None).await.unwrap();
        assert_eq!(found.kvs()[0].value_str().unwrap(), value);
    }
    let marker = "quorlock/quorlock_marker";
    let newer = "quorlock/2 0000000000000001\n";
    operator.put(marker, newer, None).await.unwrap();
    let (cause, said) = problem(refused(&server.address()).await);
    assert_eq!(cause, Cause::Unsupported, "{said}");
    // What is below the prefix and cannot be a name is not listed as one.
    operator.put("quorlock/a\0b", "x", None).await.unwrap();
    let keys = bare(&server).keys(None).await.unwrap();
    assert!(keys.contains(&Key::new("strange")), "{keys:?}");
}
