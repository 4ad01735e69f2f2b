//! Servers that do not answer, and data that change behind the clients.

use quorlock_core::transport::Execution;
use quorlock_store::{Cause, Key, Version, Written, open};
use quorlock_testbed::proxy::{Draw, Forwarding, Proxy};

use crate::databases::{Database, SECOND, bare, check, draft, patient, store};

/// A server whose data can be copied, and replaced by the copy.
pub(crate) trait Copied: Database {
    fn keep_copy(&mut self);
    fn return_to_copy(&mut self);
}

/// Makes a server of the test bed one whose data can be copied.
#[allow(unused_macros, reason = "not every server keeps its data")]
macro_rules! copied {
    ($server:ty) => {
        impl crate::faults::Copied for $server {
            fn keep_copy(&mut self) {
                <$server>::keep_copy(self);
            }
            fn return_to_copy(&mut self) {
                <$server>::return_to_copy(self);
            }
        }
    };
}
#[allow(unused_imports, reason = "not every server keeps its data")]
pub(crate) use copied;

/// Returns a network to a server, and the address of the server over this network.
pub(crate) async fn through_proxy<D: Database>(server: &D) -> (Proxy, String) {
    let address = server.address();
    let (_, port) = address.split_once("127.0.0.1:").unwrap();
    let digits = port.find(|c: char| !c.is_ascii_digit());
    let (port, _) = port.split_at(digits.unwrap_or(port.len()));
    let shortest = || -> Draw { Box::new(|min, _| min) };
    let draws = [shortest(), shortest()];
    let proxy = Proxy::open(port.parse().unwrap(), Forwarding::Open, draws).await;
    let proxy = proxy.unwrap();
    let address = address.replace(port, &proxy.port().to_string());
    (proxy, address)
}

/// Returns the version of a record, as another client reads it.
async fn version<D: Database>(server: &D, key: &str) -> Option<Version> {
    let snapshot = bare(server).read(&Key::new(key)).await.unwrap();
    snapshot.stored.map(|stored| stored.version)
}

/// Stops a server. Its threads stop one after another, so a request that comes at once may still be executed.
async fn stand_still<D: Database>(server: &D) {
    server.stop();
    tokio::time::sleep(SECOND / 2).await;
}

pub(crate) async fn a_write_without_a_reply_is_in_doubt<D: Database>(mut server: D) {
    let store = store(&server).await;
    stand_still(&server).await;
    let write = tokio::spawn(store.write_if(&Key::new("a"), None, draft(7, b"x")));
    tokio::time::sleep(SECOND / 10).await;
    server.kill();
    let error = write.await.unwrap().unwrap_err();
    assert_eq!(error.cause, Cause::Closed, "{error:?}");
    assert_eq!(error.execution, Execution::Indeterminate);
}

pub(crate) async fn a_write_to_a_server_that_is_down_was_not_executed<D: Database>(mut server: D) {
    let store = store(&server).await;
    server.kill();
    let key = Key::new("a");
    // The connection that has ended may be found out by the first one.
    let _ = store.write_if(&key, None, draft(7, b"x")).await;
    let error = store.write_if(&key, None, draft(7, b"x")).await;
    let error = error.unwrap_err();
    assert_eq!(error.cause, Cause::Unreachable, "{error:?}");
    assert_eq!(error.execution, Execution::Definite);
}

pub(crate) async fn a_write_to_a_server_that_stands_still_is_in_doubt<D: Database>(server: D) {
    let store = store(&server).await;
    stand_still(&server).await;
    let late = store.write_if(&Key::new("b"), None, draft(7, b"x")).await;
    let error = late.unwrap_err();
    // A driver may give the connection up.
    assert!(
        matches!(error.cause, Cause::TimedOut | Cause::Closed),
        "{error:?}"
    );
    assert_eq!(error.execution, Execution::Indeterminate);
}

pub(crate) async fn a_write_whose_reply_is_lost_is_found_by_reading<D: Database>(server: D) {
    let (proxy, address) = through_proxy(&server).await;
    let store = open(&address).unwrap();
    check(&*store).await.unwrap();
    let locks = patient(store);
    drop(locks.lock("other").acquire().await.unwrap());
    // The write of a name that is remembered is one call.
    let guard = locks.lock("a").acquire().await.unwrap();
    guard.release().await.unwrap();
    let before = version(&server, "a").await;
    proxy.lose_replies();
    let acquiring = tokio::spawn(async move { locks.lock("a").acquire().await.unwrap() });
    while version(&server, "a").await == before {
        tokio::time::sleep(SECOND / 50).await;
    }
    let once = version(&server, "a").await;
    proxy.carry_replies();
    proxy.cut();
    let guard = acquiring.await.unwrap();
    assert_eq!(
        version(&server, "a").await,
        once,
        "nothing else was written"
    );
    let others = patient(bare(&server)).lock("a");
    assert!(others.try_acquire().await.unwrap().is_none());
    guard.release().await.unwrap();
}

/// No call fails, whether it reads or writes.
pub(crate) async fn a_connection_that_has_ended_is_replaced<D: Database>(mut server: D) {
    let store = store(&server).await;
    let locks = patient(store.clone());
    let guard = locks.lock("a").acquire().await.unwrap();
    server.kill();
    server.launch();
    guard.release().await.unwrap();
    server.kill();
    server.launch();
    check(&*store).await.unwrap();
    drop(locks.lock("a").acquire().await.unwrap());
}

/// A copy has lost what was written since. A version that is a counter would come back with other records.
pub(crate) async fn a_copy_that_returns_makes_no_client_overwrite_a_claim<D: Copied>(
    mut server: D,
) {
    let writer = store(&server).await;
    let key = Key::new("a");
    writer.write_if(&key, None, draft(1, b"one")).await.unwrap();
    server.keep_copy();
    let version = writer.read(&key).await.unwrap().stored.unwrap().version;
    let written = writer.write_if(&key, Some(&version), draft(2, b"free"));
    written.await.unwrap();
    let remembered = writer.read(&key).await.unwrap().stored.unwrap().version;
    server.return_to_copy();
    let other = bare(&server);
    let written = other.write_if(&key, Some(&version), draft(3, b"claim"));
    assert!(matches!(written.await, Ok(Written::Stored { .. })));
    let late = bare(&server).write_if(&key, Some(&remembered), draft(4, b"mine"));
    assert_eq!(late.await, Ok(Written::Conflict));
    let found = other.read(&key).await.unwrap().stored.unwrap();
    assert_eq!(found.record, b"claim");
}
