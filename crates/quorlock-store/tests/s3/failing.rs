//! Data that change behind the clients.

use std::fs;

use quorlock_store::{Key, Store};
use quorlock_testbed::s3::S3;

use crate::databases::{SECOND, store};
pub(crate) async fn another_process_is_noticed_after_a_minute(server: S3) {
    let store = store(&server).await;
    let process = async || store.read(&Key::new("a")).await.unwrap().stamp.process;
    let before = process().await;
    fs::remove_file(server.object("quorlock.id")).unwrap();
    assert_eq!(process().await, before);
    tokio::time::sleep(60 * SECOND).await;
    assert_ne!(process().await, before);
}
