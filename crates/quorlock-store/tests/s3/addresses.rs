//! Clients that are made from addresses.

use std::fs;

use futures_util::future::join_all;
use object_store::aws::AmazonS3Builder;
use quorlock::{ConnectError, Locks};
use quorlock_store::{Cause, Key, S3Store, Store};
use quorlock_testbed::s3::S3;

use crate::databases::{check, draft, problem, refused, store};

pub(crate) async fn what_is_wrong_with_an_address_is_said(_: S3) {
    for (address, words) in [
        ("s3:b/s3cret", "does not begin with s3://"),
        ("s3://key:s3cret@b", "AWS_SECRET_ACCESS_KEY"),
        ("s3://key:s3c@ret@b", "%40"),
        ("s3:///s3cret", "names no bucket"),
        ("s3://b b/s3cret", "names no bucket"),
        ("s3://b/a#s3cret", "%23"),
        ("s3://b/a?mode=s3cret", "?mode, which means nothing"),
        ("s3://b?region=eu&region=s3cret", "?region twice"),
        ("s3://b?region=s3c%20ret", "region"),
        ("s3://b?endpoint=s3cret", "endpoint"),
        ("s3://b?endpoint=ftp://s3cret", "endpoint"),
        ("s3://b?endpoint=http://", "names no host"),
        ("s3://b?endpoint=http://h:port", "port"),
        ("s3://b?endpoint=http://h/s3cret", "host"),
        ("s3://b/a//s3cret", "prefix"),
        ("s3://b/../s3cret", "prefix"),
        ("s3://b/a%01", "prefix"),
    ] {
        let error = refused(address).await;
        let is_of_address = matches!(error, ConnectError::StoreAddress(_));
        assert!(is_of_address, "{address}: {error:?}");
        assert!(error.to_string().contains(words), "{address}: {error}");
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("s3c") && !shown.contains("ret@"), "{shown}");
    }
    let half = AmazonS3Builder::new().with_access_key_id("key");
    let error = S3Store::with_builder("s3://b", half).unwrap_err();
    assert!(error.to_string().contains("SecretAccessKey"), "{error}");
    // The environment names the endpoint of an address that has none.
    let elsewhere = AmazonS3Builder::new().with_endpoint("http://H:9000/");
    let shown = S3Store::with_builder("s3://b", elsewhere).unwrap();
    assert_eq!(shown.address(), "s3://b/quorlock?endpoint=http://h:9000");
}

pub(crate) async fn what_is_wrong_with_a_bucket_is_said(mut server: S3) {
    let right = server.address();
    let missing = problem(refused(&right.replace("locks?", "missing?")).await);
    assert_eq!(missing.0, Cause::NoDatabase, "{missing:?}");
    assert!(missing.1.contains("make it"), "{missing:?}");
    let keys = |access: &str, secret: &str| {
        AmazonS3Builder::new()
            .with_access_key_id(access)
            .with_secret_access_key(secret)
    };
    let [(_, access), (_, secret)] = S3::KEYS;
    // A machine without a role: nothing listens there.
    let without = AmazonS3Builder::new().with_metadata_endpoint("http://127.0.0.1:1");
    for (builder, cause) in [
        (keys(access, "wrong"), Cause::NoAuth),
        (keys("wrong", secret), Cause::NoAuth),
        (without, Cause::NoCredentials),
    ] {
        let store = S3Store::with_builder(&right, builder).unwrap();
        let error = check(&store).await.unwrap_err();
        assert_eq!(error.cause, cause, "{error:?}");
        assert!(error.to_string().contains("AWS_ACCESS_KEY_ID"), "{error}");
        assert!(
            !format!("{error:?} {store:?}").contains("secret"),
            "{error:?}"
        );
    }
    server.kill();
    let (found, said) = problem(refused(&right).await);
    assert_eq!(found, Cause::Unreachable, "{said}");
}

pub(crate) async fn a_client_is_made_from_an_address(server: S3) {
    let address = server.address();
    assert!(!Locks::init(&address).await.unwrap(), "it has no table");
    assert_eq!(Locks::schema(&address).unwrap(), None);
    let (one, other) = (Locks::connect(&address), Locks::connect(&address));
    let (one, other) = (one.await.unwrap(), other.await.unwrap());
    let elsewhere = address.replace("locks?", "locks/a/jobs?");
    let elsewhere = Locks::connect(elsewhere).await.unwrap();
    let guard = one.lock("orders/42").acquire().await.unwrap();
    let tried = other.lock("orders/42").try_acquire().await;
    assert!(tried.unwrap().is_none());
    let apart = elsewhere.lock("orders/42").try_acquire().await.unwrap();
    assert!(apart.is_some(), "other objects are other locks");
    guard.release().await.unwrap();
    let guard = other.lock("orders/42").try_acquire().await.unwrap();
    guard.unwrap().release().await.unwrap();
    for name in ["quorlock/orders%2F42", "a/jobs/orders%2F42"] {
        let text = fs::read_to_string(server.object(name)).unwrap();
        assert!(text[16..].starts_with("\nquorlock/1 "), "{text}");
    }
}

pub(crate) async fn two_prefixes_of_one_bucket_are_one_store(server: S3) {
    let folder = tempfile::tempdir().unwrap();
    let file = format!("sqlite:{}", folder.path().join("a").display());
    Locks::init(&file).await.unwrap();
    let address = server.address();
    let twice = [
        address.clone(),
        address.replace("locks?", "locks/other?"),
        file,
    ];
    let error = Locks::quorum(&twice).await.unwrap_err();
    assert!(error.to_string().contains("same"), "{error}");
}

/// A list of S3 has at most a thousand names.
pub(crate) async fn keys_are_listed(server: S3) {
    let store = store(&server).await;
    let writes = (0..1005_u64).map(|number| {
        let key = Key::new(format!("{number:04}/x"));
        store.write_if(&key, None, draft(number, b"x"))
    });
    for chunk in writes.collect::<Vec<_>>().chunks_mut(50) {
        for written in join_all(chunk).await {
            written.unwrap();
        }
    }
    // Beside the prefix, and below it but none of a key.
    for name in ["quorlock0", "a", "quorlock/a.b"] {
        fs::write(server.object(name), "x").unwrap();
    }
    let all = store.keys(None).await.unwrap();
    assert_eq!(all.len(), 1005);
    assert_eq!(all[0], Key::new("0000/x"));
    let last = store.keys(Some(&all[1003])).await.unwrap();
    assert_eq!(last, [Key::new("1004/x")]);
    assert_eq!(store.keys(last.last()).await.unwrap(), []);
}

pub(crate) async fn an_object_that_is_no_record_is_said_and_stays(server: S3) {
    let locks = Locks::connect(server.address()).await.unwrap();
    drop(locks.lock("a").acquire().await.unwrap());
    let newer = "0000000000000001\nquorlock/2 0000000000000001\n";
    for (name, value, words) in [
        ("later", newer, "newer"),
        ("strange", "hello", "not of this library"),
        ("other", "0000000000000001\nhello", "another program"),
    ] {
        let object = format!("quorlock/{name}");
        server.forge(&object, "quorlock/a", value);
        let error = locks.lock(name).acquire().await.unwrap_err();
        assert!(error.to_string().contains(words), "{name}: {error}");
        assert_eq!(fs::read_to_string(server.object(&object)).unwrap(), value);
    }
    fs::write(server.object("quorlock.id"), "x").unwrap();
    let (cause, said) = problem(refused(&server.address()).await);
    assert_eq!(cause, Cause::WrongType, "{said}");
    assert!(said.contains("quorlock.id"), "{said}");
}
