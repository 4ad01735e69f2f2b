//! Clients that are made from addresses.

use futures_util::future::join_all;
use mongodb::bson::doc;
use quorlock::{ConnectError, Locks};
use quorlock_store::{Cause, Key, MongodbStore, Store};
use quorlock_testbed::mongodb::Mongodb;

use crate::databases::{draft, problem, refused, store};
use crate::records;

pub(crate) async fn what_is_wrong_with_an_address_is_said(_: Mongodb) {
    for (address, words) in [
        ("mongodb:h/s3cret", "does not begin with mongodb://"),
        ("mongodb://u:s3c@ret@h/db", "%40"),
        ("mongodb://u:s3c/ret@h/db", "%40"),
        ("mongodb://u:s3cret@/db", "names no host"),
        ("mongodb://u:s3cret@h:port/db", "port"),
        ("mongodb://u:s3cret@h", "names no database"),
        ("mongodb://u:s3cret@h/a.b", "names no database"),
        ("mongodb://u:s3cret@h/db?w=1", "?w, which means nothing"),
        (
            "mongodb://u:s3cret@h/db?readPreference=secondary",
            "?readPreference",
        ),
        ("mongodb://u:s3cret@h/db?tlsInsecure=true", "?tlsInsecure"),
        ("mongodb://u:s3cret@h/db?tls=s3cret", "the driver"),
        ("mongodb+srv://u:s3cret@h/db", "SRV"),
    ] {
        let error = refused(address).await;
        let is_of_address = matches!(error, ConnectError::StoreAddress(_));
        assert!(is_of_address, "{address}: {error:?}");
        assert!(error.to_string().contains(words), "{address}: {error}");
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("s3c") && !shown.contains("ret@"), "{shown}");
    }
    let store = MongodbStore::new("mongodb://u:s3cret@B,a:1/x?replicaSet=r").unwrap();
    assert_eq!(store.address(), "mongodb://a:1,b:27017/x");
    assert_eq!(
        format!("{store:?}"),
        "MongodbStore(\"mongodb://a:1,b:27017/x\")"
    );
}

pub(crate) async fn what_is_wrong_with_a_server_is_said(mut server: Mongodb) {
    let right = server.address();
    // This server has no users.
    let with_login = right.replace("://", "://u:s3cret@");
    let error = refused(&with_login).await;
    assert!(!format!("{error:?}").contains("s3cret"), "{error:?}");
    let (cause, said) = problem(error);
    assert_eq!(cause, Cause::NoAuth, "{said}");
    assert!(said.contains("authSource"), "{said}");
    let (cause, said) = problem(refused(&format!("{right}?tls=true")).await);
    assert_eq!(cause, Cause::Unreachable, "{said}");
    server.kill();
    let (cause, said) = problem(refused(&right).await);
    assert_eq!(cause, Cause::Unreachable, "{said}");
    assert!(said.contains("check that the server runs"), "{said}");
}

pub(crate) async fn a_client_is_made_from_an_address(server: Mongodb) {
    let address = server.address();
    assert!(!Locks::init(&address).await.unwrap(), "it has no table");
    assert_eq!(Locks::schema(&address).unwrap(), None);
    let (one, other) = (Locks::connect(&address), Locks::connect(&address));
    let (one, other) = (one.await.unwrap(), other.await.unwrap());
    let elsewhere = address.replace("/locks", "/jobs");
    let elsewhere = Locks::connect(elsewhere).await.unwrap();
    let guard = one.lock("orders/42").acquire().await.unwrap();
    let tried = other.lock("orders/42").try_acquire().await;
    assert!(tried.unwrap().is_none());
    let apart = elsewhere.lock("orders/42").try_acquire().await.unwrap();
    assert!(apart.is_some(), "other documents are other locks");
    guard.release().await.unwrap();
    let guard = other.lock("orders/42").try_acquire().await.unwrap();
    guard.unwrap().release().await.unwrap();
    let found = records(&server).await;
    let found = found.find_one(doc! { "_id": "orders%2F42" }).await.unwrap();
    let found = found.unwrap();
    let record = found.get_binary_generic("record").unwrap();
    assert!(record.starts_with(b"quorlock/1 "), "{record:?}");
    let version = store(&server).await.version().await.unwrap();
    assert_eq!(version.as_deref(), Some("MongoDB 5.0.0"));
}

pub(crate) async fn two_addresses_of_one_database_are_one_store(server: Mongodb) {
    let folder = tempfile::tempdir().unwrap();
    let file = format!("sqlite:{}", folder.path().join("a").display());
    Locks::init(&file).await.unwrap();
    let twice = [
        server.address(),
        server.address().replace("127.0.0.1", "localhost"),
        file,
    ];
    let error = Locks::quorum(&twice).await.unwrap_err();
    assert!(error.to_string().contains("same"), "{error}");
}

/// A reply of the server has at most 101 documents at first.
pub(crate) async fn keys_are_listed(server: Mongodb) {
    let store = store(&server).await;
    let writes = (0..205_u64).map(|number| {
        let key = Key::new(format!("{number:03}/x"));
        store.write_if(&key, None, draft(number, b"x"))
    });
    for written in join_all(writes).await {
        written.unwrap();
    }
    let strange = records(&server).await;
    strange.insert_one(doc! { "_id": 7 }).await.unwrap();
    let all = store.keys(None).await.unwrap();
    assert_eq!(all.len(), 205);
    assert_eq!(all[0], Key::new("000/x"));
    let last = store.keys(Some(&all[203])).await.unwrap();
    assert_eq!(last, [Key::new("204/x")]);
    assert_eq!(store.keys(last.last()).await.unwrap(), []);
}

pub(crate) async fn a_document_that_is_no_record_is_said_and_stays(server: Mongodb) {
    let locks = Locks::connect(server.address()).await.unwrap();
    drop(locks.lock("a").acquire().await.unwrap());
    let operator = records(&server).await;
    let record = |text: &str| mongodb::bson::Binary {
        subtype: mongodb::bson::spec::BinarySubtype::Generic,
        bytes: text.into(),
    };
    for (name, document, words) in [
        (
            "later",
            doc! { "version": 1_i64, "record": record("quorlock/2 0000000000000001\n") },
            "newer",
        ),
        (
            "other",
            doc! { "version": 1_i64, "record": record("hello") },
            "another program",
        ),
        ("strange", doc! { "text": "hello" }, "not of this library"),
    ] {
        let mut document = document;
        document.insert("_id", name);
        operator.insert_one(&document).await.unwrap();
        let error = locks.lock(name).acquire().await.unwrap_err();
        assert!(error.to_string().contains(words), "{name}: {error}");
        let found = operator.find_one(doc! { "_id": name }).await.unwrap();
        assert_eq!(found.unwrap().len(), document.len(), "{name}");
    }
    let id = doc! { "_id": "quorlock.id" };
    let number = doc! { "$set": { "number": "x" } };
    operator.update_one(id, number).await.unwrap();
    let (cause, said) = problem(refused(&server.address()).await);
    assert_eq!(cause, Cause::WrongType, "{said}");
    assert!(said.contains("quorlock.id"), "{said}");
}
