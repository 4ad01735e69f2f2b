//! Clients that are made from addresses.

use quorlock::{ConnectError, Locks, LocksBuilder};
use quorlock_store::Cause;
use quorlock_testbed::postgres::Postgres;
use quorlock_testbed::server::Server;

use crate::databases::{SECOND, problem, refused, survives_the_loss_of};

/// Returns a file of SQLite with the tables, by its address.
async fn file(folder: &tempfile::TempDir) -> String {
    let address = format!("sqlite:{}/locks.db", folder.path().display());
    assert!(Locks::init(&address).await.unwrap());
    address
}

/// Returns the settings of a client that waits for long: the machine may be busy.
fn patient() -> LocksBuilder {
    Locks::builder()
        .member_timeout(9 * SECOND)
        .trust_fresh_nodes()
}

pub(crate) async fn a_majority_of_a_table_a_file_and_a_redis_server_survives_the_loss_of_one(
    mut server: Postgres,
) {
    let folder = tempfile::tempdir().unwrap();
    let redis = Server::start();
    let table = server.address().replace("postgres:", "postgresql:");
    let addresses = [table, file(&folder).await, redis.address()];
    assert!(Locks::init(&addresses[0]).await.unwrap());
    assert!(
        !Locks::init(&addresses[2]).await.unwrap(),
        "Redis has no tables"
    );
    let locks = patient().quorum(&addresses).await.unwrap();
    survives_the_loss_of(&mut server, &locks).await;
    // One that is down may be named, and one that is there twice must not.
    let locks = patient().quorum(&addresses).await.unwrap();
    let guard = locks.lock("a").acquire().await.unwrap();
    guard.release().await.unwrap();
    let link = folder.path().join("link.db");
    std::os::unix::fs::symlink(folder.path().join("locks.db"), &link).unwrap();
    let twice = [
        &addresses[1],
        &format!("sqlite:{}", link.display()),
        &addresses[2],
    ];
    let error = patient().quorum(twice).await.unwrap_err();
    assert!(
        error.to_string().contains("the same server or store"),
        "{error}"
    );
}

pub(crate) async fn locks_of_several_stores_are_taken_together(server: Postgres) {
    let folder = tempfile::tempdir().unwrap();
    let redis = Server::start();
    Locks::init(server.address()).await.unwrap();
    let table = patient().connect(server.address()).await.unwrap();
    let file = patient().connect(file(&folder).await).await.unwrap();
    let redis = patient().connect(redis.address()).await.unwrap();
    let all = || table.lock("a").and([file.lock("b"), redis.lock("c")]);
    let guard = all().acquire().await.unwrap();
    for (locks, name) in [(&table, "a"), (&file, "b"), (&redis, "c")] {
        assert!(
            locks.lock(name).try_acquire().await.unwrap().is_none(),
            "{name}"
        );
    }
    guard.release().await.unwrap();
    let one = file.lock("b").acquire().await.unwrap();
    assert!(all().try_acquire().await.unwrap().is_none());
    one.release().await.unwrap();
    assert!(all().try_acquire().await.unwrap().is_some());
}

pub(crate) async fn what_is_wrong_with_an_address_is_said(server: Postgres) {
    let right = server.address();
    for (address, words) in [
        ("cassandra://u:s3cret@h/db".to_owned(), "s3://, sqlite:"),
        ("postgres".to_owned(), "scheme"),
        (
            "postgres:/locks/s3cret".to_owned(),
            "postgres://user:password@host",
        ),
        (format!("{right}?mode=s3cret"), "unknown option `mode`"),
        (format!("{right}?sslmode=s3cret"), "sslmode"),
        ("postgres://u:s3cret@h:port/db".to_owned(), "port"),
        ("postgres://u:s3c@ret@h/db".to_owned(), "%40"),
        ("postgres://u:s3c@ret/x@h/db".to_owned(), "%40"),
        ("postgres:///db".to_owned(), "names no host"),
        ("sqlite:".to_owned(), "names no file"),
        ("sqlite::memory:".to_owned(), "embedded"),
        (
            "sqlite:/a/b?mode=ro".to_owned(),
            "?mode, which means nothing here",
        ),
    ] {
        let error = refused(&address).await;
        let is_of_address = matches!(
            error,
            ConnectError::Address(_) | ConnectError::StoreAddress(_)
        );
        assert!(is_of_address, "{address}: {error:?}");
        assert!(error.to_string().contains(words), "{address}: {error}");
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("s3c") && !shown.contains("ret/"), "{shown}");
    }
}

