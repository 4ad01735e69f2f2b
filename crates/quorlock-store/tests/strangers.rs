//! Addresses of stores at the port of a Redis server. Without one they are listed as ignored.

#![allow(
    clippy::unwrap_used,
    reason = "a test is the world: it fails by panicking"
)]

use std::sync::Arc;

use object_store::aws::AmazonS3Builder;
use quorlock_store::{S3Store, StoreTransport, open};
use quorlock_testbed::server::Server;
use quorlock_testbed::trials::{run, trial};

/// How an address is written whose host and port are put in the place of `HOST`, and what is said then.
const ADDRESSES: [(&str, &str); 6] = [
    ("postgres://u:s3cret@HOST/locks", "PostgreSQL"),
    ("mysql://u:s3cret@HOST/locks", "MySQL"),
    ("etcd://HOST", "addresses are right"),
    ("zk://HOST", "addresses are right"),
    ("mongodb://HOST/locks", "address is right"),
    ("s3://locks?endpoint=http://HOST", "address is right"),
];

fn main() {
    let trials = ADDRESSES.map(|(address, words)| {
        let (scheme, _) = address.split_once(':').unwrap();
        let name = format!("{scheme}_at_the_port_of_a_redis_server_is_an_error_that_says_so");
        trial(&name, move || is_found_out(address, words))
    });
    run(6, trials.into());
}

async fn is_found_out(address: &str, words: &str) {
    let server = Server::start();
    let host = format!("127.0.0.1:{}", server.port());
    let address = address.replace("HOST", &host);
    let store = match address.starts_with("s3:") {
        // Without keys, the driver would ask the machine for them.
        true => {
            let keys = AmazonS3Builder::new().with_access_key_id("u");
            let keys = keys.with_secret_access_key("s3cret");
            Arc::new(S3Store::with_builder(&address, keys).unwrap())
        }
        false => open(&address).unwrap(),
    };
    let checked = StoreTransport::new(store).check().await;
    let error = checked.unwrap_err().to_string();
    assert!(error.contains(words), "{error}");
    // What a client is told that has only waited for an answer.
    assert!(!error.contains("no answer in 10s"), "{error}");
    assert!(!error.contains("s3cret"), "{error}");
}
