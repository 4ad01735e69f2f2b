//! Locks in keys of etcd.

use quorlock_testbed::etcd::Etcd;
use quorlock_testbed::server_tests;

use super::stores::{at, fails, serves_every_command};
use super::support::end_of;

server_tests![ETCD: keys_of_etcd_serve_every_command];

async fn keys_of_etcd_serve_every_command() {
    let mut server = Etcd::start();
    let address = server.address();
    serves_every_command(&address);
    let (code, printed, said) = end_of(at(&format!("{address}/jobs")).args(["list"]));
    assert_eq!(code, 0, "{said}");
    assert_eq!(printed.lines().count(), 1, "{printed}");
    fails(at(&address).args(["init", "--print"]), 64, "no table");
    let login = address.replace("://", "://u:s3cret@");
    fails(at(&login).args(["list"]), 78, "leave the user out");
    server.kill();
    fails(
        at(&address).args(["list"]),
        69,
        "check that the members run",
    );
}