pub(crate) async fn what_is_wrong_with_a_database_is_said(mut server: Postgres) {
    let right = server.address();
    let without_table = problem(refused(&right).await);
    assert_eq!(without_table.0, Cause::Unsupported);
    assert!(
        without_table.1.contains("`quorlock init ADDRESS`"),
        "{without_table:?}"
    );
    server.execute(
        "CREATE ROLE reader LOGIN PASSWORD 'reads'; CREATE ROLE other LOGIN PASSWORD 'other';
         CREATE SCHEMA strange;
         CREATE TABLE strange.quorlock (key bytea PRIMARY KEY, version text, record text, useful_until bigint)",
    );
    Locks::init(&right).await.unwrap();
    let read_only = format!("{right}?options=-cdefault_transaction_read_only%3Don");
    let strange = format!("{right}?options=-csearch_path%3Dstrange");
    for (address, cause, words) in [
        (
            right.replace(Postgres::PASSWORD, "wrong"),
            Cause::NoAuth,
            "pg_hba.conf",
        ),
        (
            right.replace("/postgres", "/missing"),
            Cause::NoDatabase,
            "no such database",
        ),
        (
            format!("{right}?sslmode=require"),
            Cause::Tls,
            "that of the driver",
        ),
        (
            right.replace("locks:right", "other:other"),
            Cause::NoPermission,
            "SELECT",
        ),
        (read_only, Cause::ReadOnly, "default_transaction_read_only"),
        (strange, Cause::Unsupported, "another program's"),
    ] {
        let error = refused(&address).await;
        assert!(!format!("{error:?}").contains("wrong"), "{error:?}");
        let (found, said) = problem(error);
        assert_eq!(found, cause, "{address}: {said}");
        assert!(said.contains(words), "{address}: {said}");
    }
    let error = Locks::init(right.replace("locks:right", "reader:reads")).await;
    let (found, said) = problem(error.unwrap_err());
    assert_eq!(found, Cause::NoPermission, "{said}");
    let replica = server.replica();
    let (found, said) = problem(refused(&replica.address()).await);
    assert_eq!(found, Cause::ReadOnly);
    assert!(said.contains("name the primary"), "{said}");
    server.kill();
    let (found, _) = problem(refused(&right).await);
    assert_eq!(found, Cause::Unreachable);
}

pub(crate) async fn a_record_that_is_none_is_said(server: Postgres) {
    let address = server.address();
    Locks::init(&address).await.unwrap();
    let put = |key: &str, record: &str| {
        server.execute(&format!(
            "INSERT INTO quorlock VALUES ('{key}', 1, '{record}')"
        ));
    };
    let locks = Locks::connect(&address).await.unwrap();
    for (name, record, words) in [
        ("later", r"quorlock/2 0000000000000001\012", "newer"),
        ("strange", "SELECT 1", "another program"),
    ] {
        put(name, record);
        let error = locks.lock(name).acquire().await.unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
    put("quorlock_marker", r"quorlock/2 0000000000000001\012");
    let (cause, said) = problem(refused(&address).await);
    assert_eq!(cause, Cause::Unsupported, "{said}");
}

pub(crate) async fn an_address_of_redis_at_the_port_of_the_server_is_an_error(server: Postgres) {
    let address = server.address();
    let (_, place) = address.rsplit_once('@').unwrap();
    let (host, _) = place.split_once('/').unwrap();
    let error = refused(&format!("redis://{host}")).await.to_string();
    assert!(error.contains("its address is right"), "{error}");
    assert!(error.contains("the connection ended"), "{error}");
}
