//! Servers whose settings differ, which end, and which are busy.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::join_all;
use mysql_async::prelude::Queryable;
use quorlock::Locks;
use quorlock_core::transport::Execution;
use quorlock_store::{Cause, Draft, Key, Version, Written, conformance, open};
use quorlock_testbed::mysql::Mysql;

use crate::databases::{SECOND, check, patient, problem, store};

/// A session may begin with another time zone, isolation, autocommit and collation, and with a mode that cuts values off.
pub(crate) async fn what_a_server_is_set_to_changes_nothing(server: Mysql) {
    drop(server);
    let server = Mysql::start_with(&[
        "--sql-mode=ANSI_QUOTES",
        "--autocommit=0",
        "--default-time-zone=+13:00",
        "--transaction-isolation=READ-UNCOMMITTED",
        "--collation-server=latin1_swedish_ci",
        "--character-set-server=latin1",
        "--default-storage-engine=MyISAM",
        "--init-connect=SET NAMES latin1",
        "--lower-case-table-names=1",
    ]);
    server.execute("GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON locks.* TO plain@'127.0.0.1' IDENTIFIED BY 'plain'");
    let address = server.address().replace("locks:right", "plain:plain");
    let store = open(&address).unwrap();
    store.set_up().await.unwrap();
    let checked = conformance::check(Arc::new(store.clone()), "test/").await;
    assert_eq!(checked, Ok(()));
    let now = store.read(&Key::new("a")).await.unwrap().stamp.now.unwrap();
    let here = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let there = Duration::from_millis(now.0);
    assert!(here.abs_diff(there) < 60 * SECOND, "{here:?} {there:?}");
    let locks = patient(store);
    let guard = locks.lock("a").acquire().await.unwrap();
    let other = patient(open(&address).unwrap());
    assert!(other.lock("a").try_acquire().await.unwrap().is_none());
    guard.release().await.unwrap();
}

pub(crate) async fn a_server_that_may_lose_commits_is_refused(server: Mysql) {
    Locks::init(server.address()).await.unwrap();
    for (settings, is_refused) in [
        ("sync_binlog = 0", true),
        ("sync_binlog = 1", false),
        ("innodb_flush_log_at_trx_commit = 2", true),
        ("innodb_flush_log_at_trx_commit = 3", false),
    ] {
        server.execute(&format!("SET GLOBAL {settings}"));
        let connected = Locks::connect(server.address()).await;
        let said = connected.err().map(problem);
        assert_eq!(said.is_some(), is_refused, "{settings}: {said:?}");
        if let Some((cause, said)) = said {
            assert_eq!(cause, Cause::Unsupported);
            assert!(
                said.contains("set innodb_flush_log_at_trx_commit"),
                "{said}"
            );
        }
    }
}

fn draft(number: u64) -> Draft {
    Draft {
        record: b"x".to_vec(),
        number,
        has_news: false,
        useful_until: None,
    }
}

/// A user with all rights may write to a server that is read-only, so a read says it; another one is refused by each write.
pub(crate) async fn a_server_that_becomes_read_only_is_said(server: Mysql) {
    let all = store(&server).await;
    server.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON locks.* TO plain@'127.0.0.1' IDENTIFIED BY 'plain'");
    let plain = server.address().replace("locks:right", "plain:plain");
    let plain = open(&plain).unwrap();
    check(&*plain).await.unwrap();
    server.execute("SET GLOBAL read_only = 1");
    for error in [
        check(&*all).await.unwrap_err(),
        check(&*plain).await.unwrap_err(),
        plain
            .write_if(&Key::new("a"), None, draft(2))
            .await
            .unwrap_err(),
    ] {
        assert_eq!(error.cause, Cause::ReadOnly, "{error:?}");
        assert_eq!(error.execution, Execution::Definite);
        assert!(error.to_string().contains("name the primary"), "{error}");
    }
}

pub(crate) async fn idle_connections_that_the_server_has_ended_are_replaced(mut server: Mysql) {
    let store = store(&server).await;
    let key = Key::new("a");
    // Several connections.
    let reads = (0..20).map(|_| store.read(&key));
    for read in join_all(reads).await {
        read.unwrap();
    }
    let locks = patient(store.clone());
    let guard = locks.lock("a").acquire().await.unwrap();
    server.kill();
    server.launch();
    // No call fails, whether it reads or writes.
    guard.release().await.unwrap();
    let reads = (0..20).map(|_| store.read(&key));
    for read in join_all(reads).await {
        read.unwrap();
    }
    drop(locks.lock("a").acquire().await.unwrap());
}

pub(crate) async fn a_row_that_another_transaction_keeps_is_a_definite_error(server: Mysql) {
    let store = store(&server).await;
    let key = Key::new("a");
    let Written::Stored { version, .. } = store.write_if(&key, None, draft(2)).await.unwrap()
    else {
        panic!("a conflict")
    };
    let mut keeper = crate::shop::connect(&server.address()).await;
    keeper
        .query_drop("BEGIN; SELECT * FROM quorlock FOR UPDATE")
        .await
        .unwrap();
    let error = store.write_if(&key, Some(&version), draft(4)).await;
    let error = error.unwrap_err();
    assert_eq!(error.cause, Cause::Busy, "{error:?}");
    assert_eq!(error.execution, Execution::Definite);
    // A read waits for no one.
    let found = store.read(&key).await.unwrap().stored.unwrap();
    assert_eq!(found.version, version);
    keeper.query_drop("ROLLBACK").await.unwrap();
    let written = store
        .write_if(&key, Some(&version), draft(4))
        .await
        .unwrap();
    let next = Version::from(2);
    assert!(matches!(written, Written::Stored { version, .. } if version == next));
}

pub(crate) async fn a_write_without_a_reply_is_in_doubt(mut server: Mysql) {
    let store = store(&server).await;
    server.stop();
    let write = tokio::spawn(store.write_if(&Key::new("a"), None, draft(2)));
    tokio::task::yield_now().await;
    server.kill();
    let error = write.await.unwrap().unwrap_err();
    assert_eq!(error.cause, Cause::Closed, "{error:?}");
    assert_eq!(error.execution, Execution::Indeterminate);
}

/// Returns how many statements the server has executed that were prepared, as all calls are.
async fn executed(server: &Mysql) -> u64 {
    let mut conn = crate::shop::connect(&server.address()).await;
    let sql = "SHOW GLOBAL STATUS LIKE 'Com_stmt_execute'";
    let row: (String, u64) = conn.query_first(sql).await.unwrap().unwrap();
    row.1
}

pub(crate) async fn a_hold_of_a_name_that_is_remembered_is_two_statements(server: Mysql) {
    let locks = patient(store(&server).await);
    let before = executed(&server).await;
    for _ in 0..100 {
        let guard = locks.lock("a").acquire().await.unwrap();
        guard.release().await.unwrap();
    }
    let statements = executed(&server).await - before;
    // There is one read of the name, and renewals or a read of the clock where the machine is busy.
    assert!((200..250).contains(&statements), "{statements}");
}
