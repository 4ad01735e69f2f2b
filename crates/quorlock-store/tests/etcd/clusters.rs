//! Clusters without a majority.

use quorlock_store::{Cause, Key};
use quorlock_testbed::etcd::Etcd;

use crate::databases::{bare, check};

pub(crate) async fn without_a_majority_a_read_says_so(server: Etcd) {
    drop(server);
    let mut cluster = Etcd::three();
    let store = bare(&cluster);
    check(&*store).await.unwrap();
    cluster.kill_one(0);
    cluster.kill_one(1);
    let error = loop {
        match store.read(&Key::new("a")).await {
            // The last member does not know at once that it is alone.
            Ok(_) => {}
            Err(error) if error.cause == Cause::TimedOut => {}
            Err(error) => break error,
        }
    };
    assert_eq!(error.cause, Cause::NoPrimary, "{error:?}");
    assert!(error.to_string().contains("majority"), "{error}");
}
