//! Clients that are made from addresses.

use quorlock::{ConnectError, Locks};
use quorlock_store::{Cause, Key, Store, ZookeeperStore};
use quorlock_testbed::zookeeper::Zookeeper;
use zookeeper_client::{Acls, CreateMode};

use crate::databases::{draft, problem, refused, store};
use crate::operator;

pub(crate) async fn what_is_wrong_with_an_address_is_said(_: Zookeeper) {
    for (address, words) in [
        ("zk:h/s3cret", "does not begin with zk://"),
        ("zk://u:s3c@ret@h", "%40"),
        ("zk://s3cret@h", "a user without a password"),
        ("zk://u:s3cret@", "names no host"),
        ("zk://u:s3cret@h:port", "port"),
        ("zk://h/a?mode=s3cret", "means nothing here"),
        ("zk://u:s3cret@h/a//b", "no path of a znode"),
        ("zk://u:s3cret@h/zookeeper", "no path of a znode"),
    ] {
        let error = refused(address).await;
        let is_of_address = matches!(error, ConnectError::StoreAddress(_));
        assert!(is_of_address, "{address}: {error:?}");
        assert!(error.to_string().contains(words), "{address}: {error}");
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("s3c"), "{shown}");
    }
    let store = ZookeeperStore::new("zk://u:s3cret@b,a:1/x").unwrap();
    assert_eq!(store.address(), "zk://a:1,b:2181/x");
    assert_eq!(
        format!("{store:?}"),
        "ZookeeperStore(\"zk://a:1,b:2181/x\")"
    );
}

pub(crate) async fn what_is_wrong_with_a_server_is_said(mut server: Zookeeper) {
    server.kill();
    let (cause, said) = problem(refused(&server.address()).await);
    assert_eq!(cause, Cause::Unreachable, "{said}");
    assert!(said.contains("check that a majority"), "{said}");
}

pub(crate) async fn a_client_is_made_from_an_address(server: Zookeeper) {
    let address = server.address();
    assert!(!Locks::init(&address).await.unwrap(), "it has no table");
    assert_eq!(Locks::schema(&address).unwrap(), None);
    let (one, other) = (Locks::connect(&address), Locks::connect(&address));
    let (one, other) = (one.await.unwrap(), other.await.unwrap());
    let elsewhere = Locks::connect(format!("{address}/a/jobs")).await.unwrap();
    let guard = one.lock("orders/42").acquire().await.unwrap();
    let tried = other.lock("orders/42").try_acquire().await;
    assert!(tried.unwrap().is_none());
    let apart = elsewhere.lock("orders/42").try_acquire().await.unwrap();
    assert!(apart.is_some(), "other znodes are other locks");
    guard.release().await.unwrap();
    let guard = other.lock("orders/42").try_acquire().await.unwrap();
    guard.unwrap().release().await.unwrap();
    let operator = operator(&server).await;
    for path in ["/quorlock/orders%2F42", "/a/jobs/orders%2F42"] {
        let (data, stat) = operator.get_data(path).await.unwrap();
        let text = String::from_utf8(data).unwrap();
        assert!(text[16..].starts_with("\nquorlock/1 "), "{text}");
        assert_eq!(stat.num_children, 1);
        let children = operator.list_children(path).await.unwrap();
        assert_eq!(children, [&text[..16]]);
    }
}

pub(crate) async fn two_prefixes_of_one_ensemble_are_one_store(server: Zookeeper) {
    let folder = tempfile::tempdir().unwrap();
    let file = format!("sqlite:{}", folder.path().join("a").display());
    Locks::init(&file).await.unwrap();
    let twice = [
        server.address(),
        format!("{}/other", server.address()),
        file,
    ];
    let error = Locks::quorum(&twice).await.unwrap_err();
    assert!(error.to_string().contains("same"), "{error}");
}

pub(crate) async fn a_user_keeps_its_znodes_to_itself(server: Zookeeper) {
    let with = |login: &str| server.address().replace("://", &format!("://{login}@"));
    let locks = Locks::connect(with("shop:s3cret%40")).await.unwrap();
    let guard = locks.lock("a").acquire().await.unwrap();
    for address in [
        server.address(),
        with("shop:wrong"),
        with("other:s3cret%40"),
    ] {
        let error = refused(&address).await;
        assert!(!format!("{error:?}").contains("wrong"), "{error:?}");
        let (cause, said) = problem(error);
        assert_eq!(cause, Cause::NoPermission, "{said}");
        assert!(said.contains("getAcl"), "{said}");
    }
    let again = Locks::connect(with("shop:s3cret%40")).await.unwrap();
    assert!(again.lock("a").try_acquire().await.unwrap().is_none());
    guard.release().await.unwrap();
}

pub(crate) async fn keys_are_listed_in_pages(server: Zookeeper) {
    let store = store(&server).await;
    for number in 0..1005_u64 {
        let key = Key::new(format!("{number:04}/x"));
        let written = store.write_if(&key, None, draft(number, b"x"));
        written.await.unwrap();
    }
    let operator = operator(&server).await;
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    let strange = operator.create("/quorlock/a.b", b"", &options);
    strange.await.unwrap();
    let first = store.keys(None).await.unwrap();
    assert_eq!(first.len(), 1000);
    assert_eq!(first[0], Key::new("0000/x"));
    let second = store.keys(first.last()).await.unwrap();
    assert_eq!(second.len(), 5);
    assert_eq!(second[4], Key::new("1004/x"));
    assert_eq!(store.keys(second.last()).await.unwrap(), []);
}

pub(crate) async fn a_znode_that_is_no_record_is_said_and_stays(server: Zookeeper) {
    let locks = Locks::connect(server.address()).await.unwrap();
    let operator = operator(&server).await;
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    let path = "/quorlock/strange";
    operator.create(path, b"hello", &options).await.unwrap();
    let error = locks.lock("strange").acquire().await.unwrap_err();
    assert!(error.to_string().contains("deleteall"), "{error}");
    assert_eq!(operator.get_data(path).await.unwrap().0, b"hello");
    // One that was changed by hand could never be written again, which is said too.
    let guard = locks.lock("a").acquire().await.unwrap();
    let child = operator
        .list_children("/quorlock/a")
        .await
        .unwrap()
        .remove(0);
    let child = format!("/quorlock/a/{child}");
    operator.delete(&child, None).await.unwrap();
    let error = guard.release().await.unwrap_err();
    assert!(error.to_string().contains("deleteall"), "{error}");
    // A number that is none.
    operator.set_data("/quorlock.id", b"x", None).await.unwrap();
    let (cause, said) = problem(refused(&server.address()).await);
    assert_eq!(cause, Cause::WrongType, "{said}");
    assert!(said.contains("/quorlock.id"), "{said}");
}
