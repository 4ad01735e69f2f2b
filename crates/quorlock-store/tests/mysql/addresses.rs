//! Clients that are made from addresses.

use quorlock::{ConnectError, Locks};
use quorlock_store::{Cause, MysqlStore, Store};
use quorlock_testbed::mysql::Mysql;

use crate::databases::{problem, refused};

pub(crate) async fn what_is_wrong_with_an_address_is_said(server: Mysql) {
    let right = server.address();
    for (address, words) in [
        (
            "mysql:/locks/s3cret".to_owned(),
            "mysql://user:password@host",
        ),
        (
            format!("{right}?mode=s3cret"),
            "?mode, which means nothing here",
        ),
        (
            format!("{right}?ssl-mode=s3cret"),
            "?ssl-mode, which means nothing",
        ),
        (
            format!("{right}?pool_max=s3cret"),
            "?pool_max, which means nothing",
        ),
        (format!("{right}?require_ssl=true"), "options of the driver"),
        ("mysql://u:s3cret@h:port/db".to_owned(), "port"),
        ("mysql://u:s3c@ret@h/db".to_owned(), "%40"),
        ("mysql://u:3306/s3c@h/db".to_owned(), "%2F"),
        ("mysql://u?s3c@h/db".to_owned(), "%3F"),
        ("mysql://u:3306#s3c@h/db".to_owned(), "%23"),
        ("mysql:///db".to_owned(), "names no host"),
        ("mysql://u:s3cret@h".to_owned(), "names no database"),
        (
            "mysql://u:s3cret@h/db/more".to_owned(),
            "after the database",
        ),
        (
            "mysql://u:s3cret@h/db#more".to_owned(),
            "after the database",
        ),
    ] {
        let error = refused(&address).await;
        let is_of_address = matches!(error, ConnectError::StoreAddress(_));
        assert!(is_of_address, "{address}: {error:?}");
        assert!(error.to_string().contains(words), "{address}: {error}");
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("s3c") && !shown.contains("ret/"), "{shown}");
    }
    for (address, shown) in [
        ("mysql://u:s3cret@h/db", "mysql://h:3306/db"),
        ("mysql://u:s3cret@[::1]:1/db", "mysql://[::1]:1/db"),
        ("mysql://u@h/db?socket=%2Frun/s", "mysql:///run/s/db"),
    ] {
        assert_eq!(MysqlStore::new(address).unwrap().address(), shown);
    }
}

pub(crate) async fn what_is_wrong_with_a_database_is_said(mut server: Mysql) {
    let right = server.address();
    let without_table = problem(refused(&right).await);
    assert_eq!(without_table.0, Cause::Unsupported);
    let advice = "`quorlock init ADDRESS`";
    assert!(without_table.1.contains(advice), "{without_table:?}");
    server.execute(
        "CREATE USER other@'127.0.0.1' IDENTIFIED BY 'other';
         CREATE USER reader@'127.0.0.1' IDENTIFIED BY 'reads';
         GRANT SELECT ON locks.* TO reader@'127.0.0.1';
         CREATE DATABASE strange; CREATE TABLE strange.quorlock (`key` VARBINARY(512) PRIMARY KEY, name TEXT);
         CREATE DATABASE engine; CREATE TABLE engine.quorlock (`key` VARBINARY(512) PRIMARY KEY, version BIGINT) ENGINE=MyISAM;
         CREATE DATABASE half; CREATE TABLE half.quorlock (`key` VARBINARY(512) PRIMARY KEY, version BIGINT) ENGINE=InnoDB",
    );
    Locks::init(&right).await.unwrap();
    let user = |user: &str| right.replace("locks:right", user);
    let database = |name: &str| format!("{}/{name}", right.trim_end_matches("/locks"));
    for (address, cause, words) in [
        (
            right.replace(Mysql::PASSWORD, "wrong"),
            Cause::NoAuth,
            "user or password",
        ),
        (user("other:other"), Cause::NoPermission, "SELECT"),
        (database("missing"), Cause::NoDatabase, "no such database"),
        (database("strange"), Cause::Unsupported, "another program's"),
        (database("engine"), Cause::Unsupported, "not one of InnoDB"),
        (database("half"), Cause::Unsupported, advice),
    ] {
        let error = refused(&address).await;
        assert!(!format!("{error:?}").contains("wrong"), "{error:?}");
        let (found, said) = problem(error);
        assert_eq!(found, cause, "{address}: {said}");
        assert!(said.contains(words), "{address}: {said}");
    }
    let error = Locks::init(user("reader:reads")).await;
    let (found, said) = problem(error.unwrap_err());
    assert_eq!(found, Cause::NoPermission, "{said}");
    let locks = Locks::connect(user("reader:reads")).await.unwrap();
    let error = locks.lock("a").acquire().await.unwrap_err();
    assert!(error.to_string().contains("INSERT"), "{error}");
    server.kill();
    let (found, _) = problem(refused(&right).await);
    assert_eq!(found, Cause::Unreachable);
}

pub(crate) async fn a_socket_may_be_named(server: Mysql) {
    server.execute("CREATE USER locks@localhost IDENTIFIED BY 'right'; GRANT ALL ON locks.* TO locks@localhost");
    let socket = server.socket().replace('/', "%2F");
    let address = format!("mysql://locks:right@localhost:1/locks?socket={socket}");
    Locks::init(&address).await.unwrap();
    let locks = Locks::connect(&address).await.unwrap();
    let guard = locks.lock("a").acquire().await.unwrap();
    guard.release().await.unwrap();
}
